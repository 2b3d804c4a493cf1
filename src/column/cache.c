/*
** Sets of columns: their users, finding them by key, and eviction when memory is short. See
** cache.h.
*/
#include "column/cache_impl.h"
#include "base/fork.h"
#include "base/mem.h"
#include "column/evict.h"
#include <assert.h>
#include <string.h>
#include <time.h>

wl_cache_state wl_cache;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loaded;
static atomic_ullong generation;

enum { WAIT_NS = 3000000 };

static void start_condition(void) {
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&loaded, &attr);
  pthread_condattr_destroy(&attr);
}

/* Threads that were loading or waiting do not exist in the child. A set that a thread was loading
** into may be half done, so the child must not find it. */
static void after_fork(void) {
  start_condition();
  for (wl_column_set *s = wl_cache.sets; s; s = s->next) {
    if (s->loading) s->keyed = false;
    s->loading = false;
  }
}

__attribute__((constructor)) static void guard(void) {
  start_condition();
  wl_fork_lock(&lock);
  wl_fork_child(after_fork);
}

void wl_cache_lock(void) {
  pthread_mutex_lock(&lock);
}

void wl_cache_unlock(void) {
  pthread_mutex_unlock(&lock);
}

void wl_cache_wait(void) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += WAIT_NS;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_cond_timedwait(&loaded, &lock, &until);
}

void wl_cache_wake(void) {
  pthread_cond_broadcast(&loaded);
}

void wl_cache_moved(void) {
  atomic_fetch_add(&generation, 1);
}

wl_u64 wl_cache_generation(void) {
  return atomic_load(&generation);
}

/* ---- members */

void wl_cache_join(wl_cache_member *m) {
  wl_cache_lock();
  m->next = wl_cache.members;
  wl_cache.members = m;
  wl_cache_unlock();
}

void wl_cache_leave(wl_cache_member *m) {
  wl_cache_lock();
  assert(!m->users);
  wl_cache_member **at = &wl_cache.members;
  while (*at && *at != m) at = &(*at)->next;
  if (*at) *at = m->next;
  wl_cache_unlock();
}

void wl_cache_set_budget(wl_cache_member *m, wl_i64 n_bytes) {
  wl_cache_lock();
  m->budget = n_bytes > 0 ? n_bytes : 0;
  wl_cache_unlock();
}

void wl_cache_add_user(wl_cache_member *m, wl_cache_user *u) {
  wl_cache_lock();
  u->member = m;
  u->next_source = m->users;
  m->users = u;
  wl_cache_unlock();
}

void wl_cache_remove_user(wl_cache_user *u) {
  wl_cache_release(u);
  wl_cache_lock();
  wl_cache_user **at = &u->member->users;
  while (*at && *at != u) at = &(*at)->next_source;
  if (*at) *at = u->next_source;
  wl_cache_unlock();
}

wl_i64 wl_cache_budget(void) {
  wl_i64 most = 0, limit = (wl_i64)(wl_mem_heap_limit() / 2); /* members learn of it one by one */
  bool any = false;
  for (const wl_cache_member *m = wl_cache.members; m; m = m->next) {
    any |= !m->budget;
    if (m->budget > most) most = m->budget;
  }
  if (any) most = 0;
  return limit && (!most || most > limit) ? limit : most;
}

size_t wl_cache_bytes(void) {
  wl_cache_lock();
  size_t n = wl_cache.n_bytes;
  wl_cache_unlock();
  return n;
}

size_t wl_cache_bytes_of(const wl_cache_member *m) {
  size_t n = 0;
  wl_cache_lock();
  for (const wl_cache_user *u = m->users; u; u = u->next_source)
    if (u->set) n += u->set->n_bytes;
  wl_cache_unlock();
  return n;
}

/* ---- columns of a set */

void wl_cache_throw(wl_cache_trash *t, wl_column *c) {
  if (t->n_columns == t->size_columns) {
    int size = t->size_columns ? t->size_columns * 2 : 16;
    wl_column **p =
        wl_mem_realloc(t->columns, (size_t)t->n_columns * sizeof *p, (size_t)size * sizeof *p);
    if (!p) { /* without memory for the list, free it at once */
      wl_column_drop(c);
      return;
    }
    t->columns = p;
    t->size_columns = size;
  }
  t->columns[t->n_columns++] = c;
}

void wl_cache_fill(wl_column_set *set, int slot, wl_column *c) {
  assert(!set->slots[slot].column);
  set->slots[slot].column = c;
  set->n_bytes += c->n_bytes;
  wl_cache.n_bytes += c->n_bytes;
}

void wl_cache_take_out(wl_column_set *set, int slot, wl_cache_trash *t) {
  wl_column *c = set->slots[slot].column;
  if (!c) return;
  set->slots[slot].column = NULL;
  set->n_bytes -= c->n_bytes;
  wl_cache.n_bytes -= c->n_bytes;
  wl_cache_forget_lookups(c->id, t);
  wl_cache_throw(t, c);
}

void wl_cache_note_extra(wl_column_set *set, size_t n_bytes) {
  set->n_bytes = set->n_bytes - set->extra_bytes + n_bytes;
  wl_cache.n_bytes = wl_cache.n_bytes - set->extra_bytes + n_bytes;
  set->extra_bytes = n_bytes;
}

bool wl_cache_evict(wl_i64 before, wl_cache_trash *t) {
  wl_evict e = {0};
  for (wl_column_set *set = wl_cache.sets; set; set = set->next)
    for (int i = 0; i <= set->n_cols; i++)
      if (set->slots[i].column && set->slots[i].last_use < before)
        wl_evict_offer(&e, &set->slots[i], set->slots[i].last_use, set->slots[i].uses);
  wl_set_slot *choice = wl_evict_choice(&e);
  for (wl_column_set *set = wl_cache.sets; set && choice; set = set->next)
    if (choice >= set->slots && choice <= set->slots + set->n_cols) {
      wl_cache_take_out(set, (int)(choice - set->slots), t);
      return true;
    }
  return false;
}

static void empty(wl_column_set *set, wl_cache_trash *t) {
  for (int i = 0; i <= set->n_cols; i++) wl_cache_take_out(set, i, t);
}

static void free_set(wl_column_set *set) {
  if (!set) return;
  if (set->extra.data) set->extra.close(set->extra.data);
  wl_mem_free(set->slots);
  wl_mem_free(set);
}

void wl_cache_empty_trash(wl_cache_trash *t) {
  for (int i = 0; i < t->n_columns; i++) wl_column_drop(t->columns[i]);
  wl_mem_free(t->columns);
  while (t->sets) {
    wl_column_set *set = t->sets;
    t->sets = set->next;
    free_set(set);
  }
  wl_cache_free_lookups(t->lookups);
  memset(t, 0, sizeof *t);
}

/* ---- sets */

static bool vouched(const wl_column_set *set) {
  for (const wl_cache_user *u = set->users; u; u = u->next)
    if (u->vouches) return true;
  return false;
}

static wl_column_set *find_set(const wl_set_key *key) {
  for (wl_column_set *set = wl_cache.sets; set; set = set->next)
    if (set->keyed && memcmp(&set->key, key, sizeof *key) == 0 && vouched(set)) return set;
  return NULL;
}

void wl_cache_drop_unused(wl_column_set *set, wl_cache_trash *t) {
  if (set->users || set->n_requests) return;
  wl_column_set **link = &wl_cache.sets;
  while (*link != set) link = &(*link)->next;
  *link = set->next;
  empty(set, t);
  wl_cache_note_extra(set, 0);
  set->next = t->sets;
  t->sets = set;
}

static void detach(wl_cache_user *u, wl_cache_trash *t) {
  wl_column_set *set = u->set;
  if (!set) return;
  wl_cache_user **at = &set->users;
  while (*at != u) at = &(*at)->next;
  *at = u->next;
  u->next = NULL;
  u->set = NULL;
  wl_cache_drop_unused(set, t);
}

static void attach(wl_cache_user *u, wl_column_set *set, wl_cache_trash *t) {
  if (u->set == set) return;
  detach(u, t);
  u->set = set;
  u->next = set->users;
  set->users = u;
}

bool wl_cache_find(wl_cache_user *u, const wl_set_key *key) {
  wl_cache_trash trash = {0};
  wl_cache_lock();
  wl_column_set *set = find_set(key);
  if (set) attach(u, set, &trash);
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
  return set != NULL;
}

static bool same_family(const wl_column_set *a, const wl_column_set *b) {
  return a->keyed && b->keyed &&
         memcmp(&a->key, &b->key, WL_SET_FAMILY_WORDS * sizeof a->key.words[0]) == 0;
}

/* Whether a connection inside an explicit transaction uses the set. If another thread begins or
** ends a transaction right now, either answer is correct. */
static bool pinned(const wl_column_set *set) {
  for (const wl_cache_user *u = set->users; u; u = u->next)
    if (!sqlite3_get_autocommit(u->member->db)) return true;
  return false;
}

/* Empties the sets of other versions. These are older ones, as a rule: a transaction that reads an
** old version may empty the set of a newer one, which is then loaded once more. Not to do so would
** let each connection of a pool, idle after its transaction, keep a version of its own. */
static void empty_others(const wl_column_set *set, wl_cache_trash *t) {
  for (wl_column_set *old = wl_cache.sets; old; old = old->next)
    if (old != set && same_family(old, set) && !old->loading && !pinned(old)) empty(old, t);
}

static wl_column_set *new_set(const wl_set_key *key, int n_cols, const wl_set_extra *extra) {
  wl_column_set *set = wl_mem_zalloc(sizeof *set);
  if (!set) return NULL;
  set->slots = wl_mem_zalloc(((size_t)n_cols + 1) * sizeof *set->slots);
  if (!set->slots) {
    wl_mem_free(set);
    return NULL;
  }
  set->n_cols = n_cols;
  set->keyed = key != NULL;
  if (key) set->key = *key;
  if (extra && extra->data) {
    set->extra = *extra;
    set->counted = true;
    set->n_rows = extra->n_rows;
  }
  return set;
}

wl_status wl_cache_add(wl_cache_user *u, const wl_set_key *key, int n_cols,
                       const wl_set_extra *extra, wl_error *err) {
  wl_cache_trash trash = {0};
  wl_column_set *set = new_set(key, n_cols, extra);
  if (!set) {
    if (extra && extra->data) extra->close(extra->data);
    return wl_nomem(err);
  }
  size_t extra_bytes = set->extra.data ? set->extra.bytes(set->extra.data) : 0;
  wl_cache_lock();
  wl_column_set *other = key ? find_set(key) : NULL;
  if (other) {
    attach(u, other, &trash);
    set->next = trash.sets;
    trash.sets = set;
  } else {
    const wl_column_set *old = u->set;
    for (int i = 0; old && old->n_cols == n_cols && i <= n_cols; i++) {
      set->slots[i].uses = old->slots[i].uses;
      set->slots[i].last_use = old->slots[i].last_use;
    }
    set->next = wl_cache.sets;
    wl_cache.sets = set;
    wl_cache_note_extra(set, extra_bytes);
    attach(u, set, &trash);
    if (key) empty_others(set, &trash);
  }
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
  return WL_OK;
}

void wl_cache_publish(wl_cache_user *u, const wl_set_key *key) {
  wl_cache_trash trash = {0};
  wl_cache_lock();
  wl_column_set *other = find_set(key);
  if (other) {
    attach(u, other, &trash);
  } else if (u->set && !u->set->keyed) {
    u->set->keyed = true;
    u->set->key = *key;
    wl_cache_moved();
    empty_others(u->set, &trash);
  }
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
}

void wl_cache_release(wl_cache_user *u) {
  wl_cache_trash trash = {0};
  if (!u->set) return;
  wl_cache_lock();
  detach(u, &trash);
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
}

void wl_cache_clear(wl_cache_user *u) {
  wl_cache_trash trash = {0};
  wl_cache_lock();
  if (u->set) empty(u->set, &trash);
  wl_cache_unlock();
  wl_cache_empty_trash(&trash);
}

/* ---- reading */

int wl_cache_peek(const wl_cache_user *u, const int *cols, int n, wl_column **held) {
  int n_there = 0;
  wl_cache_lock();
  for (int i = 0; i < n; i++) {
    wl_column *c = u->set ? u->set->slots[wl_set_slot_of(u->set, cols[i])].column : NULL;
    n_there += c != NULL;
    if (held) held[i] = c ? wl_column_hold(c) : NULL;
  }
  wl_cache_unlock();
  return n_there;
}

bool wl_cache_rows(const wl_cache_user *u, bool live, wl_i64 *n_rows) {
  wl_cache_lock();
  const wl_column_set *set = u->set;
  bool known = set && set->counted;
  if (known) *n_rows = live && set->extra.data ? set->extra.n_live : set->n_rows;
  wl_cache_unlock();
  return known;
}

bool wl_cache_is_shared(const wl_cache_user *u) {
  wl_cache_lock();
  bool is = u->set && u->set->keyed;
  wl_cache_unlock();
  return is;
}

bool wl_cache_look(const wl_cache_user *u, void (*fn)(void *arg, const wl_column_set *set),
                   void *arg) {
  wl_cache_lock();
  bool idle = u->set && !u->set->loading;
  if (idle) fn(arg, u->set);
  wl_cache_unlock();
  return idle;
}
