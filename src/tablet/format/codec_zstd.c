/*
** Compresses payloads with zstd. Most payloads hardly shrink, so a sample from several places is
** compressed first.
*/
#define ZSTD_STATIC_LINKING_ONLY /* for contexts that use our allocator */
#include "base/mem.h"
#include "tablet/format/codec_impl.h"
#include <zstd.h>

enum {
  LEVEL = 1,
  LEAST = 4096, /* bytes: a smaller payload would hardly save pages of the file */
  PIECES = 4,
  PIECE = 2048,
  PERCENT = 70 /* the compressed size must be at most this, or reading it costs too much time */
};

static void *zstd_alloc(void *arg, size_t n) {
  return wl_mem_alloc(n);
}
static void zstd_free(void *arg, void *p) {
  wl_mem_free(p);
}
static const ZSTD_customMem memory = {zstd_alloc, zstd_free, NULL};

/* Whether pieces of the payload shrink enough. */
static bool sample_pays(ZSTD_CCtx *c, const wl_u8 *p, size_t n) {
  wl_u8 in[PIECES * PIECE], out[PIECES * PIECE * PERCENT / 100];
  if (n <= 2 * sizeof in) return true;
  for (size_t k = 0; k < PIECES; k++)
    memcpy(in + k * PIECE, p + (n - PIECE) / (PIECES - 1) * k, PIECE);
  return !ZSTD_isError(ZSTD_compressCCtx(c, out, sizeof out, in, sizeof in, LEVEL));
}

wl_status wl_payload_compress(wl_draft *d, wl_error *err) {
  wl_header *h = &d->h;
  const wl_u8 *p = d->blob + WL_HEADER_BYTES;
  size_t n = h->n_payload, room = n / 100 * PERCENT;
  h->n_stored = n;
  if (n < LEAST) return WL_OK;
  ZSTD_CCtx *c = ZSTD_createCCtx_advanced(memory);
  if (!c) return wl_nomem(err);
  if (sample_pays(c, p, n)) {
    wl_u8 *to = wl_mem_alloc(WL_HEADER_BYTES + room);
    /* If the result is too large or zstd has no memory, the payload stays uncompressed. */
    size_t m = to ? ZSTD_compressCCtx(c, to + WL_HEADER_BYTES, room, p, n, LEVEL) : 0;
    if (to && !ZSTD_isError(m)) {
      wl_mem_free(d->blob);
      d->blob = to;
      h->n_stored = m;
      h->flags |= WL_F_ZSTD;
    } else
      wl_mem_free(to);
  }
  ZSTD_freeCCtx(c);
  return WL_OK;
}

wl_status wl_payload_decompress(const wl_header *h, const wl_u8 *stored, wl_u8 **out, bool *ok,
                                wl_error *err) {
  *out = NULL;
  /* zstd expands a byte to at most 64 KiB. So a small forged blob cannot claim much memory. */
  *ok = h->n_payload / 65536 <= h->n_stored &&
        ZSTD_getFrameContentSize(stored, h->n_stored) == h->n_payload;
  if (!*ok) return WL_OK;
  wl_u8 *p = wl_mem_alloc(h->n_payload);
  ZSTD_DCtx *c = p ? ZSTD_createDCtx_advanced(memory) : NULL;
  if (!c) {
    wl_mem_free(p);
    return wl_nomem(err);
  }
  *ok = ZSTD_decompressDCtx(c, p, h->n_payload, stored, h->n_stored) == h->n_payload;
  ZSTD_freeDCtx(c);
  if (*ok)
    *out = p;
  else
    wl_mem_free(p);
  return WL_OK;
}
