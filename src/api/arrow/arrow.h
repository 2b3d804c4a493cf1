/*
** What warplite_query() and warplite_query_device() share: opening a stream, and its schema.
*/
#ifndef WL_API_ARROW_H
#define WL_API_ARROW_H

#include "api/open_query.h"
#include "warplite.h"

typedef enum wl_arrow_format {
  WL_ARROW_NULL,
  WL_ARROW_INT,
  WL_ARROW_REAL,
  WL_ARROW_TEXT,
  WL_ARROW_BLOB,
  WL_ARROW_UNION
} wl_arrow_format;

typedef struct wl_arrow_stream {
  wl_opened of;             /* the statement */
  wl_arrow_format *formats; /* [of.n_cols] */
  char message[512];
  bool failed;
} wl_arrow_stream;

/* Runs a text. stmt: the statement with its parameters, or NULL: they are NULL. stays: takes the
** rows if they can stay on the device, or NULL. If they do (stays->on_device), the statement has
** ended, and nothing in the stream belongs to the connection. Returns a result code of SQLite. */
int wl_arrow_open(sqlite3 *db, const char *sql, sqlite3_stmt *stmt, struct wl_device_rows *stays,
                  wl_arrow_stream **out);
/* The same with the text and the bindings of a statement. */
int wl_arrow_open_stmt(sqlite3_stmt *stmt, struct wl_device_rows *stays, wl_arrow_stream **out);
void wl_arrow_close(wl_arrow_stream *s); /* of a stream that was not exported */
/* Gives the rows on the host to the user. The stream then belongs to *out. */
void wl_arrow_export(wl_arrow_stream *s, struct ArrowArrayStream *out);
/* Writes the schema. large: texts and blobs have 64-bit offsets. Returns 0 or ENOMEM. */
int wl_arrow_schema(wl_arrow_stream *s, bool large, struct ArrowSchema *out);
/* Gives an array n empty children. Returns 0, or ENOMEM: then a->n_children of them are there. */
int wl_arrow_children_make(struct ArrowArray *a, int n);
void wl_arrow_children_close(struct ArrowArray *a); /* releases and frees them */

#endif
