/*
** Placement: the cost model, and reading SQLite's own plan. Called when a statement is prepared and
** again when it runs.
*/
#include "plan/place.h"
#include "plan/choose.h"
#include <stdio.h>
#include <string.h>

/*
** Costs of the native engines in ns, measured on a two-core machine: `make bench-router` and
** `bench/run BUILD --turning` show where they are wrong. What SQLite takes is computed from its
** program (price/price.h), and what a GPU takes from its constants (choose.h).
*/
#define CPU_FIXED    70000.0 /* compiling and starting a statement */
#define CPU_AGAIN    35000.0 /* starting a statement that is compiled */
#define LIST_FIXED   45000.0 /* checking that the application has not replaced a function */
#define CPU_ROW      0.5
#define CPU_NODE     0.7 /* an operator of the expressions over a row */
#define CPU_SORT     80.0
#define CPU_CALL     700.0   /* a call of one of SQLite's functions, which share a lock */
#define RESULT_ROW   100.0   /* a row of the result that comes through a virtual table */
#define RESULT_VALUE 30.0    /* a value of it */
#define BATCH_ROW    15.0    /* a row of the result that the client reads from the batch */
#define BATCH_VALUE  5.0     /* a value of it */
#define JOIN_FIXED   80000.0 /* planning and compiling each of several programs */
#define JOIN_AGAIN   20000.0 /* starting each of them, if they are compiled */
#define JOIN_ROW     3.0     /* a row scanned, built into a lookup or looked up */
#define JOIN_PAIR    4.0     /* a pair of rows tried */
#define JOIN_NODES   5.0     /* the same on a GPU, in operators */
#define PAIR_NODES   7.0

/* The native engine is chosen only if it is this many times faster by estimate, because estimates
** are not that good, and a query must not get slower. */
#define MARGIN 1.4
/* The same for a load. */
#define LOAD_MARGIN 1.3

/* Loading, by one thread: a row, each column of its table, and a value that is loaded, from the
** pages of the file; a row and a value if SQLite steps through the table; a value of a tablet
** table. */
#define LOAD_FIXED      100000.0
#define LOAD_ROW        12.0
#define LOAD_COLUMN     2.5
#define LOAD_VALUE      14.0
#define LOAD_STEP_ROW   100.0
#define LOAD_STEP_VALUE 60.0
#define LOAD_TABLET     8.0

static void duration(double ns, char *out, size_t n) {
  if (ns < 1e6)
    snprintf(out, n, "%.0f us", ns / 1e3);
  else if (ns < 1e9)
    snprintf(out, n, "%.1f ms", ns / 1e6);
  else
    snprintf(out, n, "%.1f s", ns / 1e9);
}

void wl_place_warn(const wl_placement *where, const wl_query *q, wl_error *reason) {
  const double slow = 10e9; /* ten seconds: worth a warning */
  char time[24];
  size_t n = strlen(reason->text);
  if (where->whole_ns < slow) return;
  duration(where->whole_ns, time, sizeof time);
  snprintf(reason->text + n, sizeof reason->text - n, "; SQLite is estimated to take %s%s", time,
           where->sqlite_ns < where->whole_ns || q->limit ? " unless LIMIT ends it sooner" : "");
}

/* What loading the missing columns takes. */
static double loading(const wl_place_table *t, const wl_machines *m) {
  double rows = t->size.load_rows, values = t->size.load_values;
  double tablets = t->size.load_tablet_values * LOAD_TABLET / wl_choose_threads(m);
  if (rows <= 0) return tablets;
  double of_rows = rows * LOAD_ROW + t->size.load_columns * LOAD_COLUMN;
  double pages = LOAD_FIXED + (of_rows + values * LOAD_VALUE) / wl_choose_threads(m);
  double steps = LOAD_FIXED + rows * LOAD_STEP_ROW + values * LOAD_STEP_VALUE;
  return tablets + (t->price.by_pages && !t->size.by_steps ? pages : steps);
}

/*
** Whether to load the missing columns now. Either this statement alone is faster with the load. Or
** statements that SQLite has run since the table changed have together lost as much time as a load
** takes. Then the load is late by at most that much, however many statements follow. A table that
** was loaded several times and then changed after few uses is not loaded for the latter reason.
*/
static bool load_pays(const wl_place_table *t, double saved, double load) {
  const wl_query_size *s = &t->size;
  if (saved <= 0) return false;
  if (saved >= load * LOAD_MARGIN) return true;
  bool changes = s->n_loads > 2 && saved * (double)s->n_uses < load * (double)s->n_loads;
  return !changes && s->lost_ns + saved >= load * LOAD_MARGIN;
}

/* Writes the reason for a choice by cost. paid_before: earlier statements have lost enough time to
** pay for the load. */
static void say_costs(const wl_place_table *t, double warm, double load, double copy,
                      bool paid_before, wl_placement *out) {
  char sqlite[24], native[24], loads[24] = "", copies[24];
  const char *about = t->size.exact ? "" : "about ";
  duration(out->sqlite_ns, sqlite, sizeof sqlite);
  duration(warm, native, sizeof native);
  duration(load, loads, sizeof loads);
  const char *plus = load > 0 ? " plus " : "", *to_load = load > 0 ? " to load" : "";
  if (load <= 0) *loads = 0;
  duration(copy, copies, sizeof copies);
  const char *and = copy > 0 ? " plus " : "", *to_copy = copy > 0 ? " to copy" : "";
  if (copy <= 0) *copies = 0;
  bool in_sqlite = out->engine == WL_ENGINE_SQLITE;
  if (in_sqlite && *t->price.unknown && t->price.ns > warm * MARGIN)
    snprintf(out->reason, sizeof out->reason,
             "%s%lld rows, and the range of %s that SQLite reads is not known before it runs",
             about, t->size.n_rows, t->price.unknown);
  else if (in_sqlite)
    snprintf(out->reason, sizeof out->reason,
             "%s%lld rows, estimated %s in SQLite against %s%s%s%s natively", about, t->size.n_rows,
             sqlite, native, plus, loads, to_load);
  else
    snprintf(out->reason, sizeof out->reason,
             "%s%lld rows, estimated %s%s%s%s%s%s%s against %s in SQLite%s", about, t->size.n_rows,
             native, plus, loads, to_load, and, copies, to_copy, sqlite,
             paid_before ? ", and earlier statements took longer than a load" : "");
}

/* Chooses SQLite or a native engine, whose costs do not include the load yet, by cost. copy: what
** it takes to copy columns to the GPU, in this machine's time. The CPU, which needs none, was
** nearly as good then, so it is compared with SQLite. */
static void compare(const wl_place_table *t, const wl_machines *m, wl_engine native, double copy,
                    wl_placement *out) {
  double warm = out->warm_ns, load = loading(t, m);
  double saved = out->sqlite_ns - (copy > 0 ? out->cpu_ns : warm) * MARGIN;
  bool pays = load > 0 ? load_pays(t, saved, load) : saved > 0;
  out->engine = pays ? native : WL_ENGINE_SQLITE;
  out->loads = load > 0;
  out->lost_ns = !pays && load > 0 && saved > 0 ? saved : 0;
  out->cpu_ns += load;
  out->gpu_ns += load;
  say_costs(t, warm, load, copy / wl_choose_scale(m), saved < load * LOAD_MARGIN, out);
}

void wl_place_sqlite(const wl_sqlite_price *price, wl_placement *out) {
  out->sqlite_ns = *price->unknown ? price->least_ns : price->ns;
  out->whole_ns = price->whole_ns;
  out->priced = true;
}

/* Compares the estimates, chooses the engine and writes the reason. cpu_ns is set. */
static void decide(const wl_settings *set, const wl_place_table *t, const wl_machines *m,
                   const wl_work *w, wl_placement *out) {
  double scale = wl_choose_scale(m), cpu = out->cpu_ns * scale;
  double gpu = wl_choose_gpu(set, w, t, m), copy = 0;
  /* No GPU calls SQLite's functions. */
  bool both = set->engine == WL_ENGINE_AUTO && m->has_device && set->device == WL_DEVICE_CUDA &&
              !t->slow_calls;
  wl_engine native = set->engine == WL_ENGINE_GPU ? WL_ENGINE_GPU : WL_ENGINE_CPU;
  out->sqlite_ns = out->whole_ns = out->lost_ns = out->not_copied_ns = 0;
  out->priced = out->left_device = false;
  out->by_price = both;
  if (set->route != WL_ROUTE_ALWAYS) wl_place_sqlite(&t->price, out);
  if (both) copy = wl_choose_copy(set, t, m);
  if (both) native = wl_choose(t, cpu, gpu, copy, &out->not_copied_ns);
  if (native != WL_ENGINE_GPU) copy = 0;
  out->run_ns = (native == WL_ENGINE_GPU ? gpu + copy : cpu) - w->client_ns * scale;
  out->cpu_ns *= t->native_factor[WL_ON_CPU_MACHINE];
  out->gpu_ns = gpu / scale * t->native_factor[WL_ON_GPU_MACHINE];
  out->loads = t->size.n_missing > 0;
  out->warm_ns = native == WL_ENGINE_GPU ? out->gpu_ns : out->cpu_ns;
  out->engine = native;
  if (set->route == WL_ROUTE_ALWAYS)
    snprintf(out->reason, sizeof out->reason, "route=always, %s%lld rows",
             t->size.exact ? "" : "about ", t->size.n_rows);
  else
    compare(t, m, native, copy, out);
  out->copies = out->engine == WL_ENGINE_GPU && copy > 0;
  if (out->engine != WL_ENGINE_CPU) out->not_copied_ns = 0;
}

/* The work that statements over one table and over several have alike. n_pipelines: those that run
** before the rows of the statement's own query are there, and that one. */
static wl_work work_of(const wl_query *q, const wl_place_table *t, bool sorts, double host_ns,
                       double n_pipelines) {
  double row = t->by_batch ? BATCH_ROW : RESULT_ROW;
  double value = t->by_batch ? BATCH_VALUE : RESULT_VALUE;
  double n = (double)t->size.n_rows;
  return (wl_work){.n_rows = n,
                   .sorted = sorts ? n : 0,
                   .host_ns = host_ns,
                   .client_ns = t->price.n_rows * (row + value * q->n_results),
                   .n_results = t->price.n_rows * q->n_results,
                   .n_pipelines =
                       n_pipelines + (q->aggregate || q->grouped ? 0.5 : 0) + (sorts ? 1 : 0)};
}

void wl_place(const wl_settings *set, const wl_query *q, const wl_plan_facts *facts,
              const wl_place_table *t, const wl_machines *m, wl_placement *out) {
  double n = (double)t->size.n_rows, nodes = q->n_nodes_cost;
  double calls = n * CPU_CALL * t->slow_calls;
  double fixed = (t->compiled ? CPU_AGAIN : CPU_FIXED) + (t->lists_functions ? LIST_FIXED : 0);
  double each = CPU_ROW + CPU_NODE * nodes + (facts->sorts ? CPU_SORT : 0);
  wl_work w = work_of(q, t, facts->sorts, fixed + calls, 1);
  w.nodes = nodes + 1;
  out->cpu_ns = fixed + n * each / wl_choose_threads(m) + calls + w.client_ns;
  decide(set, t, m, &w, out);
}

void wl_place_join(const wl_settings *set, const wl_query *q, const wl_place_table *t,
                   const wl_machines *m, wl_placement *out) {
  double n = (double)t->size.n_rows;
  int n_others = q->n_sources - 1 + q->n_derived + q->n_subs;
  double fixed =
      (t->lists_functions ? LIST_FIXED : 0) +
      (t->compiled ? CPU_AGAIN + JOIN_AGAIN * n_others : CPU_FIXED + JOIN_FIXED * n_others);
  double each = JOIN_ROW + (q->n_order ? CPU_SORT : 0);
  wl_work w = work_of(q, t, q->n_order > 0, fixed, 1 + n_others);
  w.nodes = JOIN_NODES + (n > 0 ? t->n_pairs / n * PAIR_NODES : 0);
  out->cpu_ns = fixed + (n * each + t->n_pairs * JOIN_PAIR) / wl_choose_threads(m) + w.client_ns;
  decide(set, t, m, &w, out);
}

/* Reads the table's name from a line of SQLite's plan, and whether it is searched or scanned. */
static bool plan_line(const char *detail, char *name, size_t n, bool *search) {
  *search = strncmp(detail, "SEARCH ", 7) == 0;
  if (!*search && strncmp(detail, "SCAN ", 5) != 0) return false;
  const char *from = detail + (*search ? 7 : 5), *end = strchr(from, ' ');
  snprintf(name, n, "%.*s", end ? (int)(end - from) : (int)strlen(from), from);
  return true;
}

/* Reads "… VIRTUAL TABLE INDEX n:what", SQLite's plan line for a tablet table. The text comes from
** src/tablet/vtab/vtab.c: n is not 0 if a key is looked up, and what contains r= if a rowid is. */
static const char *virtual_index(const char *detail, bool *by_key, bool *by_rowid) {
  static const char words[] = "VIRTUAL TABLE INDEX ";
  const char *at = strstr(detail, words);
  const char *what = at ? strchr(at, ':') : NULL;
  *by_key = what && at[sizeof words - 1] != '0';
  *by_rowid = what && strstr(what, "r=");
  return what ? what + 1 : NULL;
}

/* Reads a top-level line of SQLite's plan. It may be the first loop, a loop inside it, or something
** that does not change the order of rows. Anything else may change it. */
static void note_outer(const char *detail, wl_plan_facts *f) {
  static const char *const harmless[] = {"SCALAR SUBQUERY",     "CORRELATED SCALAR SUBQUERY",
                                         "LIST SUBQUERY",       "CORRELATED LIST SUBQUERY",
                                         "REUSE LIST SUBQUERY", "BLOOM FILTER ON ",
                                         "MATERIALIZE ",        "USING "};
  char name[sizeof f->outer];
  bool search, by_key, by_rowid;
  for (size_t k = 0; k < sizeof harmless / sizeof *harmless; k++)
    if (strncmp(detail, harmless[k], strlen(harmless[k])) == 0) return;
  if (!plan_line(detail, name, sizeof name, &search)) {
    f->outer_in_order = false;
    if (!*f->outer) snprintf(f->outer, sizeof f->outer, "?");
  }
  if (*f->outer) return;
  snprintf(f->outer, sizeof f->outer, "%s", name);
  if (virtual_index(detail, &by_key, &by_rowid))
    f->outer_in_order = !by_key && !by_rowid;
  else if (search) /* several rowids of an IN may come in any order */
    f->outer_in_order = strstr(detail, "USING INTEGER PRIMARY KEY (rowid") && !strstr(detail, "=?");
  else
    f->outer_in_order = strlen(detail) == strlen("SCAN ") + strlen(name);
}

/* Calls fn for each line of SQLite's plan. */
static wl_status each_line(sqlite3 *db, const char *sql, size_t n,
                           void (*fn)(const char *detail, int parent, wl_plan_facts *out),
                           wl_plan_facts *out, wl_error *err) {
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %.*s", (int)n, sql);
  if (!text) return wl_nomem(err);
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2(db, text, -1, &q, NULL);
  sqlite3_free(text);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *detail = (const char *)sqlite3_column_text(q, 3);
    rc = SQLITE_OK;
    if (detail) fn(detail, sqlite3_column_int(q, 1), out);
  }
  sqlite3_finalize(q);
  return rc == SQLITE_DONE ? WL_OK : wl_not_taken(err, "SQLite gives no plan for it");
}

static void note_join_line(const char *detail, int parent, wl_plan_facts *out) {
  if (parent == 0) note_outer(detail, out);
  if (parent == 0 && strcmp(detail, "USE TEMP B-TREE FOR GROUP BY") == 0) out->sorts_groups = true;
  out->gathers |= strncmp(detail, "MATERIALIZE", 11) == 0 || strncmp(detail, "CO-ROUTINE", 10) == 0;
}

wl_status wl_plan_facts_of_join(sqlite3 *db, const char *sql, size_t n, wl_plan_facts *out,
                                wl_error *err) {
  memset(out, 0, sizeof *out);
  out->rowid_order = true;
  return each_line(db, sql, n, note_join_line, out, err);
}

static void note_line(const char *detail, int parent, wl_plan_facts *out) {
  bool by_rowid = strstr(detail, "USING INTEGER PRIMARY KEY") != NULL;
  bool by_index = strstr(detail, "INDEX") != NULL && !by_rowid;
  bool by_key, by_id;
  if (virtual_index(detail, &by_key, &by_id))
    by_index = by_key; /* several keys of an IN list come in key order */
  if (by_index) out->rowid_order = false;
  if (strncmp(detail, "USE TEMP B-TREE", 15) == 0) out->sorts = true;
  if (strcmp(detail, "USE TEMP B-TREE FOR GROUP BY") == 0) out->sorts_groups = true;
}

wl_status wl_plan_facts_read(sqlite3 *db, const char *sql, size_t n, wl_plan_facts *out,
                             wl_error *err) {
  memset(out, 0, sizeof *out);
  out->rowid_order = true;
  return each_line(db, sql, n, note_line, out, err);
}
