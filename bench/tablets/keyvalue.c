/*
** A table as a key/value store: get, put and range scan, on both kinds of table and through
** both ways of preparing a statement.
**
** 1. Keys are texts of 16 bytes in a random order, values texts of 100 bytes that follow from
**    their keys: every value read is looked at, and a wrong one is a failure.
** 2. An operation is a bind, its steps and a reset of one prepared statement, with random keys,
**    the same ones for every side. Each measurement ends after its number of operations or after
**    two seconds.
** 3. The file has SQLite's default journal; "one transaction" includes its COMMIT.
*/
#include "tablets.h"

enum { KEY_BYTES = 16, VALUE_BYTES = 100, N_SIDES_KV = 4 };
#define LIMIT_MS 2000.0

static const struct kv_side {
  const char *name, *create;
  prepare_call *prepare;
} kv_sides[N_SIDES_KV] = {
    {"ordinary, sqlite3", "CREATE TABLE kv(key PRIMARY KEY, value)", sqlite3_prepare_v2},
    {"ordinary, warplite", "CREATE TABLE kv(key PRIMARY KEY, value)", warplite_prepare},
    {"tablet, sqlite3", "CREATE VIRTUAL TABLE kv USING tablet(key PRIMARY KEY, value)",
     sqlite3_prepare_v2},
    {"tablet, warplite", "CREATE VIRTUAL TABLE kv USING tablet(key PRIMARY KEY, value)",
     warplite_prepare},
};

enum test { LOAD, GET, PUT_ONE, PUT_AUTO, PUT_NEW, SCAN_100, SCAN_TENTH, N_TESTS };

static const struct {
  const char *name, *sql;
  int64_t n;        /* operations at the most; 0: as many as there are keys */
  bool transaction; /* all in one */
  bool reads;
} tests[N_TESTS] = {
    [LOAD] = {"put, new, one transaction", "INSERT INTO kv VALUES(?1, ?2)", 0, true, false},
    [GET] = {"get", "SELECT value FROM kv WHERE key = ?1", 200000, false, true},
    [PUT_ONE] = {"put, one transaction", "INSERT OR REPLACE INTO kv VALUES(?1, ?2)", 50000, true,
                 false},
    [PUT_AUTO] = {"put, autocommit", "INSERT OR REPLACE INTO kv VALUES(?1, ?2)", 500, false, false},
    [PUT_NEW] = {"put, new, autocommit", "INSERT INTO kv VALUES(?1, ?2)", 500, false, false},
    [SCAN_100] = {"scan of 100", "SELECT key, value FROM kv WHERE key >= ?1 ORDER BY key LIMIT 100",
                  5000, false, true},
    [SCAN_TENTH] = {"scan of 10 %",
                    "SELECT key, value FROM kv WHERE key >= ?1 AND key < ?2 ORDER BY key", 20,
                    false, true},
};

/* The i-th key: 16 hexadecimal digits, a different one for every i. */
static void key_of(uint64_t i, char *out) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ULL;
  z ^= z >> 32;
  snprintf(out, KEY_BYTES + 1, "%016llx", (unsigned long long)z);
}

static void value_of(const char *key, char *out) {
  for (int i = 0; i < VALUE_BYTES; i++) out[i] = (char)('a' + (key[i % KEY_BYTES] + i) % 26);
}

static bool right_value(const char *key, const char *value, int n) {
  char want[VALUE_BYTES];
  value_of(key, want);
  return n == VALUE_BYTES && memcmp(want, value, VALUE_BYTES) == 0;
}

/* One operation; false after a message. */
static bool operate(struct tablets *b, sqlite3 *db, sqlite3_stmt *st, enum test t, uint64_t i,
                    uint64_t random) {
  char key[KEY_BYTES + 1], high[KEY_BYTES + 1], value[VALUE_BYTES];
  int64_t n_rows = 0;
  int rc;
  bool fresh = t == LOAD || t == PUT_NEW;
  key_of(t == LOAD ? i : fresh ? (uint64_t)b->n_keys + i : random % (uint64_t)b->n_keys, key);
  if (t == SCAN_TENTH) { /* of the range of keys, which are spread evenly */
    uint64_t low = random / 10 * 9;
    snprintf(key, sizeof key, "%016llx", (unsigned long long)low);
    snprintf(high, sizeof high, "%016llx", (unsigned long long)(low + UINT64_MAX / 10));
    sqlite3_bind_text(st, 2, high, KEY_BYTES, SQLITE_STATIC);
  } else if (!tests[t].reads) {
    value_of(key, value);
    sqlite3_bind_text(st, 2, value, VALUE_BYTES, SQLITE_STATIC);
  }
  sqlite3_bind_text(st, 1, key, KEY_BYTES, SQLITE_STATIC);
  while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
    int c = t != GET;
    const char *k = c ? (const char *)sqlite3_column_text(st, 0) : key;
    const char *v = (const char *)sqlite3_column_text(st, c);
    n_rows++;
    if (!right_value(k, v, sqlite3_column_bytes(st, c))) {
      tablets_fail(b, tests[t].name, "a wrong value");
      return false;
    }
  }
  rc = sqlite3_reset(st);
  if (rc != SQLITE_OK) tablets_fail(b, tests[t].sql, sqlite3_errmsg(db));
  bool ok = t == GET          ? n_rows == 1
            : t == SCAN_100   ? n_rows == 100 || strcmp(key, "f") > 0
            : t == SCAN_TENTH ? n_rows > b->n_keys / 12 && n_rows < b->n_keys / 8
                              : n_rows == 0;
  if (rc == SQLITE_OK && !ok) tablets_fail(b, tests[t].name, "a wrong number of rows");
  return rc == SQLITE_OK && ok;
}

/* Operations a second; negative after a failure. */
static double measure(struct tablets *b, sqlite3 *db, const struct kv_side *side, enum test t) {
  sqlite3_stmt *st = NULL;
  struct generator g = {42 + (uint64_t)t, 1, 0};
  int64_t most = tests[t].n ? tests[t].n : b->n_keys, n = 0;
  if (tests[t].transaction && !tablets_run(b, db, sqlite3_prepare_v2, "BEGIN")) return -1;
  if (side->prepare(db, tests[t].sql, -1, &st, NULL) != SQLITE_OK) {
    tablets_fail(b, tests[t].sql, sqlite3_errmsg(db));
    return -1;
  }
  double start = now_ms();
  bool ok = true;
  for (; ok && n < most; n++) {
    ok = operate(b, db, st, t, (uint64_t)n, generator_bits(&g));
    if (t != LOAD && now_ms() - start > LIMIT_MS) most = n + 1;
  }
  if (ok && tests[t].transaction) ok = tablets_run(b, db, sqlite3_prepare_v2, "COMMIT");
  double ms = now_ms() - start;
  if (b->verbose) printf("  %s: %s: %s\n", side->name, tests[t].name, warplite_reason(db));
  sqlite3_finalize(st);
  return ok ? (double)n / ms * 1e3 : -1;
}

void tablets_kv(struct tablets *b, struct json *j) {
  static double rate[N_TESTS][N_SIDES_KV];
  char path[512];
  printf(
      "\nkey/value store, %lld keys of %d bytes, values of %d, in a file: operations a second\n\n",
      (long long)b->n_keys, KEY_BYTES, VALUE_BYTES);
  snprintf(path, sizeof path, "%s/tablets-kv.db", b->dir);
  for (int s = 0; s < N_SIDES_KV; s++) {
    sqlite3 *db = NULL;
    unlink(path);
    bool ok = sqlite3_open(path, &db) == SQLITE_OK && warplite_enable(db) == SQLITE_OK;
    if (!ok) tablets_fail(b, path, sqlite3_errmsg(db));
    ok = ok && tablets_run(b, db, sqlite3_prepare_v2, kv_sides[s].create);
    for (int t = 0; ok && t < N_TESTS; t++) {
      rate[t][s] = measure(b, db, &kv_sides[s], (enum test)t);
      ok = rate[t][s] >= 0;
    }
    sqlite3_close(db);
    unlink(path);
  }
  printf("%-28s", "");
  for (int s = 0; s < N_SIDES_KV; s++) printf("%20s", kv_sides[s].name);
  printf("\n");
  json_open(j, "kv", '{');
  json_number(j, "keys", (double)b->n_keys);
  json_open(j, "tests", '[');
  for (int t = 0; t < N_TESTS; t++) {
    printf("%-28s", tests[t].name);
    json_open(j, NULL, '{');
    json_string(j, "name", tests[t].name);
    for (int s = 0; s < N_SIDES_KV; s++) {
      if (rate[t][s] > 0)
        printf("%20.0f", rate[t][s]);
      else
        printf("%20s", "-");
      json_number(j, kv_sides[s].name, rate[t][s]);
    }
    printf("\n");
    json_close(j, '}');
  }
  json_close(j, ']');
  json_close(j, '}');
  fflush(stdout);
}
