/*
** Makes the table of a lookup from pairs of a word and a row; see column/lookup.h for the tables.
**
** The table is cut into areas that fit the cache. Pairs are dealt to their areas, in row order,
** and then each area is filled by one task. So no task reads all pairs, and none writes where
** another one writes. If the words rise with the rows, most tablets belong to few areas, and an
** area reads the tablets that it needs instead.
**
** Invariants:
** 1. An area starts at a multiple of 64 places, so that bitmaps of areas share no byte.
** 2. All pairs of one word are in one area.
*/
#include "base/mem.h"
#include "base/tasks.h"
#include "exec/sink/lookup_impl.h"
#include <string.h>

enum {
  MAX_AREAS = 1024,
  LEAST_SHIFT = 6,
  DIRECT_SHIFT = 16, /* areas of 256 kB */
  HASH_SHIFT = 14,   /* areas of 256 kB */
  MOST_READS = 3,    /* areas that may read a pair before dealing is faster */
  SPARSE = 1 << 17   /* pairs, from which on the table is half full */
};

static wl_status run_tasks(wl_build *b, long n, wl_task_fn task, wl_error *err) {
  wl_tasks t = {b->threads, n, task, b, &b->stop};
  return wl_tasks_run(&t, NULL, err);
}

static wl_u64 place_of(const wl_build *b, wl_u64 word) {
  return b->l->direct ? word - b->base : wl_key_hash(word - b->base) & b->l->mask;
}

/* The places [*from, *to) of an area. The last area of a direct table has the places after its last
** word, too. */
static void area_places(const wl_build *b, long area, wl_u64 *from, wl_u64 *to) {
  *from = (wl_u64)area << b->shift;
  *to = area + 1 == b->n_areas ? b->n_places : (wl_u64)(area + 1) << b->shift;
}

/* ---- areas */

static wl_status make_areas(wl_build *b, wl_u64 n_places, int shift, wl_error *err) {
  b->n_places = n_places;
  b->shift = shift;
  while ((n_places - 1) >> b->shift >= MAX_AREAS) b->shift++;
  if (b->threads > 1)
    while (b->shift > LEAST_SHIFT && (n_places - 1) >> b->shift < (wl_u64)b->threads * 4)
      b->shift--;
  b->n_areas = (int)((n_places - 1) >> b->shift) + 1;
  b->areas = wl_mem_zalloc((size_t)b->n_areas * sizeof *b->areas);
  return b->areas ? WL_OK : wl_nomem(err);
}

/* Makes the whole table one area, which needs the least memory. */
static void make_one_area(wl_build *b) {
  b->shift = 63;
  b->n_areas = 1;
  b->threads = 1;
}

/* Whether areas of a direct table may read the tablets themselves. */
static bool is_clustered(const wl_build *b) {
  double reads = 0;
  if (b->n_areas == 1) return true;
  for (int k = 0; k < b->n_parts; k++) {
    const wl_build_part *t = &b->parts[k];
    if (t->n)
      reads += (double)t->n *
               (double)(((t->hi - b->base) >> b->shift) - ((t->lo - b->base) >> b->shift) + 1);
  }
  return reads <= (double)b->n * MOST_READS;
}

static wl_status count_task(void *arg, int worker, long task, wl_error *err) {
  wl_build *b = arg;
  const wl_build_part *t = &b->parts[task];
  wl_u32 *n = b->offsets + (size_t)task * (size_t)b->n_areas;
  for (wl_i64 i = 0; i < t->n; i++) n[place_of(b, t->words[i]) >> b->shift]++;
  return WL_OK;
}

static wl_status deal_task(void *arg, int worker, long task, wl_error *err) {
  wl_build *b = arg;
  wl_build_part *t = &b->parts[task];
  wl_u32 *at = b->offsets + (size_t)task * (size_t)b->n_areas;
  for (wl_i64 i = 0; i < t->n; i++) {
    wl_u32 to = at[place_of(b, t->words[i]) >> b->shift]++;
    b->words[to] = t->words[i];
    b->rows[to] = t->rows[i];
  }
  wl_mem_free(t->words);
  wl_mem_free(t->rows);
  t->words = NULL;
  t->rows = NULL;
  return WL_OK;
}

/* Deals all pairs to their areas. */
static wl_status deal(wl_build *b, wl_error *err) {
  size_t n = (size_t)b->n + 1;
  /* With one area, the pairs of a tablet are freed before those of the next one are copied. */
  wl_i64 n_bytes = b->n_areas == 1 ? 0 : b->n * 12;
  wl_status rc = wl_build_spend(b, n_bytes, err);
  if (rc) return rc;
  b->offsets = wl_mem_zalloc((size_t)b->n_parts * (size_t)b->n_areas * sizeof *b->offsets);
  b->words = wl_mem_alloc(n * sizeof *b->words);
  b->rows = wl_mem_alloc(n * sizeof *b->rows);
  if (!b->offsets || !b->words || !b->rows) return wl_nomem(err);
  rc = run_tasks(b, b->n_parts, count_task, err);
  if (rc) return rc;
  wl_i64 before = 0;
  for (int a = 0; a < b->n_areas; a++) {
    b->areas[a].first = before;
    for (int k = 0; k < b->n_parts; k++) {
      wl_u32 *at = &b->offsets[(size_t)k * (size_t)b->n_areas + (size_t)a], m = *at;
      *at = (wl_u32)before;
      before += m;
    }
    b->areas[a].n = before - b->areas[a].first;
  }
  b->dealt = true;
  rc = run_tasks(b, b->n_parts, deal_task, err);
  wl_mem_free(b->offsets);
  b->offsets = NULL;
  b->n_bytes -= n_bytes; /* the pairs of the tablets are freed */
  return rc;
}

/* A stretch of pairs that an area reads. */
typedef struct stretch {
  const wl_u64 *words;
  const wl_u32 *rows;
  wl_i64 n;
} stretch;

/* The next stretch of an area, from *k on. False: there is no more. It may have pairs of other
** areas, unless they are dealt. */
static bool next_stretch(wl_build *b, long area, int worker, int *k, stretch *out) {
  wl_u64 from, to;
  if (wl_stop_now(&b->stop, worker)) return false;
  if (b->dealt) {
    const wl_build_area *a = &b->areas[area];
    *out = (stretch){b->words + a->first, b->rows + a->first, a->n};
    return (*k)++ == 0;
  }
  area_places(b, area, &from, &to);
  for (; *k < b->n_parts; ++*k) {
    const wl_build_part *t = &b->parts[*k];
    if (!t->n || t->hi - b->base < from || t->lo - b->base >= to) continue;
    *out = (stretch){t->words, t->rows, t->n};
    ++*k;
    return true;
  }
  return false;
}

/* Sets `first` of each area from the numbers of pairs. */
static void sum_areas(wl_build *b) {
  wl_i64 before = 0;
  for (int a = 0; a < b->n_areas; a++) {
    b->areas[a].first = before;
    before += b->areas[a].n;
  }
}

/* ---- a direct table */

/* Stores the row of each word: the first one if first_only is set. Otherwise it sets has_duplicates
** when a word has a second row, and the slots are not used. */
static wl_status slots_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  wl_u64 from, to;
  wl_u32 *slots = b->l->slots, twice = 0;
  stretch s;
  if (atomic_load_explicit(&b->has_duplicates, memory_order_relaxed)) return WL_OK;
  area_places(b, area, &from, &to);
  memset(slots + from, 0xff, (to - from) * sizeof *slots);
  for (int k = 0; next_stretch(b, area, worker, &k, &s);) {
    for (wl_i64 i = 0; i < s.n; i++) {
      wl_u64 at = s.words[i] - b->base;
      if (at - from >= to - from) continue;
      wl_u32 was = slots[at];
      twice |= was ^ WL_NO_ROW;
      slots[at] = was == WL_NO_ROW ? s.rows[i] : was;
    }
    if (twice && !b->in->first_only) break;
  }
  if (twice && !b->in->first_only) atomic_store(&b->has_duplicates, true);
  return WL_OK;
}

static wl_status bits_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  wl_u64 from, to;
  wl_u8 *bits = b->l->bits;
  area_places(b, area, &from, &to);
  memset(bits + from / 8, 0, (to - from + 7) / 8);
  for (wl_u64 w = from; w < to; w++)
    bits[w >> 3] |= (wl_u8)((b->l->slots[w] != WL_NO_ROW) << (w & 7));
  return WL_OK;
}

/* Makes a bitmap of the words that have rows, if it fits the cache much better than the slots. */
static wl_status make_bits(wl_build *b, wl_error *err) {
  enum { FROM = 1 << 15 };
  wl_lookup *l = b->l;
  if (l->span < FROM || (wl_u64)b->n > l->span / 2 || l->plan.n > 1 || l->plan.parts[0].null)
    return WL_OK;
  size_t n_bytes = (size_t)(b->n_places / 8 + 1);
  wl_status rc = wl_build_spend(b, (wl_i64)n_bytes, err);
  if (rc) return rc;
  l->bits = wl_mem_alloc(n_bytes);
  return l->bits ? run_tasks(b, b->n_areas, bits_task, err) : wl_nomem(err);
}

/* Counts the rows of each word in `starts`. */
static wl_status word_counts_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  wl_u64 from, to;
  wl_u32 *counts = b->l->starts;
  wl_i64 n = 0;
  stretch s;
  area_places(b, area, &from, &to);
  memset(counts + from, 0, (to - from) * sizeof *counts);
  for (int k = 0; next_stretch(b, area, worker, &k, &s);)
    for (wl_i64 i = 0; i < s.n; i++) {
      wl_u64 at = s.words[i] - b->base;
      if (at - from >= to - from) continue;
      counts[at]++;
      n++;
    }
  b->areas[area].n = n;
  return WL_OK;
}

/* Turns counts into starts and places the rows. While they are placed, the start of a word advances
** to that of the next word. */
static wl_status word_rows_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  wl_u64 from, to;
  wl_u32 *starts = b->l->starts, *rows = b->l->rows, next = (wl_u32)b->areas[area].first;
  stretch s;
  area_places(b, area, &from, &to);
  for (wl_u64 w = from; w < to; w++) {
    wl_u32 n = starts[w];
    starts[w] = next;
    next += n;
  }
  for (int k = 0; next_stretch(b, area, worker, &k, &s);)
    for (wl_i64 i = 0; i < s.n; i++) {
      wl_u64 at = s.words[i] - b->base;
      if (at - from < to - from) rows[starts[at]++] = s.rows[i];
    }
  memmove(starts + from + 1, starts + from, (to - from - 1) * sizeof *starts);
  starts[from] = (wl_u32)b->areas[area].first;
  return WL_OK;
}

wl_status wl_build_direct(wl_build *b, wl_error *err) {
  wl_lookup *l = b->l;
  size_t n_slots = (size_t)l->span + 2;
  l->direct = true;
  wl_status rc = wl_build_spend(b, (wl_i64)n_slots * 4, err);
  if (!rc) rc = make_areas(b, n_slots, DIRECT_SHIFT, err);
  if (rc) return rc;
  l->slots = wl_mem_alloc(n_slots * sizeof *l->slots);
  if (!l->slots) return wl_nomem(err);
  bool clustered = is_clustered(b);
  if (!clustered && !wl_build_fits(b, b->n * 12)) make_one_area(b);
  if (!clustered && b->n_areas > 1) rc = deal(b, err);
  if (!rc) rc = run_tasks(b, b->n_areas, slots_task, err);
  if (rc) return rc;
  l->unique = !b->has_duplicates;
  if (l->unique) return make_bits(b, err);
  rc = wl_build_spend(b, b->n * 4, err);
  if (rc) return rc;
  l->starts = l->slots;
  l->slots = NULL;
  l->rows = wl_mem_alloc(((size_t)b->n + 1) * sizeof *l->rows);
  if (!l->rows) return wl_nomem(err);
  rc = run_tasks(b, b->n_areas, word_counts_task, err);
  if (rc) return rc;
  sum_areas(b);
  return run_tasks(b, b->n_areas, word_rows_task, err);
}

/* ---- a hash table */

/* Remembers a pair whose word did not fit its area. */
static wl_status add_rest(wl_build_area *a, wl_i64 pair) {
  if (a->n_rest == a->size_rest) {
    int size = a->size_rest ? a->size_rest * 2 : 16;
    wl_u32 *p = wl_mem_realloc(a->rest, (size_t)a->n_rest * sizeof *p, (size_t)size * sizeof *p);
    if (!p) return WL_NOMEM;
    a->rest = p;
    a->size_rest = size;
  }
  a->rest[a->n_rest++] = (wl_u32)pair;
  return WL_OK;
}

/* Puts a pair into the slot of its word, or into an empty one. */
static void put(wl_build *b, wl_i64 pair, wl_u64 word, wl_u64 at, bool *twice) {
  wl_lookup *l = b->l;
  if (l->slots[at] == WL_NO_ROW) {
    l->slots[at] = b->rows[pair];
    l->words[at] = word;
  } else {
    *twice = true;
  }
  l->counts[at]++;
  b->places[pair] = (wl_u32)at;
}

static wl_status hash_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  wl_lookup *l = b->l;
  wl_build_area *a = &b->areas[area];
  wl_u64 from, to, mask = l->mask;
  bool twice = false;
  if (wl_stop_now(&b->stop, worker)) return WL_OK;
  area_places(b, area, &from, &to);
  memset(l->slots + from, 0xff, (to - from) * sizeof *l->slots);
  memset(l->counts + from, 0, (to - from) * sizeof *l->counts);
  for (wl_i64 i = a->first; i < a->first + a->n; i++) {
    wl_u64 word = b->words[i] - b->base, at = wl_key_hash(word) & mask;
    while (at < to && l->slots[at] != WL_NO_ROW && l->words[at] != word) at++;
    if (at == to) {
      if (add_rest(a, i)) return WL_NOMEM;
    } else {
      put(b, i, word, at, &twice);
    }
  }
  if (twice && !b->in->first_only)
    atomic_store_explicit(&b->has_duplicates, true, memory_order_relaxed);
  return WL_OK;
}

/* Places the pairs that did not fit their areas, which are few. */
static void place_rest(wl_build *b) {
  wl_lookup *l = b->l;
  bool twice = false;
  for (int k = 0; k < b->n_areas; k++)
    for (int j = 0; j < b->areas[k].n_rest; j++) {
      wl_i64 i = b->areas[k].rest[j];
      wl_u64 word = b->words[i] - b->base, at = wl_key_hash(word) & l->mask;
      while (l->slots[at] != WL_NO_ROW && l->words[at] != word) at = (at + 1) & l->mask;
      put(b, i, word, at, &twice);
    }
  if (twice && !b->in->first_only) b->has_duplicates = true;
}

/* Counts the rows in the slots of an area. */
static wl_status slot_counts_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  wl_u64 from, to;
  wl_i64 n = 0;
  area_places(b, area, &from, &to);
  for (wl_u64 i = from; i < to; i++) n += b->l->counts[i];
  b->areas[area].n_rest = 0;
  b->offsets[area] = (wl_u32)n;
  return WL_OK;
}

static wl_status slot_starts_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  wl_u64 from, to;
  wl_u32 next = b->offsets[area];
  area_places(b, area, &from, &to);
  for (wl_u64 i = from; i < to; i++) {
    if (!b->l->counts[i]) continue;
    b->l->slots[i] = next;
    next += b->l->counts[i];
  }
  return WL_OK;
}

/* Places the rows of an area's pairs. While they are placed, the start of a slot advances. */
static wl_status slot_rows_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  const wl_build_area *a = &b->areas[area];
  if (wl_stop_now(&b->stop, worker)) return WL_OK;
  for (wl_i64 i = a->first; i < a->first + a->n; i++)
    b->l->rows[b->l->slots[b->places[i]]++] = b->rows[i];
  return WL_OK;
}

static wl_status slot_back_task(void *arg, int worker, long area, wl_error *err) {
  wl_build *b = arg;
  wl_u64 from, to;
  area_places(b, area, &from, &to);
  for (wl_u64 i = from; i < to; i++) b->l->slots[i] -= b->l->counts[i]; /* 0 in empty slots */
  return WL_OK;
}

/* Gives every slot its rows. */
static wl_status hash_rows(wl_build *b, wl_error *err) {
  wl_lookup *l = b->l;
  wl_u32 before = 0;
  wl_status rc = wl_build_spend(b, b->n * 4, err);
  if (rc) return rc;
  l->rows = wl_mem_alloc(((size_t)b->n + 1) * sizeof *l->rows);
  b->offsets = wl_mem_alloc((size_t)b->n_areas * sizeof *b->offsets);
  if (!l->rows || !b->offsets) return wl_nomem(err);
  rc = run_tasks(b, b->n_areas, slot_counts_task, err);
  for (int a = 0; a < b->n_areas && !rc; a++) {
    wl_u32 n = b->offsets[a];
    b->offsets[a] = before;
    before += n;
  }
  if (!rc) rc = run_tasks(b, b->n_areas, slot_starts_task, err);
  if (!rc) rc = run_tasks(b, b->n_areas, slot_rows_task, err);
  return rc ? rc : run_tasks(b, b->n_areas, slot_back_task, err);
}

wl_status wl_build_hash(wl_build *b, wl_error *err) {
  wl_lookup *l = b->l;
  size_t n_slots = 16;
  if (b->n > (wl_i64)1 << 30)
    return wl_not_taken(err, "a join has more rows than a hash table can hold");
  while (n_slots < (size_t)b->n * (b->n < SPARSE ? 4 : 2)) n_slots *= 2;
  l->mask = n_slots - 1;
  wl_status rc = wl_build_spend(b, (wl_i64)n_slots * 16 + b->n * 4, err);
  if (!rc) rc = make_areas(b, n_slots, HASH_SHIFT, err);
  if (rc) return rc;
  l->words = wl_mem_alloc(n_slots * sizeof *l->words);
  l->slots = wl_mem_alloc(n_slots * sizeof *l->slots);
  l->counts = wl_mem_alloc(n_slots * sizeof *l->counts);
  b->places = wl_mem_alloc(((size_t)b->n + 1) * sizeof *b->places);
  if (!l->words || !l->slots || !l->counts || !b->places) return wl_nomem(err);
  if (!wl_build_fits(b, b->n * 12)) make_one_area(b);
  rc = deal(b, err);
  if (!rc) rc = run_tasks(b, b->n_areas, hash_task, err);
  if (rc) return rc;
  place_rest(b);
  l->unique = !b->has_duplicates;
  if (!l->unique) return hash_rows(b, err);
  wl_mem_free(l->counts);
  l->counts = NULL;
  return WL_OK;
}

void wl_build_close_tables(wl_build *b) {
  for (int a = 0; a < b->n_areas && b->areas; a++) wl_mem_free(b->areas[a].rest);
  wl_mem_free(b->areas);
  wl_mem_free(b->offsets);
  wl_mem_free(b->words);
  wl_mem_free(b->rows);
  wl_mem_free(b->places);
}
