/*
** Reads the query files; see queries.h.
*/
#include "queries.h"
#include "literals.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_whole(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = f ? malloc(1 << 16) : NULL;
  size_t n = text ? fread(text, 1, (1 << 16) - 1, f) : 0;
  if (f) fclose(f);
  if (text) text[n] = '\0';
  return text;
}

/* Numbers in names by their value: 2 before 10, 1.2 before 2.1. */
static int by_name(const void *a, const void *b) {
  const struct text_query *x = a, *y = b;
  if (x->twin != y->twin) return x->twin - y->twin;
  double d = strtod(x->name + x->twin, NULL) - strtod(y->name + y->twin, NULL);
  return d < 0 ? -1 : d > 0;
}

static bool read_order(const char *sql, unsigned *ordered) {
  static const char start[] = "-- order: ";
  char *end;
  if (strncmp(sql, start, strlen(start)) != 0) return false;
  sql += strlen(start);
  if (strncmp(sql, "all\n", 4) == 0) {
    *ordered = ~0u;
    return true;
  }
  *ordered = 0;
  if (strncmp(sql, "none\n", 5) == 0) return true;
  for (; *sql != '\n'; sql = end) {
    long column = strtol(sql, &end, 10);
    if (end == sql || column < 1 || column > 30) return false;
    *ordered |= 1u << (column - 1);
  }
  return true;
}

bool queries_read(struct query_list *l, const char *folder, const char *suite, char *why,
                  size_t n_why) {
  char path[512], wrong[200] = "there are too many queries, or its name is too long";
  memset(l, 0, sizeof *l);
  snprintf(path, sizeof path, "%s/%s", folder, suite);
  DIR *d = opendir(path);
  if (!d) {
    snprintf(why, n_why, "no folder %s", path);
    return false;
  }
  bool ok = true;
  for (struct dirent *e; ok && (e = readdir(d));) {
    size_t n = strlen(e->d_name);
    if (n < 5 || strcmp(e->d_name + n - 4, ".sql") != 0 || strstr(e->d_name, ".duckdb.")) continue;
    struct text_query *q = &l->query[l->n];
    ok = l->n < QUERIES_MAX && n - 4 < QUERY_NAME;
    if (ok) {
      l->n++;
      memcpy(q->name, e->d_name, n - 4);
      q->twin = q->name[0] == 'n';
      snprintf(path, sizeof path, "%s/%s/%s", folder, suite, e->d_name);
      q->sql = read_whole(path);
      snprintf(path, sizeof path, "%s/%s/%s.duckdb.sql", folder, suite, q->name);
      q->duck_sql = read_whole(path);
      struct run_texts texts = {0};
      snprintf(wrong, sizeof wrong, "its first line has to be -- order: ...");
      ok = q->sql && read_order(q->sql, &q->ordered) &&
           run_texts_make(&texts, suite, q->name, q->sql, q->duck_sql, 1, wrong, sizeof wrong);
      if (ok) {
        q->published = strdup(texts.sql[0]);
        q->duck_published = strdup(texts.duck_sql[0]);
      }
      run_texts_free(&texts);
    }
    if (!ok) snprintf(why, n_why, "%s/%s/%.100s: %s", folder, suite, e->d_name, wrong);
  }
  closedir(d);
  if (ok && l->n == 0) {
    snprintf(why, n_why, "no queries in %s/%s", folder, suite);
    ok = false;
  }
  if (ok)
    qsort(l->query, (size_t)l->n, sizeof *l->query, by_name);
  else
    queries_free(l);
  return ok;
}

void queries_free(struct query_list *l) {
  for (int i = 0; i < l->n; i++) {
    free(l->query[i].sql);
    free(l->query[i].duck_sql);
    free(l->query[i].published);
    free(l->query[i].duck_published);
  }
  memset(l, 0, sizeof *l);
}
