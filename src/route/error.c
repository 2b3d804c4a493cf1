/*
** Sets the connection's error, as sqlite3_errcode() and sqlite3_errmsg() return it. SQLite has no
** call for this, so we prepare a statement that fails with the code and message wanted.
*/
#include "route/error.h"
#include "base/vtab.h"

typedef struct failure {
  int code;
  const char *message;
} failure;

static int fail_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                        sqlite3_vtab **out, char **msg) {
  const failure *f = aux;
  *msg = sqlite3_mprintf("%s", f->message);
  return f->code;
}
static int fail_best_index(sqlite3_vtab *v, sqlite3_index_info *info) {
  return SQLITE_ERROR;
}
static const sqlite3_module fails = {
    .xConnect = fail_connect, .xDisconnect = wl_vtab_free, .xBestIndex = fail_best_index};

int wl_fail_prepare(sqlite3 *db, int code, const char *message) {
  sqlite3_stmt *s = NULL;
  failure f = {code, message};
  int rc = sqlite3_create_module(db, "wl_error", &fails, &f);
  if (!rc) rc = sqlite3_prepare_v2(db, "SELECT * FROM wl_error", -1, &s, NULL);
  sqlite3_finalize(s);
  sqlite3_create_module(db, "wl_error", NULL, NULL);
  return rc ? rc : code;
}

void wl_clear_error(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_errcode(db)) sqlite3_prepare_v2(db, "", -1, &s, NULL);
}
