/*
** What `warplite run --explain` prints when the program ends: every SELECT, how often it ran, in
** which engine and why.
*/
#include "preload/preload.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TEXTS = 2000, SHOWN = 160 };

typedef struct wl_report_text {
  struct wl_report_text *next;
  char *sql;
  long n_native, n_sqlite;
  double native_ms, sqlite_ms;
  char reason[WL_NATIVE_TEXT]; /* of the latest execution */
} wl_report_text;

bool wl_reporting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wl_report_text *texts;
static int n_texts;
static long n_unlisted;
static int report_fd = -1; /* a copy of standard error, which some programs close at their end */

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void wl_report_start(wl_statement *t, const char *unasked) {
  const char *sql = t->conn->real->api.sql(t->stmt);
  pthread_mutex_lock(&lock);
  wl_report_text *r = texts;
  while (r && strcmp(r->sql, sql ? sql : "") != 0) r = r->next;
  if (!r && n_texts < MAX_TEXTS && (r = calloc(1, sizeof *r))) {
    r->sql = strdup(sql ? sql : "");
    if (!r->sql) {
      free(r);
      r = NULL;
    } else {
      r->next = texts;
      texts = r;
      n_texts++;
    }
  }
  if (!r) n_unlisted++;
  if (r && unasked) snprintf(r->reason, sizeof r->reason, "sqlite: %s", unasked);
  pthread_mutex_unlock(&lock);
  t->report = r;
  t->started = now_ms();
}

void wl_report_decided(wl_statement *t, const char *reason) {
  if (!t->report) return;
  pthread_mutex_lock(&lock);
  snprintf(t->report->reason, sizeof t->report->reason, "%s", reason);
  pthread_mutex_unlock(&lock);
}

void wl_report_end(wl_statement *t) {
  wl_report_text *r = t->report;
  if (!r) return;
  bool native = t->state == WL_ENDED;
  double ms = now_ms() - t->started;
  pthread_mutex_lock(&lock);
  *(native ? &r->n_native : &r->n_sqlite) += 1;
  *(native ? &r->native_ms : &r->sqlite_ms) += ms;
  pthread_mutex_unlock(&lock);
  t->report = NULL;
}

/* ---- the end of the program */

static int by_time(const void *x, const void *y) {
  const wl_report_text *a = *(wl_report_text *const *)x, *b = *(wl_report_text *const *)y;
  double ta = a->native_ms + a->sqlite_ms, tb = b->native_ms + b->sqlite_ms;
  return ta < tb ? 1 : ta > tb ? -1 : 0;
}

static void print_text(FILE *out, const wl_report_text *r) {
  char line[SHOWN + 1];
  size_t n = 0;
  bool space = true; /* runs of white space become one space */
  for (const char *p = r->sql; *p && n < SHOWN; p++) {
    bool is_space = *p == ' ' || *p == '\n' || *p == '\t' || *p == '\r';
    if (!is_space || !space) line[n++] = is_space ? ' ' : *p;
    space = is_space;
  }
  line[n] = 0;
  fprintf(out, "%8ld %10.1f %8ld %10.1f  %s\n", r->n_native, r->native_ms, r->n_sqlite,
          r->sqlite_ms, line);
  fprintf(out, "%40s  %s\n", "", r->reason);
}

__attribute__((destructor)) static void print_report(void) {
  if (!wl_reporting || !texts) return;
  FILE *out = fdopen(report_fd, "w");
  if (!out) return;
  wl_report_text **list = calloc((size_t)n_texts, sizeof *list);
  int n = 0;
  for (wl_report_text *r = texts; r && list; r = r->next) list[n++] = r;
  if (!list) return;
  qsort(list, (size_t)n, sizeof *list, by_time);
  fprintf(out, "warplite: SELECT statements of process %d\n%8s %10s %8s %10s  %s\n", (int)getpid(),
          "native", "ms", "SQLite", "ms", "statement, engine and reason");
  for (int i = 0; i < n; i++) print_text(out, list[i]);
  if (n_unlisted) fprintf(out, "and %ld executions of other texts\n", n_unlisted);
  free(list);
  fclose(out);
}

/* A child of fork() reports what it runs itself. */
static void in_child(void) {
  for (wl_report_text *r = texts; r; r = r->next) {
    r->n_native = r->n_sqlite = 0;
    r->native_ms = r->sqlite_ms = 0;
  }
  pthread_mutex_unlock(&lock);
}
static void before_fork(void) {
  pthread_mutex_lock(&lock);
}
static void in_parent(void) {
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void set_up(void) {
  const char *run = secure_getenv("WARPLITE_RUN");
  wl_reporting = run && strcmp(run, "explain") == 0;
  if (wl_reporting) report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
  pthread_atfork(before_fork, in_parent, in_child);
}
