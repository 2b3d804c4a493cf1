/*
** The SQL texts made from a change. The caller frees each with sqlite3_free(). NULL: out of memory.
*/
#ifndef WL_DML_TEXT_H
#define WL_DML_TEXT_H

#include "dml/change.h"

/* The SELECT that the change reads; see run.c. */
char *wl_change_source_sql(const wl_change *m);
/* The same for a live UPDATE, of rows whose rowids wl_rowids(?n) gives. */
char *wl_change_live_sql(const wl_change *m, int n);
/* The new values of the old row for ON CONFLICT DO UPDATE. */
char *wl_change_upsert_sql(const wl_change *m, const wl_clause *c);
/* The numbers of its parameters for excluded.col and for the rowid of the old row. */
int wl_change_excluded(const wl_change *m, int col);
int wl_change_at(const wl_change *m);
/* The statement that the caller runs. mask: NULL, or the authorizer's answers as a text. */
char *wl_change_outer_sql(const wl_change *m, const char *mask);
/* Texts for SQLite to check: the statement without RETURNING and ON CONFLICT, the columns of a
** clause, and DO UPDATE. */
char *wl_change_checked_sql(const wl_change *m);
char *wl_change_target_sql(const wl_change *m, const wl_clause *c);
char *wl_change_clause_sql(const wl_change *m, const wl_clause *c);

#endif
