/*
** The inside of wl_image, shared by image.c (positions of rows), image_columns.c (columns),
** image_borrow.c (segments of the previous image), image_dict.c (dictionaries) and image_read.c
** (reading blobs and decoding them on threads).
*/
#ifndef WL_IMAGE_IMPL_H
#define WL_IMAGE_IMPL_H

#include "tablet/read/image.h"
#include <pthread.h>

/* Consecutive rows: those of a tablet's blobs, or a chunk of its range with the delta merged in. */
typedef struct wl_part {
  int tablet;
  bool merged;
  wl_i32 n_rows;
} wl_part;

/* One tablet of the image: parts in sequence, then copies of the last row. */
typedef struct wl_image_tablet {
  int first, n; /* its parts */
  wl_i32 n_rows, n_slots;
  bool merged; /* it has a merged part */
} wl_image_tablet;

/* What a segment was made from: blobs, and the patch if it is made from one blob. */
typedef struct wl_made {
  wl_u64 key;      /* hash of the blobs, their patches and their meaning; 0: it has merged rows */
  wl_u64 base;     /* the same without patches; 0: it is made from several blobs */
  wl_patch *patch; /* held, or NULL */
} wl_made;

/* What a column's segments were made from. */
typedef struct wl_origin {
  wl_column *column; /* in the previous image: held; in this one the caller holds it */
  wl_made *made;     /* [n] */
  int n;
  wl_u64 dict;  /* the file's dictionary if its own has exactly these texts, or 0 */
  wl_u32 *map;  /* codes of the file to its own, of length n_map; NULL: they are equal */
  wl_i32 n_map; /* entries of map */
} wl_origin;

struct wl_image {
  wl_u64 version;
  int n_cols; /* columns of the table as the caller counts them; the rowid comes last */
  wl_part *parts;
  int n_parts, size_parts;
  wl_image_tablet *tablets;
  int n_tablets, size_tablets;
  bool merged; /* it has a merged part */
  wl_i64 n_slots, n_live;
  wl_column *live;
  wl_origin *now;    /* [n_cols + 1] */
  wl_origin *before; /* [n_cols + 1] */
};

void wl_origin_clear(wl_origin *o);
void wl_made_free(wl_made *made, int n); /* accepts NULL */

/* ---- a load */

typedef enum wl_form {
  FORM_INT,   /* integers of a known width */
  FORM_REAL,  /* reals, whose width is known at the end */
  FORM_CODE,  /* codes of a dictionary */
  FORM_TEXT,  /* plain texts */
  FORM_ANY,   /* values of several types */
  FORM_STAGED /* all rows are merged: made like a column of an ordinary table */
} wl_form;

typedef struct wl_making_col {
  int col; /* column in the file; n_cols is the rowid */
  wl_form form;
  wl_u8 phys;
  const wl_file_dict *file; /* or NULL */
  wl_dict *dict;            /* its own dictionary, held */
  wl_u64 dict_id;           /* as wl_origin.dict */
  wl_u32 *map;              /* or NULL */
  wl_i32 n_map;
  wl_segment *merged;   /* [parts] merged parts, until they are used */
  wl_segment *segments; /* [tablets] */
  wl_made *made;        /* [tablets] */
  wl_origin *before;    /* or NULL */
  wl_slab *slab;        /* where data is allocated now, under the job's lock */
} wl_making_col;

/* A tablet of a column to decode. */
typedef struct wl_image_unit {
  wl_making_col *m;
  int tablet;
} wl_image_unit;

typedef struct wl_image_job {
  wl_image *im;
  wl_tablets *t;
  const wl_image_how *how;
  wl_making_col *cols;
  int n_cols, max_parts;
  wl_image_unit *units;
  long n_units;
  pthread_mutex_t lock;
  wl_status status;
  wl_error error;
  _Atomic size_t n_bytes;
  atomic_bool failed;
} wl_image_job;

static inline bool wl_image_valid(const wl_segment *s, wl_i32 i) {
  return !s->valid || (s->valid[i >> 3] >> (i & 7) & 1);
}
static inline const wl_zone *wl_image_zone(const wl_image_job *j, const wl_making_col *m,
                                           int part) {
  return &wl_tablets_at(j->t, j->im->parts[part].tablet)->zones[m->col];
}

/* Fails with SQLITE_CORRUPT, naming the column and the tablet. */
wl_status wl_image_corrupt(const wl_image_job *j, const wl_making_col *m, int tablet,
                           const char *what, wl_error *err);

/* Makes the dictionary of a column of codes, and converts the merged rows to its codes. If it would
** be too large, the column becomes one of texts. */
wl_status wl_image_make_dict(wl_image_job *j, wl_making_col *m, wl_error *err) WL_MUST;
/* Converts numbers of texts (codes of the file, then those that only the delta has) to codes of the
** column's dictionary. */
wl_status wl_image_translate(const wl_making_col *m, const void *from, wl_u8 from_phys,
                             wl_segment *s) WL_MUST;
/* Replaces codes of the file by texts. The heap gets each text once. */
wl_status wl_image_spell(const wl_file_dict *f, wl_segment *s) WL_MUST;

/* Makes a unit from the blobs of its parts. The blob of part i is buf[at[i]] to buf[at[i + 1]],
** empty for a merged part. Can run on any thread. */
wl_status wl_image_make_unit(wl_image_job *j, const wl_image_unit *u, const wl_u8 *buf,
                             const size_t *at, wl_error *err) WL_MUST;
/* Decodes a patch into the column's form, and replaces the rows that it changes. */
wl_status wl_image_apply_patch(wl_image_job *j, wl_making_col *m, int part, const wl_patch *p,
                               wl_segment *s, wl_error *err) WL_MUST;
/* Says what the segments of a column will be made from. */
void wl_image_describe(const wl_image_job *j, wl_making_col *m);
/* Uses segments of the previous image: those made from the same blobs, and those that only need
** more patched rows. */
wl_status wl_image_borrow(wl_image_job *j, wl_making_col *m, wl_error *err) WL_MUST;
/* Reads the blobs of all units and decodes them. */
wl_status wl_image_run_units(wl_image_job *j, wl_error *err) WL_MUST;

#endif
