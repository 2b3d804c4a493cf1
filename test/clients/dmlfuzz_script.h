/*
** Scripts of dmlfuzz.c: the steps since the tables were made, running them again, making a failing
** one smaller, writing it down and reading it back.
**
** Invariants:
** 1. A script that fails does so in its last step.
** 2. What is smaller must fail in the same respect (enum differ), though perhaps in other words.
*/
#ifndef TEST_DMLFUZZ_SCRIPT_H
#define TEST_DMLFUZZ_SCRIPT_H

#include <ctype.h>
#include <time.h>

#include "dmlfuzz_pair.h"

enum { DML_TOKENS = 1500 };

typedef struct script {
  step *of;
  int n, cap;
} script;

static step *add_step(script *s, step_kind kind, const char *table, char *sql) {
  if (s->n == s->cap) {
    s->cap = s->cap * 2 + 64;
    s->of = must(realloc(s->of, (size_t)s->cap * sizeof *s->of));
  }
  step *x = &s->of[s->n++];
  memset(x, 0, sizeof *x);
  x->kind = kind;
  x->table = table;
  x->sql = sql;
  return x;
}

static void clear_script(script *s) {
  for (int i = 0; i < s->n; i++) {
    sqlite3_free(s->of[i].sql);
    for (int k = 0; k < 2; k++)
      for (int j = 0; j < DML_BINDS; j++) sqlite3_free(s->of[i].binds[k][j]);
  }
  s->n = 0;
}

/* Runs a script on empty databases; *at is the step that differs. keep[i] false: left out. */
static differ replay(const pair *how, const script *s, const bool *keep, int *at, char *why) {
  pair p = *how;
  differ d = SAME;
  memset(&p.want, 0, sizeof p.want);
  memset(&p.got, 0, sizeof p.got);
  p.n_perturb = 0;
  pair_remove(&p);
  pair_connect(&p);
  for (int i = 0; i < s->n && (d == SAME || d == SKIPPED); i++) {
    if (keep && !keep[i]) continue;
    d = run_step(&p, &s->of[i]);
    *at = i;
  }
  if (why) snprintf(why, sizeof p.why, "%s", p.why);
  if (!pair_disconnect(&p) && d == SAME) d = IN_CODE;
  pair_remove(&p);
  rows_free(&p.want);
  rows_free(&p.got);
  return d == SKIPPED ? SAME : d;
}

/* ---- smaller */

static void shrink_steps(const pair *how, script *s, differ as, time_t end) {
  bool *keep = must(calloc((size_t)s->n + 1, sizeof *keep));
  int at, m = 0;
  for (int i = 0; i < s->n; i++) keep[i] = true;
  for (int size = s->n / 2 + 1; size >= 1; size /= 2)
    for (int from = 0; from < s->n - 1 && time(NULL) < end; from += size) {
      int n = 0;
      bool was[4096] = {false};
      for (int i = from; i < from + size && i < s->n - 1 && i - from < 4096; i++) {
        was[i - from] = keep[i];
        n += keep[i];
        keep[i] = false;
      }
      if (n && replay(how, s, keep, &at, NULL) == as && at == s->n - 1) continue;
      for (int i = from; i < from + size && i < s->n - 1 && i - from < 4096; i++)
        keep[i] = was[i - from];
    }
  for (int i = 0; i < s->n; i++) {
    if (keep[i]) {
      s->of[m++] = s->of[i];
      continue;
    }
    script one = {&s->of[i], 1, 1};
    clear_script(&one);
  }
  s->n = m;
  free(keep);
}

static size_t dml_token(const char *p) {
  const char *q = p;
  if (*q == '\'' || *q == '"') {
    char end = *q++;
    while (*q && (*q != end || q[1] == end)) q += *q == end ? 2 : 1;
    return (size_t)(q + (*q != 0) - p);
  }
  if (*p == 'x' && p[1] == '\'') return 1 + dml_token(p + 1);
  while (isalnum((unsigned char)*q) || strchr("_.?:@$", *q)) {
    if (!*q) break;
    q++;
  }
  if (q > p) return (size_t)(q - p);
  if (*p && strchr("<>|=!", *p) && p[1] && strchr("=><|", p[1])) return 2;
  return 1;
}

static char *join_parts(char **token, int n, int from, int to) {
  sqlite3_str *o = sqlite3_str_new(NULL);
  for (int i = 0; i < n; i++)
    if (i < from || i >= to)
      sqlite3_str_appendf(o, "%s%s", sqlite3_str_length(o) ? " " : "", token[i]);
  char *s = sqlite3_str_finish(o);
  return s ? s : format("");
}

/* Tokens out of one step. */
static void shrink_step(const pair *how, script *s, int i, differ as, time_t end) {
  static char *token[DML_TOKENS];
  int n = 0, at;
  for (const char *p = s->of[i].sql; *p && n < DML_TOKENS;) {
    size_t k = dml_token(p);
    if (*p != ' ') token[n++] = format("%.*s", (int)k, p);
    p += k;
  }
  if (n == DML_TOKENS) end = 0;
  for (int size = n / 2; size >= 1; size--)
    for (int from = 0; from + size <= n && time(NULL) < end; from++) {
      int depth = 0;
      for (int k = from; k < from + size && depth >= 0; k++)
        depth += !strcmp(token[k], "(") - !strcmp(token[k], ")");
      if (depth) continue;
      char *whole = s->of[i].sql;
      s->of[i].sql = join_parts(token, n, from, from + size);
      if (replay(how, s, NULL, &at, NULL) != as || at != s->n - 1) {
        sqlite3_free(s->of[i].sql);
        s->of[i].sql = whole;
        continue;
      }
      sqlite3_free(whole);
      for (int k = from; k < from + size; k++) sqlite3_free(token[k]);
      memmove(&token[from], &token[from + size], sizeof *token * (size_t)(n - from - size));
      n -= size;
      from--;
    }
  while (n > 0) sqlite3_free(token[--n]);
}

static void shrink(const pair *how, script *s, differ as, int seconds) {
  time_t end = time(NULL) + seconds;
  shrink_steps(how, s, as, time(NULL) + seconds / 2);
  for (int round = 0; round < 2; round++)
    for (int i = s->n - 1; i >= 0 && s->n < 40; i--)
      if (s->of[i].sql) shrink_step(how, s, i, as, end);
}

/* ---- as text */

static void write_script(const script *s, bool twin, FILE *to) {
  for (int i = 0; i < s->n; i++) {
    const step *x = &s->of[i];
    char *sql = x->sql ? fill_here(x->sql, "") : NULL;
    for (int k = 0; k < (x->n_sets ? x->n_sets : 1); k++)
      for (int j = 0; j < DML_BINDS; j++)
        if (x->binds[k][j] && x->sql && strpbrk(x->sql, "?:@$"))
          fprintf(to, "-- set %d parameter %d: %s\n", k, j + 1, x->binds[k][j]);
    switch (x->kind) {
    case STEP_CREATE:
      fprintf(to, twin ? "CREATE TABLE %s(%s);\n" : "CREATE VIRTUAL TABLE %s USING tablet(%s);\n",
              x->table, sql);
      break;
    case STEP_OPTIMIZE:
      fprintf(to, "INSERT INTO %s(%s) VALUES('optimize');\n", x->table, x->table);
      break;
    case STEP_CHECK: fprintf(to, "SELECT warplite_check('%s');\n", x->table); break;
    case STEP_REOPEN: fprintf(to, "-- reopen\n"); break;
    default: fprintf(to, "%s;%s\n", sql, x->once ? " -- one step" : "");
    }
    sqlite3_free(sql);
  }
}

/* Reads a script in which every statement stands on one line. */
static bool read_script(script *s, const char *path) {
  static char line[200000], table[64], rest[200000];
  static char *binds[2][DML_BINDS];
  FILE *in = fopen(path, "r");
  if (!in) return false;
  int set, k, n_sets = 0;
  while (fgets(line, sizeof line, in)) {
    size_t n = strlen(line);
    bool once = strstr(line, "; -- one step") != NULL;
    if (once) *strstr(line, "; -- one step") = 0, n = strlen(line);
    while (n && (isspace((unsigned char)line[n - 1]) || line[n - 1] == ';')) line[--n] = 0;
    if (!strcmp(line, "-- reopen")) {
      add_step(s, STEP_REOPEN, NULL, NULL);
    } else if (sscanf(line, "-- set %d parameter %d: %[^\n]", &set, &k, rest) == 3) {
      if (set < 2 && k >= 1 && k <= DML_BINDS) binds[set][k - 1] = format("%s", rest);
      if (set >= n_sets) n_sets = set + 1;
    } else if (sscanf(line, "CREATE VIRTUAL TABLE %63s USING tablet(%[^\n]", table, rest) == 2) {
      rest[strlen(rest) - 1] = 0;
      add_step(s, STEP_CREATE, format("%s", table), format("%s", rest));
    } else if (sscanf(line, "SELECT warplite_check('%63[^']", table) == 1) {
      add_step(s, STEP_CHECK, format("%s", table), NULL);
    } else if (strstr(line, "VALUES('optimize')") && sscanf(line, "INSERT INTO %63[^(]", table)) {
      add_step(s, STEP_OPTIMIZE, format("%s", table), NULL);
    } else if (n && strncmp(line, "--", 2)) {
      step *x =
          add_step(s, strncmp(line, "SELECT", 6) ? STEP_SQL : STEP_READ, NULL, format("%s", line));
      x->once = once;
      x->n_sets = n_sets;
      memcpy(x->binds, binds, sizeof binds);
      memset(binds, 0, sizeof binds);
      n_sets = 0;
    }
  }
  fclose(in);
  return true;
}

#endif
