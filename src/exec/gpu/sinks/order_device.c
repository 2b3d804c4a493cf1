/*
** DISTINCT and ORDER BY on a device; see order_device.h.
**
** The columns become words by the key codec (value/keys.h). If there are several words, there is
** one stable sort for each, the last word first. A key with texts or values of several types is
** sorted from its first word on (ties_device.h).
*/
#include "exec/gpu/sinks/order_device.h"
#include "column/dict.h"
#include "column/batch.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/gpu/sinks/ties_device.h"
#include <string.h>

/* Columns as a sort key. */
typedef struct fields {
  wl_key_layout layout;
  wl_key_part parts[WL_KO_FIELDS];
  wl_kofield list[WL_KO_FIELDS];
  wl_u32 ends[WL_KO_FIELDS]; /* for each word, one past its last field */
  int bits[WL_KO_FIELDS];    /* bits used in each word */
  bool differ;               /* rows can differ in some word */
  bool texts;                /* some key is not a number */
} fields;

/* Device memory of one call. */
typedef struct order_work {
  wl_device *d;
  wl_u64 n, room;
  const wl_kout *outs;
  wl_u64 *keys[2], *places;
  wl_u32 *rows[2], *keep;
  bool listed; /* rows[0] holds the list of rows; before that, the list is all rows in scan order */
  wl_kofield *fields;
  wl_u32 *ends;
  wl_u64 *moved_v; /* targets for moving a column's planes of 8, 4 and 1 bytes */
  wl_u32 *moved_n;
  wl_u8 *moved_t;
  wl_stop *stop;
} order_work;

static bool is_number(const wl_program *p, int result) {
  return wl_result_reg(&p->results[result]).type <= WL_R_REAL;
}

wl_dorder wl_dorder_plan(const wl_program *p) {
  bool distinct = p->sink == WL_SINK_DISTINCT;
  const wl_program *sort = distinct ? p->next : p->sink == WL_SINK_SORT ? p : NULL;
  wl_dorder o = {.distinct = distinct, .order = sort != NULL, .sort = sort}, none = {.sort = sort};
  if ((distinct && p->n_given > WL_KO_FIELDS / 2) || (sort && sort->n_order > WL_KO_FIELDS / 2)) {
    o = none;
    o.why = "too many columns";
  }
  for (int k = 0; k < p->n_given && o.distinct; k++)
    if (!is_number(p, k)) {
      o = none;
      o.why = "DISTINCT of text or of several types";
    }
  for (int k = 0; o.order && k < sort->n_order; k++)
    o.texts |= !is_number(p, sort->order[k].result);
  return o;
}

size_t wl_dorder_row_bytes(const wl_dorder *o) {
  if (!o->distinct && !o->order) return 0;
  return 2 * 8 + 2 * 4 + 8 + (o->distinct || o->texts ? 16 : 0) +
         (o->texts ? WL_TIES_ROW_BYTES : 0);
}

/* ---- keys */

/* Adds a column to the sort key. */
static void add_column(fields *f, const wl_program *p, int result, wl_u8 coll, unsigned flags) {
  wl_domain domain = wl_result_domain(&p->results[result]);
  wl_reg reg = wl_result_reg(&p->results[result]);
  f->layout.parts = f->parts;
  if (wl_key_layout_add(&f->layout, result, reg, &domain, flags)) return;
  f->texts = true;
  if (reg.type == WL_R_TEXT)
    wl_key_layout_add_text(&f->layout, result, coll, flags);
  else
    wl_key_layout_add_value(&f->layout, result, coll, flags);
}

/* Sets the fields after the last column. */
static void set_fields(fields *f, const wl_kout *outs) {
  const wl_key_layout *l = &f->layout;
  for (int k = 0; k < l->n_parts; k++) {
    const wl_key_part *p = &l->parts[k];
    const wl_kout *col = &outs[p->key];
    f->list[k] = (wl_kofield){.part = *p, .v = col->v, .t = p->null ? col->t : NULL};
    f->ends[p->word] = (wl_u32)k + 1;
  }
  for (int w = 0; w < l->n_words; w++) {
    f->bits[w] = wl_key_bits(wl_key_layout_used(l, w) - 1);
    f->differ |= f->bits[w] > 0;
  }
}

/* Sorts the list of rows by the fields. */
static wl_status sort_rows(order_work *w, const fields *f, wl_error *err) {
  size_t n = (size_t)f->layout.n_parts, n_words = (size_t)f->layout.n_words;
  wl_status rc = w->d->copy_in(w->d, w->fields, f->list, n * sizeof *f->list, err);
  if (!rc) rc = w->d->copy_in(w->d, w->ends, f->ends, n_words * sizeof *f->ends, err);
  for (int word = (int)n_words - 1; word >= 0 && !rc; word--) {
    wl_u32 first = word ? f->ends[word - 1] : 0;
    int at = 0;
    if (!f->bits[word]) continue; /* it is the same in all rows */
    wl_kokeys a = {
        w->fields + first,    w->listed ? w->rows[0] : NULL, w->keys[0], w->rows[0], w->n,
        f->ends[word] - first};
    rc = wl_device_each(w->d, WL_K_ORDER_KEYS, &a, sizeof a, w->n, err);
    if (!rc) rc = w->d->sort(w->d, w->keys, w->rows, (wl_i64)w->n, f->bits[word], &at, err);
    w->listed = true;
    if (!at) continue;
    wl_u64 *k = w->keys[0];
    wl_u32 *r = w->rows[0];
    w->keys[0] = w->keys[1];
    w->keys[1] = k;
    w->rows[0] = w->rows[1];
    w->rows[1] = r;
  }
  return rc;
}

/* Sorts the list of rows by fields that are not all numbers. The first `most` rows are needed. */
static wl_status sort_texts(order_work *w, const fields *f, wl_i64 most, wl_error *err) {
  wl_ties_sort s = {.d = w->d,
                    .layout = &f->layout,
                    .outs = w->outs,
                    .n = w->n,
                    .most = most < 0 ? w->n : (wl_u64)most,
                    .listed = w->listed,
                    .keys = {w->keys[0], w->keys[1]},
                    .rows = {w->rows[0], w->rows[1]},
                    .words = w->moved_v,
                    .kept = w->places,
                    .values = w->moved_n,
                    .keep = w->keep,
                    .stop = w->stop};
  wl_status rc = wl_ties_sort_rows(&s, err);
  memcpy(w->keys, s.keys, sizeof s.keys);
  memcpy(w->rows, s.rows, sizeof s.rows);
  w->listed = true;
  return rc;
}

/* Reduces the list to the rows that differ from all rows before them, in scan order. */
static wl_status make_distinct(order_work *w, const fields *f, wl_error *err) {
  wl_u64 kept = 1;
  wl_status rc = sort_rows(w, f, err);
  if (!rc && !f->differ) { /* all rows are equal */
    wl_kokeys a = {w->fields, NULL, w->keys[0], w->rows[0], 1, 0};
    rc = wl_device_each(w->d, WL_K_ORDER_KEYS, &a, sizeof a, 1, err);
    w->listed = true;
  } else if (!rc) {
    wl_kofirst a = {w->fields, w->ends, w->rows[0], w->keep, w->n, (wl_u32)f->layout.n_words};
    rc = wl_device_each(w->d, WL_K_ORDER_FIRST, &a, sizeof a, w->n, err);
    if (!rc) rc = w->d->scan(w->d, w->keep, w->places, (wl_i64)w->n, err);
    wl_kokept b = {w->keep, w->places, w->rows[0], w->n};
    if (!rc) rc = wl_device_each(w->d, WL_K_ORDER_KEPT, &b, sizeof b, w->n, err);
    if (!rc) rc = w->d->copy_out(w->d, &kept, w->places + w->n, 8, err);
  }
  w->n = kept;
  return rc;
}

/* ---- columns */

/* Permutes a plane of a column into `moved`, then swaps the two buffers, which have one size. */
static wl_status move(order_work *w, void *plane, void *moved, wl_u32 width, wl_u64 n,
                      wl_error *err) {
  wl_u8 *from, *to;
  memcpy(&from, plane, sizeof from);
  memcpy(&to, moved, sizeof to);
  if (!from) return WL_OK;
  wl_kopermute a = {from, to, w->rows[0], n, width};
  wl_status rc = wl_device_each(w->d, WL_K_ORDER_PERMUTE, &a, sizeof a, n, err);
  memcpy(plane, &to, sizeof to);
  memcpy(moved, &from, sizeof from);
  return rc;
}

static wl_status open_work(order_work *w, const wl_dorder *o, wl_error *err) {
  wl_device *d = w->d;
  wl_status rc = wl_dev_alloc(d, w->room * 8, (void **)&w->moved_v, err);
  if (!rc) rc = wl_dev_alloc(d, (w->room + 1) * 4, (void **)&w->moved_n, err);
  if (!rc) rc = wl_dev_alloc(d, w->room, (void **)&w->moved_t, err);
  if (!rc) rc = wl_dev_alloc(d, WL_KO_FIELDS * sizeof *w->fields, (void **)&w->fields, err);
  if (!rc) rc = wl_dev_alloc(d, WL_KO_FIELDS * sizeof *w->ends, (void **)&w->ends, err);
  for (int k = 0; k < 2 && !rc; k++) {
    rc = wl_dev_alloc(d, w->room * 8, (void **)&w->keys[k], err);
    if (!rc) rc = wl_dev_alloc(d, w->room * 4, (void **)&w->rows[k], err);
  }
  bool scans = o->distinct || o->texts;
  if (!rc && scans) rc = wl_dev_alloc(d, (w->room + 1) * 8, (void **)&w->places, err);
  if (!rc && scans) rc = wl_dev_alloc(d, (w->room + 1) * 4, (void **)&w->keep, err);
  return rc;
}

static void close_work(order_work *w) {
  wl_device *d = w->d;
  wl_dev_free(d, w->moved_v, w->room * 8);
  wl_dev_free(d, w->moved_n, (w->room + 1) * 4);
  wl_dev_free(d, w->moved_t, w->room);
  wl_dev_free(d, w->fields, WL_KO_FIELDS * sizeof *w->fields);
  wl_dev_free(d, w->ends, WL_KO_FIELDS * sizeof *w->ends);
  for (int k = 0; k < 2; k++) {
    wl_dev_free(d, w->keys[k], w->room * 8);
    wl_dev_free(d, w->rows[k], w->room * 4);
  }
  wl_dev_free(d, w->places, (w->room + 1) * 8);
  wl_dev_free(d, w->keep, (w->room + 1) * 4);
}

wl_status wl_dorder_run(wl_device *d, const wl_program *p, const wl_dorder *o, wl_kout *outs,
                        int n_cols, wl_u64 room, wl_u64 *n, wl_i64 most, wl_stop *stop,
                        wl_error *err) {
  order_work w = {.d = d, .n = *n, .room = room, .outs = outs, .stop = stop};
  fields given = {.differ = false}, order = {.differ = false};
  if (*n == 0) return WL_OK;
  wl_status rc = open_work(&w, o, err);
  for (int k = 0; k < p->n_given && o->distinct; k++) add_column(&given, p, k, WL_COLL_BINARY, 0);
  for (int k = 0; o->order && k < o->sort->n_order; k++) {
    const wl_order *key = &o->sort->order[k];
    add_column(&order, p, key->result, key->coll,
               (key->desc ? WL_KEY_DESC : 0) | (key->nulls_last ? WL_KEY_NULL_LAST : 0));
  }
  set_fields(&given, outs);
  set_fields(&order, outs);
  if (!rc && o->distinct) rc = make_distinct(&w, &given, err);
  if (!rc && o->order && w.n > 1)
    rc = order.texts ? sort_texts(&w, &order, most, err) : sort_rows(&w, &order, err);
  if (!rc && most >= 0 && (wl_u64)most < w.n) w.n = (wl_u64)most;
  for (int k = 0; k < n_cols && w.listed && !rc; k++) {
    rc = move(&w, &outs[k].v, &w.moved_v, 8, w.n, err);
    if (!rc) rc = move(&w, &outs[k].n, &w.moved_n, 4, w.n, err);
    if (!rc) rc = move(&w, &outs[k].t, &w.moved_t, 1, w.n, err);
  }
  if (!rc) *n = w.n;
  close_work(&w);
  return rc;
}
