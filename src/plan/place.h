/*
** Placement: which engine runs a statement, by settings and estimated cost, with the reason
** in words and numbers.
*/
#ifndef WL_PLACE_H
#define WL_PLACE_H

#include "base/sqlite.h"
#include "sql/bind.h"
#include "column/transfer.h"

typedef enum wl_engine { WL_ENGINE_AUTO, WL_ENGINE_CPU, WL_ENGINE_GPU, WL_ENGINE_SQLITE } wl_engine;
typedef enum wl_device_kind { WL_DEVICE_CUDA, WL_DEVICE_SIM } wl_device_kind;
typedef enum wl_route { WL_ROUTE_COST, WL_ROUTE_ALWAYS } wl_route;

typedef struct wl_settings {
  wl_engine engine;
  wl_device_kind device;
  wl_route route;
  bool strict;
  int threads;
  wl_i64 host_budget, device_budget;
  wl_transfer transfer;
} wl_settings;

/* What SQLite's own plan for the statement says. */
typedef struct wl_plan_facts {
  bool rowid_order;  /* it scans or searches in rowid order */
  bool point_lookup; /* it finds few rows by equality on a key or index */
  bool range_lookup; /* it searches a range … */
  char range[64];    /* … of this column, by its name */
  bool sorts;        /* it sorts, or gathers distinct rows, so that nothing comes out early */
  bool sorts_groups; /* it sorts for GROUP BY; else groups come in the order of the scan */
  /* of a statement that is not simple (wl_plan_work): */
  bool gathers;        /* the rows of a subquery are computed as such, not as part of another */
  double work_ns;      /* what its plan costs */
  char outer[64];      /* the table of its outermost loop, as the statement calls it, … */
  bool outer_in_order; /* … which is in the order of rowids, and nothing comes behind the loops */
} wl_plan_facts;

typedef struct wl_placement {
  wl_engine engine; /* never AUTO */
  char reason[256];
  double sqlite_ns, cpu_ns, gpu_ns; /* the estimates */
} wl_placement;

/* What is known of the table. */
typedef struct wl_place_table {
  wl_i64 n_rows;
  bool exact;       /* … or an estimate */
  bool in_segments; /* as wl_source has it */
  double share;     /* of wl_place_share() */
  int n_missing;    /* columns to be loaded */
  int slow_calls;   /* calls of SQLite that no dictionary makes rare */
  double n_pairs;   /* of rows that joins go through one by one */
  wl_i64 n_uses, n_loads;
  bool has_device;
} wl_place_table;

void wl_place(const wl_settings *set, const wl_query *q, const wl_plan_facts *facts,
              const wl_place_table *t, wl_placement *out);

/* The share of a table's rows that a range search finds, going by the range of the column's
** values where that is in memory, as if they were spread evenly. */
double wl_place_share(const wl_query *q, const wl_plan_facts *facts, const wl_table *t);

/* Asks SQLite for its plan. */
wl_status wl_plan_facts_read(sqlite3 *db, const char *sql, size_t n, wl_plan_facts *out,
                             wl_error *err) WL_MUST;

/* What SQLite's plan for a statement of several tables costs it, and what its outermost loop is.
** rows: of the table that the statement calls so, or less than 0. */
wl_status wl_plan_work(sqlite3 *db, const char *sql, size_t n,
                       double (*rows)(void *arg, const char *name), void *arg, wl_plan_facts *out,
                       wl_error *err) WL_MUST;

/* Adds to the reason why SQLite must run a statement that it will take long, where it will. */
void wl_place_warn(const wl_placement *where, const wl_query *q, wl_error *reason);

/* The engine for a statement of several tables: their rows in all, columns to be loaded. */
void wl_place_join(const wl_settings *set, const wl_query *q, const wl_plan_facts *facts,
                   const wl_place_table *t, wl_placement *out);

/* Settings by name, as text: WL_ERROR with a message that names what is wrong. */
wl_status wl_settings_set(wl_settings *s, const char *name, const char *value,
                          wl_error *err) WL_MUST;
/* "a=b,c=d" */
wl_status wl_settings_list(wl_settings *s, const char *list, wl_error *err) WL_MUST;
void wl_settings_init(wl_settings *s);

#endif
