/*
** See pack.h.
*/
#include "exec/gpu/pack.h"
#include "base/threads.h"
#include "plan/constants.h"

/* PART: the alignment of the parts of a chunk. TASK_ROWS: of a task that unpacks, a multiple of 8.
 */
enum { PART = 64, TASK_ROWS = 1 << 15 };

/* Bytes of 8-byte values that a thread unpacks in a ns. Measured: 30 to 40 by one thread, if they
** fit into the processor's cache; this is what it does for memory. */
static const double UNPACK_RATE = 12;
/* Packing must take less than this share of the time. */
static const double PAYS = 0.9;

/* ---- the form of a column */

/* The column that sets a register, and nothing else does; -1: there is none. */
static int column_of(const wl_program *p, wl_i16 operand) {
  int column = -1, n = 0;
  for (int pc = 0; pc < p->n_code && !WL_IS_CONST(operand); pc++) {
    const wl_instr *in = &p->code[pc];
    if (wl_shapes[wl_opcodes[in->op].shape][0] == ' ' || in->d != operand) continue;
    n++;
    column = in->op == WL_OP__Column ? in->a : -1;
  }
  return n == 1 ? column : -1;
}

/* The range of the integers, with the zero of NULLs. */
static void int_form(wl_domain d, wl_packed_col *c) {
  wl_i64 lo = d.lo, hi = d.hi;
  if (c->nullable && lo > 0) lo = 0;
  if (c->nullable && hi < 0) hi = 0;
  wl_u64 span = lo <= hi ? (wl_u64)hi - (wl_u64)lo : 0;
  c->base = lo <= hi ? (wl_u64)lo : 0;
  c->phys = span <= 0xff         ? WL_P_I8
            : span <= 0xffff     ? WL_P_I16
            : span <= 0xffffffff ? WL_P_I32
                                 : WL_P_I64;
}

/* Returns false if the values take 8 bytes. */
static bool form_of(const wl_pipe *e, int k, wl_packed_col *c) {
  const wl_result *r = &e->p->results[k];
  wl_reg reg = wl_result_reg(r);
  *c = (wl_packed_col){.result = k, .nullable = reg.nullable, .phys = WL_P_I64};
  if (reg.type == WL_R_INT) int_form(wl_result_domain(r), c);
  if (reg.type == WL_R_REAL) {
    int column = column_of(e->p, r->operand);
    if (column >= 0 && e->cols[column]->phys == WL_P_F32) c->phys = WL_P_F32;
  }
  return c->phys != WL_P_I64;
}

/* ---- chunks */

static size_t in_parts(size_t n) {
  return (n + PART - 1) / PART * PART;
}

/* The places of a column's values and bitmap behind `at`, in a chunk of n rows. Returns the end. */
static size_t place(const wl_packed_col *c, wl_u64 n, size_t at, size_t *values, size_t *valid) {
  *values = at;
  *valid = at + in_parts(n * (size_t)wl_phys_width((wl_phys)c->phys));
  return *valid + (c->nullable ? in_parts((n + 7) / 8) : 0);
}

static size_t bytes_for(const wl_packing *p, wl_u64 n) {
  size_t at = 0, ignored;
  for (int k = 0; k < p->n_cols; k++) at = place(&p->cols[k], n, at, &ignored, &ignored);
  return at;
}

wl_u64 wl_packing_rows(const wl_packing *p, wl_u64 chunk) {
  return chunk + 1 < p->n_chunks ? p->chunk_rows : p->n_rows - chunk * p->chunk_rows;
}

size_t wl_packing_bytes(const wl_packing *p, wl_u64 chunk) {
  return bytes_for(p, wl_packing_rows(p, chunk));
}

/* Cuts the rows into chunks. Returns false if not even 64 rows fit into a buffer. */
static bool cut(wl_packing *p, wl_u64 n, size_t n_buffer) {
  size_t fixed = 2 * PART * (size_t)p->n_cols, of_64 = bytes_for(p, 64);
  p->n_rows = n;
  p->chunk_rows = n_buffer > fixed ? (n_buffer - fixed) / of_64 * 64 : 0;
  if (!p->chunk_rows) return false;
  p->n_chunks = (n + p->chunk_rows - 1) / p->chunk_rows;
  /* each copy by itself begins where tiles may (kargs.h) */
  p->chunk_bytes = (bytes_for(p, p->chunk_rows) + WL_K_TILE - 1) / WL_K_TILE * WL_K_TILE;
  return p->chunk_bytes <= n_buffer;
}

/* ---- planning */

/* Whether packed rows come sooner. Chunks are unpacked while others are on the bus. */
static bool pays(const wl_launch *l, double n_wide, double n_packed) {
  wl_constants c;
  wl_device_constants_now(l->d, &c);
  double bus = n_packed / c.out_rate, host = n_wide / (UNPACK_RATE * l->e->threads);
  return (bus > host ? bus : host) < PAYS * n_wide / c.out_rate;
}

bool wl_packing_plan(const wl_launch *l, wl_u64 n, size_t n_buffer, wl_packing *out) {
  size_t row_bytes = 0;
  out->n_cols = 0;
  for (int k = 0; k < l->n_fetch; k++) {
    if (!form_of(l->e, k, &out->cols[out->n_cols])) continue;
    row_bytes += 8 + (size_t)out->cols[out->n_cols++].nullable;
  }
  if (n * row_bytes <= wl_results_few(l->d) || !cut(out, n, n_buffer)) return false;
  double n_packed = (double)out->chunk_bytes / (double)out->chunk_rows * (double)n;
  return pays(l, (double)n * (double)row_bytes, n_packed);
}

void wl_packing_args(const wl_packing *p, wl_kpack *out) {
  size_t at[2] = {0, 0};
  wl_u64 rows[2] = {p->chunk_rows, wl_packing_rows(p, p->n_chunks - 1)};
  *out = (wl_kpack){.n = p->n_rows,
                    .chunk_rows = p->chunk_rows,
                    .chunk_bytes = p->chunk_bytes,
                    .n_cols = (wl_u32)p->n_cols};
  for (int k = 0; k < p->n_cols; k++) {
    out->cols[k].base = p->cols[k].base;
    out->cols[k].phys = p->cols[k].phys;
    for (int last = 0; last < 2; last++) {
      size_t values, valid;
      at[last] = place(&p->cols[k], rows[last], at[last], &values, &valid);
      out->cols[k].values[last] = (wl_u32)values;
      out->cols[k].valid[last] = (wl_u32)valid;
    }
  }
}

/* ---- unpacking */

#define UNPACK(NAME, T)                                                                            \
  static WL_CLONES void unpack_##NAME(wl_u64 *restrict to, const T *restrict from, wl_u64 base,    \
                                      wl_u64 n) {                                                  \
    for (wl_u64 i = 0; i < n; i++) to[i] = base + from[i];                                         \
  }
UNPACK(i8, wl_u8)
UNPACK(i16, wl_u16)
UNPACK(i32, wl_u32)

static WL_CLONES void unpack_f32(wl_u64 *restrict to, const float *restrict from, wl_u64 n) {
  for (wl_u64 i = 0; i < n; i++) to[i] = wl_f64_bits((double)from[i]);
}

/* Eight bits become eight bytes of 0 or 1. */
static wl_u64 spread(wl_u8 bits) {
  wl_u64 each = bits * 0x0101010101010101ULL & 0x8040201008040201ULL;
  return (each + 0x7f7f7f7f7f7f7f7fULL) >> 7 & 0x0101010101010101ULL;
}

static WL_CLONES void unpack_bits(wl_u8 *restrict to, const wl_u8 *restrict from, wl_u64 n) {
  for (wl_u64 i = 0; i < n / 8; i++) {
    wl_u64 eight = spread(from[i]);
    memcpy(to + 8 * i, &eight, 8);
  }
  for (wl_u64 i = n & ~7ULL; i < n; i++) to[i] = from[i >> 3] >> (i & 7) & 1;
}

typedef struct unpacking {
  const wl_packing *p;
  wl_u64 first, n; /* rows of the chunk */
  const wl_u8 *from;
  const wl_unpacked *to;
} unpacking;

/* Unpacks rows [at, at + n) of a chunk's column. */
static void unpack_column(const unpacking *x, const wl_packed_col *c, const wl_unpacked *to,
                          size_t values, size_t valid, wl_u64 at, wl_u64 n) {
  const void *from = x->from + values + at * (size_t)wl_phys_width((wl_phys)c->phys);
  wl_u64 *v = to->v + x->first + at;
  switch (c->phys) {
  case WL_P_I8: unpack_i8(v, from, c->base, n); break;
  case WL_P_I16: unpack_i16(v, from, c->base, n); break;
  case WL_P_I32: unpack_i32(v, from, c->base, n); break;
  default: unpack_f32(v, from, n); break;
  }
  if (c->nullable) unpack_bits(to->t + x->first + at, x->from + valid + at / 8, n);
}

static void unpack_task(void *arg, int worker, long task) {
  const unpacking *x = arg;
  wl_u64 at = (wl_u64)task * TASK_ROWS, n = x->n - at < TASK_ROWS ? x->n - at : TASK_ROWS;
  size_t end = 0, values, valid;
  (void)worker;
  for (int k = 0; k < x->p->n_cols; k++) {
    const wl_packed_col *c = &x->p->cols[k];
    end = place(c, x->n, end, &values, &valid);
    unpack_column(x, c, &x->to[k], values, valid, at, n);
  }
}

void wl_packing_unpack(const wl_packing *p, wl_u64 chunk, const wl_u8 *from, const wl_unpacked *to,
                       int threads) {
  unpacking x = {p, chunk * p->chunk_rows, wl_packing_rows(p, chunk), from, to};
  wl_threads_run(threads, (long)((x.n + TASK_ROWS - 1) / TASK_ROWS), unpack_task, &x);
}
