/*
** The start of the shell: reads the options, opens the database and chooses the input to run.
**
** Invariants:
** 1. Options are read twice. The first pass takes those that decide where input comes from and what
**    to open. The second, after the init file, sets modes and runs commands, in order.
** 2. A database that does not exist is opened at its first use. So a shell that exits at once
**    leaves no file behind.
** 3. A connection is never used before warplite is enabled on it and -set is applied.
*/
#include "shell.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum what {
  OPT_BAIL,
  OPT_BATCH,
  OPT_CMD,
  OPT_ECHO,
  OPT_HEADER,
  OPT_NOHEADER,
  OPT_HELP,
  OPT_INIT,
  OPT_INTERACTIVE,
  OPT_MODE,
  OPT_NEWLINE,
  OPT_NULLVALUE,
  OPT_READONLY,
  OPT_SEPARATOR,
  OPT_SET,
  OPT_STATS,
  OPT_VERSION
} what;

typedef struct option {
  const char *name;
  what id;
  bool has_value;
} option;

static const option options[] = {
    {"ascii", OPT_MODE, false},
    {"bail", OPT_BAIL, false},
    {"batch", OPT_BATCH, false},
    {"box", OPT_MODE, false},
    {"cmd", OPT_CMD, true},
    {"column", OPT_MODE, false},
    {"csv", OPT_MODE, false},
    {"echo", OPT_ECHO, false},
    {"header", OPT_HEADER, false},
    {"help", OPT_HELP, false},
    {"html", OPT_MODE, false},
    {"init", OPT_INIT, true},
    {"interactive", OPT_INTERACTIVE, false},
    {"json", OPT_MODE, false},
    {"line", OPT_MODE, false},
    {"list", OPT_MODE, false},
    {"markdown", OPT_MODE, false},
    {"newline", OPT_NEWLINE, true},
    {"noheader", OPT_NOHEADER, false},
    {"nullvalue", OPT_NULLVALUE, true},
    {"quote", OPT_MODE, false},
    {"readonly", OPT_READONLY, false},
    {"separator", OPT_SEPARATOR, true},
    {"set", OPT_SET, true},
    {"stats", OPT_STATS, false},
    {"table", OPT_MODE, false},
    {"tabs", OPT_MODE, false},
    {"version", OPT_VERSION, false},
};

/* What the command line asks for, except for the state of the shell. */
typedef struct request {
  const char *init_file;
  char **sql; /* arguments to run; borrowed from argv */
  int n_sql;
} request;

static void out_of_memory(void) {
  fputs("Error: out of memory\n", stderr);
  exit(1);
}

/* ---- the database */

/* Applies name=value,... with warplite_set(); prints a message and returns false on failure. */
static bool apply_settings(sqlite3 *db, const char *settings) {
  sqlite3_stmt *stmt = NULL;
  bool ok = false;
  if (sqlite3_prepare_v2(db, "SELECT warplite_set(?1, ?2)", -1, &stmt, NULL) != SQLITE_OK)
    goto done;
  while (*settings) {
    const char *end = strchrnul(settings, ','),
               *eq = memchr(settings, '=', (size_t)(end - settings));
    if (end > settings && !eq) {
      fprintf(stderr, "Error: -set expects name=value, not \"%.*s\"\n", (int)(end - settings),
              settings);
      sqlite3_finalize(stmt);
      return false;
    }
    if (end > settings) {
      sqlite3_bind_text(stmt, 1, settings, (int)(eq - settings), SQLITE_STATIC);
      sqlite3_bind_text(stmt, 2, eq + 1, (int)(end - eq - 1), SQLITE_STATIC);
      sqlite3_step(stmt);
      if (sqlite3_reset(stmt) != SQLITE_OK) goto done;
    }
    settings = *end ? end + 1 : end;
  }
  ok = true;
done:
  if (!ok) fprintf(stderr, "Error: %s\n", sqlite3_errmsg(db));
  sqlite3_finalize(stmt);
  return ok;
}

void wl_shell_open(wl_shell *sh, bool keep_alive) {
  if (sh->db) return;
  int flags = sh->readonly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sh->nofollow) flags |= SQLITE_OPEN_NOFOLLOW;
  int rc = sqlite3_open_v2(sh->db_name, &sh->db, flags, NULL);
  if (rc != SQLITE_OK) {
    fprintf(stderr, "Error: unable to open database \"%s\": %s\n", sh->db_name,
            sh->db ? sqlite3_errmsg(sh->db) : sqlite3_errstr(rc));
    sqlite3_close(sh->db);
    sh->db = NULL;
    if (!keep_alive || sqlite3_open(":memory:", &sh->db) != SQLITE_OK) exit(1);
  }
  sqlite3_enable_load_extension(sh->db, 1);
  if (warplite_enable(sh->db) != SQLITE_OK) {
    fprintf(stderr, "Error: %s\n", warplite_errmsg(sh->db));
    exit(1);
  }
  if (sh->settings && !apply_settings(sh->db, sh->settings)) exit(1);
  wl_progress_watch(sh->db);
  wl_input_interrupt_target(sh->db);
}

void wl_shell_close(wl_shell *sh) {
  wl_input_interrupt_target(NULL);
  sqlite3_close(sh->db);
  sh->db = NULL;
}

/* ---- options */

static const option *find_option(const char *arg) {
  arg++;
  if (*arg == '-') arg++;
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
    if (strcmp(arg, options[i].name) == 0) return &options[i];
  return NULL;
}

static void add_settings(wl_shell *sh, const char *more) {
  char *z =
      sh->settings ? sqlite3_mprintf("%s,%s", sh->settings, more) : sqlite3_mprintf("%s", more);
  if (!z) out_of_memory();
  sqlite3_free(sh->settings);
  sh->settings = z;
}

static void first_pass(wl_shell *sh, request *rq, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    if (*arg != '-') {
      if (!sh->db_name) {
        if (!(sh->db_name = strdup(arg))) out_of_memory();
      } else {
        rq->sql[rq->n_sql++] = argv[i];
      }
      continue;
    }
    const option *o = find_option(arg);
    if (!o) continue; /* the second pass reports it */
    if (o->has_value && i + 1 == argc) {
      fprintf(stderr, "%s: Error: missing argument to %s\n", sh->argv0, arg);
      exit(1);
    }
    const char *value = o->has_value ? argv[++i] : NULL;
    switch (o->id) {
    case OPT_INIT: rq->init_file = value; break;
    case OPT_BATCH: sh->interactive = false; break;
    case OPT_READONLY: sh->readonly = true; break;
    case OPT_BAIL: sh->bail = true; break;
    case OPT_SET: add_settings(sh, value); break;
    default: break;
    }
  }
}

/* Runs one -cmd; returns the exit code, or -1 to continue. */
static int run_command(wl_shell *sh, const char *z) {
  char *err = NULL;
  int rc;
  if (*z == '.') {
    rc = wl_dot_run(sh, z);
    if (rc != DOT_OK && sh->bail) return rc == DOT_QUIT ? 0 : rc;
    return -1;
  }
  wl_shell_open(sh, false);
  rc = wl_run_sql(sh, z, &err);
  if (err)
    fprintf(stderr, "Error: %s\n", err);
  else if (rc != SQLITE_OK)
    fprintf(stderr, "Error: unable to process SQL \"%s\"\n", z);
  sqlite3_free(err);
  return rc != SQLITE_OK && sh->bail ? rc : -1;
}

/*
** A mode option works like .mode, but keeps what other options have set: -list keeps both
** separators, -csv the row separator, -column the headers.
*/
static void set_mode(wl_shell *sh, const char *name) {
  static const char *const set_both[] = {"ascii", "quote", "tabs"};
  wl_shell before = *sh;
  bool both = false;
  wl_dot_set_mode(sh, name, NULL);
  sh->headers = before.headers;
  for (int i = 0; i < 3; i++)
    if (strcmp(name, set_both[i]) == 0) both = true;
  if (!both) memcpy(sh->row_sep, before.row_sep, NAME_BYTES);
  if (!both && sh->mode != MODE_CSV) memcpy(sh->col_sep, before.col_sep, NAME_BYTES);
  if (strcmp(name, "tabs") == 0) strcpy(sh->row_sep, "\n");
}

/* Returns the exit code, or -1 to continue. */
static int second_pass(wl_shell *sh, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (*argv[i] != '-') continue;
    const option *o = find_option(argv[i]);
    if (!o) {
      fprintf(stderr, "%s: Error: unknown option: %s\nUse -help for a list of options.\n",
              sh->argv0, argv[i] + (argv[i][1] == '-'));
      return 1;
    }
    const char *value = o->has_value ? argv[++i] : NULL;
    int rc = -1;
    switch (o->id) {
    case OPT_MODE: set_mode(sh, o->name); break;
    case OPT_HEADER:
    case OPT_NOHEADER:
      sh->headers = o->id == OPT_HEADER;
      sh->headers_set = true;
      break;
    case OPT_SEPARATOR: sqlite3_snprintf(NAME_BYTES, sh->col_sep, "%s", value); break;
    case OPT_NEWLINE: sqlite3_snprintf(NAME_BYTES, sh->row_sep, "%s", value); break;
    case OPT_NULLVALUE: sqlite3_snprintf(NAME_BYTES, sh->null_value, "%s", value); break;
    case OPT_ECHO: sh->echo = true; break;
    case OPT_BAIL: sh->bail = true; break;
    case OPT_STATS: sh->stats = true; break;
    case OPT_INTERACTIVE: sh->interactive = true; break;
    case OPT_BATCH: sh->interactive = false; break;
    case OPT_CMD: rc = run_command(sh, value); break;
    case OPT_VERSION:
      printf("warplite %s, SQLite %s %s\n", warplite_version(), sqlite3_libversion(),
             sqlite3_sourceid());
      return 0;
    case OPT_HELP: wl_help_usage(sh->argv0); return 1;
    case OPT_INIT:
    case OPT_READONLY:
    case OPT_SET: break; /* done in the first pass */
    }
    if (rc >= 0) return rc;
  }
  return -1;
}

/* ---- input */

/* Runs the init file, by default ~/.warpliterc; 1 if the shell must exit. */
static int run_init_file(wl_shell *sh, const char *name) {
  char *own = NULL;
  int rc = 0;
  if (!name) {
    const char *home = getenv("HOME");
    if (!home) return 0;
    name = own = sqlite3_mprintf("%s/.warpliterc", home);
    if (!own) out_of_memory();
  }
  FILE *in = fopen(name, "rb");
  if (in) {
    FILE *in_before = sh->in;
    if (sh->interactive) fprintf(stderr, "-- Loading resources from %s\n", name);
    sh->in = in;
    rc = wl_input_process(sh) && sh->bail;
    sh->in = in_before;
    fclose(in);
  } else if (!own) {
    fprintf(stderr, "cannot open: \"%s\"\n", name);
    rc = sh->bail;
  }
  sqlite3_free(own);
  return rc;
}

/* Runs the SQL and dot commands of the command line until one fails. */
static int run_arguments(wl_shell *sh, const request *rq) {
  for (int i = 0; i < rq->n_sql; i++) {
    char *err = NULL;
    int rc;
    if (*rq->sql[i] == '.') {
      rc = wl_dot_run(sh, rq->sql[i]);
      if (rc != DOT_OK) return rc == DOT_QUIT ? 0 : rc;
      continue;
    }
    wl_shell_open(sh, false);
    rc = wl_run_sql(sh, rq->sql[i], &err);
    if (rc == SQLITE_OK && !err) continue;
    if (err)
      fprintf(stderr, "Error: %s\n", err);
    else
      fprintf(stderr, "Error: unable to process SQL: %s\n", rq->sql[i]);
    sqlite3_free(err);
    return rc ? rc : 1;
  }
  return 0;
}

static int run_terminal(wl_shell *sh, bool in_memory) {
  printf("warplite %s on SQLite %s %.19s\nEnter \".help\" for a list of commands.\n",
         warplite_version(), sqlite3_libversion(), sqlite3_sourceid());
  if (in_memory)
    printf("The database is in memory and is lost at the end. \".open FILE\" opens a file.\n");
  if (isatty(STDIN_FILENO)) wl_input_start_editing();
  sh->in = NULL;
  return wl_input_process(sh);
}

static int run(wl_shell *sh, request *rq, int argc, char **argv) {
  first_pass(sh, rq, argc, argv);
  if (!sh->db_name && !(sh->db_name = strdup(":memory:"))) out_of_memory();
  if (sh->settings || access(sh->db_name, F_OK) == 0) wl_shell_open(sh, false);
  if (run_init_file(sh, rq->init_file)) return 1;
  int rc = second_pass(sh, argc, argv);
  if (rc >= 0) return rc;
  if (rq->n_sql) return run_arguments(sh, rq);
  if (sh->interactive) return run_terminal(sh, argc == 1);
  sh->in = stdin;
  return wl_input_process(sh);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "run") == 0) return wl_run_program(argc, argv);
  wl_shell sh = {.argv0 = argv[0], .mode = MODE_LIST, .col_sep = "|", .row_sep = "\n"};
  request rq = {0};
  static char buffer[1 << 16];
  bool terminal = isatty(STDOUT_FILENO);

  if (!terminal) setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  setvbuf(stderr, NULL, _IONBF, 0);
  wl_input_catch_interrupts();
  sh.interactive = isatty(STDIN_FILENO);
  rq.sql = calloc((size_t)argc + 1, sizeof *rq.sql);
  if (!rq.sql) out_of_memory();
  int rc = run(&sh, &rq, argc, argv);
  fflush(stdout);
  wl_shell_close(&sh);
  free(sh.db_name);
  sqlite3_free(sh.settings);
  sqlite3_free(sh.insert_table);
  free(rq.sql);
  return rc;
}
