/*
** Loads columns into a set: one thread at a time, within the budget, while others wait. See
** cache.h.
*/
#include "column/cache_impl.h"
#include "base/mem.h"
#include <string.h>

/* How often a waiting thread checks, every few milliseconds, before it assumes that the loading
** thread is stuck, and loads by itself. A callback of the application might wait for this
** connection. */
enum { PATIENCE = 700 };

static _Thread_local int n_loads; /* loads that this thread has in progress */

typedef struct cache_request {
  wl_cache_user *user;
  wl_column_set *set; /* the user's at the start; a function called by the load may change that */
  const int *cols;
  int n;
  const wl_cache_load *how;
  wl_column **held; /* [n] columns found or loaded so far */
  int *missing;     /* [n] positions in cols */
  int *wanted;      /* [n] cols[missing[i]] */
  wl_column **got;  /* [n] */
  wl_i64 now;       /* time on the cache's clock; columns used since are not evicted */
  bool own_limit;   /* the last load was limited by its own member's budget */
  bool tried_again;
} cache_request;

void wl_cache_beat(wl_cache_user *u) {
  wl_cache_lock();
  if (u->set) u->set->n_beats++;
  wl_cache_unlock();
}

/* Holds the columns that are in memory. Returns how many are missing. */
static int hold_present(cache_request *r) {
  wl_column_set *set = r->set;
  int n_missing = 0;
  for (int i = 0; i < r->n; i++) {
    wl_set_slot *slot = &set->slots[wl_set_slot_of(set, r->cols[i])];
    if (r->held[i]) continue;
    if (slot->column)
      r->held[i] = wl_column_hold(slot->column);
    else
      r->missing[n_missing++] = i;
  }
  return n_missing;
}

/* Waits while another thread loads into the set. *stuck: that thread shows no activity. */
static wl_status wait_for_other(cache_request *r, bool *stuck, wl_error *err) {
  wl_column_set *set = r->set;
  wl_u64 beats = set->n_beats;
  wl_status rc = WL_OK;
  for (int n = 0; set->loading && !rc && n < PATIENCE; n++) {
    wl_cache_wait();
    if (set->n_beats != beats) n = 0;
    beats = set->n_beats;
    if (!set->loading || !r->how->check) continue;
    wl_cache_unlock();
    rc = r->how->check(r->how->check_arg, err);
    wl_cache_lock();
  }
  *stuck = set->loading;
  return rc;
}

static void give(void *trash, wl_column *c) {
  wl_cache_throw(trash, c);
}

/* Frees what kinds of tables keep for later. */
static void shed_extras(const wl_column_set *mine, wl_cache_trash *t) {
  for (wl_column_set *set = wl_cache.sets; set; set = set->next) {
    if (!set->extra.data || (set->loading && set != mine)) continue;
    set->extra.shed(set->extra.data, give, t);
    wl_cache_note_extra(set, set->extra.bytes(set->extra.data));
  }
}

static bool half_full(wl_i64 budget) {
  return wl_cache.n_bytes - wl_cache.n_lookup_bytes > (size_t)budget / 2;
}

/* Makes room. Returns how many bytes the load may take; 0: no limit. */
static size_t limit_of(cache_request *r, wl_cache_trash *t) {
  wl_i64 total = wl_cache_budget(), own = r->user->member->budget;
  size_t limit = 0, present = 0;
  if (total) {
    if (half_full(total)) shed_extras(r->set, t);
    while (half_full(total) && wl_cache_evict(r->now, t)) {
    }
    limit = (size_t)total > wl_cache.n_bytes ? (size_t)total - wl_cache.n_bytes : 1;
  }
  for (int i = 0; i < r->n; i++) present += r->held[i] ? r->held[i]->n_bytes : 0;
  if (own) {
    size_t left = (size_t)own > present ? (size_t)own - present : 1;
    r->own_limit = !limit || left < limit;
    if (r->own_limit) limit = left;
  }
  return limit;
}

/* Loads the missing columns: into the set, or, if private, only for this request. */
static wl_status load_missing(cache_request *r, int n_missing, bool private, wl_error *err) {
  wl_column_set *set = r->set;
  wl_cache_trash trash = {0};
  wl_i64 n_rows = 0;
  size_t extra_bytes = 0;
  if (private && set->extra.data)
    return wl_not_taken(err, "its columns are being loaded by another connection");
  if (!private) set->loading = true;
  size_t limit = limit_of(r, &trash);
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
  for (int i = 0; i < n_missing; i++) r->wanted[i] = r->cols[r->missing[i]];
  memset(r->got, 0, (size_t)n_missing * sizeof *r->got);
  n_loads++;
  wl_status rc = r->how->load(r->how->arg, r->wanted, n_missing, limit, r->got, &n_rows, err);
  n_loads--;
  for (int i = 0; i < n_missing && rc; i++) wl_column_drop(r->got[i]);
  if (!private && set->extra.data) extra_bytes = set->extra.bytes(set->extra.data);
  wl_cache_lock();
  if (!private) {
    set->loading = false;
    if (set->extra.data) wl_cache_note_extra(set, extra_bytes);
    wl_cache_wake();
  }
  if (rc) return rc;
  if (set->counted && set->n_rows != n_rows) {
    wl_cache_unlock();
    for (int i = 0; i < n_missing; i++) wl_column_drop(r->got[i]);
    wl_cache_lock();
    return wl_fail(err, WL_ERROR, "%s changed while it was being read", r->how->name);
  }
  set->counted = true;
  set->n_rows = n_rows;
  for (int i = 0; i < n_missing; i++) {
    int at = wl_set_slot_of(set, r->wanted[i]);
    r->held[r->missing[i]] = r->got[i];
    if (private || set->slots[at].column) continue;
    wl_cache_fill(set, at, wl_column_hold(r->got[i]));
    set->slots[at].last_use = r->now;
  }
  if (set->keyed) wl_cache_moved();
  return WL_OK;
}

/* Drops everything else if the load may fit then. Does so only once, and not where the member's own
** budget is too small. */
static bool free_all(cache_request *r) {
  wl_cache_trash trash = {0};
  bool freed = false;
  if (r->tried_again || r->own_limit) return false;
  r->tried_again = true;
  while (wl_cache_evict(r->now, &trash)) freed = true;
  freed |= wl_cache.n_lookup_bytes > 0;
  wl_cache_drop_lookups(&trash);
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
  wl_cache_lock();
  return freed;
}

static wl_status run(cache_request *r, wl_error *err) {
  wl_status rc = WL_OK;
  bool private = false;
  while (!rc) {
    wl_column_set *set = r->set;
    int n_missing = hold_present(r);
    if (!n_missing && set->counted) break;
    if (set->loading && !n_loads && !private) {
      rc = wait_for_other(r, &private, err);
      continue;
    }
    rc = load_missing(r, n_missing, set->loading, err);
    if (rc == WL_FULL && free_all(r)) rc = WL_OK;
  }
  return rc;
}

/* Counts the uses of the columns, and notes which were in memory. */
static void note_uses(cache_request *r, bool *hits) {
  wl_column_set *set = r->set;
  r->now = ++wl_cache.clock;
  for (int i = 0; i < r->n; i++) {
    wl_set_slot *slot = &set->slots[wl_set_slot_of(set, r->cols[i])];
    slot->uses++;
    slot->last_use = r->now;
    if (hits) hits[i] = slot->column != NULL;
  }
}

wl_status wl_cache_acquire(wl_cache_user *u, const int *cols, int n, const wl_cache_load *how,
                           bool *hits, bool *full, wl_snapshot *out, wl_error *err) {
  cache_request r = {.user = u, .cols = cols, .n = n, .how = how};
  wl_cache_trash trash = {0};
  memset(out, 0, sizeof *out);
  *full = false;
  size_t each = 2 * sizeof *r.held + 2 * sizeof *r.missing;
  out->cols = wl_mem_zalloc(((size_t)n + 1) * sizeof *out->cols);
  r.got = wl_mem_alloc(((size_t)n + 1) * each);
  if (!out->cols || !r.got) {
    wl_mem_free(out->cols);
    wl_mem_free(r.got);
    out->cols = NULL;
    return wl_nomem(err);
  }
  r.held = out->cols;
  r.missing = (int *)(r.got + n + 1);
  r.wanted = r.missing + n + 1;
  wl_cache_lock();
  r.set = u->set;
  r.set->n_requests++;
  note_uses(&r, hits);
  wl_status rc = run(&r, err);
  if (!rc) {
    out->n_cols = n;
    out->n_rows = r.set->n_rows;
    if (r.set->extra.live) out->live = wl_column_hold(r.set->extra.live);
  }
  r.set->n_requests--;
  wl_cache_drop_unused(r.set, &trash);
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
  wl_mem_free(r.got);
  if (!rc) return WL_OK;
  *full = rc == WL_FULL;
  for (int i = 0; i < n; i++) wl_column_drop(r.held[i]);
  wl_mem_free(out->cols);
  out->cols = NULL;
  return rc;
}

void wl_snapshot_release(wl_snapshot *snap) {
  for (int i = 0; i < snap->n_cols; i++) wl_column_drop(snap->cols[i]);
  wl_column_drop(snap->live);
  wl_mem_free(snap->cols);
  memset(snap, 0, sizeof *snap);
}
