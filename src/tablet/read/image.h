/*
** The image of a tablet table: its columns in memory, as queries run over them. source.c asks for
** the columns, and table.h has the tablets of the file.
**
** An image tablet is a full tablet of the file, or several short ones in sequence, or rows with the
** delta merged in. All but the last are filled up to 65,536 rows with copies of their last row.
** Rows that do not count (dead rows and those copies) are 0 in the column `live`.
**
** Invariants:
** 1. An image is of one version of its table. All columns made of it have the same rows, in rowid
**    order, live or not.
** 2. Every image tablet has a live row. Without dead rows and copies there is no live column.
** 3. A segment is shared with the column of the previous image if it comes from the same blobs and
**    has the same form. Otherwise it is read again.
*/
#ifndef WL_IMAGE_H
#define WL_IMAGE_H

#include "tablet/table/table.h"

typedef struct wl_image wl_image;
struct wl_pages;

/* How to load columns. */
typedef struct wl_image_how {
  int n_threads;
  size_t limit;                                 /* in bytes; 0: no limit */
  wl_status (*check)(void *arg, wl_error *err); /* called from time to time, or NULL */
  void *check_arg;
  void (*tell)(void *arg, wl_i64 done, wl_i64 total); /* called with the progress, or NULL */
  void *tell_arg;
  struct wl_pages *pages; /* reads segments without SQLite, or NULL */
  wl_u32 root;            /* root page of the table of segments, if pages is set */
} wl_image_how;

/* Opens the image of the table's current version, which must have been refreshed. n_cols includes
** hidden columns. */
wl_status wl_image_open(wl_tablets *t, int n_cols, wl_image **out, wl_error *err) WL_MUST;
void wl_image_close(wl_image *im); /* accepts NULL */
/* Lets a column of the previous image lend its segments to the next load. column is NULL if it is
** not loaded. Column n_cols is the rowid. */
void wl_image_lend(const wl_image *from, int col, wl_column *column, wl_image *to);

wl_i64 wl_image_slots(const wl_image *im);           /* rows, including dead ones and copies */
wl_i64 wl_image_live(const wl_image *im);            /* rows that count */
wl_column *wl_image_live_column(const wl_image *im); /* borrowed; NULL: every row counts */

/* Loads columns cols[0..n) (-1 is the rowid) of the image's version into out[0..n), one hold each,
** for the caller. WL_FULL: they take more than how->limit. */
wl_status wl_image_load(wl_image *im, wl_tablets *t, const int *cols, int n,
                        const wl_image_how *how, wl_column **out, wl_error *err) WL_MUST;

/* Bytes of what it keeps of the previous image, and of the live column. */
size_t wl_image_bytes(const wl_image *im);
/* Gives up what it keeps of the previous image. */
void wl_image_shed(wl_image *im, void (*give)(void *arg, wl_column *c), void *arg);

#endif
