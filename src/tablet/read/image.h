/*
** The image of a tablet table: its columns in memory, as queries run over them. Stands between
** source.c, which is asked for columns, and table.h, which has the tablets of the file.
**
** An image tablet is a full tablet of the file as it is, or several short ones in a row, or rows
** that the delta was merged into. All but the last are filled up to 65,536 rows with copies of
** their last row. Rows that do not count, dead ones and those copies, are 0 in the column `live`.
**
** Invariants:
** 1. An image is of one version of its table. All columns made of it have the same rows, in the
**    order of rowids, live or not.
** 2. Every image tablet has a live row. Without dead rows and copies there is no live column.
** 3. A segment is shared with the column of the image before where it comes from the same blobs
**    and has the same form; else it is read again.
*/
#ifndef WL_IMAGE_H
#define WL_IMAGE_H

#include "tablet/table/table.h"

typedef struct wl_image wl_image;
struct wl_pages;

/* How a load is to be done. */
typedef struct wl_image_how {
  int n_threads;
  size_t limit;                                 /* of bytes; 0: any */
  wl_status (*check)(void *arg, wl_error *err); /* now and then; or NULL */
  void *check_arg;
  void (*tell)(void *arg, wl_i64 done, wl_i64 total); /* or NULL */
  void *tell_arg;
  struct wl_pages *pages; /* where segments can be read without SQLite; or NULL … */
  wl_u32 root;            /* … and their table's root page */
} wl_image_how;

/* The image of the table as it is, which was refreshed. n_cols counts hidden columns too. */
wl_status wl_image_open(wl_tablets *t, int n_cols, wl_image **out, wl_error *err) WL_MUST;
void wl_image_close(wl_image *im); /* NULL is fine */
/* Lets a column of an image before (NULL: it is not loaded) lend its segments to the one that is
** loaded next. col n_cols is the rowid. */
void wl_image_lend(const wl_image *from, int col, wl_column *column, wl_image *to);

wl_i64 wl_image_slots(const wl_image *im);           /* rows, dead ones and copies too */
wl_i64 wl_image_live(const wl_image *im);            /* rows that are there */
wl_column *wl_image_live_column(const wl_image *im); /* borrowed; NULL: every row counts */

/* Loads columns cols[0..n) (-1 is the rowid) of the image's version into out[0..n), one hold each,
** the caller's. WL_FULL: they take more than how->limit. */
wl_status wl_image_load(wl_image *im, wl_tablets *t, const int *cols, int n,
                        const wl_image_how *how, wl_column **out, wl_error *err) WL_MUST;

/* What it keeps of the image before, and the live column. */
size_t wl_image_bytes(const wl_image *im);
/* Gives up what it keeps of the image before. */
void wl_image_shed(wl_image *im, void (*give)(void *arg, wl_column *c), void *arg);

#endif
