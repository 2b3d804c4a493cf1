/*
** Placement: decides by settings and estimated cost which engine runs a statement, and states the
** reason in words and numbers.
*/
#ifndef WL_PLACE_H
#define WL_PLACE_H

#include "base/sqlite.h"
#include "sql/bind.h"
#include "column/transfer.h"
#include "plan/constants.h"
#include "plan/price/price.h"

typedef enum wl_engine { WL_ENGINE_AUTO, WL_ENGINE_CPU, WL_ENGINE_GPU, WL_ENGINE_SQLITE } wl_engine;
typedef enum wl_device_kind { WL_DEVICE_CUDA, WL_DEVICE_SIM } wl_device_kind;
typedef enum wl_route_mode { WL_ROUTE_COST, WL_ROUTE_ALWAYS } wl_route_mode;
/* Whether the device's constants are measured if they are not known, not at all, or again now. */
typedef enum wl_calibration {
  WL_CALIBRATE_AUTO,
  WL_CALIBRATE_OFF,
  WL_CALIBRATE_NOW
} wl_calibration;

typedef struct wl_settings {
  wl_engine engine;
  wl_device_kind device;
  wl_route_mode route;
  bool strict;
  bool keep; /* data computed from rows may be kept after its statement */
  wl_calibration calibrate;
  int threads;
  wl_i64 host_budget, device_budget;
  wl_transfer transfer;
} wl_settings;

/* What SQLite's own plan for the statement says about the order of rows. */
typedef struct wl_plan_facts {
  bool rowid_order;  /* it scans or searches in rowid order */
  bool sorts;        /* it sorts, or collects distinct rows */
  bool sorts_groups; /* it sorts for GROUP BY; else groups come in the order of the scan */
  /* Only from wl_plan_facts_of_join(): */
  bool gathers;        /* it computes the rows of a subquery separately */
  char outer[64];      /* the table of its outermost loop, by its name in the statement */
  bool outer_in_order; /* that loop is in rowid order, and nothing after it changes the order */
} wl_plan_facts;

typedef struct wl_placement {
  wl_engine engine; /* never AUTO */
  char reason[256];
  double sqlite_ns, cpu_ns, gpu_ns; /* the estimates */
  double warm_ns;                   /* of the native engine, without loading columns */
  bool loads;                       /* columns are missing */
  double whole_ns;                  /* SQLite's time if no LIMIT ends it sooner */
  bool priced;                      /* sqlite_ns and whole_ns are set */
  double lost_ns; /* SQLite was chosen only because columns are not loaded; the time this costs */
  bool by_price;  /* CPU and GPU were compared */
  bool copies;    /* the GPU was chosen, and columns must be copied to it */
  /* The CPU was chosen only because columns are not on the GPU; the time this costs. */
  double not_copied_ns;
  /* Of the native engine until the rows are there, with copies, in this machine's time and without
  ** corrections; 0: unknown. */
  double run_ns;
  bool left_device; /* the CPU runs it, although the GPU was chosen */
} wl_placement;

/*
** The tables that a query reads.
** n_rows, exact: rows of all tables; exact if all are in memory.
** n_missing: columns to load.
** load_rows, load_values: rows of ordinary tables with missing columns, and their missing values.
** load_columns: the sum of the columns that each of these rows has.
** by_steps: SQLite must step through one of them, because its pages are not decoded.
** load_tablet_values: the same of tablet tables.
** lost_ns: time lost because these tables were not loaded (wl_source_history).
** n_uses, n_loads: of the table with missing columns that was loaded most often.
** version: changes with the contents of each table.
*/
typedef struct wl_query_size {
  wl_i64 n_rows;
  bool exact;
  int n_missing;
  bool by_steps;
  double load_rows, load_columns, load_values, load_tablet_values;
  double lost_ns;
  wl_i64 n_uses, n_loads;
  wl_u64 version;
} wl_query_size;

/* The columns that a query reads, as a device sees them. lost_ns: estimated time that was lost
** since they last changed because some are not there. */
typedef struct wl_query_copies {
  double n_bytes, n_absent, lost_ns;
} wl_query_copies;

/* How far estimates of the native machines were off, in this connection's runs of a text and of
** texts that differ from it in literals only. */
enum { WL_ON_CPU_MACHINE, WL_ON_GPU_MACHINE, WL_N_MACHINES };
typedef struct wl_measured {
  double ratio[WL_N_MACHINES]; /* measured time divided by the estimate; 0: it has not run there */
  int n_on[WL_N_MACHINES];     /* runs on each, up to 2 */
  int last;                    /* the machine of the last run */
  int n_runs;                  /* on both, up to a few */
} wl_measured;

/* What is known about the tables and about SQLite's way to run the statement. */
typedef struct wl_place_table {
  wl_query_size size;
  wl_sqlite_price price;
  int slow_calls; /* calls of SQLite's functions per row, without those per dictionary entry */
  double n_pairs; /* pairs of rows that joins examine one by one */
  /* Correction of each native machine against SQLite, from earlier runs of the text; 1: none. */
  double native_factor[WL_N_MACHINES];
  wl_query_copies copies;      /* set if there is a device */
  const wl_measured *measured; /* or NULL */
  bool compiled;               /* by an earlier run, over the same columns */
  bool lists_functions;        /* the application's functions must be listed */
  bool by_batch;               /* the client reads the rows of the result without a virtual table */
} wl_place_table;

/* What is known of the machines. The caller fills it in, because this layer knows no device. */
typedef struct wl_machines {
  int n_threads;   /* of the CPU machine */
  bool has_device; /* a GPU that engine=auto may choose */
  wl_i64 memory;   /* of that GPU, for columns and results */
  wl_constants is; /* what work takes; without a device the defaults */
} wl_machines;

void wl_place(const wl_settings *set, const wl_query *q, const wl_plan_facts *facts,
              const wl_place_table *t, const wl_machines *m, wl_placement *out);

/* Asks SQLite for its plan of a statement over one table, or over several. */
wl_status wl_plan_facts_read(sqlite3 *db, const char *sql, size_t n, wl_plan_facts *out,
                             wl_error *err) WL_MUST;
wl_status wl_plan_facts_of_join(sqlite3 *db, const char *sql, size_t n, wl_plan_facts *out,
                                wl_error *err) WL_MUST;

/* Sets the estimates of SQLite's time. */
void wl_place_sqlite(const wl_sqlite_price *price, wl_placement *out);

/* If SQLite must run a statement and will take long, adds a warning to the reason. */
void wl_place_warn(const wl_placement *where, const wl_query *q, wl_error *reason);

/* Chooses the engine for a statement over several tables. t has their totals. */
void wl_place_join(const wl_settings *set, const wl_query *q, const wl_place_table *t,
                   const wl_machines *m, wl_placement *out);

/* Changes a setting. Returns WL_ERROR, with a message that says what is wrong, if it cannot. */
wl_status wl_settings_set(wl_settings *s, const char *name, const char *value,
                          wl_error *err) WL_MUST;
/* "a=b,c=d" */
wl_status wl_settings_list(wl_settings *s, const char *list, wl_error *err) WL_MUST;
void wl_settings_init(wl_settings *s);

#endif
