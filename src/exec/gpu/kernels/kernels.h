/*
** The kernels, in the common subset of C11 and CUDA C++. nvcc compiles them into the CUDA plugin,
** the host compiler into the simulator.
**
** wl_interp runs a pipeline. Grid: any number of blocks of T threads. A tile is
** T * WL_K_ROWS rows, of which a thread has WL_K_ROWS adjacent ones (kload.h). Registers are planes
** in shared memory. Each thread accesses only its own entries, so warps run the program
** independently; the block synchronizes only for the compaction and for queues (kqueue.h).
** Phases of a tile: take a tile number; run the program; count the remaining rows, per warp and
** k; look back for the number of rows of earlier tiles; write.
** Ordering: tile numbers come from a ticket, so every earlier tile has been started and the
** look-back ends. Aggregates need no order: the blocks take tiles in turn.
** GROUP BY has its own kernel with the same program loop (kgroup.h), ORDER BY has several small
** kernels (korder.h). kjoin.h reads columns and finds the rows of joined sources.
*/
#ifndef WL_KERNELS_H
#define WL_KERNELS_H

#include "value/aggregates.h"
#include "exec/gpu/kernels/kargs.h"
#include "exec/gpu/kernels/kgargs.h"
#include "exec/gpu/kernels/ktargs.h"
#include "exec/gpu/kernels/simt.h"
#include "program/opcodes.h"

WL_FN wl_u32 k_popcount(wl_u32 x) {
#ifdef __CUDACC__
  return (wl_u32)__popc(x);
#else
  return (wl_u32)__builtin_popcount(x);
#endif
}

/* ---- operands */

WL_FN wl_u32 k_slot(const wl_kopnd *o, wl_u32 slot) {
  return o->stride ? slot : 0;
}
WL_FN wl_u64 k_bits(const wl_u8 *sh, const wl_kopnd *o, wl_u32 slot) {
  return *(const wl_u64 *)(const void *)(sh + o->v + 8 * k_slot(o, slot));
}
WL_FN wl_i64 k_int(const wl_u8 *sh, const wl_kopnd *o, wl_u32 slot) {
  return (wl_i64)k_bits(sh, o, slot);
}
WL_FN double k_real(const wl_u8 *sh, const wl_kopnd *o, wl_u32 slot) {
  return wl_as_f64(k_bits(sh, o, slot));
}
WL_FN wl_u8 k_valid(const wl_u8 *sh, const wl_kopnd *o, wl_u32 slot) {
  return o->nullable ? sh[o->t + k_slot(o, slot)] : 1;
}
/* A constant keeps tag, valid and truth in three bytes around t. */
WL_FN wl_u8 k_truth(const wl_u8 *sh, const wl_kopnd *o, wl_u32 slot) {
  return o->stride ? sh[o->t + slot] : sh[o->t + 1];
}
WL_FN wl_val k_val(const wl_u8 *sh, const wl_kopnd *o, wl_u32 slot) {
  wl_u64 v;
  if (!o->stride)
    return wl_val_make(sh[o->t - 1], k_bits(sh, o, 0), *(const wl_u32 *)(const void *)(sh + o->n));
  if (o->type == WL_R_TRUTH) {
    wl_u8 t = sh[o->t + slot];
    return t == WL_UNKNOWN ? wl_null() : wl_int(t == WL_TRUE);
  }
  v = k_bits(sh, o, slot);
  if (o->type == WL_R_ANY)
    return wl_val_make(sh[o->t + slot], v, *(const wl_u32 *)(const void *)(sh + o->n + 4 * slot));
  if (o->nullable && !sh[o->t + slot]) return wl_null();
  if (o->type == WL_R_INT) return wl_val_make(WL_T_INT, v, 0);
  if (o->type == WL_R_REAL) return wl_val_make(WL_T_REAL, v, 0);
  return wl_val_make(WL_T_TEXT, v, *(const wl_u32 *)(const void *)(sh + o->n + 4 * slot));
}

WL_FN void k_set_bits(wl_u8 *sh, const wl_kopnd *d, wl_u32 slot, wl_u64 v) {
  *(wl_u64 *)(void *)(sh + d->v + 8 * slot) = v;
}
WL_FN void k_set_valid(wl_u8 *sh, const wl_kopnd *d, wl_u32 slot, wl_u8 t) {
  if (d->nullable) sh[d->t + slot] = t;
}
WL_FN void k_set_val(wl_u8 *sh, const wl_kopnd *d, wl_u32 slot, wl_val v) {
  k_set_bits(sh, d, slot, v.t == WL_T_NULL ? 0 : v.v);
  if (d->type == WL_R_TEXT || d->type == WL_R_ANY) *(wl_u32 *)(void *)(sh + d->n + 4 * slot) = v.n;
  if (d->type == WL_R_ANY)
    sh[d->t + slot] = v.t;
  else
    k_set_valid(sh, d, slot, (wl_u8)(v.t != WL_T_NULL));
}

/* Whether an operand has a value. */
WL_FN int k_is_there(const wl_u8 *sh, const wl_kopnd *o, wl_u32 slot) {
  if (o->stride && o->type == WL_R_TRUTH) return sh[o->t + slot] != WL_UNKNOWN;
  if (o->stride && o->type == WL_R_ANY) return sh[o->t + slot] != WL_T_NULL;
  return k_valid(sh, o, slot);
}

/* What a kernel has code for, beside operations on numbers. `with` is a compile-time constant:
** kernels without the bit have no code for it, and spill fewer registers. */
enum { K_VALUES = 1, K_LONG = 2, K_SETS = 4 };

#include "exec/gpu/kernels/kjoin.h"

/* ---- maps */

WL_FN wl_u64 k_entry(const wl_u8 *sh, const wl_kmap *m, const wl_kopnd *a, wl_u32 slot) {
  return (wl_u64)(k_valid(sh, a, slot) ? k_int(sh, a, slot) - m->base : m->n);
}
WL_FN wl_val k_map(const wl_u8 *sh, const wl_kmap *m, const wl_kopnd *a, wl_u32 slot) {
  wl_u64 e = k_entry(sh, m, a, slot);
  wl_u8 t = m->t[e];
  if (t >= WL_T_TEXT) return wl_val_make(t, (wl_u64)(size_t)(m->heap + m->v[e]), m->len[e]);
  return wl_val_make(t, m->v[e], 0);
}

#include "exec/gpu/kernels/kacc.h"

/* ---- LONG opcodes */
/* clang-format off */

#define K_VALUE_AGG_V(F)  break;
#define K_VALUE_V_VV(F)   r = F(&ctx, x, y, number); break;
#define K_VALUE_V_V(F)    r = F(&ctx, x, wl_null(), number); break;
#define K_VALUE_V_DATE(F) r = F(&ctx, x, y, 0); break;
#define K_VALUE_I_DATE(F) r = x.t == WL_T_NULL ? x : wl_int(F((wl_i64)x.v, (wl_i64)y.v)); break;

#define K_LONG_CASE_ANY(name, shape)
#define K_LONG_CASE_HOST(name, shape)
#define K_LONG_CASE_LONG(name, shape)                                                              \
  case WL_OP__##name: K_VALUE_##shape(wl_op_##name)
/* clang-format on */

/* Their code needs registers. So one function computes them for all rows of the thread, and only
** kernels for programs with such opcodes call it. b is NULL if the opcode has one operand. */
WL_FN_CALLED void k_long(const wl_kargs *args, wl_u8 *sh, wl_u32 op, int number, const wl_kopnd *d,
                         const wl_kopnd *a, const wl_kopnd *b, wl_u32 act) {
  wl_vctx ctx = args->ctx;
  for (wl_u32 k = 0; k < WL_K_ROWS; k++) {
    wl_u32 slot = k * simt_bdim() + simt_tid();
    if (!(act >> k & 1)) continue;
    wl_val x = k_val(sh, a, slot), y = b ? k_val(sh, b, slot) : wl_null(), r = y;
    switch (op) {
#define WL_OPCODE(name, shape, place, text) K_LONG_CASE_##place(name, shape)
#include "program/opcodes.def"
#undef WL_OPCODE
    default: break;
    }
    k_set_val(sh, d, slot, r);
  }
}

/* ---- groups, in kgroup.h */

WL_FN wl_u32 kg_find(wl_u8 *sh, const wl_kgroup *g, const wl_kopnd *opnds, wl_u32 at, wl_u64 row);
WL_FN void kg_add(wl_u8 *sh, const wl_kgroup *g, const wl_kinstr *in, const wl_kopnd *a, wl_u32 at,
                  wl_u64 row, wl_u32 slot);
WL_FN_CALLED void kg_add_numbers(wl_u8 *sh, const wl_kgroup *g, const wl_kinstr *in,
                                 const wl_kopnd *a, const k_rows *rows, const wl_u32 *group,
                                 wl_u32 act);
WL_FN void kg_pour(wl_u8 *sh, const wl_kgroup *g);
WL_FN_CALLED void kg_add_distinct(const wl_vctx *numbers, wl_u8 *sh, const wl_kgroup *g,
                                  const wl_kinstr *in, const wl_kopnd *a, const k_rows *rows,
                                  wl_u32 act, const wl_u32 *group);

WL_FN_CALLED void kg_keep_values(wl_u8 *sh, const wl_kgroup *g, const wl_kinstr *in,
                                 const wl_kopnd *a, const k_rows *rows, wl_u32 act,
                                 const wl_u32 *group);
WL_FN_CALLED void kg_code(wl_u8 *sh, const wl_kgroup *g, wl_u32 coder, const wl_kopnd *d,
                          const wl_kopnd *a, const k_rows *rows, wl_u32 act, const wl_u32 *group);
WL_FN_CALLED void kg_note_rows(const wl_kgroup *g, const k_rows *rows, wl_u32 act,
                               const wl_u32 *group);

/* ---- one instruction over a thread's rows */
/* clang-format off */

/* Rows that are left, in kernels that have values of any type. */
#define K_EACH_VALUE if (with & K_VALUES) K_EACH K_LIVE
#define K_LIVE       K_ON(act)

#define K_RESULT(F)  break;
#define K_COLUMN(F)                                                                                \
  k_load(args, sh, d, &args->cols[in.a], (wl_u32)in.number, rows, act, with);                      \
  break;
#define K_FILTER(F)                                                                                \
  K_EACH if (k_truth(sh, a, K_SLOT) != WL_TRUE) act &= ~(1u << k);                                 \
  if (!in.number && !simt_any(act != 0)) return 0;                                                 \
  break;
/* Two operands of one type: NULL by the rule of the shape (opcodes.h). */
#define K_INT2(F, RULE)                                                                            \
  k_get(sh, a, x);                                                                                 \
  k_get(sh, b, y);                                                                                 \
  there = k_there(sh, a) & k_there(sh, b);                                                         \
  K_EACH {                                                                                         \
    if (wl_null_int(RULE, (wl_i64)y[k])) there &= ~(1u << k);                                      \
    x[k] = (wl_u64)F((wl_i64)x[k], (wl_i64)y[k]);                                                  \
  }                                                                                                \
  k_put(sh, d, x, there);                                                                          \
  break;
#define K_REAL2(F, RULE)                                                                           \
  k_get(sh, a, x);                                                                                 \
  k_get(sh, b, y);                                                                                 \
  there = k_there(sh, a) & k_there(sh, b);                                                         \
  K_EACH {                                                                                         \
    double r = F(wl_as_f64(x[k]), wl_as_f64(y[k]));                                                \
    if (wl_null_real(RULE, r)) there &= ~(1u << k);                                                \
    x[k] = wl_f64_bits(r);                                                                         \
  }                                                                                                \
  k_put(sh, d, x, there);                                                                          \
  break;
/* One operand, of the type that `from` reads, and a result that `to` writes. */
#define K_NUMBER1(F, from, to)                                                                     \
  k_get(sh, a, x);                                                                                 \
  K_EACH x[k] = to(F(from(x[k])));                                                                 \
  k_put(sh, d, x, k_there(sh, a));                                                                 \
  break;
#define K_AS_INT(v)  (wl_i64)(v)
#define K_OF_INT(v)  (wl_u64)(v)
#define K_I_II(F) K_INT2(F, WL_NULLS_OF_I_II)
#define K_I_IIZ(F) K_INT2(F, WL_NULLS_OF_I_IIZ)
#define K_F_FF(F) K_REAL2(F, WL_NULLS_OF_F_FF)
#define K_I_I(F)  K_NUMBER1(F, K_AS_INT, K_OF_INT)
#define K_I_F(F)  K_NUMBER1(F, wl_as_f64, K_OF_INT)
#define K_F_F(F)  K_NUMBER1(F, wl_as_f64, wl_f64_bits)
#define K_F_I(F)  K_NUMBER1(F, K_AS_INT, wl_f64_bits)
#define K_I_B(F)                                                                                   \
  there = 0;                                                                                       \
  K_EACH {                                                                                         \
    wl_u8 t = k_truth(sh, a, K_SLOT);                                                              \
    x[k] = t == WL_TRUE;                                                                           \
    there |= (wl_u32)(t != WL_UNKNOWN) << k;                                                       \
  }                                                                                                \
  k_put(sh, d, x, there);                                                                          \
  break;
/* A comparison of two operands, or a test of one. */
#define K_COMPARE(compared)                                                                        \
  k_get(sh, a, x);                                                                                 \
  there = k_there(sh, a);                                                                          \
  K_EACH truth[k] = there >> k & 1 ? (wl_u8)((compared) << 1) : (wl_u8)WL_UNKNOWN;                 \
  k_put_truths(sh, d, truth);                                                                      \
  break;
#define K_COMPARE2(compared)                                                                       \
  k_get(sh, a, x);                                                                                 \
  k_get(sh, b, y);                                                                                 \
  there = k_there(sh, a) & k_there(sh, b);                                                         \
  K_EACH truth[k] = there >> k & 1 ? (wl_u8)((compared) << 1) : (wl_u8)WL_UNKNOWN;                 \
  k_put_truths(sh, d, truth);                                                                      \
  break;
#define K_B_II(F) K_COMPARE2(F((wl_i64)x[k], (wl_i64)y[k]))
#define K_B_FF(F) K_COMPARE2(F(wl_as_f64(x[k]), wl_as_f64(y[k])))
#define K_B_I(F)  K_COMPARE(F((wl_i64)x[k]))
#define K_B_F(F)  K_COMPARE(F(wl_as_f64(x[k])))
#define K_IN(F)                                                                                    \
  K_EACH_VALUE {                                                                                   \
    const wl_kset *q = &args->sets[in.number];                                                     \
    sh[d->t + K_SLOT] = wl_in_set(k_val(sh, a, K_SLOT), q->v, q->n, (int)q->coll, (int)q->has_null); \
  }                                                                                                \
  break;
/* Only rows that are left: the registers of other rows may not hold a code. */
#define K_MAP_B(F)                                                                                 \
  K_EACH K_LIVE {                                                                                  \
    const wl_kmap *m = &args->maps[in.number];                                                     \
    sh[d->t + K_SLOT] = m->t[k_entry(sh, m, a, K_SLOT)];                                           \
  }                                                                                                \
  break;
#define K_MAP_V(F)                                                                                 \
  K_EACH_VALUE k_set_val(sh, d, K_SLOT, k_map(sh, &args->maps[in.number], a, K_SLOT));             \
  break;
#define K_MAP_I(F)                                                                                 \
  K_EACH K_LIVE {                                                                                  \
    const wl_kmap *m = &args->maps[in.number];                                                     \
    wl_u64 e = k_entry(sh, m, a, K_SLOT);                                                          \
    k_set_bits(sh, d, K_SLOT, m->t[e] == WL_T_NULL ? 0 : m->v[e]);                                 \
    k_set_valid(sh, d, K_SLOT, (wl_u8)(m->t[e] != WL_T_NULL));                                     \
  }                                                                                                \
  break;
#define K_MAP_F(F) K_MAP_I(F)
#define K_B_BB(F)                                                                                  \
  K_EACH sh[d->t + K_SLOT] = F(k_truth(sh, a, K_SLOT), k_truth(sh, b, K_SLOT));                    \
  break;
#define K_B_B(F)                                                                                   \
  K_EACH sh[d->t + K_SLOT] = F(k_truth(sh, a, K_SLOT));                                            \
  break;
/* Generic opcodes read through addresses, so they run only for rows that are left. */
#define K_B_VV(F)                                                                                  \
  K_EACH_VALUE sh[d->t + K_SLOT] = F(&ctx, k_val(sh, a, K_SLOT), k_val(sh, b, K_SLOT), in.number); \
  break;
#define K_B_V(F)                                                                                   \
  K_EACH_VALUE sh[d->t + K_SLOT] = F(&ctx, k_val(sh, a, K_SLOT), wl_null(), in.number);            \
  break;
#define K_V_VV(F)                                                                                  \
  K_EACH_VALUE k_set_val(sh, d, K_SLOT, F(&ctx, k_val(sh, a, K_SLOT), k_val(sh, b, K_SLOT), in.number)); \
  break;
#define K_V_V(F)                                                                                   \
  K_EACH_VALUE k_set_val(sh, d, K_SLOT, F(&ctx, k_val(sh, a, K_SLOT), wl_null(), in.number));      \
  break;
#define K_NULLTEST(F)                                                                              \
  K_EACH K_LIVE sh[d->t + K_SLOT] = (wl_u8)(k_is_there(sh, a, K_SLOT) ? WL_FALSE : WL_TRUE);       \
  break;
#define K_SELECT_V(F)                                                                              \
  K_EACH_VALUE k_set_val(sh, d, K_SLOT, k_val(sh, k_truth(sh, c, K_SLOT) == WL_TRUE ? a : b, K_SLOT)); \
  break;
#define K_SELECT_I(F)                                                                              \
  K_EACH K_LIVE {                                                                                  \
    const wl_kopnd *q = k_truth(sh, c, K_SLOT) == WL_TRUE ? a : b;                                 \
    wl_u8 valid = k_valid(sh, q, K_SLOT);                                                          \
    k_set_bits(sh, d, K_SLOT, valid ? k_bits(sh, q, K_SLOT) : 0);                                  \
    k_set_valid(sh, d, K_SLOT, valid);                                                             \
  }                                                                                                \
  break;
#define K_SELECT_F(F) K_SELECT_I(F)
#define K_GROUP(F)                                                                                 \
  if (g) K_EACH K_LIVE {                                                                           \
    group[k] = kg_find(sh, g, opnds, K_SLOT, rows->row[k]);                                        \
    if (group[k] == 0xffffffffu) act &= ~(1u << k);                                                \
  }                                                                                                \
  if (g && (with & K_SETS) && g->row_word) kg_note_rows(g, rows, act, group);                      \
  break;
#define K_PROBE(F)                                                                                 \
  if (in.op == WL_OP__Build) {                                                                     \
    k_build(args, sh, opnds, &in, rows, act, with);                                                \
    break;                                                                                         \
  }                                                                                                \
  act = k_probe(args, sh, opnds, &in, rows, act, with);                                            \
  if (!simt_any(act != 0)) return 0;                                                               \
  break;
#define K_MATCH(F)                                                                                 \
  if (in.number) act |= k_absent(args, sh, rows, (wl_u32)in.number);                               \
  break;
#define K_MARK(F)                                                                                  \
  k_mark(args, sh, (wl_u32)in.a, (wl_u32)in.number, act);                                          \
  break;
#define K_ROW(F)                                                                                   \
  K_EACH K_LIVE {                                                                                  \
    wl_u32 row = in.number ? *k_row(args, sh, (wl_u32)in.number, K_SLOT)                           \
                           : (wl_u32)(args->row0 + rows->row[k]);                                  \
    k_set_bits(sh, d, K_SLOT, row == WL_K_NO_ROW ? 0 : row);                                       \
    k_set_valid(sh, d, K_SLOT, (wl_u8)(row != WL_K_NO_ROW));                                       \
  }                                                                                                \
  break;
#define K_FOUND(F)                                                                                 \
  K_EACH K_LIVE                                                                                    \
    sh[d->t + K_SLOT] = (wl_u8)(*k_row(args, sh, (wl_u32)in.number, K_SLOT) == WL_K_NO_ROW ? WL_FALSE : WL_TRUE); \
  break;
#define K_AGG(F)                                                                                   \
  if (in.op == WL_OP__AggDistinct) {                                                               \
    if (g && (with & K_SETS))                                                                      \
      kg_add_distinct(with & K_LONG ? &args->ctx : (const wl_vctx *)0, sh, g, &in, a, rows, act, group); \
    break;                                                                                         \
  }                                                                                                \
  if (k_keeps_value(in.op)) {                                                                      \
    if (g && (with & K_SETS)) kg_keep_values(sh, g, &in, a, rows, act, group);                     \
    break;                                                                                         \
  }                                                                                                \
  if (g) K_EACH K_LIVE kg_add(sh, g, &in, a, K_SLOT, rows->row[k], group[k]);                      \
  if (!g) k_aggregate(sh, args, &in, a, rows, act);                                                \
  break;
#define K_AGG_I(F) K_AGG(F)
#define K_AGG_F(F) K_AGG(F)
#define K_AGG_V(F) K_AGG(F)
#define K_AGG_VV(F) K_AGG(F)

#define K_CASE_ANY(name, shape)                                                                    \
  case WL_OP__##name: K_##shape(wl_op_##name)
#define K_CASE_HOST(name, shape)
#define K_CASE_LONG(name, shape)                                                                   \
  case WL_OP__##name: K_LONG_##shape
#define K_LONG_V_VV                                                                                \
  if (with & K_LONG) k_long(args, sh, in.op, in.number, d, a, b, act);                             \
  break;
#define K_LONG_V_DATE K_LONG_V_VV
#define K_LONG_I_DATE K_LONG_V_VV
#define K_LONG_AGG_V                                                                               \
  if ((with & K_LONG) && g) kg_add_numbers(sh, g, &in, a, rows, group, act);                       \
  if ((with & K_LONG) && !g) k_aggregate_numbers(sh, args, &in, a, rows, act);                     \
  break;
#define K_LONG_V_V                                                                                 \
  if (with & K_LONG) k_long(args, sh, in.op, in.number, d, a, (const wl_kopnd *)0, act);           \
  break;
/* clang-format on */

/* Runs the instructions [pc, end) over the rows `act` of a tile. Returns the rows that are left.
** Without groups, g is a compile-time NULL, so that wl_interp contains no code for them. Likewise
** `with` is a compile-time constant. */
WL_FN wl_u32 k_run(const wl_kargs *args, wl_u8 *sh, wl_u32 pc, wl_u32 end, const k_rows *rows,
                   wl_u32 act, const wl_kgroup *g, int with) {
  const wl_kopnd *opnds = (const wl_kopnd *)(const void *)sh;
  const wl_kinstr *code = (const wl_kinstr *)(const void *)(sh + args->code_offset);
  wl_vctx ctx = args->ctx;
  wl_u32 group[WL_K_ROWS] = {0}, there;
  wl_u64 x[WL_K_ROWS], y[WL_K_ROWS];
  wl_u8 truth[WL_K_ROWS];
  for (; pc < end; pc++) {
    const wl_kinstr in = code[pc];
    const wl_kopnd *d = &opnds[in.d < 0 ? 0 : in.d], *a = &opnds[in.a < 0 ? 0 : in.a];
    const wl_kopnd *b = &opnds[in.b < 0 ? 0 : in.b], *c = &opnds[in.c < 0 ? 0 : in.c];
    (void)c;
    switch (in.op) {
    case WL_K_FILTER:
      act = k_filter(args, &args->cols[in.a], &args->ranges[in.number], rows, act);
      if (!simt_any(act != 0)) return 0;
      break;
    case WL_K_CODE:
      if (g && (with & K_SETS)) kg_code(sh, g, (wl_u32)in.number, d, a, rows, act, group);
      break;
    case WL_K_PASSED: k_passed(args, sh, (wl_u32)in.a, (wl_u32)in.b, act); break;
    case WL_K_UNMARKED:
      act = k_unmarked(args, sh, (wl_u32)in.a, in.b, (wl_u32)in.number, act);
      break;
    case WL_K_ASIDE: act &= ~k_absent(args, sh, rows, (wl_u32)in.number); break;
#define WL_OPCODE(name, shape, place, text) K_CASE_##place(name, shape)
#include "program/opcodes.def"
#undef WL_OPCODE
    default: break;
    }
  }
  return act;
}

#include "exec/gpu/kernels/kcompact.h"
#include "exec/gpu/kernels/kqueue.h"

/* ---- the kernels */

/* Copies operands and constants into shared memory. A barrier must follow. */
WL_FN void k_prepare(const wl_kargs *args, wl_u8 *sh) {
  const wl_u32 T = simt_bdim(), tid = simt_tid();
  wl_kopnd *opnds = (wl_kopnd *)(void *)sh;
  wl_kinstr *code = (wl_kinstr *)(void *)(sh + args->code_offset);
  for (wl_u32 i = tid; i < args->n_opnds; i += T) opnds[i] = args->opnds[i];
  for (wl_u32 i = tid; i < args->n_code; i += T) code[i] = args->code[i];
  for (wl_u32 i = tid; i < args->n_cuts; i += T) *k_queue_count(args, sh, i) = 0;
  for (wl_u32 i = tid; i < args->n_consts; i += T) {
    wl_u8 *p = sh + args->const_offset + 16 * i;
    wl_val v = args->consts[i];
    *(wl_u64 *)(void *)p = v.v;
    *(wl_u32 *)(void *)(p + 8) = v.n;
    p[12] = v.t;
    p[13] = v.t != WL_T_NULL;
    p[14] = v.t == WL_T_NULL ? WL_UNKNOWN : v.v ? WL_TRUE : WL_FALSE;
  }
}

/* The rows of the thread in a tile that starts at row `base`. Returns those that exist. */
WL_FN wl_u32 k_tile(const wl_kargs *args, wl_u64 base, k_rows *rows) {
  wl_u32 act = 0;
  rows->first = base + (wl_u64)simt_tid() * WL_K_ROWS;
  K_EACH {
    rows->row[k] = (wl_u32)rows->first + k;
    if (rows->first + k < args->n_rows) act |= 1u << k;
  }
  if (args->live && act) act &= args->live[rows->first / 32] >> (rows->first & 31); /* of 4 rows */
  return act;
}

/*
** Runs all rows of the launch. Each block takes tiles: of a launch with ordered output by a ticket,
** else in turn. If the code has cuts, it also runs what waits in its queues.
*/
WL_FN void k_loop(const wl_kargs *args, wl_u8 *sh, const wl_kgroup *g, int with) {
  const wl_u32 T = simt_bdim();
  wl_u64 *taken = (wl_u64 *)(void *)(sh + args->count_offset + WL_K_TAKEN);
  wl_u64 next = simt_bid();
  wl_u32 more = 1, done = 0;
  for (;;) {
    k_turn turn = {0, 0, 0};
    k_rows rows;
    wl_u64 tile = next;
    wl_u32 act = 0, full = 0;
    if (args->n_cuts) turn = k_choose(args, sh, more);
    if (turn.stage > args->n_cuts) break;
    if (g && (g->most || g->n_sets || g->n_coders))
      full = simt_any(simt_load_u64(g->full) != 0); /* it will be repeated */
    if (turn.stage) {
      act = k_take(args, sh, &turn, &rows);
    } else {
      if (args->n_outs) {
        if (simt_tid() == 0) *taken = simt_atomic_add_u64(args->ticket, 1);
        simt_barrier();
        tile = *taken;
      } else {
        next += simt_gdim();
      }
      more = tile < args->n_tiles;
      if (!more && !args->n_cuts) break;
      act = more ? k_tile(args, tile * T * WL_K_ROWS, &rows) : 0;
      k_enter(args, sh, &rows, act);
    }
    if (full && !args->n_cuts) break;
    if (full) act = 0;
    if (simt_any(act != 0))
      act = k_run(args, sh, turn.stage ? args->cuts[turn.stage - 1].pc : 0,
                  turn.stage < args->n_cuts ? args->cuts[turn.stage].pc : args->n_code, &rows, act,
                  g, with);
    if (turn.stage < args->n_cuts) {
      k_append(args, sh, turn.stage, &rows, act);
    } else if (args->n_outs) {
      k_compact(args, sh, tile, &rows, act, with);
      simt_barrier(); /* all have read counts and taken before the next tile writes them */
    } else if (g && g->copies && ++done == g->flush_tiles) {
      kg_pour(sh, g);
      done = 0;
    }
  }
}

WL_FN void k_interp(const wl_kargs *args, int with) {
  const wl_u32 T = simt_bdim(), tid = simt_tid();
  wl_u8 *sh = simt_shared();
  k_prepare(args, sh);
  for (wl_u32 s = 0; s < args->n_slots; s++) *k_acc(sh, args, s) = 0;
  simt_barrier();
  k_loop(args, sh, (const wl_kgroup *)0, with);
  if (args->n_slots) {
    for (wl_u32 half = T / 2; half > 0; half /= 2) {
      simt_barrier();
      if (tid < half) k_join(sh, args, half);
    }
    if (tid == 0) k_flush(sh, args);
  }
}
WL_KERNEL_OF(wl_interp_numbers, wl_kargs, 512) {
  k_interp(args, 0);
}
WL_KERNEL_OF(wl_interp, wl_kargs, 512) {
  k_interp(args, K_VALUES);
}
WL_KERNEL_OF(wl_interp_long, wl_kargs, 512) {
  k_interp(args, K_VALUES | K_LONG);
}

#include "exec/gpu/kernels/kresults.h"
#include "exec/gpu/kernels/kgroup.h"
#include "exec/gpu/kernels/korder.h"
#include "exec/gpu/kernels/kties.h"
#include "exec/gpu/kernels/kfinish.h"
#include "exec/gpu/kernels/kmade.h"

#endif
