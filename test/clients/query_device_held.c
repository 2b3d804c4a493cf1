/*
** How long rows of warplite_query_device() live: after their stream, statement and connection, on
** other threads, while other statements change the tables and need the memory of the device. On the
** CPU, on the simulator, and with WL_TEST_CUDA on CUDA.
**
** Invariant: each array has SQLite's values until it is released.
*/
#include <pthread.h>

#include "device_stream.h"

/* The arrays of a statement, kept beside SQLite's rows. */
typedef struct held {
  rows want;
  struct ArrowDeviceArrayStream stream;
  struct ArrowSchema schema;
  struct ArrowDeviceArray arrays[16];
  int n;
} held;

static const char *const held_sql = "SELECT id, k, s, b FROM t WHERE a < 700";

static bool hold_rows(sqlite3 *db, const char *sql, held *h) {
  memset(h, 0, sizeof *h);
  rows_query(&h->want, db, sqlite3_prepare_v2, sql);
  if (warplite_query_device(db, sql, &h->stream) || h->stream.get_schema(&h->stream, &h->schema))
    return tap_bad(sql, "%s", warplite_errmsg(db));
  while (h->n < 16 && h->stream.get_next(&h->stream, &h->arrays[h->n]) == 0 &&
         h->arrays[h->n].array.release)
    h->n++;
  return true;
}

static bool still_same(const char *name, const held *h) {
  size_t row = 0;
  bool stays = h->schema.children[1]->format[0] == 'U';
  if (stays != has_device()) return tap_bad(name, "the rows are not where they should be");
  for (int k = 0; k < h->n; k++) {
    if (!same_array(name, &h->schema, &h->arrays[k], stays, &h->want, row)) return false;
    row += (size_t)h->arrays[k].array.length;
  }
  return row == h->want.n_rows || tap_bad(name, "%zu rows of %zu", row, h->want.n_rows);
}

static void release_arrays(held *h) {
  for (int k = 0; k < h->n; k++) h->arrays[k].array.release(&h->arrays[k].array);
  h->n = 0;
}

static void drop_rows(held *h) {
  release_arrays(h);
  if (h->schema.release) h->schema.release(&h->schema);
  if (h->stream.release) h->stream.release(&h->stream);
  rows_free(&h->want);
}

static void *release_elsewhere(void *arg) {
  release_arrays(arg);
  return NULL;
}

/* Arrays live on after the stream, the statement and the connection. */
static void check_outliving(void) {
  sqlite3 *db = open_db(3000);
  sqlite3_stmt *stmt = NULL;
  held h;
  pthread_t thread;
  if (!hold_rows(db, held_sql, &h)) return;
  h.stream.release(&h.stream);
  CHECK("the stream is released", h.stream.release == NULL);
  if (still_same("after the stream", &h)) tap_ok("query_device: after the stream");
  must_run(db, "DELETE FROM t WHERE id % 2");
  must_run(db, "UPDATE t SET a = a + 1, s = 'other', k = 'new'");
  check(db, "SELECT id, a, s, k FROM t", DEVICE, 1);
  if (still_same("after changes", &h)) tap_ok("query_device: after changes of the table");
  must_run(db, "DROP TABLE t");
  CHECK("closes while arrays are held", sqlite3_close(db) == SQLITE_OK);
  if (still_same("after the connection", &h)) tap_ok("query_device: after the connection");
  /* a child that was moved out of its parent lives on */
  struct ArrowArray moved = *h.arrays[0].array.children[1];
  h.arrays[0].array.children[1]->release = NULL;
  pthread_create(&thread, NULL, release_elsewhere, &h);
  pthread_join(thread, NULL);
  struct ArrowDeviceArray of = {.device_type = h.stream.device_type};
  struct ArrowArray copy;
  const char *bytes = NULL;
  bool stays = h.schema.children[1]->format[0] == 'U';
  if (stays && !device_copy_column(&of, h.schema.children[1], &moved, &copy))
    tap_bad("query_device: a child that was moved", "cannot be copied");
  cell x = stream_cell(h.schema.children[1], stays ? &copy : &moved, 1, &bytes);
  CHECK("query_device: a child that was moved",
        same_value(&x, bytes, &h.want, &h.want.cells[h.want.n_col + 1]));
  if (stays) copy.release(&copy);
  moved.release(&moved);
  drop_rows(&h);
  /* a statement with parameters may be finalized and changed */
  db = open_db(100);
  rows want = {0};
  int n_arrays;
  rows_query(&want, db, sqlite3_prepare_v2, "SELECT id, s FROM t WHERE a > 300 AND k = 'kind 2'");
  sqlite3_prepare_v2(db, "SELECT id, s FROM t WHERE a > ?1 AND k = :kind", -1, &stmt, NULL);
  sqlite3_bind_int(stmt, 1, 300);
  sqlite3_bind_text(stmt, 2, "kind 2", -1, SQLITE_STATIC);
  int rc = warplite_query_stmt_device(stmt, &h.stream);
  sqlite3_finalize(stmt);
  if (rc)
    tap_bad("query_device: a statement with parameters", "%s", warplite_errmsg(db));
  else if (check_stream("query_device: a statement with parameters", &h.stream, &want, has_device(),
                        &n_arrays))
    tap_ok("query_device: a statement with parameters");
  if (!rc) h.stream.release(&h.stream);
  rows_free(&want);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* Two streams at once; one is released before it is read, and one before its end. */
static void check_two(void) {
  sqlite3 *db = open_db(2000);
  held a, b;
  struct ArrowDeviceArrayStream s;
  struct ArrowDeviceArray first;
  CHECK("opens", warplite_query_device(db, held_sql, &s) == SQLITE_OK);
  s.release(&s);
  if (!hold_rows(db, held_sql, &a) ||
      !hold_rows(db, "SELECT b, s, k, r FROM t ORDER BY id DESC", &b))
    return;
  CHECK("opens", warplite_query_device(db, "SELECT id, s FROM t", &s) == SQLITE_OK);
  CHECK("gives an array", s.get_next(&s, &first) == 0 && first.array.release);
  s.release(&s);
  first.array.release(&first.array);
  if (still_same("two streams: the first", &a) && still_same("two streams: the second", &b))
    tap_ok("query_device: two streams");
  drop_rows(&a);
  if (still_same("two streams: one is left", &b)) tap_ok("query_device: one of two streams");
  drop_rows(&b);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* Other statements need the memory of the device while arrays are held. */
static void check_eviction(void) {
  static const char *const others[] = {
      "SELECT a, b, r, s FROM t", "SELECT a, count(*), sum(r) FROM t GROUP BY a",
      "SELECT x, k, z FROM t WHERE a > 20", "SELECT b, a FROM t ORDER BY b, id LIMIT 500"};
  sqlite3 *db = open_db(20000);
  held h;
  if (!hold_rows(db, held_sql, &h)) return;
  for (int budget = 6000000; budget >= 500000; budget /= 2) {
    char text[20];
    snprintf(text, sizeof text, "%d", budget);
    use_setting(db, "device_budget", text);
    for (int k = 0; k < 4; k++) {
      struct ArrowDeviceArrayStream s;
      rows want = {0};
      int n_arrays;
      rows_query(&want, db, sqlite3_prepare_v2, others[k]);
      if (warplite_query_device(db, others[k], &s)) {
        tap_bad(others[k], "%s", warplite_errmsg(db));
        continue;
      }
      struct ArrowSchema schema;
      struct ArrowDeviceArray a;
      size_t row = 0;
      bool good = s.get_schema(&s, &schema) == 0;
      bool stays = !strstr(warplite_reason(db), "rows on the host") &&
                   strncmp(warplite_reason(db), "gpu:", 4) == 0;
      for (n_arrays = 0; good && s.get_next(&s, &a) == 0 && a.array.release; n_arrays++) {
        good = same_array(others[k], &schema, &a, stays, &want, row);
        row += (size_t)a.array.length;
        a.array.release(&a.array);
      }
      if (good && row == want.n_rows)
        tap_ok(others[k]);
      else
        tap_bad(others[k], "%zu rows of %zu, device_budget %d: %s", row, want.n_rows, budget,
                warplite_reason(db));
      schema.release(&schema);
      s.release(&s);
      rows_free(&want);
    }
    if (still_same("while memory is short", &h)) tap_ok("query_device: while memory is short");
  }
  if (has_device()) { /* the rows alone need more than this */
    use_setting(db, "device_budget", "1500000");
    check(db, "SELECT id, a, b, r, s, k FROM t", HOST, 0);
  }
  drop_rows(&h);
  use_setting(db, "device_budget", "0");
  check(db, held_sql, DEVICE, 1);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

/* Arrays that a thread releases while statements run. */
typedef struct queue {
  pthread_mutex_t lock;
  struct ArrowDeviceArray arrays[64];
  int n;
  bool ends;
} queue;

static void *release_queue(void *arg) {
  queue *q = arg;
  for (bool ends = false; !ends;) {
    struct ArrowDeviceArray a = {.array = {.release = NULL}};
    pthread_mutex_lock(&q->lock);
    ends = q->ends && q->n == 0;
    if (q->n) a = q->arrays[--q->n];
    pthread_mutex_unlock(&q->lock);
    if (a.array.release) a.array.release(&a.array);
  }
  return NULL;
}

static void check_threads(void) {
  enum { ROUNDS = 40 };
  static queue q = {.lock = PTHREAD_MUTEX_INITIALIZER};
  sqlite3 *db = open_db(500);
  pthread_t threads[2];
  int64_t n = 0;
  q.ends = false;
  for (int k = 0; k < 2; k++) pthread_create(&threads[k], NULL, release_queue, &q);
  for (int k = 0; k < ROUNDS; k++) {
    struct ArrowDeviceArrayStream s;
    struct ArrowDeviceArray a;
    if (warplite_query_device(db, "SELECT id, s, k FROM t", &s)) break;
    while (s.get_next(&s, &a) == 0 && a.array.release) {
      n += a.array.length;
      pthread_mutex_lock(&q.lock);
      bool room = q.n < 64;
      if (room) q.arrays[q.n++] = a;
      pthread_mutex_unlock(&q.lock);
      if (!room) a.array.release(&a.array);
    }
    s.release(&s);
  }
  pthread_mutex_lock(&q.lock);
  q.ends = true;
  pthread_mutex_unlock(&q.lock);
  for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
  CHECK("query_device: threads release arrays while statements run", n == ROUNDS * 500);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
}

int main(void) {
  static const char *const engines[] = {"cpu", "sim", "cuda"};
  int n = getenv("WL_TEST_CUDA") ? 3 : 2;
  for (int e = 0; e < n; e++) {
    engine = engines[e];
    check_outliving();
    check_two();
    check_eviction();
    check_threads();
  }
  return tap_done();
}
