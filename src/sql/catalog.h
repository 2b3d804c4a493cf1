/*
** The catalog: what the binder asks about tables, views and collations, and what a table looks
** like. Whoever has tables implements it (store/schema.c); the binder knows nothing else of them.
*/
#ifndef WL_CATALOG_H
#define WL_CATALOG_H

#include "base/sqlite.h"
#include "base/status.h"
#include "column/column.h"

typedef struct wl_table_column {
  char *name, *decl;
  char affinity; /* 'A' blob, 'B' text, 'C' numeric, 'D' integer, 'E' real */
  wl_u8 coll;
  bool hidden;   /* not part of * */
  bool computed; /* generated when read */
  bool rowid;    /* another name of the rowid */
  bool not_null; /* declared so */
} wl_table_column;

/* How often a column was wanted; kept when its values go. */
typedef struct wl_use {
  wl_i64 uses, hits; /* hits: it was in memory then */
  wl_i64 last_use;   /* on the store's clock … */
  wl_i64 last_time;  /* … and in seconds since 1970 */
} wl_use;

/* A table, whatever names lead to it. Column -1 is the rowid. */
typedef struct wl_table {
  struct wl_table *next;
  wl_u64 id; /* of this reading of the shape; never used again */
  char *schema, *name;
  char *refused;  /* why no query over it is taken, or NULL */
  char *view_sql; /* of a view: its CREATE VIEW; there are no rows to load then */
  bool indexed;   /* it has an index beside the one it is kept in */
  int n_cols;
  wl_table_column *cols;
  bool tablets; /* a tablet table (src/tablet) */
  bool without_rowid;
  char *key_index;        /* WITHOUT ROWID: the index that is the table */
  const char *rowid_name; /* a name of the rowid that no column hides, or NULL */
  wl_u32 shape[2];        /* cookie and re-prepare count of its schema when it was read */

  /* cached contents */
  bool loaded; /* version, file and n_rows are set */
  wl_u32 version;
  void *file;
  wl_i64 n_rows;          /* of columns: of a tablet table, dead ones among them */
  struct wl_image *image; /* of a tablet table: which rows the columns have */
  wl_column **data;       /* [n_cols + 1], rowid last; NULL if not loaded */
  wl_use *use;            /* [n_cols + 1] */
  wl_i64 n_uses, n_loads;
  bool by_pages;           /* the last load decoded pages; else SQLite stepped it … */
  char why_not[80];        /* … for this reason */
  wl_u32 too_big_version;  /* data version at which it did not fit … */
  wl_i64 estimate;         /* of rows … */
  wl_u32 estimate_version; /* … at this data version */
  bool estimated;
  wl_i64 too_big_budget; /* … a host_budget of this size; 0: never */
} wl_table;

typedef struct wl_catalog {
  /* The table or view that a name means now; schema may be NULL. WL_NOT_TAKEN with the reason where
  ** no query over it can be taken. */
  wl_status (*find)(void *of, const char *schema, const char *name, wl_table **out, wl_error *err);
  /* Whether SQLite's own collation (WL_COLL_...) has not been replaced by the application. */
  bool (*own_collation)(void *of, int coll);
  void *of;
} wl_catalog;

#endif
