/*
** Reads separated text for .import: splits a file into windows of whole records and parses each on
** all cores. import.c inserts the records into a table.
**
** A window is cut into one part per thread. The start of a part's first record is guessed from the
** parity of the quotes before it. All parts are parsed at once. Then each guess is compared with
** the real end of the part before it. If a guess was wrong, its part is parsed again.
**
** Invariants:
** 1. The result does not depend on the number of threads or the size of windows. It is what a
**    single reader, going byte by byte from the beginning, would return.
** 2. A cell points into its window, or into its part's own texts; it lives until the window is
**    filled again.
** 3. The parser prints nothing. It returns its messages as notes, in order.
*/
#ifndef WL_CSV_H
#define WL_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct wl_csv_cell {
  const char *z; /* NULL: no value */
  size_t n;
} wl_csv_cell;

typedef enum wl_csv_kind {
  CSV_UNESCAPED,    /* a quote inside a quoted field */
  CSV_UNTERMINATED, /* the file ends inside a quoted field */
  CSV_FEW,          /* a record with fewer fields than columns */
  CSV_MANY          /* a record with more fields than columns */
} wl_csv_kind;

typedef struct wl_csv_note {
  size_t row;  /* a row of the part; the note is printed before the row is inserted */
  size_t line; /* counted from the part's first line */
  wl_csv_kind kind;
  int found; /* the number of fields */
} wl_csv_note;

typedef struct wl_csv_text {
  struct wl_csv_text *next;
  size_t used, size;
  char bytes[];
} wl_csv_text;

typedef struct wl_csv_part {
  wl_csv_cell *cells; /* n_rows × the reader's n_cols */
  size_t *lines;      /* the line where each row begins, counted from the part's first line */
  size_t n_rows, size_rows;
  wl_csv_note *notes;
  size_t n_notes, size_notes;
  wl_csv_text *texts; /* fields whose value differs from the bytes in the file */
  size_t first_line;  /* in the file, counted from 1 */
  size_t n_lines;
  const char *begin, *limit; /* the part of the window */
  const char *start, *end;   /* the records; start is a guess at first */
  size_t n_quotes;
  bool cut_off; /* the window ended inside its last record */
  bool no_memory;
} wl_csv_part;

typedef struct wl_csv_window {
  char *bytes;
  size_t n, size;
  wl_csv_part *parts;
  int n_parts;
  bool last;
  size_t offset; /* the window's end in the file */
} wl_csv_window;

typedef struct wl_csv {
  FILE *in;
  char col_sep, row_sep;
  bool quotes;     /* CSV; else ascii: fields are taken as they are */
  bool skip_blank; /* skip records whose first field is empty */
  int n_cols;      /* how many cells a row has */
  int n_threads;
  size_t window_bytes, least_part;
  size_t line;   /* the line of the next record */
  size_t n_read; /* bytes of the file that were read */
  char *rest;    /* bytes that were read but are not in a window yet */
  size_t n_rest, size_rest;
  bool at_end, begun;
  wl_csv_window window[2];
  volatile bool *stop; /* reading stops when it is set; may be NULL */
} wl_csv;

void wl_csv_open(wl_csv *r, FILE *in, char col_sep, char row_sep, bool quotes);
void wl_csv_close(wl_csv *r);

/* Reads one record with this thread alone, for headers and for records that are skipped. The part
** has its n cells. False: there are no more records, or there is no memory (part->no_memory). */
bool wl_csv_one(wl_csv *r, wl_csv_part *part, int *n);
/* The record has been used; continue behind it in the file. */
void wl_csv_taken(wl_csv *r, const wl_csv_part *part);
void wl_csv_free_part(wl_csv_part *part);

/* Reads the next records into window w (0 or 1). False: out of memory. */
bool wl_csv_fill(wl_csv *r, int w);

/* columns.c: makes an Arrow stream of the records of a window. The caller releases it. False: out
** of memory. */
struct ArrowArrayStream;
bool wl_columns_of(const wl_csv_window *w, int n_cols, struct ArrowArrayStream *out);

#endif
