/*
** Converts between text and numbers by calling SQLite; see conv.h.
*/
#include "value/conv.h"
#include "base/mem.h"
#include "base/fork.h"
#include "base/quirks.h"
#include "base/sqlite.h"
#include "value/calls.h"
#include "value/rounding.h"
#include <string.h>

enum { ARITH, REAL, NUMERIC, N_STATEMENTS };

struct wl_conv {
  wl_conv *next;
  sqlite3 *db;
  sqlite3_stmt *stmt[N_STATEMENTS];
  wl_calls *calls; /* opened when first needed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wl_conv *idle;

__attribute__((constructor)) static void guard(void) {
  wl_fork_lock(&lock);
}

static void conv_close(wl_conv *c) {
  for (int i = 0; i < N_STATEMENTS; i++) sqlite3_finalize(c->stmt[i]);
  wl_calls_close(c->calls);
  sqlite3_close(c->db);
  wl_mem_free(c);
}

wl_status wl_conv_take(wl_conv **out, wl_error *err) {
  static const char *const sql[] = {"SELECT ?1*1", "SELECT CAST(?1 AS REAL)",
                                    "SELECT CAST(?1 AS NUMERIC)"};
  pthread_mutex_lock(&lock);
  wl_conv *c = *out = idle;
  if (c) idle = c->next;
  pthread_mutex_unlock(&lock);
  if (c) return WL_OK;
  c = wl_mem_zalloc(sizeof *c);
  if (!c) return wl_nomem(err);
  int rc = sqlite3_open_v2(":memory:", &c->db,
                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
  for (int i = 0; i < N_STATEMENTS && !rc; i++)
    rc = sqlite3_prepare_v2(c->db, sql[i], -1, &c->stmt[i], NULL);
  if (rc) {
    conv_close(c);
    return wl_fail(err, WL_NOMEM, "out of memory for SQLite's number conversions");
  }
  *out = c;
  return WL_OK;
}

void wl_conv_give(wl_conv *c) {
  if (!c) return;
  pthread_mutex_lock(&lock);
  c->next = idle;
  idle = c;
  pthread_mutex_unlock(&lock);
}

void wl_conv_close_idle(void) {
  pthread_mutex_lock(&lock);
  wl_conv *c = idle;
  idle = NULL;
  pthread_mutex_unlock(&lock);
  while (c) {
    wl_conv *next = c->next;
    conv_close(c);
    c = next;
  }
}

/* Runs one conversion. The result is a number, or NULL with a fault if memory runs out. */
static wl_val convert(wl_vctx *x, int which, wl_val a) {
  sqlite3_stmt *q = x->conv->stmt[which];
  if (a.t == WL_T_TEXT)
    sqlite3_bind_text(q, 1, (const char *)wl_bytes(a), (int)a.n, SQLITE_STATIC);
  else
    sqlite3_bind_blob(q, 1, a.n ? (const void *)wl_bytes(a) : "", (int)a.n, SQLITE_STATIC);
  wl_val r = wl_null();
  if (sqlite3_step(q) == SQLITE_ROW) {
    if (sqlite3_column_type(q, 0) == SQLITE_INTEGER)
      r = wl_int(sqlite3_column_int64(q, 0));
    else
      r = wl_real(sqlite3_column_double(q, 0));
  } else {
    *x->fault = WL_FAULT_ROOM;
  }
  sqlite3_reset(q);
  return r;
}

wl_val wl_conv_number(wl_vctx *x, wl_val a, int want) {
  static const int statement[] = {[WL_NUMBER_ARITH] = ARITH,
                                  [WL_NUMBER_AFFINITY] = ARITH,
                                  [WL_NUMBER_REAL] = REAL,
                                  [WL_NUMBER_NUMERIC] = NUMERIC};
  wl_val r;
  return wl_number_of_text(a, want, wl_rounding_get(), &r) ? r : convert(x, statement[want], a);
}

wl_i32 wl_conv_seconds(double s) {
  char text[80]; /* some versions need more room than the text has */
  sqlite3_snprintf((int)sizeof text, text, "%06.3f", s);
  wl_i32 ms = 0;
  for (const char *p = text; *p; p++)
    if (*p != '.') ms = ms * 10 + (*p - '0');
  return ms;
}

/* ---- functions */

/* Names of all functions that may be called, in lower case. Each ends with a NUL; one more NUL ends
** the list. NULL: not read yet. */
static char *function_names;

/* Returns NULL on failure. The list stays in memory that is not SQLite's. */
static char *list_functions(sqlite3 *db) {
  char *names = NULL;
  sqlite3_stmt *q = NULL;
  sqlite3_str *s = sqlite3_str_new(db);
  int rc = sqlite3_prepare_v2(db,
                              "SELECT DISTINCT lower(name) FROM pragma_function_list "
                              "WHERE builtin AND type = 's' AND flags & 2048",
                              -1, &q, NULL);
  while (!rc && sqlite3_step(q) == SQLITE_ROW) {
    sqlite3_str_appendall(s, (const char *)sqlite3_column_text(q, 0));
    sqlite3_str_append(s, "", 1);
  }
  sqlite3_str_append(s, "", 1);
  size_t n = (size_t)sqlite3_str_length(s);
  char *list = sqlite3_str_finish(s);
  if (!sqlite3_finalize(q) && list && n > 1) names = wl_mem_alloc(n);
  if (names) memcpy(names, list, n);
  sqlite3_free(list);
  return names;
}

/* Sets the list, unless it is already set. SQLite is called without the lock (base/fork.h). */
static const char *set_functions(char *names) {
  pthread_mutex_lock(&lock);
  char *unused = function_names ? names : NULL;
  if (!function_names) function_names = names;
  const char *p = function_names;
  pthread_mutex_unlock(&lock);
  wl_mem_free(unused);
  return p;
}

bool wl_conv_function(const char *name) {
  wl_error ignored;
  wl_conv *c;
  const char *p = set_functions(NULL);
  if (!p) {
    if (wl_conv_take(&c, &ignored)) return false;
    p = set_functions(list_functions(c->db));
    wl_conv_give(c);
  }
  for (; p && *p; p += strlen(p) + 1)
    if (sqlite3_stricmp(p, name) == 0) return true;
  return false;
}

wl_calls *wl_conv_calls(wl_conv *c) {
  if (!c->calls) c->calls = wl_calls_open(c->db);
  return c->calls;
}

wl_val wl_conv_text(wl_vctx *x, double r) {
  char buf[64];
  sqlite3_snprintf((int)sizeof buf, buf, "%!.*g", wl_quirks_get().real_digits, r);
  wl_u32 n = (wl_u32)strlen(buf);
  wl_u8 *p = wl_scratch(x, n);
  if (!p) return wl_null();
  memcpy(p, buf, n);
  return wl_text(p, n);
}

wl_status wl_conv_literal(const char *text, size_t n, wl_val *out, wl_error *err) {
  wl_u32 fault = WL_FAULT_NONE;
  wl_vctx x = {.fault = &fault};
  wl_status rc = wl_conv_take(&x.conv, err);
  if (rc) return rc;
  *out = convert(&x, REAL, wl_text((const wl_u8 *)text, (wl_u32)n));
  wl_conv_give(x.conv);
  return fault ? wl_nomem(err) : WL_OK;
}

/* ---- affinity */

/* Whether the declared type contains word, ignoring the case of ASCII letters. */
static bool holds(const char *type, const char *word) {
  size_t n = strlen(word);
  for (; *type; type++)
    if (sqlite3_strnicmp(type, word, (int)n) == 0) return true;
  return false;
}

char wl_affinity_of_type(const char *decl) {
  if (!decl || !*decl) return 'A';
  if (holds(decl, "INT")) return 'D';
  if (holds(decl, "CHAR") || holds(decl, "CLOB") || holds(decl, "TEXT")) return 'B';
  if (holds(decl, "BLOB")) return 'A';
  if (holds(decl, "REAL") || holds(decl, "FLOA") || holds(decl, "DOUB")) return 'E';
  return 'C';
}
