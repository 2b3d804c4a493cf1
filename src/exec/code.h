/*
** The code of a statement: its program, kept for the next run of the same text.
**
** The rule: code is used again only if everything that the planner and the compiler looked at is
** the same. They are functions of these inputs alone:
**
** 1. The bound query. Code belongs to a statement's text and is dropped with it, that is, when a
**    table or view of the text has changed (route/statement_text.h).
** 2. The columns, by id. A column never changes, and ids are never used twice. Types, ranges,
**    dictionaries, samples and dead rows follow from the columns. The number of rows of each
**    source.
** 3. The values of the parameters, with their types, byte for byte.
** 4. SQLite's limits on the length of a string and of a LIKE pattern; whether SQLite reads in rowid
**    order; the device for which the program is meant.
** 5. The lookups of its joins. Each must still be in the cache of lookups. With keep=0 there are
**    none, and a join's code is not kept.
**
** Code is not kept if the statement has subqueries or derived sources: what they return is part of
** the program. Neither if it calls a date function, which may depend on the time zone.
**
** A run holds the code that it runs, so it may outlive the text.
*/
#ifndef WL_CODE_H
#define WL_CODE_H

#include "column/cache.h"
#include "exec/query.h"
#include "program/compile.h"

/* A lookup that the program probes. */
typedef struct wl_code_lookup {
  wl_lookup_key key;
  const struct wl_lookup *lookup; /* not held: only compared */
  wl_u64 id;
} wl_code_lookup;

typedef struct wl_code {
  int refs;
  wl_arena arena; /* of the program and of everything below */
  wl_program *program;
  int driver;               /* the source that it scans */
  struct wl_device *device; /* where it runs; NULL: on the CPU */
  char why_cpu[200];
  /* What it was compiled for. */
  wl_u64 *columns; /* ids */
  int n_columns;
  wl_i64 *rows; /* of each source */
  int n_sources;
  wl_val *params;
  int n_params;
  wl_u64 max_text;
  int max_pattern;
  bool rowid_order, unordered;
  struct wl_device *wanted; /* the device that was asked for */
  wl_code_lookup *lookups;
  int n_lookups;
} wl_code;

wl_code *wl_code_new(void); /* with one reference; NULL: out of memory */
wl_code *wl_code_hold(wl_code *c);
void wl_code_drop(wl_code *c); /* accepts NULL */

/* Whether the code fits these inputs. in: what the program would be compiled with, except for the
** join's plan and its lookups. n_columns: entries of in->cols. */
bool wl_code_fits(const wl_code *c, const wl_query_env *env, const wl_compile_in *in,
                  int n_columns);
/* Finds the lookups, and holds them for the caller. False: not all are there. */
bool wl_code_find_lookups(const wl_code *c, struct wl_lookup **out);

/* Records what the code was compiled for. keys: of the lookups that are in the cache. False: it
** must not be used again. */
bool wl_code_finish(wl_code *c, const wl_query_env *env, const wl_compile_in *in, int n_columns,
                    const wl_lookup_key *keys, int n_lookups);

#endif
