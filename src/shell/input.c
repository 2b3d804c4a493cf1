/*
** Input: splits bytes into lines, and lines into statements and dot commands. Statements go to
** run.c, dot commands to dot.c.
**
** Invariants:
** 1. A dot command is recognized only outside a statement.
** 2. A statement continues until a line ends with a semicolon outside strings and comments, and
**    sqlite3_complete() agrees. The rest at the end of the input runs as it is.
** 3. A signal handler only counts and calls sqlite3_interrupt(). Line editing notices Ctrl-C when
**    its read returns, never by a jump.
*/
#include "shell.h"
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <wchar.h>
#include <editline/readline.h>

#define PROMPT          "warplite> "
#define PROMPT_CONTINUE "   ...> "
enum { HISTORY_LINES = 2000 };

static volatile sig_atomic_t n_interrupts;
static volatile sig_atomic_t was_resumed;
static sqlite3 *volatile interrupt_db;

static void on_interrupt(int sig) {
  (void)sig;
  /* If a query does not react, the third Ctrl-C ends the shell. */
  if (++n_interrupts > 2) _exit(1);
  if (interrupt_db) sqlite3_interrupt(interrupt_db);
}

static void on_resume(int sig) {
  (void)sig;
  was_resumed = 1;
}

int wl_input_interrupts(void) {
  return n_interrupts;
}

void wl_input_interrupt_target(sqlite3 *db) {
  interrupt_db = db;
}

void wl_input_catch_interrupts(void) {
  struct sigaction sa;
  memset(&sa, 0, sizeof sa);
  sigemptyset(&sa.sa_mask);
  sa.sa_handler = on_interrupt; /* no SA_RESTART: a waiting read must return */
  sigaction(SIGINT, &sa, NULL);
}

/* ---- line editing */

static char history_file[PATH_MAX];

static void save_history(void) {
  stifle_history(HISTORY_LINES);
  write_history(history_file);
}

/*
** Reads and decodes one character for libedit, whose own reader does not react to Ctrl-C.
** -1 ends the line. read_edited() distinguishes the end of the input from Ctrl-C.
*/
static int read_char(FILE *in) {
  mbstate_t state;
  memset(&state, 0, sizeof state);
  for (;;) {
    unsigned char c;
    wchar_t wide;
    ssize_t n = read(fileno(in), &c, 1);
    if (n < 0 && errno == EINTR) {
      if (n_interrupts) return -1;
      if (was_resumed) { /* the parent process had the terminal in between */
        was_resumed = 0;
        rl_deprep_terminal();
        rl_prep_terminal(1);
        rl_forced_update_display();
      }
      continue;
    }
    if (n <= 0) return -1;
    size_t used = mbrtowc(&wide, (char *)&c, 1, &state);
    if (used == (size_t)-2) continue;
    if (used == (size_t)-1) return c;
    return (int)wide;
  }
}

void wl_input_start_editing(void) {
  struct sigaction sa;
  const char *home = getenv("HOME");
  setlocale(LC_CTYPE, "");
  memset(&sa, 0, sizeof sa);
  sigemptyset(&sa.sa_mask);
  sa.sa_handler = on_resume;
  sigaction(SIGCONT, &sa, NULL);
  rl_readline_name = "warplite";
  rl_catch_signals = 0;
  rl_getc_function = read_char;
  rl_initialize();
  rl_bind_key('\t', rl_insert); /* pasted SQL often has tabs */
  using_history();
  if (home && *home &&
      snprintf(history_file, sizeof history_file, "%s/.warplite_history", home) <
          (int)sizeof history_file) {
    read_history(history_file);
    atexit(save_history);
  }
}

/* One line from the terminal, owned by the caller; NULL at the end of the input. *abandoned is
** set if Ctrl-C was pressed. */
static char *read_edited(bool continued, bool *abandoned) {
  n_interrupts = 0; /* forget the interrupts of the last query */
  char *line = readline(continued ? PROMPT_CONTINUE : PROMPT);
  *abandoned = n_interrupts > 0;
  if (*abandoned) {
    n_interrupts = 0;
    fputs("^C\n", stdout);
    free(line);
    return NULL;
  }
  if (line && *line) add_history(line);
  return line;
}

/* ---- lines */

/*
** Reads one line of a file into *buf, without its line end. The caller owns *buf, which may grow.
** A NUL byte hides the rest of its line and its line end, as in sqlite3.
*/
static char *read_line(FILE *in, char **buf, size_t *size) {
  size_t n = 0;
  if (!*buf) {
    *size = 256;
    *buf = malloc(*size);
    if (!*buf) return NULL;
  }
  for (;;) {
    if (*size - n < 128) {
      char *grown = realloc(*buf, *size * 2);
      if (!grown) {
        fputs("Error: out of memory\n", stderr);
        exit(1);
      }
      *buf = grown;
      *size *= 2;
    }
    size_t room = *size - n;
    if (!fgets(*buf + n, room > INT_MAX ? INT_MAX : (int)room, in)) {
      if (n == 0) return NULL;
      (*buf)[n] = 0;
      return *buf;
    }
    n += strlen(*buf + n);
    if (n > 0 && (*buf)[n - 1] == '\n') {
      n--;
      if (n > 0 && (*buf)[n - 1] == '\r') n--;
      (*buf)[n] = 0;
      return *buf;
    }
  }
}

/* ---- finding the end of a statement */

/* The state of the scan since the statement began. It continues from line to line. */
typedef struct scan {
  char open;  /* the character that closes an open string, name or comment ('*'), or 0 */
  bool dark;  /* anything but spaces, comments and semicolons */
  bool ended; /* a semicolon, and nothing dark after it */
} scan;

static bool is_blank(const scan *s) {
  return !s->open && !s->dark;
}

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Skips to the end of the open string, name or comment; NULL if it stays open. */
static const char *skip_open(scan *s, const char *z) {
  for (; *z; z++) {
    if (*z != s->open) continue;
    if (s->open == '*') {
      if (z[1] != '/') continue;
      z++;
    } else if (s->open != ']' && z[1] == s->open) {
      z++; /* a doubled quote stays inside */
      continue;
    }
    s->open = 0;
    return z + 1;
  }
  return NULL;
}

static void scan_line(scan *s, const char *z) {
  if (s->open && !(z = skip_open(s, z))) return;
  while (*z) {
    char c = *z++;
    if (is_space(c)) continue;
    if (c == ';') {
      s->ended = true;
    } else if (c == '-' && *z == '-') {
      return;
    } else if (c == '/' && *z == '*') {
      s->open = '*';
      if (!(z = skip_open(s, z + 1))) return;
    } else {
      s->dark = true;
      s->ended = false;
      if (c == '\'' || c == '"' || c == '`' || c == '[') {
        s->open = c == '[' ? ']' : c;
        if (!(z = skip_open(s, z))) return;
      }
    }
  }
}

/* Whether a line is only "/" or "go", which end a statement in the shells of other databases. */
static bool is_terminator(const char *z) {
  scan rest = {0};
  while (is_space(*z)) z++;
  if (*z == '/')
    z++;
  else if (strncasecmp(z, "go", 2) == 0)
    z += 2;
  else
    return false;
  scan_line(&rest, z);
  return is_blank(&rest) && !rest.ended;
}

/* ---- statements */

typedef struct text {
  char *z;
  size_t n, size;
} text;

static void append(text *t, const char *z, size_t n) {
  if (t->n + n + 3 > t->size) { /* with room for a semicolon and a NUL byte */
    size_t size = (t->n + n + 64) * 2;
    char *grown = realloc(t->z, size);
    if (!grown) {
      fputs("Error: out of memory\n", stderr);
      exit(1);
    }
    t->z = grown;
    t->size = size;
  }
  memcpy(t->z + t->n, z, n);
  t->n += n;
  t->z[t->n] = 0;
}

/* Whether the text would be complete with one more semicolon. */
static bool ends_with_semicolon(text *t) {
  if (t->n == 0) return true;
  strcpy(t->z + t->n, ";");
  bool whole = sqlite3_complete(t->z);
  t->z[t->n] = 0;
  return whole;
}

static void echo(const wl_shell *sh, const char *z) {
  if (sh->echo) printf("%s\n", z);
}

int wl_input_process(wl_shell *sh) {
  text sql = {0};
  scan s = {0};
  char *line = NULL;
  size_t line_size = 0;
  int n_errors = 0, first_line = 0;
  bool edited = !sh->in && isatty(STDIN_FILENO);
  bool prompted = !sh->in;

  if (sh->nesting == MAX_NESTING) {
    fprintf(stderr, "Input nesting limit (%d) reached at line %d. Check recursion.\n", MAX_NESTING,
            sh->lineno);
    return 1;
  }
  sh->nesting++;
  sh->lineno = 0;
  while (n_errors == 0 || !sh->bail || (prompted && sh->interactive)) {
    bool abandoned = false;
    fflush(stdout);
    if (edited) {
      free(line);
      line = read_edited(sql.n > 0, &abandoned);
      if (abandoned) {
        sql.n = 0;
        s = (scan){0};
        continue;
      }
    } else {
      if (prompted) {
        fputs(sql.n ? PROMPT_CONTINUE : PROMPT, stdout);
        fflush(stdout);
      }
      if (!read_line(prompted ? stdin : sh->in, &line, &line_size)) {
        free(line);
        line = NULL;
      }
    }
    if (!line) {
      if (prompted && sh->interactive) putchar('\n');
      break;
    }
    if (n_interrupts) {
      if (sh->in) break;
      n_interrupts = 0;
    }
    sh->lineno++;

    const char *z = line;
    if (is_terminator(z) && ends_with_semicolon(&sql)) z = ";";
    scan_line(&s, z);
    if (sql.n == 0 && is_blank(&s)) {
      echo(sh, z);
      s = (scan){0};
      continue;
    }
    if (sql.n == 0 && (*z == '.' || *z == '#')) {
      echo(sh, z);
      s = (scan){0};
      if (*z == '#') continue;
      int rc = wl_dot_run(sh, z);
      if (rc == DOT_QUIT) break;
      if (rc != DOT_OK) n_errors++;
      continue;
    }
    if (sql.n == 0) {
      while (is_space(*z)) z++;
      first_line = sh->lineno;
    } else {
      append(&sql, "\n", 1);
    }
    append(&sql, z, strlen(z));
    if (sql.n && !s.open && s.ended && sqlite3_complete(sql.z)) {
      echo(sh, sql.z);
      n_errors += wl_run_input(sh, sql.z, first_line);
    } else if (sql.n && is_blank(&s)) {
      echo(sh, sql.z);
    } else {
      continue;
    }
    sql.n = 0;
    s = (scan){0};
  }
  if (sql.n) {
    echo(sh, sql.z);
    n_errors += wl_run_input(sh, sql.z, first_line);
  }
  free(sql.z);
  free(line);
  sh->nesting--;
  return n_errors > 0;
}
