/*
** .import: inserts a file of separated values into a table, which is created from the first record
** if it does not exist. csv.c parses on all cores. While one window of records is inserted, the
** next is read.
**
** warplite_append() inserts whole windows into a tablet table. If a row breaks a constraint, the
** window is inserted row by row, as into an ordinary table. So the messages name the line, and the
** other rows are inserted.
**
** Invariants:
** 1. Everything is one transaction, or part of the user's own. Ctrl-C rolls it back.
** 2. Messages, rows and counts are those of the sqlite3 shell, in its order.
*/
#include "shell.h"
#include "csv.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS_BETWEEN_LOOKS = 1024, MAX_REFUSED = 4 };

typedef struct importing {
  wl_shell *sh;
  const char *file, *shown; /* the file as given, and its name in messages */
  const char *schema, *table;
  char *full_name; /* owned; quoted */
  int verbose;
  long long n_skip;
  bool by_mode; /* use the separators of .mode */
  bool ascii;
  char col_sep, row_sep;
  FILE *in;
  int (*closer)(FILE *);
  sqlite3_int64 file_bytes; /* 0: not known */
  wl_csv csv;
  volatile bool stop;
  sqlite3_stmt *insert;
  int n_cols;
  bool own_transaction;
  bool columnar; /* whole windows are appended */
  int n_refused; /* the number of windows refused since the last success */
  long long n_rows, n_errors;
  int rc; /* SQLite's result code of the last row */
} importing;

/* ---- arguments */

static int bad_use(const char *format, const char *what) {
  printf(format, what);
  wl_help_dot("import");
  return DOT_ERROR;
}

static int read_arguments(importing *m, int n, char **args) {
  for (int i = 1; i < n; i++) {
    const char *z = args[i];
    if (z[0] == '-' && z[1] == '-') z++;
    if (*z != '-') {
      if (!m->file)
        m->file = z;
      else if (!m->table)
        m->table = z;
      else
        return bad_use("ERROR: extra argument: \"%s\".  Usage:\n", z);
    } else if (strcmp(z, "-v") == 0) {
      m->verbose++;
    } else if (strcmp(z, "-schema") == 0 && i + 1 < n) {
      m->schema = args[++i];
    } else if (strcmp(z, "-skip") == 0 && i + 1 < n) {
      m->n_skip = (int)wl_dot_integer(args[++i]);
    } else if (strcmp(z, "-ascii") == 0) {
      m->col_sep = '\x1f';
      m->row_sep = '\x1e';
      m->ascii = true;
      m->by_mode = false;
    } else if (strcmp(z, "-csv") == 0) {
      m->col_sep = ',';
      m->row_sep = '\n';
      m->ascii = false;
      m->by_mode = false;
    } else {
      return bad_use("ERROR: unknown option: \"%s\".  Usage:\n", z);
    }
  }
  if (!m->table) return bad_use("ERROR: missing %s argument. Usage:\n", m->file ? "TABLE" : "FILE");
  return DOT_OK;
}

/* The separators of the output mode: one byte each. */
static int mode_separators(importing *m) {
  wl_shell *sh = m->sh;
  const char *problem = NULL;
  if (!*sh->col_sep)
    problem = "non-null column separator required for import";
  else if (sh->col_sep[1])
    problem = "multi-character column separators not allowed for import";
  else if (!*sh->row_sep)
    problem = "non-null row separator required for import";
  if (!problem && sh->mode == MODE_CSV && strcmp(sh->row_sep, "\r\n") == 0)
    strcpy(sh->row_sep, "\n"); /* also after the import */
  if (!problem && sh->row_sep[1]) problem = "multi-character row separators not allowed for import";
  if (problem) {
    fprintf(stderr, "Error: %s\n", problem);
    return DOT_ERROR;
  }
  m->col_sep = *sh->col_sep;
  m->row_sep = *sh->row_sep;
  return DOT_OK;
}

static int open_file(importing *m) {
  struct stat st;
  bool piped = *m->file == '|';
  m->in = piped ? popen(m->file + 1, "r") : fopen(m->file, "rb");
  m->closer = piped ? pclose : fclose;
  m->shown = piped ? "<pipe>" : m->file;
  if (!m->in) {
    fprintf(stderr, "Error: cannot open \"%s\"\n", m->file);
    return DOT_ERROR;
  }
  if (fstat(fileno(m->in), &st) == 0 && S_ISREG(st.st_mode)) m->file_bytes = st.st_size;
  if (m->verbose >= 2 || (m->verbose && m->by_mode)) {
    char sep[2] = {m->col_sep, 0};
    fputs("Column separator ", stdout);
    wl_output_c_string(stdout, sep);
    fputs(", row separator ", stdout);
    sep[0] = m->row_sep;
    wl_output_c_string(stdout, sep);
    putchar('\n');
  }
  return DOT_OK;
}

/* ---- messages */

static int no_memory(void) {
  fputs("Error: out of memory\n", stderr);
  return DOT_ERROR;
}

static void say(const importing *m, const wl_csv_part *p, const wl_csv_note *n) {
  size_t line = p->first_line + n->line;
  fflush(stdout);
  fprintf(stderr, "%s:%zu: ", m->shown, line);
  switch (n->kind) {
  case CSV_UNESCAPED: fputs("unescaped \" character\n", stderr); break;
  case CSV_UNTERMINATED: fputs("unterminated \"-quoted field\n", stderr); break;
  case CSV_FEW:
    fprintf(stderr, "expected %d columns but found %d - filling the rest with NULL\n", m->n_cols,
            n->found);
    break;
  case CSV_MANY:
    fprintf(stderr, "expected %d columns but found %d - extras ignored\n", m->n_cols, n->found);
    break;
  }
}

/* ---- the table */

static int same_name(const char *a, const char *b) {
  return sqlite3_stricmp(a, b) == 0;
}

/*
** Appends the column number to names that occur more than once, with as many leading zeros as it
** takes to make all names differ. The caller frees renamed[i]; it is NULL if the name does not
** change.
*/
static bool rename_columns(char **names, int n, char **renamed) {
  bool *repeated = calloc((size_t)n, sizeof *repeated), any = false;
  if (!repeated) return false;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < i; k++)
      if (same_name(names[i], names[k])) any = repeated[i] = repeated[k] = true;
  bool ok = true, clash = any;
  for (int zeros = 0; ok && clash; zeros++) {
    for (int i = 0; ok && i < n; i++) {
      if (!repeated[i]) continue;
      sqlite3_free(renamed[i]);
      renamed[i] = sqlite3_mprintf("%s_%0*d%d", names[i], zeros, 0, i + 1);
      if (zeros == 0 && renamed[i]) {
        sqlite3_free(renamed[i]);
        renamed[i] = sqlite3_mprintf("%s_%d", names[i], i + 1);
      }
      ok = renamed[i] != NULL;
    }
    clash = false;
    for (int i = 0; ok && i < n; i++)
      for (int k = 0; k < i && !clash; k++)
        clash = same_name(renamed[i] ? renamed[i] : names[i], renamed[k] ? renamed[k] : names[k]);
  }
  free(repeated);
  return ok;
}

/* CREATE TABLE from names; reports the names that it had to change. */
static char *create_sql(const importing *m, char **names, int n) {
  char **renamed = calloc((size_t)n, sizeof *renamed);
  sqlite3_str *sql = sqlite3_str_new(m->sh->db), *told = sqlite3_str_new(m->sh->db);
  char *out = NULL;
  if (renamed && rename_columns(names, n, renamed)) {
    sqlite3_str_appendf(sql, "CREATE TABLE %s(\n", m->full_name);
    for (int i = 0; i < n; i++) {
      if (i) sqlite3_str_appendall(sql, i % 4 ? ", " : ",\n ");
      sqlite3_str_appendf(sql, "\"%w\" TEXT", renamed[i] ? renamed[i] : names[i]);
      if (!renamed[i]) continue;
      if (sqlite3_str_length(told)) sqlite3_str_appendall(told, ",\n");
      sqlite3_str_appendf(told, "\"%w\" to \"%w\"", names[i], renamed[i]);
    }
    sqlite3_str_appendall(sql, ")\n");
    out = sqlite3_str_finish(sql);
    sql = NULL;
  }
  char *list = sqlite3_str_finish(told);
  if (out && list) {
    bool asked = m->sh->interactive && !m->sh->in;
    fprintf(asked ? stdout : stderr, "Columns renamed during .import %s due to duplicates:\n%s\n",
            m->shown, list);
  }
  sqlite3_free(list);
  if (sql) sqlite3_free(sqlite3_str_finish(sql));
  for (int i = 0; renamed && i < n; i++) sqlite3_free(renamed[i]);
  free(renamed);
  return out;
}

/* Creates the table from the next record. */
static int make_table(importing *m) {
  wl_csv_part p = {0};
  int n = 0, rc = DOT_ERROR;
  char **names = NULL, *sql = NULL;
  bool there = wl_csv_one(&m->csv, &p, &n);
  if (p.no_memory) {
    no_memory();
    goto done;
  }
  for (size_t i = 0; i < p.n_notes; i++) say(m, &p, &p.notes[i]);
  if (!there || !n) {
    fprintf(stderr, "%s: empty file\n", m->shown);
    goto done;
  }
  names = calloc((size_t)n, sizeof *names);
  for (int i = 0; names && i < n; i++) {
    size_t len = p.cells[i].n;
    names[i] = len ? sqlite3_mprintf("%.*s", (int)len, p.cells[i].z) : sqlite3_mprintf("?");
    if (!names[i]) goto done;
  }
  wl_csv_taken(&m->csv, &p);
  sql = names ? create_sql(m, names, n) : NULL;
  if (!sql) {
    no_memory();
    goto done;
  }
  if (m->verbose) printf("%s\n", sql);
  if (sqlite3_exec(m->sh->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
    fprintf(stderr, "%s failed:\n%s\n", sql, sqlite3_errmsg(m->sh->db));
    goto done;
  }
  rc = DOT_OK;
done:
  for (int i = 0; names && i < n; i++) sqlite3_free(names[i]);
  free(names);
  sqlite3_free(sql);
  wl_csv_free_part(&p);
  return rc;
}

static int fail_sqlite(const importing *m) {
  fprintf(stderr, "Error: %s\n", sqlite3_errmsg(m->sh->db));
  return DOT_ERROR;
}

/* Finds the table, or creates it, and sets m->n_cols. */
static int find_table(importing *m) {
  sqlite3 *db = m->sh->db;
  sqlite3_stmt *stmt = NULL;
  char *sql = sqlite3_mprintf("SELECT * FROM %s", m->full_name);
  int result = DOT_OK;
  if (!sql) return no_memory();
  int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
  if (rc && sqlite3_strglob("no such table: *", sqlite3_errmsg(db)) == 0) {
    result = make_table(m);
    if (result == DOT_OK) rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
  }
  if (result == DOT_OK && rc) result = fail_sqlite(m);
  if (result == DOT_OK) m->n_cols = sqlite3_column_count(stmt);
  sqlite3_finalize(stmt);
  sqlite3_free(sql);
  return result;
}

static int prepare_insert(importing *m) {
  sqlite3_str *s = sqlite3_str_new(m->sh->db);
  sqlite3_str_appendf(s, "INSERT INTO %s VALUES(?", m->full_name);
  for (int i = 1; i < m->n_cols; i++) sqlite3_str_appendall(s, ",?");
  sqlite3_str_appendall(s, ")");
  char *sql = sqlite3_str_finish(s);
  if (!sql) return no_memory();
  if (m->verbose >= 2) printf("Insert using: %s\n", sql);
  int rc = sqlite3_prepare_v2(m->sh->db, sql, -1, &m->insert, NULL);
  sqlite3_free(sql);
  return rc ? fail_sqlite(m) : DOT_OK;
}

/* Whether it may be a tablet table. warplite_append finds out whether it is. */
static bool is_virtual(const importing *m) {
  sqlite3_stmt *stmt = NULL;
  const char *sql = "SELECT 1 FROM pragma_table_list WHERE type = 'virtual' AND name = ?1 COLLATE "
                    "NOCASE AND (?2 IS NULL OR schema = ?2 COLLATE NOCASE)";
  if (sqlite3_prepare_v2(m->sh->db, sql, -1, &stmt, NULL) != SQLITE_OK) return false;
  sqlite3_bind_text(stmt, 1, m->table, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 2, m->schema, -1, SQLITE_STATIC);
  bool is = sqlite3_step(stmt) == SQLITE_ROW;
  sqlite3_finalize(stmt);
  return is;
}

/* ---- rows */

static bool interrupted(const importing *m) {
  (void)m;
  return wl_input_interrupts() > 0;
}

static void insert_row(importing *m, const wl_csv_part *p, size_t row) {
  const wl_csv_cell *cells = p->cells + row * (size_t)m->n_cols;
  int rc = SQLITE_OK;
  for (int i = 0; i < m->n_cols && rc == SQLITE_OK; i++)
    rc = sqlite3_bind_text64(m->insert, i + 1, cells[i].z, cells[i].n, SQLITE_STATIC, SQLITE_UTF8);
  if (rc == SQLITE_OK) {
    sqlite3_step(m->insert);
    rc = sqlite3_reset(m->insert);
  }
  m->rc = rc;
  if (rc == SQLITE_OK) {
    m->n_rows++;
    return;
  }
  if (rc == SQLITE_INTERRUPT) return;
  fflush(stdout);
  fprintf(stderr, "%s:%zu: INSERT failed: %s\n", m->shown, p->first_line + p->lines[row],
          sqlite3_errmsg(m->sh->db));
  m->n_errors++;
}

/* Inserts the rows of a part and prints its notes. rows_are_in: only prints. False: interrupted. */
static bool insert_part(importing *m, const wl_csv_part *p, bool rows_are_in) {
  size_t k = 0;
  for (size_t r = 0; r < p->n_rows && !rows_are_in; r++) {
    while (k < p->n_notes && p->notes[k].row <= r) say(m, p, &p->notes[k++]);
    insert_row(m, p, r);
    if (r % ROWS_BETWEEN_LOOKS == 0 && interrupted(m)) return false;
    if (m->rc == SQLITE_INTERRUPT) return false;
  }
  while (k < p->n_notes) say(m, p, &p->notes[k++]);
  return true;
}

/* Appends the whole window to a tablet table; false: insert the rows one by one. */
static bool append_window(importing *m, const wl_csv_window *w) {
  struct ArrowArrayStream stream;
  long long n = 0;
  for (int i = 0; i < w->n_parts; i++) n += (long long)w->parts[i].n_rows;
  if (!m->columnar || !n || !wl_columns_of(w, m->n_cols, &stream)) return false;
  int rc = warplite_append(m->sh->db, m->schema, m->table, &stream);
  if (rc == SQLITE_OK) {
    m->n_rows += n;
    m->n_refused = 0;
    m->rc = SQLITE_OK;
    return true;
  }
  /* After MAX_REFUSED refusals in a row, stop trying whole windows. */
  m->columnar = rc == SQLITE_CONSTRAINT && ++m->n_refused < MAX_REFUSED;
  return false;
}

/* Inserts the rows of a window. False: interrupted. */
static bool insert_window(importing *m, const wl_csv_window *w) {
  bool done = append_window(m, w);
  for (int i = 0; i < w->n_parts; i++)
    if (!insert_part(m, &w->parts[i], done)) return false;
  return true;
}

typedef struct filling {
  wl_csv *csv;
  int window;
  bool ok;
} filling;

static void *fill(void *arg) {
  filling *f = arg;
  f->ok = wl_csv_fill(f->csv, f->window);
  return NULL;
}

/* Inserts all windows. While one is inserted, another thread fills the next. */
static int insert_all(importing *m) {
  filling f = {&m->csv, 0, true};
  int rc = DOT_OK;
  sqlite3_int64 total = m->file_bytes + 1;
  wl_progress_tell(m->table, 0, total);
  fill(&f);
  for (bool last = false; f.ok && !last && rc == DOT_OK;) {
    wl_csv_window *w = &m->csv.window[f.window];
    pthread_t thread;
    last = w->last;
    f.window = !f.window;
    bool filling = !last && pthread_create(&thread, NULL, fill, &f) == 0;
    if (m->file_bytes && (sqlite3_int64)w->offset < total)
      wl_progress_tell(m->table, (sqlite3_int64)w->offset, total);
    if (!insert_window(m, w) || interrupted(m)) rc = SQLITE_INTERRUPT;
    if (rc) m->stop = true;
    if (filling)
      pthread_join(thread, NULL);
    else if (!last && !rc)
      fill(&f);
  }
  wl_progress_tell(m->table, total, total);
  if (!f.ok && rc == DOT_OK) rc = no_memory();
  return rc;
}

/* ---- the whole */

static int begin(importing *m) {
  m->own_transaction = sqlite3_get_autocommit(m->sh->db) != 0;
  return sqlite3_exec(m->sh->db, m->own_transaction ? "BEGIN" : "SAVEPOINT warplite_import", NULL,
                      NULL, NULL);
}

/* Ends the transaction: commits, or rolls everything back. */
static int finish(importing *m, bool keep) {
  sqlite3 *db = m->sh->db;
  const char *sql = keep                 ? m->own_transaction ? "COMMIT" : "RELEASE warplite_import"
                    : m->own_transaction ? "ROLLBACK"
                                         : "ROLLBACK TO warplite_import; RELEASE warplite_import";
  if (sqlite3_get_autocommit(db)) return DOT_OK; /* ON CONFLICT ROLLBACK of a row has ended it */
  if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK) return DOT_OK;
  fprintf(stderr, "Error: %s\n", sqlite3_errmsg(db));
  if (m->own_transaction) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
  return DOT_ERROR;
}

static int skip_records(importing *m) {
  wl_csv_part p = {0};
  int n;
  while (m->n_skip-- > 0 && wl_csv_one(&m->csv, &p, &n)) {
    for (size_t i = 0; i < p.n_notes; i++) say(m, &p, &p.notes[i]);
    wl_csv_taken(&m->csv, &p);
  }
  bool ok = !p.no_memory;
  wl_csv_free_part(&p);
  return ok ? DOT_OK : no_memory();
}

static int import_file(importing *m) {
  int rc = skip_records(m);
  if (rc) return rc;
  if (begin(m)) return fail_sqlite(m);
  rc = find_table(m);
  if (rc == DOT_OK && m->n_cols) rc = prepare_insert(m);
  if (rc == DOT_OK && m->n_cols) {
    m->csv.n_cols = m->n_cols;
    m->columnar = is_virtual(m);
    rc = insert_all(m);
  }
  sqlite3_finalize(m->insert);
  m->insert = NULL;
  if (rc == SQLITE_INTERRUPT) fprintf(stderr, "Error: interrupted\n");
  int ended = finish(m, rc == DOT_OK);
  if (rc || ended || !m->n_cols) return rc ? DOT_ERROR : ended;
  if (m->verbose)
    printf("Added %lld rows with %lld errors using %zu lines of input\n", m->n_rows, m->n_errors,
           m->csv.line - 1);
  return m->rc;
}

int wl_import_run(wl_shell *sh, int n, char **args) {
  importing m = {.sh = sh, .by_mode = true, .ascii = sh->mode == MODE_ASCII};
  int rc = read_arguments(&m, n, args);
  if (rc) return rc;
  wl_shell_open(sh, false);
  if (m.by_mode) rc = mode_separators(&m);
  if (!rc) rc = open_file(&m);
  if (rc) return rc;
  m.full_name = m.schema ? sqlite3_mprintf("\"%w\".\"%w\"", m.schema, m.table)
                         : sqlite3_mprintf("\"%w\"", m.table);
  wl_csv_open(&m.csv, m.in, m.col_sep, m.row_sep, !m.ascii);
  m.csv.skip_blank = sh->mode == MODE_ASCII;
  m.csv.stop = &m.stop;
  rc = m.full_name ? import_file(&m) : no_memory();
  wl_csv_close(&m.csv);
  m.closer(m.in);
  sqlite3_free(m.full_name);
  return rc;
}
