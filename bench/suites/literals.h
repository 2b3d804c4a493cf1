/*
** Query texts whose literals change from run to run.
**
** A text has its literals in double braces: {{KIND[.PART][#N][+K]:PUBLISHED}}.
**
**     d_year = {{1992..1997:1993}}                    an integer of a range
**     l_discount > {{0.01..0.08:0.05}}                a decimal, with as many digits as the bounds
**     '{{1993-01..1997-10:1993-07}}-01'               a month
**     '{{1995-03-01..1995-03-31:1995-03-15}}'         a day
**     LIKE '%{{special|pending|unusual:special}}%'    one of these words
**     '{{region:ASIA}}'                               one of a list; literals.c names them
**     '{{nation.region:AMERICA}}'                     what belongs to the value of {{nation}}
**     '{{1993-01..1997-10+3:1993-10}}-01'             the value of that range, and three months
**     IN ({{1..50#1:49}}, {{1..50#2:14}})             two draws of one kind
**
** 1. A value depends on the seed, KIND and N alone. So one placeholder has one value in a text,
**    and the text for DuckDB has the same values as the text for SQLite.
** 2. Draws of one kind that N tells apart differ. N is 1 where it is not written.
** 3. The seed comes from suite, query and run: every side and every machine has the same texts.
** 4. Run 0 is the published text. Every other run differs from run 0 and from all runs before it,
**    or, where the kinds have too few values, from the run before it.
** 5. A text without placeholders gets a comment with the number of the run.
*/
#ifndef SUITES_LITERALS_H
#define SUITES_LITERALS_H

#include <stdbool.h>
#include <stddef.h>

/* The texts of one query, for runs 0 to n - 1. */
struct run_texts {
  int n;
  char **sql, **duck_sql; /* for SQLite and warplite, and for DuckDB */
};

/* duck_sql may be NULL: DuckDB's text is then the other one. On failure why has the reason, and
** there is nothing to free. */
bool run_texts_make(struct run_texts *t, const char *suite, const char *query, const char *sql,
                    const char *duck_sql, int n, char *why, size_t n_why);
void run_texts_free(struct run_texts *t);

#endif
