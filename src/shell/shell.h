/*
** The state of the command-line shell, and the functions that its files share.
**
**   main.c    options, opening the database        input.c   lines, statements, line editing
**   run.c     one piece of SQL, errors, timing     output.c  the modes that print row by row
**   table.c   the modes that see all rows first    plan.c    EXPLAIN and EXPLAIN QUERY PLAN
**   dot.c     dot commands                         schema.c  .tables .schema .indexes .databases
**   help.c    the text of -help and .help          progress.c  the bar while a table is loaded
**   import.c  .import                              csv.c     its parser, on all cores
**   columns.c  records as columns, for a tablet table
**
** The shell uses the library through <warplite.h> only. For the same input it writes the same
** bytes as the sqlite3 shell of SQLite 3.40.1. test/clients/shell_test.py checks this.
*/
#ifndef WL_SHELL_H
#define WL_SHELL_H

#ifndef _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stdio.h>
#include <warplite.h>

typedef enum wl_mode {
  MODE_LINE,
  MODE_COLUMN,
  MODE_LIST,
  MODE_HTML,
  MODE_INSERT,
  MODE_QUOTE,
  MODE_TCL,
  MODE_CSV,
  MODE_ASCII,
  MODE_JSON,
  MODE_MARKDOWN,
  MODE_TABLE,
  MODE_BOX,
  MODE_COUNT,
  MODE_OFF
} wl_mode;

enum {
  NAME_BYTES = 20,  /* separators and the text for NULL are cut to this size, as in sqlite3 */
  MAX_NESTING = 25, /* depth of .read inside .read */
  DOT_OK = 0,
  DOT_ERROR = 1,
  DOT_QUIT = 2
};

typedef struct wl_shell {
  sqlite3 *db;       /* NULL until the first use; see wl_shell_open */
  char *db_name;     /* owned; the file to open, ":memory:" if none was named */
  bool readonly;     /* -readonly, or .open --readonly */
  bool nofollow;     /* .open --nofollow */
  const char *argv0; /* the program's name in messages about options */
  char *settings;    /* owned; all -set options, as name=value,... */

  FILE *in;         /* NULL: the terminal, through libedit */
  int lineno;       /* the current line of `in` */
  int nesting;      /* depth of wl_input_process */
  bool interactive; /* prompts, banner, errors without line numbers */

  wl_mode mode;
  char col_sep[NAME_BYTES], row_sep[NAME_BYTES], null_value[NAME_BYTES];
  bool headers, headers_set; /* headers_set: the user set headers, so .mode column does not */
  int wrap;                  /* columnar modes: the longest line in a cell; 0: no limit */
  bool wordwrap, quote;
  char *insert_table; /* owned; the quoted name for .mode insert */

  bool echo, bail, timer, stats;
} wl_shell;

/* main.c */

/*
** Opens the database if it is not open. If the file cannot be opened, the process ends. With
** keep_alive it prints the message and opens a database in memory instead.
*/
void wl_shell_open(wl_shell *sh, bool keep_alive);
void wl_shell_close(wl_shell *sh);

/* input.c */

/* The number of interrupts since the shell last began to wait for input. */
int wl_input_interrupts(void);
/* Sets the handler for Ctrl-C. */
void wl_input_catch_interrupts(void);
/* Sets the connection that Ctrl-C interrupts. Set it to NULL before the connection is closed. */
void wl_input_interrupt_target(sqlite3 *db);
/* Runs all of sh->in. Returns 1 if anything failed, otherwise 0. */
int wl_input_process(wl_shell *sh);
/* Sets up line editing and reads the history. The history is saved when the process ends. */
void wl_input_start_editing(void);

/* run.c */

/*
** Runs every statement of sql up to the first that fails. Returns SQLite's result code. *err is set
** to a message, "in prepare, ..." or "stepping, ...", which the caller frees with sqlite3_free.
*/
int wl_run_sql(wl_shell *sh, const char *sql, char **err);
/* The same for input that began at the given line. Prints errors and .timer; 1 on failure. */
int wl_run_input(wl_shell *sh, const char *sql, int line);

/* output.c */
void wl_output_row(wl_shell *sh, sqlite3_stmt *stmt, int n_col, sqlite3_int64 i_row);
void wl_output_end(wl_shell *sh, sqlite3_int64 n_rows);
/* Whether a name must be in double quotes in SQL. */
bool wl_output_must_quote(const char *name);
/* A value as a SQL literal, for the columnar modes. The caller frees it. */
char *wl_output_literal(sqlite3_stmt *stmt, int col);
const char *wl_output_mode_name(wl_mode mode);
bool wl_output_is_columnar(wl_mode mode);
/* Writes a string as .show prints it: in double quotes, with C escapes. */
void wl_output_c_string(FILE *out, const char *z);

/* table.c: runs the statement to its end and prints the rows. */
void wl_table_print(wl_shell *sh, sqlite3_stmt *stmt, int n_col);

/* plan.c: tells what kind of EXPLAIN a statement is; steps it to its end and prints it. */
typedef enum wl_plan_kind { PLAN_NONE, PLAN_PROGRAM, PLAN_TREE } wl_plan_kind;
wl_plan_kind wl_plan_of(sqlite3_stmt *stmt, const char *sql);
void wl_plan_print(sqlite3_stmt *stmt, wl_plan_kind kind);

/* dot.c: runs one dot command. Returns a DOT_ code. */
int wl_dot_run(wl_shell *sh, const char *line);
/* A number with an optional unit, as an argument of a dot command. */
long long wl_dot_integer(const char *z);
/* Sets the mode and its separators; false if there is no mode of that name. */
bool wl_dot_set_mode(wl_shell *sh, const char *name, const char *table);

/* schema.c: these return DOT_ codes. */
int wl_schema_tables(wl_shell *sh, const char *pattern, bool indexes);
int wl_schema_show(wl_shell *sh, const char *pattern, bool indent, bool no_system);
int wl_schema_databases(wl_shell *sh);

/* progress.c: shows the progress of long loads, if standard error is a terminal. */
void wl_progress_watch(sqlite3 *db);
/* Reports progress of the shell's own work: done is 0 first and total at the end. */
void wl_progress_tell(const char *table, sqlite3_int64 done, sqlite3_int64 total);

/* import.c: args[0] is the command's name. Returns a DOT_ code, or SQLite's code of the last row.
 */
int wl_import_run(wl_shell *sh, int n, char **args);

/* run_program.c: `warplite run`. Returns only if it fails. */
int wl_run_program(int argc, char **argv);

/* help.c */
void wl_help_usage(const char *argv0);
int wl_help_dot(const char *pattern);

#endif
