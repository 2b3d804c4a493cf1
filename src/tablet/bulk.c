/*
** Changing many rows at once: whole segments are made on several threads and written one after
** the other. What a statement changes in a tablet is written once, whatever the number of rows.
**
** Invariants:
** 1. Everything that may say no (constraints, rows that are not where they should be) is asked
**    before the first write.
** 2. The connection is used by the caller's thread alone; tasks see copies of blobs.
*/
#include "tablet/bulk.h"
#include "base/mem.h"
#include "base/threads.h"
#include "vm/conv.h"
#include <string.h>

enum { WAVE = 8 }; /* tablets a thread, between two rounds of writing */

/* ---- values as the columns store them */

static bool there(const wl_segment *s, wl_i32 i) {
  return !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
}

/* -0.0 is stored as 0.0 in a column of REAL affinity. */
static WL_CLONES bool has_negative_zero(const wl_segment *s) {
  wl_i32 n = 0;
  if (s->phys == WL_P_F32)
    for (wl_i32 i = 0; i < s->n_rows; i++) n += ((const wl_u32 *)s->data)[i] == 0x80000000u;
  else if (s->phys == WL_P_F64)
    for (wl_i32 i = 0; i < s->n_rows; i++) n += ((const wl_u64 *)s->data)[i] == (wl_u64)1 << 63;
  else
    n = 1; /* of mixed types: look at each */
  return n > 0;
}

static bool kept(char affinity, const wl_column *c) {
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
  if (kept(affinity, c)) {
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

/* ---- appending */

typedef struct appending {
  wl_tablets *t;
  wl_column **cols; /* [n_cols]; NULL: the rowid's */
  wl_u32 **codes;   /* [n_cols]: the file's code of each of the column's dictionary; or NULL */
  bool *plain;      /* [n_cols]: its dictionary does not fit the file's: texts */
  const wl_i64 *rowids;
  wl_i64 first, n_rows;
  int from, n_tablets; /* of this wave, in the source */
  wl_u8 **blobs;       /* [wave][n_cols + 1] */
  wl_zone *zones;
  wl_error *errors; /* [wave * (n_cols + 1)] … */
  atomic_bool failed;
} appending;

static wl_i32 rows_of(const appending *a, int tablet) {
  wl_i64 left = a->n_rows - ((wl_i64)tablet << WL_TABLET_SHIFT);
  return left < WL_TABLET_ROWS ? (wl_i32)left : WL_TABLET_ROWS;
}

static wl_status encode_rowids(const appending *a, int tablet, wl_u8 **blob, wl_zone *z,
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

/* A segment of codes as one of texts. */
static wl_status plain_copy(const wl_segment *in, const wl_dict *d, wl_segment *out,
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

/* The range of codes, for the zone map; a copy with the file's codes where those are others. */
static wl_status coded_copy(const wl_segment *in, const wl_u32 *codes, wl_segment *out,
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
  if (wl_put_recode(out, codes)) {
    wl_segment_free(out);
    return wl_nomem(err);
  }
  return WL_OK;
}

static wl_status encode_one(appending *a, int tablet, int col, wl_u8 **blob, wl_zone *z,
                            wl_error *err) {
  wl_tablets *t = a->t;
  if (col == t->n_cols) return encode_rowids(a, tablet, blob, z, err);
  wl_column *c = a->cols[col];
  const wl_segment *s = &c->segments[tablet];
  wl_segment own = {0};
  wl_status rc = WL_OK;
  if (c->dict && a->plain[col]) {
    rc = plain_copy(s, c->dict, &own, err);
    s = &own;
  } else if (c->dict) {
    rc = coded_copy(s, a->codes[col], &own, err);
    s = &own;
  }
  if (!rc)
    rc = wl_codec_write(s, c->dict && !a->plain[col] && s->n_nulls < s->n_rows, blob, z, err);
  if (s == &own) wl_segment_free(&own);
  return rc;
}

static void encode_task(void *arg, int worker, long i) {
  appending *a = arg;
  int width = a->t->n_cols + 1;
  int tablet = a->from + (int)(i / width), col = (int)(i % width);
  (void)worker;
  if (col == a->t->decl->rowid_col || atomic_load(&a->failed)) return;
  if (encode_one(a, tablet, col, &a->blobs[i], &a->zones[i], &a->errors[i / width]))
    atomic_store(&a->failed, true);
}

/* Writes the tablets of a wave. */
static wl_status write_wave(appending *a, wl_error *err) {
  wl_tablets *t = a->t;
  int width = t->n_cols + 1, alias = t->decl->rowid_col;
  wl_status rc = WL_OK;
  for (int k = 0; k < a->n_tablets && !rc; k++) {
    wl_i64 base = (wl_i64)(a->from + k) << WL_TABLET_SHIFT;
    rc = wl_put_room(t, t->n_tablets, err);
    if (rc) break;
    wl_tablet *x = &t->tablets[t->n_tablets - 1];
    x->id = ++t->last_id;
    x->n_rows = rows_of(a, a->from + k);
    x->lo = a->rowids ? a->rowids[base] : a->first + base;
    x->hi = a->rowids ? a->rowids[base + x->n_rows - 1] : a->first + base + x->n_rows - 1;
    for (int c = 0; c < width && !rc; c++) {
      if (c == alias) continue;
      x->zones[c] = a->zones[k * width + c];
      rc = wl_put_blob(t, x->id, c, a->blobs[k * width + c], &x->zones[c], err);
    }
    if (alias >= 0) x->zones[alias] = x->zones[t->n_cols];
    if (!rc) rc = wl_put_tablet(t, x, err);
  }
  return rc;
}

static void drop_wave(appending *a) {
  int n = a->n_tablets * (a->t->n_cols + 1);
  for (int i = 0; i < n; i++) wl_mem_free(a->blobs[i]);
  memset(a->blobs, 0, (size_t)n * sizeof *a->blobs);
}

static wl_status append_waves(appending *a, int n_threads, wl_error *err) {
  int width = a->t->n_cols + 1, wave = WAVE * n_threads;
  int total = (int)((a->n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  wl_status rc = WL_OK;
  size_t n = (size_t)wave * (size_t)width;
  a->blobs = wl_mem_zalloc(n * sizeof *a->blobs);
  a->zones = wl_mem_zalloc(n * sizeof *a->zones);
  a->errors = wl_mem_zalloc((size_t)wave * sizeof *a->errors);
  if (!a->blobs || !a->zones || !a->errors) rc = wl_nomem(err);
  for (a->from = 0; a->from < total && !rc; a->from += wave) {
    a->n_tablets = total - a->from < wave ? total - a->from : wave;
    wl_threads_run(n_threads, (long)a->n_tablets * width, encode_task, a);
    if (atomic_load(&a->failed)) {
      rc = wl_nomem(err);
      for (int i = 0; i < a->n_tablets; i++)
        if (a->errors[i].code) rc = wl_fail(err, a->errors[i].code, "%s", a->errors[i].text);
    }
    if (!rc) rc = write_wave(a, err);
    drop_wave(a);
  }
  wl_mem_free(a->blobs);
  wl_mem_free(a->zones);
  wl_mem_free(a->errors);
  return rc;
}

/* The rows lie above all that there is. */
static wl_status above(wl_tablets *t, wl_i64 first, wl_error *err) {
  wl_i64 n, least, most;
  if (t->n_tablets && t->tablets[t->n_tablets - 1].hi >= first)
    return wl_not_taken(err, "rowids among those of tablets");
  if (!t->n_delta) return WL_OK;
  wl_status rc =
      wl_tablets_in_range(t, WL_SH_DELTA_RANGE, first, WL_I64_MAX, &n, &least, &most, err);
  return !rc && n ? wl_not_taken(err, "rowids among those of the delta") : rc;
}

static wl_status check_nulls(const wl_tablets *t, const int *set, int n_set, wl_column *const *cols,
                             wl_error *err) {
  for (int k = 0; k < n_set; k++) {
    int c = set ? set[k] : k;
    if (c != t->decl->rowid_col && t->decl->cols[c].not_null && has_null(cols[k]))
      return wl_not_taken(err, "a NULL in a NOT NULL column");
  }
  return WL_OK;
}

/* Tablets of the append have 65,536 rows, whatever they hold: one by one they are cut by bytes. */
static wl_status check_lengths(wl_tablets *t, wl_column *const *cols, wl_error *err) {
  size_t most = (size_t)sqlite3_limit(t->db, SQLITE_LIMIT_LENGTH, -1) / 8 * 7;
  for (int i = 0; i < t->n_cols; i++)
    for (int k = 0; cols[i] && k < cols[i]->n_tablets; k++)
      if (wl_segment_bytes(&cols[i]->segments[k]) > most)
        return wl_not_taken(err, "a segment longer than SQLite's longest blob");
  return WL_OK;
}

wl_status wl_bulk_append(wl_tablets *t, wl_i64 n_rows, wl_column *const *cols, const wl_i64 *rowids,
                         wl_i64 first, int n_threads, wl_error *err) {
  appending a = {.t = t, .rowids = rowids, .first = first, .n_rows = n_rows};
  if (n_rows == 0) return WL_OK;
  wl_status rc = wl_tablets_refresh(t, err);
  if (!rc) rc = check_nulls(t, NULL, t->n_cols, cols, err);
  if (!rc) rc = above(t, rowids ? rowids[0] : first, err);
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
  bool broken = false;
  if (!rc) rc = wl_checker_rows(t, a.cols, rowids, first, n_rows, &broken, err);
  if (!rc && broken) rc = wl_not_taken(err, "a CHECK constraint is broken");
  if (!rc) rc = wl_bulk_keys(t, &rows, false, err);
  if (!rc) {
    rc = wl_tablets_touch(t, err);
    t->layout++;
  }
  for (int i = 0; i < t->n_cols && !rc; i++) {
    const wl_dict *d = a.cols[i] ? a.cols[i]->dict : NULL;
    bool fits;
    if (!d) continue;
    a.codes[i] = wl_mem_alloc(((size_t)d->n + 1) * sizeof(wl_u32));
    rc = a.codes[i] ? wl_tablets_encode(t, i, d->places, d->heap, d->n, a.codes[i], &fits, err)
                    : wl_nomem(err);
    a.plain[i] = !rc && !fits;
  }
  if (!rc) rc = append_waves(&a, n_threads, err);
  if (!rc) rc = wl_bulk_keys(t, &rows, true, err);
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

/* ---- which tablets rows are in */

typedef struct part {
  int tablet;
  wl_i64 from, to; /* of the rowids */
} part;

/* Cuts rising rowids by tablet. WL_NOT_TAKEN: one is in none. */
static wl_status cut(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, part **out, int *n_parts,
                     wl_error *err) {
  part *p = *out = wl_mem_alloc(((size_t)t->n_tablets + 1) * sizeof *p);
  *n_parts = 0;
  if (!p) return wl_nomem(err);
  for (wl_i64 i = 0; i < n;) {
    int k = wl_tablets_place(t, rowids[i]);
    if (k < 0 || rowids[i] > t->tablets[k].hi) return wl_not_taken(err, "a row that is not there");
    wl_i64 lo = i, hi = n; /* the first rowid past the tablet's last */
    while (lo < hi) {
      wl_i64 mid = lo + (hi - lo) / 2;
      if (rowids[mid] <= t->tablets[k].hi)
        lo = mid + 1;
      else
        hi = mid;
    }
    p[(*n_parts)++] = (part){k, i, lo};
    i = lo;
  }
  return WL_OK;
}

/* Slots of the part's rowids. False: one has none. */
static bool slots_of(const wl_tablet *a, const wl_segment *own, const wl_i64 *rowids, wl_i64 n,
                     wl_i32 *slots) {
  if (!own) { /* no gaps */
    for (wl_i64 i = 0; i < n; i++) slots[i] = (wl_i32)(rowids[i] - a->lo);
    return true;
  }
  wl_i32 at = 0;
  for (wl_i64 i = 0; i < n; i++) {
    while (at < a->n_rows && (wl_i64)wl_segment_value(own, at).v < rowids[i]) at++;
    if (at == a->n_rows || (wl_i64)wl_segment_value(own, at).v != rowids[i]) return false;
    slots[i] = at;
  }
  return true;
}

static bool has_gaps(const wl_tablet *a) {
  return (wl_u64)a->hi - (wl_u64)a->lo != (wl_u64)a->n_rows - 1;
}

/* ---- updating */

typedef struct patch {
  int part, k; /* of set */
  wl_u8 *blob; /* a copy of what was there */
  size_t n_blob;
  wl_segment s; /* what is there now */
  wl_u8 *new_blob;
  wl_zone zone;
  wl_status status;
  wl_error error;
} patch;

typedef struct updating {
  wl_tablets *t;
  const wl_i64 *rowids;
  const part *parts;
  wl_i32 **slots; /* [n_parts of the wave] */
  const int *set;
  wl_column **cols;
  const wl_file_dict **dicts; /* [n_set] */
  patch *patches;
} updating;

/* The old values of a segment, wide. */
static wl_status widen(const wl_segment *s, bool coded, const wl_file_dict *d, wl_stage *st) {
  wl_status rc = WL_OK;
  if (s->phys <= WL_P_F64 && !coded) {
    bool real = s->phys >= WL_P_F32;
    wl_phys_copy(st->v, real ? WL_P_F64 : WL_P_I64, s->data, s->phys, s->n_rows);
    memset(st->t, real ? WL_T_REAL : WL_T_INT, (size_t)s->n_rows);
    for (wl_i32 i = 0; i < s->n_rows && s->n_nulls; i++)
      if (!there(s, i)) st->t[i] = WL_T_NULL;
    st->n = s->n_rows;
    return WL_OK;
  }
  for (wl_i32 i = 0; i < s->n_rows && !rc; i++) {
    wl_val v = wl_segment_value(s, i);
    if (coded && v.t != WL_T_NULL) {
      wl_u64 p = d->places[v.v];
      v = wl_text(d->heap + (wl_u32)p, (wl_u32)(p >> 32));
    }
    rc = wl_stage_add(st, v);
  }
  return rc;
}

/* Puts the new values in their slots. */
static wl_status put_values(const wl_column *c, wl_i64 from, wl_i64 n, const wl_i32 *slots,
                            wl_stage *st) {
  if (c->phys <= WL_P_F64 && !c->dict) {
    for (wl_i64 i = 0; i < n; i++) {
      wl_val v = wl_column_stored(c, from + i);
      st->v[slots[i]] = v.v;
      st->t[slots[i]] = v.t;
    }
    return WL_OK;
  }
  for (wl_i64 i = 0; i < n; i++) {
    wl_val v = wl_column_value(c, from + i);
    wl_u64 place = v.v;
    if (v.t >= WL_T_TEXT) {
      wl_status rc = wl_stage_room(st, v.n);
      if (rc) return rc;
      if (v.n) memcpy(st->heap + st->n_heap, wl_bytes(v), v.n);
      place = (wl_u64)st->n_heap | (wl_u64)v.n << 32;
      st->n_heap += v.n;
    }
    st->v[slots[i]] = v.t == WL_T_NULL ? 0 : place;
    st->t[slots[i]] = v.t;
  }
  return WL_OK;
}

static wl_status patch_one(updating *u, patch *p, wl_error *err) {
  const part *x = &u->parts[p->part];
  const wl_file_dict *d = u->dicts[p->k];
  wl_segment old = {0};
  wl_stage st;
  bool coded;
  if (wl_stage_open(&st)) return wl_nomem(err);
  wl_status rc = wl_codec_read(p->blob, p->n_blob, d ? d->n : 0, &old, &coded, err);
  if (!rc && (widen(&old, coded, d, &st) ||
              put_values(u->cols[p->k], x->from, x->to - x->from, u->slots[p->part], &st) ||
              wl_segment_make(&st, &p->s)))
    rc = wl_nomem(err);
  if (!rc && !p->s.entries) rc = wl_codec_write(&p->s, false, &p->new_blob, &p->zone, err);
  wl_segment_free(&old);
  wl_stage_close(&st);
  return rc;
}

static void patch_task(void *arg, int worker, long i) {
  updating *u = arg;
  (void)worker;
  u->patches[i].status = patch_one(u, &u->patches[i], &u->patches[i].error);
}

static wl_status fetch(wl_tablets *t, int tablet, int col, patch *p, wl_error *err) {
  const wl_u8 *blob;
  wl_status rc = wl_tablets_blob(t, tablet, col, &blob, &p->n_blob, err);
  if (!rc && !(p->blob = wl_mem_alloc(p->n_blob + 1))) rc = wl_nomem(err);
  if (!rc) memcpy(p->blob, blob, p->n_blob);
  wl_tablets_done_blob(t);
  return rc;
}

/* Writes what a patch made. */
static wl_status write_patch(updating *u, patch *p, wl_error *err) {
  wl_tablet *a = &u->t->tablets[u->parts[p->part].tablet];
  int col = u->set[p->k];
  bool coded;
  wl_status rc = WL_OK;
  if (!p->new_blob) {
    rc = wl_put_coded(u->t, col, &p->s, &coded, err);
    if (!rc) rc = wl_codec_write(&p->s, coded, &p->new_blob, &p->zone, err);
  }
  if (!rc) rc = wl_put_blob(u->t, a->id, col, p->new_blob, &p->zone, err);
  if (!rc) a->zones[col] = p->zone;
  return rc;
}

/* The parts from `from` on, n of them. */
static wl_status update_wave(updating *u, int from, int n, int n_set, int n_threads,
                             wl_error *err) {
  wl_tablets *t = u->t;
  wl_status rc = WL_OK;
  int n_patches = n * n_set;
  u->patches = wl_mem_zalloc((size_t)n_patches * sizeof *u->patches);
  if (!u->patches) return wl_nomem(err);
  for (int i = 0; i < n_patches && !rc; i++) {
    u->patches[i].part = from + i / n_set;
    u->patches[i].k = i % n_set;
    rc = fetch(t, u->parts[from + i / n_set].tablet, u->set[i % n_set], &u->patches[i], err);
  }
  if (!rc) wl_threads_run(n_threads, n_patches, patch_task, u);
  for (int i = 0; i < n_patches && !rc; i++) {
    patch *p = &u->patches[i];
    const wl_tablet *a = &t->tablets[u->parts[p->part].tablet];
    if (p->status == WL_NOMEM)
      rc = wl_nomem(err);
    else if (p->status)
      rc = wl_tablets_corrupt(t, u->set[p->k], a->id, err, "%.150s", p->error.text);
    else
      rc = write_patch(u, p, err);
    if (!rc && p->k == n_set - 1) rc = wl_put_tablet(t, a, err);
  }
  for (int i = 0; i < n_patches; i++) {
    wl_mem_free(u->patches[i].blob);
    wl_mem_free(u->patches[i].new_blob);
    wl_segment_free(&u->patches[i].s);
  }
  wl_mem_free(u->patches);
  return rc;
}

/* Slots of all parts. WL_NOT_TAKEN: a row is not there. */
static wl_status find_slots(wl_tablets *t, const wl_i64 *rowids, const part *parts, int n_parts,
                            wl_i32 **slots, wl_error *err) {
  wl_status rc = WL_OK;
  for (int i = 0; i < n_parts && !rc; i++) {
    const wl_tablet *a = &t->tablets[parts[i].tablet];
    wl_i64 n = parts[i].to - parts[i].from;
    wl_held_segment *h = NULL;
    bool coded;
    slots[i] = wl_mem_alloc((size_t)n * sizeof **slots);
    if (!slots[i]) return wl_nomem(err);
    if (has_gaps(a)) rc = wl_tablets_segment(t, parts[i].tablet, t->n_cols, &h, err);
    if (!rc &&
        !slots_of(a, h ? wl_held_segment_of(h, &coded) : NULL, rowids + parts[i].from, n, slots[i]))
      rc = wl_not_taken(err, "a row that is not there");
    wl_held_drop(h);
  }
  return rc;
}

static void free_slots(wl_i32 **slots, int n) {
  for (int i = 0; slots && i < n; i++) wl_mem_free(slots[i]);
  wl_mem_free(slots);
}

wl_status wl_bulk_update(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, const int *set, int n_set,
                         wl_column *const *cols, int n_threads, wl_error *err) {
  updating u = {.t = t, .rowids = rowids, .set = set};
  part *parts = NULL;
  int n_parts = 0;
  if (n == 0) return WL_OK;
  if (t->decl->n_checks) return wl_not_taken(err, "CHECK constraints");
  wl_status rc = check_nulls(t, set, n_set, cols, err);
  if (!rc) rc = wl_tablets_fold(t, err);
  if (rc) return rc;
  u.cols = wl_mem_zalloc((size_t)n_set * sizeof *u.cols);
  u.dicts = wl_mem_zalloc((size_t)n_set * sizeof *u.dicts);
  if (!u.cols || !u.dicts) rc = wl_nomem(err);
  for (int k = 0; k < n_set && !rc; k++)
    rc = wl_bulk_convert(t->decl->cols[set[k]].affinity, cols[k], &u.cols[k], err);
  if (!rc) rc = cut(t, rowids, n, &parts, &n_parts, err);
  u.parts = parts;
  u.slots = rc ? NULL : wl_mem_zalloc(((size_t)n_parts + 1) * sizeof *u.slots);
  if (!rc && !u.slots) rc = wl_nomem(err);
  if (!rc) rc = find_slots(t, rowids, parts, n_parts, u.slots, err);
  if (!rc) rc = wl_tablets_touch(t, err);
  int wave = WAVE * n_threads / n_set + 1;
  for (int i = 0; i < n_parts && !rc; i += wave) {
    for (int k = 0; k < n_set && !rc; k++) rc = wl_tablets_dict(t, set[k], &u.dicts[k], err);
    if (!rc)
      rc = update_wave(&u, i, n_parts - i < wave ? n_parts - i : wave, n_set, n_threads, err);
    if (rc) t->stale = true;
  }
  for (int k = 0; u.cols && k < n_set; k++) wl_column_drop(u.cols[k]);
  wl_mem_free(u.cols);
  wl_mem_free(u.dicts);
  free_slots(u.slots, n_parts);
  wl_mem_free(parts);
  return rc;
}

/* ---- deleting */

wl_status wl_bulk_delete(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, int n_threads,
                         wl_error *err) {
  part *parts = NULL;
  wl_i32 **slots = NULL;
  int n_parts = 0;
  (void)n_threads; /* it is bits */
  if (n == 0) return WL_OK;
  wl_status rc = wl_tablets_fold(t, err);
  if (!rc) rc = cut(t, rowids, n, &parts, &n_parts, err);
  if (!rc && !(slots = wl_mem_zalloc(((size_t)n_parts + 1) * sizeof *slots))) rc = wl_nomem(err);
  if (!rc) rc = find_slots(t, rowids, parts, n_parts, slots, err);
  if (!rc) {
    rc = wl_tablets_touch(t, err);
    t->layout++;
  }
  for (int i = n_parts - 1; i >= 0 && !rc; i--) { /* from the end: tablets may go */
    wl_tablet *a = &t->tablets[parts[i].tablet];
    rc = wl_bulk_unkey(t, parts[i].tablet, rowids + parts[i].from, slots[i],
                       parts[i].to - parts[i].from, err);
    if (!rc && !a->dead) a->dead = wl_mem_zalloc((size_t)(a->n_rows + 7) / 8);
    if (!rc && !a->dead) rc = wl_nomem(err);
    for (wl_i64 k = 0; k < parts[i].to - parts[i].from && !rc; k++) {
      wl_i32 slot = slots[i][k];
      a->n_dead += !wl_tablet_is_dead(a, slot);
      a->dead[slot >> 3] |= (wl_u8)(1 << (slot & 7));
    }
    if (!rc)
      rc = a->n_dead == a->n_rows ? wl_put_drop(t, parts[i].tablet, err) : wl_put_tablet(t, a, err);
    if (rc) t->stale = true;
  }
  free_slots(slots, n_parts);
  wl_mem_free(parts);
  return rc;
}
