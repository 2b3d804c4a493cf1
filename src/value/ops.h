/*
** The meaning of each scalar opcode of program/opcodes.def. The CPU loops, the GPU interpreter and
** the constant folder all call these functions.
**
** Invariants:
** 1. wl_op_<Name> is the meaning of opcode <Name>. Its parameters follow from the opcode's shape in
**    opcodes.def.
** 2. Typed functions (I, F) never see NULL: the executor handles NULLs. Generic functions (V) see
**    tags and handle NULL themselves.
** 3. Nothing here traps or is undefined for any input, because a row that a filter has dropped may
**    still be computed.
*/
#ifndef WL_OPS_H
#define WL_OPS_H

#include "value/like.h"
#include "value/text_number.h"
#include "value/value.h"

enum {
  WL_FAULT_NONE = 0,
  WL_FAULT_ROOM = 1,   /* no room for text: the runner tries again with more */
  WL_FAULT_TOOBIG = 2, /* a string is over SQLite's limit: the statement fails */
  WL_FAULT_SQL = 3,    /* an SQLite function raised an error: SQLite runs the statement */
  WL_FAULT_STOP = 4,   /* the work was interrupted */
  WL_FAULT_DATE = 5,   /* a device met a date that only the CPU can compute */
  WL_FAULT_NUMBER = 6  /* a device met a text whose number only SQLite can compute */
};

/* Memory for the text that generic opcodes create, and the host's converter. */
typedef struct wl_vctx {
  wl_u8 *text;  /* scratch bytes */
  wl_u64 *used; /* bytes in use (shared between threads on a device) */
  wl_u64 size;
  wl_u64 max_text;      /* SQLite's limit on the length of a string */
  wl_u32 *fault;        /* set to WL_FAULT_... when something goes wrong */
  struct wl_conv *conv; /* SQLite's own conversions; NULL on a device */
  void *chunks;         /* host: all scratch chunks so far; NULL on a device */
  wl_u32 rounding;      /* device: how SQLite rounds numbers of texts (text_number.h) */
} wl_vctx;

/* Notes a fault. If threads of a device note several, one of them stays. */
WL_FN void wl_vctx_fail(wl_vctx *x, wl_u32 fault) {
#ifdef __CUDACC__
  *(volatile wl_u32 *)x->fault = fault;
#else
  __atomic_store_n(x->fault, fault, __ATOMIC_RELAXED);
#endif
}

#ifdef __CUDACC__
WL_FN wl_u8 *wl_scratch(wl_vctx *x, wl_u32 n) {
  wl_u64 at = atomicAdd(x->used, (wl_u64)n);
  if (at + n > x->size) {
    wl_vctx_fail(x, WL_FAULT_ROOM);
    return 0;
  }
  return x->text + at;
}
#else
/* On the host (value/scratch.c), scratch memory grows but never moves. In the simulator its size is
** fixed. */
wl_u8 *wl_scratch(wl_vctx *x, wl_u32 n);
/* SQLite's conversions (value/conv.c). */
wl_val wl_conv_number(wl_vctx *x, wl_val a, int want); /* WL_NUMBER_… of a text or blob */
wl_val wl_conv_text(wl_vctx *x, double r);             /* a REAL as text */
wl_i32 wl_conv_seconds(double s); /* the digits of printf('%06.3f', s) as a number */
#endif

/* ---- integers; the compiler has proved that + - * and unary - stay inside 64 bits */
WL_FN wl_i64 wl_op_AddI(wl_i64 a, wl_i64 b) {
  return (wl_i64)((wl_u64)a + (wl_u64)b);
}
WL_FN wl_i64 wl_op_SubI(wl_i64 a, wl_i64 b) {
  return (wl_i64)((wl_u64)a - (wl_u64)b);
}
WL_FN wl_i64 wl_op_MulI(wl_i64 a, wl_i64 b) {
  return (wl_i64)((wl_u64)a * (wl_u64)b);
}
WL_FN wl_i64 wl_op_DivI(wl_i64 a, wl_i64 b) {
  return b == 0 ? 0 : b == -1 ? (wl_i64)(0 - (wl_u64)a) : a / b;
}
WL_FN wl_i64 wl_op_RemI(wl_i64 a, wl_i64 b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
WL_FN wl_i64 wl_op_BitAndI(wl_i64 a, wl_i64 b) {
  return a & b;
}
WL_FN wl_i64 wl_op_BitOrI(wl_i64 a, wl_i64 b) {
  return a | b;
}
WL_FN wl_i64 wl_op_BitNotI(wl_i64 a) {
  return ~a;
}

/* A negative count shifts the other way. A count of 64 or more shifts out all bits. */
WL_FN wl_i64 wl_shift(wl_i64 a, wl_i64 n, int left) {
  if (n < 0) {
    left = !left;
    n = n > -64 ? -n : 64;
  }
  if (n >= 64) return a >= 0 || left ? 0 : -1;
  if (left) return (wl_i64)((wl_u64)a << n);
  if (a >= 0 || n == 0) return (wl_i64)((wl_u64)a >> n);
  return (wl_i64)(((wl_u64)a >> n) | (~(wl_u64)0 << (64 - n)));
}
WL_FN wl_i64 wl_op_ShlI(wl_i64 a, wl_i64 b) {
  return wl_shift(a, b, 1);
}
WL_FN wl_i64 wl_op_ShrI(wl_i64 a, wl_i64 b) {
  return wl_shift(a, b, 0);
}

WL_FN int wl_op_EqI(wl_i64 a, wl_i64 b) {
  return a == b;
}
WL_FN int wl_op_NeI(wl_i64 a, wl_i64 b) {
  return a != b;
}
WL_FN int wl_op_LtI(wl_i64 a, wl_i64 b) {
  return a < b;
}
WL_FN int wl_op_LeI(wl_i64 a, wl_i64 b) {
  return a <= b;
}
WL_FN int wl_op_GtI(wl_i64 a, wl_i64 b) {
  return a > b;
}
WL_FN int wl_op_GeI(wl_i64 a, wl_i64 b) {
  return a >= b;
}
WL_FN int wl_op_TruthI(wl_i64 a) {
  return a != 0;
}

/* ---- reals; a NaN result is NULL */
WL_FN double wl_op_AddF(double a, double b) {
  return a + b;
}
WL_FN double wl_op_SubF(double a, double b) {
  return a - b;
}
WL_FN double wl_op_MulF(double a, double b) {
  return a * b;
}
WL_FN double wl_op_DivF(double a, double b) {
  return b == 0.0 ? wl_as_f64(0x7ff8000000000000ULL) : a / b;
}
WL_FN wl_i64 wl_f64_to_i64(double r) {
  if (r <= -9223372036854775808.0) return WL_I64_MIN;
  if (r >= 9223372036854775807.0) return WL_I64_MAX;
  return r == r ? (wl_i64)r : 0;
}
WL_FN double wl_op_RemF(double a, double b) {
  wl_i64 x = wl_f64_to_i64(a), y = wl_f64_to_i64(b);
  return y == 0 ? wl_as_f64(0x7ff8000000000000ULL) : (double)wl_op_RemI(x, y);
}
/* round(a): half away from zero. From 2^52 on there is nothing to round. */
WL_FN double wl_op_RoundF(double a) {
  if (a < -4503599627370496.0 || a > 4503599627370496.0 || a != a) return a;
  return (double)(wl_i64)(a + (a < 0 ? -0.5 : 0.5));
}
WL_FN int wl_op_EqF(double a, double b) {
  return a == b;
}
WL_FN int wl_op_NeF(double a, double b) {
  return a != b;
}
WL_FN int wl_op_LtF(double a, double b) {
  return a < b;
}
WL_FN int wl_op_LeF(double a, double b) {
  return a <= b;
}
WL_FN int wl_op_GtF(double a, double b) {
  return a > b;
}
WL_FN int wl_op_GeF(double a, double b) {
  return a >= b;
}
WL_FN int wl_op_TruthF(double a) {
  return a != 0.0;
}
WL_FN double wl_op_IntToReal(wl_i64 a) {
  return (double)a;
}
WL_FN wl_i64 wl_op_RealToInt(double a) {
  return wl_f64_to_i64(a);
}

/* ---- truth */
WL_FN wl_u8 wl_op_And(wl_u8 a, wl_u8 b) {
  return a < b ? a : b;
}
WL_FN wl_u8 wl_op_Or(wl_u8 a, wl_u8 b) {
  return a > b ? a : b;
}
WL_FN wl_u8 wl_op_Not(wl_u8 a) {
  return (wl_u8)(2 - a);
}

/* ---- generic comparisons; c is the collation */
#define WL_GENERIC_CMP(name, test)                                                                 \
  WL_FN wl_u8 wl_op_##name(wl_vctx *x, wl_val a, wl_val b, int c) {                                \
    (void)x;                                                                                       \
    if (a.t == WL_T_NULL || b.t == WL_T_NULL) return WL_UNKNOWN;                                   \
    return (wl_u8)(wl_cmp_val(a, b, c) test 0 ? WL_TRUE : WL_FALSE);                               \
  }
WL_GENERIC_CMP(EqV, ==)
WL_GENERIC_CMP(NeV, !=)
WL_GENERIC_CMP(LtV, <)
WL_GENERIC_CMP(LeV, <=)
WL_GENERIC_CMP(GtV, >)
WL_GENERIC_CMP(GeV, >=)

WL_FN wl_u8 wl_op_IsV(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return (wl_u8)(a.t == b.t ? WL_TRUE : WL_FALSE);
  return (wl_u8)(wl_cmp_val(a, b, c) == 0 ? WL_TRUE : WL_FALSE);
}

/* a IN a sorted set of n values. */
WL_FN wl_u8 wl_in_set(wl_val a, const wl_val *set, wl_i64 n, int coll, int has_null) {
  if (a.t == WL_T_NULL) return WL_UNKNOWN;
  wl_i64 lo = 0, hi = n;
  while (lo < hi) {
    wl_i64 mid = lo + (hi - lo) / 2;
    int cmp = wl_cmp_val(set[mid], a, coll);
    if (cmp == 0) return WL_TRUE;
    if (cmp < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return (wl_u8)(has_null ? WL_UNKNOWN : WL_FALSE);
}

/* Numbers and NULL only. */
WL_FN wl_u8 wl_op_TruthV(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)b;
  (void)c;
  if (a.t == WL_T_INT) return a.v != 0 ? WL_TRUE : WL_FALSE;
  if (a.t == WL_T_REAL) return wl_as_f64(a.v) != 0.0 ? WL_TRUE : WL_FALSE;
  return WL_UNKNOWN;
}

/* ---- generic arithmetic over INTEGER, REAL and NULL */
WL_FN double wl_val_f64(wl_val a) {
  return a.t == WL_T_INT ? (double)(wl_i64)a.v : a.t == WL_T_REAL ? wl_as_f64(a.v) : 0.0;
}
WL_FN wl_val wl_op_AddV(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)c;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  if (a.t == WL_T_INT && b.t == WL_T_INT) {
    wl_i64 r = wl_op_AddI((wl_i64)a.v, (wl_i64)b.v);
    if (((a.v ^ (wl_u64)r) & (b.v ^ (wl_u64)r)) >> 63 == 0) return wl_int(r);
  }
  return wl_real(wl_val_f64(a) + wl_val_f64(b));
}
WL_FN wl_val wl_op_SubV(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)c;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  if (a.t == WL_T_INT && b.t == WL_T_INT) {
    wl_i64 r = wl_op_SubI((wl_i64)a.v, (wl_i64)b.v);
    if (((a.v ^ b.v) & (a.v ^ (wl_u64)r)) >> 63 == 0) return wl_int(r);
  }
  return wl_real(wl_val_f64(a) - wl_val_f64(b));
}
/* The product of two integers. Sets *ok to 0 if it needs more than 64 bits. */
WL_FN wl_i64 wl_mul_check(wl_i64 a, wl_i64 b, int *ok) {
#ifdef __CUDA_ARCH__
  wl_i64 lo = (wl_i64)((wl_u64)a * (wl_u64)b), hi = __mul64hi(a, b);
  *ok = hi == (lo >> 63);
  return lo;
#else
  wl_i64 r = 0;
  *ok = !__builtin_mul_overflow(a, b, &r);
  return r;
#endif
}
WL_FN wl_val wl_op_MulV(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)c;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  if (a.t == WL_T_INT && b.t == WL_T_INT) {
    int ok;
    wl_i64 r = wl_mul_check((wl_i64)a.v, (wl_i64)b.v, &ok);
    if (ok) return wl_int(r);
  }
  return wl_real(wl_val_f64(a) * wl_val_f64(b));
}
WL_FN wl_val wl_op_DivV(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)c;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  if (a.t == WL_T_INT && b.t == WL_T_INT) {
    if (b.v == 0) return wl_null();
    if ((wl_i64)b.v != -1 || (wl_i64)a.v != WL_I64_MIN)
      return wl_int(wl_op_DivI((wl_i64)a.v, (wl_i64)b.v));
  }
  return wl_real(wl_op_DivF(wl_val_f64(a), wl_val_f64(b)));
}
WL_FN wl_i64 wl_val_i64(wl_val a) {
  return a.t == WL_T_INT ? (wl_i64)a.v : a.t == WL_T_REAL ? wl_f64_to_i64(wl_as_f64(a.v)) : 0;
}
WL_FN wl_val wl_op_RemV(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)c;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  wl_i64 d = wl_val_i64(b);
  if (d == 0) return wl_null();
  wl_i64 r = wl_op_RemI(wl_val_i64(a), d);
  return a.t == WL_T_INT && b.t == WL_T_INT ? wl_int(r) : wl_real((double)r);
}

/* Join keys: a's value in the type of the other side's keys, or NULL if that type cannot represent
** it. */
WL_FN wl_val wl_op_KeyI(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x, (void)b, (void)c;
  if (a.t == WL_T_INT) return a;
  if (a.t != WL_T_REAL) return wl_null();
  wl_i64 i = wl_f64_to_i64(wl_as_f64(a.v));
  return wl_cmp_if(i, wl_as_f64(a.v)) == 0 ? wl_int(i) : wl_null();
}
WL_FN wl_val wl_op_KeyF(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x, (void)b, (void)c;
  if (a.t == WL_T_REAL) return a;
  if (a.t != WL_T_INT) return wl_null();
  double r = (double)(wl_i64)a.v;
  return wl_cmp_if((wl_i64)a.v, r) == 0 ? wl_real(r) : wl_null();
}
/* Any value as an integer: text counts by its leading digits, and values that are too large are
** clamped. */
WL_FN wl_val wl_op_ToInt(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)b;
  (void)c;
  if (a.t == WL_T_NULL) return a;
  if (a.t < WL_T_TEXT) return wl_int(wl_val_i64(a));
  const wl_u8 *p = wl_bytes(a);
  wl_u32 i = 0;
  int neg = 0;
  while (i < a.n && (p[i] == ' ' || (p[i] >= 9 && p[i] <= 13))) i++;
  if (i < a.n && (p[i] == '-' || p[i] == '+')) neg = p[i++] == '-';
  wl_u64 u = 0;
  int over = 0;
  for (; i < a.n && p[i] >= '0' && p[i] <= '9'; i++) {
    if (u > 922337203685477580ULL)
      over = 1;
    else
      u = u * 10 + (wl_u64)(p[i] - '0');
    if (u > 9223372036854775808ULL) over = 1;
  }
  if (over || (u == 9223372036854775808ULL && !neg)) return wl_int(neg ? WL_I64_MIN : WL_I64_MAX);
  return wl_int(neg ? (wl_i64)(0 - u) : (wl_i64)u);
}

/* ---- text */
WL_FN wl_val wl_int_to_text(wl_vctx *x, wl_i64 i) {
  wl_u8 buf[20];
  wl_u32 n = 0;
  wl_u64 u = i < 0 ? 0 - (wl_u64)i : (wl_u64)i;
  do buf[n++] = (wl_u8)('0' + u % 10);
  while ((u /= 10) != 0);
  if (i < 0) buf[n++] = '-';
  wl_u8 *p = wl_scratch(x, n);
  if (!p) return wl_null();
  for (wl_u32 k = 0; k < n; k++) p[k] = buf[n - 1 - k];
  return wl_text(p, n);
}
/* Integers become text and blobs are read as text. Inputs are never REAL. */
WL_FN wl_val wl_op_IntToText(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)b;
  (void)c;
  if (a.t == WL_T_INT) return wl_int_to_text(x, (wl_i64)a.v);
  if (a.t == WL_T_BLOB) a.t = WL_T_TEXT;
  return a;
}
WL_FN wl_val wl_op_ToBlob(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)b;
  (void)c;
  if (a.t == WL_T_TEXT) a.t = WL_T_BLOB;
  return a;
}
WL_FN wl_val wl_op_Concat(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)c;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  if (a.n == 0 || b.n == 0) {
    wl_val r = a.n == 0 ? b : a;
    r.t = WL_T_TEXT;
    return r;
  }
  if ((wl_u64)a.n + b.n > x->max_text) {
    wl_vctx_fail(x, WL_FAULT_TOOBIG);
    return wl_null();
  }
  wl_u8 *p = wl_scratch(x, a.n + b.n);
  if (!p) return wl_null();
  memcpy(p, wl_bytes(a), a.n);
  memcpy(p + a.n, wl_bytes(b), b.n);
  return wl_text(p, a.n + b.n);
}

/* a LIKE b: b is text, a is text or NULL, c is the escape character or 0. */
WL_FN wl_u8 wl_like_truth(wl_val a, wl_val b, int glob, int escape) {
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return WL_UNKNOWN;
  wl_like k = wl_like_open(b, glob, escape);
  return (wl_u8)(wl_like_match(&k, wl_bytes(a), a.n) ? WL_TRUE : WL_FALSE);
}
WL_FN wl_u8 wl_op_Like(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  return wl_like_truth(a, b, 0, c);
}
WL_FN wl_u8 wl_op_Glob(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)c;
  return wl_like_truth(a, b, 1, 0);
}
/* The number of characters of text up to a NUL, or of bytes of a blob. Inputs are never numbers. */
WL_FN wl_val wl_op_Length(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)b;
  (void)c;
  if (a.t == WL_T_NULL) return a;
  if (a.t == WL_T_BLOB) return wl_int(a.n);
  const wl_u8 *p = wl_bytes(a);
  wl_i64 n = 0;
  for (wl_u32 i = 0; i < a.n && p[i]; n++)
    if (p[i++] >= 0xc0)
      while (i < a.n && (p[i] & 0xc0) == 0x80) i++;
  return wl_int(n);
}
/* The position after the character at i. */
WL_FN wl_u32 wl_skip_char(const wl_u8 *p, wl_u32 n, wl_u32 i) {
  if (p[i++] >= 0xc0)
    while (i < n && (p[i] & 0xc0) == 0x80) i++;
  return i;
}
/* substr() of text, with SQLite's rules for negative and zero arguments. */
WL_FN wl_val wl_op_Substr(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)c;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  const wl_u8 *p = wl_bytes(a);
  wl_i64 first = (wl_i32)(b.v >> 32), count = (wl_i32)(b.v & 0xffffffffu);
  int back = count < 0;
  if (back) count = -count;
  if (first < 0) {
    wl_i64 n = 0;
    for (wl_u32 i = 0; i < a.n && p[i]; n++) i = wl_skip_char(p, a.n, i);
    first += n;
    if (first < 0) {
      count += first;
      if (count < 0) count = 0;
      first = 0;
    }
  } else if (first > 0) {
    first--;
  } else if (count > 0) {
    count--;
  }
  if (back) {
    first -= count;
    if (first < 0) {
      count += first;
      first = 0;
    }
  }
  wl_u32 from = 0;
  for (; from < a.n && p[from] && first > 0; first--) from = wl_skip_char(p, a.n, from);
  wl_u32 to = from;
  for (; to < a.n && p[to] && count > 0; count--) to = wl_skip_char(p, a.n, to);
  return wl_text(p + from, to - from);
}
WL_FN wl_val wl_op_Instr(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  (void)c;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  const wl_u8 *p = wl_bytes(a), *q = wl_bytes(b);
  wl_i64 place = 1;
  if (b.n == 0) return wl_int(1);
  for (wl_u32 i = 0; (wl_u64)i + b.n <= a.n; place++) {
    wl_u32 k = 0;
    while (k < b.n && p[i + k] == q[k]) k++;
    if (k == b.n) return wl_int(place);
    do i++;
    while (i < a.n && (p[i] & 0xc0) == 0x80);
  }
  return wl_int(0);
}
/* The number of bytes of the character in set b that the text starts (or ends) with, or 0. */
WL_FN wl_u32 wl_trim_one(const wl_u8 *p, wl_u32 n, wl_val b, int at_end) {
  const wl_u8 *q = wl_bytes(b);
  for (wl_u32 i = 0; i < b.n && q[i];) {
    wl_u32 next = wl_skip_char(q, b.n, i), len = next - i, k = 0;
    const wl_u8 *s = at_end ? p + n - len : p;
    if (len <= n) {
      while (k < len && s[k] == q[i + k]) k++;
      if (k == len) return len;
    }
    i = next;
  }
  return 0;
}
WL_FN wl_val wl_op_Trim(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)x;
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  const wl_u8 *p = wl_bytes(a);
  wl_u32 n = a.n, k;
  while (c & 1 && n > 0 && (k = wl_trim_one(p, n, b, 0)) != 0) {
    p += k;
    n -= k;
  }
  while (c & 2 && n > 0 && (k = wl_trim_one(p, n, b, 1)) != 0) n -= k;
  return wl_text(p, n);
}
WL_FN wl_val wl_ascii_case(wl_vctx *x, wl_val a, int first, int flip) {
  if (a.t == WL_T_NULL) return a;
  wl_u8 *to = wl_scratch(x, a.n);
  const wl_u8 *p = wl_bytes(a);
  if (!to) return wl_null();
  for (wl_u32 i = 0; i < a.n; i++)
    to[i] = (wl_u8)(p[i] >= first && p[i] < first + 26 ? p[i] ^ flip : p[i]);
  return wl_text(to, a.n);
}
WL_FN wl_val wl_op_Upper(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)b;
  (void)c;
  return wl_ascii_case(x, a, 'a', 32);
}
WL_FN wl_val wl_op_Lower(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)b;
  (void)c;
  return wl_ascii_case(x, a, 'A', 32);
}

/* ---- text as numbers */

/* The number of a text or blob. A device sets a fault if the text needs SQLite. */
WL_FN wl_val wl_number(wl_vctx *x, wl_val a, int want) {
  wl_val r;
#ifndef __CUDACC__
  if (x->conv) return wl_conv_number(x, a, want);
#endif
  if (wl_number_of_text(a, want, (int)x->rounding, &r)) return r;
  wl_vctx_fail(x, WL_FAULT_NUMBER);
  return wl_null();
}
/*
** Arithmetic on text. The numbers in the texts decide whether it is integer arithmetic. If not,
** each text counts as a real ("-x" as -0.0), or for % by its leading digits.
*/
WL_FN wl_val wl_op_TextArith(wl_vctx *x, wl_val a, wl_val b, int c) {
  if (a.t == WL_T_NULL || b.t == WL_T_NULL) return wl_null();
  wl_val na = a.t >= WL_T_TEXT ? wl_number(x, a, WL_NUMBER_ARITH) : a,
         nb = b.t >= WL_T_TEXT ? wl_number(x, b, WL_NUMBER_ARITH) : b;
  int real = na.t == WL_T_REAL || nb.t == WL_T_REAL;
  if (real && c == '%') {
    na = wl_op_ToInt(x, a, a, 0);
    nb = wl_op_ToInt(x, b, b, 0);
  } else if (real) {
    if (a.t >= WL_T_TEXT) na = wl_number(x, a, WL_NUMBER_REAL);
    if (b.t >= WL_T_TEXT) nb = wl_number(x, b, WL_NUMBER_REAL);
  }
  switch (c) {
  case '+': return wl_op_AddV(x, na, nb, 0);
  case '-': return wl_op_SubV(x, na, nb, 0);
  case '*': return wl_op_MulV(x, na, nb, 0);
  case '/': return wl_op_DivV(x, na, nb, 0);
  default:
    na = wl_op_RemV(x, na, nb, 0);
    return real && na.t == WL_T_INT ? wl_real((double)(wl_i64)na.v) : na;
  }
}
WL_FN wl_val wl_op_NumAffinity(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)b;
  (void)c;
  return a.t == WL_T_TEXT ? wl_number(x, a, WL_NUMBER_AFFINITY) : a;
}
/* What sum() adds: a number, the number that a text consists of, or else its leading number. */
WL_FN wl_val wl_op_SumArg(wl_vctx *x, wl_val a, wl_val b, int c) {
  a = wl_op_NumAffinity(x, a, b, c);
  return a.t >= WL_T_TEXT ? wl_number(x, a, WL_NUMBER_REAL) : a;
}
WL_FN wl_val wl_op_CastReal(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)b;
  (void)c;
  if (a.t >= WL_T_TEXT) return wl_number(x, a, WL_NUMBER_REAL);
  return a.t == WL_T_INT ? wl_real((double)(wl_i64)a.v) : a;
}
WL_FN wl_val wl_op_CastNumeric(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)b;
  (void)c;
  return a.t >= WL_T_TEXT ? wl_number(x, a, WL_NUMBER_NUMERIC) : a;
}

/* ---- TEXT affinity before a comparison: numbers become text if the other side (b) is text */

/* Inputs are never REAL. */
WL_FN wl_val wl_op_IntTextAffinity(wl_vctx *x, wl_val a, wl_val b, int c) {
  (void)c;
  return a.t == WL_T_INT && b.t == WL_T_TEXT ? wl_int_to_text(x, (wl_i64)a.v) : a;
}

#ifndef __CUDACC__
/* ---- opcodes that need SQLite's own conversions: host only */
WL_FN wl_val wl_op_ToText(wl_vctx *x, wl_val a, wl_val b, int c) {
  return a.t == WL_T_REAL ? wl_conv_text(x, wl_as_f64(a.v)) : wl_op_IntToText(x, a, b, c);
}
WL_FN wl_val wl_op_TextAffinity(wl_vctx *x, wl_val a, wl_val b, int c) {
  if (b.t != WL_T_TEXT || (a.t != WL_T_INT && a.t != WL_T_REAL)) return a;
  return wl_op_ToText(x, a, b, c);
}
#endif

#include "value/date/date_ops.h"

#endif
