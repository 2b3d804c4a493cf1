/*
** Columns of a tablet table's image; see image.h. The form of a column is chosen before anything is
** read, from the zone maps of the directory and from the rows with the delta merged in, which are
** built first. Then all threads decode its tablets (image_read.c).
**
** Invariants:
** 1. A blob whose header differs from the directory is corrupt, because the form depends on it.
** 2. One thread makes a unit, and only that thread touches the unit's segment and merged rows.
*/
#include "base/mem.h"
#include "base/tasks.h"
#include "tablet/read/image_impl.h"
#include "tablet/table/table_impl.h"
#include <string.h>

enum { MERGE_COLS = 16 };

wl_status wl_image_corrupt(const wl_image_job *j, const wl_making_col *m, int tablet,
                           const char *what, wl_error *err) {
  return wl_tablets_corrupt(j->t, m->col, wl_tablets_at(j->t, tablet)->id, err, "%s", what);
}

/* ---- rows with the delta merged in */

typedef struct staging {
  wl_making_col *cols;
  wl_stage *stages;
  int part;
} staging;

static wl_status stage_task(void *arg, int worker, long i, wl_error *err) {
  staging *s = arg;
  (void)worker;
  return wl_segment_make(&s->stages[i], &s->cols[i].merged[s->part]) ? wl_nomem(err) : WL_OK;
}

/* Merges some columns of one range, whose parts are consecutive from `part` on. */
static wl_status merge_range(wl_image_job *j, int part, wl_making_col *cols, int n,
                             wl_stage *stages, wl_error *err) {
  int at[MERGE_COLS], tablet = j->im->parts[part].tablet;
  wl_merge *m = NULL;
  for (int i = 0; i < n; i++) at[i] = cols[i].col;
  wl_status rc = wl_merge_open(j->t, tablet, at, n, &m, err);
  for (; part < j->im->n_parts && !rc; part++) {
    const wl_part *p = &j->im->parts[part];
    wl_i32 n_rows = 0;
    if (!p->merged || p->tablet != tablet) break;
    rc = wl_merge_next(m, stages, &n_rows, err);
    if (!rc && n_rows != p->n_rows)
      rc = wl_fail(err, WL_ERROR, "%s changed while it was being read", wl_tablets_name(j->t));
    staging s = {.cols = cols, .stages = stages, .part = part};
    wl_tasks tasks = {j->how->n_threads, n, stage_task, &s, NULL};
    if (!rc) rc = wl_tasks_run(&tasks, NULL, err);
  }
  wl_merge_close(m);
  return rc;
}

static wl_status merge_all(wl_image_job *j, wl_error *err) {
  wl_stage stages[MERGE_COLS];
  int n_open = 0;
  wl_status rc = WL_OK;
  if (!j->im->merged) return WL_OK;
  while (n_open < MERGE_COLS && n_open < j->n_cols && !rc) {
    rc = wl_stage_open(&stages[n_open]) ? wl_nomem(err) : WL_OK;
    n_open += !rc;
  }
  for (int c = 0; c < j->n_cols && !rc; c += MERGE_COLS) {
    int n = j->n_cols - c < MERGE_COLS ? j->n_cols - c : MERGE_COLS;
    int last = -1; /* the previous range */
    for (int p = 0; p < j->im->n_parts && !rc; p++) {
      const wl_part *part = &j->im->parts[p];
      if (!part->merged || part->tablet == last) continue;
      last = part->tablet;
      if (j->how->check) rc = j->how->check(j->how->check_arg, err);
      if (!rc) rc = merge_range(j, p, &j->cols[c], n, stages, err);
    }
  }
  for (int i = 0; i < n_open; i++) wl_stage_close(&stages[i]);
  return rc;
}

/* ---- forms */

static void widen(wl_domain *d, const wl_domain *by) {
  d->mask |= by->mask;
  if (by->lo < d->lo) d->lo = by->lo;
  if (by->hi > d->hi) d->hi = by->hi;
}

/* Chooses the form of a column. For texts, decides whether codes can represent them all. */
static wl_form form_of(const wl_image_job *j, wl_making_col *m) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL), T = WL_M(WL_T_TEXT);
  wl_domain d = wl_domain_nothing;
  bool coded = false, plain = false, blobs = false, single = true;
  for (int p = 0; p < j->im->n_parts; p++) {
    if (j->im->parts[p].merged) {
      widen(&d, &m->merged[p].domain);
      continue;
    }
    const wl_zone *z = wl_image_zone(j, m, p);
    blobs = true;
    coded |= z->coded;
    plain |= !z->coded && (z->domain.mask & T);
    if (z->coded)
      d.mask |= z->domain.mask; /* its range is of codes */
    else
      widen(&d, &z->domain);
  }
  for (int k = 0; k < j->im->n_tablets; k++) single &= j->im->tablets[k].n == 1;
  unsigned types = d.mask & ~WL_M(WL_T_NULL);
  if (!blobs && single) return FORM_STAGED;
  m->phys = WL_P_ANY;
  if ((types & ~I) == 0) {
    m->phys = types ? wl_int_phys(&d) : WL_P_I8;
    return FORM_INT;
  }
  if (types == F) return FORM_REAL;
  if (types != T) return FORM_ANY;
  m->phys = WL_P_TEXT;
  return coded && !plain ? FORM_CODE : FORM_TEXT;
}

/* ---- decoding */

/* Whether a segment's header is what the directory says. The zone map of a patched segment may be
** wider, and may have NULL in addition. */
static bool fits_zone(const wl_zone *z, const wl_zone *want, bool patched) {
  unsigned more = patched ? WL_M(WL_T_NULL) : 0;
  if (z->sum != want->sum || z->n_nulls != want->n_nulls || z->coded != want->coded ||
      (z->domain.mask | more) != (want->domain.mask | more))
    return false;
  if (patched) return wl_zone_covers(want, z);
  return z->domain.lo == want->domain.lo && z->domain.hi == want->domain.hi;
}

enum { SLAB = 4 << 20 };

/* Finds room for the decoded data of a tablet. NULL: it gets a block of its own. */
static void *room_for(wl_image_job *j, wl_making_col *m, int part, wl_u8 phys, wl_slab **slab) {
  size_t n = (size_t)j->im->parts[part].n_rows * (size_t)wl_phys_width(phys);
  void *room = NULL;
  if (phys >= WL_P_TEXT || j->im->parts[part].n_rows < WL_TABLET_ROWS ||
      n * j->im->n_tablets < SLAB)
    return NULL;
  pthread_mutex_lock(&j->lock);
  if (m->slab) room = wl_slab_cut(m->slab, n);
  if (!room) {
    wl_slab_drop(m->slab);
    m->slab = wl_slab_open(SLAB);
    if (m->slab) room = wl_slab_cut(m->slab, n);
  }
  *slab = m->slab;
  if (room) atomic_fetch_add(&m->slab->refs, 1);
  pthread_mutex_unlock(&j->lock);
  return room;
}

/* Decodes a blob into a segment of the column's form. Reals become as wide as they need. use_slab:
** the data of numbers may be part of the column's slab. */
static wl_status decode_blob(wl_image_job *j, wl_making_col *m, int part, const wl_u8 *blob,
                             size_t n, bool is_coded, bool use_slab, wl_segment *out,
                             wl_error *err) {
  int tablet = j->im->parts[part].tablet;
  bool coded, real = m->form == FORM_REAL, own = is_coded && !real;
  wl_error why = {0};
  wl_i64 max_code = m->file ? m->file->n : 0;
  wl_u8 phys = m->phys;
  wl_slab *slab = NULL;
  wl_status rc = WL_OK;
  if (m->form == FORM_CODE && !m->map) own = false; /* codes are used unchanged */
  if (real) rc = wl_codec_phys(blob, n, &phys, &why);
  if (!rc && own) {
    rc = wl_codec_read(blob, n, max_code, out, &coded, &why);
  } else if (!rc) {
    void *room = use_slab ? room_for(j, m, part, phys, &slab) : NULL;
    rc = wl_codec_read_into(blob, n, max_code, phys, room, out, &coded, &why);
    if (room && !rc && out->data == room)
      out->slab = slab;
    else if (room)
      wl_slab_drop(slab);
  }
  if (rc == WL_NOMEM) return wl_nomem(err);
  if (rc) return wl_image_corrupt(j, m, tablet, why.text, err);
  if (coded != is_coded)
    return wl_image_corrupt(j, m, tablet, "its encoding does not match the directory", err);
  if (!own) return WL_OK;
  if (m->form == FORM_CODE)
    rc = wl_image_translate(m, out->data, out->phys, out);
  else
    rc = wl_image_spell(m->file, out);
  if (!rc && m->form == FORM_ANY) rc = wl_segment_convert(out, WL_P_ANY);
  if (rc == WL_TOOBIG) return wl_not_taken(err, "a tablet holds more than 4 GiB of text");
  return rc ? wl_nomem(err) : WL_OK;
}

wl_status wl_image_apply_patch(wl_image_job *j, wl_making_col *m, int part, const wl_patch *p,
                               wl_segment *s, wl_error *err) {
  wl_segment by = {0};
  wl_status rc = decode_blob(j, m, part, p->blob, p->zone.n_bytes, p->zone.coded, false, &by, err);
  if (!rc) rc = wl_segment_overlay(s, &by, p->slots);
  wl_segment_free(&by);
  if (rc == WL_TOOBIG) return wl_not_taken(err, "a tablet holds more than 4 GiB of text");
  return rc == WL_NOMEM ? wl_nomem(err) : rc;
}

/* Decodes the blob of a part, with its patch, into a segment of the column's form. */
static wl_status decode(wl_image_job *j, wl_making_col *m, int part, const wl_u8 *blob, size_t n,
                        wl_segment *out, wl_error *err) {
  int tablet = j->im->parts[part].tablet;
  const wl_zone *want = wl_image_zone(j, m, part);
  const wl_patch *patch = wl_tablet_patch(wl_tablets_at(j->t, tablet), m->col);
  wl_zone z;
  wl_i32 n_rows;
  wl_error why = {0};
  memset(out, 0, sizeof *out);
  wl_status rc = wl_codec_zone(blob, n, &z, &n_rows, &why);
  if (rc) return wl_image_corrupt(j, m, tablet, why.text, err);
  if (!fits_zone(&z, want, patch != NULL) || n_rows != j->im->parts[part].n_rows)
    return wl_image_corrupt(j, m, tablet, "the segment does not match the directory", err);
  rc = decode_blob(j, m, part, blob, n, want->coded, true, out, err);
  if (!rc && patch) rc = wl_image_apply_patch(j, m, part, patch, out, err);
  return rc;
}

/* Takes the merged rows in the column's form. */
static wl_status use_merged(const wl_making_col *m, int part, wl_segment *out) {
  *out = m->merged[part];
  memset(&m->merged[part], 0, sizeof *out);
  if (wl_dict_uncode(out)) return WL_NOMEM;
  if (m->form == FORM_REAL || m->form == FORM_CODE) return WL_OK;
  return wl_segment_convert(out, m->phys);
}

static wl_status append(const wl_making_col *m, wl_segment *to, wl_segment *more) {
  wl_u8 phys = to->phys;
  if (m->form == FORM_REAL && phys != more->phys) /* or one of them has only NULLs */
    phys = to->phys == WL_P_F64 || more->phys == WL_P_F64 ? WL_P_F64 : WL_P_F32;
  wl_status rc = wl_segment_convert(to, phys);
  if (!rc) rc = wl_segment_convert(more, phys);
  return rc ? rc : wl_segment_append(to, more);
}

/* Makes a unit from the blobs of its parts. Merged parts have empty blobs. */
wl_status wl_image_make_unit(wl_image_job *j, const wl_image_unit *u, const wl_u8 *buf,
                             const size_t *at, wl_error *err) {
  const wl_image_tablet *tablet = &j->im->tablets[u->tablet];
  wl_making_col *m = u->m;
  wl_segment all = {0}, one = {0};
  wl_status rc = WL_OK;
  for (int i = 0; i < tablet->n && !rc; i++) {
    int part = tablet->first + i;
    if (j->im->parts[part].merged)
      rc = use_merged(m, part, &one) ? wl_nomem(err) : WL_OK;
    else
      rc = decode(j, m, part, buf + at[i], at[i + 1] - at[i], &one, err);
    if (!rc && i > 0) rc = append(m, &all, &one);
    if (rc == WL_TOOBIG) rc = wl_not_taken(err, "a tablet holds more than 4 GiB of text");
    if (rc == WL_NOMEM) rc = wl_nomem(err);
    if (i == 0)
      all = one;
    else
      wl_segment_free(&one);
    memset(&one, 0, sizeof one);
  }
  if (!rc && (wl_segment_pad(&all, tablet->n_slots) || wl_segment_share(&all))) rc = wl_nomem(err);
  if (rc) {
    wl_segment_free(&all);
    return rc;
  }
  m->segments[u->tablet] = all;
  size_t n = atomic_fetch_add(&j->n_bytes, wl_segment_bytes(&all)) + wl_segment_bytes(&all);
  return j->how->limit && n > j->how->limit ? WL_FULL : WL_OK;
}

/* ---- a load */

static wl_status open_column(wl_image_job *j, wl_making_col *m, int col, wl_error *err) {
  const wl_image *im = j->im;
  const wl_decl *d = wl_tablets_decl(j->t);
  size_t n = (size_t)im->n_tablets + 1;
  m->col = col < 0 || col == d->rowid_col ? d->n_cols : col;
  m->segments = wl_mem_zalloc(n * sizeof *m->segments);
  m->made = wl_mem_zalloc(n * sizeof *m->made);
  m->merged = wl_mem_zalloc(((size_t)im->n_parts + 1) * sizeof *m->merged);
  if (!m->segments || !m->made || !m->merged) return wl_nomem(err);
  wl_status rc = m->col == d->n_cols ? WL_OK : wl_tablets_dict(j->t, m->col, &m->file, err);
  if (!rc) wl_image_describe(j, m);
  return rc;
}

static void close_column(const wl_image_job *j, wl_making_col *m) {
  for (int k = 0; k < j->im->n_tablets && m->segments; k++) wl_segment_free(&m->segments[k]);
  for (int p = 0; p < j->im->n_parts && m->merged; p++) wl_segment_free(&m->merged[p]);
  wl_mem_free(m->segments);
  wl_mem_free(m->merged);
  wl_made_free(m->made, j->im->n_tablets);
  wl_mem_free(m->map);
  wl_dict_free(m->dict);
  wl_slab_drop(m->slab);
}

static wl_status convert_task(void *arg, int worker, long i, wl_error *err) {
  wl_making_col *m = arg;
  (void)worker;
  wl_segment *s = &m->segments[i];
  if (s->phys == m->phys || !s->data) return WL_OK;
  atomic_int *shared = s->shared;
  bool alone = atomic_load(shared) == 1;
  wl_segment copy = {0};
  if (!alone) { /* a segment of the previous column, which must not change */
    copy = *s;
    copy.shared = NULL;
    copy.slab = NULL;
    copy.data = wl_mem_alloc((size_t)s->n_rows * (size_t)wl_phys_width(s->phys));
    copy.valid = s->valid ? wl_mem_alloc(((size_t)s->n_rows + 7) / 8) : NULL;
    bool ok = copy.data && (copy.valid || !s->valid) && wl_segment_share(&copy) == WL_OK;
    if (ok) memcpy(copy.data, s->data, (size_t)s->n_rows * (size_t)wl_phys_width(s->phys));
    if (ok && s->valid) memcpy(copy.valid, s->valid, ((size_t)s->n_rows + 7) / 8);
    wl_segment_free(s);
    *s = copy;
    if (!ok) {
      wl_segment_free(s);
      memset(s, 0, sizeof *s);
      return wl_nomem(err);
    }
  }
  return wl_segment_convert(s, m->phys) ? wl_nomem(err) : WL_OK;
}

/* Makes the column from its segments, and notes in o where they come from. */
static wl_status finish(wl_image_job *j, wl_making_col *m, wl_origin *o, wl_column **out,
                        wl_error *err) {
  int n = j->im->n_tablets;
  wl_status rc = WL_OK;
  if (m->form == FORM_STAGED) {
    for (int k = 0; k < n && !rc; k++) {
      wl_segment *s = &m->merged[j->im->tablets[k].first];
      if (wl_segment_pad(s, j->im->tablets[k].n_slots)) rc = wl_nomem(err);
      if (rc) break;
      m->segments[k] = *s;
      memset(s, 0, sizeof *s);
    }
    if (rc) return rc;
    wl_segment *all = m->segments;
    m->segments = NULL;
    return wl_column_make(all, n, j->how->n_threads, true, out, err);
  }
  if (m->form == FORM_REAL) {
    m->phys = WL_P_F32;
    for (int k = 0; k < n; k++)
      if (m->segments[k].phys == WL_P_F64) m->phys = WL_P_F64;
    wl_tasks tasks = {j->how->n_threads, n, convert_task, m, NULL};
    rc = wl_tasks_run(&tasks, NULL, err);
    if (rc) return rc;
  }
  for (int k = 0; k < n; k++)
    if (!m->segments[k].data) return wl_nomem(err);
  wl_segment *all = m->segments;
  wl_dict *dict = m->dict;
  m->segments = NULL;
  m->dict = NULL;
  rc = wl_column_of(all, n, dict, out, err);
  if (rc) return rc;
  if (m->before && m->before->column) wl_column_follow(*out, m->before->column);
  wl_origin_clear(o);
  *o = (wl_origin){.made = m->made, .n = n, .dict = m->dict_id, .map = m->map, .n_map = m->n_map};
  m->made = NULL;
  m->map = NULL;
  return WL_OK;
}

wl_status wl_image_load(wl_image *im, wl_tablets *t, const int *cols, int n,
                        const wl_image_how *how, wl_column **out, wl_error *err) {
  wl_image_job j = {.im = im, .t = t, .how = how, .n_cols = n};
  atomic_init(&j.n_bytes, 0);
  atomic_init(&j.failed, false);
  for (int k = 0; k < im->n_tablets; k++)
    if (im->tablets[k].n > j.max_parts) j.max_parts = im->tablets[k].n;
  j.cols = wl_mem_zalloc(((size_t)n + 1) * sizeof *j.cols);
  j.units = wl_mem_alloc(((size_t)n * (size_t)im->n_tablets + 1) * sizeof *j.units);
  wl_status rc = j.cols && j.units ? WL_OK : wl_nomem(err);
  for (int i = 0; i < n && !rc; i++) {
    int at = cols[i] < 0 ? im->n_cols : cols[i];
    rc = open_column(&j, &j.cols[i], cols[i], err);
    if (im->before[at].column) j.cols[i].before = &im->before[at];
  }
  if (!rc) rc = merge_all(&j, err);
  for (int i = 0; i < n && !rc; i++) {
    wl_making_col *m = &j.cols[i];
    m->form = form_of(&j, m);
    if (m->form == FORM_CODE) rc = wl_image_make_dict(&j, m, err);
    if (!rc) rc = wl_image_borrow(&j, m, err);
  }
  for (int k = 0; k < im->n_tablets && !rc; k++) /* in the order of the file */
    for (int i = 0; i < n; i++)
      if (j.cols[i].form != FORM_STAGED && !j.cols[i].segments[k].data)
        j.units[j.n_units++] = (wl_image_unit){&j.cols[i], k};
  if (!rc && j.n_units) rc = wl_image_run_units(&j, err);
  for (int i = 0; i < n && !rc; i++) {
    int at = cols[i] < 0 ? im->n_cols : cols[i];
    rc = finish(&j, &j.cols[i], &im->now[at], &out[i], err);
    if (!rc) wl_origin_clear(&im->before[at]);
  }
  for (int i = 0; i < n && j.cols; i++) close_column(&j, &j.cols[i]);
  for (int i = 0; i < n && rc; i++) {
    wl_column_drop(out[i]);
    out[i] = NULL;
  }
  wl_mem_free(j.cols);
  wl_mem_free(j.units);
  return rc;
}
