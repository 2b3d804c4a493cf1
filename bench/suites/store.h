/*
** Where the suites' rows go: files of SQLite and of DuckDB that are made once and used again, or
** a database of SQLite in memory.
**
** Stands between the generators (gen.h) and the benchmark (suites.c).
**
** 1. A file is written under another name and renamed when it is whole. Its name has the
**    suite, the scale and the version of its rows, of DuckDB's also the version of DuckDB; a
**    file of that name is taken as it is.
** 2. Keys of one column are INTEGER PRIMARY KEYs. Keys of several are declared only where
**    `keys` is set: without them SQLite has no index but those it builds for a query.
** 3. ANALYZE, which only counts rows where there is no index, is run for the suites whose
**    plans it betters in SQLite: those of the star schema and of w become up to 15 times
**    faster, query 8 of TPC-H 70 times slower.
** 4. DuckDB gets the same columns, without keys: SQLite's INTEGER PRIMARY KEY is the table
**    itself, while a key of DuckDB's would be an index that its joins do not use.
*/
#ifndef SUITES_STORE_H
#define SUITES_STORE_H

#include <sqlite3.h>
#include "../duck.h"
#include "gen.h"

typedef void make_fn(struct sink *, double scale);

/* How the tables of a suite come about. */
struct tables {
  const char *suite;
  int version; /* to be raised with every change of the rows */
  make_fn *make;
  bool analyze; /* see 3 */
};

extern const struct tables ssb_tables, tpch_tables, works_tables;

/* All leave a message in why and return false on failure. */

/* Makes sure that the file is there; path gets its name. */
bool store_file(const char *folder, const struct tables *t, double scale, bool keys, char *path,
                size_t n_path, char *why, size_t n_why);
/* Opens that file, or fills a database in memory where folder is NULL. */
bool store_sqlite(sqlite3 **db, const char *folder, const struct tables *t, double scale, bool keys,
                  char *why, size_t n_why);
/* The same as store_file() for DuckDB; leaves no database open. */
bool store_duck(struct duck *d, const char *folder, const struct tables *t, double scale,
                char *path, size_t n_path, char *why, size_t n_why);

#endif
