/*
** The rows of a tablet table's image: their positions, and which of them count. See image.h.
** image_columns.c makes the columns.
*/
#include "tablet/read/image_impl.h"
#include "value/domain.h"
#include "base/mem.h"
#include <string.h>

void wl_made_free(wl_made *made, int n) {
  for (int i = 0; made && i < n; i++) wl_patch_drop(made[i].patch);
  wl_mem_free(made);
}

void wl_origin_clear(wl_origin *o) {
  wl_column_drop(o->column);
  wl_made_free(o->made, o->n);
  wl_mem_free(o->map);
  memset(o, 0, sizeof *o);
}

void wl_image_shed(wl_image *im, void (*give)(void *arg, wl_column *c), void *arg) {
  for (int i = 0; im->before && i <= im->n_cols; i++) {
    if (im->before[i].column) give(arg, im->before[i].column);
    im->before[i].column = NULL;
    wl_origin_clear(&im->before[i]);
  }
}

void wl_image_close(wl_image *im) {
  if (!im) return;
  for (int i = 0; im->before && i <= im->n_cols; i++) wl_origin_clear(&im->before[i]);
  for (int i = 0; im->now && i <= im->n_cols; i++) wl_origin_clear(&im->now[i]);
  wl_mem_free(im->now);
  wl_mem_free(im->before);
  wl_mem_free(im->parts);
  wl_mem_free(im->tablets);
  wl_column_drop(im->live);
  wl_mem_free(im);
}

wl_i64 wl_image_slots(const wl_image *im) {
  return im->n_slots;
}
wl_i64 wl_image_live(const wl_image *im) {
  return im->n_live;
}
wl_column *wl_image_live_column(const wl_image *im) {
  return im->live;
}

size_t wl_image_bytes(const wl_image *im) {
  size_t n = im && im->live ? im->live->n_bytes : 0;
  for (int i = 0; im && i <= im->n_cols; i++)
    if (im->before[i].column) n += im->before[i].column->n_bytes;
  return n;
}

/* ---- the parts */

static wl_status room(void **array, int n, int *size, size_t width) {
  if (n < *size) return WL_OK;
  int more = *size ? *size * 2 : 64;
  void *p = wl_mem_realloc(*array, (size_t)n * width, (size_t)more * width);
  if (!p) return WL_NOMEM;
  *array = p;
  *size = more;
  return WL_OK;
}

/* Adds a part, to the last image tablet if it fits there. */
static wl_status add_part(wl_image *im, wl_part p) {
  if (room((void **)&im->parts, im->n_parts, &im->size_parts, sizeof *im->parts)) return WL_NOMEM;
  wl_image_tablet *last = im->n_tablets ? &im->tablets[im->n_tablets - 1] : NULL;
  if (!last || last->n_rows + p.n_rows > WL_TABLET_ROWS) {
    if (room((void **)&im->tablets, im->n_tablets, &im->size_tablets, sizeof *im->tablets))
      return WL_NOMEM;
    last = &im->tablets[im->n_tablets++];
    *last = (wl_image_tablet){.first = im->n_parts};
  }
  im->parts[im->n_parts++] = p;
  last->n++;
  last->n_rows += p.n_rows;
  last->merged |= p.merged;
  im->merged |= p.merged;
  return WL_OK;
}

/* Adds the rows of a range that the delta changes. */
static wl_status add_range(wl_image *im, wl_tablets *t, int i, wl_error *err) {
  wl_merge *m = NULL;
  wl_i32 n = 0;
  wl_status rc = wl_merge_open(t, i, NULL, 0, &m, err);
  while (!rc) {
    rc = wl_merge_next(m, NULL, &n, err);
    if (rc || n == 0) break;
    im->n_live += n;
    if (add_part(im, (wl_part){.tablet = i, .merged = true, .n_rows = n})) rc = wl_nomem(err);
  }
  wl_merge_close(m);
  return rc;
}

static wl_status lay_out(wl_image *im, wl_tablets *t, wl_error *err) {
  int n = wl_tablets_count(t);
  bool delta = wl_tablets_has_delta(t);
  wl_status rc = WL_OK;
  if (n == 0 && delta) rc = add_range(im, t, 0, err);
  for (int i = 0; i < n && !rc; i++) {
    const wl_tablet *at = wl_tablets_at(t, i);
    bool merge = false;
    if (delta) rc = wl_merge_needed(t, i, &merge, err);
    if (!rc && merge) {
      rc = add_range(im, t, i, err);
    } else if (!rc && at->n_dead < at->n_rows) { /* a tablet whose rows are all dead is skipped */
      im->n_live += at->n_rows - at->n_dead;
      if (add_part(im, (wl_part){.tablet = i, .n_rows = at->n_rows})) rc = wl_nomem(err);
    }
  }
  for (int k = 0; k < im->n_tablets && !rc; k++) {
    wl_image_tablet *at = &im->tablets[k];
    at->n_slots = k == im->n_tablets - 1 ? at->n_rows : WL_TABLET_ROWS;
    im->n_slots += at->n_slots;
  }
  return rc;
}

/* ---- which rows count */

static bool has_dead(const wl_image *im, wl_tablets *t, const wl_image_tablet *at) {
  for (int p = at->first; p < at->first + at->n; p++)
    if (!im->parts[p].merged && wl_tablets_at(t, im->parts[p].tablet)->n_dead) return true;
  return at->n_slots > at->n_rows;
}

static wl_status live_segment(const wl_image *im, wl_tablets *t, const wl_image_tablet *at,
                              wl_segment *out) {
  memset(out, 0, sizeof *out);
  wl_u8 *live = out->data = wl_mem_zalloc((size_t)at->n_slots);
  if (!live || wl_segment_share(out)) return WL_NOMEM;
  wl_i32 row = 0;
  for (int p = at->first; p < at->first + at->n; p++) {
    const wl_part *part = &im->parts[p];
    const wl_u8 *dead = part->merged ? NULL : wl_tablets_at(t, part->tablet)->dead;
    memset(live + row, 1, (size_t)part->n_rows);
    for (wl_i32 r = 0; r < part->n_rows && dead; r++)
      if (dead[r >> 3] >> (r & 7) & 1) live[row + r] = 0;
    row += part->n_rows;
  }
  out->n_rows = at->n_slots;
  out->phys = WL_P_I8;
  out->domain = wl_domain_int(has_dead(im, t, at) ? 0 : 1, 1, false);
  return WL_OK;
}

/* Makes the live column. There is none if every row counts. Tablets without dead rows share one
** segment. */
static wl_status make_live(wl_image *im, wl_tablets *t, wl_error *err) {
  if (im->n_live == im->n_slots) return WL_OK;
  wl_segment *s = wl_mem_zalloc(((size_t)im->n_tablets + 1) * sizeof *s);
  int whole = -1, n = 0;
  wl_status rc = s ? WL_OK : wl_nomem(err);
  for (; n < im->n_tablets && !rc; n++) {
    const wl_image_tablet *at = &im->tablets[n];
    bool all = !has_dead(im, t, at) && at->n_slots == WL_TABLET_ROWS;
    if (all && whole >= 0)
      s[n] = wl_segment_hold(&s[whole]);
    else if (live_segment(im, t, at, &s[n]))
      rc = wl_nomem(err);
    if (all && whole < 0) whole = n;
  }
  if (!rc) return wl_column_of(s, n, NULL, &im->live, err);
  for (int i = 0; i < n; i++) wl_segment_free(&s[i]);
  wl_mem_free(s);
  return rc;
}

/* ---- versions */

/* Copies what a column's segments were made from, and holds the column. */
static wl_origin copy_origin(const wl_origin *from, wl_column *column) {
  wl_origin o = *from;
  o.made = wl_mem_alloc(((size_t)from->n + 1) * sizeof *o.made);
  o.map = from->map ? wl_mem_alloc(((size_t)from->n_map + 1) * sizeof *o.map) : NULL;
  if (!o.made || (from->map && !o.map)) { /* out of memory: it lends nothing */
    wl_mem_free(o.made);
    wl_mem_free(o.map);
    return (wl_origin){0};
  }
  memcpy(o.made, from->made, (size_t)from->n * sizeof *o.made);
  for (int i = 0; i < o.n; i++) wl_patch_hold(o.made[i].patch);
  if (o.map) memcpy(o.map, from->map, (size_t)from->n_map * sizeof *o.map);
  o.column = wl_column_hold(column);
  return o;
}

void wl_image_lend(const wl_image *from, int col, wl_column *column, wl_image *to) {
  if (from->n_cols != to->n_cols) return;
  const wl_origin *now = &from->now[col], *before = &from->before[col];
  if (column && now->made && now->n == column->n_tablets)
    to->before[col] = copy_origin(now, column);
  else if (before->column && before->made)
    to->before[col] = copy_origin(before, before->column);
}

wl_status wl_image_open(wl_tablets *t, int n_cols, wl_image **out, wl_error *err) {
  wl_image *im = wl_mem_zalloc(sizeof *im);
  if (!im) return wl_nomem(err);
  im->version = wl_tablets_version(t);
  im->n_cols = n_cols;
  im->now = wl_mem_zalloc(((size_t)im->n_cols + 1) * sizeof *im->now);
  im->before = wl_mem_zalloc(((size_t)im->n_cols + 1) * sizeof *im->before);
  wl_status rc = im->now && im->before ? lay_out(im, t, err) : wl_nomem(err);
  if (!rc) rc = make_live(im, t, err);
  if (rc) wl_image_close(im);
  *out = rc ? NULL : im;
  return rc;
}
