/*
** warplite_query_device(): returns the rows of a statement as a stream of Arrow's C device data
** interface. Rows that stay on the device (exec/gpu/sinks/device_rows.h) are arrays over its
** memory. Other rows are the arrays of warplite_query().
**
** Invariants:
** 1. Rows on the device are all there when the stream is opened. The statement has ended then, so
**    the stream does not use the connection.
** 2. Every array holds the batch whose memory it points into. The last release frees it, on any
**    thread.
** 3. Work on the memory has ended before the array is given, so there is no event to wait for.
*/
#include "api/arrow/arrow.h"
#include "base/mem.h"
#include "exec/gpu/sinks/device_rows.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct stream {
  wl_device_rows rows;
  wl_arrow_stream *of;          /* names and formats; NULL if the rows are on the host */
  struct ArrowArrayStream host; /* the rows on the host */
} stream;

/* ---- arrays */

/* What an array owns. */
typedef struct owned {
  wl_device_batch *batch; /* a reference */
  const void *buffers[3];
} owned;

static void array_release(struct ArrowArray *a) {
  owned *o = a->private_data;
  wl_arrow_children_close(a);
  wl_device_batch_drop(o->batch);
  wl_mem_free(o);
  a->release = NULL;
}

/* After a failure there is an array only if a->release is set. */
static int array_make(struct ArrowArray *a, wl_device_batch *b, int n_buffers, int n_children) {
  memset(a, 0, sizeof *a);
  owned *o = wl_mem_zalloc(sizeof *o);
  if (!o) return ENOMEM;
  o->batch = wl_device_batch_hold(b);
  a->length = b->n_rows;
  a->n_buffers = n_buffers;
  a->buffers = o->buffers;
  a->private_data = o;
  a->release = array_release;
  return wl_arrow_children_make(a, n_children);
}

static int column_array(struct ArrowArray *a, wl_device_batch *b, int col, wl_arrow_format f) {
  const wl_device_column *c = &b->cols[col];
  bool bytes = f == WL_ARROW_TEXT || f == WL_ARROW_BLOB;
  int rc = array_make(a, b, f == WL_ARROW_NULL ? 0 : bytes ? 3 : 2, 0);
  if (rc) return rc;
  a->null_count = c->n_nulls;
  a->buffers[0] = c->valid.p;
  a->buffers[1] = c->data.p;
  if (bytes) a->buffers[2] = c->bytes.p ? c->bytes.p : c->data.p; /* there are only NULLs */
  return 0;
}

static int batch_array(const stream *s, wl_device_batch *b, struct ArrowArray *out) {
  int rc = array_make(out, b, 1, b->n_cols);
  for (int k = 0; k < b->n_cols && !rc; k++)
    rc = column_array(out->children[k], b, k, s->of->formats[k]);
  if (rc && out->release) out->release(out);
  return rc;
}

/* ---- the stream */

static bool on_cuda(const wl_device *d) {
  return strcmp(d->kind, "cuda") == 0;
}

static int get_schema(struct ArrowDeviceArrayStream *p, struct ArrowSchema *out) {
  stream *s = p->private_data;
  return s->of ? wl_arrow_schema(s->of, true, out) : s->host.get_schema(&s->host, out);
}

static int next_on_device(stream *s, struct ArrowDeviceArray *out) {
  wl_device_batch *b = s->rows.first;
  if (!b) return 0; /* out->array.release stays NULL, which marks the end */
  int rc = batch_array(s, b, &out->array);
  if (rc) {
    snprintf(s->of->message, sizeof s->of->message, "out of memory");
    memset(out, 0, sizeof *out);
    return rc;
  }
  wl_device_batch_drop(wl_device_rows_take(&s->rows));
  return 0;
}

static int get_next(struct ArrowDeviceArrayStream *p, struct ArrowDeviceArray *out) {
  stream *s = p->private_data;
  memset(out, 0, sizeof *out);
  int rc = s->of ? next_on_device(s, out) : s->host.get_next(&s->host, &out->array);
  out->device_type = p->device_type;
  out->device_id = p->device_type == ARROW_DEVICE_CPU ? -1 : 0; /* the plugin uses device 0 */
  return rc;
}

static const char *get_last_error(struct ArrowDeviceArrayStream *p) {
  stream *s = p->private_data;
  if (!s->of) return s->host.get_last_error(&s->host);
  return *s->of->message ? s->of->message : NULL;
}

static void stream_free(stream *s) {
  wl_device_rows_clear(&s->rows);
  if (s->of) wl_arrow_close(s->of);
  if (s->host.release) s->host.release(&s->host);
  wl_mem_free(s);
}

static void stream_release(struct ArrowDeviceArrayStream *p) {
  stream_free(p->private_data);
  p->release = NULL;
}

/* ---- opening */

static int query(sqlite3 *db, const char *sql, sqlite3_stmt *stmt,
                 struct ArrowDeviceArrayStream *out) {
  wl_arrow_stream *of = NULL;
  stream *s = wl_mem_zalloc(sizeof *s);
  if (!s) return SQLITE_NOMEM;
  int rc =
      stmt ? wl_arrow_open_stmt(stmt, &s->rows, &of) : wl_arrow_open(db, sql, NULL, &s->rows, &of);
  if (rc) {
    stream_free(s);
    return rc;
  }
  if (s->rows.on_device)
    s->of = of;
  else
    wl_arrow_export(of, &s->host);
  of->of.stays = NULL;
  bool cuda = s->of && on_cuda(s->rows.device);
  out->device_type = cuda ? ARROW_DEVICE_CUDA : ARROW_DEVICE_CPU;
  out->get_schema = get_schema;
  out->get_next = get_next;
  out->get_last_error = get_last_error;
  out->release = stream_release;
  out->private_data = s;
  return SQLITE_OK;
}

int warplite_query_device(sqlite3 *db, const char *zSql, struct ArrowDeviceArrayStream *out) {
  if (!db || !zSql || !out) return SQLITE_MISUSE;
  memset(out, 0, sizeof *out);
  return query(db, zSql, NULL, out);
}

int warplite_query_stmt_device(sqlite3_stmt *pStmt, struct ArrowDeviceArrayStream *out) {
  if (!pStmt || !out) return SQLITE_MISUSE;
  memset(out, 0, sizeof *out);
  return query(NULL, NULL, pStmt, out);
}
