/*
** The texts of -help and .help. They list every option and every dot command, and so does
** docs/warplite.1. To add a command, add it to the table in dot.c, here and there.
*/
#include "shell.h"
#include <string.h>
#include <strings.h>

static const char usage_text[] =
    "DATABASE is a SQLite database file, made when it is first written to; without it the\n"
    "database is in memory. Each SQL is a text of statements or one dot command; without it\n"
    "they are read from standard input.\n"
    "OPTIONS, with one dash or two:\n"
    "   -ascii               output mode ascii\n"
    "   -bail                stop at the first error\n"
    "   -batch               no prompts, even on a terminal\n"
    "   -box                 output mode box\n"
    "   -cmd COMMAND         run COMMAND before the SQL or standard input\n"
    "   -column              output mode column\n"
    "   -csv                 output mode csv\n"
    "   -echo                print input before it is run\n"
    "   -[no]header          print column names or not\n"
    "   -help                this text\n"
    "   -html                output mode html\n"
    "   -init FILE           run FILE first, in place of ~/.warpliterc\n"
    "   -interactive         prompts, even without a terminal\n"
    "   -json                output mode json\n"
    "   -line                output mode line\n"
    "   -list                output mode list\n"
    "   -markdown            output mode markdown\n"
    "   -newline SEP         row separator; '\\n' if not given\n"
    "   -nullvalue TEXT      what to print for NULL; '' if not given\n"
    "   -quote               output mode quote\n"
    "   -readonly            open the database for reading only\n"
    "   -separator SEP       column separator; '|' if not given\n"
    "   -set NAME=VALUE,...  warplite settings, as by warplite_set(NAME, VALUE)\n"
    "   -stats               tell on stderr who ran each statement, why, and its time\n"
    "   -table               output mode table\n"
    "   -tabs                output mode list, columns apart by tabs\n"
    "   -version             the versions of warplite and SQLite\n";

/* One command: its line, and the other lines that .help COMMAND prints (they begin with spaces). */
typedef struct topic {
  const char *line, *more;
} topic;

static const topic topics[] = {
    {".bail on|off             Stop at the first error, or go on (off)", NULL},
    {".databases               Attached databases and their files", NULL},
    {".echo on|off             Print input before it is run", NULL},
    {".exit ?CODE?             Leave, with exit status CODE", NULL},
    {".headers on|off          Print column names before the rows", NULL},
    {".help ?-all? ?TOPIC?     This list, or what it says on TOPIC", NULL},
    {".import ?OPTIONS? FILE TABLE   Insert the rows of a text file into TABLE",
     "   OPTIONS:\n"
     "     --ascii        columns end in 0x1F, rows in 0x1E\n"
     "     --csv          columns apart by commas, rows by line ends\n"
     "     --schema S     the table is S.TABLE\n"
     "     --skip N       leave out the first N records\n"
     "     -v             tell more; twice for yet more\n"
     "   Without --ascii and --csv the separators are those of .mode and .separator.\n"
     "   A TABLE that is not there is made: the first record has its column names.\n"
     "   A FILE that begins with | is a command; its output is read. All is one\n"
     "   transaction, which Ctrl-C undoes.\n"},
    {".indexes ?TABLE?         Names of indexes; TABLE is a LIKE pattern", NULL},
    {".load FILE ?ENTRY?       Load a SQLite extension", NULL},
    {".mode ?MODE? ?OPTIONS?   Set the output mode, or show it",
     "   MODE is one of\n"
     "     ascii       columns end in 0x1F, rows in 0x1E\n"
     "     box         a table drawn with lines (Unicode)\n"
     "     column      columns of equal width\n"
     "     count       only the number of rows\n"
     "     csv         comma-separated values, lines end in CR LF\n"
     "     html        HTML table rows\n"
     "     insert      INSERT statements; the table's name may follow\n"
     "     json        an array of objects\n"
     "     line        one value a line\n"
     "     list        values with a separator between\n"
     "     markdown    a Markdown table\n"
     "     off         no rows at all\n"
     "     qbox        as box --wrap 60 --quote\n"
     "     quote       values as SQL literals\n"
     "     table       a table drawn with - + |\n"
     "     tabs        as list, with tabs between\n"
     "     tcl         values as TCL strings\n"
     "   OPTIONS, for box, column, markdown and table:\n"
     "     --wrap N       lines in a cell of at most N characters, 0 for any (60)\n"
     "     --wordwrap B   break them between words: on or off (off)\n"
     "     --ww           the same as --wordwrap on\n"
     "     --quote        values as SQL literals\n"
     "     --noquote      values as they are\n"},
    {".nullvalue STRING        What to print for NULL", NULL},
    {".open ?OPTIONS? ?FILE?   Close the database and open FILE, or one in memory",
     "   OPTIONS:\n"
     "     --new          delete FILE first\n"
     "     --nofollow     refuse a symbolic link\n"
     "     --readonly     open for reading only\n"
     "   Settings given with -set are made again on the new connection.\n"},
    {".print STRING...         Print STRINGs", NULL},
    {".quit                    Leave", NULL},
    {".read FILE               Run the input in FILE",
     "   A FILE that begins with | is a command; its output is run.\n"},
    {".schema ?PATTERN?        CREATE statements of what matches PATTERN",
     "   PATTERN is for LIKE, or for GLOB if it has one of * ? [\n"
     "   OPTIONS:\n"
     "     --indent       long statements over several lines\n"
     "     --nosys        without the tables of SQLite itself\n"},
    {".separator COL ?ROW?     Set the column and row separators", NULL},
    {".show                    Show the settings", NULL},
    {".stats ?on|off?          Tell on stderr who ran each statement, why, and its time",
     "   The line begins with the engine: cpu, gpu or sqlite.\n"
     "   Without an argument: the line for the latest statement.\n"},
    {".tables ?PATTERN?        Names of tables and views; PATTERN is for LIKE", NULL},
    {".timer on|off            Print the time each input took", NULL},
};

enum { N_TOPICS = sizeof topics / sizeof topics[0] };

void wl_help_usage(const char *argv0) {
  fprintf(stderr, "Usage: %s [OPTIONS] [DATABASE] [SQL...]\n%s", argv0, usage_text);
}

static void print_topic(const topic *t, bool all) {
  printf("%s\n", t->line);
  if (all && t->more) fputs(t->more, stdout);
}

int wl_help_dot(const char *pattern) {
  int n = 0, last = 0;
  bool all = pattern && (strcmp(pattern, "-a") == 0 || strcmp(pattern, "-all") == 0 ||
                         strcmp(pattern, "--all") == 0);
  if (!pattern || all) {
    for (int i = 0; i < N_TOPICS; i++) print_topic(&topics[i], all);
    return N_TOPICS;
  }
  if (*pattern == '.') pattern++;
  for (int i = 0; i < N_TOPICS; i++) {
    if (strncasecmp(topics[i].line + 1, pattern, strlen(pattern)) != 0) continue;
    n++;
    last = i;
  }
  if (n == 1) {
    print_topic(&topics[last], true);
    return n;
  }
  for (int i = 0; n && i < N_TOPICS; i++)
    if (strncasecmp(topics[i].line + 1, pattern, strlen(pattern)) == 0)
      print_topic(&topics[i], false);
  if (n) return n;
  for (int i = 0; i < N_TOPICS; i++) {
    if (!strcasestr(topics[i].line, pattern) &&
        !(topics[i].more && strcasestr(topics[i].more, pattern)))
      continue;
    print_topic(&topics[i], true);
    n++;
  }
  return n;
}
