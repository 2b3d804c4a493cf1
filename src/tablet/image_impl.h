/*
** The inside of wl_image, shared by image.c (which rows stand where) and imagecol.c (columns).
*/
#ifndef WL_IMAGE_IMPL_H
#define WL_IMAGE_IMPL_H

#include "tablet/image.h"

/* Rows in a row: those of a tablet's blobs, or a chunk of its range with the delta merged in. */
typedef struct wl_part {
  int tablet;
  bool merged;
  wl_i32 n_rows;
} wl_part;

/* One tablet of the image: parts one behind the other, then copies of the last row. */
typedef struct wl_image_tablet {
  int first, n; /* of the parts */
  wl_i32 n_rows, n_slots;
  bool merged; /* one of its parts is */
} wl_image_tablet;

/* What a column's segments were made from. */
typedef struct wl_origin {
  wl_column *column; /* of the image before: held. Of this image the caller has it */
  wl_u64 *keys;      /* [n] of the blobs of each segment; 0: rows were merged */
  int n;
  wl_u64 dict;  /* the file's dictionary that its own has just the texts of; 0: there is none */
  wl_u32 *map;  /* codes of the file to its own; NULL: they are the same … */
  wl_i32 n_map; /* … or so many */
} wl_origin;

struct wl_image {
  wl_u64 version;
  int n_cols; /* of the table as the caller counts them: the place of the rowid */
  wl_part *parts;
  int n_parts, size_parts;
  wl_image_tablet *tablets;
  int n_tablets, size_tablets;
  bool merged; /* some part is */
  wl_i64 n_slots, n_live;
  wl_column *live;
  wl_origin *now;    /* [n_cols + 1] */
  wl_origin *before; /* [n_cols + 1] */
};

void wl_origin_clear(wl_origin *o);

#endif
