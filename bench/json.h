/*
** The JSON file of a benchmark, for programs. Commas are written before every member but the first.
*/
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <errno.h>
#include <sys/stat.h>
#include "side.h"

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

#endif
