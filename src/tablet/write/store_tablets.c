/*
** Writes tablets to the shadow tables: prepares segments for the file, writes their blobs, and
** keeps the directory.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include <string.h>

enum { MOST_BYTES = 32 << 20 }; /* texts of a segment, not counting the last row's */

/* Turns codes of the segment's own dictionary into texts. */
static wl_status make_plain(wl_segment *s) {
  wl_u64 *data = wl_mem_alloc((size_t)s->n_rows * sizeof *data);
  if (!data) return WL_NOMEM;
  for (wl_i32 i = 0; i < s->n_rows; i++) {
    bool is_valid = !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
    data[i] = is_valid ? s->entries[((const wl_i16 *)s->data)[i]] : 0;
  }
  wl_mem_free(s->data);
  wl_mem_free(s->entries);
  s->data = data;
  s->entries = NULL;
  s->n_entries = 0;
  s->phys = WL_P_TEXT;
  return WL_OK;
}

wl_status wl_tablet_recode(wl_segment *s, const wl_u32 *codes) {
  wl_i64 lo = WL_I64_MAX, hi = WL_I64_MIN;
  wl_i32 *wide = wl_mem_alloc((size_t)s->n_rows * sizeof *wide);
  if (!wide) return WL_NOMEM;
  for (wl_i32 i = 0; i < s->n_rows; i++) {
    bool is_valid = !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
    wl_i64 at = s->phys == WL_P_I8    ? ((const wl_i8 *)s->data)[i]
                : s->phys == WL_P_I16 ? ((const wl_i16 *)s->data)[i]
                                      : ((const wl_i32 *)s->data)[i];
    wide[i] = is_valid ? (wl_i32)codes[at] : 0;
    if (!is_valid) continue;
    if (wide[i] < lo) lo = wide[i];
    if (wide[i] > hi) hi = wide[i];
  }
  s->domain.lo = lo;
  s->domain.hi = hi;
  wl_mem_free(s->data);
  s->data = wide;
  s->phys = hi <= 127 ? WL_P_I8 : hi <= 32767 ? WL_P_I16 : WL_P_I32;
  /* narrows in place: each value moves to a lower address or stays */
  for (wl_i32 i = 0; i < s->n_rows && s->phys != WL_P_I32; i++) {
    if (s->phys == WL_P_I8)
      ((wl_i8 *)s->data)[i] = (wl_i8)wide[i];
    else
      ((wl_i16 *)s->data)[i] = (wl_i16)wide[i];
  }
  return WL_OK;
}

wl_status wl_tablet_encode(wl_tablets *t, int col, wl_segment *s, bool *coded, wl_error *err) {
  *coded = false;
  if (!s->entries) return WL_OK;
  wl_u32 *codes = wl_mem_alloc(((size_t)s->n_entries + 1) * sizeof *codes);
  if (!codes) return wl_nomem(err);
  wl_status rc = wl_tablets_encode(t, col, s->entries, s->heap, s->n_entries, codes, coded, err);
  if (!rc && !*coded && make_plain(s)) rc = wl_nomem(err);
  if (!rc && *coded) {
    if (wl_tablet_recode(s, codes)) rc = wl_nomem(err);
    wl_mem_free(s->entries);
    wl_mem_free(s->heap);
    s->entries = NULL;
    s->heap = NULL;
    s->n_entries = 0;
    s->n_heap = 0;
  }
  wl_mem_free(codes);
  return rc;
}

wl_status wl_tablet_write_blob(wl_tablets *t, wl_i64 id, int col, const wl_u8 *blob,
                               const wl_zone *z, wl_error *err) {
  sqlite3_stmt *s;
  wl_status rc = wl_tablets_stmt(t, WL_SH_SEGMENT_PUT, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, id << 12 | col);
  int st = sqlite3_bind_blob64(s, 2, blob, z->n_bytes, SQLITE_STATIC);
  rc = st ? wl_tablets_error(t, st, err) : wl_tablets_run(t, s, err);
  sqlite3_clear_bindings(s);
  return rc;
}

static wl_status write_stage(wl_tablets *t, wl_i64 id, int col, const wl_stage *st, wl_zone *zone,
                             wl_error *err) {
  wl_segment s;
  wl_u8 *blob = NULL;
  bool coded;
  if (wl_segment_make(st, &s)) return wl_nomem(err);
  wl_status rc = wl_tablet_encode(t, col, &s, &coded, err);
  if (!rc) rc = wl_codec_write(&s, coded, &blob, zone, err);
  if (!rc) rc = wl_tablet_write_blob(t, id, col, blob, zone, err);
  wl_mem_free(blob);
  wl_segment_free(&s);
  return rc;
}

size_t wl_tablet_max_bytes(const wl_tablets *t) {
  size_t most = (size_t)sqlite3_limit(t->db, SQLITE_LIMIT_LENGTH, -1) / 16;
  return most < MOST_BYTES ? most : MOST_BYTES;
}

bool wl_tablet_is_full(const wl_stage *stages, int n, size_t cap) {
  for (int k = 0; k < n; k++)
    if (stages[k].n_heap >= cap) return true;
  return false;
}

wl_status wl_tablet_write_rows(wl_tablets *t, int i, const wl_stage *stages, wl_error *err) {
  const wl_stage *rowids = &stages[t->n_cols];
  wl_status rc = wl_tablet_insert(t, i, err);
  if (rc) return rc;
  wl_tablet *a = &t->tablets[i];
  a->id = ++t->last_id;
  a->n_rows = rowids->n;
  a->lo = (wl_i64)rowids->v[0];
  a->hi = (wl_i64)rowids->v[rowids->n - 1];
  for (int c = 0; c <= t->n_cols && !rc; c++)
    if (c != t->decl->rowid_col) rc = write_stage(t, a->id, c, &stages[c], &a->zones[c], err);
  if (t->decl->rowid_col >= 0) a->zones[t->decl->rowid_col] = a->zones[t->n_cols];
  if (!rc) rc = wl_tablet_write_entry(t, a, err);
  if (rc) t->stale = true;
  return rc;
}

wl_status wl_tablet_delete(wl_tablets *t, int i, wl_error *err) {
  sqlite3_stmt *s;
  wl_tablet *a = &t->tablets[i];
  wl_status rc = wl_tablets_stmt(t, WL_SH_SEGMENT_DELETE, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, a->id << 12);
  sqlite3_bind_int64(s, 2, (a->id << 12) + 4095);
  rc = wl_tablets_run(t, s, err);
  if (!rc) rc = wl_tablets_stmt(t, WL_SH_TABLET_DELETE, &s, err);
  if (rc) return rc;
  sqlite3_bind_int64(s, 1, a->id);
  rc = wl_tablets_run(t, s, err);
  if (!rc) rc = wl_tablet_set_sum(t, a, 0, err);
  wl_mem_free(a->dead);
  wl_mem_free(a->zones);
  wl_patches_free(a);
  t->n_tablets--;
  memmove(a, a + 1, (size_t)(t->n_tablets - i) * sizeof *a);
  return rc;
}
