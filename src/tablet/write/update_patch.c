/*
** Patches segments of which few rows change; see tablet/table/patch.c. The cost is that of the
** changed rows, those before them included: a segment has one patch, which holds all its changes
** since it was written. If the patch would grow too large, or could not hold the new values, the
** caller writes the segment again, which applies the patch.
*/
#include "base/mem.h"
#include "tablet/write/bulk.h"
#include <string.h>

enum {
  SHARE = 8,             /* a patch has at most 1 of this many rows of its tablet */
  MOST_BYTES = 16 << 10, /* of one patch, and below of all patches of a tablet */
  MOST_TABLET_BYTES = 64 << 10
};

wl_i64 wl_patch_limit(const wl_tablet *a) {
  wl_i64 n = a->n_rows / SHARE;
  return n < WL_PATCH_ROWS ? n : WL_PATCH_ROWS;
}

wl_status wl_patcher_open(wl_patcher *p, wl_tablets *t, wl_error *err) {
  memset(p, 0, sizeof *p);
  p->t = t;
  return wl_stage_open(&p->stage) ? wl_nomem(err) : WL_OK;
}

void wl_patcher_close(wl_patcher *p) {
  wl_stage_close(&p->stage);
}

/* Stages the rows of the old patch and the new ones, in the order of their slots. */
static wl_status merge_rows(wl_patcher *p, const wl_rewrite *w, bool coded, const wl_patch *old,
                            const wl_segment *values) {
  wl_i32 k = 0, n_old = old ? old->n : 0;
  wl_status rc = WL_OK;
  p->stage.n = 0;
  p->stage.n_heap = 0;
  for (wl_i64 i = 0; (i < w->n || k < n_old) && !rc;) {
    wl_i32 slot = i < w->n ? w->slots[i] : WL_TABLET_ROWS;
    if (k < n_old && old->slots[k] < slot) {
      p->slots[p->stage.n] = old->slots[k];
      rc = wl_stage_add(&p->stage, wl_segment_value(values, k++));
    } else {
      k += k < n_old && old->slots[k] == slot;
      p->slots[p->stage.n] = (wl_u16)slot;
      rc = wl_stage_add(&p->stage, wl_rewrite_value(w, coded, i++));
    }
  }
  return rc;
}

/* Makes a patch of the staged rows. *out stays NULL if they do not fit. */
static wl_status make_patch(wl_patcher *p, const wl_rewrite *w, bool coded, wl_patch **out,
                            wl_error *err) {
  wl_tablet *a = &p->t->tablets[w->tablet];
  const wl_patch *old = wl_tablet_patch(a, w->col);
  const wl_zone *z = &a->zones[w->col];
  wl_segment s;
  wl_u8 *blob = NULL;
  wl_zone own;
  if (wl_segment_plain(&p->stage, &s)) return wl_nomem(err);
  if (coded) s.domain.mask = wl_mask_of_coded(s.domain.mask);
  unsigned types = s.domain.mask & ~WL_M(WL_T_NULL);
  wl_status rc = WL_OK;
  if (!(types & ~(unsigned)z->domain.mask)) rc = wl_codec_write_fast(&s, coded, &blob, &own, err);
  size_t others = wl_patches_bytes(a) - (old ? wl_patch_bytes(old) : 0);
  if (blob && own.n_bytes <= MOST_BYTES && others + own.n_bytes <= MOST_TABLET_BYTES &&
      wl_patch_make(w->col, p->slots, p->stage.n, blob, &own, z->sum, out))
    rc = wl_nomem(err);
  wl_mem_free(blob);
  wl_segment_free(&s);
  return rc;
}

static wl_status decode_old(wl_patcher *p, const wl_rewrite *w, const wl_patch *old,
                            wl_segment *out, wl_error *err) {
  const wl_tablet *a = &p->t->tablets[w->tablet];
  const wl_file_dict *d = NULL;
  wl_error why = {0};
  wl_status rc = a->zones[w->col].coded ? wl_tablets_dict(p->t, w->col, &d, err) : WL_OK;
  if (rc) return rc;
  rc = wl_patch_decode(old, d ? d->n : 0, out, &why);
  if (rc == WL_NOMEM) return wl_nomem(err);
  return rc ? wl_tablets_corrupt(p->t, w->col, a->id, err, "%.150s", why.text) : WL_OK;
}

wl_status wl_patcher_rows(wl_patcher *p, const wl_rewrite *w, bool *done, wl_error *err) {
  wl_tablet *a = &p->t->tablets[w->tablet];
  wl_zone *z = &a->zones[w->col];
  const wl_patch *old = wl_tablet_patch(a, w->col);
  wl_patch *patch = NULL;
  wl_segment values = {0};
  wl_status rc = WL_OK;
  *done = false;
  if (w->n + (old ? old->n : 0) > wl_patch_limit(a) || (z->coded && !wl_rewrite_has_codes(w)))
    return WL_OK;
  if (old) rc = decode_old(p, w, old, &values, err);
  if (!rc && merge_rows(p, w, z->coded, old, &values)) rc = wl_nomem(err);
  if (!rc) rc = make_patch(p, w, z->coded, &patch, err);
  wl_segment_free(&values);
  if (rc || !patch) return rc;
  wl_zone_widen(z, &patch->zone);
  if (wl_tablet_set_patch(a, w->col, patch)) {
    wl_patch_drop(patch);
    return wl_nomem(err);
  }
  *done = true;
  return WL_OK;
}
