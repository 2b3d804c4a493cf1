/*
** The catalog: what the binder can ask about tables, views and collations, and how a table is
** described. store/schema.c implements it. The binder knows nothing else about tables.
*/
#ifndef WL_CATALOG_H
#define WL_CATALOG_H

#include "base/sqlite.h"
#include "base/status.h"
#include "column/source.h"

typedef struct wl_table_column {
  char *name, *decl;
  char affinity; /* 'A' blob, 'B' text, 'C' numeric, 'D' integer, 'E' real */
  wl_u8 coll;
  bool hidden;   /* left out of * */
  bool computed; /* generated when read */
  bool rowid;    /* another name of the rowid */
  bool not_null; /* declared NOT NULL */
} wl_table_column;

/* A table or view, by any of its names. Column -1 is the rowid. */
typedef struct wl_table {
  wl_u64 id; /* new each time the schema is read; never reused */
  char *schema, *name;
  char *refused;  /* why no query over it is taken, or NULL */
  char *view_sql; /* for a view: its CREATE VIEW; a view has no rows to load */
  bool indexed;   /* it has an index other than the one that stores it */
  int n_cols;
  wl_table_column *cols;
  bool without_rowid;
  char *key_index;        /* WITHOUT ROWID: the index that is the table */
  const char *rowid_name; /* a name of the rowid that no column hides, or NULL */
  wl_source *source;      /* gives its columns; NULL for a view */
} wl_table;

typedef struct wl_catalog {
  /* The table or view that a name means now; schema may be NULL. Returns WL_NOT_TAKEN with the
  ** reason if no query over it can run natively. */
  wl_status (*find)(void *of, const char *schema, const char *name, wl_table **out, wl_error *err);
  /* Whether a built-in collation (WL_COLL_...) is SQLite's: the application has not replaced it. */
  bool (*own_collation)(void *of, int coll);
  void *of;
} wl_catalog;

#endif
