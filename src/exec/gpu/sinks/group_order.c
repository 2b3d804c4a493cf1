/*
** The order of a device's groups: lists the slots that have groups, and sorts the list by the keys,
** or by first rows. Part of finishing groups (group_finish.c).
**
** Numbers and codes of dictionaries are sorted as the words that the records have. Codes of a coder
** have no order. If there are such keys, the values of all keys are computed and then sorted as
** ORDER BY sorts them (ties_device.h).
*/
#include "exec/gpu/sinks/group_device_impl.h"
#include "exec/gpu/sinks/ties_device.h"
#include <string.h>

void wl_dgroups_list_close(wl_dgroups *g, wl_dlist *x) {
  wl_dgroups_drop(g, x->keep, (x->n_slots + 1) * 4);
  wl_dgroups_drop(g, x->places, (x->n_slots + 1) * 8);
  for (int k = 0; k < 2; k++) {
    wl_dgroups_drop(g, x->slots[k], x->n_slots * 4);
    wl_dgroups_drop(g, x->keys[k], x->n_sorted * 8);
  }
  memset(x, 0, sizeof *x);
}

/* Lists the slots that have groups, by address. */
static wl_status list_slots(wl_dgroups *g, wl_dlist *x, wl_error *err) {
  wl_device *d = g->d;
  x->n_slots = g->k.n_slots;
  wl_status rc = wl_dgroups_take(g, (x->n_slots + 1) * 4, &x->keep, err);
  if (!rc) rc = wl_dgroups_take(g, (x->n_slots + 1) * 8, &x->places, err);
  if (!rc) rc = wl_dgroups_take(g, x->n_slots * 4, &x->slots[0], err);
  wl_kfkeep keep = {g->k.table, x->keep, x->n_slots, g->k.words, g->k.rows_word};
  if (!rc) rc = wl_device_each(d, WL_K_FINISH_KEEP, &keep, sizeof keep, x->n_slots, err);
  if (!rc) rc = d->scan(d, x->keep, x->places, (wl_i64)x->n_slots, err);
  wl_kokept kept = {x->keep, x->places, x->slots[0], x->n_slots};
  if (!rc) rc = wl_device_each(d, WL_K_ORDER_KEPT, &kept, sizeof kept, x->n_slots, err);
  return rc ? rc : d->copy_out(d, &x->n, x->places + x->n_slots, 8, err);
}

static void swap_slots(wl_dlist *x) {
  wl_u32 *s = x->slots[0];
  x->slots[0] = x->slots[1];
  x->slots[1] = s;
}

/* Memory to sort the list. */
static wl_status open_sort(wl_dgroups *g, wl_dlist *x, wl_error *err) {
  wl_status rc = WL_OK;
  x->n_sorted = x->n;
  for (int k = 0; k < 2 && !rc; k++) rc = wl_dgroups_take(g, x->n * 8, &x->keys[k], err);
  return rc ? rc : wl_dgroups_take(g, x->n_slots * 4, &x->slots[1], err);
}

/* ---- by words of the records */

/* A stable sort of the list by a word. down: the largest word comes first. */
static wl_status sort_by(wl_dgroups *g, wl_dlist *x, wl_u32 word, bool minus, bool down, int n_bits,
                         wl_error *err) {
  wl_device *d = g->d;
  int at = 0;
  wl_kfwords a = {g->k.table, x->slots[0], x->keys[0], x->n, g->k.words, word, minus, down};
  wl_status rc = wl_device_each(d, WL_K_FINISH_WORDS, &a, sizeof a, x->n, err);
  if (!rc) rc = d->sort(d, x->keys, x->slots, (wl_i64)x->n, n_bits, &at, err);
  if (at) swap_slots(x);
  return rc;
}

/* By the words of the keys, from the last word to the first. */
static wl_status sort_words(wl_dgroups *g, wl_dlist *x, wl_error *err) {
  wl_status rc = WL_OK;
  for (int w = g->layout.n_words - 1; w >= 0 && !rc; w--) {
    bool one = g->k.mode == WL_KG_HASH;
    int n_bits = wl_key_bits(wl_key_layout_used(&g->layout, w) - 1);
    rc = sort_by(g, x, one ? 0 : 1 + (wl_u32)w, one, false, n_bits, err);
  }
  return rc;
}

/* ---- by the values of keys */

/* Device memory of one sort. */
typedef struct sorting {
  wl_dgroups *g;
  wl_u64 n; /* groups */
  wl_kout outs[WL_KG_KEYS];
  wl_key_layout layout;
  wl_key_part parts[WL_KO_FIELDS];
  wl_u32 *rows[2];
  wl_u64 *words, *kept;
  wl_u32 *values, *keep;
} sorting;

static void lay_out(sorting *x) {
  const wl_program *p = x->g->whole;
  wl_key_layout *l = &x->layout;
  l->parts = x->parts;
  for (int k = 0; k < p->n_keys; k++) {
    const wl_key *key = &p->keys[k];
    unsigned flags = key->desc ? WL_KEY_DESC | WL_KEY_NULL_LAST : 0;
    if (wl_key_layout_add(l, k, key->reg, &key->domain, flags)) continue;
    if (key->reg.type == WL_R_TEXT)
      wl_key_layout_add_text(l, k, key->coll, flags);
    else
      wl_key_layout_add_value(l, k, key->coll, flags);
  }
}

/* Computes the keys of the groups, in the order of the list. */
static wl_status compute_keys(sorting *x, const wl_dlist *list, wl_error *err) {
  wl_dgroups *g = x->g;
  const wl_program *p = g->whole;
  wl_kfcol cols[WL_KG_KEYS];
  wl_status rc = WL_OK;
  for (int k = 0; k < p->n_keys && !rc; k++) {
    wl_kout *o = &x->outs[k];
    o->type = p->keys[k].reg.type;
    rc = wl_dgroups_take(g, x->n * 8, &o->v, err);
    if (!rc) rc = wl_dgroups_take(g, x->n, &o->t, err);
    if (!rc && o->type >= WL_R_TEXT) rc = wl_dgroups_take(g, x->n * 4, &o->n, err);
    cols[k] = wl_dgroups_key_column(g, k);
    cols[k].v = o->v;
    cols[k].tags = o->t;
    cols[k].lengths = o->n;
  }
  return rc ? rc : wl_dgroups_compute(g, cols, p->n_keys, list->slots[0], x->n, err);
}

static wl_status open_values(sorting *x, wl_error *err) {
  wl_dgroups *g = x->g;
  size_t n = x->n + 1;
  wl_status rc = wl_dgroups_take(g, n * 4, &x->rows[0], err);
  if (!rc) rc = wl_dgroups_take(g, n * 4, &x->rows[1], err);
  if (!rc) rc = wl_dgroups_take(g, n * 8, &x->words, err);
  if (!rc) rc = wl_dgroups_take(g, n * 8, &x->kept, err);
  if (!rc) rc = wl_dgroups_take(g, n * 4, &x->values, err);
  return rc ? rc : wl_dgroups_take(g, n * 4, &x->keep, err);
}

static void close_values(sorting *x) {
  wl_dgroups *g = x->g;
  size_t n = x->n + 1;
  for (int k = 0; k < WL_KG_KEYS; k++) {
    wl_dgroups_drop(g, x->outs[k].v, x->n * 8);
    wl_dgroups_drop(g, x->outs[k].t, x->n);
    wl_dgroups_drop(g, x->outs[k].n, x->n * 4);
  }
  for (int k = 0; k < 2; k++) wl_dgroups_drop(g, x->rows[k], n * 4);
  wl_dgroups_drop(g, x->words, n * 8);
  wl_dgroups_drop(g, x->kept, n * 8);
  wl_dgroups_drop(g, x->values, n * 4);
  wl_dgroups_drop(g, x->keep, n * 4);
}

static wl_status sort_values(wl_dgroups *g, wl_dlist *list, wl_stop *stop, wl_error *err) {
  sorting x = {.g = g, .n = list->n};
  wl_device *d = g->d;
  lay_out(&x);
  wl_status rc = open_values(&x, err);
  if (!rc) rc = compute_keys(&x, list, err);
  wl_ties_sort s = {.d = d,
                    .layout = &x.layout,
                    .outs = x.outs,
                    .n = x.n,
                    .most = x.n,
                    .keys = {list->keys[0], list->keys[1]},
                    .rows = {x.rows[0], x.rows[1]},
                    .words = x.words,
                    .kept = x.kept,
                    .values = x.values,
                    .keep = x.keep,
                    .stop = stop};
  if (!rc) rc = wl_ties_sort_rows(&s, err);
  memcpy(list->keys, s.keys, sizeof s.keys);
  memcpy(x.rows, s.rows, sizeof s.rows);
  wl_kopermute a = {(const wl_u8 *)(const void *)list->slots[0], (wl_u8 *)(void *)list->slots[1],
                    x.rows[0], x.n, 4};
  if (!rc) rc = wl_device_each(d, WL_K_ORDER_PERMUTE, &a, sizeof a, x.n, err);
  if (!rc) swap_slots(list);
  close_values(&x);
  return rc;
}

wl_status wl_dgroups_list(wl_dgroups *g, wl_dlist *x, wl_stop *stop, wl_error *err) {
  bool coded = false;
  for (int k = 0; k < g->coded.n; k++) coded |= g->coded.coders[k].shown;
  wl_status rc = list_slots(g, x, err);
  if (rc || g->k.mode < WL_KG_HASH || x->n < 2) return rc;
  rc = open_sort(g, x, err);
  if (rc) return rc;
  if (g->k.row_word) return sort_by(g, x, g->k.row_word, false, true, 32, err);
  return coded ? sort_values(g, x, stop, err) : sort_words(g, x, err);
}
