/*
** The catalog: what the binder asks about tables, views and collations, and what a table looks
** like. Whoever has tables implements it (store/schema.c); the binder knows nothing else of them.
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
  bool hidden;   /* not part of * */
  bool computed; /* generated when read */
  bool rowid;    /* another name of the rowid */
  bool not_null; /* declared so */
} wl_table_column;

/* A table or view, whatever names lead to it. Column -1 is the rowid. */
typedef struct wl_table {
  wl_u64 id; /* of this reading of the shape; never used again */
  char *schema, *name;
  char *refused;  /* why no query over it is taken, or NULL */
  char *view_sql; /* of a view: its CREATE VIEW; there are no rows to load then */
  bool indexed;   /* it has an index beside the one that stores it */
  int n_cols;
  wl_table_column *cols;
  bool without_rowid;
  char *key_index;        /* WITHOUT ROWID: the index that is the table */
  const char *rowid_name; /* a name of the rowid that no column hides, or NULL */
  wl_source *source;      /* its columns; a view has none to give */
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
