/*
** A source of columns: one table as one connection sees it. Readers of tables ask a source and need
** not know what is behind it: an ordinary SQLite table or a tablet table (store/source.c).
**
** A read is begin, any number of acquire, end. Between begin and end a read transaction is open,
** and all columns come from its version of the table. They stay valid after end while they are
** held.
*/
#ifndef WL_SOURCE_H
#define WL_SOURCE_H

#include "base/status.h"
#include "column/column.h"

/* The columns that a run works on, held. */
typedef struct wl_snapshot {
  wl_i64 n_rows;
  wl_column **cols;
  int n_cols;
  wl_column *live; /* 0 for rows that do not count; NULL: all rows count */
} wl_snapshot;

void wl_snapshot_release(wl_snapshot *snap);

/* How often this source used a column. It is kept when the column is dropped. */
typedef struct wl_use {
  wl_i64 uses, hits; /* hits: uses that found it in memory */
  wl_i64 last_time;  /* seconds since 1970 */
} wl_use;

/* How a source has been used. lost_ns: estimated time that was lost since the table last changed,
** because its columns were not in memory. version: changes with the table; of the last estimate. */
typedef struct wl_source_history {
  wl_i64 n_uses, n_loads;
  double lost_ns;
  wl_u64 version;
  const char *loaded_from; /* description of the last load */
} wl_source_history;

typedef struct wl_source wl_source;

typedef struct wl_source_methods {
  wl_i64 (*estimate)(wl_source *s, bool *exact);
  wl_status (*begin)(wl_source *s, bool *changed, wl_error *err);
  void (*end)(wl_source *s);
  wl_u64 (*stamp)(const wl_source *s);
  wl_status (*acquire)(wl_source *s, const int *cols, int n_cols, wl_snapshot *out, wl_error *err);
  int (*columns)(const wl_source *s, const int *cols, int n_cols, wl_column **held);
  bool (*live_rows)(const wl_source *s, wl_i64 *n_rows);
  wl_use (*use)(const wl_source *s, int col);
  wl_source_history (*history)(const wl_source *s);
  void (*lose)(wl_source *s, double ns);
  bool (*shared)(const wl_source *s);
  void (*unload)(wl_source *s);
} wl_source_methods;

struct wl_source {
  const wl_source_methods *methods;
  /* Its columns are decoded from segments, and SQLite reads its rows through a virtual table.
  ** Otherwise both read rows of a b-tree. The costs differ. */
  bool in_segments;
  bool rowid_order_only; /* SQLite can read its rows only in rowid order */
};

/* Rows of the table: exact if they are in memory, else an estimate that takes microseconds. */
static inline wl_i64 wl_source_estimate(wl_source *s, bool *exact) {
  return s->methods->estimate(s, exact);
}

/* Opens a read transaction and determines which version of the table it sees. WL_NOT_TAKEN: columns
** in memory must not be used. *changed, if WL_OK: the table no longer has the source's shape.
** wl_source_end() must follow in any case. */
static inline wl_status wl_source_begin(wl_source *s, bool *changed, wl_error *err) {
  return s->methods->begin(s, changed, err);
}
static inline void wl_source_end(wl_source *s) {
  s->methods->end(s);
}

/* Between begin and end: a number for the version being read. Equal numbers mean equal rows. */
static inline wl_u64 wl_source_stamp(const wl_source *s) {
  return s->methods->stamp(s);
}

/* Between begin and end: gets the wanted columns (-1 is the rowid), and loads those that are
** missing. */
static inline wl_status wl_source_acquire(wl_source *s, const int *cols, int n_cols,
                                          wl_snapshot *out, wl_error *err) {
  return s->methods->acquire(s, cols, n_cols, out, err);
}

/* How many of these columns are in memory, in the last version seen. held[0..n_cols), if held is
** not NULL, gets each of them, held, or NULL. */
static inline int wl_source_columns(const wl_source *s, const int *cols, int n_cols,
                                    wl_column **held) {
  return s->methods->columns(s, cols, n_cols, held);
}
/* One such column, held, or NULL. */
static inline wl_column *wl_source_column(const wl_source *s, int col) {
  wl_column *c = NULL;
  s->methods->columns(s, &col, 1, &c);
  return c;
}

/* Whether the number of rows that count is known for the last version seen. Sets *n_rows. */
static inline bool wl_source_live_rows(const wl_source *s, wl_i64 *n_rows) {
  return s->methods->live_rows(s, n_rows);
}
static inline wl_use wl_source_use(const wl_source *s, int col) {
  return s->methods->use(s, col);
}
static inline wl_source_history wl_source_used(const wl_source *s) {
  return s->methods->history(s);
}
/* Adds to lost_ns of its history. */
static inline void wl_source_lose(wl_source *s, double ns) {
  s->methods->lose(s, ns);
}
/* Whether other connections can use its columns. */
static inline bool wl_source_shared(const wl_source *s) {
  return s->methods->shared(s);
}
/* Drops the columns. */
static inline void wl_source_unload(wl_source *s) {
  s->methods->unload(s);
}

#endif
