/*
** Dot commands: splits the line into arguments, finds the command and runs it. input.c calls this
** for lines that begin with a dot, main.c for arguments.
**
** Invariants:
** 1. A command may be shortened to the least length in its row of the table. These are the lengths
**    of sqlite3, or slightly longer ones.
** 2. A command that fails has printed the reason on stderr.
*/
#include "shell.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ARGS = 52 };

typedef struct command {
  const char *name;
  size_t least; /* the shortest abbreviation */
  int (*run)(wl_shell *sh, int n, char **args);
} command;

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static int usage(const char *text) {
  fprintf(stderr, "Usage: %s\n", text);
  return DOT_ERROR;
}

/* Whether an argument is the option with this name, with one or two dashes. */
static bool is_option(const char *arg, const char *name) {
  if (*arg != '-') return false;
  arg++;
  if (*arg == '-') arg++;
  return strcmp(arg, name) == 0;
}

/* A number, decimal or 0x, with an optional unit: k, M, G and so on. */
long long wl_dot_integer(const char *z) {
  static const struct {
    const char *suffix;
    long long factor;
  } units[] = {{"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024 * 1024 * 1024},
               {"KB", 1000},  {"MB", 1000000},      {"GB", 1000000000},
               {"K", 1000},   {"M", 1000000},       {"G", 1000000000}};
  char *end;
  bool negative = *z == '-';
  if (*z == '-' || *z == '+') z++;
  unsigned long long v = strtoull(z, &end, strncasecmp(z, "0x", 2) == 0 ? 16 : 10);
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strcasecmp(end, units[i].suffix) == 0) v *= (unsigned long long)units[i].factor;
  return negative ? -(long long)v : (long long)v;
}

static bool boolean_of(const char *z) {
  bool hex = z[0] == '0' && (z[1] == 'x' || z[1] == 'X');
  size_t digits = strspn(z + (hex ? 2 : 0), hex ? "0123456789abcdefABCDEF" : "0123456789");
  if (digits && !z[digits + (hex ? 2 : 0)]) return (wl_dot_integer(z) & 0xffffffff) != 0;
  if (strcasecmp(z, "on") == 0 || strcasecmp(z, "yes") == 0) return true;
  if (strcasecmp(z, "off") == 0 || strcasecmp(z, "no") == 0) return false;
  fprintf(stderr, "ERROR: Not a boolean value: \"%s\". Assuming \"no\".\n", z);
  return false;
}

/* ---- arguments */

/* Replaces C's backslash sequences by the characters they mean, in place. */
static void unescape(char *z) {
  static const char pairs[] = "a\ab\bt\tn\nv\vf\fr\r";
  char *out = z;
  while (*z && *z != '\\') out = ++z;
  while (*z) {
    char c = *z++;
    if (c == '\\' && *z) {
      c = *z++;
      const char *p = pairs;
      while (*p && *p != c) p += 2;
      if (*p) {
        c = p[1];
      } else if (c >= '0' && c <= '7') {
        c -= '0';
        for (int i = 0; i < 2 && *z >= '0' && *z <= '7'; i++) c = (char)(c * 8 + *z++ - '0');
      }
    }
    *out++ = c;
  }
  *out = 0;
}

/* Splits z in place into words and quoted strings; returns their number. */
static int split(char *z, char **args) {
  int n = 0;
  while (n < MAX_ARGS - 1) {
    while (is_space(*z)) z++;
    if (!*z) break;
    char quote = *z == '\'' || *z == '"' ? *z++ : 0;
    args[n++] = z;
    if (quote) {
      while (*z && *z != quote) {
        if (*z == '\\' && quote == '"' && z[1]) z++;
        z++;
      }
    } else {
      while (*z && !is_space(*z)) z++;
    }
    bool more = *z != 0;
    *z = 0;
    if (quote != '\'') unescape(args[n - 1]);
    if (!more) break;
    z++;
  }
  return n;
}

/* ---- settings */

static int set_flag(bool *flag, int n, char **args, const char *text) {
  if (n != 2) return usage(text);
  *flag = boolean_of(args[1]);
  return DOT_OK;
}

static int do_bail(wl_shell *sh, int n, char **args) {
  return set_flag(&sh->bail, n, args, ".bail on|off");
}

static int do_echo(wl_shell *sh, int n, char **args) {
  return set_flag(&sh->echo, n, args, ".echo on|off");
}

static int do_timer(wl_shell *sh, int n, char **args) {
  return set_flag(&sh->timer, n, args, ".timer on|off");
}

static int do_headers(wl_shell *sh, int n, char **args) {
  if (n == 2) sh->headers_set = true;
  return set_flag(&sh->headers, n, args, ".headers on|off");
}

static int do_stats(wl_shell *sh, int n, char **args) {
  if (n > 2) return usage(".stats ?on|off?");
  if (n == 2) return set_flag(&sh->stats, n, args, "");
  wl_shell_open(sh, false);
  printf("%s\n", warplite_reason(sh->db));
  return DOT_OK;
}

static void set_name(char *to, const char *z) {
  sqlite3_snprintf(NAME_BYTES, to, "%s", z);
}

static int do_nullvalue(wl_shell *sh, int n, char **args) {
  if (n != 2) return usage(".nullvalue STRING");
  set_name(sh->null_value, args[1]);
  return DOT_OK;
}

static int do_separator(wl_shell *sh, int n, char **args) {
  if (n > 1) set_name(sh->col_sep, args[1]);
  if (n > 2) set_name(sh->row_sep, args[2]);
  return n == 2 || n == 3 ? DOT_OK : usage(".separator COL ?ROW?");
}

bool wl_dot_set_mode(wl_shell *sh, const char *name, const char *table) {
  /* A shortened name means the first match in this order. */
  static const struct {
    const char *name;
    wl_mode mode;
    const char *col_sep, *row_sep; /* NULL: unchanged */
  } table_of[] = {
      {"lines", MODE_LINE, NULL, "\n"},
      {"columns", MODE_COLUMN, NULL, "\n"},
      {"list", MODE_LIST, "|", "\n"},
      {"html", MODE_HTML, NULL, NULL},
      {"tcl", MODE_TCL, " ", "\n"},
      {"csv", MODE_CSV, ",", "\r\n"},
      {"tabs", MODE_LIST, "\t", NULL},
      {"insert", MODE_INSERT, NULL, NULL},
      {"quote", MODE_QUOTE, ",", "\n"},
      {"ascii", MODE_ASCII, "\x1f", "\x1e"},
      {"markdown", MODE_MARKDOWN, NULL, NULL},
      {"table", MODE_TABLE, NULL, NULL},
      {"box", MODE_BOX, NULL, NULL},
      {"count", MODE_COUNT, NULL, NULL},
      {"off", MODE_OFF, NULL, NULL},
      {"json", MODE_JSON, NULL, NULL},
  };
  for (size_t i = 0; i < sizeof table_of / sizeof table_of[0]; i++) {
    if (strncmp(name, table_of[i].name, strlen(name)) != 0) continue;
    sh->mode = table_of[i].mode;
    if (table_of[i].col_sep) set_name(sh->col_sep, table_of[i].col_sep);
    if (table_of[i].row_sep) set_name(sh->row_sep, table_of[i].row_sep);
    if (sh->mode == MODE_COLUMN && !sh->headers_set) sh->headers = true;
    if (sh->mode == MODE_INSERT) {
      sqlite3_free(sh->insert_table);
      if (!table) table = "table";
      sh->insert_table = sqlite3_mprintf(wl_output_must_quote(table) ? "\"%w\"" : "%s", table);
    }
    return true;
  }
  return false;
}

static int do_mode(wl_shell *sh, int n, char **args) {
  const char *name = NULL, *table = NULL;
  int wrap = 60;
  bool wordwrap = false, quote = false;
  for (int i = 1; i < n; i++) {
    if (is_option(args[i], "wrap") && i + 1 < n) {
      wrap = (int)wl_dot_integer(args[++i]);
    } else if (is_option(args[i], "ww")) {
      wordwrap = true;
    } else if (is_option(args[i], "wordwrap") && i + 1 < n) {
      wordwrap = boolean_of(args[++i]);
    } else if (is_option(args[i], "quote")) {
      quote = true;
    } else if (is_option(args[i], "noquote")) {
      quote = false;
    } else if (!name) {
      name = args[i];
      if (strcmp(name, "qbox") == 0) {
        name = "box";
        wrap = 60;
        wordwrap = false;
        quote = true;
      }
    } else if (!table) {
      table = args[i];
    } else if (*args[i] == '-') {
      fprintf(stderr,
              "unknown option: %s\noptions:\n  --noquote\n  --quote\n  --wordwrap on/off\n"
              "  --wrap N\n  --ww\n",
              args[i]);
      return DOT_ERROR;
    } else {
      fprintf(stderr, "extra argument: \"%s\"\n", args[i]);
      return DOT_ERROR;
    }
  }
  if (!name) {
    printf("current output mode: %s", wl_output_mode_name(sh->mode));
    if (wl_output_is_columnar(sh->mode))
      printf(" --wrap %d --wordwrap %s --%squote", sh->wrap, sh->wordwrap ? "on" : "off",
             sh->quote ? "" : "no");
    putchar('\n');
    return DOT_OK;
  }
  if (!wl_dot_set_mode(sh, name, table)) {
    fputs("Error: mode should be one of: ascii box column csv html insert json line list "
          "markdown qbox quote table tabs tcl\n",
          stderr);
    return DOT_ERROR;
  }
  if (wl_output_is_columnar(sh->mode)) {
    sh->wrap = wrap < 0 ? -wrap : wrap;
    sh->wordwrap = wordwrap;
    sh->quote = quote;
  }
  return DOT_OK;
}

static int do_show(wl_shell *sh, int n, char **args) {
  (void)args;
  if (n != 1) return usage(".show");
  printf("%12.12s: %s\n", "echo", sh->echo ? "on" : "off");
  printf("%12.12s: %s\n", "eqp", "off");
  printf("%12.12s: %s\n", "explain", "auto");
  printf("%12.12s: %s\n", "headers", sh->headers ? "on" : "off");
  printf("%12.12s: %s", "mode", wl_output_mode_name(sh->mode));
  if (wl_output_is_columnar(sh->mode))
    printf(" --wrap %d --wordwrap %s --%squote", sh->wrap, sh->wordwrap ? "on" : "off",
           sh->quote ? "" : "no");
  printf("\n%12.12s: ", "nullvalue");
  wl_output_c_string(stdout, sh->null_value);
  printf("\n%12.12s: %s\n", "output", "stdout");
  printf("%12.12s: ", "colseparator");
  wl_output_c_string(stdout, sh->col_sep);
  printf("\n%12.12s: ", "rowseparator");
  wl_output_c_string(stdout, sh->row_sep);
  printf("\n%12.12s: %s\n", "stats", sh->stats ? "on" : "off");
  printf("%12.12s: \n", "width");
  printf("%12.12s: %s\n", "filename", sh->db_name);
  return DOT_OK;
}

/* ---- files */

static int do_read(wl_shell *sh, int n, char **args) {
  struct stat st;
  FILE *in = NULL;
  bool piped = n == 2 && *args[1] == '|';
  if (n != 2) return usage(".read FILE");
  if (piped)
    in = popen(args[1] + 1, "r");
  else if (stat(args[1], &st) == 0 && !S_ISDIR(st.st_mode))
    in = fopen(args[1], "rb");
  if (!in) {
    fprintf(stderr, "Error: cannot open \"%s\"\n", args[1]);
    return DOT_ERROR;
  }
  FILE *in_before = sh->in;
  int lineno_before = sh->lineno;
  sh->in = in;
  int rc = wl_input_process(sh);
  if (piped)
    pclose(in);
  else
    fclose(in);
  sh->in = in_before;
  sh->lineno = lineno_before;
  return rc ? DOT_ERROR : DOT_OK;
}

static int do_open(wl_shell *sh, int n, char **args) {
  const char *file = NULL;
  bool fresh = false, readonly = false, nofollow = false;
  for (int i = 1; i < n; i++) {
    if (is_option(args[i], "new")) {
      fresh = true;
    } else if (is_option(args[i], "readonly")) {
      readonly = true;
    } else if (is_option(args[i], "nofollow")) {
      nofollow = true;
    } else if (*args[i] == '-') {
      fprintf(stderr, "unknown option: %s\n", args[i]);
      return DOT_ERROR;
    } else if (file) {
      fprintf(stderr, "extra argument: \"%s\"\n", args[i]);
      return DOT_ERROR;
    } else {
      file = args[i];
    }
  }
  wl_shell_close(sh);
  sh->readonly = readonly;
  sh->nofollow = nofollow;
  free(sh->db_name);
  sh->db_name = strdup(file ? file : ":memory:");
  if (!sh->db_name) {
    fputs("Error: out of memory\n", stderr);
    exit(1);
  }
  if (file && fresh) unlink(file);
  wl_shell_open(sh, true);
  return DOT_OK;
}

static int do_load(wl_shell *sh, int n, char **args) {
  char *err = NULL;
  if (n < 2) return usage(".load FILE ?ENTRYPOINT?");
  wl_shell_open(sh, false);
  if (sqlite3_load_extension(sh->db, args[1], n > 2 ? args[2] : NULL, &err) == SQLITE_OK)
    return DOT_OK;
  fprintf(stderr, "Error: %s\n", err ? err : "");
  sqlite3_free(err);
  return DOT_ERROR;
}

/* ---- the rest */

static int do_tables(wl_shell *sh, int n, char **args) {
  return wl_schema_tables(sh, n > 1 ? args[1] : NULL, false);
}

static int do_indexes(wl_shell *sh, int n, char **args) {
  if (n > 2) return usage(".indexes ?LIKE-PATTERN?");
  return wl_schema_tables(sh, n > 1 ? args[1] : NULL, true);
}

static int do_schema(wl_shell *sh, int n, char **args) {
  const char *pattern = NULL;
  bool indent = false, no_system = false;
  for (int i = 1; i < n; i++) {
    if (is_option(args[i], "indent")) {
      indent = true;
    } else if (is_option(args[i], "nosys")) {
      no_system = true;
    } else if (*args[i] == '-') {
      fprintf(stderr, "Unknown option: \"%s\"\n", args[i]);
      return DOT_ERROR;
    } else if (pattern) {
      return usage(".schema ?--indent? ?--nosys? ?LIKE-PATTERN?");
    } else {
      pattern = args[i];
    }
  }
  return wl_schema_show(sh, pattern, indent, no_system);
}

static int do_databases(wl_shell *sh, int n, char **args) {
  (void)n;
  (void)args;
  return wl_schema_databases(sh);
}

static int do_print(wl_shell *sh, int n, char **args) {
  (void)sh;
  for (int i = 1; i < n; i++) printf("%s%s", i > 1 ? " " : "", args[i]);
  putchar('\n');
  return DOT_OK;
}

static int do_help(wl_shell *sh, int n, char **args) {
  (void)sh;
  if (wl_help_dot(n > 1 ? args[1] : NULL) == 0) printf("Nothing matches '%s'\n", args[1]);
  return DOT_OK;
}

static int do_exit(wl_shell *sh, int n, char **args) {
  int code = n > 1 ? (int)wl_dot_integer(args[1]) : 0;
  if (code) {
    wl_shell_close(sh);
    exit(code);
  }
  return DOT_QUIT;
}

static int do_quit(wl_shell *sh, int n, char **args) {
  (void)sh;
  (void)n;
  (void)args;
  return DOT_QUIT;
}

static const command commands[] = {
    {"bail", 3, do_bail},         {"databases", 2, do_databases}, {"echo", 1, do_echo},
    {"exit", 2, do_exit},         {"headers", 1, do_headers},     {"help", 3, do_help},
    {"import", 2, wl_import_run}, {"indexes", 2, do_indexes},     {"indices", 2, do_indexes},
    {"load", 1, do_load},         {"mode", 1, do_mode},           {"nullvalue", 1, do_nullvalue},
    {"open", 2, do_open},         {"print", 3, do_print},         {"quit", 1, do_quit},
    {"read", 3, do_read},         {"schema", 3, do_schema},       {"separator", 2, do_separator},
    {"show", 3, do_show},         {"stats", 2, do_stats},         {"tables", 2, do_tables},
    {"timer", 5, do_timer},
};

int wl_dot_run(wl_shell *sh, const char *line) {
  char *args[MAX_ARGS] = {NULL};
  char *copy = strdup(line + 1);
  int rc = DOT_ERROR;
  if (!copy) return DOT_ERROR;
  int n = split(copy, args);
  if (n == 0) {
    rc = DOT_OK;
    goto done;
  }
  size_t len = strlen(args[0]);
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (len < commands[i].least || strncmp(args[0], commands[i].name, len) != 0) continue;
    rc = commands[i].run(sh, n, args);
    goto done;
  }
  fprintf(stderr,
          "Error: unknown command or invalid arguments:  \"%s\". Enter \".help\" for help\n",
          args[0]);
done:
  free(copy);
  return rc;
}
