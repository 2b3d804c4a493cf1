/*
** Placement: the cost model, and reading SQLite's own plan. Called when a statement is prepared and
** again when it runs.
*/
#include "plan/place.h"
#include "plan/cut.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
** Costs in nanoseconds, measured on a two-core machine. Only their ratios matter.
** The first two are SQLite's: a row scanned, and an operator of the expressions over it.
*/
#define COST_ROW    40.0
#define COST_NODE   11.0
#define COST_POINT  8000.0
#define COST_FIND   500.0   /* a row found through an index */
#define COST_CALL   80.0    /* a function called */
#define COST_SORT   30.0    /* a row sorted, times log2 of the number of rows */
#define COST_TOP    20.0    /* a row examined for a sort with LIMIT, which keeps few rows */
#define RANGE       0.25    /* share of the rows in a range about which nothing is known */
#define CPU_FIXED   70000.0 /* rewriting, compiling and starting a statement */
#define AGG_FIXED   45000.0 /* checking that the application has not replaced an aggregate */
#define CPU_ROW     0.5
#define CPU_NODE    0.7
#define CPU_SORT    80.0
#define CPU_CALL    700.0 /* a call of one of SQLite's functions, which share a lock */
#define GPU_FIXED   160000.0
#define GPU_NODE    0.03
#define LOAD_ROW    45.0
#define LOAD_VALUE  28.0
#define COST_VROW   200.0  /* a row that SQLite scans in a tablet table */
#define COST_VFIND  3000.0 /* a row that SQLite finds in a tablet table by its key */
#define LOAD_TABLET 4.0    /* a value loaded from a tablet table */
#define LOAD_USES   8.0    /* statements that a load is expected to serve */
#define LIMIT_SKIP  16.0   /* with LIMIT, rows that SQLite reads for one that passes WHERE */

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
  if (where->sqlite_ns < slow) return;
  duration(where->sqlite_ns, time, sizeof time);
  snprintf(reason->text + n, sizeof reason->text - n, "; SQLite is estimated to take %s%s", time,
           q->limit ? " unless LIMIT ends it sooner" : "");
}

static bool small_number(const wl_bexpr *e, wl_i64 *out) {
  *out = 0;
  if (!e) return true;
  if (e->kind != WL_B_CONST || e->value.t != WL_T_INT || (wl_i64)e->value.v < 0) return false;
  *out = (wl_i64)e->value.v;
  return true;
}

/* How many rows SQLite would read. If it neither sorts nor aggregates, LIMIT ends the scan. */
static double rows_read(const wl_query *q, const wl_plan_facts *facts, double n) {
  wl_i64 limit, offset;
  if (!q->limit || q->aggregate || facts->sorts) return n;
  if (!small_number(q->limit, &limit) || !small_number(q->offset, &offset)) return n;
  double most = (double)wl_cut_needed(offset, limit) * (q->where ? LIMIT_SKIP : 1);
  return most < n ? most : n;
}

/* SQLite's cost per row for sorting n rows. */
static double sorting(const wl_query *q, const wl_plan_facts *facts, double n) {
  if (!facts->sorts) return 0;
  return q->limit && !q->grouped ? COST_TOP : COST_SORT * log2(n + 2);
}

/* Compares the estimates, chooses the engine and writes the reason. */
static void decide(const wl_settings *set, const wl_plan_facts *facts, const wl_place_table *t,
                   const wl_machines *m, wl_placement *out) {
  char a[24], b[24];
  wl_engine native = set->engine == WL_ENGINE_GPU ? WL_ENGINE_GPU
                     : set->engine == WL_ENGINE_AUTO && m->has_device &&
                             set->device == WL_DEVICE_CUDA && out->gpu_ns < out->cpu_ns
                         ? WL_ENGINE_GPU
                         : WL_ENGINE_CPU;
  double best = native == WL_ENGINE_GPU ? out->gpu_ns : out->cpu_ns;
  duration(out->sqlite_ns, a, sizeof a);
  duration(best, b, sizeof b);
  const char *about = t->exact ? "" : "about ";
  if (set->route == WL_ROUTE_ALWAYS) {
    out->engine = native;
    snprintf(out->reason, sizeof out->reason, "route=always, %s%lld rows", about, t->n_rows);
  } else if (out->sqlite_ns <= best) {
    out->engine = WL_ENGINE_SQLITE;
    snprintf(out->reason, sizeof out->reason,
             "%s%lld rows%s, estimated %s in SQLite against %s natively", about, t->n_rows,
             facts->point_lookup ? ", few of them looked up by key" : "", a, b);
  } else {
    out->engine = native;
    snprintf(out->reason, sizeof out->reason, "%s%lld rows, estimated %s against %s in SQLite",
             about, t->n_rows, b, a);
  }
}

void wl_place(const wl_settings *set, const wl_query *q, const wl_plan_facts *facts,
              const wl_place_table *t, const wl_machines *m, wl_placement *out) {
  double n = (double)t->n_rows, nodes = q->n_nodes_cost, share = t->share;
  double row = COST_NODE * nodes + COST_CALL * q->n_call_cost + sorting(q, facts, n);
  double scan = rows_read(q, facts, n) * ((t->in_segments ? COST_VROW : COST_ROW) + row);
  double found = COST_POINT + n * share * (COST_FIND + row);
  out->sqlite_ns = facts->point_lookup                     ? COST_POINT
                   : !facts->range_lookup                  ? scan
                   : share < RANGE && found < scan * RANGE ? found
                                                           : scan * RANGE;
  /* If the table was loaded several times, its history replaces LOAD_USES: loading a table that
  ** changes all the time does not pay. */
  double uses = t->n_loads > 2 ? (double)t->n_uses / (double)t->n_loads : LOAD_USES;
  if (uses < 1) uses = 1;
  double load = t->n_missing ? n * (LOAD_ROW + LOAD_VALUE * t->n_missing) / uses : 0;
  if (t->in_segments) load = n * LOAD_TABLET * t->n_missing / uses;
  double fixed = q->n_calls ? AGG_FIXED : 0;
  double each = CPU_ROW + CPU_NODE * nodes + (facts->sorts ? CPU_SORT : 0);
  out->cpu_ns = CPU_FIXED + fixed + n * (each / m->n_threads + CPU_CALL * t->slow_calls) + load;
  out->gpu_ns = GPU_FIXED + fixed + n * GPU_NODE * nodes + load;
  decide(set, facts, t, m, out);
}

#define JOIN_FIXED   120000.0 /* planning and compiling each of several programs */
#define JOIN_ROW     3.0      /* a row scanned, built into a lookup or looked up */
#define JOIN_PAIR    4.0      /* a pair of rows tried */
#define JOIN_ROW_GPU 0.15

void wl_place_join(const wl_settings *set, const wl_query *q, const wl_plan_facts *facts,
                   const wl_place_table *t, const wl_machines *m, wl_placement *out) {
  double n = (double)t->n_rows;
  double uses = t->n_loads > 2 ? (double)t->n_uses / (double)t->n_loads : LOAD_USES;
  double load = t->n_missing ? n * (LOAD_ROW / 2 + LOAD_VALUE) / (uses < 1 ? 1 : uses) : 0;
  double fixed = CPU_FIXED + (q->n_calls ? AGG_FIXED : 0) +
                 JOIN_FIXED * (q->n_sources - 1 + q->n_derived + q->n_subs);
  out->sqlite_ns = facts->work_ns;
  out->cpu_ns = fixed + (n * JOIN_ROW + t->n_pairs * JOIN_PAIR) / m->n_threads + load;
  out->gpu_ns = GPU_FIXED + fixed + n * JOIN_ROW_GPU +
                t->n_pairs * JOIN_PAIR * (JOIN_ROW_GPU / JOIN_ROW) + load;
  decide(set, facts, t, m, out);
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

wl_status wl_plan_work(sqlite3 *db, const char *sql, size_t n,
                       double (*rows)(void *arg, const char *name), void *arg, wl_plan_facts *out,
                       wl_error *err) {
  enum { MAX_NESTS = 64 };
  struct {
    int parent;
    double loops; /* how often the next line of this nest runs */
  } nests[MAX_NESTS];
  int n_nests = 0;
  double work = COST_POINT;
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %.*s", (int)n, sql);
  if (!text) return wl_nomem(err);
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2(db, text, -1, &q, NULL);
  sqlite3_free(text);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *detail = (const char *)sqlite3_column_text(q, 3);
    char name[128];
    bool search;
    int parent = sqlite3_column_int(q, 1), k = 0;
    rc = SQLITE_OK;
    if (!detail) continue;
    if (parent == 0) note_outer(detail, out);
    out->gathers |=
        strncmp(detail, "MATERIALIZE", 11) == 0 || strncmp(detail, "CO-ROUTINE", 10) == 0;
    while (k < n_nests && nests[k].parent != parent) k++;
    if (k == n_nests && n_nests < MAX_NESTS) {
      /* A correlated subquery runs once for each row so far. */
      bool again = strstr(detail, "CORRELATED") != NULL;
      nests[n_nests].parent = parent;
      nests[n_nests++].loops = again && k ? nests[k - 1].loops : 1;
    }
    if (k >= n_nests) continue;
    if (strstr(detail, "CORRELATED") && n_nests < MAX_NESTS) {
      nests[n_nests].parent = sqlite3_column_int(q, 0);
      nests[n_nests++].loops = nests[k].loops;
      continue;
    }
    if (strncmp(detail, "USE TEMP B-TREE", 15) == 0) work += nests[k].loops * COST_SORT * 10;
    if (!plan_line(detail, name, sizeof name, &search)) continue;
    double all = rows(arg, name);
    bool by_key, by_rowid;
    const char *tablets = virtual_index(detail, &by_key, &by_rowid);
    if (all < 0) all = 1000; /* a subquery, whose size is not known */
    if (tablets && (by_key || by_rowid)) {
      work += nests[k].loops * COST_VFIND;
    } else if (!search) {
      work += nests[k].loops * all * ((tablets ? COST_VROW : COST_ROW) + 4 * COST_NODE);
      nests[k].loops *= all < 1 ? 1 : all;
    } else {
      bool automatic = strstr(detail, "AUTOMATIC") != NULL, equal = strstr(detail, "=?") != NULL;
      if (automatic) work += all * COST_FIND;
      double each = equal ? 1 : 1 + all * RANGE;
      work += nests[k].loops * (COST_FIND + each * COST_ROW);
      nests[k].loops *= each;
    }
  }
  sqlite3_finalize(q);
  if (rc != SQLITE_DONE) return wl_not_taken(err, "SQLite gives no plan for it");
  out->work_ns = work;
  return WL_OK;
}

static bool number(const wl_bexpr *e, double *out) {
  if (e->kind != WL_B_CONST) return false;
  if (e->value.t == WL_T_INT) *out = (double)(wl_i64)e->value.v;
  if (e->value.t == WL_T_REAL) *out = wl_as_f64(e->value.v);
  return e->value.t == WL_T_INT || e->value.t == WL_T_REAL;
}

/* Narrows lo … hi by the comparisons of a column with numbers among the conjuncts of e. */
static void narrow(const wl_bexpr *e, int column, double *lo, double *hi) {
  if (e->kind == WL_B_AND) {
    narrow(e->a, column, lo, hi);
    narrow(e->b, column, lo, hi);
  }
  if (e->kind != WL_B_COMPARE) return;
  bool turned = e->b->kind == WL_B_COLUMN;
  const wl_bexpr *col = turned ? e->b : e->a;
  double v;
  if (col->kind != WL_B_COLUMN || col->index != column || !number(turned ? e->a : e->b, &v)) return;
  bool below = e->op == WL_OP_LT || e->op == WL_OP_LE,
       above = e->op == WL_OP_GT || e->op == WL_OP_GE;
  if ((turned ? above : below) && v < *hi) *hi = v;
  if ((turned ? below : above) && v > *lo) *lo = v;
}

double wl_place_share(const wl_query *q, const wl_plan_facts *facts, const wl_table *t) {
  const unsigned I = WL_M(WL_T_INT), F = WL_M(WL_T_REAL);
  int c = 0;
  while (c < t->n_cols && sqlite3_stricmp(t->cols[c].name, facts->range) != 0) c++;
  if (!facts->range_lookup || c == t->n_cols || !q->where) return RANGE;
  wl_column *column = wl_source_column(t->source, c);
  if (!column) return RANGE;
  const wl_domain domain = column->domain, *d = &domain;
  wl_column_drop(column);
  unsigned types = d->mask & ~WL_M(WL_T_NULL);
  if (types != I && types != F) return RANGE;
  double least = types == I ? (double)d->lo : d->flo, most = types == I ? (double)d->hi : d->fhi;
  double lo = least, hi = most;
  narrow(q->where, c, &lo, &hi);
  if (lo == least && hi == most) return RANGE; /* the bounds are not known */
  double share = (hi - lo) / (most - least);
  return share > 0 ? share : share <= 0 ? 0 : RANGE; /* NaN, because of infinities: RANGE */
}

/* Reads the column of a range search from the end of SQLite's plan line: "… (a>? AND a<?)". */
static void range_column(const char *detail, char *out, size_t n) {
  const char *op = strpbrk(detail, "<>"), *from = op;
  while (from && from > detail && from[-1] != '(' && from[-1] != ' ') from--;
  snprintf(out, n, "%.*s", op ? (int)(op - from) : 0, op ? from : "");
}

wl_status wl_plan_facts_read(sqlite3 *db, const char *sql, size_t n, wl_plan_facts *out,
                             wl_error *err) {
  memset(out, 0, sizeof *out);
  out->rowid_order = true;
  char *text = sqlite3_mprintf("EXPLAIN QUERY PLAN %.*s", (int)n, sql);
  if (!text) return wl_nomem(err);
  sqlite3_stmt *q = NULL;
  int rc = sqlite3_prepare_v2(db, text, -1, &q, NULL);
  sqlite3_free(text);
  while (!rc && (rc = sqlite3_step(q)) == SQLITE_ROW) {
    const char *detail = (const char *)sqlite3_column_text(q, 3);
    rc = SQLITE_OK;
    if (!detail) continue;
    bool by_rowid = strstr(detail, "USING INTEGER PRIMARY KEY") != NULL;
    bool by_index = strstr(detail, "INDEX") != NULL && !by_rowid;
    bool by_key, by_id;
    const char *tablets = virtual_index(detail, &by_key, &by_id);
    if (tablets) {
      by_index = by_key; /* several keys of an IN list come in key order */
      out->point_lookup |= by_key || by_id;
      out->range_lookup |= *tablets == 'r' && !by_id;
    }
    if (by_index) out->rowid_order = false;
    if (strncmp(detail, "USE TEMP B-TREE", 15) == 0) out->sorts = true;
    if (strcmp(detail, "USE TEMP B-TREE FOR GROUP BY") == 0) out->sorts_groups = true;
    if (strncmp(detail, "SEARCH", 6) == 0) {
      if (strstr(detail, "=?"))
        out->point_lookup = true;
      else if (strchr(detail, '?')) {
        out->range_lookup = true;
        range_column(detail, out->range, sizeof out->range);
      } else
        out->point_lookup = true; /* min() or max() at the end of an index */
    }
  }
  sqlite3_finalize(q);
  if (rc != SQLITE_DONE) return wl_not_taken(err, "SQLite gives no plan for it");
  return WL_OK;
}
