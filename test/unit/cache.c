/*
** The cache of columns: who waits for whom while columns are loaded, what happens when a load fails
** or seems stuck, which sets are found, the budget.
*/
#include "loaded.h"
#include "column/cache.h"
#include "column/lookup.h"
#include <pthread.h>

static sqlite3 *db;

/* A connection with one source. */
typedef struct side {
  wl_cache_member member;
  wl_cache_user user;
  atomic_int n_loads, n_checks;
  int sleep_ms;      /* that a load takes */
  wl_status outcome; /* of a load */
  wl_status stop;    /* what the check says */
  size_t limit;      /* of the last load */
  wl_i64 n_rows;
  struct side *inner; /* that a load asks in the middle */
  wl_status inner_rc;
} side;

static wl_column *make_column(wl_i64 n_rows, wl_i64 value) {
  wl_builder *b = NULL;
  wl_column *c = NULL;
  wl_error err;
  if (wl_builder_open(&b, &err)) return NULL;
  for (wl_i64 i = 0; i < n_rows; i++)
    if (wl_builder_add(b, wl_int(value + i * 1000003))) return NULL;
  if (wl_builder_finish(b, &c, &err)) c = NULL;
  wl_builder_close(b);
  return c;
}

static wl_status acquire(side *s, const int *cols, int n, wl_snapshot *out, bool *full);

static wl_status load(void *arg, const int *cols, int n, size_t limit, wl_column **out,
                      wl_i64 *n_rows, wl_error *err) {
  side *s = arg;
  atomic_fetch_add(&s->n_loads, 1);
  s->limit = limit;
  for (int k = 0; k < s->sleep_ms; k += 5) {
    usleep(5000);
    wl_cache_beat(&s->user);
  }
  if (s->inner) {
    wl_snapshot snap;
    bool full;
    int col = 0;
    s->inner_rc = acquire(s->inner, &col, 1, &snap, &full);
    if (!s->inner_rc) wl_snapshot_release(&snap);
  }
  if (s->outcome) return wl_fail(err, s->outcome, "the load fails");
  *n_rows = s->n_rows;
  size_t n_bytes = 0;
  for (int i = 0; i < n; i++) {
    out[i] = make_column(s->n_rows, cols[i]);
    if (!out[i]) return wl_nomem(err);
    n_bytes += out[i]->n_bytes;
  }
  return limit && n_bytes > limit ? WL_FULL : WL_OK;
}

static wl_status check(void *arg, wl_error *err) {
  side *s = arg;
  atomic_fetch_add(&s->n_checks, 1);
  return s->stop ? wl_fail(err, s->stop, "interrupted") : WL_OK;
}

static wl_status acquire(side *s, const int *cols, int n, wl_snapshot *out, bool *full) {
  wl_error err;
  wl_cache_load how = {.load = load, .check = check, .arg = s, .check_arg = s, .name = "t"};
  return wl_cache_acquire(&s->user, cols, n, &how, NULL, full, out, &err);
}

static void open_side(side *s, wl_i64 budget) {
  memset(s, 0, sizeof *s);
  s->n_rows = 1000;
  s->member.db = db;
  s->user.vouches = true;
  wl_cache_join(&s->member);
  wl_cache_set_budget(&s->member, budget);
  wl_cache_add_user(&s->member, &s->user);
}
static void close_side(side *s) {
  wl_cache_remove_user(&s->user);
  wl_cache_leave(&s->member);
}

static wl_set_key key_of(wl_u64 table, wl_u64 version) {
  wl_set_key k;
  memset(&k, 0, sizeof k);
  k.words[0] = table;
  k.words[WL_SET_FAMILY_WORDS] = version;
  return k;
}

/* Lets a side use the set of a key, as store/source.c does. */
static void use_key(side *s, wl_u64 table, wl_u64 version) {
  wl_error err;
  wl_set_key k = key_of(table, version);
  if (!wl_cache_find(&s->user, &k) && wl_cache_add(&s->user, &k, 3, NULL, &err)) _exit(1);
}

static bool get(side *s, int col) {
  wl_snapshot snap;
  bool full;
  if (acquire(s, &col, 1, &snap, &full)) return false;
  bool right = snap.n_cols == 1 && snap.n_rows == s->n_rows &&
               (wl_i64)wl_column_value(snap.cols[0], 0).v == col;
  wl_snapshot_release(&snap);
  return right;
}

/* ---- finding */

static void check_finding(void) {
  side a, b, c;
  open_side(&a, 0);
  open_side(&b, 0);
  open_side(&c, 0);
  use_key(&a, 1, 1);
  use_key(&b, 1, 1);
  CHECK("cache: equal keys, one set", a.user.set == b.user.set && get(&a, 0) && get(&b, 0) &&
                                          b.n_loads == 0 && wl_cache_is_shared(&b.user));
  use_key(&b, 1, 2);
  CHECK("cache: another version, another set", a.user.set != b.user.set && get(&b, 0));
  int col = 0;
  CHECK("cache: the older version loses its columns", wl_cache_peek(&a.user, &col, 1, NULL) == 0);
  CHECK("cache: and gets them again if it is read", get(&a, 0) && a.n_loads == 2);
  wl_error err;
  CHECK("cache: a private set is nobody else's",
        wl_cache_add(&c.user, NULL, 3, NULL, &err) == WL_OK && !wl_cache_is_shared(&c.user) &&
            get(&c, 0) && c.user.set != a.user.set && c.n_loads == 1);
  wl_set_key k = key_of(1, 2);
  wl_cache_publish(&c.user, &k);
  CHECK("cache: published, it gives way to the set that is there", c.user.set == b.user.set);
  wl_cache_release(&b.user);
  wl_cache_release(&c.user);
  CHECK("cache: a set goes with its last user", !wl_cache_find(&b.user, &k));
  b.user.vouches = false;
  use_key(&b, 1, 3);
  k = key_of(1, 3);
  CHECK("cache: a set that nobody vouches for is not found", !wl_cache_find(&c.user, &k));
  close_side(&a);
  close_side(&b);
  close_side(&c);
  CHECK("cache: nothing is left", wl_cache_bytes() == 0);
}

/* An explicit transaction keeps its version. */
static void check_pinned(void) {
  side a, b;
  int col = 1;
  open_side(&a, 0);
  open_side(&b, 0);
  use_key(&a, 2, 1);
  get(&a, 1);
  sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
  sqlite3 *other;
  sqlite3_open(":memory:", &other);
  b.member.db = other;
  use_key(&b, 2, 2);
  CHECK("cache: a version in a transaction stays", wl_cache_peek(&a.user, &col, 1, NULL) == 1);
  sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
  use_key(&b, 2, 3);
  CHECK("cache: and goes after it", wl_cache_peek(&a.user, &col, 1, NULL) == 0);
  close_side(&a);
  close_side(&b);
  sqlite3_close(other);
}

/* ---- waiting */

static void *get_one(void *arg) {
  return get(arg, 2) ? arg : NULL;
}

static void check_waiting(void) {
  side a, b;
  pthread_t t;
  void *right;
  open_side(&a, 0);
  open_side(&b, 0);
  use_key(&a, 3, 1);
  use_key(&b, 3, 1);
  a.sleep_ms = 100;
  pthread_create(&t, NULL, get_one, &a);
  while (!atomic_load(&a.n_loads)) usleep(1000);
  CHECK("cache: who comes second waits for the first", get(&b, 2) && b.n_loads == 0);
  CHECK("cache: and looks for interrupts meanwhile", b.n_checks > 0);
  pthread_join(t, &right);
  CHECK("cache: the first has its column", right == &a);

  wl_cache_clear(&a.user);
  a.outcome = WL_ERROR;
  atomic_store(&a.n_loads, 0);
  pthread_create(&t, NULL, get_one, &a);
  while (!atomic_load(&a.n_loads)) usleep(1000);
  CHECK("cache: if the first fails, the second loads", get(&b, 2) && b.n_loads == 1);
  pthread_join(t, &right);
  CHECK("cache: the first has its error", right == NULL);

  wl_cache_clear(&a.user);
  a.outcome = WL_OK;
  b.stop = WL_INTERRUPT;
  atomic_store(&a.n_loads, 0);
  pthread_create(&t, NULL, get_one, &a);
  while (!atomic_load(&a.n_loads)) usleep(1000);
  wl_snapshot snap;
  bool full;
  int col = 2;
  CHECK("cache: an interrupt ends the wait", acquire(&b, &col, 1, &snap, &full) == WL_INTERRUPT);
  pthread_join(t, &right);
  CHECK("cache: but not the load", right == &a);

  /* A load that asks for the set that is being loaded does not wait for itself. */
  wl_cache_clear(&a.user);
  a.sleep_ms = b.stop = 0;
  a.inner = &b;
  int before = b.n_loads;
  CHECK("cache: a load within a load",
        get(&a, 0) && a.inner_rc == WL_OK && b.n_loads == before + 1);
  close_side(&a);
  close_side(&b);
}

/* ---- the budget */

static void check_budget(void) {
  side a, b;
  wl_snapshot snap;
  bool full;
  int col = 0;
  open_side(&a, 100000);
  open_side(&b, 5000);
  a.n_rows = b.n_rows = 2000; /* 8 bytes a row */
  use_key(&a, 4, 1);
  use_key(&b, 5, 1);
  CHECK("cache: a load within the budget", get(&a, 0) && a.limit > 50000);
  CHECK("cache: what does not fit one's own budget",
        acquire(&b, &col, 1, &snap, &full) == WL_FULL && full && b.limit <= 5000);
  CHECK("cache: it costs others nothing", wl_cache_peek(&a.user, &col, 1, NULL) == 1);
  wl_cache_set_budget(&b.member, 50000);
  for (int k = 0; k < 3; k++) get(&a, k);
  CHECK("cache: the largest budget counts for all", get(&b, 0) && wl_cache_bytes() <= 100000);
  for (int k = 0; k < 3; k++) get(&b, k);
  CHECK("cache: and is kept", wl_cache_bytes() <= 100000);
  close_side(&a);
  wl_cache_set_budget(&b.member, 40000);
  for (int k = 0; k < 3; k++) get(&b, k);
  CHECK("cache: with one less there is less", wl_cache_bytes() <= 40000);
  close_side(&b);
}

/* ---- lookups */

static void check_lookups(void) {
  side a;
  wl_snapshot snap;
  bool full;
  int cols[2] = {0, 1};
  wl_lookup_key k = {7, 8};
  wl_lookup_entry e;
  open_side(&a, 0);
  use_key(&a, 6, 1);
  if (acquire(&a, cols, 2, &snap, &full)) _exit(1);
  wl_u64 id = snap.cols[1]->id, unknown = wl_column_new_id();
  wl_snapshot_release(&snap);
  wl_lookup *l = wl_mem_zalloc(sizeof *l);
  atomic_init(&l->refs, 1);
  l->n_bytes = 1000;
  wl_cache_add_lookup(k, l, "t", &unknown, 1);
  CHECK("cache: a lookup of a column that is gone is not kept", !wl_cache_find_lookup(k));
  wl_cache_add_lookup(k, l, "t", &id, 1);
  wl_lookup *found = wl_cache_find_lookup(k);
  CHECK("cache: a lookup is found", found == l && wl_cache_lookup_bytes() == 1000);
  wl_lookup_drop(found);
  bool listed = wl_cache_lookup_entry(&a.member, 0, &e);
  CHECK("cache: and listed", listed && e.lookup == l && e.uses == 1);
  if (listed) wl_lookup_drop(e.lookup);
  wl_cache_clear(&a.user);
  CHECK("cache: it goes with its column", !wl_cache_find_lookup(k) && wl_cache_lookup_bytes() == 0);
  wl_lookup_drop(l);
  close_side(&a);
}

int main(void) {
  if (!bind_sqlite() || sqlite3_open(":memory:", &db)) return 1;
  check_finding();
  check_pinned();
  check_waiting();
  check_budget();
  check_lookups();
  CHECK("cache: nothing is left at the end", wl_cache_bytes() == 0);
  sqlite3_close(db);
  return tap_done();
}
