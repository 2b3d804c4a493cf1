/*
** Statement texts that were parsed and bound, kept for their next run. A prepared statement holds
** only its text, so nothing has to be freed with it.
*/
#ifndef WL_STATEMENT_TEXT_H
#define WL_STATEMENT_TEXT_H

#include "route/conn.h"
#include "sql/bind.h"

typedef struct wl_statement_text {
  struct wl_statement_text *next;
  wl_u64 hash;
  char *sql;
  size_t n_sql;
  int refs;
  wl_arena arena;
  wl_stmt *stmt;
  wl_query *query;
  wl_plan_facts facts;   /* what SQLite would do */
  bool work_exact;       /* facts.work_ns was estimated with exact numbers of rows */
  bool settled;          /* wl_statement_text_settle() was called */
  const char *unsettled; /* NULL, or why it said WL_NOT_TAKEN */
  int *arg_params;       /* parameter index of each argument of the rewritten text */
  int n_args;
  wl_u32 n_text_changes; /* of a text without a table: as wl_store_text_like_ours() said */
  wl_u64 labels;         /* hash of the names of its columns, or 0: not asked for yet */
} wl_statement_text;

/* The bound form of a statement's text; the caller drops it. WL_NOT_TAKEN with the reason. */
wl_status wl_statement_text_get(wl_conn *c, const char *sql, size_t n, wl_statement_text **out,
                                wl_error *err) WL_MUST;
/* Finds the order that equal rows must come in, before the text is compiled: once, and only for a
** text that is not SQLite's anyway, for it takes some 30 us. WL_NOT_TAKEN if it cannot. */
wl_status wl_statement_text_settle(wl_conn *c, wl_statement_text *t, wl_error *err) WL_MUST;
/* Estimates what SQLite's plan of several tables costs once more, if it is now known exactly how
*many
** rows they have, or not any more. */
wl_status wl_statement_text_work(wl_conn *c, wl_statement_text *t, bool exact,
                                 wl_error *err) WL_MUST;
void wl_statement_text_drop(wl_statement_text *t); /* NULL is fine */
void wl_statement_text_flush(wl_conn *c);

#endif
