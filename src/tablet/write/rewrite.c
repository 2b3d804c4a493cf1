/*
** Writes segments again with new values for some of their rows. Several threads make the segments;
** one thread writes them. A segment's patch is applied and goes away.
**
** Invariants:
** 1. Only the caller's thread uses the connection. Tasks work on copies of blobs, and on the
**    dictionaries as they were before the wave.
*/
#include "base/mem.h"
#include "base/tasks.h"
#include "tablet/write/bulk.h"
#include <string.h>

/* A segment that is being made. */
typedef struct remake {
  const wl_rewrite *w;
  const wl_file_dict *dict; /* or NULL */
  const wl_patch *patch;    /* or NULL */
  wl_u8 *blob;              /* a copy of the old blob */
  size_t n_blob;
  wl_segment s; /* the new segment */
  wl_u8 *new_blob;
  wl_zone zone;
} remake;

bool wl_rewrite_has_codes(const wl_rewrite *w) {
  return w->codes || !w->n || !(w->values->domain.mask & ~WL_M(WL_T_NULL));
}

wl_val wl_rewrite_value(const wl_rewrite *w, bool as_code, wl_i64 i) {
  wl_i64 row = w->rows ? w->rows[i] : w->from + i;
  if (!as_code) return wl_column_value(w->values, row);
  wl_val v = wl_column_stored(w->values, row);
  return v.t == WL_T_NULL ? v : wl_int((wl_i64)w->codes[v.v]);
}

static bool is_valid(const wl_segment *s, wl_i32 i) {
  return !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
}

/* The value of a row. d: NULL, or the dictionary of its code, which becomes a text. */
static wl_val value_of(const wl_segment *s, const wl_file_dict *d, wl_i32 i) {
  wl_val v = wl_segment_value(s, i);
  if (!d || v.t == WL_T_NULL) return v;
  wl_u64 p = d->places[v.v];
  return wl_text(d->heap + (wl_u32)p, (wl_u32)(p >> 32));
}

/* Copies the old values of a segment into a stage, as 64-bit values. d: NULL, or the dictionary of
** its codes, which become texts. */
static wl_status widen_segment(const wl_segment *s, const wl_file_dict *d, wl_stage *st) {
  wl_status rc = WL_OK;
  if (s->phys <= WL_P_F64 && !d) {
    bool real = s->phys >= WL_P_F32;
    wl_phys_copy(st->v, real ? WL_P_F64 : WL_P_I64, s->data, s->phys, s->n_rows);
    memset(st->t, real ? WL_T_REAL : WL_T_INT, (size_t)s->n_rows);
    for (wl_i32 i = 0; i < s->n_rows && s->n_nulls; i++)
      if (!is_valid(s, i)) st->t[i] = WL_T_NULL;
    st->n = s->n_rows;
    return WL_OK;
  }
  for (wl_i32 i = 0; i < s->n_rows && !rc; i++) rc = wl_stage_add(st, value_of(s, d, i));
  return rc;
}

/* Replaces the value at a slot of the stage. */
static wl_status write_value(wl_stage *st, wl_i32 slot, wl_val v) {
  wl_u64 place = v.v;
  if (v.t >= WL_T_TEXT) {
    wl_status rc = wl_stage_room(st, v.n);
    if (rc) return rc;
    if (v.n) memcpy(st->heap + st->n_heap, wl_bytes(v), v.n);
    place = (wl_u64)st->n_heap | (wl_u64)v.n << 32;
    st->n_heap += v.n;
  }
  st->v[slot] = v.t == WL_T_NULL ? 0 : place;
  st->t[slot] = v.t;
  return WL_OK;
}

static wl_status write_patch(const remake *r, const wl_file_dict *d, wl_stage *st, wl_error *err) {
  const wl_patch *p = r->patch;
  wl_segment s = {0};
  wl_status rc = wl_patch_decode(p, r->dict ? r->dict->n : 0, &s, err);
  for (wl_i32 i = 0; i < p->n && !rc; i++)
    if (write_value(st, p->slots[i], value_of(&s, d, i))) rc = wl_nomem(err);
  wl_segment_free(&s);
  return rc;
}

/* Writes the new values, or their codes, into their slots of the stage. */
static wl_status write_values(const wl_rewrite *w, bool as_codes, wl_stage *st) {
  wl_status rc = WL_OK;
  for (wl_i64 i = 0; i < w->n && !rc; i++)
    rc = write_value(st, w->slots[i], wl_rewrite_value(w, as_codes, i));
  return rc;
}

/* Makes a segment of staged codes, or of staged values. */
static wl_status make_segment(remake *r, bool as_codes, const wl_stage *st, wl_error *err) {
  if (as_codes ? wl_segment_plain(st, &r->s) : wl_segment_make(st, &r->s)) return wl_nomem(err);
  if (as_codes) r->s.domain.mask = wl_mask_of_coded(r->s.domain.mask);
  return r->s.entries ? WL_OK : wl_codec_write(&r->s, as_codes, &r->new_blob, &r->zone, err);
}

static wl_status remake_one(remake *r, wl_error *err) {
  wl_segment old = {0};
  wl_stage st;
  bool coded = false;
  if (wl_stage_open(&st)) return wl_nomem(err);
  wl_status rc = wl_codec_read(r->blob, r->n_blob, r->dict ? r->dict->n : 0, &old, &coded, err);
  bool as_codes = coded && wl_rewrite_has_codes(r->w);
  const wl_file_dict *spell = coded && !as_codes ? r->dict : NULL;
  if (!rc && widen_segment(&old, spell, &st)) rc = wl_nomem(err);
  if (!rc && r->patch) rc = write_patch(r, r->patch->zone.coded ? spell : NULL, &st, err);
  if (!rc && write_values(r->w, as_codes, &st)) rc = wl_nomem(err);
  if (!rc) rc = make_segment(r, as_codes, &st, err);
  wl_segment_free(&old);
  wl_stage_close(&st);
  return rc;
}

static wl_status remake_task(void *arg, int worker, long i, wl_error *err) {
  (void)worker;
  return remake_one(&((remake *)arg)[i], err);
}

static wl_status fetch(wl_tablets *t, remake *r, wl_error *err) {
  const wl_u8 *blob;
  r->patch = wl_tablet_patch(&t->tablets[r->w->tablet], r->w->col);
  wl_status rc = wl_tablets_dict(t, r->w->col, &r->dict, err);
  if (!rc) rc = wl_tablets_blob(t, r->w->tablet, r->w->col, &blob, &r->n_blob, err);
  if (!rc && !(r->blob = wl_mem_alloc(r->n_blob + 1))) rc = wl_nomem(err);
  if (!rc) memcpy(r->blob, blob, r->n_blob);
  wl_tablets_done_blob(t);
  return rc;
}

/* Writes the new segment to the file. */
static wl_status store(wl_tablets *t, remake *r, wl_error *err) {
  wl_tablet *a = &t->tablets[r->w->tablet];
  int col = r->w->col;
  bool coded;
  wl_status rc = WL_OK;
  if (!r->new_blob) {
    rc = wl_tablet_encode(t, col, &r->s, &coded, err);
    if (!rc) rc = wl_codec_write(&r->s, coded, &r->new_blob, &r->zone, err);
  }
  if (!rc) rc = wl_tablet_write_blob(t, a->id, col, r->new_blob, &r->zone, err);
  if (rc) return rc;
  a->zones[col] = r->zone;
  return wl_tablet_set_patch(a, col, NULL);
}

static wl_status rewrite_wave(wl_tablets *t, const wl_rewrite *list, int n, int n_threads,
                              wl_error *err) {
  remake *all = wl_mem_zalloc((size_t)n * sizeof *all);
  wl_status rc = all ? WL_OK : wl_nomem(err);
  for (int i = 0; i < n && !rc; i++) {
    all[i].w = &list[i];
    rc = fetch(t, &all[i], err);
  }
  wl_tasks tasks = {n_threads, n, remake_task, all, NULL};
  long n_done = 0;
  wl_error why;
  wl_status failed = rc ? WL_OK : wl_tasks_run(&tasks, &n_done, &why);
  if (failed == WL_NOMEM) rc = wl_nomem(err);
  if (!rc && failed)
    rc = wl_tablets_corrupt(t, list[n_done].col, t->tablets[list[n_done].tablet].id, err, "%.150s",
                            why.text);
  for (int i = 0; i < n && !rc; i++) rc = store(t, &all[i], err);
  for (int i = 0; i < n && all; i++) {
    wl_mem_free(all[i].blob);
    wl_mem_free(all[i].new_blob);
    wl_segment_free(&all[i].s);
  }
  wl_mem_free(all);
  return rc;
}

wl_status wl_rewrite_segments(wl_tablets *t, const wl_rewrite *list, int n, int n_threads,
                              wl_error *err) {
  int wave = WL_BULK_WAVE * n_threads;
  wl_status rc = WL_OK;
  for (int i = 0; i < n && !rc; i += wave)
    rc = rewrite_wave(t, list + i, n - i < wave ? n - i : wave, n_threads, err);
  return rc;
}

wl_status wl_tablets_fold_patches(wl_tablets *t, wl_error *err) {
  wl_status rc = WL_OK;
  for (int i = 0; i < t->n_tablets && !rc; i++) {
    wl_tablet *a = &t->tablets[i];
    if (!a->n_patches) continue;
    wl_rewrite *list = wl_mem_alloc((size_t)a->n_patches * sizeof *list);
    int n = a->n_patches;
    if (!list) return wl_nomem(err);
    for (int k = 0; k < n; k++) list[k] = (wl_rewrite){.tablet = i, .col = a->patches[k]->col};
    rc = wl_rewrite_segments(t, list, n, 1, err);
    if (!rc) rc = wl_tablet_write_entry(t, a, err);
    wl_mem_free(list);
  }
  return rc;
}
