/*
** The test of the suites: every query at a small scale, on one engine, against SQLite, and
** run by that engine itself. Each query runs with the published literals and with drawn ones.
**
** 1. The tables are in memory, so that nothing is left behind; DuckDB has no part in it.
** 2. SQLite has the same rows with all keys declared: without an index some of these queries
**    take it minutes even here. The answers do not depend on it.
** 3. A query that warplite leaves to SQLite is a failure, and is not run a second time. With
**    --allow-sqlite it is counted as skipped, with the reason.
** 4. The texts of the runs are the same each time they are drawn, and differ from run to run.
*/
#include "../../test/tap.h"
#include "literals.h"
#include "run.h"

/* True if warplite says already when preparing that SQLite is to run it. */
static bool left_to_sqlite(struct bench *b, const struct side *side, const char *sql) {
  sqlite3_stmt *stmt = NULL;
  char why[WHY];
  bool left = set_side(b, side, why) &&
              warplite_prepare(b->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
              strncmp(warplite_reason(b->db), "sqlite", 6) == 0;
  sqlite3_finalize(stmt);
  return left;
}

/* Draws the texts of a query twice. */
static void check_texts(const struct many *u, const struct text_query *q, const char *name) {
  enum { N_TEXTS = 8 };
  struct run_texts a = {0}, b = {0};
  char why[WHY] = "";
  bool ok = run_texts_make(&a, u->name, q->name, q->sql, q->duck_sql, N_TEXTS, why, sizeof why) &&
            run_texts_make(&b, u->name, q->name, q->sql, q->duck_sql, N_TEXTS, why, sizeof why);
  for (int i = 0; ok && i < N_TEXTS; i++) {
    if (strcmp(a.sql[i], b.sql[i]) != 0 || strcmp(a.duck_sql[i], b.duck_sql[i]) != 0)
      snprintf(why, sizeof why, "run %d has other literals when drawn again", i);
    else if (i > 0 &&
             (strcmp(a.sql[i], a.sql[i - 1]) == 0 || strcmp(a.duck_sql[i], a.duck_sql[i - 1]) == 0))
      snprintf(why, sizeof why, "runs %d and %d have the same text", i - 1, i);
    else if (strstr(a.sql[i], "{{") || strstr(a.duck_sql[i], "{{"))
      snprintf(why, sizeof why, "a placeholder is left in run %d", i);
    else
      continue;
    ok = false;
  }
  if (ok)
    tap_ok(name);
  else
    tap_bad(name, "%s", why);
  run_texts_free(&a);
  run_texts_free(&b);
}

static void check_query(struct plan *p, const struct text_query *q, const char *name,
                        const char *sql, sqlite3 *keyed, const struct side *side) {
  struct bench *b = &p->b;
  struct answer want = {0}, got = {0};
  struct digest sqlite = {.full = true, .keep = &want}, ours = {.full = true, .keep = &got};
  char why[WHY] = "";
  double ms;
  sqlite3 *tested = b->db;
  b->db = keyed;
  bool ok = side_run(b, &known_sides[0], sql, &sqlite, &ms, why);
  b->db = tested;
  if (!ok) {
    tap_bad(name, "SQLite: %s", why);
  } else if (left_to_sqlite(b, side, sql)) {
    if (p->allow_sqlite)
      tap_skip(name, warplite_reason(b->db));
    else
      tap_bad(name, "not native: %s", warplite_reason(b->db));
  } else if (!side_run(b, side, sql, &ours, &ms, why)) {
    tap_bad(name, "%s", why);
  } else if (!answer_same(&want, &got, q->ordered, REAL_TOLERANCE, false, why, sizeof why)) {
    tap_bad(name, "%s (%s)", why, warplite_reason(b->db));
  } else if (!ran_there(b, side) && strncmp(warplite_reason(b->db), "cpu: ", 5) != 0) {
    tap_bad(name, "not native: %s", warplite_reason(b->db));
  } else {
    /* a device leaves some pipelines to the CPU, and says which */
    if (!ran_there(b, side)) printf("# %s: %s\n", name, warplite_reason(b->db));
    if (b->verbose) printf("# %lld rows, %s\n", (long long)want.n_rows, warplite_reason(b->db));
    tap_ok(name);
  }
  answer_free(&want);
  answer_free(&got);
}

/* The published text, and one with drawn literals. */
static void check_runs(struct plan *p, const struct many *u, const struct text_query *q,
                       sqlite3 *keyed, const struct side *side) {
  struct run_texts texts = {0};
  char name[64], why[WHY] = "";
  snprintf(name, sizeof name, "%s %s texts", u->name, q->name);
  check_texts(u, q, name);
  if (!run_texts_make(&texts, u->name, q->name, q->sql, q->duck_sql, 2, why, sizeof why)) return;
  snprintf(name, sizeof name, "%s %s [%s]", u->name, q->name, p->engine);
  check_query(p, q, name, texts.sql[0], keyed, side);
  snprintf(name, sizeof name, "%s %s drawn [%s]", u->name, q->name, p->engine);
  check_query(p, q, name, texts.sql[1], keyed, side);
  if (p->b.verbose) printf("%s\n", texts.sql[1]);
  run_texts_free(&texts);
}

void suite_check(struct plan *p, const struct many *u) {
  struct bench *b = &p->b;
  struct query_list list = {0};
  char why[WHY] = "";
  const struct side *side = known_side(p->engine, strlen(p->engine));
  sqlite3 *keyed = NULL;
  if (!queries_read(&list, p->queries, u->name, why, sizeof why) ||
      !store_sqlite(&keyed, NULL, u->tables, scale_of(p, u), true, why, sizeof why) ||
      !store_sqlite(&b->db, NULL, u->tables, scale_of(p, u), p->keys, why, sizeof why)) {
    tap_bad(u->name, "%s", why);
    goto done;
  }
  if (warplite_enable(b->db) != SQLITE_OK) {
    tap_bad(u->name, "warplite_enable: %s", warplite_errmsg(b->db));
    goto done;
  }
  b->lenient = true; /* what is not native is said as such, beside whether it is right */
  for (int i = 0; i < list.n; i++)
    if (query_wanted(p, list.query[i].name)) check_runs(p, u, &list.query[i], keyed, side);
done:
  sqlite3_close(keyed);
  sqlite3_close(b->db);
  b->db = NULL;
  queries_free(&list);
}
