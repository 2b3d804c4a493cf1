/*
** Random calls of date functions in queries, against SQLite on the same connection: as results, in
** WHERE, GROUP BY, ORDER BY, DISTINCT and aggregates, over columns of every type.
**
**     dates [--engine cpu|sim|cuda] [--calls N] [--seed S]
**
** A call is one date function of one row. Before anything is compared, a spoilt answer must be
** noticed.
*/
#include "../dates.h"
#include "../engines.h"
#include "../rows.h"
#include "../tap.h"

enum { FEW_ROWS = 300, MANY_ROWS = 4000, QUERIES_PER_TABLE = 40, MAX_FAILED = 5 };

/* The columns: integers that are times, any integers, reals that are times, any reals, few texts,
** many texts, everything. */
static const char *const columns[] = {"i", "j", "r", "s", "f", "t", "x"};

/* With many rows, results are computed once per day. */
static void fill_table(rng *r, sqlite3 *db, int n_rows) {
  sqlite3_stmt *st = NULL;
  char few[8][100];
  for (int k = 0; k < 8; k++) date_text(r, few[k], sizeof few[k]);
  sqlite3_exec(db, "DROP TABLE IF EXISTS d; CREATE TABLE d(id INTEGER PRIMARY KEY,i,j,r,s,f,t,x)",
               NULL, NULL, NULL);
  sqlite3_prepare_v2(db, "INSERT INTO d(i,j,r,s,f,t,x) VALUES(?1,?2,?3,?4,?5,?6,?7)", -1, &st,
                     NULL);
  bool days = rng_chance(r, 30), nulls = rng_chance(r, 50);
  int64_t from = days ? 2400000 : (int64_t)date_below(r, 4000000000) - 1000000000;
  uint64_t span = days ? 100000 : rng_chance(r, 50) ? 86400 * 3 : 86400ULL * 36500;
  for (int k = 0; k < n_rows; k++) {
    sqlite3_bind_int64(st, 1, from + (int64_t)date_below(r, span));
    date_bind(r, st, 2, 1);
    sqlite3_bind_double(st, 3, date_real(r, 2400000, 2500000));
    date_bind(r, st, 4, 2);
    sqlite3_bind_text(st, 5, few[date_below(r, 8)], -1, SQLITE_STATIC);
    date_bind(r, st, 6, 3);
    date_bind(r, st, 7, -1);
    for (int c = 1; c <= 7 && nulls; c++)
      if (rng_chance(r, 5)) sqlite3_bind_null(st, c);
    sqlite3_step(st);
    sqlite3_reset(st);
  }
  sqlite3_finalize(st);
}

/* A constant that the text of a call may be compared with: that of some row, cut or changed. */
static char *constant(rng *r, sqlite3 *db, const char *call) {
  char *sql = sqlite3_mprintf("SELECT %s FROM d WHERE id = %d", call, 1 + rng_below(r, FEW_ROWS));
  char *out = NULL;
  sqlite3_stmt *st = NULL;
  use_setting(db, "engine", "sqlite");
  if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
    const char *text = (const char *)sqlite3_column_text(st, 0);
    int n = sqlite3_column_bytes(st, 0);
    if (text && rng_chance(r, 70))
      out = sqlite3_mprintf("'%.*q'", rng_chance(r, 70) ? n : rng_below(r, n + 1), text);
  }
  sqlite3_finalize(st);
  sqlite3_free(sql);
  static const char *const others[] = {
      "'2024'",    "'2000-01-01'",         "''", "'9'", "5", "NULL", "'-4'", "'12:00'", "x'32'",
      "2451545.5", "'2023-02-30 24:00:00'"};
  return out ? out : sqlite3_mprintf("%s", DATE_PICK(r, others));
}

static char *query(rng *r, sqlite3 *db, const char *call, const char *other) {
  static const char *const ops[] = {"=", "<>", "<", "<=", ">", ">=", "IS"};
  char *k = constant(r, db, call), *sql;
  const char *op = DATE_PICK(r, ops);
  switch (rng_below(r, 10)) {
  case 0: sql = sqlite3_mprintf("SELECT id, %s, %s FROM d", call, other); break;
  case 1: sql = sqlite3_mprintf("SELECT id FROM d WHERE %s %s %s ORDER BY id", call, op, k); break;
  case 2: sql = sqlite3_mprintf("SELECT id FROM d WHERE %s %s %s ORDER BY id", k, op, call); break;
  case 3:
    sql = sqlite3_mprintf("SELECT %s AS k, count(*), sum(id), %s FROM d GROUP BY k ORDER BY k",
                          call, "max(id)");
    break;
  case 4:
    sql = sqlite3_mprintf("SELECT id, %s AS k FROM d ORDER BY k%s, id LIMIT %d", call,
                          rng_chance(r, 50) ? " DESC" : "", rng_below(r, 2) ? 20 : 1000);
    break;
  case 5: sql = sqlite3_mprintf("SELECT DISTINCT %s AS k FROM d ORDER BY k", call); break;
  case 6:
    sql = sqlite3_mprintf("SELECT min(%s), max(%s), count(DISTINCT %s), count(%s) FROM d", call,
                          call, call, other);
    break;
  case 7:
    sql = sqlite3_mprintf("SELECT %s AS k, %s AS m, min(%s) FROM d GROUP BY k, m ORDER BY k, m",
                          call, other, call);
    break;
  case 8:
    sql =
        sqlite3_mprintf("SELECT a.id, count(*) FROM d a JOIN (SELECT %s AS k FROM d) b ON b.k = %s "
                        "WHERE a.id < 40 GROUP BY a.id ORDER BY a.id",
                        call, call);
    break;
  default:
    sql = sqlite3_mprintf(
        "SELECT id, %s = %s, substr(%s, 1, 4), %s IS NULL FROM d WHERE %s BETWEEN %s "
        "AND '9999' ORDER BY id",
        call, other, call, call, call, k);
    break;
  }
  sqlite3_free(k);
  return sql;
}

/* Notices a spoilt answer. */
static bool notices(rows *got, const rows *want) {
  char why[300];
  if (got->n_rows == 0 || got->n_col < 2) return true;
  cell *x = &got->cells[1], was = *x;
  x->type = x->type == SQLITE_NULL ? SQLITE_INTEGER : SQLITE_NULL;
  bool seen = !rows_same(got, want, false, why, sizeof why);
  *x = was;
  return seen;
}

int main(int argc, char **argv) {
  const char *engine = "cpu";
  long n_calls = 100000, n_run = 0, n_queries = 0, n_native = 0, n_engine = 0, n_bad = 0,
       n_blind = 0;
  int n_rows = 0;
  rng r = {1};
  for (int k = 1; k + 1 < argc; k += 2) {
    if (!strcmp(argv[k], "--engine")) engine = argv[k + 1];
    if (!strcmp(argv[k], "--calls")) n_calls = atol(argv[k + 1]);
    if (!strcmp(argv[k], "--seed")) r.s = (uint64_t)atoll(argv[k + 1]);
  }
  sqlite3 *db;
  if (sqlite3_open(":memory:", &db) || !use_engine(db, engine)) return 1;
  rows got = {0}, want = {0};
  for (long n = 0; n_run < n_calls && n_bad < MAX_FAILED; n++) {
    if (n % QUERIES_PER_TABLE == 0) {
      n_rows = rng_chance(&r, 20) ? MANY_ROWS : FEW_ROWS;
      fill_table(&r, db, n_rows);
    }
    date_call c[2];
    for (int k = 0; k < 2; k++) date_call_make(&r, &c[k]);
    char *a = date_sql(&c[0], DATE_PICK(&r, columns)), *b = date_sql(&c[1], DATE_PICK(&r, columns));
    char *sql = query(&r, db, a, b), why[700];
    use_engine(db, "sqlite");
    rows_query(&want, db, warplite_prepare, sql);
    use_engine(db, engine);
    rows_query(&got, db, warplite_prepare, sql);
    const char *reason = warplite_reason(db);
    bool native = reason && strncmp(reason, "sqlite", 6) != 0;
    n_native += native;
    n_engine += reason && strncmp(reason, engine_prefix(engine), 4) == 0;
    n_queries++;
    n_run += n_rows;
    n_blind += !notices(&got, &want);
    if (!rows_same(&got, &want, false, why, sizeof why)) {
      n_bad++;
      tap_bad(sql, "%s (%s)", why, reason ? reason : "");
    }
    sqlite3_free(a);
    sqlite3_free(b);
    sqlite3_free(sql);
  }
  if (n_bad == 0) tap_ok("date functions in queries give SQLite's rows");
  if (n_blind)
    tap_bad("spoilt answers", "%ld were not noticed", n_blind);
  else
    tap_ok("spoilt answers are noticed");
  if (n_native * 10 < n_queries * 9)
    tap_bad("native", "only %ld of %ld queries", n_native, n_queries);
  else
    tap_ok("nine of ten queries are native");
  printf("# %ld calls in %ld queries, %ld native, %ld of them on the %s\n", n_run, n_queries,
         n_native, n_engine, engine);
  rows_free(&got);
  rows_free(&want);
  sqlite3_close(db);
  return tap_done();
}
