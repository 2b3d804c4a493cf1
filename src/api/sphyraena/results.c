/*
** Runs the statement of a sphyraena, and brings back its rows. The run leaves batches, by column
** (column/batch.h). sphyraena_transfer_results() makes one block of rows of them, on all threads.
**
** Invariants:
** 1. The layout of the block follows from the values alone: a column with a text or blob takes 16
**    bytes, any other 8. Texts come in the order of rows, then columns.
** 2. Batches are measured as they arrive, so that a result that is too large ends the run.
*/
#include "api/open_query.h"
#include "api/sphyraena/sphyraena_impl.h"
#include "base/mem.h"
#include "base/tasks.h"
#include "column/dict.h"
#include "exec/run.h"
#include <stdio.h>
#include <string.h>

struct sphyraena_rows {
  wl_opened of; /* its answer is closed; the names are used */
  wl_run *run;  /* has the dictionaries of the batches */
  wl_batch **batches;
  wl_i64 *first; /* [n_batches] the number of the first row */
  wl_u64 *texts; /* [n_batches] bytes of the texts before, with NULs */
  int n, size;   /* batches */
  int n_cols;
  unsigned *masks; /* [n_cols] types that occur: bits WL_M(WL_T_…), without NULL */
  size_t *offsets; /* [n_cols] */
  size_t stride;
  wl_i64 n_rows;
  wl_u64 n_text; /* bytes of all texts, with NULs */
};

typedef struct sphyraena_rows rows;

static void rows_close(rows *p) {
  if (!p) return;
  for (int k = 0; k < p->n; k++) wl_batch_give(p->batches[k]);
  wl_opened_close(&p->of);
  wl_run_close(p->run);
  wl_mem_free(p->batches);
  wl_mem_free(p->first);
  wl_mem_free(p->texts);
  wl_mem_free(p->masks);
  wl_mem_free(p->offsets);
  wl_mem_free(p);
}

void wl_sphyraena_drop_results(sphyraena *s) {
  rows_close(s->results_gpu);
  s->results_gpu = NULL;
  wl_mem_free(s->results_cpu);
  s->results_cpu = NULL;
}

/* ---- running */

/* The value of a row, with dictionary codes as texts. */
static inline wl_val value_of(const wl_batch *b, const wl_reg *regs, const wl_dict *dict, int col,
                              wl_i64 row) {
  wl_val v = wl_batch_value(b, regs, col, row);
  return dict && v.t != WL_T_NULL ? wl_dict_value(dict, (wl_i64)v.v) : v;
}

static bool has_value(const wl_u8 *t, wl_i64 from, wl_i64 to) {
  if (!t) return from < to;
  while (from < to && !t[from]) from++;
  return from < to;
}

/* Adds the types of a column of a batch to its mask, and the bytes of its texts to n_text. */
static void measure_column(rows *p, const wl_batch *b, const wl_reg *regs, int col) {
  const wl_outcol *c = &b->cols[col];
  const wl_dict *dict = wl_batch_dict(b, col);
  wl_u8 type = regs[col].type;
  unsigned *mask = &p->masks[col];
  if (!dict && (type == WL_R_INT || type == WL_R_REAL)) {
    if (has_value(c->t, b->skip, b->n_rows)) *mask |= WL_M(type == WL_R_INT ? WL_T_INT : WL_T_REAL);
    return;
  }
  for (wl_i64 i = b->skip; i < b->n_rows; i++) {
    wl_val v = value_of(b, regs, dict, col, i);
    if (v.t != WL_T_NULL) *mask |= WL_M(v.t);
    if (v.t >= WL_T_TEXT) p->n_text += (wl_u64)v.n + 1;
  }
}

static bool has_text(unsigned mask) {
  return (mask & (WL_M(WL_T_TEXT) | WL_M(WL_T_BLOB))) != 0;
}

/* Places the values of a row behind the bytes with their types. */
static void lay_out(rows *p) {
  p->stride = ((size_t)p->n_cols + 7) & ~(size_t)7;
  for (int k = 0; k < p->n_cols; k++) {
    p->offsets[k] = p->stride;
    p->stride += has_text(p->masks[k]) ? sizeof(sphyraena_bytes) : 8;
  }
}

static size_t block_bytes(const rows *p) {
  return (size_t)p->n_rows * p->stride + (size_t)p->n_text;
}

static wl_status make_room(rows *p, wl_error *err) {
  if (p->n < p->size) return WL_OK;
  size_t old = (size_t)p->size, n = old ? 2 * old : 16;
  void *batches = wl_mem_realloc(p->batches, old * sizeof *p->batches, n * sizeof *p->batches);
  if (batches) p->batches = batches;
  void *first = wl_mem_realloc(p->first, old * sizeof *p->first, n * sizeof *p->first);
  if (first) p->first = first;
  void *texts = wl_mem_realloc(p->texts, old * sizeof *p->texts, n * sizeof *p->texts);
  if (texts) p->texts = texts;
  if (!batches || !first || !texts) return wl_nomem(err);
  p->size = (int)n;
  return WL_OK;
}

/* Takes all batches of the answer. *fits: the rows take no more than `most` bytes; 0: any number.
 */
static wl_status take(rows *p, size_t most, bool *fits, wl_error *err) {
  wl_batch *b = NULL;
  wl_status rc = WL_OK;
  lay_out(p);
  while (*fits && !(rc = wl_answer_next(&p->of.answer, &b, err)) && b) {
    const wl_reg *regs = wl_run_regs(p->of.answer.run);
    rc = make_room(p, err);
    if (rc) {
      wl_batch_give(b);
      return rc;
    }
    p->batches[p->n] = b;
    p->first[p->n] = p->n_rows;
    p->texts[p->n++] = p->n_text;
    p->n_rows += b->n_rows - b->skip;
    p->of.answer.n_rows = p->n_rows;
    for (int k = 0; k < p->n_cols; k++) measure_column(p, b, regs, k);
    lay_out(p);
    *fits = !most || block_bytes(p) <= most;
  }
  return rc;
}

static wl_status start(rows *p, wl_conn *c, sqlite3_stmt *stmt, wl_error *err) {
  wl_bindings bindings = {0};
  wl_status rc = wl_bindings_read(stmt, &bindings, err);
  if (!rc) rc = wl_opened_open(c, sqlite3_sql(stmt), &bindings, &p->of, err);
  wl_bindings_close(&bindings);
  if (rc) return rc;
  p->n_cols = p->of.n_cols;
  p->masks = wl_mem_zalloc((size_t)p->n_cols * sizeof *p->masks);
  p->offsets = wl_mem_zalloc((size_t)p->n_cols * sizeof *p->offsets);
  return p->masks && p->offsets ? WL_OK : wl_nomem(err);
}

int wl_sphyraena_run(sphyraena *s, wl_conn *c) {
  wl_error err = {0};
  bool fits = true;
  if (sqlite3_stmt_busy(s->stmt_cpu))
    return wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE,
                             "stmt_cpu is being stepped; call sqlite3_reset() on it");
  rows *p = wl_mem_zalloc(sizeof *p);
  wl_status rc = p ? WL_OK : wl_nomem(&err);
  wl_streams_enter(c);
  if (!rc) rc = start(p, c, s->stmt_cpu, &err);
  if (!rc) rc = take(p, s->results_size, &fits, &err);
  if (p) p->run = wl_answer_finish(&p->of.answer);
  wl_streams_leave(c);
  if (!rc && fits) {
    s->results_gpu = p;
    return SPHYRAENA_SUCCESS;
  }
  rows_close(p);
  if (rc) return wl_sphyraena_failed(s, &err);
  return wl_sphyraena_fail(s, SPHYRAENA_ERR_MEM, SQLITE_FULL,
                           "the result takes more than results_size (%zu bytes); ask for fewer "
                           "rows, or call sphyraena_init() with a larger one",
                           s->results_size);
}

/* ---- bringing rows back */

typedef struct packing {
  const rows *from;
  char *r;
} packing;

static void put_type(char *row, int col, wl_u8 t) {
  row[col] = (char)(t == WL_T_NULL ? SQLITE_NULL : t);
}

/* Writes the numbers of a column, n rows from row i of a batch. */
static void put_numbers(const rows *p, const wl_outcol *c, wl_reg reg, int col, wl_i64 i, wl_i64 n,
                        char *row) {
  wl_u8 type = reg.type == WL_R_INT ? WL_T_INT : WL_T_REAL;
  for (wl_i64 end = i + n; i < end; i++, row += p->stride) {
    bool is_null = c->t && !c->t[i];
    wl_u64 v = is_null ? 0 : c->v[i];
    put_type(row, col, is_null ? WL_T_NULL : type);
    memcpy(row + p->offsets[col], &v, sizeof v);
  }
}

/* Writes one value, and its bytes at *heap if it has any. */
static void put_value(const packing *to, wl_val v, int col, char *row, wl_u64 *heap) {
  const rows *p = to->from;
  sphyraena_bytes place = {0, 0};
  put_type(row, col, v.t);
  if (v.t < WL_T_TEXT) {
    place.at = v.t == WL_T_NULL ? 0 : (int64_t)v.v;
  } else {
    place = (sphyraena_bytes){(int64_t)*heap, v.n};
    if (v.n) memcpy(to->r + *heap, wl_bytes(v), v.n);
    to->r[*heap + v.n] = 0;
    *heap += (wl_u64)v.n + 1;
  }
  memcpy(row + p->offsets[col], &place, has_text(p->masks[col]) ? sizeof place : sizeof place.at);
}

/* Writes the rows of one batch, some at a time, so that they stay in the processor's cache. */
static wl_status pack(void *arg, int worker, long task, wl_error *err) {
  (void)worker;
  (void)err;
  enum { CHUNK = 256 };
  const packing *to = arg;
  const rows *p = to->from;
  const wl_batch *b = p->batches[task];
  const wl_reg *regs = wl_run_regs(p->run);
  wl_u64 heap = (wl_u64)p->n_rows * p->stride + p->texts[task];
  char *row = to->r + (size_t)p->first[task] * p->stride;
  for (wl_i64 i = b->skip, n; i < b->n_rows; i += n, row += (size_t)n * p->stride) {
    n = b->n_rows - i < CHUNK ? b->n_rows - i : CHUNK;
    bool others = false;
    for (wl_i64 j = 0; j < n; j++) memset(row + (size_t)j * p->stride, 0, p->offsets[0]);
    for (int k = 0; k < p->n_cols; k++) {
      bool numbers = regs[k].type < WL_R_TRUTH && !wl_batch_dict(b, k);
      if (numbers) put_numbers(p, &b->cols[k], regs[k], k, i, n, row);
      others |= !numbers;
    }
    for (wl_i64 j = 0; others && j < n; j++)
      for (int k = 0; k < p->n_cols; k++) {
        const wl_dict *dict = wl_batch_dict(b, k);
        if (regs[k].type < WL_R_TRUTH && !dict) continue;
        put_value(to, value_of(b, regs, dict, k, i + j), k, row + (size_t)j * p->stride, &heap);
      }
  }
  return WL_OK;
}

static int type_of(unsigned mask) {
  for (wl_u8 t = WL_T_INT; t <= WL_T_BLOB; t++)
    if (mask == WL_M(t)) return t;
  return mask ? SPHYRAENA_MIXED : SPHYRAENA_NULL;
}

/* Allocates the block of a result: the struct, types, offsets, names, and then r. */
static sphyraena_results *block_open(const rows *p) {
  size_t n = (size_t)p->n_cols, n_names = 0, n_r = block_bytes(p);
  for (size_t k = 0; k < n; k++) n_names += strlen(p->of.names[k]) + 1;
  size_t head = sizeof(sphyraena_results) + n * (sizeof(size_t) + sizeof(char *) + sizeof(int));
  head = (head + n_names + 63) & ~(size_t)63;
  sphyraena_results *res = wl_mem_alloc(head + n_r);
  if (!res) return NULL;
  size_t *offsets = (size_t *)(res + 1);
  const char **names = (const char **)(offsets + n);
  int *types = (int *)(names + n);
  char *at = (char *)(types + n);
  memset(res, 0, head);
  for (size_t k = 0; k < n; k++) {
    offsets[k] = p->offsets[k];
    types[k] = type_of(p->masks[k]);
    names[k] = strcpy(at, p->of.names[k]);
    at += strlen(at) + 1;
  }
  *res = (sphyraena_results){.rows = p->n_rows,
                             .columns = p->n_cols,
                             .stride = p->stride,
                             .types = types,
                             .offsets = offsets,
                             .names = names,
                             .size = n_r,
                             .r = (char *)res + head};
  return res;
}

int sphyraena_transfer_results(sphyraena *s) {
  wl_sphyraena_call call;
  wl_error err = {0};
  int rc = wl_sphyraena_enter(s, false, &call);
  if (rc) return rc;
  rows *p = s->results_gpu;
  if (!p && !s->results_cpu)
    rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE,
                           "there are no results; call sphyraena_select() first");
  sphyraena_results *res = p ? block_open(p) : NULL;
  if (p && !res) rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MEM, SQLITE_NOMEM, "out of memory");
  if (res) {
    packing to = {p, res->r};
    wl_tasks tasks = {
        .n_threads = call.conn->set.threads, .n_tasks = p->n, .run = pack, .arg = &to};
    if (wl_tasks_run(&tasks, NULL, &err)) {
      rc = wl_sphyraena_failed(s, &err);
      wl_mem_free(res);
    } else {
      wl_sphyraena_drop_results(s);
      s->results_cpu = res;
    }
  }
  wl_sphyraena_leave(&call);
  return rc;
}

/* ---- printing */

static void print_value(const sphyraena_results *res, int64_t row, int col) {
  const void *at = sphyraena_value(res, row, col);
  const sphyraena_bytes *bytes = at;
  const char *text = NULL;
  char real[64];
  switch (sphyraena_type(res, row, col)) {
  case SPHYRAENA_INTEGER: printf("%lld", (long long)*(const int64_t *)at); break;
  case SPHYRAENA_REAL:
    sqlite3_snprintf(sizeof real, real, "%!.15g", *(const double *)at);
    printf("%s", real);
    break;
  case SPHYRAENA_TEXT: fwrite(sphyraena_text(res, row, col), 1, (size_t)bytes->size, stdout); break;
  case SPHYRAENA_BLOB:
    text = sphyraena_text(res, row, col);
    printf("x'");
    for (int64_t i = 0; i < bytes->size; i++) printf("%02x", (unsigned char)text[i]);
    printf("'");
    break;
  default: printf("NULL");
  }
}

void sphyraena_print_results(sphyraena *s, int n) {
  if (sphyraena_transfer_results(s)) {
    printf("%s\n", sphyraena_errmsg(s));
    return;
  }
  const sphyraena_results *res = s->results_cpu;
  for (int k = 0; k < res->columns; k++) printf("%s%s", k ? "|" : "", res->names[k]);
  printf("\n");
  for (int64_t i = 0; i < res->rows && (n < 0 || i < n); i++) {
    for (int k = 0; k < res->columns; k++) {
      if (k) printf("|");
      print_value(res, i, k);
    }
    printf("\n");
  }
}
