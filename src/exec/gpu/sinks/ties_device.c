/*
** Sorts rows on a device by keys with texts and values of several types; see ties_device.h.
*/
#include "exec/gpu/sinks/ties_device.h"
#include "exec/gpu/columns/devcol.h"
#include <string.h>

/* SKIP_BYTES: how far a round looks for the end of what texts have in common. This keeps a kernel
** short, because an interrupt waits for it. ROUNDS: the CPU is better at texts that part one by
** one. */
enum { SKIP_BYTES = 1 << 16, ROUNDS = 128 };

/* Memory for the entries of one round. */
typedef struct entries {
  wl_kties t;
  wl_u8 *memory;
  size_t n_bytes;
} entries;

typedef struct sorting {
  wl_ties_sort *s;
  wl_device *d;
  wl_ktkey key;
  wl_u8 *memory; /* fields and ends */
  entries now;
  wl_u64 n_runs;
  wl_u32 *head;
  wl_u64 *heads;
  wl_u64 *counts;       /* pinned: tied rows, runs */
  int bits, later_bits; /* bits of the words of the first round, and of all other rounds */
} sorting;

/* ---- the key */

static wl_status put_key(sorting *x, wl_error *err) {
  const wl_key_layout *l = x->s->layout;
  struct {
    wl_ktfield fields[WL_KO_FIELDS];
    wl_u32 ends[WL_KO_FIELDS];
  } host;
  memset(&host, 0, sizeof host);
  for (int k = 0; k < l->n_parts; k++) {
    const wl_key_part *p = &l->parts[k];
    const wl_kout *o = &x->s->outs[p->key];
    bool any = p->kind == WL_PART_CLASS || p->kind == WL_PART_VALUE;
    host.fields[k] = (wl_ktfield){*p, o->v, o->n, any || p->null ? o->t : NULL, o->type};
    host.ends[p->word] = (wl_u32)k + 1;
  }
  for (int w = 0; w < l->n_words; w++) {
    int bits = wl_key_bits(wl_key_layout_used(l, w) - 1);
    bool ends = w == 0 && l->parts[0].kind != WL_PART_TEXT;
    if (w == 0) x->bits = bits;
    if (!ends && bits > x->later_bits) x->later_bits = bits;
  }
  wl_status rc = wl_dev_alloc(x->d, sizeof host, (void **)&x->memory, err);
  if (!rc) rc = x->d->copy_in(x->d, x->memory, &host, sizeof host, err);
  x->key.fields = (const wl_ktfield *)(const void *)x->memory;
  x->key.ends = (const wl_u32 *)(const void *)(x->memory + sizeof host.fields);
  x->key.n_words = (wl_u32)l->n_words;
  return rc;
}

/* ---- entries */

static wl_status open_entries(wl_device *d, wl_u64 n, entries *e, wl_error *err) {
  memset(e, 0, sizeof *e);
  e->n_bytes = n * (5 * sizeof(wl_u32) + sizeof(wl_ktplace));
  wl_status rc = wl_dev_alloc(d, e->n_bytes, (void **)&e->memory, err);
  if (rc) return rc;
  wl_u32 *p = (wl_u32 *)(void *)(e->memory + n * sizeof(wl_ktplace));
  e->t = (wl_kties){.place = (wl_ktplace *)(void *)e->memory,
                    .row = p,
                    .slot = p + n,
                    .run = p + 2 * n,
                    .start = p + 3 * n,
                    .common = p + 4 * n,
                    .n = n};
  return WL_OK;
}

static void close_entries(wl_device *d, entries *e) {
  wl_dev_free(d, e->memory, e->n_bytes);
  memset(e, 0, sizeof *e);
}

/* ---- a round */

/* A stable sort of values[0] by keys[0]. The result becomes keys[0] and values[0]. */
static wl_status sort_pairs(wl_device *d, wl_u64 **keys, wl_u32 **values, wl_u64 n, int bits,
                            wl_error *err) {
  int at = 0;
  wl_status rc = d->sort(d, keys, values, (wl_i64)n, bits, &at, err);
  if (!at) return rc;
  wl_u64 *k = keys[0];
  wl_u32 *v = values[0];
  keys[0] = keys[1];
  keys[1] = k;
  values[0] = values[1];
  values[1] = v;
  return rc;
}

/* Divides the runs by their words. Then x->now has the entries that are tied still. */
static wl_status divide(sorting *x, wl_ktsplit *a, wl_error *err) {
  wl_device *d = x->d;
  wl_u64 n = a->t.n;
  entries next;
  wl_status rc = wl_device_each(d, WL_K_TIES_SPLIT, a, sizeof *a, n, err);
  if (!rc) rc = d->scan(d, x->s->keep, x->s->kept, (wl_i64)n, err);
  if (!rc) rc = d->scan(d, x->head, x->heads, (wl_i64)n, err);
  if (!rc) rc = d->copy_out_later(d, &x->counts[0], x->s->kept + n, 8, err);
  if (!rc) rc = d->copy_out_later(d, &x->counts[1], x->heads + n, 8, err);
  if (!rc) rc = d->finish(d, err);
  if (rc) return rc;
  x->n_runs = x->counts[1];
  if (!x->counts[0]) {
    x->now.t.n = 0;
    return WL_OK;
  }
  rc = open_entries(d, x->counts[0], &next, err);
  a->to = next.t;
  if (!rc) rc = wl_device_each(d, WL_K_TIES_NEXT, a, sizeof *a, n, err);
  close_entries(d, &x->now); /* freed in queue order, after the kernel that reads it */
  x->now = next;
  return rc;
}

static wl_ktsplit split_of(const sorting *x, const wl_u32 *values) {
  return (wl_ktsplit){.key = x->key,
                      .t = x->now.t,
                      .values = values,
                      .sorted = x->s->keys[0],
                      .keep = x->s->keep,
                      .head = x->head,
                      .kept = x->s->kept,
                      .heads = x->heads,
                      .most = x->s->most};
}

/* All rows, by the first word. */
static wl_status first_round(sorting *x, wl_error *err) {
  wl_ties_sort *s = x->s;
  x->now.t.n = s->n;
  x->now.t.list = s->listed ? s->rows[0] : NULL;
  wl_ktwords w = {.key = x->key, .t = x->now.t, .keys = s->keys[0], .values = s->rows[0]};
  wl_status rc = wl_device_each(x->d, WL_K_TIES_WORDS, &w, sizeof w, s->n, err);
  if (!rc) rc = sort_pairs(x->d, s->keys, s->rows, s->n, x->bits, err);
  wl_ktsplit a = split_of(x, s->rows[0]);
  return rc ? rc : divide(x, &a, err);
}

/* The rows that are tied, by their next word, within their runs. */
static wl_status next_round(sorting *x, wl_error *err) {
  wl_ties_sort *s = x->s;
  wl_u64 n = x->now.t.n, *words = x->n_runs > 1 ? s->words : NULL;
  wl_u32 *values[2] = {s->rows[1], s->values};
  wl_ktskip skip = {x->key, x->now.t, SKIP_BYTES};
  wl_ktwords w = {x->key, x->now.t, s->keys[0], words, values[0]};
  wl_status rc = wl_device_each(x->d, WL_K_TIES_SKIP, &skip, sizeof skip, n, err);
  if (!rc) rc = wl_device_each(x->d, WL_K_TIES_WORDS, &w, sizeof w, n, err);
  if (!rc) rc = sort_pairs(x->d, s->keys, values, n, x->later_bits, err);
  if (!rc && words) {
    wl_ktruns r = {x->now.t.run, values[0], s->keys[0], n};
    rc = wl_device_each(x->d, WL_K_TIES_RUNS, &r, sizeof r, n, err);
    if (!rc) rc = sort_pairs(x->d, s->keys, values, n, wl_key_bits(x->n_runs - 1), err);
  }
  wl_ktsplit a = split_of(x, values[0]);
  a.words = words;
  a.out = s->rows[0];
  return rc ? rc : divide(x, &a, err);
}

/* ---- the sort */

static wl_status open_sort(sorting *x, wl_error *err) {
  wl_u64 n = x->s->n + 1;
  wl_status rc = wl_dev_alloc(x->d, n * 4, (void **)&x->head, err);
  if (!rc) rc = wl_dev_alloc(x->d, n * 8, (void **)&x->heads, err);
  if (!rc) rc = x->d->host_alloc(x->d, 16, (void **)&x->counts, err);
  return rc ? rc : put_key(x, err);
}

static void close_sort(sorting *x, wl_status rc) {
  wl_u64 n = x->s->n + 1;
  wl_error ignored;
  if (rc && x->d->finish(x->d, &ignored)) { /* whatever went wrong, no copy is under way now */
  }
  wl_dev_free(x->d, x->head, n * 4);
  wl_dev_free(x->d, x->heads, n * 8);
  wl_dev_free(x->d, x->memory, WL_KO_FIELDS * (sizeof(wl_ktfield) + sizeof(wl_u32)));
  if (x->counts) x->d->host_free(x->d, x->counts);
  close_entries(x->d, &x->now);
}

wl_status wl_ties_sort_rows(wl_ties_sort *s, wl_error *err) {
  sorting x = {.s = s, .d = s->d};
  wl_status rc = open_sort(&x, err);
  if (!rc) rc = first_round(&x, err);
  for (int k = 0; x.now.t.n && !rc; k++) {
    rc = wl_stop_ask(s->stop, err);
    if (!rc && k == ROUNDS) rc = wl_fail(err, WL_FULL, "many texts begin alike");
    if (!rc) rc = next_round(&x, err);
  }
  close_sort(&x, rc);
  return rc;
}
