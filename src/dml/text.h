/*
** The SQL texts that are made of a change. The caller frees each with sqlite3_free(); NULL: out of
** memory.
*/
#ifndef WL_DML_TEXT_H
#define WL_DML_TEXT_H

#include "dml/change.h"

/* What it reads: see run.c. */
char *wl_change_source_sql(const wl_change *m);
/* UPDATE, live: the same, for rows whose rowids wl_rowids(?n) gives. */
char *wl_change_live_sql(const wl_change *m, int n);
/* ON CONFLICT DO UPDATE: new values of the old row. */
char *wl_change_upsert_sql(const wl_change *m, const wl_clause *c);
/* Its parameters that are excluded.col, and the rowid of the row. */
int wl_change_excluded(const wl_change *m, int col);
int wl_change_at(const wl_change *m);
/* What the caller runs. mask: NULL, or the authorizer's answers as a text. */
char *wl_change_outer_sql(const wl_change *m, const char *mask);
/* For SQLite to check: without RETURNING and ON CONFLICT; a clause's columns; and DO UPDATE. */
char *wl_change_checked_sql(const wl_change *m);
char *wl_change_target_sql(const wl_change *m, const wl_clause *c);
char *wl_change_clause_sql(const wl_change *m, const wl_clause *c);

#endif
