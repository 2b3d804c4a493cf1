/*
** Makes dictionaries; see dict.h. While tablets are loaded in parallel, each collects its own
** distinct texts. Then the lists of all tablets are merged and sorted once, and the codes are
** rewritten.
*/
#include "column/dict.h"
#include "base/arena.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "value/hash.h"
#include <stdlib.h>
#include <string.h>

enum {
  LOCAL_MOST = 16384, /* entries of a tablet: codes fit 2 bytes, and the hash table fits a cache */
  LOCAL_SLOTS = 4 * LOCAL_MOST,
  LOOK_AT = 2048, /* after this many rows, gives up if most of them were new */
  ALL_MOST = 1 << 18
};

wl_dict *wl_dict_hold(wl_dict *d) {
  atomic_fetch_add(&d->more, 1);
  return d;
}

void wl_dict_free(wl_dict *d) {
  if (!d || atomic_fetch_sub(&d->more, 1) > 0) return;
  wl_mem_free(d->places);
  wl_mem_free(d->heap);
  wl_mem_free(d);
}

static bool same_text(wl_u64 place, const wl_u8 *heap, wl_u64 other, const wl_u8 *other_heap) {
  wl_u32 n = (wl_u32)(place >> 32);
  return n == (wl_u32)(other >> 32) &&
         (n == 0 || memcmp(heap + (wl_u32)place, other_heap + (wl_u32)other, n) == 0);
}

/* ---- one tablet */

wl_status wl_dict_segment(const wl_stage *st, wl_segment *s, bool *done) {
  *done = false;
  wl_i32 n_texts = st->n - s->n_nulls;
  if (n_texts == 0) return WL_OK;
  /* If there are few rows, all may be different. wl_dict_join decides for the whole column. */
  wl_i32 most = n_texts < LOOK_AT ? n_texts : n_texts / 2 < LOCAL_MOST ? n_texts / 2 : LOCAL_MOST;
  wl_u16 *slots = wl_mem_zalloc(LOCAL_SLOTS * sizeof *slots);
  wl_u64 *entries = wl_mem_alloc((size_t)most * sizeof *entries);
  wl_i16 *codes = wl_mem_alloc((size_t)st->n * sizeof *codes);
  wl_u8 *heap = NULL;
  wl_i32 n = 0;
  bool fits = slots && entries && codes;
  wl_status rc = fits ? WL_OK : WL_NOMEM;
  wl_u64 last = 0;
  wl_i16 last_code = -1;
  for (wl_i32 i = 0, seen = 0; i < st->n && fits; i++) {
    codes[i] = 0;
    if (st->t[i] != WL_T_TEXT) continue;
    wl_u64 p = st->v[i];
    seen++;
    if (last_code >= 0 && same_text(p, st->heap, last, st->heap)) {
      codes[i] = last_code;
      continue;
    }
    wl_u32 len = (wl_u32)(p >> 32);
    wl_u64 at = XXH3_64bits(st->heap + (wl_u32)p, len) & (LOCAL_SLOTS - 1);
    while (slots[at] && !same_text(p, st->heap, entries[slots[at] - 1], st->heap))
      at = (at + 1) & (LOCAL_SLOTS - 1);
    if (!slots[at]) {
      fits = n < most && !(seen == LOOK_AT && n > LOOK_AT / 4 * 3);
      if (!fits) break;
      entries[n] = p;
      slots[at] = (wl_u16)++n;
    }
    last = p;
    codes[i] = last_code = (wl_i16)(slots[at] - 1);
  }
  size_t n_heap = 0;
  for (wl_i32 k = 0; k < n && fits; k++) n_heap += entries[k] >> 32;
  if (fits && !(heap = wl_mem_alloc(n_heap))) {
    fits = false;
    rc = WL_NOMEM;
  }
  n_heap = 0;
  for (wl_i32 k = 0; k < n && fits; k++) {
    wl_u32 len = (wl_u32)(entries[k] >> 32);
    if (len) memcpy(heap + n_heap, st->heap + (wl_u32)entries[k], len);
    entries[k] = (wl_u64)n_heap | (wl_u64)len << 32;
    n_heap += len;
  }
  wl_mem_free(slots);
  if (!fits) {
    wl_mem_free(entries);
    wl_mem_free(codes);
    return rc;
  }
  s->phys = WL_P_I16;
  s->data = codes;
  s->heap = heap;
  s->n_heap = n_heap;
  s->entries = entries;
  s->n_entries = n;
  *done = true;
  return WL_OK;
}

/* ---- sorted, distinct words */

typedef struct word {
  wl_u64 prefix; /* the first eight bytes, most significant first */
  const wl_u8 *p;
  wl_u32 n, id;
} word;

static word make_word(const wl_u8 *p, wl_u32 n, wl_u32 id) {
  word w = {0, p, n, id};
  for (wl_u32 i = 0; i < 8; i++) w.prefix = w.prefix << 8 | (i < n ? p[i] : 0);
  return w;
}

static int by_bytes(const void *x, const void *y) {
  const word *a = x, *b = y;
  if (a->prefix != b->prefix) return a->prefix < b->prefix ? -1 : 1;
  return wl_cmp_bytes(a->p, a->n, b->p, b->n);
}

/* ---- all tablets */

typedef struct dict_merge {
  wl_segment *segments;
  wl_u32 **maps; /* [segments]: maps the segment's codes to numbers of words */
  wl_u32 *ranks; /* [words]: the final code of each word */
  wl_u8 phys;
} dict_merge;

static void free_entries(wl_segment *s) {
  wl_mem_free(s->entries);
  s->entries = NULL;
  s->n_entries = 0;
}

/* Replaces the segment's own codes by codes of the dictionary, in the width that these need. */
static wl_status recode_task(void *arg, int worker, long i, wl_error *err) {
  dict_merge *j = arg;
  wl_segment *s = &j->segments[i];
  (void)worker;
  size_t n = (size_t)s->n_rows;
  const wl_i16 *from = s->data;
  void *to = wl_mem_zalloc(n * (size_t)wl_phys_width(j->phys));
  if (!to) return wl_nomem(err);
  wl_u32 least = 0xffffffffu, most = 0;
  for (size_t r = 0; r < n && s->entries; r++) {
    bool null = s->valid && !(s->valid[r >> 3] >> (r & 7) & 1);
    wl_u32 code = null ? 0 : j->ranks[j->maps[i][from[r]]];
    if (!null && code < least) least = code;
    if (!null && code > most) most = code;
    if (j->phys == WL_P_I8)
      ((wl_i8 *)to)[r] = (wl_i8)code;
    else if (j->phys == WL_P_I16)
      ((wl_i16 *)to)[r] = (wl_i16)code;
    else
      ((wl_i32 *)to)[r] = (wl_i32)code;
  }
  wl_mem_free(s->data);
  wl_mem_free(s->heap);
  s->heap = NULL;
  s->n_heap = 0;
  free_entries(s);
  s->data = to;
  s->phys = j->phys;
  if (least <= most) { /* the zone map has the range of the codes, but the types of the texts */
    s->domain.lo = least;
    s->domain.hi = most;
  }
  return WL_OK;
}

/* Keeps the heap of distinct texts; rows with the same text share a place in it. */
wl_status wl_dict_uncode(wl_segment *s) {
  if (!s->entries) return WL_OK;
  wl_u64 *to = wl_mem_zalloc((size_t)s->n_rows * sizeof *to);
  if (!to) return WL_NOMEM;
  const wl_i16 *from = s->data;
  for (wl_i32 r = 0; r < s->n_rows; r++)
    if (!s->valid || (s->valid[r >> 3] >> (r & 7) & 1)) to[r] = s->entries[from[r]];
  wl_mem_free(s->data);
  s->data = to;
  s->phys = WL_P_TEXT;
  free_entries(s);
  return WL_OK;
}

static wl_status uncode_task(void *arg, int worker, long i, wl_error *err) {
  dict_merge *j = arg;
  (void)worker;
  return wl_dict_uncode(&j->segments[i]) ? wl_nomem(err) : WL_OK;
}

/* Numbers the distinct words of all segments. False: there are too many, or no memory (*rc). */
static bool number_words(dict_merge *j, int n, wl_i64 most, word **words, wl_u32 *n_words,
                         wl_status *rc) {
  wl_u64 n_slots = 1024;
  wl_u32 *slots = wl_mem_zalloc(n_slots * sizeof *slots), size = 0;
  wl_u64 *hashes = NULL;
  *rc = slots ? WL_OK : WL_NOMEM;
  for (int i = 0; i < n && !*rc; i++) {
    const wl_segment *s = &j->segments[i];
    if (!s->entries) continue;
    wl_u32 *map = j->maps[i] = wl_mem_alloc((size_t)s->n_entries * sizeof *map);
    if (!map) *rc = WL_NOMEM;
    for (wl_i32 k = 0; k < s->n_entries && !*rc; k++) {
      const wl_u8 *p = s->heap + (wl_u32)s->entries[k];
      wl_u32 len = (wl_u32)(s->entries[k] >> 32);
      wl_u64 h = XXH3_64bits(p, len), at = h & (n_slots - 1);
      for (; slots[at]; at = (at + 1) & (n_slots - 1)) {
        const word *w = &(*words)[slots[at] - 1];
        if (hashes[slots[at] - 1] == h && w->n == len && memcmp(w->p, p, len) == 0) break;
      }
      if (slots[at]) {
        map[k] = slots[at] - 1;
        continue;
      }
      if (*n_words == (wl_u32)most) goto done;
      if (*n_words == size) {
        wl_u32 more = size ? size * 2 : 512;
        word *w = wl_mem_realloc(*words, size * sizeof *w, more * sizeof *w);
        if (w) *words = w;
        wl_u64 *hs = wl_mem_realloc(hashes, size * sizeof *hs, more * sizeof *hs);
        if (hs) hashes = hs;
        if (!w || !hs) {
          *rc = WL_NOMEM;
          break;
        }
        size = more;
      }
      (*words)[*n_words] = make_word(p, len, *n_words);
      hashes[*n_words] = h;
      map[k] = *n_words;
      slots[at] = ++*n_words;
      if ((wl_u64)*n_words * 2 <= n_slots) continue;
      wl_mem_free(slots);
      n_slots *= 4;
      slots = wl_mem_zalloc(n_slots * sizeof *slots);
      if (!slots) *rc = WL_NOMEM;
      for (wl_u32 w = 0; w < *n_words && slots; w++) {
        wl_u64 to = hashes[w] & (n_slots - 1);
        while (slots[to]) to = (to + 1) & (n_slots - 1);
        slots[to] = w + 1;
      }
    }
  }
  wl_mem_free(slots);
  wl_mem_free(hashes);
  return *rc == WL_OK;
done:
  wl_mem_free(slots);
  wl_mem_free(hashes);
  return false;
}

/* Sorts the words and makes a dictionary of them. ranks[id] becomes the code of the word. */
static wl_dict *make_dict(word *words, wl_u32 n, wl_u32 *ranks) {
  wl_dict *d = wl_mem_zalloc(sizeof *d);
  size_t bytes = 0;
  qsort(words, n, sizeof *words, by_bytes);
  for (wl_u32 k = 0; k < n; k++) bytes += words[k].n;
  if (!d || bytes > 0xffffffffu) {
    wl_mem_free(d);
    return NULL;
  }
  d->places = wl_mem_alloc((size_t)n * sizeof *d->places);
  d->heap = wl_mem_alloc(bytes);
  if (!d->places || !d->heap) {
    wl_dict_free(d);
    return NULL;
  }
  for (wl_u32 k = 0; k < n; k++) {
    d->places[k] = (wl_u64)d->n_heap | (wl_u64)words[k].n << 32;
    if (words[k].n) memcpy(d->heap + d->n_heap, words[k].p, words[k].n);
    d->n_heap += words[k].n;
    ranks[words[k].id] = k;
  }
  d->n = (wl_i32)n;
  return d;
}

wl_status wl_dict_make(const wl_val *values, wl_i32 n, wl_u32 *codes, wl_dict **out) {
  word *words = wl_mem_alloc(((size_t)n + 1) * sizeof *words);
  *out = NULL;
  if (!words) return WL_NOMEM;
  for (wl_i32 i = 0; i < n; i++) words[i] = make_word(wl_bytes(values[i]), values[i].n, (wl_u32)i);
  *out = make_dict(words, (wl_u32)n, codes);
  wl_mem_free(words);
  return *out ? WL_OK : WL_NOMEM;
}

wl_status wl_dict_join(wl_segment *segments, int n, int n_threads, bool small, wl_dict **out) {
  dict_merge j = {.segments = segments};
  bool every = true, any = false;
  wl_i64 n_rows = 0;
  *out = NULL;
  for (int i = 0; i < n; i++) {
    every &= segments[i].entries || segments[i].n_nulls == segments[i].n_rows;
    any |= segments[i].entries != NULL;
    n_rows += segments[i].n_rows;
  }
  if (!any) return WL_OK;
  wl_status rc = WL_OK;
  word *words = NULL;
  wl_u32 n_words = 0;
  wl_dict *d = NULL;
  j.maps = every ? wl_mem_zalloc((size_t)n * sizeof *j.maps) : NULL;
  if (every && !j.maps) rc = WL_NOMEM;
  /* A small table always gets a dictionary, because joins copy its texts to many rows as codes. */
  wl_i64 most = small && n_rows < LOOK_AT ? n_rows : n_rows / 2 < ALL_MOST ? n_rows / 2 : ALL_MOST;
  if (!rc && every && number_words(&j, n, most, &words, &n_words, &rc)) {
    j.ranks = wl_mem_alloc((size_t)n_words * sizeof *j.ranks);
    if (j.ranks) d = make_dict(words, n_words, j.ranks);
  }
  if (!rc && d) {
    j.phys = n_words <= 128 ? WL_P_I8 : n_words <= 32768 ? WL_P_I16 : WL_P_I32;
  }
  wl_error ignored;
  wl_tasks tasks = {n_threads, n, d ? recode_task : uncode_task, &j, NULL};
  if (!rc) rc = wl_tasks_run(&tasks, NULL, &ignored);
  for (int i = 0; i < n && j.maps; i++) wl_mem_free(j.maps[i]);
  wl_mem_free(j.maps);
  wl_mem_free(j.ranks);
  wl_mem_free(words);
  if (rc) wl_dict_free(d);
  *out = rc ? NULL : d;
  return rc;
}

wl_status wl_dict_of(wl_arena *arena, const wl_val *values, wl_i64 n, wl_i32 *codes,
                     const wl_dict **out) {
  word *words = wl_mem_alloc((size_t)(n + 1) * sizeof *words);
  if (!words) return WL_NOMEM;
  wl_u32 m = 0;
  size_t bytes = 0;
  for (wl_i64 i = 0; i < n; i++) {
    codes[i] = -1;
    if (values[i].t != WL_T_TEXT) continue;
    words[m++] = make_word(wl_bytes(values[i]), values[i].n, (wl_u32)i);
    bytes += values[i].n;
  }
  qsort(words, m, sizeof *words, by_bytes);
  wl_dict *d = WL_NEW(arena, wl_dict);
  if (d) d->in_arena = true;
  wl_status rc = d && bytes <= 0xffffffffu ? WL_OK : WL_NOMEM;
  if (!rc) {
    d->places = WL_NEW_N(arena, wl_u64, m + 1);
    d->heap = wl_arena_alloc(arena, bytes + 1);
    if (!d->places || !d->heap) rc = WL_NOMEM;
  }
  for (wl_u32 k = 0; k < m && !rc; k++) {
    if (k == 0 || by_bytes(&words[k - 1], &words[k]) != 0) {
      d->places[d->n++] = (wl_u64)d->n_heap | (wl_u64)words[k].n << 32;
      if (words[k].n) memcpy(d->heap + d->n_heap, words[k].p, words[k].n);
      d->n_heap += words[k].n;
    }
    codes[words[k].id] = d->n - 1;
  }
  wl_mem_free(words);
  *out = d;
  return rc;
}

static int by_nocase(const void *x, const void *y) {
  const word *a = x, *b = y;
  return wl_cmp_text(a->p, a->n, b->p, b->n, WL_COLL_NOCASE);
}
static int by_rtrim(const void *x, const void *y) {
  const word *a = x, *b = y;
  return wl_cmp_text(a->p, a->n, b->p, b->n, WL_COLL_RTRIM);
}

wl_status wl_dict_ranks(const wl_dict *d, int coll, wl_i32 *ranks) {
  int (*compare)(const void *, const void *) = coll == WL_COLL_NOCASE  ? by_nocase
                                               : coll == WL_COLL_RTRIM ? by_rtrim
                                                                       : by_bytes;
  word *words = wl_mem_alloc((size_t)(d->n + 1) * sizeof *words);
  if (!words) return WL_NOMEM;
  for (wl_i32 i = 0; i < d->n; i++) {
    wl_val v = wl_dict_value(d, i);
    words[i] = make_word(wl_bytes(v), v.n, (wl_u32)i);
  }
  qsort(words, (size_t)d->n, sizeof *words, compare);
  for (wl_i32 i = 0, rank = 0; i < d->n; i++) {
    if (i > 0 && compare(&words[i - 1], &words[i]) != 0) rank = i;
    ranks[words[i].id] = rank;
  }
  wl_mem_free(words);
  return WL_OK;
}
