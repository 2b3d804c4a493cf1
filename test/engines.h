/*
** The engines that tests run under, as settings of a connection. `route=always` makes
** warplite take whatever it can, however small; the tables of tests are small.
*/
#ifndef TEST_ENGINES_H
#define TEST_ENGINES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "warplite.h"

/* Sets one setting; false with the connection's error message if it is refused. */
static inline bool use_setting(sqlite3 *db, const char *name, const char *value) {
  char *sql = sqlite3_mprintf("SELECT warplite_set(%Q, %Q)", name, value);
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  sqlite3_free(sql);
  return rc == SQLITE_OK;
}

static inline bool use_engine(sqlite3 *db, const char *engine) {
  static const struct {
    const char *name, *engine, *device;
  } table[] = {{"sqlite", "sqlite", NULL},
               {"cpu", "cpu", NULL},
               {"sim", "gpu", "sim"},
               {"cuda", "gpu", "cuda"}};
  if (warplite_enable(db) != SQLITE_OK) return false;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    if (strcmp(table[i].name, engine)) continue;
    if (table[i].device && !use_setting(db, "device", table[i].device)) return false;
    return use_setting(db, "engine", table[i].engine) && use_setting(db, "route", "always");
  }
  fprintf(stderr, "no such engine: %s\n", engine);
  return false;
}

/* What warplite_reason() must begin with when the engine itself ran the statement. */
static inline const char *engine_prefix(const char *engine) {
  if (!strcmp(engine, "cpu")) return "cpu:";
  return strcmp(engine, "sqlite") ? "gpu:" : "sqlite:";
}

#endif
