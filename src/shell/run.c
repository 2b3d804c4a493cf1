/*
** Running SQL: prepares each statement of a text through warplite, steps it, prints its rows and
** finalizes it, until one fails. The text comes from input.c. The rows go to output.c, table.c or
** plan.c.
**
** Invariants:
** 1. Every statement of the user goes through warplite_prepare(). Queries of dot commands do not,
**    so .stats and warplite_reason() are always about the user's statements.
** 2. A statement is finalized before its error message is built.
*/
#include "shell.h"
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { CONTEXT_BYTES = 78, CONTEXT_LEFT = 50, CARET_SWITCH = 25 };

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static double seconds_now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static double seconds_of(struct timeval a, struct timeval b) {
  return (double)(b.tv_sec - a.tv_sec) + 1e-6 * (double)(b.tv_usec - a.tv_usec);
}

/* ---- messages */

/*
** Part of the SQL around the position of an error, with an arrow below it: two lines, each with a
** newline before it. NULL if the position is not known.
*/
static char *error_place(sqlite3 *db, const char *sql) {
  int at = sqlite3_error_offset(db);
  if (at < 0 || (size_t)at >= strlen(sql)) return NULL;
  while (at > CONTEXT_LEFT) {
    do {
      sql++;
      at--;
    } while ((*sql & 0xc0) == 0x80);
  }
  size_t n = strlen(sql);
  if (n > CONTEXT_BYTES) {
    n = CONTEXT_BYTES;
    while ((sql[n] & 0xc0) == 0x80) n--;
  }
  char *code = sqlite3_mprintf("%.*s", (int)n, sql);
  if (!code) return NULL;
  for (char *z = code; *z; z++)
    if (is_space(*z)) *z = ' ';
  if (at < CARET_SWITCH) return sqlite3_mprintf("\n  %z\n  %*s^--- error here", code, at, "");
  return sqlite3_mprintf("\n  %z\n  %*serror here ---^", code, at - 14, "");
}

static char *error_message(sqlite3 *db, const char *phase, int rc, const char *sql) {
  char number[16] = "";
  char *place = sql ? error_place(db, sql) : NULL;
  if (rc > 1) snprintf(number, sizeof number, " (%d)", rc);
  char *z = sqlite3_mprintf("%s, %s%s%s", phase, sqlite3_errmsg(db), number, place ? place : "");
  sqlite3_free(place);
  return z;
}

/* ---- statements */

static void print_rows(wl_shell *sh, sqlite3_stmt *stmt, const char *sql) {
  wl_plan_kind plan = wl_plan_of(stmt, sql);
  int n_col = sqlite3_column_count(stmt);
  sqlite3_int64 n_rows = 0;
  if (plan != PLAN_NONE) {
    wl_plan_print(stmt, plan);
  } else if (wl_output_is_columnar(sh->mode)) {
    wl_table_print(sh, stmt, n_col);
  } else {
    while (sqlite3_step(stmt) == SQLITE_ROW) wl_output_row(sh, stmt, n_col, n_rows++);
    wl_output_end(sh, n_rows);
  }
}

static const char *skip_space(const char *z) {
  while (is_space(*z)) z++;
  return z;
}

int wl_run_sql(wl_shell *sh, const char *sql, char **err) {
  int rc = SQLITE_OK;
  *err = NULL;
  while (*sql && rc == SQLITE_OK) {
    sqlite3_stmt *stmt = NULL;
    const char *tail = NULL;
    double start = sh->stats ? seconds_now() : 0;
    rc = warplite_prepare(sh->db, sql, -1, &stmt, &tail);
    if (rc != SQLITE_OK) {
      *err = error_message(sh->db, "in prepare", rc, sql);
      break;
    }
    if (!stmt) { /* only a comment, or nothing */
      sql = skip_space(tail);
      continue;
    }
    print_rows(sh, stmt, sql);
    rc = sqlite3_finalize(stmt);
    if (sh->stats) {
      fflush(stdout);
      fprintf(stderr, "%s (%.6f s)\n", warplite_reason(sh->db), seconds_now() - start);
    }
    if (rc != SQLITE_OK) *err = error_message(sh->db, "stepping", rc, NULL);
    sql = skip_space(tail);
  }
  return rc;
}

int wl_run_input(wl_shell *sh, const char *sql, int line) {
  static const struct {
    const char *phase, *kind;
  } kinds[] = {{"in prepare, ", "Parse error"}, {"stepping, ", "Runtime error"}};
  char *err = NULL;
  struct rusage before, after;
  double start = 0;

  wl_shell_open(sh, false);
  if (sh->timer) {
    getrusage(RUSAGE_SELF, &before);
    start = seconds_now();
  }
  int rc = wl_run_sql(sh, sql, &err);
  if (sh->timer) {
    double real = seconds_now() - start;
    getrusage(RUSAGE_SELF, &after);
    printf("Run Time: real %.3f user %f sys %f\n", real,
           seconds_of(before.ru_utime, after.ru_utime),
           seconds_of(before.ru_stime, after.ru_stime));
  }
  if (rc == SQLITE_OK && !err) return 0;

  const char *kind = "Error", *what = err ? err : sqlite3_errmsg(sh->db);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    size_t n = strlen(kinds[i].phase);
    if (strncmp(what, kinds[i].phase, n) == 0) {
      kind = kinds[i].kind;
      what += n;
      break;
    }
  }
  if (sh->in || !sh->interactive)
    fprintf(stderr, "%s near line %d: %s\n", kind, line, what);
  else
    fprintf(stderr, "%s: %s\n", kind, what);
  sqlite3_free(err);
  return 1;
}
