/*
** The suites' queries, read from bench/queries: a folder a suite, a file a query.
**
** 1. A file's first line says what order the rows have: `-- order: all`, `-- order: none`,
**    or the columns (from 1) that ORDER BY names where it leaves ties.
** 2. The text is one SELECT that SQLite and DuckDB both understand. Where DuckDB needs
**    other words, they stand in a second file, NAME.duckdb.sql.
** 3. Literals stand in double braces and change from run to run (literals.h).
** 4. Names beginning with n are the twins over numbers of queries over strings (suite w):
**    they count in no sum.
*/
#ifndef SUITES_QUERIES_H
#define SUITES_QUERIES_H

#include <stdbool.h>
#include <stddef.h>

enum { QUERIES_MAX = 32, QUERY_NAME = 16 };

struct text_query {
  char name[QUERY_NAME];
  char *sql, *duck_sql; /* with placeholders; the second is NULL where there is no other */
  char *published, *duck_published; /* with the published literals */
  unsigned ordered;                 /* bits of columns; ~0u: whole rows */
  bool twin;
};

struct query_list {
  struct text_query query[QUERIES_MAX];
  int n;
};

bool queries_read(struct query_list *l, const char *folder, const char *suite, char *why,
                  size_t n_why);
void queries_free(struct query_list *l);

#endif
