/*
** Turns a window of parsed records into columns, for warplite_append(): an Arrow stream with one
** array, which has a child of texts for each column.
**
** Invariants:
** 1. The stream owns its memory. All cores copy the texts, part by part.
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

/* ---- from cells to columns: a thread for each part, all its columns row by row */

typedef struct copying {
  const wl_csv_part *part;
  table_columns *t;
  int64_t first; /* the part's first row */
  int64_t *at;   /* [n_cols]: first the part's number of bytes, then the offset where they go */
  bool counting;
} copying;

static void *copy_part(void *arg) {
  copying *k = arg;
  int n_cols = k->t->n_cols;
  const wl_csv_cell *c = k->part->cells;
  if (k->counting) {
    for (size_t r = 0; r < k->part->n_rows; r++)
      for (int i = 0; i < n_cols; i++, c++) k->at[i] += (int64_t)c->n;
    return NULL;
  }
  for (size_t r = 0; r < k->part->n_rows; r++)
    for (int i = 0; i < n_cols; i++, c++) {
      if (c->n) memcpy((char *)k->t->cols[i].buffers[2] + k->at[i], c->z, c->n);
      k->at[i] += (int64_t)c->n;
      ((int64_t *)k->t->cols[i].buffers[1])[k->first + (int64_t)r + 1] = k->at[i];
    }
  return NULL;
}

static void copy_parts(copying *all, int n, bool counting) {
  pthread_t *threads = calloc((size_t)n, sizeof *threads);
  bool *on = calloc((size_t)n, sizeof *on);
  for (int i = 0; i < n; i++) {
    all[i].counting = counting;
    bool apart =
        threads && on && i + 1 < n && pthread_create(&threads[i], NULL, copy_part, &all[i]) == 0;
    if (apart)
      on[i] = true;
    else
      copy_part(&all[i]);
  }
  for (int i = 0; threads && on && i < n; i++)
    if (on[i]) pthread_join(threads[i], NULL);
  free(threads);
  free(on);
}

/* Marks cells without a value as NULL. They come from records that are too short; each of these has
** a note. */
static bool mark_nulls(const copying *k) {
  table_columns *t = k->t;
  size_t n_valid = (size_t)t->n_rows / 8 + 1;
  for (size_t i = 0; i < k->part->n_notes; i++) {
    size_t r = k->part->notes[i].row;
    if (r >= k->part->n_rows) continue;
    for (int c = 0; c < t->n_cols; c++) {
      if (k->part->cells[r * (size_t)t->n_cols + (size_t)c].z) continue;
      unsigned char *valid = (unsigned char *)t->cols[c].buffers[0];
      if (!valid) {
        t->cols[c].buffers[0] = valid = malloc(n_valid);
        if (!valid) return false;
        memset(valid, 0xff, n_valid);
      }
      int64_t row = k->first + (int64_t)r;
      t->cols[c].n_nulls += valid[row >> 3] >> (row & 7) & 1;
      valid[row >> 3] &= (unsigned char)~(1u << (row & 7));
    }
  }
  return true;
}

static bool copy_all(const wl_csv_window *w, table_columns *t) {
  int n = w->n_parts;
  copying *all = calloc((size_t)n, sizeof *all);
  int64_t *at = calloc((size_t)n * (size_t)t->n_cols, sizeof *at), row = 0;
  bool ok = all && at;
  for (int p = 0; ok && p < n; p++) {
    all[p] = (copying){&w->parts[p], t, row, at + p * t->n_cols, true};
    row += (int64_t)w->parts[p].n_rows;
  }
  if (ok) copy_parts(all, n, true);
  for (int i = 0; ok && i < t->n_cols; i++) {
    int64_t sum = 0, *offsets = malloc(((size_t)t->n_rows + 1) * sizeof *offsets);
    for (int p = 0; p < n; p++) {
      int64_t bytes = all[p].at[i];
      all[p].at[i] = sum;
      sum += bytes;
    }
    t->cols[i].buffers[1] = offsets;
    t->cols[i].buffers[2] = malloc((size_t)sum + 1);
    ok = offsets && t->cols[i].buffers[2];
    if (ok) offsets[0] = 0;
  }
  if (ok) copy_parts(all, n, false);
  for (int p = 0; ok && p < n; p++) ok = mark_nulls(&all[p]);
  free(all);
  free(at);
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

/* Returns the only array, which owns the columns from then on. */
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

bool wl_columns_of(const wl_csv_window *w, int n_cols, struct ArrowArrayStream *out) {
  table_columns *t = calloc(1, sizeof *t);
  if (!t) return false;
  t->n_cols = n_cols;
  for (int p = 0; p < w->n_parts; p++) t->n_rows += (int64_t)w->parts[p].n_rows;
  t->cols = calloc((size_t)n_cols, sizeof *t->cols);
  t->arrays = calloc((size_t)n_cols, sizeof *t->arrays);
  t->children = calloc((size_t)n_cols, sizeof *t->children);
  if (!t->cols || !t->arrays || !t->children || !copy_all(w, t)) {
    free_columns(t);
    return false;
  }
  *out = (struct ArrowArrayStream){get_schema, get_next, last_error, release_stream, t};
  return true;
}
