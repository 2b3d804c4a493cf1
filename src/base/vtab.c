/*
** See vtab.h.
*/
#include "base/vtab.h"
#include <string.h>

void wl_vtab_say(sqlite3_vtab *v, const char *text) {
  sqlite3_free(v->zErrMsg);
  v->zErrMsg = sqlite3_mprintf("%s", text);
}

int wl_vtab_fail(sqlite3_vtab *v, const wl_error *err) {
  wl_vtab_say(v, err->text);
  /* SQLite must get only its own codes: it would take WL_NOT_TAKEN, 10001, for SQLITE_SCHEMA. */
  return err->code && err->code != WL_NOT_TAKEN ? (int)err->code : SQLITE_ERROR;
}

int wl_vtab_free(sqlite3_vtab *v) {
  sqlite3_free(v->zErrMsg); /* SQLite does not take over the message of every callback */
  sqlite3_free(v);
  return SQLITE_OK;
}

int wl_vtab_free_cursor(sqlite3_vtab_cursor *c) {
  sqlite3_free(c);
  return SQLITE_OK;
}

int wl_vtab_new_cursor(size_t n_bytes, sqlite3_vtab_cursor **out) {
  *out = sqlite3_malloc64(n_bytes);
  if (!*out) return SQLITE_NOMEM;
  memset(*out, 0, n_bytes);
  return SQLITE_OK;
}
