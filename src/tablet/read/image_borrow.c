/*
** Segments of the previous image that a new image uses again. If a segment's blobs and patches are
** the same, both images share it. If only its patch has more rows, it is copied and patched. If
** nobody else has the previous column, it is patched in place.
**
** Invariants:
** 1. A segment that another column or a device has, or that belongs to a column that somebody else
**    holds, does not change.
** 2. A segment that was patched in place is taken from the previous column, which then does not
**    lend it any more.
*/
#include "base/mem.h"
#include "base/tasks.h"
#include "tablet/read/image_impl.h"
#include "tablet/table/table_impl.h"
#include "value/hash.h"
#include <string.h>

void wl_image_describe(const wl_image_job *j, wl_making_col *m) {
  for (int k = 0; k < j->im->n_tablets; k++) {
    const wl_image_tablet *at = &j->im->tablets[k];
    wl_made *made = &m->made[k];
    XXH3_state_t h;
    if (at->merged) continue;
    XXH3_64bits_reset(&h);
    XXH3_64bits_update(&h, &at->n_slots, sizeof at->n_slots);
    for (int p = at->first; p < at->first + at->n; p++) {
      const wl_tablet *a = wl_tablets_at(j->t, j->im->parts[p].tablet);
      const wl_zone *z = &a->zones[m->col];
      wl_u64 words[3] = {z->sum, z->n_bytes, 0};
      /* equal codes may mean other texts in another dictionary */
      if (z->coded && m->file) words[2] = m->file->first_id;
      XXH3_64bits_update(&h, words, sizeof words);
    }
    made->base = made->key = XXH3_64bits_digest(&h) | 1;
    for (int p = at->first; p < at->first + at->n; p++) {
      const wl_patch *patch = wl_tablet_patch(wl_tablets_at(j->t, j->im->parts[p].tablet), m->col);
      if (patch) made->key = XXH3_64bits_withSeed(&patch->sum, sizeof patch->sum, made->key) | 1;
      if (patch && at->n == 1) made->patch = wl_patch_hold(patch);
    }
    if (at->n > 1) made->base = 0;
  }
}

/* Whether the segments of the previous column have the form that is wanted now. */
static bool same_form(const wl_making_col *m) {
  const wl_column *c = m->before->column;
  switch (m->form) {
  case FORM_CODE: return m->dict_id && m->dict_id == m->before->dict && c->dict == m->dict;
  case FORM_REAL: return c->phys == WL_P_F32 || c->phys == WL_P_F64;
  case FORM_STAGED: return false;
  default: return c->phys == m->phys && !c->dict;
  }
}

/* Shares the segments that have the same key. */
static wl_status share_segments(const wl_image_job *j, wl_making_col *m) {
  const wl_origin *o = m->before;
  wl_u64 n_slots = 64;
  while (n_slots < (wl_u64)o->n * 2) n_slots *= 2;
  int *slots = wl_mem_zalloc(n_slots * sizeof *slots);
  if (!slots) return WL_NOMEM;
  for (int i = 0; i < o->n; i++) {
    if (!o->made[i].key || !o->column->segments[i].shared) continue;
    wl_u64 at = o->made[i].key >> 20 & (n_slots - 1);
    while (slots[at]) at = (at + 1) & (n_slots - 1);
    slots[at] = i + 1;
  }
  for (int k = 0; k < j->im->n_tablets; k++) {
    wl_u64 key = m->made[k].key, at = key >> 20 & (n_slots - 1);
    while (key && slots[at] && o->made[slots[at] - 1].key != key) at = (at + 1) & (n_slots - 1);
    if (key && slots[at]) m->segments[k] = wl_segment_hold(&o->column->segments[slots[at] - 1]);
  }
  wl_mem_free(slots);
  return WL_OK;
}

/* ---- segments whose patch has more rows */

/* Whether all rows of a patch are in another. Then it is enough to apply the other. */
static bool includes(const wl_patch *p, const wl_patch *part) {
  wl_i32 k = 0;
  if (!part || p == part) return true;
  for (wl_i32 i = 0; i < part->n; i++) {
    while (k < p->n && p->slots[k] < part->slots[i]) k++;
    if (k == p->n || p->slots[k] != part->slots[i]) return false;
  }
  return true;
}

typedef struct patching {
  wl_image_job *j;
  wl_making_col *m;
  int *tablets;
  bool in_place; /* nobody else has the previous column */
} patching;

/* Copies the buffers of a segment whose rows have a fixed width and no heap. */
static wl_status copy_segment(const wl_segment *s, wl_segment *out) {
  size_t n = (size_t)s->n_rows, width = (size_t)wl_phys_width(s->phys);
  *out = *s;
  out->shared = NULL;
  out->slab = NULL;
  out->data = wl_mem_alloc(n * width);
  out->valid = s->valid ? wl_mem_alloc((n + 7) / 8) : NULL;
  if (out->data) memcpy(out->data, s->data, n * width);
  if (out->valid) memcpy(out->valid, s->valid, (n + 7) / 8);
  if (out->data && (out->valid || !s->valid)) return WL_OK;
  wl_segment_free(out);
  memset(out, 0, sizeof *out);
  return WL_NOMEM;
}

static wl_status patch_task(void *arg, int worker, long i, wl_error *err) {
  patching *x = arg;
  wl_making_col *m = x->m;
  int k = x->tablets[i];
  wl_segment *old = &m->before->column->segments[k], s;
  (void)worker;
  if (x->in_place && atomic_load(old->shared) == 1) {
    s = *old;
    memset(old, 0, sizeof *old);
    m->before->made[k].key = m->before->made[k].base = 0;
  } else {
    if (copy_segment(old, &s)) return wl_nomem(err);
    size_t n = wl_segment_bytes(&s), total = atomic_fetch_add(&x->j->n_bytes, n) + n;
    bool full = x->j->how->limit && total > x->j->how->limit;
    if (full || wl_segment_share(&s)) {
      wl_segment_free(&s);
      return full ? WL_FULL : wl_nomem(err);
    }
  }
  wl_status rc =
      wl_image_apply_patch(x->j, m, x->j->im->tablets[k].first, m->made[k].patch, &s, err);
  if (rc)
    wl_segment_free(&s);
  else
    m->segments[k] = s;
  return rc;
}

static wl_status patch_segments(wl_image_job *j, wl_making_col *m, wl_error *err) {
  const wl_origin *o = m->before;
  int n = j->im->n_tablets < o->n ? j->im->n_tablets : o->n;
  patching x = {.j = j, .m = m, .in_place = wl_column_is_mine(o->column)};
  wl_tasks tasks = {j->how->n_threads, 0, patch_task, &x, NULL};
  if (o->column->phys >= WL_P_TEXT) return WL_OK; /* the texts that are replaced would stay */
  x.tablets = wl_mem_alloc(((size_t)n + 1) * sizeof *x.tablets);
  if (!x.tablets) return wl_nomem(err);
  for (int k = 0; k < n; k++) {
    const wl_made *was = &o->made[k], *is = &m->made[k];
    if (!m->segments[k].data && is->patch && is->base && is->base == was->base &&
        o->column->segments[k].shared && includes(is->patch, was->patch))
      x.tablets[tasks.n_tasks++] = k;
  }
  wl_status rc = tasks.n_tasks ? wl_tasks_run(&tasks, NULL, err) : WL_OK;
  wl_mem_free(x.tablets);
  return rc;
}

wl_status wl_image_borrow(wl_image_job *j, wl_making_col *m, wl_error *err) {
  wl_origin *o = m->before;
  if (!o || !o->column || !same_form(m)) return WL_OK;
  if (share_segments(j, m)) return wl_nomem(err);
  return patch_segments(j, m, err);
}
