/*
** The test of the suites: every query at a small scale, on one engine, against SQLite, and
** run by that engine itself.
**
** The tables are in memory, so that nothing is left behind; DuckDB has no part in it.
*/
#include "../../test/tap.h"
#include "run.h"

static void check_query(struct plan *p, const struct many *u, const struct text_query *q,
                        int side) {
  struct bench *b = &p->b;
  struct answer want = {0}, got = {0};
  struct digest sqlite = {.full = true, .keep = &want}, ours = {.full = true, .keep = &got};
  char name[64], why[WHY] = "";
  double ms;
  snprintf(name, sizeof name, "%s %s [%s]", u->name, q->name, p->engine);
  if (!side_run(b, &sides[0], q->sql, &sqlite, &ms, why)) {
    tap_bad(name, "SQLite: %s", why);
  } else if (!side_run(b, &sides[side], q->sql, &ours, &ms, why)) {
    tap_bad(name, "%s", why);
  } else if (!answer_same(&want, &got, q->ordered, REAL_TOLERANCE, false, why, sizeof why)) {
    tap_bad(name, "%s (%s)", why, warplite_reason(b->db));
  } else if (!ran_there(b, &sides[side]) && !p->allow_sqlite) {
    tap_bad(name, "not native: %s", warplite_reason(b->db));
  } else {
    if (b->verbose) printf("# %lld rows, %s\n", (long long)want.n_rows, warplite_reason(b->db));
    tap_ok(name);
  }
  answer_free(&want);
  answer_free(&got);
}

void suite_check(struct plan *p, const struct many *u) {
  struct bench *b = &p->b;
  struct query_list list = {0};
  char why[WHY] = "";
  int side = side_called(p->engine);
  if (!queries_read(&list, p->queries, u->name, why, sizeof why) ||
      !store_sqlite(&b->db, NULL, u->name, u->make, scale_of(p, u), p->keys, why, sizeof why)) {
    tap_bad(u->name, "%s", why);
    goto done;
  }
  if (warplite_enable(b->db) != SQLITE_OK) {
    tap_bad(u->name, "warplite_enable: %s", warplite_errmsg(b->db));
    goto done;
  }
  b->lenient = true; /* what is not native is said as such, beside whether it is right */
  for (int i = 0; i < list.n; i++)
    if (query_wanted(p, list.query[i].name)) check_query(p, u, &list.query[i], side);
done:
  sqlite3_close(b->db);
  b->db = NULL;
  queries_free(&list);
}
