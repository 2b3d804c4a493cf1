/*
** Turns an Arrow array into columns of the table. Each task takes one column of one tablet,
** converts its values to the column's affinity and makes a segment. Then wl_bulk_append writes
** them.
**
** Invariants:
** 1. If a row breaks a constraint, or the rowids are not ascending and larger than the existing
**    ones, the result is WL_NOT_TAKEN and no row of the array is written.
** 2. A text becomes the number that SQLite would make of it. The fast conversion of decimals
**    (short_real) is used only if every way of rounding gives the same double.
*/
#include "tablet/write/arrow_append.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "tablet/table/table_impl.h"
#include "value/conv.h"
#include <float.h>
#include <string.h>

/* One child of the array: values of one kind. data has numbers, or the offsets of texts and blobs
** in bytes. */
typedef struct arrow_source {
  char kind; /* t text, b blob, i integer, r real, n NULLs */
  bool wide; /* offsets of 64 bits */
  const wl_u8 *valid;
  const void *data;
  const wl_u8 *bytes;
  wl_i64 offset; /* of row 0 */
} arrow_source;

typedef struct append_worker {
  wl_stage stage;
  wl_vctx x;
  wl_u32 fault;
} append_worker;

typedef struct append_job {
  const wl_tablets *t;
  arrow_source *sources;
  wl_segment **segments; /* [n_cols][n_tablets] */
  append_worker *workers;
  wl_i64 n_rows;
  int n_tablets;
} append_job;

static wl_status read_source(const struct ArrowSchema *s, const struct ArrowArray *a, wl_i64 skip,
                             arrow_source *out, wl_error *err) {
  const char *f = s->format;
  *out = (arrow_source){.valid = a->n_buffers ? a->buffers[0] : NULL, .offset = a->offset + skip};
  if (a->null_count == 0) out->valid = NULL;
  if (strlen(f) == 1) switch (*f) {
    case 'u':
    case 'U':
    case 'z':
    case 'Z':
      out->kind = *f == 'u' || *f == 'U' ? 't' : 'b';
      out->wide = *f == 'U' || *f == 'Z';
      out->data = a->buffers[1];
      out->bytes = a->buffers[2];
      return WL_OK;
    case 'l':
    case 'g':
      out->kind = *f == 'l' ? 'i' : 'r';
      out->data = a->buffers[1];
      return WL_OK;
    case 'n': out->kind = 'n'; return WL_OK;
    default: break;
    }
  return wl_fail(err, WL_ERROR, "warplite_append: the Arrow format \"%.40s\" is not supported", f);
}

/*
** Converts a decimal fraction with few digits to a real: computes s / 10^e with a mantissa of 64
** bits, then rounds to 53 bits. Both steps round to nearest. Rounding once could only give another
** result if the first step lands exactly between two doubles; such numbers are refused.
*/
static bool short_real(const wl_u8 *p, wl_u32 n, double *out) {
#if LDBL_MANT_DIG == 64
  static const long double tens[] = {1.0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                     1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                     1e14L, 1e15L, 1e16L, 1e17L, 1e18L};
  wl_u32 i = n > 1 && p[0] == '-', digits = 0, e = 0;
  wl_u64 s = 0;
  bool point = false;
  for (; i < n; i++) {
    if (p[i] == '.' && !point) {
      point = true;
      continue;
    }
    if (p[i] < '0' || p[i] > '9' || ++digits > 18) return false;
    s = s * 10 + (wl_u64)(p[i] - '0');
    e += point;
  }
  if (!digits || !s || !point) return false;
  while (e > 0 && s % 10 == 0) { /* SQLite also starts with this */
    s /= 10;
    e--;
  }
  if (!e || s >= 1ULL << 53) return false;
  union {
    long double v;
    wl_u64 mantissa;
  } q = {.v = (long double)s / tens[e]};
  if ((q.mantissa & 0x7ff) == 0x400) return false;
  *out = p[0] == '-' ? -(double)q.v : (double)q.v;
  return true;
#else
  (void)p;
  (void)n;
  (void)out;
  return false;
#endif
}

static wl_val value_at(const arrow_source *s, wl_i64 row) {
  wl_i64 i = s->offset + row;
  if (s->kind == 'n' || (s->valid && !(s->valid[i >> 3] >> (i & 7) & 1))) return wl_null();
  if (s->kind == 'i') return wl_int(((const wl_i64 *)s->data)[i]);
  if (s->kind == 'r') {
    double r = ((const double *)s->data)[i];
    return r != r ? wl_null() : wl_real(r); /* SQLite has no NaN */
  }
  wl_u64 from = s->wide ? ((const wl_u64 *)s->data)[i] : ((const wl_u32 *)s->data)[i];
  wl_u64 to = s->wide ? ((const wl_u64 *)s->data)[i + 1] : ((const wl_u32 *)s->data)[i + 1];
  return wl_val_make(s->kind == 't' ? WL_T_TEXT : WL_T_BLOB, (wl_u64)(size_t)(s->bytes + from),
                     (wl_u32)(to - from));
}

static wl_status stage_task(void *arg, int which, long task, wl_error *err) {
  append_job *j = arg;
  append_worker *w = &j->workers[which];
  int col = (int)(task / j->n_tablets), tablet = (int)(task % j->n_tablets);
  const arrow_source *s = &j->sources[col];
  char affinity = j->t->decl->cols[col].affinity;
  wl_i64 at = (wl_i64)tablet << WL_TABLET_SHIFT;
  wl_i64 end = at + WL_TABLET_ROWS < j->n_rows ? at + WL_TABLET_ROWS : j->n_rows;
  double r;
  w->stage.n = 0;
  w->stage.n_heap = 0;
  wl_status rc = WL_OK;
  for (; at < end && !rc; at++) {
    wl_val v = value_at(s, at);
    if (affinity >= 'C' && v.t == WL_T_TEXT && short_real(wl_bytes(v), v.n, &r)) v = wl_real(r);
    if (v.t != WL_T_NULL) v = wl_store_affinity(&w->x, affinity, v);
    rc = w->fault ? WL_NOMEM : wl_stage_add(&w->stage, v);
  }
  wl_scratch_reset(&w->x);
  if (!rc) rc = wl_segment_make(&w->stage, &j->segments[col][tablet]);
  return rc ? wl_nomem(err) : WL_OK;
}

/* Makes the columns, with the table's affinities. */
static wl_status make_columns(append_job *j, int n_threads, wl_column **cols, wl_error *err) {
  const wl_tablets *t = j->t;
  wl_status rc = WL_OK;
  int n_workers = 0;
  j->workers = wl_mem_zalloc((size_t)n_threads * sizeof *j->workers);
  j->segments = wl_mem_zalloc((size_t)t->n_cols * sizeof *j->segments);
  if (!j->workers || !j->segments) rc = wl_nomem(err);
  for (int i = 0; i < t->n_cols && !rc; i++) {
    j->segments[i] = wl_mem_zalloc((size_t)j->n_tablets * sizeof **j->segments);
    if (!j->segments[i]) rc = wl_nomem(err);
  }
  for (; n_workers < n_threads && !rc; n_workers++) {
    append_worker *w = &j->workers[n_workers];
    w->x.fault = &w->fault;
    w->x.max_text = 1000000000;
    rc = wl_conv_take(&w->x.conv, err);
    if (!rc && wl_stage_open(&w->stage)) rc = wl_nomem(err);
  }
  wl_tasks tasks = {n_threads, (long)t->n_cols * j->n_tablets, stage_task, j, NULL};
  if (!rc) rc = wl_tasks_run(&tasks, NULL, err);
  for (int i = 0; i < n_workers; i++) {
    append_worker *w = &j->workers[i];
    wl_conv_give(w->x.conv);
    wl_scratch_close(&w->x);
    wl_stage_close(&w->stage);
  }
  for (int i = 0; i < t->n_cols && !rc; i++) {
    rc = wl_column_make(j->segments[i], j->n_tablets, n_threads, false, &cols[i], err);
    j->segments[i] = NULL; /* wl_column_make owns them, even if it fails */
  }
  for (int i = 0; j->segments && i < t->n_cols; i++) {
    for (int k = 0; j->segments[i] && k < j->n_tablets; k++) wl_segment_free(&j->segments[i][k]);
    wl_mem_free(j->segments[i]);
  }
  wl_mem_free(j->segments);
  wl_mem_free(j->workers);
  return rc;
}

/* Finds the rowids of the new rows: given by a column, or the next free ones. */
static wl_status find_rowids(wl_tablets *t, wl_column *const *cols, wl_i64 n, wl_i64 **rowids,
                             wl_i64 *first, wl_error *err) {
  wl_i64 next;
  wl_status rc = wl_row_new_rowid(t, &next, err);
  if (rc) return rc;
  wl_i64 last_there = t->n_tablets ? t->tablets[t->n_tablets - 1].hi : WL_I64_MIN;
  if (last_there == WL_I64_MAX) return wl_not_taken(err, "no larger rowid is left");
  if (last_there >= next) next = last_there + 1;
  const wl_column *c = t->decl->rowid_col >= 0 ? cols[t->decl->rowid_col] : NULL;
  *first = next;
  if (next < 1 || next > WL_I64_MAX - n) return wl_not_taken(err, "too few larger rowids are left");
  if (!c || c->domain.mask == WL_M(WL_T_NULL)) return WL_OK;
  if (c->domain.mask != WL_M(WL_T_INT))
    return wl_not_taken(err, "a rowid is NULL or not an integer");
  *rowids = wl_mem_alloc((size_t)n * sizeof **rowids);
  if (!*rowids) return wl_nomem(err);
  wl_i64 last = next - 1;
  for (wl_i64 i = 0; i < n; i++) {
    wl_i64 v = (wl_i64)wl_column_value(c, i).v;
    if (v <= last && !(i == 0 && !t->n_tablets && !t->n_delta))
      return wl_not_taken(err, "the rowids are not ascending");
    (*rowids)[i] = last = v;
  }
  return WL_OK;
}

wl_status wl_append_rows(wl_tablets *t, const struct ArrowSchema *schema,
                         const struct ArrowArray *rows, int n_threads, wl_i64 *rowid,
                         wl_error *err) {
  append_job j = {.t = t, .n_rows = rows->length};
  wl_column **cols = NULL;
  wl_i64 *rowids = NULL, first = 0;
  wl_refusal refusal = {0};
  wl_status rc = wl_tablets_refresh(t, err);
  if (rc) return rc;
  if (schema->n_children != t->n_cols || rows->n_children != t->n_cols)
    return wl_fail(err, WL_ERROR, "warplite_append: table %.100s has %d columns but %d are given",
                   t->name, t->n_cols, (int)schema->n_children);
  if (t->decl->n_checks || t->decl->n_keys) return wl_not_taken(err, "the table has constraints");
  if (!j.n_rows) return WL_OK;
  j.n_tablets = (int)((j.n_rows + WL_TABLET_ROWS - 1) >> WL_TABLET_SHIFT);
  j.sources = wl_mem_zalloc((size_t)t->n_cols * sizeof *j.sources);
  cols = wl_mem_zalloc((size_t)t->n_cols * sizeof *cols);
  if (!j.sources || !cols) rc = wl_nomem(err);
  for (int i = 0; i < t->n_cols && !rc; i++)
    rc = read_source(schema->children[i], rows->children[i], rows->offset, &j.sources[i], err);
  if (!rc) rc = make_columns(&j, n_threads, cols, err);
  if (!rc) rc = find_rowids(t, cols, j.n_rows, &rowids, &first, err);
  if (!rc) rc = wl_bulk_append(t, j.n_rows, cols, rowids, first, n_threads, &refusal, err);
  if (!rc) *rowid = rowids ? rowids[j.n_rows - 1] : first + j.n_rows - 1;
  for (int i = 0; cols && i < t->n_cols; i++) wl_column_drop(cols[i]);
  wl_mem_free(cols);
  wl_mem_free(j.sources);
  wl_mem_free(rowids);
  return rc;
}
