/*
** The query shapes of the router benchmark, read from text files. A file has shapes like this:
**
**     -- name: range_middle
**     -- bind: {0.5} {0.5+1000} 'text'
**     SELECT sum(x) FROM t WHERE id BETWEEN ? AND ?;
**
** A shape ends with the line that ends with a semicolon. {F} is the number of rows of the table t
** times F, {F+N} is that plus N. The line with values to bind may be left out.
*/
#ifndef BENCH_ROUTER_SHAPES_H
#define BENCH_ROUTER_SHAPES_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BINDS = 8 };

struct shape {
  char *name, *bind, *sql;
};

struct shapes {
  struct shape *list;
  int n;
};

/* Values to bind. source has each as text. */
struct binds {
  int n;
  char *source[MAX_BINDS];
  bool is_text[MAX_BINDS];
  char *text[MAX_BINDS];
  long long number[MAX_BINDS];
};

/* Replaces {F+N}. The caller frees the result. */
static char *shape_text(const char *template, long n_rows) {
  size_t size = strlen(template) * 2 + 64, at = 0;
  char *out = malloc(size);
  for (const char *p = template; out && *p && at + 32 < size; p++) {
    char *end;
    if (*p != '{') {
      out[at++] = *p;
      continue;
    }
    double share = strtod(p + 1, &end);
    long plus = *end == '+' || *end == '-' ? strtol(end, &end, 10) : 0;
    at += (size_t)snprintf(out + at, size - at, "%ld", (long)(share * (double)n_rows) + plus);
    p = *end == '}' ? end : end - 1;
  }
  if (out) out[at] = 0;
  return out;
}

static void binds_free(struct binds *b) {
  for (int i = 0; i < b->n; i++) {
    free(b->source[i]);
    free(b->text[i]);
  }
  b->n = 0;
}

static bool binds_read(struct binds *b, int n, char **sources) {
  memset(b, 0, sizeof *b);
  if (n > MAX_BINDS) return false;
  for (int i = 0; i < n; i++) {
    size_t length = strlen(sources[i]);
    b->source[i] = strdup(sources[i]);
    b->is_text[i] = *sources[i] == '\'';
    b->text[i] = b->is_text[i] && length >= 2 ? strndup(sources[i] + 1, length - 2) : NULL;
    b->number[i] = strtoll(sources[i], NULL, 10);
    b->n++;
  }
  return true;
}

static bool shape_binds(const struct shape *s, long n_rows, struct binds *out) {
  char *list[MAX_BINDS], *text = shape_text(s->bind ? s->bind : "", n_rows), *rest = text;
  int n = 0;
  for (char *word; n < MAX_BINDS && (word = strtok_r(rest, " ", &rest));) list[n++] = word;
  bool ok = binds_read(out, n, list);
  free(text);
  return ok;
}

static void shapes_free(struct shapes *s) {
  for (int i = 0; i < s->n; i++) {
    free(s->list[i].name);
    free(s->list[i].bind);
    free(s->list[i].sql);
  }
  free(s->list);
}

static bool shapes_read_file(struct shapes *s, const char *path) {
  FILE *in = fopen(path, "r");
  char line[2048], sql[4096] = "", name[64] = "", bind[256] = "";
  if (!in) return false;
  while (fgets(line, sizeof line, in)) {
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "-- name: %63s", name) == 1 || strncmp(line, "-- bind: ", 9) == 0) {
      if (line[3] == 'b') snprintf(bind, sizeof bind, "%.255s", line + 9);
      continue;
    }
    if (!*line || strncmp(line, "--", 2) == 0) continue;
    size_t n = strlen(sql);
    snprintf(sql + n, sizeof sql - n, "%s%s", n ? " " : "", line);
    n = strlen(sql);
    if (sql[n - 1] != ';') continue;
    sql[n - 1] = 0;
    s->list = realloc(s->list, ((size_t)s->n + 1) * sizeof *s->list);
    s->list[s->n++] = (struct shape){strdup(name), *bind ? strdup(bind) : NULL, strdup(sql)};
    *sql = *bind = 0;
  }
  fclose(in);
  return !*sql;
}

static int shapes_is_sql(const struct dirent *e) {
  size_t n = strlen(e->d_name);
  return n > 4 && strcmp(e->d_name + n - 4, ".sql") == 0;
}

/* Reads all files of a folder, in the order of their names. */
static bool shapes_read(struct shapes *out, const char *folder, char *why, size_t n_why) {
  struct dirent **files;
  int n = scandir(folder, &files, shapes_is_sql, alphasort);
  bool ok = n > 0;
  memset(out, 0, sizeof *out);
  if (!ok) snprintf(why, n_why, "no shapes in %s", folder);
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
    if (ok && !shapes_read_file(out, path)) {
      snprintf(why, n_why, "%.200s cannot be read, or its last statement has no end", path);
      ok = false;
    }
    free(files[i]);
  }
  if (n >= 0) free(files);
  return ok;
}

#endif
