/*
** Segments of numbers. The writer chooses the encoding with one or two quick passes over the
** values. The reader checks the values against the zone map. See codec_impl.h for the encodings.
**
** Invariants:
** 1. After reading, every value lies in the header's range and every NULL is zero, whatever the
**    bytes were. Programs rely on it: they index tables by value minus the least value.
** 2. Loops over values allocate nothing and have no branches, so the compiler can vectorise them.
*/
#include "base/mem.h"
#include "tablet/format/codec_impl.h"

/* ---- passes */

/* Whether a value lies outside the range. zero_ok: zeros are accepted even if outside. */
#define OUTSIDE(NAME, T, BITS, RANGE)                                                              \
  static WL_CLONES bool NAME(const T *v, wl_i32 n, RANGE lo, RANGE hi, bool zero_ok) {             \
    BITS bad = 0;                                                                                  \
    T a = (T)lo, b = (T)hi;                                                                        \
    if (zero_ok)                                                                                   \
      for (wl_i32 i = 0; i < n; i++) bad |= (BITS)((!(v[i] >= a) | !(v[i] <= b)) & (v[i] != 0));   \
    else                                                                                           \
      for (wl_i32 i = 0; i < n; i++) bad |= (BITS)(!(v[i] >= a) | !(v[i] <= b));                   \
    return bad != 0;                                                                               \
  }
OUTSIDE(outside_i8, wl_i8, wl_u8, wl_i64)
OUTSIDE(outside_i16, wl_i16, wl_u16, wl_i64)
OUTSIDE(outside_i32, wl_i32, wl_u32, wl_i64)
OUTSIDE(outside_i64, wl_i64, wl_u64, wl_i64)
OUTSIDE(outside_f32, float, wl_u32, double)
OUTSIDE(outside_f64, double, wl_u64, double)

#define ZEROS(T)                                                                                   \
  for (wl_i32 i = 0; i < n; i++) zeros += ((const T *)v)[i] == 0
static WL_CLONES wl_i32 count_zeros(const void *v, int width, wl_i32 n) {
  wl_i32 zeros = 0;
  switch (width) {
  case 1: ZEROS(wl_u8); break;
  case 2: ZEROS(wl_u16); break;
  case 4: ZEROS(wl_u32); break;
  default: ZEROS(wl_u64);
  }
  return zeros;
}

/* Counts in groups of at most 255 rows, so that the counters can be as narrow as the values. */
#define CHANGES(T)                                                                                 \
  for (wl_i32 i = 1, end; i < n && total <= most; i = end) {                                       \
    const T *x = (const T *)v + i;                                                                 \
    T sum = 0;                                                                                     \
    end = n - i < 255 ? n : i + 255;                                                               \
    for (wl_i32 k = 0; k < end - i; k++) sum = (T)(sum + (x[k] != x[k - 1]));                      \
    total += (wl_i64)sum;                                                                          \
  }

/* The number of rows that differ from the row before. Counting may stop above most. */
static WL_CLONES wl_i64 count_changes(const void *v, int width, wl_i32 n, wl_i64 most) {
  wl_i64 total = 0;
  switch (width) {
  case 1: CHANGES(wl_u8); break;
  case 2: CHANGES(wl_u16); break;
  case 4: CHANGES(wl_u32); break;
  default: CHANGES(wl_u64);
  }
  return total;
}

static WL_CLONES bool fits_float(const double *v, wl_i32 n) {
  wl_u64 wide = 0;
  for (wl_i32 i = 0; i < n; i++) wide |= (double)(float)v[i] != v[i]; /* -0.0, infinities fit */
  return wide == 0;
}

static wl_u64 bits_at(const void *v, int width, wl_i32 i) {
  wl_u64 bits = 0;
  memcpy(&bits, (const wl_u8 *)v + (size_t)i * (size_t)width, (size_t)width);
  return bits;
}

/* One value, as an integer or as the bits of a double. */
static wl_u64 wide_at(const void *v, wl_u8 phys, wl_i32 i) {
  wl_u64 wide;
  size_t width = (size_t)wl_phys_width(phys);
  wl_phys_copy(&wide,
               phys == WL_P_F32   ? WL_P_F64
               : phys == WL_P_F64 ? WL_P_F64
                                  : WL_P_I64,
               (const wl_u8 *)v + (size_t)i * width, phys, 1);
  return wide;
}

/* Whether all values are in range and all NULLs are zero. phys is the type of v; it is integer or
** real as the header says. */
static bool in_range(const wl_header *h, const void *v, wl_u8 phys, const wl_u8 *valid) {
  const wl_domain *d = &h->domain;
  wl_i32 n = h->n_rows, r;
  int width = wl_phys_width(phys);
  bool real = wl_header_types(h) == WL_M(WL_T_REAL), bad;
  bool zero_in = real ? d->flo <= 0 && d->fhi >= 0 : d->lo <= 0 && d->hi >= 0;
  bool null_zeros = valid && !zero_in; /* the NULLs must be the only zeros */
  if (null_zeros && count_zeros(v, width, n) != h->n_nulls) return false;
  switch (real && phys == WL_P_ANY ? WL_P_F64 : phys) {
  case WL_P_I8: bad = outside_i8(v, n, d->lo, d->hi, null_zeros); break;
  case WL_P_I16: bad = outside_i16(v, n, d->lo, d->hi, null_zeros); break;
  case WL_P_I32: bad = outside_i32(v, n, d->lo, d->hi, null_zeros); break;
  case WL_P_F32: bad = outside_f32(v, n, d->flo, d->fhi, null_zeros); break;
  case WL_P_F64: bad = outside_f64(v, n, d->flo, d->fhi, null_zeros); break;
  default: bad = outside_i64(v, n, d->lo, d->hi, null_zeros);
  }
  wl_u64 not_zero = 0;
  if (valid) WL_EACH_NULL(r, valid, n)
  not_zero |= bits_at(v, width, r);
  return !bad && !not_zero;
}

/* ---- writing */

#define UNLIKE(T)                                                                                  \
  for (wl_i32 i = 0; i < n; i++) bad |= ((const T *)v)[i] ^ (T)(base + (wl_u64)i * stride)
static WL_CLONES bool has_steps(const void *v, int width, wl_i32 n, wl_u64 base, wl_u64 stride) {
  wl_u64 bad = 0;
  switch (width) {
  case 1: UNLIKE(wl_u8); break;
  case 2: UNLIKE(wl_u16); break;
  case 4: UNLIKE(wl_u32); break;
  default: UNLIKE(wl_u64);
  }
  return bad == 0;
}

static bool is_step(const wl_header *h, const void *v, wl_u8 phys, wl_u64 *base, wl_u64 *stride) {
  wl_i32 n = h->n_rows;
  if (h->n_nulls || n < 2) return false;
  *base = wide_at(v, phys, 0);
  *stride = wide_at(v, phys, 1) - *base;
  wl_u64 span = (wl_u64)h->domain.hi - (wl_u64)h->domain.lo;
  bool falls = (wl_i64)*stride < 0;
  wl_u64 size = falls ? 0 - *stride : *stride;
  if (size == 0 || span / size != (wl_u64)n - 1 || span % size) return false;
  if ((wl_i64)*base != (falls ? h->domain.hi : h->domain.lo)) return false;
  return has_steps(v, wl_phys_width(phys), n, *base, *stride);
}

/* Whether all rows that are not NULL have the same value, bit for bit. */
static bool is_const(const wl_header *h, const void *v, bool real, wl_u64 *value) {
  int width = wl_phys_width(h->phys);
  if (!real) {
    *value = (wl_u64)h->domain.lo;
    return h->domain.lo == h->domain.hi;
  }
  *value = wl_f64_bits(h->domain.flo);
  if (h->domain.flo != h->domain.fhi) return false;
  if (h->domain.flo != 0) return true;
  *value = wide_at(v, h->phys, 0); /* 0.0 and -0.0 compare equal but differ in bits */
  if (h->n_nulls) return *value == 0 && count_zeros(v, width, h->n_rows) == h->n_rows;
  return count_changes(v, width, h->n_rows, 0) == 0;
}

#define RUNS(T)                                                                                    \
  for (wl_i32 i = 1; i <= n; i++) {                                                                \
    const T *x = (const T *)v + i;                                                                 \
    if (i < n && x[0] == x[-1]) continue;                                                          \
    wl_u16 length = (wl_u16)(i - start - 1);                                                       \
    memcpy(p, x - 1, sizeof(T));                                                                   \
    memcpy(lengths, &length, 2);                                                                   \
    p += sizeof(T);                                                                                \
    lengths += 2;                                                                                  \
    start = i;                                                                                     \
  }

static void write_runs(wl_u8 *p, const void *v, int width, wl_i32 n, wl_i64 n_runs) {
  wl_u8 *lengths = p + n_runs * width;
  wl_i32 start = 0;
  switch (width) {
  case 1: RUNS(wl_u8); break;
  case 2: RUNS(wl_u16); break;
  case 4: RUNS(wl_u32); break;
  default: RUNS(wl_u64);
  }
}

/* Writes values that are neither constant nor steps: as they are, packed, or as runs. */
static wl_status write_array(wl_draft *d, const void *v, bool real, wl_error *err) {
  wl_header *h = &d->h;
  int width = wl_phys_width(h->phys), bits = 0;
  wl_i32 n = h->n_rows;
  size_t size = (size_t)n * (size_t)width, packed;
  wl_decimal decimal = {0};
  h->enc = WL_E_NARROW;
  if (real) {
    if (wl_decimal_try(v, h->phys, n, &decimal)) return wl_nomem(err);
    bits = decimal.bits;
    packed = decimal.k ? decimal.n_bytes : size;
  } else {
    bits = wl_bits_of((wl_u64)h->domain.hi - (wl_u64)h->domain.lo);
    packed = wl_packed_bytes(n, bits);
  }
  if (packed * 5 <= size * 4) {
    h->enc = real ? WL_E_DECIMAL : WL_E_PACKED;
    size = packed;
  }
  wl_i64 most = (wl_i64)size / 4 / (width + 2);
  wl_i64 n_runs = count_changes(v, width, n, most) + 1;
  if (n_runs <= most) {
    h->enc = WL_E_RUNS;
    size = (size_t)n_runs * (size_t)(width + 2);
  }
  wl_u8 *p = wl_draft_open(d, size);
  if (p) {
    h->width = (wl_u8)(h->enc == WL_E_PACKED || h->enc == WL_E_DECIMAL ? bits : 0);
    switch (h->enc) {
    case WL_E_RUNS: write_runs(p, v, width, n, n_runs); break;
    case WL_E_DECIMAL: wl_decimal_write(p, &decimal, n); break;
    case WL_E_PACKED:
      wl_pack(p, v, h->phys, h->n_nulls ? d->s->valid : NULL, n, h->domain.lo, bits);
      break;
    default: memcpy(p, v, size);
    }
  }
  wl_mem_free(decimal.k);
  return p ? WL_OK : wl_nomem(err);
}

/* Writes values that already have their narrowest type. */
static wl_status write_narrow(wl_draft *d, const void *v, bool real, wl_error *err) {
  wl_header *h = &d->h;
  const wl_u8 *valid = h->n_nulls ? d->s->valid : NULL;
  wl_u64 value, base, stride;
  wl_u8 *p;
  if (!in_range(h, v, h->phys, valid))
    return wl_fail(err, WL_MISUSE, "a segment has values outside its range");
  if (is_const(h, v, real, &value)) {
    h->enc = WL_E_CONST;
    if (!(p = wl_draft_open(d, 8))) return wl_nomem(err);
    wl_put64(p, value);
    return WL_OK;
  }
  if (!real && is_step(h, v, h->phys, &base, &stride)) {
    h->enc = WL_E_STEP;
    if (!(p = wl_draft_open(d, 16))) return wl_nomem(err);
    wl_put64(p, base);
    wl_put64(p + 8, stride);
    return WL_OK;
  }
  return write_array(d, v, real, err);
}

wl_status wl_write_numbers(wl_draft *d, wl_error *err) {
  wl_header *h = &d->h;
  const wl_segment *s = d->s;
  bool real = wl_header_types(h) == WL_M(WL_T_REAL);
  wl_u8 from = s->phys != WL_P_ANY ? s->phys : real ? WL_P_F64 : WL_P_I64;
  if (!real)
    h->phys = wl_int_phys(&h->domain);
  else
    h->phys = from == WL_P_F64 && !fits_float(s->data, s->n_rows) ? WL_P_F64 : WL_P_F32;
  if (h->phys == from) return write_narrow(d, s->data, real, err);
  if (h->phys > from || (from > WL_P_I64) != real)
    return wl_fail(err, WL_MISUSE, "a segment's range does not fit its type");
  void *narrow = wl_mem_alloc((size_t)s->n_rows * (size_t)wl_phys_width(h->phys));
  if (!narrow) return wl_nomem(err);
  wl_phys_copy(narrow, h->phys, s->data, from, s->n_rows);
  wl_status rc = write_narrow(d, narrow, real, err);
  wl_mem_free(narrow);
  return rc;
}

/* ---- reading */

#define FILL(T)                                                                                    \
  for (wl_i32 i = 0; i < n; i++) ((T *)to)[i + first] = (T)bits
static inline void fill(void *to, int width, wl_i32 first, wl_i32 n, wl_u64 bits) {
  switch (width) {
  case 1: FILL(wl_u8); break;
  case 2: FILL(wl_u16); break;
  case 4: FILL(wl_u32); break;
  default: FILL(wl_u64);
  }
}

#define STEPS(T)                                                                                   \
  for (wl_i32 i = 0; i < n; i++) ((T *)to)[i] = (T)(base + (wl_u64)i * stride)
static WL_CLONES void fill_steps(void *to, int width, wl_i32 n, wl_u64 base, wl_u64 stride) {
  switch (width) {
  case 1: STEPS(wl_u8); break;
  case 2: STEPS(wl_u16); break;
  case 4: STEPS(wl_u32); break;
  default: STEPS(wl_u64);
  }
}

static wl_status read_runs(const wl_header *h, const wl_u8 *p, size_t n, wl_u8 phys, void *to,
                           bool *ok) {
  size_t from_width = (size_t)wl_phys_width(h->phys), n_runs = n / (from_width + 2);
  int width = wl_phys_width(phys);
  *ok = n_runs > 0 && n_runs <= (size_t)h->n_rows && n % (from_width + 2) == 0;
  if (!*ok) return WL_OK;
  wl_u8 *values = wl_mem_alloc(n_runs * (size_t)width);
  if (!values) return WL_NOMEM;
  wl_phys_copy(values, phys, p, h->phys, (wl_i32)n_runs);
  p += n_runs * from_width;
  wl_i32 first = 0;
  for (size_t k = 0; k < n_runs && *ok; k++, p += 2) {
    wl_i32 length = (p[0] | p[1] << 8) + 1;
    *ok = length <= h->n_rows - first;
    if (*ok) fill(to, width, first, length, bits_at(values, width, (wl_i32)k));
    first += length;
  }
  *ok = *ok && first == h->n_rows;
  wl_mem_free(values);
  return WL_OK;
}

/* Decodes the values. NULL rows may hold anything. */
static wl_status read_values(const wl_header *h, const wl_u8 *p, size_t n, wl_u8 phys, void *to,
                             bool *ok) {
  int width = wl_phys_width(phys), bits;
  wl_u64 one = 0;
  switch (h->enc) {
  case WL_E_CONST:
    if (!(*ok = n == 8)) break;
    wl_u64 value = wl_get64(p);
    wl_phys_copy(&one, phys, &value, h->phys > WL_P_I64 ? WL_P_F64 : WL_P_I64, 1);
    fill(to, width, 0, h->n_rows, one);
    break;
  case WL_E_STEP:
    if ((*ok = n == 16)) fill_steps(to, width, h->n_rows, wl_get64(p), wl_get64(p + 8));
    break;
  case WL_E_NARROW:
    *ok = n == (size_t)h->n_rows * (size_t)wl_phys_width(h->phys);
    if (*ok) wl_phys_copy(to, phys, p, h->phys, h->n_rows);
    break;
  case WL_E_PACKED:
    bits = wl_bits_of((wl_u64)h->domain.hi - (wl_u64)h->domain.lo);
    *ok = h->width == bits && bits > 0 && n == wl_packed_bytes(h->n_rows, bits);
    if (*ok) wl_unpack(to, phys, p, h->n_rows, h->domain.lo, bits);
    break;
  case WL_E_DECIMAL: *ok = wl_decimal_read(h, p, n, phys, to); break;
  default: return read_runs(h, p, n, phys, to, ok);
  }
  return WL_OK;
}

wl_status wl_read_numbers(const wl_header *h, const wl_u8 *p, size_t n, wl_u8 phys, wl_segment *s,
                          bool *ok) {
  int width = wl_phys_width(phys);
  wl_i32 r;
  if (!s->data) s->data = wl_mem_alloc((size_t)h->n_rows * (size_t)width);
  if (!s->data) return WL_NOMEM;
  wl_status rc = read_values(h, p, n, phys, s->data, ok);
  if (rc || !*ok) return rc;
  if (s->valid && (h->enc == WL_E_CONST || h->enc == WL_E_PACKED))
    WL_EACH_NULL(r, s->valid, h->n_rows)
  memset((wl_u8 *)s->data + (size_t)r * (size_t)width, 0, (size_t)width);
  *ok = in_range(h, s->data, phys, s->valid);
  return WL_OK;
}
