/*
** Appends many rows at once. Several threads make whole segments; one thread writes them.
**
** Invariants:
** 1. Everything that may refuse the rows (constraints, rowids that are not larger than all others)
**    is checked before the first write.
** 2. Only the caller's thread uses the connection.
** 3. New texts are added to the file's dictionaries before the threads begin. The threads do not
**    use those dictionaries.
*/
#include "base/mem.h"
#include "base/tasks.h"
#include "tablet/write/bulk.h"
#include "value/conv.h"
#include <assert.h>
#include <string.h>

/* ---- values as the columns store them */

/* -0.0 is stored as 0.0 in a column of REAL affinity. */
static WL_CLONES bool has_negative_zero(const wl_segment *s) {
  wl_i32 n = 0;
  if (s->phys == WL_P_F32)
    for (wl_i32 i = 0; i < s->n_rows; i++) n += ((const wl_u32 *)s->data)[i] == 0x80000000u;
  else if (s->phys == WL_P_F64)
    for (wl_i32 i = 0; i < s->n_rows; i++) n += ((const wl_u64 *)s->data)[i] == (wl_u64)1 << 63;
  else
    n = 1; /* mixed types: each value has to be converted */
  return n > 0;
}

/* Whether a column of this affinity stores all values of c unchanged. */
static bool is_stored_unchanged(char affinity, const wl_column *c) {
  if (c->dict) return affinity < 'C'; /* texts */
  if (wl_affinity_keeps(affinity, &c->domain)) return true;
  unsigned others = c->domain.mask & ~(WL_M(WL_T_REAL) | WL_M(WL_T_NULL));
  if (affinity != 'E' || others) return false;
  for (int i = 0; i < c->n_tablets; i++)
    if (has_negative_zero(&c->segments[i])) return false;
  return true;
}

wl_status wl_bulk_convert(char affinity, wl_column *c, wl_column **out, wl_error *err) {
  wl_u32 fault = WL_FAULT_NONE;
  wl_vctx x = {.fault = &fault, .max_text = 0x7fffffff};
  wl_builder *b = NULL;
  if (is_stored_unchanged(affinity, c)) {
    *out = wl_column_hold(c);
    return WL_OK;
  }
  wl_status rc = wl_conv_take(&x.conv, err);
  if (!rc) rc = wl_builder_open(&b, err);
  for (wl_i64 i = 0; i < c->n_rows && !rc; i++) {
    wl_scratch_reset(&x);
    wl_val v = wl_store_affinity(&x, affinity, wl_column_value(c, i));
    if (fault || wl_builder_add(b, v)) rc = wl_nomem(err);
  }
  if (!rc) rc = wl_builder_finish(b, out, err);
  wl_builder_close(b);
  wl_conv_give(x.conv);
  wl_scratch_close(&x);
  return rc;
}

static bool has_null(const wl_column *c) {
  return (c->domain.mask & WL_M(WL_T_NULL)) != 0;
}

wl_i64 wl_bulk_first_null(const wl_tablets *t, const int *set, int n_set, wl_column *const *cols,
                          wl_i64 n) {
  for (int k = 0; k < n_set; k++) {
    int c = set ? set[k] : k;
    if (c == t->decl->rowid_col || !t->decl->cols[c].not_null || !has_null(cols[k])) continue;
    for (wl_i64 i = 0; i < n; i++)
      if (wl_column_value(cols[k], i).t == WL_T_NULL) n = i;
  }
  return n;
}

/* ---- appending */

typedef struct bulk_append {
  wl_tablets *t;
  wl_column **cols; /* [n_cols]; NULL for the rowid's column */
  wl_u32 **codes;   /* [n_cols]: maps codes of the column's dictionary to the file's; or NULL */
  bool *plain;      /* [n_cols]: the file's dictionary would grow too large, so texts are written */
  const wl_i64 *rowids;
  wl_i64 first, n_rows;
  int from, n_tablets; /* this wave: tablets of the source columns */
  wl_u8 **blobs;       /* [wave][n_cols + 1] */
  wl_zone *zones;      /* [wave][n_cols + 1] */
} bulk_append;

static wl_i32 rows_of(const bulk_append *a, int tablet) {
  wl_i64 left = a->n_rows - ((wl_i64)tablet << WL_TABLET_SHIFT);
  return left < WL_TABLET_ROWS ? (wl_i32)left : WL_TABLET_ROWS;
}

static wl_status encode_rowids(const bulk_append *a, int tablet, wl_u8 **blob, wl_zone *z,
                               wl_error *err) {
  wl_stage st;
  wl_segment s;
  wl_i64 base = (wl_i64)tablet << WL_TABLET_SHIFT;
  if (wl_stage_open(&st)) return wl_nomem(err);
  st.n = rows_of(a, tablet);
  memset(st.t, WL_T_INT, (size_t)st.n);
  for (wl_i32 i = 0; i < st.n; i++)
    st.v[i] = (wl_u64)(a->rowids ? a->rowids[base + i] : a->first + base + i);
  wl_status rc = wl_segment_make(&st, &s) ? wl_nomem(err) : WL_OK;
  wl_stage_close(&st);
  if (rc) return rc;
  rc = wl_codec_write(&s, false, blob, z, err);
  wl_segment_free(&s);
  return rc;
}

/* Copies a segment of codes as a segment of texts. */
static wl_status copy_as_texts(const wl_segment *in, const wl_dict *d, wl_segment *out,
                               wl_error *err) {
  wl_stage st;
  if (wl_stage_open(&st)) return wl_nomem(err);
  wl_status rc = WL_OK;
  for (wl_i32 i = 0; i < in->n_rows && !rc; i++) {
    wl_val v = wl_segment_value(in, i);
    rc = wl_stage_add(&st, v.t == WL_T_NULL ? v : wl_dict_value(d, (wl_i64)v.v));
  }
  if (!rc) rc = wl_segment_plain(&st, out);
  wl_stage_close(&st);
  return rc ? wl_nomem(err) : WL_OK;
}

/* Copies a segment, replacing its codes by the file's. */
static wl_status copy_with_codes(const wl_segment *in, const wl_u32 *codes, wl_segment *out,
                                 wl_error *err) {
  size_t n = (size_t)in->n_rows, width = (size_t)wl_phys_width(in->phys);
  *out = *in;
  out->heap = NULL;
  out->entries = NULL;
  out->valid = NULL;
  out->data = wl_mem_alloc(n * width);
  if (in->valid) out->valid = wl_mem_alloc((n + 7) / 8);
  if (!out->data || (in->valid && !out->valid)) {
    wl_segment_free(out);
    return wl_nomem(err);
  }
  memcpy(out->data, in->data, n * width);
  if (in->valid) memcpy(out->valid, in->valid, (n + 7) / 8);
  out->domain.mask = (wl_u8)(WL_M(WL_T_TEXT) | (in->n_nulls ? WL_M(WL_T_NULL) : 0));
  if (in->n_nulls == in->n_rows) out->domain.mask = WL_M(WL_T_NULL);
  if (wl_tablet_recode(out, codes)) {
    wl_segment_free(out);
    return wl_nomem(err);
  }
  return WL_OK;
}

/* Marks the codes that rows of the column have. */
static void mark_used(const wl_column *c, bool *used) {
  for (int k = 0; k < c->n_tablets; k++) {
    const wl_segment *s = &c->segments[k];
    for (wl_i32 i = 0; i < s->n_rows; i++) {
      wl_val v = wl_segment_value(s, i);
      if (v.t != WL_T_NULL) used[v.v] = true;
    }
  }
}

/* The column may have been filtered, and the file must not get texts that no row has. */
wl_status wl_bulk_codes(wl_tablets *t, int col, const wl_column *c, wl_u32 **out, bool *plain,
                        wl_error *err) {
  const wl_dict *d = c->dict;
  size_t n = (size_t)d->n + 1;
  bool fits = true, *used = wl_mem_zalloc(n);
  wl_u64 *places = wl_mem_alloc(n * sizeof *places);
  wl_u32 *of_used = wl_mem_alloc(n * sizeof *of_used);
  wl_u32 *codes = *out = wl_mem_zalloc(n * sizeof *codes);
  wl_status rc = used && places && of_used && codes ? WL_OK : wl_nomem(err);
  wl_i32 n_used = 0;
  if (!rc) mark_used(c, used);
  for (wl_i32 i = 0; i < d->n && !rc; i++)
    if (used[i]) places[n_used++] = d->places[i];
  if (!rc && n_used) rc = wl_tablets_encode(t, col, places, d->heap, n_used, of_used, &fits, err);
  n_used = 0;
  for (wl_i32 i = 0; i < d->n && !rc && fits; i++)
    if (used[i]) codes[i] = of_used[n_used++];
  *plain = !rc && !fits;
  wl_mem_free(used);
  wl_mem_free(places);
  wl_mem_free(of_used);
  return rc;
}

static wl_status encode_one(bulk_append *a, int tablet, int col, wl_u8 **blob, wl_zone *z,
                            wl_error *err) {
  wl_tablets *t = a->t;
  if (col == t->n_cols) return encode_rowids(a, tablet, blob, z, err);
  wl_column *c = a->cols[col];
  const wl_segment *s = &c->segments[tablet];
  wl_segment own = {0};
  wl_status rc = WL_OK;
  if (c->dict && a->plain[col]) {
    rc = copy_as_texts(s, c->dict, &own, err);
    s = &own;
  } else if (c->dict) {
    rc = copy_with_codes(s, a->codes[col], &own, err);
    s = &own;
  }
  if (!rc)
    rc = wl_codec_write(s, c->dict && !a->plain[col] && s->n_nulls < s->n_rows, blob, z, err);
  if (s == &own) wl_segment_free(&own);
  return rc;
}

static wl_status encode_task(void *arg, int worker, long i, wl_error *err) {
  bulk_append *a = arg;
  int width = a->t->n_cols + 1;
  int tablet = a->from + (int)(i / width), col = (int)(i % width);
  (void)worker;
  if (col == a->t->decl->rowid_col) return WL_OK;
  return encode_one(a, tablet, col, &a->blobs[i], &a->zones[i], err);
}

/* Writes the tablets of a wave. */
static wl_status write_wave(bulk_append *a, wl_error *err) {
  wl_tablets *t = a->t;
  int width = t->n_cols + 1, alias = t->decl->rowid_col;
  wl_status rc = WL_OK;
  for (int k = 0; k < a->n_tablets && !rc; k++) {
    wl_i64 base = (wl_i64)(a->from + k) << WL_TABLET_SHIFT;
    rc = wl_tablet_insert(t, t->n_tablets, err);
    if (rc) break;
    wl_tablet *x = &t->tablets[t->n_tablets - 1];
    x->id = ++t->last_id;
    x->n_rows = rows_of(a, a->from + k);
    x->lo = a->rowids ? a->rowids[base] : a->first + base;
    x->hi = a->rowids ? a->rowids[base + x->n_rows - 1] : a->first + base + x->n_rows - 1;
    for (int c = 0; c < width && !rc; c++) {
      if (c == alias) continue;
      x->zones[c] = a->zones[k * width + c];
      rc = wl_tablet_write_blob(t, x->id, c, a->blobs[k * width + c], &x->zones[c], err);
    }
    if (alias >= 0) x->zones[alias] = x->zones[t->n_cols];
    if (!rc) rc = wl_tablet_write_entry(t, x, err);
  }
  return rc;
}

static void drop_wave(bulk_append *a) {
  int n = a->n_tablets * (a->t->n_cols + 1);
  for (int i = 0; i < n; i++) wl_mem_free(a->blobs[i]);
  memset(a->blobs, 0, (size_t)n * sizeof *a->blobs);
}

static wl_status append_waves(bulk_append *a, int n_threads, wl_error *err) {
  enum { FEW_VALUES = 32768 }; /* to wake other threads would take longer */
  if (a->n_rows * (a->t->n_cols + 1) <= FEW_VALUES) n_threads = 1;
  int width = a->t->n_cols + 1, wave = WL_BULK_WAVE * n_threads;
  int total = (int)((a->n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  wl_status rc = WL_OK;
  size_t n = (size_t)wave * (size_t)width;
  a->blobs = wl_mem_zalloc(n * sizeof *a->blobs);
  a->zones = wl_mem_zalloc(n * sizeof *a->zones);
  if (!a->blobs || !a->zones) rc = wl_nomem(err);
  for (a->from = 0; a->from < total && !rc; a->from += wave) {
    a->n_tablets = total - a->from < wave ? total - a->from : wave;
    wl_tasks tasks = {n_threads, (long)a->n_tablets * width, encode_task, a, NULL};
    rc = wl_tasks_run(&tasks, NULL, err);
    if (!rc) rc = write_wave(a, err);
    drop_wave(a);
  }
  wl_mem_free(a->blobs);
  wl_mem_free(a->zones);
  return rc;
}

/* Checks that no rowid of the table is as large as first. */
static wl_status check_rowids_above(wl_tablets *t, wl_i64 first, wl_error *err) {
  wl_i64 n, least, most;
  if (t->n_tablets && t->tablets[t->n_tablets - 1].hi >= first)
    return wl_not_taken(err, "a rowid is not larger than those of the tablets");
  if (!t->n_delta) return WL_OK;
  wl_status rc =
      wl_tablets_in_range(t, WL_SH_DELTA_RANGE, first, WL_I64_MAX, &n, &least, &most, err);
  return !rc && n ? wl_not_taken(err, "a rowid is not larger than those of the delta") : rc;
}

/* Checks that no segment is too long. A bulk append makes tablets of 65,536 rows, whatever their
** size. Rows that are inserted one by one make smaller tablets if the values are long. */
static wl_status check_lengths(wl_tablets *t, wl_column *const *cols, wl_error *err) {
  size_t most = (size_t)sqlite3_limit(t->db, SQLITE_LIMIT_LENGTH, -1) / 8 * 7;
  for (int i = 0; i < t->n_cols; i++)
    for (int k = 0; cols[i] && k < cols[i]->n_tablets; k++)
      if (wl_segment_bytes(&cols[i]->segments[k]) > most)
        return wl_not_taken(err, "a segment longer than SQLite's longest blob");
  return WL_OK;
}

/* Finds the first row that breaks a constraint. Each kind of constraint is checked only for the
** rows before the one already found. The kinds are in SQLite's order, for a row that breaks
** several. */
static wl_status check_rows(wl_tablets *t, wl_bulk_rows rows, wl_refusal *out, wl_error *err) {
  static const char *const words[] = {"a NULL in a NOT NULL column", "a CHECK constraint is broken",
                                      "a key that exists already"};
  wl_i64 n = rows.n, at;
  int which = -1, key = -2;
  rows.n = wl_bulk_first_null(t, NULL, t->n_cols, rows.cols, n);
  if (rows.n < n) which = 0;
  wl_status rc = wl_checker_rows(t, &rows, &at, err);
  if (!rc && at < rows.n) which = 1;
  if (!rc) rows.n = at;
  if (!rc) rc = wl_bulk_check_keys(t, &rows, &at, &key, err);
  if (!rc && at < rows.n) which = 2;
  if (rc || which < 0) return rc;
  out->row = which == 2 ? at : rows.n;
  out->key = which == 2 ? key : -2;
  return wl_not_taken(err, "%s", words[which]);
}

wl_status wl_bulk_append(wl_tablets *t, wl_i64 n_rows, wl_column *const *cols, const wl_i64 *rowids,
                         wl_i64 first, int n_threads, wl_refusal *refusal, wl_error *err) {
  bulk_append a = {.t = t, .rowids = rowids, .first = first, .n_rows = n_rows};
  refusal->row = -1;
  assert(!rowids || n_rows < 2 || rowids[0] < rowids[n_rows - 1]);
  if (n_rows == 0) return WL_OK;
  wl_status rc = wl_tablets_refresh(t, err);
  if (!rc) rc = check_rowids_above(t, rowids ? rowids[0] : first, err);
  if (rc) return rc;
  size_t n = (size_t)t->n_cols;
  a.cols = wl_mem_zalloc((n + 1) * sizeof *a.cols);
  a.codes = wl_mem_zalloc((n + 1) * sizeof *a.codes);
  a.plain = wl_mem_zalloc((n + 1) * sizeof *a.plain);
  if (!a.cols || !a.codes || !a.plain) rc = wl_nomem(err);
  for (int i = 0; i < t->n_cols && !rc; i++)
    if (i != t->decl->rowid_col)
      rc = wl_bulk_convert(t->decl->cols[i].affinity, cols[i], &a.cols[i], err);
  if (!rc) rc = check_lengths(t, a.cols, err);
  wl_bulk_rows rows = {a.cols, rowids, first, n_rows};
  if (!rc) rc = check_rows(t, rows, refusal, err);
  if (!rc && refusal->dry) {
    refusal->row = n_rows;
    rc = wl_not_taken(err, "a later row of the query fails");
  }
  if (!rc) {
    rc = wl_tablets_touch(t, err);
    t->layout++;
  }
  for (int i = 0; i < t->n_cols && !rc; i++)
    if (a.cols[i] && a.cols[i]->dict)
      rc = wl_bulk_codes(t, i, a.cols[i], &a.codes[i], &a.plain[i], err);
  if (!rc) rc = append_waves(&a, n_threads, err);
  if (!rc) rc = wl_bulk_put_keys(t, &rows, err);
  if (rc && rc != WL_NOT_TAKEN) t->stale = true;
  for (int i = 0; i < t->n_cols && a.cols && a.codes; i++) {
    wl_column_drop(a.cols[i]);
    wl_mem_free(a.codes[i]);
  }
  wl_mem_free(a.cols);
  wl_mem_free(a.codes);
  wl_mem_free(a.plain);
  return rc;
}
