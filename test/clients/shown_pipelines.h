/*
** Reads the pipelines that EXPLAIN lists, and those that EXPLAIN QUERY PLAN and EXPLAIN ANALYZE
** draw as a tree, so that they can be compared.
**
** Invariants:
** 1. In a tree, a pipeline needs the pipelines on the lines under it, down to the next pipelines.
*/
#ifndef TEST_SHOWN_PIPELINES_H
#define TEST_SHOWN_PIPELINES_H

#include <stdlib.h>
#include <string.h>

#include "../rows.h"

enum { MOST = 64, WORDS = 100 };

/* A pipeline, as one of the three shows it. Needs are a bit for each number. */
typedef struct shown {
  char machine[8], leaves[WORDS], source[WORDS];
  unsigned long long needs;
  int n_joins;
  bool distinct, sorts, cuts;
} shown;

/* ---- EXPLAIN */

static const char *text(const rows *r, size_t row, int col) {
  const cell *x = &r->cells[row * (size_t)r->n_col + (size_t)col];
  return x->type == SQLITE_TEXT ? r->bytes + x->u.off : "";
}

static sqlite3_int64 number(const rows *r, size_t row, int col) {
  return r->cells[row * (size_t)r->n_col + (size_t)col].u.i;
}

static bool begins_with(const char *s, const char *with) {
  return strncmp(s, with, strlen(with)) == 0;
}

/* What follows a word. */
static const char *after(const char *s, const char *word) {
  const char *at = strstr(s, word);
  return at ? at + strlen(word) : "";
}

/* Copies what is between two words; if the second is not there, all that follows. */
static void between(const char *s, const char *from, const char *to, char *out, size_t n) {
  const char *at = after(s, from), *end = strstr(at, to);
  snprintf(out, n, "%.*s", end ? (int)(end - at) : (int)strlen(at), at);
}

/* Reads the listing. Returns the number of pipelines; -1: it is not one. */
static int read_listing(const rows *r, shown *s) {
  int n = 0;
  if (r->rc != SQLITE_DONE || r->n_col != 8) return -1;
  for (size_t i = 0; i < r->n_rows; i++) {
    const char *op = text(r, i, 1);
    if (!strcmp(op, "Scan") || !strcmp(op, "Unmatched")) {
      if (atoi(text(r, i, 2)) != ++n || n >= MOST) return -1;
      snprintf(s[n].machine, 4, "%s", after(text(r, i, 7), "on the "));
      between(text(r, i, 7), "leaves ", "\n", s[n].leaves, WORDS);
      between(text(r, i, 5), "", " (", s[n].source, WORDS);
      for (const char *at = text(r, i, 3); *at; at += strspn(at, ", ")) {
        s[n].needs |= 1ull << atoi(at);
        at += strspn(at, "0123456789");
      }
    }
    if (!n) return -1;
    s[n].n_joins += !strcmp(op, "Probe") || !strcmp(op, "Expand");
    s[n].distinct |= !strcmp(op, "Distinct");
    s[n].sorts |= !strcmp(op, "Sort");
    s[n].cuts |= !strcmp(op, "Limit");
  }
  return n;
}

/* ---- trees */

/* The number of the pipeline whose line has this id, or of the one above it. */
static int pipeline_of(const rows *r, sqlite3_int64 id) {
  for (size_t i = 0; i < r->n_rows; i++)
    if (number(r, i, 0) == id)
      return begins_with(text(r, i, 3), "PIPELINE ") ? atoi(text(r, i, 3) + 9)
                                                     : pipeline_of(r, number(r, i, 1));
  return 0;
}

/* Reads the tree. Returns the number of pipelines; -1: one is missing, or is there twice. */
static int read_tree(const rows *r, shown *s) {
  int n = 0, n_drawn = 0;
  if (r->rc != SQLITE_DONE || r->n_col != 4) return -1;
  for (size_t i = 0; i < r->n_rows; i++) {
    const char *d = text(r, i, 3);
    int above = pipeline_of(r, number(r, i, 1)), k = begins_with(d, "PIPELINE ") ? atoi(d + 9) : 0;
    if (k >= MOST) return -1;
    if (k) s[above].needs |= above ? 1ull << k : 0;
    if (k && !strstr(d, ", as above")) {
      if (*s[k].machine) return -1;
      snprintf(s[k].machine, 4, "%s", after(d, " on the "));
      between(d, " leaves ", ": ", s[k].leaves, WORDS);
      const char *sink = after(d, ": ");
      s[k].distinct = begins_with(sink, "DISTINCT by ") && strstr(sink, " column");
      s[k].sorts = begins_with(sink, "ORDER BY ");
      if (k > n) n = k;
      n_drawn++;
    }
    if (begins_with(d, "UNMATCHED ")) snprintf(s[above].source, WORDS, "%s", d + 10);
    if (begins_with(d, "SCAN ")) snprintf(s[above].source, WORDS, "%s", d + 5);
    s[above].n_joins += strstr(d, " JOIN ") != NULL || begins_with(d, "REDUCED BY ");
    s[above].cuts |= begins_with(d, "LIMIT ") || begins_with(d, "OFFSET ");
  }
  return n_drawn == n ? n : -1;
}

/* Whether a SCAN line ("t AS x columns …") is about this source ("x"). */
static bool same_source(const char *scan, const char *source) {
  size_t n = strlen(source);
  const char *as = strstr(scan, " AS ");
  if (as && !strncmp(as + 4, source, n)) return true;
  return !strncmp(scan, source, n) || !strcmp(source, "a subquery");
}

static bool same(const shown *a, const shown *tree) {
  return !strcmp(a->machine, tree->machine) && !strcmp(a->leaves, tree->leaves) &&
         same_source(tree->source, a->source) && a->needs == tree->needs &&
         a->n_joins == tree->n_joins && a->distinct == tree->distinct && a->sorts == tree->sorts &&
         a->cuts == tree->cuts;
}

#endif
