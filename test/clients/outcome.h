/*
** What the fuzzers (fuzz.c, joinfuzz.c) do with answers once they are there: sort them as
** multisets, print them, count the reasons for going native or not.
**
** Invariants:
** 1. Rows are sorted by the columns that must agree by bits first, by the others last, so that
**    the last digits of a sum do not decide which row stands beside which.
** 2. Reasons are counted without the numbers in them.
*/
#ifndef TEST_OUTCOME_H
#define TEST_OUTCOME_H

#include "../rows.h"

enum { MAX_REASONS = 200 };

typedef struct reasons {
  struct {
    char text[120];
    long n;
  } of[MAX_REASONS];
  int n;
} reasons;

static void note_reason(reasons *w, const char *reason) {
  char text[120];
  size_t n = 0;
  for (const char *p = reason; *p && n + 1 < sizeof text; p++)
    if (*p < '0' || *p > '9')
      text[n++] = *p;
    else if (n == 0 || text[n - 1] != 'N')
      text[n++] = 'N';
  text[n] = 0;
  int i = 0;
  while (i < w->n && strcmp(w->of[i].text, text)) i++;
  if (i == MAX_REASONS) return;
  if (i == w->n) memcpy(w->of[w->n++].text, text, sizeof text);
  w->of[i].n++;
}

/* The most frequent first, and forgets them. */
static void print_reasons(reasons *w, int most) {
  for (int shown = 0; shown < most; shown++) {
    int best = -1;
    for (int i = 0; i < w->n; i++)
      if (w->of[i].n && (best < 0 || w->of[i].n > w->of[best].n)) best = i;
    if (best < 0) return;
    printf("  %8ld  %.80s\n", w->of[best].n, w->of[best].text);
    w->of[best].n = 0;
  }
}

static const rows *sorted_rows;
static const bool *sorted_last;

static int by_cells(const void *x, const void *y) {
  const cell *a = *(cell *const *)x, *b = *(cell *const *)y;
  for (int last = 0; last < 2; last++)
    for (int c = 0; c < sorted_rows->n_col; c++) {
      int d = sorted_last[c] == (last == 1) ? cell_order(sorted_rows, &a[c], &b[c]) : 0;
      if (d) return d;
    }
  return 0;
}

/* last[c]: column c may differ a little; as many as r has columns. */
static void sort_rows(rows *r, const bool *last) {
  size_t k = (size_t)r->n_col;
  if (r->n_rows < 2 || k == 0) return;
  cell **at = must(malloc(r->n_rows * sizeof *at));
  cell *copy = must(malloc(r->n_rows * k * sizeof *copy));
  for (size_t i = 0; i < r->n_rows; i++) at[i] = r->cells + i * k;
  sorted_rows = r;
  sorted_last = last;
  qsort(at, r->n_rows, sizeof *at, by_cells);
  for (size_t i = 0; i < r->n_rows; i++) memcpy(copy + i * k, at[i], k * sizeof *copy);
  memcpy(r->cells, copy, r->n_rows * k * sizeof *copy);
  free(at);
  free(copy);
}

static void print_rows(const char *who, const rows *r) {
  char text[256];
  if (r->rc != SQLITE_DONE) {
    printf("-- %s: error %d, %s\n", who, r->xrc, r->err);
    return;
  }
  printf("-- %s: %zu rows\n", who, r->n_rows);
  for (size_t i = 0; i < r->n_rows && i < 12; i++) {
    printf("--  ");
    for (int c = 0; c < r->n_col; c++)
      printf(" %s", cell_text(r, &r->cells[i * (size_t)r->n_col + (size_t)c], text, sizeof text));
    printf("\n");
  }
}

#endif
