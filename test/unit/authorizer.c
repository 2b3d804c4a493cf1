/*
** Authorizers that warplite cannot see, because the program calls SQLite's own function: columns
** that they hide are not given out, are not put into memory, and are back when they are gone. And
** the answers of an authorizer as a text.
*/
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "../tap.h"
#include "api/enable.h"
#include "base/authorizer.h"
#include "warplite.h"

#undef sqlite3_libversion_number
extern int sqlite3_libversion_number(void);

static int verdict;

static int hide(void *p, int code, const char *a, const char *b, const char *c, const char *d) {
  return code == SQLITE_READ && strcmp(a, "t") == 0 && strcmp(b, "secret") == 0 ? verdict
                                                                                : SQLITE_OK;
}

/* The first value of a statement as text, "NULL", or the error's code. */
static const char *answer(sqlite3 *db, const char *sql) {
  static char text[100];
  sqlite3_stmt *s = NULL;
  int rc = warplite_prepare(db, sql, -1, &s, NULL);
  if (!rc) rc = sqlite3_step(s);
  if (rc == SQLITE_ROW)
    snprintf(text, sizeof text, "%s",
             sqlite3_column_type(s, 0) == SQLITE_NULL ? "NULL"
                                                      : (const char *)sqlite3_column_text(s, 0));
  else
    snprintf(text, sizeof text, "%d", rc);
  sqlite3_finalize(s);
  return text;
}

static void check_unseen(wl_set_authorizer *unseen, bool tablets) {
  sqlite3 *db = NULL;
  const char *sql[] = {"SELECT sum(secret) FROM t", "SELECT secret FROM t ORDER BY id LIMIT 1",
                       "SELECT count(*) FROM t WHERE secret > 1", "SELECT max(secret) FROM v",
                       "SELECT a.secret FROM t a JOIN t b ON a.id = b.id"};
  const char *usual[] = {"3", "1", "1", "2", "1"},
             *hidden[] = {"NULL", "NULL", "0", "NULL", "NULL"};
  if (sqlite3_open(":memory:", &db) || warplite_enable(db)) exit(1);
  sqlite3_exec(db, "SELECT warplite_set('route', 'always'), warplite_set('engine', 'cpu')", NULL,
               NULL, NULL);
  sqlite3_exec(db,
               tablets ? "CREATE VIRTUAL TABLE t USING tablet(id INTEGER PRIMARY KEY, secret INT)"
                       : "CREATE TABLE t(id INTEGER PRIMARY KEY, secret INT)",
               NULL, NULL, NULL);
  sqlite3_exec(db, "INSERT INTO t VALUES(1,1),(2,2); CREATE VIEW v AS SELECT * FROM t", NULL, NULL,
               NULL);
  for (int round = 0; round < 5; round++) {
    verdict = round % 2 == 0 ? SQLITE_OK : round == 1 ? SQLITE_IGNORE : SQLITE_DENY;
    if (round == 1) unseen(db, hide, NULL); /* later it only changes its mind */
    if (round == 4) unseen(db, NULL, NULL);
    for (int k = 0; k < 5; k++) {
      char label[200];
      const char *want = verdict == SQLITE_OK       ? usual[k]
                         : verdict == SQLITE_IGNORE ? hidden[k]
                                                    : "23";
      const char *got = answer(db, sql[k]);
      snprintf(label, sizeof label, "unseen, round %d, %s: %s", round,
               tablets ? "tablet" : "ordinary", sql[k]);
      if (strcmp(got, want) == 0)
        tap_ok(label);
      else
        tap_bad(label, "%s, not %s (%s)", got, want, warplite_reason(db));
    }
  }
  sqlite3_close(db);
}

static int note_all(void *p, int code, const char *a, const char *b, const char *c, const char *d) {
  return code == SQLITE_READ ? SQLITE_IGNORE : SQLITE_OK;
}

static void check_text(void) {
  sqlite3 *db = NULL;
  sqlite3_stmt *s = NULL;
  wl_mask *mask = NULL;
  if (sqlite3_open(":memory:", &db) || warplite_set_authorizer(db, note_all, NULL)) exit(1);
  sqlite3_exec(db, "CREATE TABLE \"7 8 o'clock\"(\"\", \" 3 x\", \"-1\")", NULL, NULL, NULL);
  int rc = wl_ask_prepare(db, "SELECT * FROM \"7 8 o'clock\"", -1, &s, NULL, &mask);
  sqlite3_finalize(s);
  CHECK("answers are noted", rc == SQLITE_OK && wl_mask_ignores(mask) && !wl_mask_denies(mask));
  char *text = wl_mask_text(mask);
  wl_mask *again = wl_mask_read(text);
  CHECK("answers as a text, and back", wl_mask_has(again, SQLITE_READ, "7 8 o'clock", "") &&
                                           wl_mask_has(again, SQLITE_READ, "7 8 o'clock", " 3 x") &&
                                           wl_mask_has(again, SQLITE_READ, "7 8 o'clock", "-1") &&
                                           !wl_mask_has(again, SQLITE_READ, "7 8 o'clock", "x") &&
                                           !wl_mask_has(again, SQLITE_READ, "7 8 o'", NULL) &&
                                           wl_mask_ignores(again));
  for (const char *const *bad = (const char *const[]){"x", ".x", ".20 2 9 t", "", NULL}; *bad;
       bad++) {
    wl_mask *odd = wl_mask_read(*bad);
    CHECK("a text that is not one of answers counts as IGNORE", wl_mask_ignores(odd));
    wl_mask_free(odd);
  }
  sqlite3_free(text);
  wl_mask_free(mask);
  wl_mask_free(again);
  sqlite3_close(db);
}

int main(void) {
  if (sqlite3_libversion_number() <= 0 || !wl_api_bind(NULL)) return 1;
  check_text();
  void *lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_NOLOAD);
  wl_set_authorizer *unseen =
      lib ? (wl_set_authorizer *)dlsym(lib, "sqlite3_set_authorizer") : NULL;
  if (!unseen) {
    tap_skip("authorizers that cannot be seen", "SQLite is no shared library here");
    return tap_done();
  }
  /* what warplite finds in a program whose calls do not come to it; sticks, for no more is bound */
  for (int tablets = 0; tablets < 2; tablets++) {
    wl_authorizer_blind = true;
    check_unseen(unseen, tablets);
  }
  return tap_done();
}
