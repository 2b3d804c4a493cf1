/*
** Sorting row numbers; see sorter.h.
*/
#include "exec/cpu/sorter.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/batch.h"
#include "column/column.h"
#include "exec/cpu/encode.h"
#include "exec/sort/sort.h"
#include "program/compile.h"
#include <assert.h>
#include <string.h>

/* The first rows are kept separately if they are at most TOP_MOST and 1/TOP_SHARE of all rows. */
enum { TOP_MOST = 1 << 18, TOP_SHARE = 8, TOP_SPARE = 4096 };

/* A worker's candidates for the first rows. */
typedef struct candidates {
  wl_u64 *words[WL_MAX_WORDS + 1]; /* [size] each: the keys' words, then the row number */
  wl_i64 n, size;
  wl_u64 last[WL_MAX_WORDS]; /* if full, the keys of the last row that is among the first */
  wl_u32 last_row;           /* and its number */
  bool full;                 /* there are enough candidates */
  wl_u64 *coded;             /* the words of the current vector */
} candidates;

struct wl_sorter {
  const wl_program *p;
  wl_key_layout layout;
  const wl_column **texts; /* of each key; NULL: it is a number */
  wl_arena arena;
  wl_i64 n_rows, most; /* most < 0: all rows are sorted */
  int n_tablets, n_workers;
  candidates *workers; /* if all rows are sorted, only coded is used */
  wl_u64 **all;        /* [n_words][n_rows]: the words of all rows, by tablet */
  wl_u32 *rows;        /* [n_rows]: the row numbers */
  wl_i32 *counts;      /* [n_tablets]: rows that were added */
  wl_u32 *order;
};

/* Sets the columns of keys that are texts. */
static bool find_texts(wl_sorter *s, wl_column *const *cols) {
  const wl_program *p = s->p;
  s->texts = WL_NEW_N(&s->arena, const wl_column *, p->n_order + 1);
  for (int k = 0; s->texts && k < s->layout.n_parts; k++) {
    const wl_key_part *part = &s->layout.parts[k];
    if (part->kind != WL_PART_TEXT) continue;
    int column = wl_program_column(p, p->results[p->order[part->key].result].operand);
    assert(column >= 0 && cols[column]->phys == WL_P_TEXT);
    s->texts[part->key] = cols[column];
  }
  return s->texts != NULL;
}

wl_status wl_sorter_open(const wl_program *p, wl_column *const *cols, wl_i64 n_rows, wl_i64 most,
                         int threads, wl_sorter **out, wl_error *err) {
  assert(p->sink == WL_SINK_SORT_KEYS && n_rows < 0xffffffffLL);
  *out = NULL;
  wl_sorter *s = wl_mem_zalloc(sizeof *s);
  if (!s) return wl_nomem(err);
  s->p = p;
  wl_arena_init(&s->arena);
  s->n_rows = n_rows;
  s->n_workers = threads;
  s->most = most >= 0 && most <= n_rows / TOP_SHARE && most <= TOP_MOST ? most : -1;
  s->n_tablets = (int)((n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  s->layout.parts = WL_NEW_N(&s->arena, wl_key_part, 2 * p->n_order + 1);
  s->workers = WL_NEW_N(&s->arena, candidates, threads);
  bool ok =
      s->layout.parts && s->workers && wl_sort_key_layout(p, &s->layout) && find_texts(s, cols);
  int n_words = s->layout.n_words;
  for (int w = 0; w < threads && ok; w++) {
    candidates *c = &s->workers[w];
    c->coded = wl_mem_alloc((size_t)n_words * WL_VECTOR * sizeof *c->coded);
    ok = c->coded != NULL;
    if (s->most < 0) continue;
    c->size = 2 * s->most + TOP_SPARE;
    for (int k = 0; k <= n_words && ok; k++)
      ok = (c->words[k] = wl_mem_alloc((size_t)c->size * 8)) != NULL;
  }
  if (ok && s->most < 0) {
    s->all = WL_NEW_N(&s->arena, wl_u64 *, n_words);
    ok = s->all != NULL;
    for (int k = 0; k < n_words && ok; k++)
      ok = (s->all[k] = wl_mem_alloc((size_t)n_rows * 8)) != NULL;
    if (ok) s->rows = wl_mem_alloc((size_t)n_rows * sizeof *s->rows);
    if (ok) s->counts = wl_mem_zalloc(((size_t)s->n_tablets + 1) * sizeof *s->counts);
    ok = ok && s->rows && s->counts;
  }
  if (!ok) {
    wl_sorter_close(s);
    return wl_nomem(err);
  }
  *out = s;
  return WL_OK;
}

wl_i64 wl_sorter_bytes(const wl_program *p, wl_i64 n_rows, wl_i64 most) {
  if (most >= 0 && most <= n_rows / TOP_SHARE && most <= TOP_MOST) return 0;
  /* One word per key (rarely two), row numbers, their order. */
  return n_rows * (8 * (wl_i64)p->n_order + 8) + wl_sort_bytes(n_rows);
}

void wl_sorter_close(wl_sorter *s) {
  if (!s) return;
  for (int w = 0; s->workers && w < s->n_workers; w++) {
    wl_mem_free(s->workers[w].coded);
    for (int k = 0; k <= WL_MAX_WORDS; k++) wl_mem_free(s->workers[w].words[k]);
  }
  for (int k = 0; s->all && k < s->layout.n_words; k++) wl_mem_free(s->all[k]);
  wl_mem_free(s->rows);
  wl_mem_free(s->counts);
  wl_mem_free(s->order);
  wl_arena_close(&s->arena);
  wl_mem_free(s);
}

/* ---- texts */

/* What gets the values of a sort: the numbers of its rows, in one of two forms. */
typedef struct text_keys {
  const wl_sorter *s;
  const wl_u32 *numbers;
  const wl_u64 *wide;
} text_keys;

static wl_val text_of(const wl_column *c, wl_u32 row) {
  const wl_segment *s = &c->segments[row >> WL_TABLET_SHIFT];
  wl_u32 i = row & (WL_TABLET_ROWS - 1);
  if (s->valid && !(s->valid[i >> 3] >> (i & 7) & 1)) return wl_null();
  wl_u64 place = ((const wl_u64 *)s->data)[i];
  return wl_text(s->heap + (wl_u32)place, (wl_u32)(place >> 32));
}

static void text_values(const void *arg, int key, const wl_u32 *rows, int n, wl_val *out) {
  const text_keys *t = arg;
  const wl_column *c = t->s->texts[key];
  for (int i = 0; i < n; i++) {
    wl_u32 row = t->wide ? (wl_u32)t->wide[rows[i]] : t->numbers[rows[i]];
    const wl_u64 *data = c->segments[row >> WL_TABLET_SHIFT].data;
    __builtin_prefetch(&data[row & (WL_TABLET_ROWS - 1)]);
    out[i].v = row;
  }
  for (int i = 0; i < n; i++) out[i] = text_of(c, (wl_u32)out[i].v);
}

/* ---- the first rows only */

/* Drops candidates that are not among the first rows. */
static wl_status cut(const wl_sorter *s, candidates *c) {
  if (c->n <= s->most) return WL_OK;
  wl_u32 *order = wl_mem_alloc((size_t)c->n * sizeof *order);
  wl_u64 *room = wl_mem_alloc((size_t)s->most * 8 + 8);
  wl_error err = {0};
  text_keys texts = {.s = s, .wide = c->words[s->layout.n_words]};
  wl_sort sort = {.n = c->n,
                  .n_words = s->layout.n_words + 1,
                  .words = c->words,
                  .layout = &s->layout,
                  .values = text_values,
                  .arg = &texts,
                  .threads = 1};
  wl_status rc = order && room ? wl_sort_rows(&sort, order, &err) : WL_NOMEM;
  for (int k = 0; k <= s->layout.n_words && !rc; k++) {
    for (wl_i64 i = 0; i < s->most; i++) room[i] = c->words[k][order[i]];
    memcpy(c->words[k], room, (size_t)s->most * 8);
    if (k < s->layout.n_words && s->most) c->last[k] = room[s->most - 1];
    if (k == s->layout.n_words && s->most) c->last_row = (wl_u32)room[s->most - 1];
  }
  c->n = s->most;
  c->full = true;
  wl_mem_free(order);
  wl_mem_free(room);
  return rc;
}

static WL_CLONES int any_below(const wl_u64 *w, int n, wl_u64 most) {
  int any = 0;
  for (int i = 0; i < n; i++) any |= w[i] <= most;
  return any;
}

/* Whether row i of the current vector comes before the last of the first rows. Of equal rows the
** earlier one does, and this row is later than all candidates. */
static bool comes_first(const wl_sorter *s, const candidates *c, int i, wl_u32 row) {
  for (int k = 0, part = 0; k < s->layout.n_words; k++) {
    wl_u64 w = c->coded[(size_t)k * WL_VECTOR + i];
    if (w != c->last[k]) return w < c->last[k];
    while (s->layout.parts[part].word < k) part++;
    const wl_key_part *text = &s->layout.parts[part];
    if (text->kind != WL_PART_TEXT || !wl_text_next(text, w, 0)) continue;
    const wl_column *column = s->texts[text->key];
    int order =
        wl_text_compare(text, text_of(column, row), text_of(column, c->last_row), WL_TEXT_BYTES);
    if (order) return order < 0;
  }
  return false;
}

static wl_status add_first(wl_sorter *s, candidates *c, const wl_i64 *rows, int n) {
  const wl_u64 *w = c->coded;
  int n_words = s->layout.n_words;
  if (s->most == 0 || (c->full && !any_below(w, n, c->last[0]))) return WL_OK;
  for (int i = 0; i < n; i++) {
    if (c->full && (w[i] > c->last[0] || !comes_first(s, c, i, (wl_u32)rows[i]))) continue;
    if (c->n == c->size) {
      wl_status rc = cut(s, c);
      if (rc) return rc;
    }
    for (int k = 0; k < n_words; k++) c->words[k][c->n] = w[(size_t)k * WL_VECTOR + i];
    c->words[n_words][c->n++] = (wl_u64)rows[i];
    if (!c->full && c->n >= s->most + TOP_SPARE) {
      wl_status rc = cut(s, c);
      if (rc) return rc;
    }
  }
  return WL_OK;
}

/* ---- adding */

wl_status wl_sorter_add(wl_sorter *s, int worker, int tablet, const wl_vec *keys,
                        const wl_i64 *rows, int n) {
  candidates *c = &s->workers[worker];
  wl_encode_keys(&s->layout, keys, n, c->coded);
  if (s->most >= 0) return add_first(s, c, rows, n);
  wl_i64 at = ((wl_i64)tablet << WL_TABLET_SHIFT) + s->counts[tablet];
  for (int k = 0; k < s->layout.n_words; k++)
    memcpy(s->all[k] + at, c->coded + (size_t)k * WL_VECTOR, (size_t)n * 8);
  for (int i = 0; i < n; i++) s->rows[at + i] = (wl_u32)rows[i];
  s->counts[tablet] += n;
  return WL_OK;
}

/* ---- finishing */

static wl_status cut_task(void *arg, int worker, long w, wl_error *err) {
  wl_sorter *s = arg;
  (void)worker, (void)err;
  return cut(s, &s->workers[w]);
}

/* Copies all workers' candidates into one list. */
static wl_status gather(wl_sorter *s, wl_u64 **words, wl_i64 *n) {
  int n_words = s->layout.n_words + 1;
  *n = 0;
  for (int w = 0; w < s->n_workers; w++) *n += s->workers[w].n;
  for (int k = 0; k < n_words; k++) {
    words[k] = wl_mem_alloc((size_t)(*n + 1) * 8);
    if (!words[k]) return WL_NOMEM;
    wl_i64 at = 0;
    for (int w = 0; w < s->n_workers; w++) {
      const candidates *c = &s->workers[w];
      memcpy(words[k] + at, c->words[k], (size_t)c->n * 8);
      at += c->n;
    }
  }
  return WL_OK;
}

wl_status wl_sorter_finish(wl_sorter *s, int threads, wl_stop *stop, const wl_u32 **rows, wl_i64 *n,
                           wl_error *err) {
  wl_u64 *first[WL_MAX_WORDS + 1] = {0};
  bool top = s->most >= 0;
  wl_status rc = WL_OK;
  wl_u32 *numbers = NULL;
  *n = 0;
  if (top) {
    wl_tasks cutting = {threads, s->n_workers, cut_task, s, stop};
    rc = wl_tasks_run(&cutting, NULL, err);
    if (!rc) rc = gather(s, first, n) ? wl_nomem(err) : WL_OK;
    numbers = rc ? NULL : wl_mem_alloc((size_t)(*n + 1) * sizeof *numbers);
    if (!rc && !numbers) rc = wl_nomem(err);
    for (wl_i64 i = 0; i < *n && !rc; i++) numbers[i] = (wl_u32)first[s->layout.n_words][i];
  } else {
    for (int t = 0; t < s->n_tablets; t++) *n += s->counts[t];
  }
  if (!rc) {
    s->order = wl_mem_alloc((size_t)(*n + 1) * sizeof *s->order);
    if (!s->order) rc = wl_nomem(err);
  }
  if (!rc) {
    text_keys texts = {.s = s, .numbers = top ? numbers : s->rows};
    bool all = !top && *n == s->n_rows; /* if so, row i has number i */
    wl_sort sort = {.n = *n,
                    .n_words = s->layout.n_words + top,
                    .words = top ? first : s->all,
                    .counts = top || all ? NULL : s->counts,
                    .n_tablets = s->n_tablets,
                    .numbers = all ? NULL : texts.numbers,
                    .layout = &s->layout,
                    .values = text_values,
                    .arg = &texts,
                    .threads = threads,
                    .stop = stop};
    rc = wl_sort_rows(&sort, s->order, err);
  }
  wl_mem_free(numbers);
  for (int k = 0; k <= WL_MAX_WORDS; k++) wl_mem_free(first[k]);
  for (int k = 0; s->all && k < s->layout.n_words; k++) {
    wl_mem_free(s->all[k]);
    s->all[k] = NULL;
  }
  *rows = s->order;
  return rc;
}
