/*
** Reals that are decimals with few digits: prices, rates, measurements. Each is k / 10^e for an
** integer k and one e for the whole segment. The integers k are bit-packed.
**
** Invariants:
** 1. A segment is written this way only if the double division k / 10^e gives every value, bit for
**    bit. So it has no negative zeros and no infinities.
** 2. |k| < 2^51. So adding 1.5 * 2^52 to a double rounds it and leaves k in its low bits. This and
**    its inverse work in every vector unit.
*/
#include "base/mem.h"
#include "tablet/format/codec_impl.h"

enum { MOST_E = 9, BLOCK = 1024, SAMPLE = 32, HEAD = 9 /* least k, e */ };

static const double power[MOST_E + 1] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
static const double rounder = 0x1.8p52, limit = 0x1p51;

/* Computes k for each of m values, and widens lo and hi. False: some are not decimals. */
static WL_CLONES bool scale(const double *v, wl_i32 m, double p, wl_i64 *k, wl_i64 *lo,
                            wl_i64 *hi) {
  wl_u64 bad = 0;
  wl_i64 least = *lo, most = *hi;
  for (wl_i32 i = 0; i < m; i++) {
    double sum = v[i] * p + rounder, whole = sum - rounder;
    wl_i64 x = (wl_i64)(wl_f64_bits(sum) - wl_f64_bits(rounder));
    k[i] = x;
    bad |= wl_f64_bits(whole / p) ^ wl_f64_bits(v[i]);
    bad |= !(whole < limit) | !(whole > -limit);
    least = x < least ? x : least;
    most = x > most ? x : most;
  }
  *lo = least;
  *hi = most;
  return bad == 0;
}

static WL_CLONES void unscale(double *v, wl_i32 m, double p, const wl_i64 *k) {
  for (wl_i32 i = 0; i < m; i++)
    v[i] = (wl_as_f64((wl_u64)k[i] + wl_f64_bits(rounder)) - rounder) / p;
}

/* The number of digits that a sample of the values needs; -1: too many. */
static int find_e(const void *v, wl_u8 phys, wl_i32 n) {
  double sample[SAMPLE];
  wl_i64 k[SAMPLE], lo = 0, hi = 0;
  size_t width = (size_t)wl_phys_width(phys);
  wl_i32 m = n < SAMPLE ? n : SAMPLE;
  for (wl_i32 i = 0; i < m; i++)
    wl_phys_copy(&sample[i], WL_P_F64, (const wl_u8 *)v + (size_t)(n / m * i) * width, phys, 1);
  for (int e = 0; e <= MOST_E; e++)
    if (scale(sample, m, power[e], k, &lo, &hi)) return e;
  return -1;
}

wl_status wl_decimal_try(const void *v, wl_u8 phys, wl_i32 n, wl_decimal *out) {
  memset(out, 0, sizeof *out);
  int e = find_e(v, phys, n);
  if (e < 0) return WL_OK;
  wl_i64 *k = wl_mem_alloc((size_t)n * sizeof *k), lo = WL_I64_MAX, hi = WL_I64_MIN;
  bool ok = k != NULL;
  for (wl_i32 i = 0; i < n && ok; i += BLOCK) {
    double values[BLOCK];
    wl_i32 m = n - i < BLOCK ? n - i : BLOCK;
    wl_phys_copy(values, WL_P_F64, (const wl_u8 *)v + (size_t)i * (size_t)wl_phys_width(phys), phys,
                 m);
    ok = scale(values, m, power[e], k + i, &lo, &hi);
  }
  if (!ok || lo == hi) {
    wl_mem_free(k);
    return k ? WL_OK : WL_NOMEM;
  }
  out->k = k;
  out->e = e;
  out->lo = lo;
  out->bits = wl_bits_of((wl_u64)hi - (wl_u64)lo);
  out->n_bytes = HEAD + wl_packed_bytes(n, out->bits);
  return WL_OK;
}

void wl_decimal_write(wl_u8 *p, const wl_decimal *d, wl_i32 n) {
  wl_put64(p, (wl_u64)d->lo);
  p[8] = (wl_u8)d->e;
  wl_pack(p + HEAD, d->k, WL_P_I64, NULL, n, d->lo, d->bits);
}

bool wl_decimal_read(const wl_header *h, const wl_u8 *p, size_t n, wl_u8 phys, void *to) {
  int bits = h->width;
  size_t width = (size_t)wl_phys_width(phys);
  if (bits < 1 || bits > 52 || n != HEAD + wl_packed_bytes(h->n_rows, bits) || p[8] > MOST_E)
    return false;
  wl_i64 lo = (wl_i64)wl_get64(p);
  double by = power[p[8]];
  p += HEAD;
  for (wl_i32 i = 0; i < h->n_rows; i += BLOCK, p += 128 * (size_t)bits) {
    wl_i64 k[BLOCK];
    double v[BLOCK];
    wl_i32 m = h->n_rows - i < BLOCK ? h->n_rows - i : BLOCK;
    wl_unpack(k, WL_P_I64, p, m, lo, bits);
    unscale(v, m, by, k);
    wl_phys_copy((wl_u8 *)to + (size_t)i * width, phys, v, WL_P_F64, m);
  }
  return true;
}
