/*
** Packs integers into few bits. Each is stored as its difference from the least value of the
** segment, in as many bits as the largest difference needs.
**
** A block of 1,024 values is a matrix with rows of LANES values. Each lane (column) is a
** little-endian stream of bits in its own words; the words w of all lanes are stored next to each
** other. So all values of a row are shifted by the same amount, which vector instructions do at
** once. Differences of up to 32 bits use 32 lanes of 4-byte words, wider ones 16 lanes of 8-byte
** words. Either way a block has 128 bytes for each bit. The last block is padded with
** zeros.
*/
#include "tablet/format/codec_impl.h"

enum { BLOCK = 1024 };

int wl_bits_of(wl_u64 most) {
  return most ? 64 - __builtin_clzll(most) : 0;
}

size_t wl_packed_bytes(wl_i32 n, int bits) {
  return ((size_t)n + BLOCK - 1) / BLOCK * 128 * (size_t)bits;
}

#define BITS(W, T)                                                                                 \
  static WL_CLONES void pack##W(T *restrict to, const T *restrict v, int bits) {                   \
    enum { LANES = BLOCK / W };                                                                    \
    memset(to, 0, (size_t)bits * 128);                                                             \
    for (int k = 0; k < W; k++, v += LANES) {                                                      \
      int shift = k * bits % W;                                                                    \
      T *a = to + k * bits / W * LANES;                                                            \
      for (int l = 0; l < LANES; l++) a[l] |= v[l] << shift;                                       \
      if (shift + bits > W)                                                                        \
        for (int l = 0; l < LANES; l++) a[LANES + l] = v[l] >> (W - shift);                        \
    }                                                                                              \
  }                                                                                                \
  static WL_CLONES void unpack##W(T *restrict v, const T *restrict from, int bits) {               \
    enum { LANES = BLOCK / W };                                                                    \
    T mask = bits == W ? ~(T)0 : ((T)1 << bits) - 1;                                               \
    for (int k = 0; k < W; k++, v += LANES) {                                                      \
      int shift = k * bits % W;                                                                    \
      const T *a = from + k * bits / W * LANES;                                                    \
      if (shift + bits > W)                                                                        \
        for (int l = 0; l < LANES; l++)                                                            \
          v[l] = (a[l] >> shift | a[LANES + l] << (W - shift)) & mask;                             \
      else                                                                                         \
        for (int l = 0; l < LANES; l++) v[l] = a[l] >> shift & mask;                               \
    }                                                                                              \
  }

BITS(32, wl_u32)
BITS(64, wl_u64)

#define SUBTRACT(TO, FROM)                                                                         \
  for (wl_i32 i = 0; i < m; i++) ((TO *)to)[i] = (TO)((TO)((const FROM *)v)[i + first] - (TO)base)

/* The differences of m values, starting at row first: 8 bytes each if wide, else 4. */
static WL_CLONES void subtract(void *to, bool wide, const void *v, wl_u8 phys, wl_i32 first,
                               wl_i32 m, wl_i64 base) {
  if (wide)
    SUBTRACT(wl_u64, wl_i64);
  else
    switch (phys) {
    case WL_P_I8: SUBTRACT(wl_u32, wl_i8); break;
    case WL_P_I16: SUBTRACT(wl_u32, wl_i16); break;
    case WL_P_I32: SUBTRACT(wl_u32, wl_i32); break;
    default: SUBTRACT(wl_u32, wl_i64);
    }
}

#define ADD(TO, WORD)                                                                              \
  for (wl_i32 i = 0; i < m; i++) ((TO *)to)[i + first] = (TO)((WORD)base + ((const FROM *)v)[i])

static WL_CLONES void add(void *to, wl_u8 phys, wl_i32 first, wl_i32 m, const wl_u32 *v,
                          wl_i64 base) {
  typedef wl_u32 FROM;
  switch (phys) {
  case WL_P_I8: ADD(wl_i8, wl_u32); break;
  case WL_P_I16: ADD(wl_i16, wl_u32); break;
  case WL_P_I32: ADD(wl_i32, wl_u32); break;
  default: ADD(wl_i64, wl_u64);
  }
}

static WL_CLONES void add_wide(wl_i64 *to, wl_i32 first, wl_i32 m, const wl_u64 *v, wl_i64 base) {
  typedef wl_u64 FROM;
  ADD(wl_i64, wl_u64);
}

typedef union packed_block {
  wl_u32 v32[BLOCK];
  wl_u64 v64[BLOCK];
} packed_block;

void wl_pack(wl_u8 *to, const void *v, wl_u8 phys, const wl_u8 *valid, wl_i32 n, wl_i64 base,
             int bits) {
  packed_block plain, packed;
  bool wide = bits > 32;
  size_t n_bytes = 128 * (size_t)bits;
  for (wl_i32 first = 0; first < n; first += BLOCK, to += n_bytes) {
    wl_i32 m = n - first < BLOCK ? n - first : BLOCK, r;
    if (m < BLOCK) memset(&plain, 0, sizeof plain);
    subtract(&plain, wide, v, phys, first, m, base);
    if (valid) WL_EACH_NULL(r, valid + first / 8, m) {
        if (wide)
          plain.v64[r] = 0;
        else
          plain.v32[r] = 0;
      }
    if (wide)
      pack64(packed.v64, plain.v64, bits);
    else
      pack32(packed.v32, plain.v32, bits);
    memcpy(to, &packed, n_bytes);
  }
}

void wl_unpack(void *to, wl_u8 phys, const wl_u8 *from, wl_i32 n, wl_i64 base, int bits) {
  packed_block plain, packed; /* copies, because the blob may not be aligned */
  size_t n_bytes = 128 * (size_t)bits;
  for (wl_i32 first = 0; first < n; first += BLOCK, from += n_bytes) {
    wl_i32 m = n - first < BLOCK ? n - first : BLOCK;
    memcpy(&packed, from, n_bytes);
    if (bits > 32) {
      unpack64(plain.v64, packed.v64, bits);
      add_wide(to, first, m, plain.v64, base);
    } else {
      unpack32(plain.v32, packed.v32, bits);
      add(to, phys, first, m, plain.v32, base);
    }
  }
}
