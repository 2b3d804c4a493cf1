/*
** The dictionaries of a tablet table: one per column, stored in parts. A part is written once and
** does not change. The code of a text is its number, counted over all parts. New texts are written
** as a new part.
**
** Invariants:
** 1. A part's number in t_dict is column << 20 | part; parts are numbered from 0 without gaps.
** 2. No text is in a dictionary twice. None is longer than a part can hold.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include <assert.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
  PART_BITS = 20,
  MOST_CODES = 1 << 18,      /* the most codes of a dictionary in memory */
  MOST_HEAP = 64 << 20,      /* the most bytes of texts that are written */
  MOST_HEAP_READ = 256 << 20 /* the most bytes of texts that are read */
};

static wl_u64 new_id(void) {
  return wl_column_new_id();
}

void wl_dict_box_drop(wl_dict_box *b) {
  assert(!b || b->refs > 0);
  if (!b || --b->refs) return;
  wl_mem_free(b->d.places);
  wl_mem_free(b->d.heap);
  wl_mem_free(b->sums);
  wl_mem_free(b->slots);
  wl_mem_free(b);
}

static wl_u64 text_hash(const wl_u8 *p, wl_u32 n) {
  return XXH3_64bits(p, n);
}

static bool text_is(const wl_file_dict *d, wl_u32 code, const wl_u8 *p, wl_u32 n) {
  wl_u64 at = d->places[code];
  return (wl_u32)(at >> 32) == n && (n == 0 || memcmp(d->heap + (wl_u32)at, p, n) == 0);
}

/* The slot that has the code of a text, or the free slot for it. */
static wl_u32 *find_slot(wl_dict_box *b, const wl_u8 *p, wl_u32 n) {
  wl_u32 at = (wl_u32)text_hash(p, n) & (b->n_slots - 1);
  while (b->slots[at] && !text_is(&b->d, b->slots[at] - 1, p, n)) at = (at + 1) & (b->n_slots - 1);
  return &b->slots[at];
}

/* Makes the hash table large enough for n_texts. */
static wl_status hash_texts(wl_dict_box *b, wl_i64 n_texts) {
  if (b->slots && b->n_slots >= 2 * (wl_u64)n_texts) return WL_OK;
  wl_u32 n = 1024;
  while (n < 4 * (wl_u64)n_texts) n *= 2;
  wl_u32 *slots = wl_mem_zalloc(n * sizeof *slots);
  if (!slots) return WL_NOMEM;
  wl_mem_free(b->slots);
  b->slots = slots;
  b->n_slots = n;
  for (wl_i32 i = 0; i < b->d.n; i++) {
    wl_u64 p = b->d.places[i];
    wl_u32 *slot = find_slot(b, b->d.heap + (wl_u32)p, (wl_u32)(p >> 32));
    if (!*slot) *slot = (wl_u32)i + 1;
  }
  return WL_OK;
}

static wl_status grow(void **p, size_t *size, size_t n_old, size_t n_new, size_t unit) {
  if (n_new <= *size) return WL_OK;
  size_t more = *size ? *size * 2 : 256;
  while (more < n_new) more *= 2;
  void *q = wl_mem_realloc(*p, n_old * unit, more * unit);
  if (!q) return WL_NOMEM;
  *p = q;
  *size = more;
  return WL_OK;
}

/* Appends the texts of a part. */
static wl_status add_part(wl_dict_box *b, const wl_u64 *places, const wl_u8 *heap, size_t n_heap,
                          wl_i32 n, wl_u64 sum) {
  wl_file_dict *d = &b->d;
  void *pl = d->places, *he = d->heap;
  wl_status rc = grow(&pl, &b->size_places, (size_t)d->n, (size_t)d->n + (size_t)n, sizeof(wl_u64));
  d->places = pl;
  if (!rc) rc = grow(&he, &b->size_heap, d->n_heap, d->n_heap + n_heap, 1);
  d->heap = he;
  wl_u64 *sums = rc ? NULL
                    : wl_mem_realloc(b->sums, (size_t)b->n_parts * sizeof *sums,
                                     ((size_t)b->n_parts + 1) * sizeof *sums);
  if (!sums) return WL_NOMEM;
  b->sums = sums;
  sums[b->n_parts++] = sum;
  if (n_heap) memcpy(d->heap + d->n_heap, heap, n_heap);
  for (wl_i32 i = 0; i < n; i++) {
    wl_u64 p = places[i] + d->n_heap; /* the offset is in the lower half */
    wl_i32 at = d->n++;
    d->places[at] = p;
    if (at && d->sorted) {
      wl_u64 q = d->places[at - 1];
      d->sorted = wl_cmp_bytes(d->heap + (wl_u32)q, (wl_u32)(q >> 32), d->heap + (wl_u32)p,
                               (wl_u32)(p >> 32)) < 0;
    }
  }
  d->n_heap += n_heap;
  d->id = new_id();
  return WL_OK;
}

static wl_status read_dict(wl_tablets *t, int col, wl_dict_box *b, wl_error *err) {
  sqlite3_stmt *s;
  int st = SQLITE_DONE;
  b->d.sorted = true;
  b->d.id = b->d.first_id = new_id();
  wl_status rc = wl_tablets_stmt(t, WL_SH_DICT_GET, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, (wl_i64)col << PART_BITS);
  sqlite3_bind_int64(s, 2, ((wl_i64)col << PART_BITS) + (1 << PART_BITS) - 1);
  while (!rc && (st = wl_tablets_step(t, s)) == SQLITE_ROW) {
    wl_u64 *places = NULL, sum = 0;
    wl_u8 *heap = NULL;
    size_t n_heap = 0;
    wl_i32 n = 0;
    wl_error why = {0};
    rc = wl_codec_read_texts(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1), &places,
                             &heap, &n_heap, &n, &sum, &why);
    if (rc == WL_NOMEM)
      rc = wl_nomem(err);
    else if (rc)
      rc = wl_tablets_corrupt(t, col, -1, err, "its dictionary: %.150s", why.text);
    else if (sum != (wl_u64)sqlite3_column_int64(s, 0) || (wl_i64)b->d.n + n > MOST_CODES ||
             b->d.n_heap + n_heap > MOST_HEAP_READ)
      rc = wl_tablets_corrupt(t, col, -1, err, "its dictionary is inconsistent");
    else if (add_part(b, places, heap, n_heap, n, sum))
      rc = wl_nomem(err);
    wl_mem_free(places);
    wl_mem_free(heap);
  }
  if (!rc && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
  sqlite3_reset(s);
  return rc;
}

wl_status wl_tablets_dict_box(wl_tablets *t, int col, wl_dict_box **out, wl_error *err) {
  wl_dict_box **at = &t->dicts[col];
  *out = *at;
  if (*at) return WL_OK;
  wl_dict_box *b = wl_mem_zalloc(sizeof *b);
  if (!b) return wl_nomem(err);
  b->refs = 1;
  wl_status rc = read_dict(t, col, b, err);
  if (rc) {
    wl_dict_box_drop(b);
    return rc;
  }
  *out = *at = b;
  return WL_OK;
}

wl_status wl_tablets_dict(wl_tablets *t, int col, const wl_file_dict **out, wl_error *err) {
  wl_dict_box *b;
  *out = NULL;
  wl_status rc = wl_tablets_dict_box(t, col, &b, err);
  if (!rc && b->d.n) *out = &b->d;
  return rc;
}

wl_status wl_tablets_recheck_dicts(wl_tablets *t, wl_error *err) {
  sqlite3_stmt *s;
  int st = SQLITE_DONE;
  int *seen = wl_mem_zalloc(((size_t)t->n_cols + 1) * sizeof *seen);
  if (!seen) return wl_nomem(err);
  wl_status rc = wl_tablets_stmt(t, WL_SH_DICT_LIST, &s, err);
  while (!rc && (st = wl_tablets_step(t, s)) == SQLITE_ROW) {
    wl_i64 id = sqlite3_column_int64(s, 0);
    wl_i64 col = id >> PART_BITS;
    if (col < 0 || col >= t->n_cols) {
      rc = wl_tablets_corrupt(t, -1, -1, err, "it has a dictionary that belongs to no column");
      break;
    }
    const wl_dict_box *b = t->dicts[col];
    int part = seen[col]++ & ((1 << PART_BITS) - 1);
    if ((id & ((1 << PART_BITS) - 1)) != part)
      rc = wl_tablets_corrupt(t, (int)col, -1, err, "a part of its dictionary is missing");
    else if (b && (part >= b->n_parts || b->sums[part] != (wl_u64)sqlite3_column_int64(s, 1)))
      seen[col] = part + 1 + (1 << PART_BITS); /* marks the dictionary in memory as different */
  }
  if (!rc && st != SQLITE_DONE) rc = wl_tablets_error(t, st, err);
  if (s) sqlite3_reset(s);
  for (int i = 0; i < t->n_cols && !rc; i++) {
    if (t->dicts[i] && seen[i] != t->dicts[i]->n_parts) {
      wl_dict_box_drop(t->dicts[i]);
      t->dicts[i] = NULL;
    }
  }
  wl_mem_free(seen);
  return rc;
}

/* Writes texts as the next part, and adds them to the dictionary in memory. */
static wl_status write_part(wl_tablets *t, int col, wl_dict_box *b, const wl_u64 *places,
                            const wl_u8 *heap, size_t n_heap, wl_i32 n, wl_error *err) {
  sqlite3_stmt *s;
  wl_u8 *blob = NULL;
  size_t n_blob;
  wl_u64 sum;
  assert(b->n_parts < 1 << PART_BITS);
  wl_status rc = wl_codec_write_texts(places, heap, n, &blob, &n_blob, &sum, err);
  if (!rc) rc = wl_tablets_stmt(t, WL_SH_DICT_PUT, &s, err);
  if (!rc) {
    sqlite3_bind_int64(s, 1, (wl_i64)col << PART_BITS | b->n_parts);
    sqlite3_bind_int64(s, 2, (wl_i64)sum);
    int st = sqlite3_bind_blob64(s, 3, blob, n_blob, SQLITE_STATIC);
    rc = st ? wl_tablets_error(t, st, err) : wl_tablets_run(t, s, err);
    sqlite3_clear_bindings(s);
  }
  wl_mem_free(blob);
  if (!rc && add_part(b, places, heap, n_heap, n, sum)) {
    t->stale = true;
    rc = wl_nomem(err);
  }
  return rc;
}

wl_status wl_tablets_encode(wl_tablets *t, int col, const wl_u64 *places, const wl_u8 *heap,
                            wl_i32 n, wl_u32 *codes, bool *fits, wl_error *err) {
  wl_dict_box *b;
  *fits = false;
  wl_status rc = wl_tablets_dict_box(t, col, &b, err);
  if (rc) return rc;
  if (hash_texts(b, (wl_i64)b->d.n + n)) return wl_nomem(err);
  wl_u64 *new_places = wl_mem_alloc((size_t)n * sizeof *new_places);
  wl_i32 n_new = 0, first = b->d.n;
  size_t n_heap = 0;
  if (!new_places) return wl_nomem(err);
  for (wl_i32 i = 0; i < n; i++) {
    wl_u32 len = (wl_u32)(places[i] >> 32);
    wl_u32 code = *find_slot(b, heap + (wl_u32)places[i], len);
    if (code) {
      codes[i] = code - 1;
    } else {
      codes[i] = (wl_u32)(first + n_new);
      new_places[n_new++] = places[i];
      n_heap += len;
    }
  }
  *fits = (wl_i64)first + n_new <= MOST_CODES && b->d.n_heap + n_heap <= MOST_HEAP &&
          n_heap <= wl_tablet_max_bytes(t) && b->n_parts < (1 << PART_BITS) - 1;
  wl_u8 *new_heap = *fits && n_new ? wl_mem_alloc(n_heap + 1) : NULL;
  if (*fits && n_new && !new_heap) rc = wl_nomem(err);
  if (new_heap) {
    n_heap = 0;
    for (wl_i32 i = 0; i < n_new; i++) {
      wl_u32 len = (wl_u32)(new_places[i] >> 32);
      if (len) memcpy(new_heap + n_heap, heap + (wl_u32)new_places[i], len);
      new_places[i] = (wl_u64)n_heap | (wl_u64)len << 32;
      n_heap += len;
    }
    rc = write_part(t, col, b, new_places, new_heap, n_heap, n_new, err);
    for (wl_i32 i = first; i < b->d.n && !rc; i++) {
      wl_u64 p = b->d.places[i];
      *find_slot(b, b->d.heap + (wl_u32)p, (wl_u32)(p >> 32)) = (wl_u32)i + 1;
    }
  }
  wl_mem_free(new_heap);
  wl_mem_free(new_places);
  return rc;
}

wl_status wl_tablets_dict_clear(wl_tablets *t, int col, wl_error *err) {
  sqlite3_stmt *s;
  wl_status rc = wl_tablets_stmt(t, WL_SH_DICT_CLEAR, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, (wl_i64)col << PART_BITS);
  sqlite3_bind_int64(s, 2, ((wl_i64)col << PART_BITS) + (1 << PART_BITS) - 1);
  rc = wl_tablets_run(t, s, err);
  wl_dict_box_drop(t->dicts[col]);
  t->dicts[col] = NULL;
  return rc;
}
