/*
** Updates and deletes many rows at once. Several threads make segments; one thread writes them. A
** changed segment is written once, however many of its rows change. bulk_append.c appends rows.
**
** Invariants:
** 1. Everything that may refuse the change (constraints, rows that do not exist) is checked before
**    the first write.
** 2. Only the caller's thread uses the connection. Tasks work on copies of blobs, and on the
**    dictionaries as they were before the wave.
*/
#include "tablet/write/bulk.h"
#include "base/mem.h"
#include "base/tasks.h"
#include <assert.h>
#include <string.h>

/* ---- finding the tablets of rows */

typedef struct tablet_part {
  int tablet;
  wl_i64 from, to; /* its rows: rowids[from..to) */
} tablet_part;

/* Splits ascending rowids by tablet. WL_NOT_TAKEN: a rowid is in no tablet. */
static wl_status split_by_tablet(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, tablet_part **out,
                                 int *n_parts, wl_error *err) {
  tablet_part *p = *out = wl_mem_alloc(((size_t)t->n_tablets + 1) * sizeof *p);
  *n_parts = 0;
  if (!p) return wl_nomem(err);
  for (wl_i64 i = 0; i < n;) {
    int k = wl_tablets_place(t, rowids[i]);
    if (k < 0 || rowids[i] > t->tablets[k].hi) return wl_not_taken(err, "a row does not exist");
    wl_i64 lo = i, hi = n; /* bisects for the first rowid after the tablet's last */
    while (lo < hi) {
      wl_i64 mid = lo + (hi - lo) / 2;
      if (rowids[mid] <= t->tablets[k].hi)
        lo = mid + 1;
      else
        hi = mid;
    }
    p[(*n_parts)++] = (tablet_part){k, i, lo};
    i = lo;
  }
  return WL_OK;
}

/* Finds the slots of n rowids. own: the tablet's rowids, or NULL if they have no gaps. False: a
** rowid is not in the tablet. */
static bool slots_of(const wl_tablet *a, const wl_segment *own, const wl_i64 *rowids, wl_i64 n,
                     wl_i32 *slots) {
  if (!own) { /* no gaps */
    for (wl_i64 i = 0; i < n; i++) slots[i] = (wl_i32)(rowids[i] - a->lo);
    return true;
  }
  wl_i32 at = 0;
  for (wl_i64 i = 0; i < n; i++) {
    while (at < a->n_rows && (wl_i64)wl_segment_value(own, at).v < rowids[i]) at++;
    if (at == a->n_rows || (wl_i64)wl_segment_value(own, at).v != rowids[i]) return false;
    slots[i] = at;
  }
  return true;
}

static bool has_gaps(const wl_tablet *a) {
  return (wl_u64)a->hi - (wl_u64)a->lo != (wl_u64)a->n_rows - 1;
}

/* ---- updating */

typedef struct segment_patch {
  int part, k; /* an index of parts, and an index of set */
  wl_u8 *blob; /* a copy of the old blob */
  size_t n_blob;
  wl_segment s; /* the new segment */
  wl_u8 *new_blob;
  wl_zone zone;
} segment_patch;

typedef struct bulk_update {
  wl_tablets *t;
  const wl_i64 *rowids;
  const tablet_part *parts;
  wl_i32 **slots; /* [n_parts of the wave] */
  const int *set;
  wl_column **cols;
  const wl_file_dict **dicts; /* [n_set] */
  segment_patch *patches;
} bulk_update;

static bool is_valid(const wl_segment *s, wl_i32 i) {
  return !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
}

/* Copies the old values of a segment into a stage, as 64-bit values. */
static wl_status widen_segment(const wl_segment *s, bool coded, const wl_file_dict *d,
                               wl_stage *st) {
  wl_status rc = WL_OK;
  if (s->phys <= WL_P_F64 && !coded) {
    bool real = s->phys >= WL_P_F32;
    wl_phys_copy(st->v, real ? WL_P_F64 : WL_P_I64, s->data, s->phys, s->n_rows);
    memset(st->t, real ? WL_T_REAL : WL_T_INT, (size_t)s->n_rows);
    for (wl_i32 i = 0; i < s->n_rows && s->n_nulls; i++)
      if (!is_valid(s, i)) st->t[i] = WL_T_NULL;
    st->n = s->n_rows;
    return WL_OK;
  }
  for (wl_i32 i = 0; i < s->n_rows && !rc; i++) {
    wl_val v = wl_segment_value(s, i);
    if (coded && v.t != WL_T_NULL) {
      wl_u64 p = d->places[v.v];
      v = wl_text(d->heap + (wl_u32)p, (wl_u32)(p >> 32));
    }
    rc = wl_stage_add(st, v);
  }
  return rc;
}

/* Writes the new values into their slots of the stage. */
static wl_status write_values(const wl_column *c, wl_i64 from, wl_i64 n, const wl_i32 *slots,
                              wl_stage *st) {
  if (c->phys <= WL_P_F64 && !c->dict) {
    for (wl_i64 i = 0; i < n; i++) {
      wl_val v = wl_column_stored(c, from + i);
      st->v[slots[i]] = v.v;
      st->t[slots[i]] = v.t;
    }
    return WL_OK;
  }
  for (wl_i64 i = 0; i < n; i++) {
    wl_val v = wl_column_value(c, from + i);
    wl_u64 place = v.v;
    if (v.t >= WL_T_TEXT) {
      wl_status rc = wl_stage_room(st, v.n);
      if (rc) return rc;
      if (v.n) memcpy(st->heap + st->n_heap, wl_bytes(v), v.n);
      place = (wl_u64)st->n_heap | (wl_u64)v.n << 32;
      st->n_heap += v.n;
    }
    st->v[slots[i]] = v.t == WL_T_NULL ? 0 : place;
    st->t[slots[i]] = v.t;
  }
  return WL_OK;
}

static wl_status patch_one(bulk_update *u, segment_patch *p, wl_error *err) {
  const tablet_part *x = &u->parts[p->part];
  const wl_file_dict *d = u->dicts[p->k];
  wl_segment old = {0};
  wl_stage st;
  bool coded;
  if (wl_stage_open(&st)) return wl_nomem(err);
  wl_status rc = wl_codec_read(p->blob, p->n_blob, d ? d->n : 0, &old, &coded, err);
  if (!rc && (widen_segment(&old, coded, d, &st) ||
              write_values(u->cols[p->k], x->from, x->to - x->from, u->slots[p->part], &st) ||
              wl_segment_make(&st, &p->s)))
    rc = wl_nomem(err);
  if (!rc && !p->s.entries) rc = wl_codec_write(&p->s, false, &p->new_blob, &p->zone, err);
  wl_segment_free(&old);
  wl_stage_close(&st);
  return rc;
}

static wl_status patch_task(void *arg, int worker, long i, wl_error *err) {
  bulk_update *u = arg;
  (void)worker;
  return patch_one(u, &u->patches[i], err);
}

static wl_status fetch_blob(wl_tablets *t, int tablet, int col, segment_patch *p, wl_error *err) {
  const wl_u8 *blob;
  wl_status rc = wl_tablets_blob(t, tablet, col, &blob, &p->n_blob, err);
  if (!rc && !(p->blob = wl_mem_alloc(p->n_blob + 1))) rc = wl_nomem(err);
  if (!rc) memcpy(p->blob, blob, p->n_blob);
  wl_tablets_done_blob(t);
  return rc;
}

/* Writes the new segment of a patch. */
static wl_status write_patch(bulk_update *u, segment_patch *p, wl_error *err) {
  wl_tablet *a = &u->t->tablets[u->parts[p->part].tablet];
  int col = u->set[p->k];
  bool coded;
  wl_status rc = WL_OK;
  if (!p->new_blob) {
    rc = wl_tablet_encode(u->t, col, &p->s, &coded, err);
    if (!rc) rc = wl_codec_write(&p->s, coded, &p->new_blob, &p->zone, err);
  }
  if (!rc) rc = wl_tablet_write_blob(u->t, a->id, col, p->new_blob, &p->zone, err);
  if (!rc) a->zones[col] = p->zone;
  return rc;
}

/* Updates n parts, starting at part `from`. */
static wl_status update_wave(bulk_update *u, int from, int n, int n_set, int n_threads,
                             wl_error *err) {
  wl_tablets *t = u->t;
  wl_status rc = WL_OK;
  int n_patches = n * n_set;
  u->patches = wl_mem_zalloc((size_t)n_patches * sizeof *u->patches);
  if (!u->patches) return wl_nomem(err);
  for (int i = 0; i < n_patches && !rc; i++) {
    u->patches[i].part = from + i / n_set;
    u->patches[i].k = i % n_set;
    rc = fetch_blob(t, u->parts[from + i / n_set].tablet, u->set[i % n_set], &u->patches[i], err);
  }
  wl_tasks tasks = {n_threads, n_patches, patch_task, u, NULL};
  long n_done = 0;
  wl_error why;
  wl_status failed = rc ? WL_OK : wl_tasks_run(&tasks, &n_done, &why);
  if (failed == WL_NOMEM) rc = wl_nomem(err);
  if (!rc && failed) {
    const segment_patch *p = &u->patches[n_done];
    rc = wl_tablets_corrupt(t, u->set[p->k], t->tablets[u->parts[p->part].tablet].id, err, "%.150s",
                            why.text);
  }
  for (int i = 0; i < n_patches && !rc; i++) {
    segment_patch *p = &u->patches[i];
    wl_tablet *a = &t->tablets[u->parts[p->part].tablet];
    rc = write_patch(u, p, err);
    if (!rc && p->k == n_set - 1) rc = wl_tablet_write_entry(t, a, err);
  }
  for (int i = 0; i < n_patches; i++) {
    wl_mem_free(u->patches[i].blob);
    wl_mem_free(u->patches[i].new_blob);
    wl_segment_free(&u->patches[i].s);
  }
  wl_mem_free(u->patches);
  return rc;
}

/* Finds the slots of all parts. WL_NOT_TAKEN: a row does not exist. */
static wl_status find_slots(wl_tablets *t, const wl_i64 *rowids, const tablet_part *parts,
                            int n_parts, wl_i32 **slots, wl_error *err) {
  wl_status rc = WL_OK;
  for (int i = 0; i < n_parts && !rc; i++) {
    const wl_tablet *a = &t->tablets[parts[i].tablet];
    wl_i64 n = parts[i].to - parts[i].from;
    wl_cached_segment *h = NULL;
    bool coded;
    slots[i] = wl_mem_alloc((size_t)n * sizeof **slots);
    if (!slots[i]) return wl_nomem(err);
    if (has_gaps(a)) rc = wl_tablets_segment(t, parts[i].tablet, t->n_cols, &h, err);
    if (!rc && !slots_of(a, h ? wl_cached_segment_of(h, &coded) : NULL, rowids + parts[i].from, n,
                         slots[i]))
      rc = wl_not_taken(err, "a row does not exist");
    wl_cached_drop(h);
  }
  return rc;
}

static void free_slots(wl_i32 **slots, int n) {
  for (int i = 0; slots && i < n; i++) wl_mem_free(slots[i]);
  wl_mem_free(slots);
}

/* Whether a CHECK may depend on a column that is set: its text contains the column's name. A CHECK
** that does not still holds, and SQLite does not evaluate it either. */
static bool checks_mention(const wl_tablets *t, const int *set, int n_set) {
  for (int i = 0; i < t->decl->n_checks; i++)
    for (int k = 0; k < n_set; k++)
      if (strcasestr(t->decl->checks[i].text, t->decl->cols[set[k]].name)) return true;
  return false;
}

wl_status wl_bulk_update(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, const int *set, int n_set,
                         wl_column *const *cols, int n_threads, wl_refusal *refusal,
                         wl_error *err) {
  bulk_update u = {.t = t, .rowids = rowids, .set = set};
  tablet_part *parts = NULL;
  int n_parts = 0;
  *refusal = (wl_refusal){.row = -1, .key = -2};
  for (int k = 0; k < n_set; k++) assert(set[k] != t->decl->rowid_col);
  if (n == 0) return WL_OK;
  if (checks_mention(t, set, n_set))
    return wl_not_taken(err, "a CHECK constraint on a column that is set");
  wl_i64 null = wl_bulk_first_null(t, set, n_set, cols, n);
  if (null < n) {
    refusal->row = null;
    return wl_not_taken(err, "a NULL in a NOT NULL column");
  }
  wl_status rc = wl_tablets_fold(t, err);
  if (rc) return rc;
  u.cols = wl_mem_zalloc((size_t)n_set * sizeof *u.cols);
  u.dicts = wl_mem_zalloc((size_t)n_set * sizeof *u.dicts);
  if (!u.cols || !u.dicts) rc = wl_nomem(err);
  for (int k = 0; k < n_set && !rc; k++)
    rc = wl_bulk_convert(t->decl->cols[set[k]].affinity, cols[k], &u.cols[k], err);
  if (!rc) rc = split_by_tablet(t, rowids, n, &parts, &n_parts, err);
  u.parts = parts;
  u.slots = rc ? NULL : wl_mem_zalloc(((size_t)n_parts + 1) * sizeof *u.slots);
  if (!rc && !u.slots) rc = wl_nomem(err);
  if (!rc) rc = find_slots(t, rowids, parts, n_parts, u.slots, err);
  if (!rc) rc = wl_tablets_touch(t, err);
  int wave = WL_BULK_WAVE * n_threads / n_set + 1;
  for (int i = 0; i < n_parts && !rc; i += wave) {
    for (int k = 0; k < n_set && !rc; k++) rc = wl_tablets_dict(t, set[k], &u.dicts[k], err);
    if (!rc)
      rc = update_wave(&u, i, n_parts - i < wave ? n_parts - i : wave, n_set, n_threads, err);
    if (rc) t->stale = true;
  }
  for (int k = 0; u.cols && k < n_set; k++) wl_column_drop(u.cols[k]);
  wl_mem_free(u.cols);
  wl_mem_free(u.dicts);
  free_slots(u.slots, n_parts);
  wl_mem_free(parts);
  return rc;
}

/* ---- deleting */

wl_status wl_bulk_delete(wl_tablets *t, const wl_i64 *rowids, wl_i64 n, int n_threads,
                         wl_error *err) {
  tablet_part *parts = NULL;
  wl_i32 **slots = NULL;
  int n_parts = 0;
  (void)n_threads; /* setting bits needs no threads */
  if (n == 0) return WL_OK;
  wl_status rc = wl_tablets_fold(t, err);
  if (!rc) rc = split_by_tablet(t, rowids, n, &parts, &n_parts, err);
  if (!rc && !(slots = wl_mem_zalloc(((size_t)n_parts + 1) * sizeof *slots))) rc = wl_nomem(err);
  if (!rc) rc = find_slots(t, rowids, parts, n_parts, slots, err);
  if (!rc) {
    rc = wl_tablets_touch(t, err);
    t->layout++;
  }
  for (int i = n_parts - 1; i >= 0 && !rc; i--) { /* backwards, because tablets may be deleted */
    wl_tablet *a = &t->tablets[parts[i].tablet];
    rc = wl_bulk_delete_keys(t, parts[i].tablet, rowids + parts[i].from, slots[i],
                             parts[i].to - parts[i].from, err);
    if (!rc && !a->dead) a->dead = wl_mem_zalloc((size_t)(a->n_rows + 7) / 8);
    if (!rc && !a->dead) rc = wl_nomem(err);
    for (wl_i64 k = 0; k < parts[i].to - parts[i].from && !rc; k++) {
      wl_i32 slot = slots[i][k];
      a->n_dead += !wl_tablet_is_dead(a, slot);
      a->dead[slot >> 3] |= (wl_u8)(1 << (slot & 7));
    }
    if (!rc)
      rc = a->n_dead == a->n_rows ? wl_tablet_delete(t, parts[i].tablet, err)
                                  : wl_tablet_write_entry(t, a, err);
    if (rc) t->stale = true;
  }
  free_slots(slots, n_parts);
  wl_mem_free(parts);
  return rc;
}
