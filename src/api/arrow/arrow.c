/*
** warplite_query(): returns the rows of a statement as an Arrow C stream.
**
** Invariants:
** 1. The column memory of a batch is shared, not copied. Every array that points into it holds the
**    batch, and the last release frees it. Only validity bitmaps, converted numbers and unions are
**    allocated here.
** 2. The stream's schema is known before the first batch: from the program's result domains or, for
**    a statement that SQLite runs, from all of its rows.
** 3. Any thread may release arrays, in any order, whether children have been moved out or not.
*/
#include "api/arrow/arrow.h"
#include "api/enable.h"
#include "base/mem.h"
#include "value/conv.h"
#include "value/exchange.h"
#include "program/compile.h"
#include "value/domain.h"
#include "column/dict.h"
#include "exec/gpu/sinks/device_rows.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef wl_arrow_stream stream;
typedef wl_arrow_format format;
static const char *const format_text[] = {"n", "l", "g", "u", "z", "+ud:0,1,2,3"};

/* ---- schemas */

static void schema_release(struct ArrowSchema *s) {
  for (int64_t i = 0; i < s->n_children; i++) {
    if (s->children[i]->release) s->children[i]->release(s->children[i]);
    wl_mem_free(s->children[i]);
  }
  wl_mem_free(s->children);
  wl_mem_free((void *)s->name);
  s->release = NULL;
}

static int schema_make(struct ArrowSchema *s, const char *fmt, const char *name, int n_children) {
  memset(s, 0, sizeof *s);
  s->format = fmt;
  s->name = wl_mem_strdup(name);
  s->flags = ARROW_FLAG_NULLABLE;
  s->release = schema_release;
  if (n_children) s->children = wl_mem_zalloc((size_t)n_children * sizeof *s->children);
  if (!s->name || (n_children && !s->children)) return ENOMEM;
  for (; s->n_children < n_children; s->n_children++) {
    s->children[s->n_children] = wl_mem_zalloc(sizeof *s);
    if (!s->children[s->n_children]) return ENOMEM;
  }
  return 0;
}

int wl_arrow_schema(stream *s, bool large, struct ArrowSchema *out) {
  static const char *const union_names[] = {"integer", "real", "text", "blob"};
  int rc = schema_make(out, "+s", "", s->of.n_cols);
  out->flags = 0;
  for (int i = 0; i < s->of.n_cols && !rc; i++) {
    struct ArrowSchema *c = out->children[i];
    format f = s->formats[i];
    const char *text = large && f == WL_ARROW_TEXT   ? "U"
                       : large && f == WL_ARROW_BLOB ? "Z"
                                                     : format_text[f];
    rc = schema_make(c, text, s->of.names[i], f == WL_ARROW_UNION ? 4 : 0);
    for (int k = 0; k < c->n_children && !rc; k++)
      rc = schema_make(c->children[k], format_text[WL_ARROW_INT + k], union_names[k], 0);
  }
  if (rc) {
    out->release(out);
    snprintf(s->message, sizeof s->message, "out of memory");
  }
  return rc;
}

static int get_schema(struct ArrowArrayStream *p, struct ArrowSchema *out) {
  return wl_arrow_schema(p->private_data, false, out);
}

/* ---- arrays */

enum { MAX_OWNED = 8 };

/* A batch and the arrays that point into its memory. */
typedef struct shared {
  wl_batch *batch;
  atomic_int refs;
} shared;

static void shared_drop(shared *s) {
  if (!s || atomic_fetch_sub(&s->refs, 1) > 1) return;
  wl_batch_give(s->batch);
  wl_mem_free(s);
}

int wl_arrow_children_make(struct ArrowArray *a, int n) {
  if (n) a->children = wl_mem_zalloc((size_t)n * sizeof *a->children);
  if (n && !a->children) return ENOMEM;
  for (; a->n_children < n; a->n_children++) {
    a->children[a->n_children] = wl_mem_zalloc(sizeof *a);
    if (!a->children[a->n_children]) return ENOMEM;
  }
  return 0;
}

void wl_arrow_children_close(struct ArrowArray *a) {
  for (int64_t i = 0; i < a->n_children; i++) {
    if (a->children[i]->release) a->children[i]->release(a->children[i]);
    wl_mem_free(a->children[i]);
  }
  wl_mem_free(a->children);
}

/* What an array owns: memory allocated here, and a share of the batch. */
typedef struct owned {
  void *memory[MAX_OWNED];
  int n;
  shared *batch;
  const void *buffers[3];
} owned;

static void array_release(struct ArrowArray *a) {
  owned *o = a->private_data;
  wl_arrow_children_close(a);
  for (int i = 0; i < o->n; i++) wl_mem_free(o->memory[i]);
  shared_drop(o->batch);
  wl_mem_free(o);
  a->release = NULL;
}

static int array_make(struct ArrowArray *a, wl_i64 n_rows, int n_buffers, int n_children) {
  memset(a, 0, sizeof *a);
  owned *o = wl_mem_zalloc(sizeof *o);
  if (!o) return ENOMEM;
  a->length = n_rows;
  a->n_buffers = n_buffers;
  a->buffers = o->buffers;
  a->private_data = o;
  a->release = array_release;
  return wl_arrow_children_make(a, n_children);
}

static void *own(struct ArrowArray *a, size_t n_bytes) {
  owned *o = a->private_data;
  void *p = wl_mem_zalloc(n_bytes + 8);
  if (p) o->memory[o->n++] = p;
  return p;
}

/* Makes a validity bitmap from bytes and sets the null count. Without NULLs there is no bitmap. */
static int validity(struct ArrowArray *a, const wl_u8 *t, wl_i64 n) {
  wl_i64 nulls = 0;
  if (!t) return 0;
  for (wl_i64 i = 0; i < n; i++) nulls += t[i] == 0;
  a->null_count = nulls;
  if (nulls == 0) return 0;
  wl_u8 *bits = own(a, (size_t)(n + 7) / 8);
  if (!bits) return ENOMEM;
  for (wl_i64 i = 0; i < n; i++) bits[i >> 3] |= (wl_u8)((t[i] != 0) << (i & 7));
  a->buffers[0] = bits;
  return 0;
}

static int fixed_array(struct ArrowArray *a, const wl_outcol *c, wl_reg r, format f, wl_i64 skip,
                       wl_i64 n) {
  int rc = array_make(a, n, 2, 0);
  if (!rc) rc = validity(a, c->t ? c->t + skip : NULL, n);
  if (rc) return rc;
  a->buffers[1] = c->v + skip;
  bool convert = r.type == WL_R_ANY || (f == WL_ARROW_REAL && r.type == WL_R_INT);
  if (!convert) return 0;
  /* Integers among reals. Each is exact as a real. */
  double *d = own(a, (size_t)n * 8);
  if (!d) return ENOMEM;
  for (wl_i64 i = 0; i < n; i++) {
    wl_u64 v = c->v[skip + i];
    bool real = r.type == WL_R_ANY && c->t[skip + i] == WL_T_REAL;
    d[i] = real ? wl_as_f64(v) : (double)(wl_i64)v;
  }
  a->buffers[1] = d;
  return 0;
}

/* Converts codes of a dictionary to texts. */
static int coded_array(struct ArrowArray *a, const wl_outcol *c, const wl_dict *d, wl_i64 skip,
                       wl_i64 n) {
  int rc = array_make(a, n, 3, 0);
  if (!rc) rc = validity(a, c->t ? c->t + skip : NULL, n);
  if (rc) return rc;
  wl_i32 *offsets = own(a, ((size_t)n + 1) * 4);
  if (!offsets) return ENOMEM;
  wl_u64 at = 0;
  for (wl_i64 i = 0; i < n; i++) {
    if (!c->t || c->t[skip + i]) at += d->places[c->v[skip + i]] >> 32;
    if (at > 0x7fffffff) return EOVERFLOW;
    offsets[i + 1] = (wl_i32)at;
  }
  wl_u8 *heap = own(a, (size_t)at);
  if (!heap) return ENOMEM;
  for (wl_i64 i = 0; i < n; i++) {
    size_t size = (size_t)(offsets[i + 1] - offsets[i]);
    if (size) memcpy(heap + offsets[i], d->heap + (wl_u32)d->places[c->v[skip + i]], size);
  }
  a->buffers[1] = offsets;
  a->buffers[2] = heap;
  return 0;
}

static int bytes_array(struct ArrowArray *a, const wl_outcol *c, wl_reg r, wl_i64 skip, wl_i64 n) {
  int rc = array_make(a, n, 3, 0);
  if (!rc) rc = validity(a, c->t ? c->t + skip : NULL, n);
  if (rc) return rc;
  a->buffers[2] = c->heap ? (const void *)c->heap : "";
  if (r.type == WL_R_TEXT) {
    a->buffers[1] = c->offsets + skip;
    return 0;
  }
  /* Blobs, with their heap in row order, or a text column of NULLs only. */
  wl_i32 *offsets = own(a, ((size_t)n + 1) * 4);
  if (!offsets) return ENOMEM;
  wl_i32 at = 0;
  bool begun = false;
  for (wl_i64 i = 0; i < n; i++) {
    if (r.type == WL_R_ANY && c->t[skip + i] >= WL_T_TEXT) {
      if (!begun) {
        at = (wl_i32)c->v[skip + i];
        for (wl_i64 k = 0; k <= i; k++) offsets[k] = at;
        begun = true;
      }
      at += (wl_i32)c->n[skip + i];
    }
    offsets[i + 1] = at;
  }
  a->buffers[1] = offsets;
  return 0;
}

/* Makes a dense union. NULL is a NULL of the first child. */
static int union_array(struct ArrowArray *a, const wl_batch *b, const wl_reg *regs, int col,
                       wl_i64 skip, wl_i64 n) {
  int rc = array_make(a, n, 2, 4);
  if (rc) return rc;
  wl_i8 *ids = own(a, (size_t)n);
  wl_i32 *places = own(a, (size_t)n * 4);
  if (!ids || !places) return ENOMEM;
  a->buffers[0] = ids;
  a->buffers[1] = places;
  wl_i64 count[4] = {0}, bytes[4] = {0};
  for (wl_i64 i = 0; i < n; i++) {
    wl_val v = wl_batch_value(b, regs, col, skip + i);
    int k = v.t == WL_T_NULL ? 0 : v.t - WL_T_INT;
    ids[i] = (wl_i8)k;
    places[i] = (wl_i32)count[k]++;
    bytes[k] += v.n;
  }
  for (int k = 0; k < 4; k++) {
    struct ArrowArray *c = a->children[k];
    rc = array_make(c, count[k], k < 2 ? 2 : 3, 0);
    void *values = rc ? NULL : own(c, k < 2 ? (size_t)count[k] * 8 : ((size_t)count[k] + 1) * 4);
    wl_u8 *heap = k >= 2 && !rc ? own(c, (size_t)bytes[k]) : NULL;
    wl_u8 *valid = k == 0 && !rc ? own(c, (size_t)(count[0] + 7) / 8) : NULL;
    if (!values || (k >= 2 && !heap) || (k == 0 && !valid)) return ENOMEM;
    c->buffers[1] = values;
    if (k >= 2) c->buffers[2] = heap;
    wl_i64 at = 0, used = 0;
    for (wl_i64 i = 0; i < n; i++) {
      if (ids[i] != k) continue;
      wl_val v = wl_batch_value(b, regs, col, skip + i);
      if (k < 2) {
        ((wl_u64 *)values)[at] = v.v;
      } else {
        if (v.n) memcpy(heap + used, wl_bytes(v), v.n);
        used += v.n;
        ((wl_i32 *)values)[at + 1] = (wl_i32)used;
      }
      if (k == 0 && v.t == WL_T_NULL)
        c->null_count++;
      else if (k == 0)
        valid[at >> 3] |= (wl_u8)(1 << (at & 7));
      at++;
    }
    if (c->null_count) c->buffers[0] = valid;
  }
  return 0;
}

static int column_array(struct ArrowArray *a, const wl_batch *b, const wl_reg *regs, int col,
                        format f) {
  wl_i64 skip = b->skip, n = b->n_rows - skip;
  const wl_outcol *c = &b->cols[col];
  const wl_dict *dict = wl_batch_dict(b, col);
  if (dict) return coded_array(a, c, dict, skip, n);
  switch (f) {
  case WL_ARROW_NULL: {
    int rc = array_make(a, n, 0, 0);
    a->null_count = n;
    return rc;
  }
  case WL_ARROW_INT:
  case WL_ARROW_REAL: return fixed_array(a, c, regs[col], f, skip, n);
  case WL_ARROW_TEXT:
  case WL_ARROW_BLOB: return bytes_array(a, c, regs[col], skip, n);
  default: return union_array(a, b, regs, col, skip, n);
  }
}

static int get_next(struct ArrowArrayStream *p, struct ArrowArray *out) {
  stream *s = p->private_data;
  wl_error err = {0};
  wl_batch *b = NULL;
  memset(out, 0, sizeof *out);
  if (s->failed) return EIO;
  sqlite3_mutex *m = sqlite3_db_mutex(s->of.conn->db);
  sqlite3_mutex_enter(m);
  wl_status rc = wl_answer_next(&s->of.answer, &b, &err);
  sqlite3_mutex_leave(m);
  if (rc) {
    snprintf(s->message, sizeof s->message, "%s", err.text);
    snprintf(s->of.conn->errmsg, sizeof s->of.conn->errmsg, "%s", err.text);
    s->failed = true;
    return rc == WL_NOMEM ? ENOMEM : rc == WL_INTERRUPT ? EINTR : EIO;
  }
  if (!b) return 0; /* out->release stays NULL, which marks the end */
  const wl_reg *regs = wl_run_regs(s->of.answer.run);
  shared *all = wl_mem_zalloc(sizeof *all);
  int e = all ? array_make(out, b->n_rows - b->skip, 1, s->of.n_cols) : ENOMEM;
  if (all) {
    all->batch = b;
    atomic_init(&all->refs, 1);
  }
  for (int i = 0; i < s->of.n_cols && !e; i++) {
    struct ArrowArray *child = out->children[i];
    e = column_array(child, b, regs, i, s->formats[i]);
    if (child->release) {
      ((owned *)child->private_data)->batch = all;
      atomic_fetch_add(&all->refs, 1);
    }
  }
  if (!e) s->of.answer.n_rows += out->length;
  if (e && out->release) out->release(out);
  if (all)
    shared_drop(all);
  else
    wl_batch_give(b);
  if (e) {
    memset(out, 0, sizeof *out);
    snprintf(s->message, sizeof s->message, "%s",
             e == EOVERFLOW ? "string or blob too big" : "out of memory");
    s->failed = true;
  }
  return e;
}

static const char *get_last_error(struct ArrowArrayStream *p) {
  stream *s = p->private_data;
  return *s->message ? s->message : NULL;
}

void wl_arrow_close(stream *s) {
  wl_opened_close(&s->of);
  wl_mem_free(s->formats);
  wl_mem_free(s);
}

static void stream_release(struct ArrowArrayStream *p) {
  stream *s = p->private_data;
  wl_conn *c = s->of.conn;
  sqlite3_mutex *m = sqlite3_db_mutex(c->db);
  sqlite3_mutex_enter(m);
  wl_streams_leave(c);
  wl_arrow_close(s);
  sqlite3_mutex_leave(m);
  p->release = NULL;
}

/* ---- opening */

static format format_of(const wl_domain *d, const char *decl) {
  wl_u8 type;
  if (!wl_domain_one_type(d, &type)) return WL_ARROW_UNION;
  if (type)
    return type == WL_T_INT    ? WL_ARROW_INT
           : type == WL_T_REAL ? WL_ARROW_REAL
           : type == WL_T_TEXT ? WL_ARROW_TEXT
                               : WL_ARROW_BLOB;
  if (!decl) return WL_ARROW_NULL;
  char affinity = wl_affinity_of_type(decl);
  return affinity == 'A'   ? WL_ARROW_BLOB
         : affinity == 'B' ? WL_ARROW_TEXT
         : affinity == 'D' ? WL_ARROW_INT
                           : WL_ARROW_REAL;
}

/* Ends a statement whose rows are on the device. Only the names of its columns are kept. */
static void end_statement(wl_opened *of) {
  of->answer.n_rows = of->stays->n_rows;
  wl_answer_close(&of->answer);
  of->conn = NULL;
}

static wl_status open_stream(wl_conn *c, const char *sql, const wl_bindings *b, stream *s,
                             wl_error *err) {
  wl_status rc = wl_opened_open(c, sql, b, &s->of, err);
  if (rc) return rc;
  s->formats = wl_mem_zalloc((size_t)s->of.n_cols * sizeof *s->formats);
  if (!s->formats) return wl_nomem(err);
  const wl_program *p = wl_run_program(s->of.answer.run);
  for (int i = 0; i < s->of.n_cols; i++)
    s->formats[i] = format_of(&p->results[i].domain, s->of.types[i]);
  if (s->of.stays && s->of.stays->on_device)
    end_statement(&s->of);
  else
    wl_streams_enter(c);
  return WL_OK;
}

int wl_arrow_open(sqlite3 *db, const char *sql, sqlite3_stmt *stmt, wl_device_rows *stays,
                  stream **out) {
  wl_error err = {0};
  *out = NULL;
  int rc = warplite_enable(db);
  if (rc) return rc;
  sqlite3_mutex *m = sqlite3_db_mutex(db);
  sqlite3_mutex_enter(m);
  wl_conn *c = wl_conn_find(db);
  wl_bindings bindings = {0};
  stream *s = *out = wl_mem_zalloc(sizeof *s);
  wl_status st = s ? WL_OK : wl_nomem(&err);
  if (s) s->of.stays = stays;
  if (!st && stmt) st = wl_bindings_read(stmt, &bindings, &err);
  if (!st) st = open_stream(c, sql, &bindings, s, &err);
  wl_bindings_close(&bindings);
  if (st) {
    snprintf(c->errmsg, sizeof c->errmsg, "%s", err.text);
    if (s) wl_arrow_close(s);
    *out = NULL;
  }
  sqlite3_mutex_leave(m);
  return st == WL_NOT_TAKEN ? SQLITE_ERROR : (int)st;
}

int wl_arrow_open_stmt(sqlite3_stmt *stmt, wl_device_rows *stays, stream **out) {
  if (!wl_api_bind(NULL)) return SQLITE_ERROR;
  if (!sqlite3_sql(stmt) || sqlite3_stmt_busy(stmt)) return SQLITE_MISUSE;
  char *sql = wl_original_text(stmt);
  if (!sql) return SQLITE_NOMEM;
  int rc = wl_arrow_open(sqlite3_db_handle(stmt), sql, stmt, stays, out);
  sqlite3_free(sql);
  return rc;
}

void wl_arrow_export(stream *s, struct ArrowArrayStream *out) {
  out->get_schema = get_schema;
  out->get_next = get_next;
  out->get_last_error = get_last_error;
  out->release = stream_release;
  out->private_data = s;
}

int warplite_query(sqlite3 *db, const char *zSql, struct ArrowArrayStream *out) {
  stream *s;
  if (!db || !zSql || !out) return SQLITE_MISUSE;
  memset(out, 0, sizeof *out);
  int rc = wl_arrow_open(db, zSql, NULL, NULL, &s);
  if (!rc) wl_arrow_export(s, out);
  return rc;
}

int warplite_query_stmt(sqlite3_stmt *pStmt, struct ArrowArrayStream *out) {
  stream *s;
  if (!pStmt || !out) return SQLITE_MISUSE;
  memset(out, 0, sizeof *out);
  int rc = wl_arrow_open_stmt(pStmt, NULL, &s);
  if (!rc) wl_arrow_export(s, out);
  return rc;
}
