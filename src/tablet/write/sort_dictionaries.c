/*
** Sorts dictionaries, as part of optimize. Texts have codes in the order in which they were added.
** Sorting gives them codes in text order, removes the texts that no segment uses any more, and
** writes all as one part. A query can then use the codes as they are.
**
** Invariants:
** 1. All segments of the column are read before the first one is written: see fold.c.
*/
#include "base/mem.h"
#include "tablet/table/table_impl.h"
#include <stdlib.h>
#include <string.h>

static int by_text(const void *x, const void *y, void *arg) {
  const wl_file_dict *d = arg;
  wl_u64 a = d->places[*(const wl_u32 *)x], b = d->places[*(const wl_u32 *)y];
  return wl_cmp_bytes(d->heap + (wl_u32)a, (wl_u32)(a >> 32), d->heap + (wl_u32)b,
                      (wl_u32)(b >> 32));
}

/* Marks the codes that occur in segments. */
static wl_status mark_used(wl_tablets *t, int col, bool *used, wl_error *err) {
  for (int i = 0; i < t->n_tablets; i++) {
    wl_cached_segment *h;
    if (!t->tablets[i].zones[col].coded) continue;
    wl_status rc = wl_tablets_segment(t, i, col, &h, err);
    if (rc) return rc;
    for (wl_i32 r = 0; r < h->s.n_rows; r++) {
      wl_val v = wl_segment_value(&h->s, r);
      if (v.t != WL_T_NULL) used[v.v] = true;
    }
    wl_cached_drop(h);
  }
  return WL_OK;
}

/* Writes a segment again with new codes. */
static wl_status rewrite_segment(wl_tablets *t, int i, int col, const wl_u32 *codes, wl_i64 n_codes,
                                 wl_error *err) {
  wl_tablet *a = &t->tablets[i];
  const wl_u8 *old;
  wl_u8 *blob = NULL;
  size_t n;
  wl_segment s = {0};
  bool coded;
  wl_status rc = wl_tablets_blob(t, i, col, &old, &n, err);
  if (!rc) rc = wl_codec_read(old, n, n_codes, &s, &coded, err);
  wl_tablets_done_blob(t);
  if (!rc && wl_tablet_recode(&s, codes)) rc = wl_nomem(err);
  if (!rc) rc = wl_codec_write(&s, true, &blob, &a->zones[col], err);
  if (!rc) rc = wl_tablet_write_blob(t, a->id, col, blob, &a->zones[col], err);
  if (!rc) rc = wl_tablet_write_entry(t, a, err);
  wl_mem_free(blob);
  wl_segment_free(&s);
  return rc;
}

wl_status wl_tablets_sort_dict(wl_tablets *t, int col, wl_error *err) {
  wl_dict_box *b;
  wl_status rc = wl_tablets_dict_box(t, col, &b, err);
  if (rc || !b->d.n || (b->d.sorted && b->n_parts == 1)) return rc;
  const wl_file_dict *d = &b->d;
  if (d->n_heap > wl_tablet_max_bytes(t)) return WL_OK; /* too long for one part */
  wl_i32 n_old = d->n, n_new = 0;
  bool *used = wl_mem_zalloc((size_t)n_old * sizeof *used);
  wl_u32 *order = wl_mem_alloc((size_t)n_old * sizeof *order);
  wl_u32 *codes = wl_mem_zalloc((size_t)n_old * sizeof *codes);
  wl_u32 *new_codes = wl_mem_alloc((size_t)n_old * sizeof *new_codes);
  wl_u64 *places = wl_mem_alloc((size_t)n_old * sizeof *places);
  wl_u8 *heap = wl_mem_alloc(d->n_heap + 1);
  if (!used || !order || !codes || !new_codes || !places || !heap) rc = wl_nomem(err);
  if (!rc) rc = mark_used(t, col, used, err);
  for (wl_i32 i = 0; i < n_old && !rc; i++)
    if (used[i]) order[n_new++] = (wl_u32)i;
  if (!rc) qsort_r(order, (size_t)n_new, sizeof *order, by_text, (void *)d);
  for (wl_i32 i = 0; i < n_new && !rc; i++) {
    codes[order[i]] = (wl_u32)i;
    places[i] = d->places[order[i]];
  }
  if (!rc) memcpy(heap, d->heap, d->n_heap);
  for (int i = 0; i < t->n_tablets && !rc; i++)
    if (t->tablets[i].zones[col].coded) rc = rewrite_segment(t, i, col, codes, n_old, err);
  if (!rc) rc = wl_tablets_dict_clear(t, col, err);
  bool fits = true;
  if (!rc && n_new) rc = wl_tablets_encode(t, col, places, heap, n_new, new_codes, &fits, err);
  if (!rc && !fits)
    rc = wl_fail(err, WL_ERROR, "table %s: a dictionary became too large when it was sorted",
                 t->name);
  if (rc) t->stale = true;
  wl_mem_free(used);
  wl_mem_free(order);
  wl_mem_free(codes);
  wl_mem_free(new_codes);
  wl_mem_free(places);
  wl_mem_free(heap);
  return rc;
}
