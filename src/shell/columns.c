/*
** A window of parsed records as columns, for warplite_append(): an Arrow stream of one array, one
** child of texts for each column. It stands between csv.c and the library.
**
** Invariants:
** 1. The stream borrows nothing: texts are copied, column by column, on all cores.
** 2. Texts have 64-bit offsets (format U), so no window is too large.
*/
#include "csv.h"
#include "shell.h"
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_column {
  const void *buffers[3]; /* validity, offsets, bytes */
  int64_t n_nulls;
} text_column;

typedef struct table_columns {
  int n_cols;
  int64_t n_rows;
  text_column *cols;
  struct ArrowArray *arrays, **children;
  const void *no_buffers[1];
} table_columns;

static void free_columns(table_columns *t) {
  for (int i = 0; t->cols && i < t->n_cols; i++)
    for (int k = 0; k < 3; k++) free((void *)t->cols[i].buffers[k]);
  free(t->cols);
  free(t->arrays);
  free(t->children);
  free(t);
}

/* ---- from cells to columns */

typedef struct copying {
  const wl_csv_window *w;
  table_columns *t;
  int first, step; /* this thread's columns */
  bool ok;
} copying;

static bool copy_column(const wl_csv_window *w, int n_cols, int col, int64_t n_rows,
                        text_column *out) {
  size_t n_bytes = 0;
  for (int p = 0; p < w->n_parts; p++)
    for (size_t r = 0; r < w->parts[p].n_rows; r++)
      n_bytes += w->parts[p].cells[r * (size_t)n_cols + (size_t)col].n;
  int64_t *offsets = malloc(((size_t)n_rows + 1) * sizeof *offsets), at = 0, row = 0;
  char *bytes = malloc(n_bytes + 1);
  unsigned char *valid = NULL;
  out->buffers[1] = offsets;
  out->buffers[2] = bytes;
  if (!offsets || !bytes) return false;
  offsets[0] = 0;
  for (int p = 0; p < w->n_parts; p++)
    for (size_t r = 0; r < w->parts[p].n_rows; r++, row++) {
      wl_csv_cell c = w->parts[p].cells[r * (size_t)n_cols + (size_t)col];
      if (!c.z) {
        if (!valid) {
          valid = malloc((size_t)n_rows / 8 + 1);
          if (!valid) return false;
          memset(valid, 0xff, (size_t)n_rows / 8 + 1);
          out->buffers[0] = valid;
        }
        valid[row >> 3] &= (unsigned char)~(1u << (row & 7));
        out->n_nulls++;
      } else {
        memcpy(bytes + at, c.z, c.n);
        at += (int64_t)c.n;
      }
      offsets[row + 1] = at;
    }
  return true;
}

static void *copy_some(void *arg) {
  copying *k = arg;
  for (int i = k->first; i < k->t->n_cols && k->ok; i += k->step)
    k->ok = copy_column(k->w, k->t->n_cols, i, k->t->n_rows, &k->t->cols[i]);
  return NULL;
}

enum { MAX_COPIERS = 64 };

static bool copy_all(const wl_csv_window *w, table_columns *t, int n_threads) {
  pthread_t threads[MAX_COPIERS];
  copying k[MAX_COPIERS];
  bool on[MAX_COPIERS], ok = true;
  int n = n_threads < t->n_cols ? n_threads : t->n_cols;
  if (n > MAX_COPIERS) n = MAX_COPIERS;
  for (int i = 0; i < n; i++) {
    k[i] = (copying){w, t, i, n, true};
    on[i] = i + 1 < n && pthread_create(&threads[i], NULL, copy_some, &k[i]) == 0;
    if (!on[i]) copy_some(&k[i]);
  }
  for (int i = 0; i < n; i++) {
    if (on[i]) pthread_join(threads[i], NULL);
    ok &= k[i].ok;
  }
  return ok;
}

/* ---- the stream */

static void release_child_schema(struct ArrowSchema *s) {
  s->release = NULL;
}

static void release_schema(struct ArrowSchema *s) {
  for (int64_t i = 0; i < s->n_children; i++)
    if (s->children[i]->release) s->children[i]->release(s->children[i]);
  free(s->private_data);
  free(s->children);
  s->release = NULL;
}

static int get_schema(struct ArrowArrayStream *in, struct ArrowSchema *out) {
  const table_columns *t = in->private_data;
  struct ArrowSchema *all = calloc((size_t)t->n_cols, sizeof *all);
  struct ArrowSchema **children = calloc((size_t)t->n_cols, sizeof *children);
  if (!all || !children) {
    free(all);
    free(children);
    return ENOMEM;
  }
  for (int i = 0; i < t->n_cols; i++) {
    all[i] = (struct ArrowSchema){
        .format = "U", .name = "", .flags = ARROW_FLAG_NULLABLE, .release = release_child_schema};
    children[i] = &all[i];
  }
  *out = (struct ArrowSchema){.format = "+s",
                              .name = "",
                              .n_children = t->n_cols,
                              .children = children,
                              .release = release_schema,
                              .private_data = all};
  return 0;
}

static void release_child(struct ArrowArray *a) {
  a->release = NULL;
}

static void release_array(struct ArrowArray *a) {
  free_columns(a->private_data);
  a->release = NULL;
}

/* Gives the one array, which takes the columns along. */
static int get_next(struct ArrowArrayStream *in, struct ArrowArray *out) {
  table_columns *t = in->private_data;
  memset(out, 0, sizeof *out);
  if (!t->cols) return 0;
  table_columns *own = malloc(sizeof *own);
  if (!own) return ENOMEM;
  *own = *t;
  t->cols = NULL;
  t->arrays = NULL;
  t->children = NULL;
  for (int i = 0; i < own->n_cols; i++) {
    own->arrays[i] = (struct ArrowArray){.length = own->n_rows,
                                         .null_count = own->cols[i].n_nulls,
                                         .n_buffers = 3,
                                         .buffers = own->cols[i].buffers,
                                         .release = release_child};
    own->children[i] = &own->arrays[i];
  }
  *out = (struct ArrowArray){.length = own->n_rows,
                             .n_buffers = 1,
                             .buffers = own->no_buffers,
                             .n_children = own->n_cols,
                             .children = own->children,
                             .release = release_array,
                             .private_data = own};
  return 0;
}

static const char *last_error(struct ArrowArrayStream *in) {
  (void)in;
  return NULL;
}

static void release_stream(struct ArrowArrayStream *in) {
  free_columns(in->private_data);
  in->release = NULL;
}

bool wl_columns_of(const wl_csv_window *w, int n_cols, int n_threads,
                   struct ArrowArrayStream *out) {
  table_columns *t = calloc(1, sizeof *t);
  if (!t) return false;
  t->n_cols = n_cols;
  for (int p = 0; p < w->n_parts; p++) t->n_rows += (int64_t)w->parts[p].n_rows;
  t->cols = calloc((size_t)n_cols, sizeof *t->cols);
  t->arrays = calloc((size_t)n_cols, sizeof *t->arrays);
  t->children = calloc((size_t)n_cols, sizeof *t->children);
  if (!t->cols || !t->arrays || !t->children || !copy_all(w, t, n_threads)) {
    free_columns(t);
    return false;
  }
  *out = (struct ArrowArrayStream){get_schema, get_next, last_error, release_stream, t};
  return true;
}
