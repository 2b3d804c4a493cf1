/*
** Patches: new values for a few rows of a segment. An UPDATE of few rows writes patches instead of
** whole segments. They are stored in the tablet's directory row, behind the zone maps, so they are
** in memory with the directory and are covered by its checksum.
**
** Invariants:
** 1. A segment has at most one patch. The rowid and the INTEGER PRIMARY KEY have none.
** 2. A patch does not change after it was made. It is reference counted, because columns in memory
**    remember the patches that they were made with.
** 3. The zone map of a patched column covers the segment and the patch, and may be wider than its
**    rows. Its checksum, size and number of NULLs are those of the segment alone.
** 4. Apart from NULL, a patch has only types that the segment has. Its texts are codes if those of
**    the segment are.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include <assert.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { RECORD_BYTES = 16 }; /* column, rows, bytes of the values, zeros: 4 bytes each */

const wl_patch *wl_tablet_patch(const wl_tablet *a, int col) {
  for (int i = 0; i < a->n_patches; i++)
    if (a->patches[i]->col == col) return a->patches[i];
  return NULL;
}

wl_u64 wl_tablet_content(const wl_tablet *a, int col) {
  const wl_patch *p = a->n_patches ? wl_tablet_patch(a, col) : NULL;
  return p ? p->sum : a->zones[col].sum;
}

wl_patch *wl_patch_hold(const wl_patch *p) {
  wl_patch *q = (wl_patch *)p;
  if (q) atomic_fetch_add(&q->refs, 1);
  return q;
}

void wl_patch_drop(wl_patch *p) {
  if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
  wl_mem_free(p);
}

void wl_patches_free(wl_tablet *a) {
  for (int i = 0; i < a->n_patches; i++) wl_patch_drop(a->patches[i]);
  wl_mem_free(a->patches);
  a->patches = NULL;
  a->n_patches = 0;
}

wl_status wl_patch_make(int col, const wl_u16 *slots, wl_i32 n, const wl_u8 *blob,
                        const wl_zone *zone, wl_u64 segment_sum, wl_patch **out) {
  size_t n_slots = (size_t)n * sizeof *slots;
  wl_patch *p = *out = wl_mem_alloc(sizeof *p + n_slots + zone->n_bytes);
  if (!p) return WL_NOMEM;
  wl_u8 *bytes = (wl_u8 *)(p + 1);
  *p = (wl_patch){.col = col, .n = n, .zone = *zone};
  atomic_init(&p->refs, 1);
  p->slots = (wl_u16 *)bytes;
  p->blob = bytes + n_slots;
  memcpy(bytes, slots, n_slots);
  memcpy(bytes + n_slots, blob, zone->n_bytes);
  p->sum = XXH3_64bits_withSeed(bytes, n_slots, segment_sum ^ zone->sum);
  return WL_OK;
}

wl_status wl_tablet_set_patch(wl_tablet *a, int col, wl_patch *p) {
  int i = 0;
  while (i < a->n_patches && a->patches[i]->col < col) i++;
  bool there = i < a->n_patches && a->patches[i]->col == col;
  size_t after = (size_t)(a->n_patches - i - there) * sizeof(wl_patch *);
  assert(!p || p->col == col);
  if (p && !there) {
    wl_patch **more = wl_mem_realloc(a->patches, (size_t)a->n_patches * sizeof(wl_patch *),
                                     ((size_t)a->n_patches + 1) * sizeof(wl_patch *));
    if (!more) return WL_NOMEM;
    a->patches = more;
    memmove(&a->patches[i + 1], &a->patches[i], after);
    a->n_patches++;
  } else if (there) {
    wl_patch_drop(a->patches[i]);
    if (!p) memmove(&a->patches[i], &a->patches[i + 1], after);
    a->n_patches -= !p;
  }
  if (p) a->patches[i] = p;
  return WL_OK;
}

void wl_zone_widen(wl_zone *z, const wl_zone *by) {
  z->domain.mask |= by->domain.mask;
  if (by->domain.lo < z->domain.lo) z->domain.lo = by->domain.lo;
  if (by->domain.hi > z->domain.hi) z->domain.hi = by->domain.hi;
  if (by->domain.flo < z->domain.flo) z->domain.flo = by->domain.flo;
  if (by->domain.fhi > z->domain.fhi) z->domain.fhi = by->domain.fhi;
  if (!(by->domain.mask & WL_M(WL_T_TEXT))) return;
  if (by->t_lo < z->t_lo) z->t_lo = by->t_lo;
  if (by->t_hi > z->t_hi) z->t_hi = by->t_hi;
}

bool wl_zone_covers(const wl_zone *z, const wl_zone *part) {
  const wl_domain *a = &z->domain, *b = &part->domain;
  bool typed = (b->mask & ~WL_M(WL_T_NULL)) != 0;
  return !(b->mask & ~a->mask) && (!typed || part->coded == z->coded) && b->lo >= a->lo &&
         b->hi <= a->hi && b->flo >= a->flo && b->fhi <= a->fhi;
}

/* ---- in a directory row */

size_t wl_patch_bytes(const wl_patch *p) {
  return RECORD_BYTES + (size_t)p->n * sizeof *p->slots + p->zone.n_bytes;
}

size_t wl_patches_bytes(const wl_tablet *a) {
  size_t n = 0;
  for (int i = 0; i < a->n_patches; i++) n += wl_patch_bytes(a->patches[i]);
  return n;
}

void wl_patches_write(const wl_tablet *a, wl_u8 *to) {
  for (int i = 0; i < a->n_patches; i++) {
    const wl_patch *p = a->patches[i];
    wl_u32 record[4] = {(wl_u32)p->col, (wl_u32)p->n, p->zone.n_bytes, 0};
    size_t n_slots = (size_t)p->n * sizeof *p->slots;
    memcpy(to, record, RECORD_BYTES);
    memcpy(to + RECORD_BYTES, p->slots, n_slots);
    memcpy(to + RECORD_BYTES + n_slots, p->blob, p->zone.n_bytes);
    to += wl_patch_bytes(p);
  }
}

static bool are_slots(const wl_u16 *slots, wl_u32 n, wl_i32 n_rows) {
  for (wl_u32 i = 0; i < n; i++)
    if (slots[i] >= n_rows || (i && slots[i] <= slots[i - 1])) return false;
  return true;
}

/* Reads the patch at the beginning of `from`, and sets *n_bytes to its size. */
static wl_status read_patch(wl_tablets *t, wl_tablet *a, const wl_u8 *from, size_t n,
                            size_t *n_bytes, wl_error *err) {
  wl_u32 record[4];
  wl_zone z;
  wl_i32 n_rows = 0;
  wl_error why = {0};
  wl_patch *p = NULL;
  int last = a->n_patches ? a->patches[a->n_patches - 1]->col : -1;
  if (n < RECORD_BYTES) return wl_tablets_corrupt(t, -1, a->id, err, "a patch is cut short");
  memcpy(record, from, RECORD_BYTES);
  int col = record[0] < (wl_u32)t->n_cols ? (int)record[0] : t->n_cols;
  if (col == t->n_cols || col == t->decl->rowid_col || col <= last || record[3])
    return wl_tablets_corrupt(t, -1, a->id, err, "a patch belongs to no column");
  if (record[1] < 1 || record[1] > (wl_u32)a->n_rows || record[1] > WL_PATCH_ROWS)
    return wl_tablets_corrupt(t, col, a->id, err, "its patch has too many rows");
  size_t n_slots = (size_t)record[1] * sizeof(wl_u16);
  *n_bytes = RECORD_BYTES + n_slots + record[2];
  if (*n_bytes > n) return wl_tablets_corrupt(t, col, a->id, err, "its patch is cut short");
  const wl_u8 *blob = from + RECORD_BYTES + n_slots;
  if (wl_codec_zone(blob, record[2], &z, &n_rows, &why))
    return wl_tablets_corrupt(t, col, a->id, err, "its patch: %.140s", why.text);
  if (z.n_bytes != record[2] || (wl_u32)n_rows != record[1] || !wl_zone_covers(&a->zones[col], &z))
    return wl_tablets_corrupt(t, col, a->id, err, "its patch does not fit the segment");
  wl_u16 slots[WL_PATCH_ROWS];
  memcpy(slots, from + RECORD_BYTES, n_slots);
  if (!are_slots(slots, record[1], a->n_rows))
    return wl_tablets_corrupt(t, col, a->id, err, "its patch has rows out of order");
  if (wl_patch_make(col, slots, n_rows, blob, &z, a->zones[col].sum, &p) ||
      wl_tablet_set_patch(a, col, p)) {
    wl_patch_drop(p);
    return wl_nomem(err);
  }
  return WL_OK;
}

wl_status wl_patches_read(wl_tablets *t, wl_tablet *a, const wl_u8 *from, size_t n, wl_error *err) {
  wl_status rc = WL_OK;
  for (size_t at = 0, n_bytes; at < n && !rc; at += n_bytes)
    rc = read_patch(t, a, from + at, n - at, &n_bytes, err);
  return rc;
}

/* ---- reading */

wl_status wl_patch_decode(const wl_patch *p, wl_i64 n_codes, wl_segment *out, wl_error *err) {
  bool coded;
  return wl_codec_read(p->blob, p->zone.n_bytes, n_codes, out, &coded, err);
}
