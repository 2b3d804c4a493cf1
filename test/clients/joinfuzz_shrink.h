/*
** Makes a failing query of joinfuzz.c smaller: tokens out of its text, rows out of its tables,
** as long as it goes on failing.
**
** Invariants:
** 1. Only balanced stretches of tokens go.
** 2. The caller's test says whether what is left still fails; it must hold for the start.
*/
#ifndef TEST_JOINFUZZ_SHRINK_H
#define TEST_JOINFUZZ_SHRINK_H

#include <ctype.h>
#include <time.h>

#include "joinfuzz_schema.h"

enum { MAX_TOKENS = 1200, SHRINK_SECONDS = 10 };

typedef bool still_fails(void *ctx, const char *sql);

static size_t token_length(const char *p) {
  const char *q = p;
  if (*q == '\'' || *q == '"') {
    char end = *q++;
    while (*q && (*q != end || q[1] == end)) q += *q == end ? 2 : 1;
    return (size_t)(q + (*q != 0) - p);
  }
  while (isalnum((unsigned char)*q) || *q == '_' || *q == '.' || *q == '?') q++;
  if (q > p) return (size_t)(q - p) + (*q == '\'' && q == p + 1 && *p == 'x' ? token_length(q) : 0);
  if ((*p == '<' || *p == '>' || *p == '|') && p[1] && strchr("=>|<", p[1])) return 2;
  return 1;
}

static char *join_tokens(char **token, int n, int from, int to) {
  char *s = format("");
  for (int i = 0; i < n; i++) {
    if (i >= from && i < to) continue;
    char *next = format("%s%s%s", s, *s ? " " : "", token[i]);
    sqlite3_free(s);
    s = next;
  }
  return s;
}

static bool is_balanced(char **token, int from, int to) {
  int depth = 0;
  for (int i = from; i < to && depth >= 0; i++)
    depth += !strcmp(token[i], "(") - !strcmp(token[i], ")");
  return depth == 0;
}

/* The shortest text found; the caller frees it. */
static char *shrink_text(const char *sql, still_fails *fails, void *ctx) {
  static char *token[MAX_TOKENS];
  int n = 0;
  time_t end = time(NULL) + SHRINK_SECONDS;
  for (const char *p = sql; *p && n < MAX_TOKENS;) {
    size_t k = token_length(p);
    if (*p != ' ') token[n++] = format("%.*s", (int)k, p);
    p += k;
  }
  for (bool again = true; again && time(NULL) < end;) {
    again = false;
    for (int size = n / 2; size >= 1 && time(NULL) < end; size--)
      for (int from = 0; from + size <= n; from++) {
        if (!is_balanced(token, from, from + size)) continue;
        char *less = join_tokens(token, n, from, from + size);
        bool good = fails(ctx, less);
        sqlite3_free(less);
        if (!good) continue;
        for (int i = from; i < from + size; i++) sqlite3_free(token[i]);
        memmove(&token[from], &token[from + size], sizeof *token * (size_t)(n - from - size));
        n -= size;
        from--;
        again = true;
      }
  }
  char *s = join_tokens(token, n, 0, 0);
  while (n > 0) sqlite3_free(token[--n]);
  return s;
}

/* Deletes rows of the connection's tables. */
static void shrink_rows(const schema *s, sqlite3 *db, const char *sql, still_fails *fails,
                        void *ctx) {
  time_t end = time(NULL) + SHRINK_SECONDS;
  for (int i = 0; i < s->n_tables; i++) {
    const relation *t = &s->rel[i];
    for (int size = (int)t->n_rows; size >= 1 && time(NULL) < end; size /= 2)
      for (int from = 0; from < t->n_rows && time(NULL) < end;) {
        char *less = format("SAVEPOINT s; DELETE FROM %s WHERE %s IN (SELECT %s FROM %s ORDER BY 1 "
                            "LIMIT %d OFFSET %d)",
                            t->name, t->key, t->key, t->name, size, from);
        int before = sqlite3_total_changes(db);
        sqlite3_exec(db, less, NULL, NULL, NULL);
        sqlite3_free(less);
        if (sqlite3_total_changes(db) == before) from = (int)t->n_rows;
        if (!fails(ctx, sql)) {
          sqlite3_exec(db, "ROLLBACK TO s", NULL, NULL, NULL);
          from += size;
        }
        sqlite3_exec(db, "RELEASE s", NULL, NULL, NULL);
      }
  }
}

/* The tables as they are now, and the statements that make the rest of the schema. */
static void write_script(const schema *s, sqlite3 *db, FILE *to) {
  for (int i = 0; i < s->n_sql; i++) {
    const char *sql = s->sql[i];
    bool big = strstr(sql, "RECURSIVE") != NULL;
    if (!strncmp(sql, "INSERT", 6) && !big) continue;
    if (!strncmp(sql, "CREATE TABLE", 12) || big) fprintf(to, "%s;\n", sql);
  }
  for (int i = 0; i < s->n_tables; i++) {
    const relation *t = &s->rel[i];
    if (t->n_rows >= BIG_ROWS) continue;
    char *list = format("");
    for (int c = 0; c < t->n_cols; c++) {
      char *next = format("%s%squote(%s)", list, c ? "||','||" : "", t->col[c].name);
      sqlite3_free(list);
      list = next;
    }
    char *sql = format("SELECT 'INSERT INTO %s VALUES('||%s||');' FROM %s", t->name, list, t->name);
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK)
      while (sqlite3_step(st) == SQLITE_ROW) fprintf(to, "%s\n", sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    sqlite3_free(sql);
    sqlite3_free(list);
  }
  for (int i = 0; i < s->n_sql; i++)
    if (strncmp(s->sql[i], "INSERT", 6) && strncmp(s->sql[i], "CREATE TABLE", 12))
      fprintf(to, "%s;\n", s->sql[i]);
}

#endif
