/*
** The benchmark's two outputs: a table for people, a JSON file for programs.
**
** Stands last: it reads results and computes only sums and ratios of them.
**
** 1. A ratio is SQLite's median over the side's median: above 1 the side is faster.
** 2. The geometric mean is over the queries' ratios, the ratio of sums over all time.
** 3. A side that failed a query shows a dash there, and its sums, which would not be
**    comparable, are left out.
*/
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <errno.h>
#include <sys/stat.h>
#include "side.h"

struct totals {
  double ms, ratio, geomean;
  bool whole; /* every query has a time */
};

static inline double median_of(const struct result *r, int side) {
  return sorted_median(r->side[side].ms, r->side[side].n);
}

static inline struct totals totals_of(const struct result *r, int n, int side) {
  struct totals t = {0, 0, 0, true};
  double sqlite = 0, logs = 0;
  for (int q = 0; q < n; q++) {
    double ms = median_of(&r[q], side), base = median_of(&r[q], 0);
    if (r[q].side[side].n == 0 || r[q].side[0].n == 0) {
      t.whole = false;
      return t;
    }
    t.ms += ms;
    sqlite += base;
    logs += log(base / ms);
  }
  t.ratio = sqlite / t.ms;
  t.geomean = exp(logs / n);
  return t;
}

static inline int cpu_side(const struct bench *b) {
  for (int s = 0; s < N_SIDES; s++)
    if (b->on[s] && strcmp(sides[s].name, "cpu") == 0) return s;
  return -1;
}

static inline void report_table(const struct bench *b, const struct suite *u, int64_t n_rows,
                                const struct result *r, int n) {
  int cpu = cpu_side(b);
  printf("\n%s, %lld rows, keep=%s: milliseconds (median), times faster than SQLite\n\n", u->title,
         (long long)n_rows, keep_of(b));
  printf("%-6s%10s", "query", "rows");
  for (int s = 0; s < N_SIDES; s++)
    if (b->on[s]) printf(s ? "%17s" : "%11s", sides[s].name);
  printf(cpu >= 0 ? "%10s\n" : "\n", "cpu GB/s");
  for (int q = 0; q < n; q++) {
    printf("%-6s%10lld", r[q].query->name, (long long)r[q].n_rows);
    for (int s = 0; s < N_SIDES; s++) {
      if (!b->on[s]) continue;
      double ms = median_of(&r[q], s);
      if (r[q].side[s].n == 0) {
        printf(s ? "%17s" : "%11s", "-");
      } else if (s == 0) {
        printf("%11.2f", ms);
      } else {
        printf("%10.2f%6.1fx", ms, median_of(&r[q], 0) / ms);
      }
    }
    if (cpu >= 0 && r[q].side[cpu].n > 0 && query_bytes(r[q].query->sql, n_rows) > 0)
      printf("%10.2f", (double)query_bytes(r[q].query->sql, n_rows) / median_of(&r[q], cpu) / 1e6);
    printf("\n");
  }
  printf("%-16s", "sum");
  for (int s = 0; s < N_SIDES; s++) {
    if (!b->on[s]) continue;
    struct totals t = totals_of(r, n, s);
    if (!t.whole) {
      printf(s ? "%17s" : "%11s", "-");
    } else if (s == 0) {
      printf("%11.2f", t.ms);
    } else {
      printf("%10.2f%6.1fx", t.ms, t.ratio);
    }
  }
  printf("\n%-16s%11s", "geometric mean", "");
  for (int s = 1; s < N_SIDES; s++) {
    if (!b->on[s]) continue;
    struct totals t = totals_of(r, n, s);
    if (t.whole) {
      printf("%16.1fx", t.geomean);
    } else {
      printf("%17s", "-");
    }
  }
  printf("\n");
  fflush(stdout);
}

/* ---- JSON: commas are written before every member but the first ---- */

struct json {
  FILE *out;
  bool first;
};

/* Opens the file for writing, and makes its folder if that is missing; out is NULL and errno set on
** failure. */
static inline struct json json_create(const char *path) {
  FILE *out = fopen(path, "w");
  const char *slash = strrchr(path, '/');
  if (!out && errno == ENOENT && slash) {
    char *folder = strndup(path, (size_t)(slash - path));
    if (folder && mkdir(folder, 0777) == 0) out = fopen(path, "w");
    free(folder);
  }
  return (struct json){out, true};
}

static inline void json_text(struct json *j, const char *s) {
  fputc('"', j->out);
  for (; s && *s; s++) {
    unsigned char ch = (unsigned char)*s;
    if (ch == '"' || ch == '\\') {
      fprintf(j->out, "\\%c", ch);
    } else if (ch < 0x20) {
      fprintf(j->out, "\\u%04x", ch);
    } else {
      fputc(ch, j->out);
    }
  }
  fputc('"', j->out);
}

static inline void json_key(struct json *j, const char *key) {
  fprintf(j->out, j->first ? "" : ",\n");
  j->first = false;
  if (key) {
    json_text(j, key);
    fputc(':', j->out);
  }
}

static inline void json_open(struct json *j, const char *key, char bracket) {
  json_key(j, key);
  fputc(bracket, j->out);
  j->first = true;
}

static inline void json_close(struct json *j, char bracket) {
  fputc(bracket, j->out);
  j->first = false;
}

static inline void json_string(struct json *j, const char *key, const char *value) {
  json_key(j, key);
  if (value) {
    json_text(j, value);
  } else {
    fprintf(j->out, "null");
  }
}

static inline void json_number(struct json *j, const char *key, double v) {
  json_key(j, key);
  fprintf(j->out, "%.9g", v);
}

static inline void json_bool(struct json *j, const char *key, bool v) {
  json_key(j, key);
  fprintf(j->out, v ? "true" : "false");
}

static inline void cpu_model(char *out, size_t n) {
  char line[256];
  FILE *f = fopen("/proc/cpuinfo", "r");
  snprintf(out, n, "unknown");
  while (f && fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(out, n, "%s", colon + 1 + strspn(colon + 1, " "));
    break;
  }
  if (f) fclose(f);
}

/* The machine and the versions: members of the object that is open. */
static inline void json_facts(struct json *j, const struct bench *b) {
  char model[128];
  cpu_model(model, sizeof model);
  json_string(j, "cpu", model);
  json_number(j, "cores", n_cores());
  json_string(j, "warplite", warplite_version());
  json_string(j, "sqlite", sqlite3_libversion());
  json_string(j, "duckdb", b->duck.lib ? b->duck.library_version() : NULL);
}

/* Whatever warplite_devices has to say, its columns under their own names. */
static inline void json_devices(struct json *j, sqlite3 *db) {
  sqlite3_stmt *stmt = NULL;
  json_open(j, "devices", '[');
  if (sqlite3_prepare_v2(db, "SELECT * FROM warplite_devices", -1, &stmt, NULL) == SQLITE_OK) {
    while (sqlite3_step(stmt) == SQLITE_ROW) {
      json_open(j, NULL, '{');
      for (int c = 0; c < sqlite3_column_count(stmt); c++)
        json_string(j, sqlite3_column_name(stmt, c), (const char *)sqlite3_column_text(stmt, c));
      json_close(j, '}');
    }
  }
  sqlite3_finalize(stmt);
  json_close(j, ']');
}

static inline void json_suite(struct json *j, const struct bench *b, const struct suite *u,
                              int64_t n_rows, const struct result *r, int n) {
  json_open(j, NULL, '{');
  json_string(j, "suite", u->title);
  json_number(j, "rows", (double)n_rows);
  json_devices(j, b->db);
  json_open(j, "queries", '[');
  for (int q = 0; q < n; q++) {
    json_open(j, NULL, '{');
    json_string(j, "name", r[q].query->name);
    json_string(j, "sql", r[q].query->sql);
    json_number(j, "rows", (double)r[q].n_rows);
    json_number(j, "column_bytes", (double)query_bytes(r[q].query->sql, n_rows));
    json_open(j, "sides", '{');
    for (int s = 0; s < N_SIDES; s++) {
      const struct timing *t = &r[q].side[s];
      if (!b->on[s]) continue;
      json_open(j, sides[s].name, '{');
      json_bool(j, "same_as_sqlite", t->same);
      if (t->n > 0) {
        json_number(j, "median_ms", sorted_median(t->ms, t->n));
        json_number(j, "min_ms", t->ms[0]);
        json_number(j, "first_ms", t->first_ms);
        json_number(j, "runs", t->n);
      }
      if (t->reason[0]) json_string(j, "reason", t->reason);
      json_close(j, '}');
    }
    json_close(j, '}');
    json_close(j, '}');
  }
  json_close(j, ']');
  json_open(j, "sums", '{');
  for (int s = 0; s < N_SIDES; s++) {
    struct totals t = totals_of(r, n, s);
    if (!b->on[s] || !t.whole) continue;
    json_open(j, sides[s].name, '{');
    json_number(j, "median_ms", t.ms);
    json_number(j, "ratio_of_sums", t.ratio);
    json_number(j, "geometric_mean", t.geomean);
    json_close(j, '}');
  }
  json_close(j, '}');
  json_close(j, '}');
}

#endif
