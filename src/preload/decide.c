/*
** Decides who runs an execution, at its first step.
**
** Most statements are SQLite's, and asking about them must cost next to nothing. So SQLite itself
** is the first judge. A text that is not known yet, on a file that is large enough, is started in
** SQLite with a small allowance of steps of its virtual machine. If it ends within them, it is
** cheap: it is started again and runs in SQLite, this time and later, until a run turns out costly.
** If not, it is stopped, and libwarplite decides (wl_route).
**
** The trial also does what SQLite does at the first step of a statement: it takes the lock, or
** fails with SQLITE_BUSY; it prepares the statement again if the schema or the authorizer has
** changed, and asks the authorizer; and it notices an interrupt. If this fails, the application
** gets SQLite's error. Where a trial could be seen, because the application has functions that it
** would call and that are not deterministic, the allowance is one step, which ends before the first
** row. A statement without a table would run to its end even so, and functions of SQLite like
** load_extension() act when they are called. It is not tried.
*/
#include "preload/preload.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
  GRAIN = 64,             /* SQLite asks every so many steps whether to stop */
  ALLOWANCE_UNKNOWN = 16, /* times GRAIN */
  ALLOWANCE_COSTLY = 4,
  MAX_ROWS = 100,      /* rows that a trial may return */
  TELL_STEPS = 50000,  /* an execution with more steps is told to libwarplite */
  READ_EVERY = 4,      /* executions of a cheap text, after which its cost is read */
  RARE_PROGRESS = 100, /* a handler that is called more often could count the calls */
};

const char *wl_connection_left(const wl_connection *c) {
  if (c->off || c->closing || !atomic_load_explicit(&wl_only, memory_order_relaxed))
    return "warplite is not used on this connection";
  if (wl_inside == c) return "it runs inside another statement";
  if (c->trace_mask || c->traces_otherwise) return "the application traces its statements";
  if (c->progress_steps && c->progress_steps < RARE_PROGRESS)
    return "the application has a progress handler that is called often";
  return NULL;
}

/* Why SQLite runs an execution without a question, or NULL. */
static const char *unasked(const wl_statement *t) {
  wl_connection *c = t->conn;
  const char *left = wl_connection_left(c);
  if (left) return left;
  if (t->ignored) return "the authorizer answers IGNORE";
  /* After SQLITE_BUSY a statement can be stepped again without a reset. */
  if (t->unreset && c->real->api.stmt_busy(t->stmt)) return "SQLite has begun to run it";
  if (t->verdict == WL_CHEAP_TEXT && !wl_always) return "it takes few steps in SQLite";
  if (t->verdict == WL_UNKNOWN_TEXT && wl_connection_is_small(c)) return "the database is small";
  if (!wl_always && t->verdict == WL_COSTLY_TEXT && !wl_verdict_asks(c, t->hash))
    return "it was left to SQLite before";
  if (!strcasestr(c->real->api.sql(t->stmt), "from")) return "it reads no table";
  if (!wl_always && c->real->api.txn_state &&
      c->real->api.txn_state(c->db, NULL) == SQLITE_TXN_WRITE)
    return "it is in a transaction that writes";
  return NULL;
}

static inline int in_sqlite(wl_statement *t) {
  int rc = t->conn->real->api.step(t->stmt);
  /* Only now: to prepare a statement again, SQLite resets it, and that call comes to our reset. */
  t->state = WL_IN_SQLITE;
  t->unreset = true;
  wl_forget_result_if(
      t->conn->db); /* a function of the application may have run a native statement */
  if (rc != SQLITE_ROW) wl_sqlite_ended(t);
  return rc;
}

static int count_steps(const wl_statement *t) {
  return t->conn->real->api.stmt_status(t->stmt, SQLITE_STMTSTATUS_VM_STEP, 0);
}

static void judge(wl_statement *t, wl_verdict v) {
  if (t->verdict == v) return;
  t->verdict = v;
  wl_verdict_set(t->conn, t->hash, v);
}

void wl_sqlite_ended(wl_statement *t) {
  t->state = WL_AT_REST;
  t->n_unread++;
  if (t->verdict != WL_CHEAP_TEXT || t->n_unread >= READ_EVERY) wl_sqlite_cost(t);
  if (WL_UNLIKELY(wl_reporting)) wl_report_end(t);
}

/* Tells libwarplite what an execution took that it has left to SQLite. */
static void tell(wl_statement *t, int n_steps) {
  wl_connection *c = t->conn;
  const wl_native_calls *lib = wl_library_if_open();
  t->asked = false;
  if (!lib || n_steps < TELL_STEPS) return;
  wl_enter(c);
  if (lib->took(c->db, t->stmt, n_steps)) wl_verdict_set(c, t->hash, WL_COSTLY_TEXT);
  wl_leave(c);
}

void wl_sqlite_cost(wl_statement *t) {
  int now = count_steps(t), taken = now - t->n_steps;
  bool small = atomic_load_explicit(&t->conn->small, memory_order_relaxed);
  t->n_steps = now;
  t->n_unread = 0;
  if (taken < 0) taken = now; /* the application has reset the count */
  if (WL_UNLIKELY(t->asked)) tell(t, taken);
  if (taken > (small ? WL_COSTLY_IN_SMALL : WL_COSTLY_STEPS))
    judge(t, WL_COSTLY_TEXT);
  else if (!small)
    judge(t, WL_CHEAP_TEXT);
}

/* ---- the trial */

typedef struct trial {
  const wl_statement *statement;
  int n_left, n_early;
  int n_idle; /* databases without a transaction as it began */
  bool stopped;
} trial;

/* The number of databases without a transaction. 0: TEMP alone, which is never locked. */
static int count_idle(const wl_connection *c) {
  enum { TEMP = 1 };
  const sqlite3_api_routines *api = &c->real->api;
  int n = 0, n_others = 0;
  if (!api->txn_state) return 0;
  if (!api->db_name) return api->txn_state(c->db, NULL) == SQLITE_TXN_NONE;
  for (int i = 0;; i++) {
    const char *schema = api->db_name(c->db, i);
    if (!schema && i != TEMP) break;
    bool idle = schema && api->txn_state(c->db, schema) == SQLITE_TXN_NONE;
    n += idle;
    n_others += idle && i != TEMP;
  }
  return n_others ? n : 0;
}

/* SQLite's progress handler during the trial. If the statement is not running, SQLite reads the
** schema to prepare it again. If it has begun no transaction, SQLite may be about to return
** SQLITE_BUSY, which an interrupt would replace. */
static int stop(void *arg) {
  enum { MAX_EARLY = 8 };
  trial *x = arg;
  const wl_statement *t = x->statement;
  const sqlite3_api_routines *api = &t->conn->real->api;
  if (!api->stmt_busy(t->stmt)) return 0;
  if (x->n_idle && count_idle(t->conn) == x->n_idle && x->n_early++ < MAX_EARLY) return 0;
  if (--x->n_left > 0) return 0;
  x->stopped = true;
  wl_silent++; /* SQLite logs that the statement was interrupted */
  return 1;
}

/* Runs the statement for a while. Returns SQLITE_DONE if it has ended, SQLITE_ROW if it was
** stopped, or SQLite's error, with the statement as the error has left it. */
static int try_it(wl_statement *t) {
  wl_connection *c = t->conn;
  const sqlite3_api_routines *api = &c->real->api;
  bool brief = wl_always || c->n_impure;
  int n_allowed = t->verdict == WL_COSTLY_TEXT ? ALLOWANCE_COSTLY : ALLOWANCE_UNKNOWN;
  trial x = {.statement = t, .n_left = brief ? 1 : n_allowed, .n_idle = count_idle(c)};
  int n_questions = c->n_questions, n_ignored = c->n_ignored, n_rows = 0, rc;
  api->progress_handler(c->db, brief ? 1 : GRAIN, stop, &x);
  while ((rc = api->step(t->stmt)) == SQLITE_ROW && ++n_rows < MAX_ROWS)
    if (n_rows == 1) wl_silent++; /* an error after this is logged when the statement runs again */
  api->progress_handler(c->db, c->progress_steps, c->progress, c->progress_arg);
  wl_silent -= x.stopped + (n_rows > 0);
  if (c->n_questions != n_questions) t->ignored = c->n_ignored != n_ignored;
  if (x.stopped) rc = SQLITE_ROW;
  bool fails = rc != SQLITE_ROW && rc != SQLITE_DONE;
  t->unreset = fails && (n_rows == 0 || rc == SQLITE_INTERRUPT);
  if (t->unreset) return rc;
  api->reset(t->stmt);
  t->n_steps = count_steps(t);
  return fails ? SQLITE_DONE : rc; /* the rows before the error must be returned first */
}

/* ---- */

/*
** Whether SQLite's calls of its own functions come here, and so those of extensions, which get
** SQLite's table of functions. A SQLite that is linked otherwise hides them, and then functions of
** extensions are not counted. Tried once: a collation with an encoding that does not exist is
** refused, after SQLite has called another function of its own.
*/
static bool counts_functions(wl_connection *c) {
  enum { UNTRIED, COUNTS, HIDDEN, NO_SUCH_ENCODING = 99 };
  static atomic_int known;
  if (known == UNTRIED) {
    int n = c->n_functions;
    c->real->api.create_collation(c->db, "wl_none", NO_SUCH_ENCODING, NULL, NULL);
    known = c->n_functions != n ? COUNTS : HIDDEN;
    c->n_functions = n;
  }
  return known == COUNTS;
}

/* Opens libwarplite for the connection at its first question. */
static const wl_native_calls *library_for(wl_connection *c) {
  const wl_native_calls *lib = wl_library(c->real);
  char message[WL_NATIVE_TEXT] = "";
  if (lib && c->authorizer && !c->asked_through) {
    c->asked_through = lib->authorizer(c->db, c->authorizer, c->authorizer_arg);
    if (!c->asked_through) lib = NULL;
  }
  if (lib && !c->opened) {
    c->opened = true;
    if (!lib->open(c->db, message)) lib = NULL;
    if (*message) wl_library_complain(message);
  }
  if (!lib) c->off = true;
  return lib;
}

/* Limits that SQLite checks as it prepares a statement. The application's statement has passed
** them, but warplite's own need not, and a program with too many steps counts as out of memory. */
static const int prepare_limits[WL_N_LIFTED] = {
    SQLITE_LIMIT_SQL_LENGTH, SQLITE_LIMIT_COLUMN,       SQLITE_LIMIT_EXPR_DEPTH,
    SQLITE_LIMIT_VDBE_OP,    SQLITE_LIMIT_FUNCTION_ARG, SQLITE_LIMIT_COMPOUND_SELECT};

void wl_limits_lift(const wl_connection *c, int saved[WL_N_LIFTED]) {
  for (int k = 0; k < WL_N_LIFTED; k++)
    saved[k] = c->real->api.limit(c->db, prepare_limits[k], INT_MAX);
}

void wl_limits_restore(const wl_connection *c, const int saved[WL_N_LIFTED]) {
  for (int k = 0; k < WL_N_LIFTED; k++) c->real->api.limit(c->db, prepare_limits[k], saved[k]);
}

/* Starts the statement natively. False: SQLite runs it. */
static bool start(wl_statement *t) {
  wl_connection *c = t->conn;
  char reason[WL_NATIVE_TEXT] = "sqlite: libwarplite cannot be used";
  wl_native_ask ask = {.db = c->db, .stmt = t->stmt};
  wl_connection *outside = wl_inside;
  int limits[WL_N_LIFTED];
  wl_silent++;
  wl_inside = c;
  wl_limits_lift(c, limits);
  const wl_native_calls *lib = library_for(c);
  ask.no_functions = counts_functions(c) && c->n_functions == 0;
  t->run = lib ? lib->start(&ask, reason) : NULL;
  wl_limits_restore(c, limits);
  wl_inside = outside;
  wl_silent--;
  if (WL_UNLIKELY(wl_reporting)) wl_report_decided(t, reason);
  if (!t->run) return false;
  int n = c->real->api.column_count(t->stmt);
  if (n != t->n_columns || !t->cells) {
    for (int k = 0; k < t->n_columns; k++) free(t->cells[k].text);
    free(t->cells);
    t->cells = calloc((size_t)n + 1, sizeof *t->cells);
    t->n_columns = t->cells ? n : 0;
  }
  t->row = t->rows.n_rows = 0;
  t->n_events = atomic_load(&c->n_events);
  wl_set_state(t, WL_RUNNING);
  if (t->cells) return true;
  wl_native_finish(t);
  return false;
}

static int ask(wl_statement *t) {
  wl_connection *c = t->conn;
  int n_interrupts = atomic_load(&c->n_interrupts);
  int rc = try_it(t);
  if (rc == SQLITE_DONE && t->verdict == WL_UNKNOWN_TEXT) judge(t, WL_CHEAP_TEXT);
  if (rc != SQLITE_DONE && rc != SQLITE_ROW) return rc; /* SQLite's error */
  if (rc == SQLITE_ROW && !t->ignored) {
    bool native = start(t);
    /* SQLite forgets an interrupt when it starts a statement and no other runs. */
    if (n_interrupts != atomic_load(&c->n_interrupts)) return wl_interrupted(t);
    if (native) wl_verdict_ran(c, t->hash);
    if (native) return wl_native_step(t);
    if (!wl_always) wl_verdict_left(c, t->hash);
    t->asked = true;
  }
  if (WL_UNLIKELY(wl_reporting) && rc == SQLITE_DONE)
    wl_report_decided(t, "sqlite: it takes few steps in SQLite");
  t->n_extra_runs++;
  return in_sqlite(t);
}

int wl_first_step(wl_statement *t) {
  wl_connection *c = t->conn;
  t->failed = SQLITE_OK; /* a step without a reset starts again, and the last error is over */
  if (WL_UNLIKELY(t->state == WL_ENDED)) wl_set_state(t, WL_AT_REST);
  if (WL_LIKELY(t->verdict == WL_CHEAP_TEXT && !wl_always && !wl_reporting)) return in_sqlite(t);
  const char *why = unasked(t);
  if (WL_UNLIKELY(wl_reporting)) wl_report_start(t, why);
  if (why) return in_sqlite(t);
  wl_enter(c);
  wl_forget_result_if(c->db);
  int rc = ask(t);
  wl_leave(c);
  return rc;
}
