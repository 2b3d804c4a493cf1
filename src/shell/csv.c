/*
** The parser of csv.h. Fields end, and misplaced quotes are handled, as in the sqlite3 shell:
**
**   A field that begins with a quote ends at a quote before a separator or the end of the file. A
**   CR may be between the quote and the row separator. Two quotes mean one. Any other quote is part
**   of the value, and there is a note about it. A field that does not begin with a quote ends at
**   the next separator. Quotes in it have no meaning, and a CR before the row separator is dropped.
**
** Invariants: those of csv.h, and
** 1. Every row separator counts as a line, also in quotes.
*/
#include "csv.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW_BYTES = 1 << 25, LEAST_PART = 1 << 15, MAX_THREADS = 256, TEXT_BYTES = 1 << 16 };

/* ---- a part's memory */

static char *text_room(wl_csv_part *p, size_t n) {
  if (!p->texts || p->texts->size - p->texts->used < n) {
    size_t size = n > TEXT_BYTES ? n : TEXT_BYTES;
    wl_csv_text *t = malloc(sizeof *t + size);
    if (!t) return NULL;
    *t = (wl_csv_text){.next = p->texts, .size = size};
    p->texts = t;
  }
  return p->texts->bytes + p->texts->used;
}

static void empty_part(wl_csv_part *p) {
  while (p->texts) {
    wl_csv_text *next = p->texts->next;
    free(p->texts);
    p->texts = next;
  }
  p->n_rows = p->n_notes = p->n_lines = 0;
  p->cut_off = p->no_memory = false;
}

void wl_csv_free_part(wl_csv_part *p) {
  empty_part(p);
  free(p->cells);
  free(p->lines);
  free(p->notes);
  memset(p, 0, sizeof *p);
}

static bool note(wl_csv_part *p, wl_csv_kind kind, size_t line, int found) {
  if (p->n_notes == p->size_notes) {
    size_t size = p->size_notes ? p->size_notes * 2 : 16;
    wl_csv_note *q = realloc(p->notes, size * sizeof *q);
    if (!q) return false;
    p->notes = q;
    p->size_notes = size;
  }
  p->notes[p->n_notes++] = (wl_csv_note){p->n_rows, line, kind, found};
  return true;
}

static bool row_room(wl_csv_part *p, int n_cols) {
  if (p->n_rows < p->size_rows) return true;
  size_t size = p->size_rows ? p->size_rows * 2 : 1024;
  wl_csv_cell *cells = realloc(p->cells, size * (size_t)n_cols * sizeof *cells);
  if (cells) p->cells = cells;
  size_t *lines = realloc(p->lines, size * sizeof *lines);
  if (lines) p->lines = lines;
  if (!cells || !lines) return false;
  p->size_rows = size;
  return true;
}

/* ---- fields */

typedef enum outcome { FIELD_MORE, FIELD_ENDS_ROW, FIELD_AT_EOF, FIELD_CUT, FIELD_NOMEM } outcome;

/* A place in the window: the bytes that are left, and whether the file ends with them. */
typedef struct place {
  const char *z, *end;
  bool eof;
  size_t line;
} place;

static size_t count(const char *z, size_t n, char c) {
  size_t k = 0;
  for (size_t i = 0; i < n; i++) k += z[i] == c;
  return k;
}

/* Copies a quoted field that is not plain, byte by byte, into the part's texts. at is the byte
** after its quote. */
static outcome odd_field(const wl_csv *r, wl_csv_part *p, place *at, wl_csv_cell *out) {
  size_t first_line = at->line, n = 0, size = 256;
  char *to = text_room(p, size);
  int before = 0, before_that = 0; /* the last two bytes copied; 0 after a pair of quotes */
  if (!to) return FIELD_NOMEM;
  for (;; at->z++) {
    bool eof = at->z == at->end;
    if (eof && !at->eof) return FIELD_CUT;
    int c = eof ? -1 : (unsigned char)*at->z;
    bool row_ends = !eof && (char)c == r->row_sep;
    if (row_ends) at->line++;
    if (c == '"' && before == '"') {
      before = 0;
      continue;
    }
    bool closed = before == '"' && (eof || row_ends || (char)c == r->col_sep);
    if (closed || (row_ends && before == '\r' && before_that == '"')) {
      while (to[--n] != '"') continue;
      *out = (wl_csv_cell){to, n};
      p->texts->used += n + 1;
      if (eof) return FIELD_AT_EOF;
      at->z++;
      return row_ends ? FIELD_ENDS_ROW : FIELD_MORE;
    }
    if (before == '"' && c != '\r' && !note(p, CSV_UNESCAPED, at->line, 0)) return FIELD_NOMEM;
    if (eof) {
      *out = (wl_csv_cell){to, n};
      p->texts->used += n + 1;
      return note(p, CSV_UNTERMINATED, first_line, 0) ? FIELD_AT_EOF : FIELD_NOMEM;
    }
    if (n + 1 >= size) {
      char *old = to;
      size *= 2;
      if (!(to = text_room(p, size))) return FIELD_NOMEM;
      if (to != old) memcpy(to, old, n);
    }
    to[n++] = (char)c;
    before_that = before;
    before = c;
  }
}

static outcome quoted_field(const wl_csv *r, wl_csv_part *p, place *at, wl_csv_cell *out) {
  const char *begin = ++at->z;
  const char *q = memchr(begin, '"', (size_t)(at->end - begin));
  if (!q || q + 1 == at->end || (q[1] != r->col_sep && q[1] != r->row_sep) || q[1] == '"')
    return odd_field(r, p, at, out);
  *out = (wl_csv_cell){begin, (size_t)(q - begin)};
  at->line += count(begin, out->n, r->row_sep);
  at->z = q + 2;
  if (q[1] != r->row_sep) return FIELD_MORE;
  at->line++;
  return FIELD_ENDS_ROW;
}

/* Reads the next field. If the file ends where a field would begin, the field has no value. */
static outcome field(const wl_csv *r, wl_csv_part *p, place *at, wl_csv_cell *out) {
  const char *z = at->z, *end = at->end;
  char col_sep = r->col_sep, row_sep = r->row_sep;
  if (z == end) {
    *out = (wl_csv_cell){NULL, 0};
    return at->eof ? FIELD_AT_EOF : FIELD_CUT;
  }
  if (r->quotes && *z == '"') return quoted_field(r, p, at, out);
  while (z < end && *z != col_sep && *z != row_sep) z++;
  *out = (wl_csv_cell){at->z, (size_t)(z - at->z)};
  if (z == end) {
    at->z = z;
    return at->eof ? FIELD_AT_EOF : FIELD_CUT;
  }
  at->z = z + 1;
  if (*z == col_sep) return FIELD_MORE;
  at->line++;
  if (r->quotes && out->n && z[-1] == '\r') out->n--;
  return FIELD_ENDS_ROW;
}

/* ---- records */

/* Ends values at a NUL byte, like C strings. */
static void cut_at_nul(wl_csv_cell *cells, int n) {
  for (int i = 0; i < n; i++)
    if (cells[i].z) cells[i].n = strnlen(cells[i].z, cells[i].n);
}

/* Reads a record as the next row of the part. The place is not the end of the file. */
static outcome record(const wl_csv *r, wl_csv_part *p, place *at, bool has_nul) {
  size_t line = at->line, n_notes = p->n_notes;
  int n = 0, n_cols = r->n_cols;
  outcome o = FIELD_MORE;
  wl_csv_cell extra;
  if (!row_room(p, n_cols)) return FIELD_NOMEM;
  wl_csv_cell *cells = p->cells + p->n_rows * (size_t)n_cols;
  while (o == FIELD_MORE) {
    o = field(r, p, at, n < n_cols ? &cells[n] : &extra);
    n++;
  }
  if (o == FIELD_CUT) p->n_notes = n_notes; /* the record will be parsed again with its notes */
  if (o == FIELD_CUT || o == FIELD_NOMEM) return o;
  if (has_nul) cut_at_nul(cells, n < n_cols ? n : n_cols);
  if (r->skip_blank && cells[0].n == 0) {
    if (n > 1 && !note(p, CSV_MANY, line, n - 1)) return FIELD_NOMEM;
    return o;
  }
  if (n < n_cols && !note(p, CSV_FEW, line, n)) return FIELD_NOMEM;
  if (n > n_cols && !note(p, CSV_MANY, line, n)) return FIELD_NOMEM;
  while (n < n_cols) cells[n++] = (wl_csv_cell){NULL, 0};
  p->lines[p->n_rows++] = line;
  return o;
}

/* Parses the records of a part: those that begin before its limit. */
static void parse_part(const wl_csv *r, wl_csv_part *p, const char *end, bool eof, bool has_nul) {
  place at = {p->start, end, eof, 0};
  empty_part(p);
  while (at.z < p->limit) {
    const char *begin = at.z;
    size_t line = at.line;
    outcome o = record(r, p, &at, has_nul);
    if (o == FIELD_NOMEM) p->no_memory = true;
    if (o == FIELD_CUT) {
      p->cut_off = true;
      at.z = begin;
      at.line = line;
    }
    if (o == FIELD_NOMEM || o == FIELD_CUT) break;
  }
  p->end = at.z;
  p->n_lines = at.line;
}

/* Guesses where the first record of a part begins. It is right if there are no misplaced quotes. */
static const char *guess(const wl_csv *r, const wl_csv_part *p, const char *end, bool quoted) {
  const char *z = p->begin;
  /* the part before ends after the first row separator at or after its last byte */
  for (z--; z < end; z++) {
    if (r->quotes && *z == '"' && z >= p->begin) quoted = !quoted;
    if (*z == r->row_sep && !quoted) return z + 1;
  }
  return end;
}

/* ---- windows */

typedef struct work {
  const wl_csv *r;
  wl_csv_window *w;
  const char *end;
  bool has_nul, counting;
  int first; /* the index of this thread's part */
} work;

static void *part_thread(void *arg) {
  work *k = arg;
  wl_csv_part *p = &k->w->parts[k->first];
  if (k->counting)
    p->n_quotes = k->r->quotes ? count(p->begin, (size_t)(p->limit - p->begin), '"') : 0;
  else
    parse_part(k->r, p, k->end, k->w->last, k->has_nul);
  return NULL;
}

/* Does the work for every part, each on its own thread. The last one runs on this thread. */
static void all_parts(work *k) {
  pthread_t threads[MAX_THREADS];
  work works[MAX_THREADS];
  bool on[MAX_THREADS];
  int n = k->w->n_parts;
  for (int i = 0; i < n; i++) {
    works[i] = *k;
    works[i].first = i;
    on[i] = i + 1 < n && pthread_create(&threads[i], NULL, part_thread, &works[i]) == 0;
    if (!on[i]) part_thread(&works[i]);
  }
  for (int i = 0; i < n; i++)
    if (on[i]) pthread_join(threads[i], NULL);
}

/* Parses a window. Returns how many of its bytes are whole records, or -1 if there is no memory. */
static long long parse_window(wl_csv *r, wl_csv_window *w) {
  const char *end = w->bytes + w->n;
  size_t want = w->n / r->least_part;
  int n = want < 1 ? 1 : want > (size_t)r->n_threads ? r->n_threads : (int)want;
  work k = {r, w, end, memchr(w->bytes, 0, w->n) != NULL, true, 0};
  w->n_parts = n;
  for (int i = 0; i < n; i++) {
    w->parts[i].begin = w->bytes + w->n / (size_t)n * (size_t)i;
    w->parts[i].limit = i + 1 < n ? w->bytes + w->n / (size_t)n * (size_t)(i + 1) : end;
  }
  if (n > 1) all_parts(&k);
  bool quoted = false;
  for (int i = 0; i < n; i++) {
    w->parts[i].start = i ? guess(r, &w->parts[i], end, quoted) : w->bytes;
    quoted ^= w->parts[i].n_quotes & 1;
  }
  k.counting = false;
  all_parts(&k);

  const char *at = w->bytes;
  for (int i = 0; i < n; i++) {
    wl_csv_part *p = &w->parts[i];
    if (p->start != at && at < p->limit) {
      p->start = at;
      parse_part(r, p, end, w->last, k.has_nul);
    } else if (p->start != at) {
      empty_part(p); /* a record of the part before goes beyond the limit of this part */
      p->end = at;
    }
    if (p->no_memory) return -1;
    p->first_line = r->line;
    r->line += p->n_lines;
    at = p->end;
    if (p->cut_off) {
      w->n_parts = i + 1;
      break;
    }
  }
  return at - w->bytes;
}

static bool grow(char **bytes, size_t *size, size_t need) {
  if (need <= *size) return true;
  char *z = realloc(*bytes, need);
  if (!z) return false;
  *bytes = z;
  *size = need;
  return true;
}

/* Reads up to want bytes of the file. */
static size_t read_more(wl_csv *r, char *to, size_t want) {
  size_t n = r->at_end || (r->stop && *r->stop) ? 0 : fread(to, 1, want, r->in);
  if (n < want) r->at_end = true;
  r->n_read += n;
  return n;
}

static bool begin(wl_csv *r, char *bytes, size_t *n) {
  if (r->begun) return false;
  r->begun = true;
  if (!r->quotes || *n < 3 || memcmp(bytes, "\xef\xbb\xbf", 3) != 0) return false;
  *n -= 3;
  memmove(bytes, bytes + 3, *n);
  return true;
}

bool wl_csv_fill(wl_csv *r, int which) {
  wl_csv_window *w = &r->window[which];
  size_t want = r->window_bytes;
  if (!w->parts && !(w->parts = calloc((size_t)r->n_threads, sizeof *w->parts))) return false;
  for (int i = 0; i < r->n_threads; i++) empty_part(&w->parts[i]);
  w->n = 0;
  w->n_parts = 0;
  for (;;) {
    if (want < r->n_rest * 2) want = r->n_rest * 2; /* one record is longer than a window */
    if (!grow(&w->bytes, &w->size, want)) return false;
    if (r->n_rest) memcpy(w->bytes, r->rest, r->n_rest);
    w->n = r->n_rest;
    w->n += read_more(r, w->bytes + w->n, want - w->n);
    begin(r, w->bytes, &w->n);
    w->last = r->at_end;
    w->offset = r->n_read;
    if (!w->n) return true;
    long long used = parse_window(r, w);
    if (used < 0) return false;
    r->n_rest = w->n - (size_t)used;
    if (!grow(&r->rest, &r->size_rest, r->n_rest)) return false;
    if (r->n_rest) memcpy(r->rest, w->bytes + used, r->n_rest);
    if (used || w->last) return true;
  }
}

bool wl_csv_one(wl_csv *r, wl_csv_part *p, int *n) {
  outcome o;
  do {
    place at = {r->rest, r->rest + r->n_rest, r->at_end, 0};
    empty_part(p);
    *n = 0;
    o = FIELD_CUT;
    if (r->begun && r->at_end && !r->n_rest) return false;
    for (o = FIELD_MORE; r->begun && o == FIELD_MORE;) {
      wl_csv_cell cell;
      o = field(r, p, &at, &cell);
      if (!row_room(p, 1) || o == FIELD_NOMEM) {
        p->no_memory = true;
        return false;
      }
      cut_at_nul(&cell, 1);
      p->cells[p->n_rows++] = cell;
      if (cell.z) *n = (int)p->n_rows;
    }
    if (!r->begun || o == FIELD_CUT) {
      size_t more = r->n_rest > TEXT_BYTES ? r->n_rest : TEXT_BYTES;
      if (!grow(&r->rest, &r->size_rest, r->n_rest + more)) {
        p->no_memory = true;
        return false;
      }
      r->n_rest += read_more(r, r->rest + r->n_rest, more);
      begin(r, r->rest, &r->n_rest);
      o = FIELD_CUT;
      continue;
    }
    /* the cells point into rest, which must not change before wl_csv_taken */
    p->first_line = r->line;
    p->end = at.z;
    r->line += at.line;
  } while (o == FIELD_CUT);
  return true;
}

void wl_csv_taken(wl_csv *r, const wl_csv_part *p) {
  size_t used = (size_t)(p->end - r->rest);
  r->n_rest -= used;
  memmove(r->rest, r->rest + used, r->n_rest);
}

void wl_csv_open(wl_csv *r, FILE *in, char col_sep, char row_sep, bool quotes) {
  const char *test = getenv("WARPLITE_IMPORT"); /* "threads,bytes of a window", for tests */
  const char *comma = test ? strchr(test, ',') : NULL;
  long cores = test ? atol(test) : sysconf(_SC_NPROCESSORS_ONLN);
  long bytes = comma ? atol(comma + 1) : 0;
  memset(r, 0, sizeof *r);
  r->in = in;
  r->col_sep = col_sep;
  r->row_sep = row_sep;
  r->quotes = quotes;
  r->line = 1;
  r->n_threads = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (int)cores;
  r->window_bytes = bytes > 0 ? (size_t)bytes : WINDOW_BYTES;
  r->least_part = r->window_bytes / 64 < LEAST_PART ? r->window_bytes / 64 + 1 : LEAST_PART;
}

void wl_csv_close(wl_csv *r) {
  for (int i = 0; i < 2; i++) {
    wl_csv_window *w = &r->window[i];
    for (int k = 0; w->parts && k < r->n_threads; k++) wl_csv_free_part(&w->parts[k]);
    free(w->parts);
    free(w->bytes);
  }
  free(r->rest);
  memset(r, 0, sizeof *r);
}
