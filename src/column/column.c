/*
** Finished columns; see column.h for the layout.
*/
#include "column/column.h"
#include "base/fork.h"
#include "base/mem.h"
#include "column/dict.h"
#include <assert.h>

int wl_phys_width(wl_phys p) {
  static const int width[] = {1, 2, 4, 8, 4, 8, 8, 8};
  return width[p];
}

static const char *phys_name(wl_phys p) {
  static const char *const names[] = {"int8",   "int16",  "int32", "int64",
                                      "real32", "real64", "text",  "any"};
  return names[p];
}

const char *wl_column_type(const wl_column *c) {
  static const char *const names[] = {"text in int8", "text in int16", "text in int32"};
  return c->dict ? names[c->phys] : phys_name(c->phys);
}

wl_reg wl_column_reg(const wl_column *c) {
  wl_reg r;
  r.type = c->phys <= WL_P_I64    ? WL_R_INT
           : c->phys <= WL_P_F64  ? WL_R_REAL
           : c->phys == WL_P_TEXT ? WL_R_TEXT
                                  : WL_R_ANY;
  r.nullable = (c->domain.mask & WL_M(WL_T_NULL)) != 0;
  return r;
}

wl_u64 wl_column_new_id(void) {
  static atomic_ullong last;
  return atomic_fetch_add(&last, 1) + 1;
}

wl_column *wl_column_hold(wl_column *c) {
  atomic_fetch_add(&c->refs, 1);
  return c;
}

void wl_column_drop(wl_column *c) {
  if (!c || atomic_fetch_sub(&c->refs, 1) != 1) return;
  if (c->drop) c->drop(c);
  wl_column_drop(c->before);
  for (int i = 0; i < c->n_tablets; i++) wl_segment_free(&c->segments[i]);
  wl_mem_free(c->segments);
  wl_dict_free(c->dict);
  wl_mem_free(c);
}

static bool on_device(const wl_column *c) {
  for (int k = 0; k < WL_MAX_COPIES; k++)
    if (c->on[k]) return true;
  return false;
}

bool wl_column_is_mine(const wl_column *c) {
  return atomic_load(&c->refs) == 1 && !on_device(c);
}

static pthread_mutex_t links = PTHREAD_MUTEX_INITIALIZER; /* the `before` of all columns */

__attribute__((constructor)) static void guard(void) {
  wl_fork_lock(&links);
}

wl_column *wl_column_take_before(wl_column *c) {
  pthread_mutex_lock(&links);
  wl_column *b = c->before;
  c->before = NULL;
  pthread_mutex_unlock(&links);
  return b;
}

void wl_column_return_before(wl_column *c, wl_column *before, bool derived) {
  if (!before) return;
  pthread_mutex_lock(&links);
  assert(!c->before);
  c->before = before;
  c->derived |= derived;
  pthread_mutex_unlock(&links);
}

bool wl_column_has_copy(wl_column *c, int place) {
  if (c->copy[place]) return true;
  pthread_mutex_lock(&links);
  bool has = c->before && c->before->copy[place];
  pthread_mutex_unlock(&links);
  return has;
}

void wl_column_settle(wl_column *c) {
  pthread_mutex_lock(&links);
  wl_column *b = c->derived ? c->before : NULL;
  if (b) c->before = NULL;
  pthread_mutex_unlock(&links);
  wl_column_drop(b);
}

void wl_column_follow(wl_column *c, wl_column *before) {
  if (c->phys != before->phys || c->phys >= WL_P_TEXT) return;
  wl_column *older = wl_column_take_before(before);
  if (on_device(before)) {
    wl_column_return_before(c, wl_column_hold(before), false);
    wl_column_drop(older);
  } else {
    wl_column_return_before(c, older, false);
  }
}

static wl_val heap_value(const wl_segment *s, wl_u8 tag, wl_u64 place) {
  return wl_val_make(tag, (wl_u64)(size_t)(s->heap + (wl_u32)place), (wl_u32)(place >> 32));
}

wl_val wl_segment_value(const wl_segment *s, wl_i32 i) {
  assert(i >= 0 && i < s->n_rows);
  if (s->valid && !(s->valid[i >> 3] >> (i & 7) & 1)) return wl_null();
  switch ((wl_phys)s->phys) {
  case WL_P_I8: return wl_int(((const wl_i8 *)s->data)[i]);
  case WL_P_I16: return wl_int(((const wl_i16 *)s->data)[i]);
  case WL_P_I32: return wl_int(((const wl_i32 *)s->data)[i]);
  case WL_P_I64: return wl_int(((const wl_i64 *)s->data)[i]);
  case WL_P_F32: return wl_real((double)((const float *)s->data)[i]);
  case WL_P_F64: return wl_real(((const double *)s->data)[i]);
  case WL_P_TEXT: return heap_value(s, WL_T_TEXT, ((const wl_u64 *)s->data)[i]);
  case WL_P_ANY: break;
  }
  wl_u64 v = ((const wl_u64 *)s->data)[i];
  wl_u8 tag = s->tags[i];
  return tag >= WL_T_TEXT ? heap_value(s, tag, v) : wl_val_make(tag, v, 0);
}

wl_val wl_column_stored(const wl_column *c, wl_i64 row) {
  return wl_segment_value(&c->segments[row >> WL_TABLET_SHIFT],
                          (wl_i32)(row & (WL_TABLET_ROWS - 1)));
}

wl_val wl_column_value(const wl_column *c, wl_i64 row) {
  wl_val v = wl_column_stored(c, row);
  return c->dict && v.t == WL_T_INT ? wl_dict_value(c->dict, (wl_i64)v.v) : v;
}

/* Counts the rows that are one more than the row before, and those that are greater than it. */
static WL_CLONES void count_steps(const wl_i64 *v, wl_i32 n, wl_i32 *n_steps, wl_i32 *n_rising) {
  wl_i32 steps = 0, rising = 0;
  for (wl_i32 i = 1; i < n; i++) {
    steps += (wl_u64)v[i] - (wl_u64)v[i - 1] == 1;
    rising += v[i] > v[i - 1];
  }
  *n_steps = steps;
  *n_rising = rising;
}

static bool all_integers(const wl_column *c) {
  return !c->dict && c->phys <= WL_P_I64 && c->domain.mask == WL_M(WL_T_INT);
}

bool wl_column_rises(const wl_column *c, bool *by_one) {
  enum { SOME = 4096 };
  wl_i64 some[SOME + 1]; /* some[0] is the row before the others */
  bool rises = all_integers(c) || c->n_rows == 0;
  *by_one = rises;
  for (int k = 0, started = 0; k < c->n_tablets && rises; k++) {
    const wl_segment *s = &c->segments[k];
    int width = wl_phys_width(c->phys);
    for (wl_i32 at = 0; at < s->n_rows && rises; at += SOME) {
      wl_i32 n = s->n_rows - at < SOME ? s->n_rows - at : SOME, n_steps, n_rising;
      wl_phys_copy(some + 1, WL_P_I64, (const wl_u8 *)s->data + (size_t)at * (size_t)width, c->phys,
                   n);
      count_steps(some + 1 - started, n + started, &n_steps, &n_rising);
      *by_one &= n_steps == n + started - 1;
      rises = n_rising == n + started - 1;
      some[0] = some[n];
      started = 1;
    }
  }
  return rises;
}

void wl_column_integers(const wl_column *c, wl_i64 *out) {
  for (int k = 0; k < c->n_tablets; out += c->segments[k++].n_rows)
    wl_phys_copy(out, WL_P_I64, c->segments[k].data, c->phys, c->segments[k].n_rows);
}
