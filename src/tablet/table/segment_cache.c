/*
** Reads single segments for cursors and single rows. Decoded segments stay in a small cache, which
** finds them by column and checksum (of segment and patch). Queries over whole columns do not use
** it (image.c).
**
** Invariants:
** 1. The cache has one reference to each of its segments, and so has each reader.
** 2. A coded segment has a reference to the dictionary it was read with. After a rollback or a sort
**    the column may have another dictionary. Then the cached segment is not used, although checksum
**    and size are the same.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include <assert.h>
#include <string.h>

wl_status wl_tablets_blob(wl_tablets *t, int i, int col, const wl_u8 **blob, size_t *n,
                          wl_error *err) {
  const wl_tablet *a = &t->tablets[i];
  sqlite3_stmt *s;
  if (col == t->decl->rowid_col) col = t->n_cols; /* stored only once */
  wl_tablets_done_blob(t);
  wl_status rc = wl_tablets_stmt(t, WL_SH_SEGMENT_GET, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, a->id << 12 | col);
  int st = wl_tablets_step(t, s);
  t->reading = true;
  if (st == SQLITE_DONE) return wl_tablets_corrupt(t, col, a->id, err, "its segment is missing");
  if (st != SQLITE_ROW) return wl_tablets_error(t, st, err);
  *blob = sqlite3_column_blob(s, 0);
  *n = (size_t)sqlite3_column_bytes(s, 0);
  if (!*blob && *n) return wl_nomem(err);
  wl_zone z;
  wl_i32 n_rows = 0;
  wl_error why = {0};
  rc = wl_codec_zone(*blob, *n, &z, &n_rows, &why);
  if (rc) return wl_tablets_corrupt(t, col, a->id, err, "%.150s", why.text);
  if (z.sum != a->zones[col].sum || *n != a->zones[col].n_bytes || n_rows != a->n_rows ||
      z.coded != a->zones[col].coded)
    return wl_tablets_corrupt(t, col, a->id, err, "its segment is not the one in the directory");
  return WL_OK;
}

void wl_tablets_done_blob(wl_tablets *t) {
  if (t->reading) sqlite3_reset(t->stmts[WL_SH_SEGMENT_GET]);
  t->reading = false;
}

static wl_cached_segment **hash_slot(wl_tablets *t, wl_u64 sum, int col) {
  return &t->segment_cache[(sum ^ (wl_u64)col * 0x9e3779b97f4a7c15u) % WL_CACHE_SLOTS];
}

static void remove_from_list(wl_tablets *t, wl_cached_segment *h) {
  *(h->newer ? &h->newer->older : &t->newest) = h->older;
  *(h->older ? &h->older->newer : &t->oldest) = h->newer;
}

static void add_as_newest(wl_tablets *t, wl_cached_segment *h) {
  h->newer = NULL;
  h->older = t->newest;
  *(t->newest ? &t->newest->newer : &t->oldest) = h;
  t->newest = h;
}

void wl_cached_drop(wl_cached_segment *h) {
  assert(!h || h->refs > 0);
  if (!h || --h->refs) return;
  wl_segment_free(&h->s);
  wl_dict_box_drop(h->dict);
  wl_mem_free(h);
}

/* Removes a segment from the cache. */
static void remove_from_cache(wl_tablets *t, wl_cached_segment *h) {
  wl_cached_segment **at = hash_slot(t, h->sum, h->col);
  while (*at != h) at = &(*at)->next;
  *at = h->next;
  remove_from_list(t, h);
  t->cached_bytes -= h->n_bytes;
  wl_cached_drop(h);
}

void wl_cached_clear(wl_tablets *t) {
  while (t->newest) remove_from_cache(t, t->newest);
}

/* Replaces the rows that a patch changes. */
static wl_status apply_patch(const wl_patch *p, wl_i64 n_codes, wl_segment *s, wl_error *err) {
  wl_segment by = {0};
  wl_status rc = wl_patch_decode(p, n_codes, &by, err);
  if (!rc) rc = wl_segment_overlay(s, &by, p->slots);
  wl_segment_free(&by);
  if (rc == WL_TOOBIG) return wl_fail(err, WL_CORRUPT, "its texts take more than 4 GiB");
  return rc;
}

/* Decodes a segment, with the dictionary it needs. */
static wl_status decode_segment(wl_tablets *t, int i, int col, wl_cached_segment *h,
                                wl_error *err) {
  const wl_tablet *a = &t->tablets[i];
  const wl_u8 *blob;
  size_t n;
  wl_error why = {0};
  wl_i64 n_codes = 0;
  if (a->zones[col].coded) {
    if (col == t->n_cols) return wl_tablets_corrupt(t, col, a->id, err, "rowids are not texts");
    wl_status rc = wl_tablets_dict_box(t, col, &h->dict, err);
    if (rc) return rc;
    h->dict->refs++;
    n_codes = h->dict->d.n;
  }
  wl_status rc = wl_tablets_blob(t, i, col, &blob, &n, err);
  if (!rc) {
    const wl_patch *p = wl_tablet_patch(a, col);
    rc = wl_codec_read(blob, n, n_codes, &h->s, &h->coded, &why);
    if (!rc && p) rc = apply_patch(p, n_codes, &h->s, &why);
    if (rc == WL_NOMEM)
      rc = wl_nomem(err);
    else if (rc)
      rc = wl_tablets_corrupt(t, col, a->id, err, "%.150s", why.text);
  }
  wl_tablets_done_blob(t);
  return rc;
}

wl_status wl_tablets_segment(wl_tablets *t, int i, int col, wl_cached_segment **out,
                             wl_error *err) {
  if (col == t->decl->rowid_col) col = t->n_cols;
  wl_u64 sum = wl_tablet_content(&t->tablets[i], col);
  wl_cached_segment **at = hash_slot(t, sum, col), *h = *at;
  *out = NULL;
  while (h && (h->sum != sum || h->col != col || h->s.n_rows != t->tablets[i].n_rows)) h = h->next;
  if (h && h->coded && h->dict != t->dicts[col]) {
    remove_from_cache(t, h);
    h = NULL;
  }
  if (h) {
    remove_from_list(t, h);
    add_as_newest(t, h);
    h->refs++;
    *out = h;
    return WL_OK;
  }
  h = wl_mem_zalloc(sizeof *h);
  if (!h) return wl_nomem(err);
  h->refs = 1;
  h->col = col;
  h->sum = sum;
  wl_status rc = decode_segment(t, i, col, h, err);
  if (rc) {
    wl_cached_drop(h);
    return rc;
  }
  h->n_bytes = sizeof *h + wl_segment_bytes(&h->s);
  while (t->oldest && t->cached_bytes + h->n_bytes > WL_CACHE_BYTES)
    remove_from_cache(t, t->oldest);
  at = hash_slot(t, sum, col);
  h->next = *at;
  *at = h;
  add_as_newest(t, h);
  t->cached_bytes += h->n_bytes;
  h->refs++;
  *out = h;
  return WL_OK;
}

wl_val wl_cached_value(const wl_cached_segment *h, wl_i32 row) {
  assert(row >= 0 && row < h->s.n_rows);
  wl_val v = wl_segment_value(&h->s, row);
  if (!h->coded || v.t == WL_T_NULL) return v;
  const wl_file_dict *d = &h->dict->d;
  wl_u64 p = d->places[v.v];
  return wl_text(d->heap + (wl_u32)p, (wl_u32)(p >> 32));
}

const wl_segment *wl_cached_segment_of(const wl_cached_segment *h, bool *coded) {
  *coded = h->coded;
  return &h->s;
}

wl_status wl_tablets_slot(wl_tablets *t, int i, wl_i64 rowid, wl_i32 *slot, wl_error *err) {
  wl_cached_segment *h;
  const wl_tablet *a = &t->tablets[i];
  *slot = -1;
  if (rowid < a->lo || rowid > a->hi) return WL_OK;
  if ((wl_u64)a->hi - (wl_u64)a->lo == (wl_u64)a->n_rows - 1) { /* no gaps */
    *slot = (wl_i32)(rowid - a->lo);
    return WL_OK;
  }
  wl_status rc = wl_tablets_segment(t, i, t->n_cols, &h, err);
  if (rc) return rc;
  wl_i32 lo = 0, hi = a->n_rows;
  while (lo < hi) {
    wl_i32 mid = lo + (hi - lo) / 2;
    if ((wl_i64)wl_segment_value(&h->s, mid).v < rowid)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo < a->n_rows && (wl_i64)wl_segment_value(&h->s, lo).v == rowid) *slot = lo;
  wl_cached_drop(h);
  return WL_OK;
}
