/*
** The texts of -help and .help. They list every option and every dot command, and so does
** docs/warplite.1. To add a command, add it to the table in dot.c, here and there.
*/
#include "shell.h"
#include <string.h>
#include <strings.h>

static const char usage_text[] =
    "DATABASE is a SQLite database file. It is created when it is first written to. Without\n"
    "it the database is in memory. Each SQL is one or more statements, or one dot command.\n"
    "Without it, input comes from standard input.\n"
    "`warplite run [--explain] PROGRAM ...` runs another program, and its queries with warplite.\n"
    "OPTIONS may have one dash or two:\n"
    "   -ascii               output mode ascii\n"
    "   -bail                stop at the first error\n"
    "   -batch               print no prompts, even on a terminal\n"
    "   -box                 output mode box\n"
    "   -cmd COMMAND         run COMMAND before the SQL or standard input\n"
    "   -column              output mode column\n"
    "   -csv                 output mode csv\n"
    "   -echo                print input before it runs\n"
    "   -[no]header          print column names, or do not\n"
    "   -help                print this text\n"
    "   -html                output mode html\n"
    "   -init FILE           run FILE first, instead of ~/.warpliterc\n"
    "   -interactive         print prompts, even without a terminal\n"
    "   -json                output mode json\n"
    "   -line                output mode line\n"
    "   -list                output mode list\n"
    "   -markdown            output mode markdown\n"
    "   -newline SEP         set the row separator; default '\\n'\n"
    "   -nullvalue TEXT      print TEXT for NULL; default ''\n"
    "   -quote               output mode quote\n"
    "   -readonly            open the database for reading only\n"
    "   -separator SEP       set the column separator; default '|'\n"
    "   -set NAME=VALUE,...  change settings, as warplite_set(NAME, VALUE) does\n"
    "   -stats               print the engine, the reason and the time of each statement\n"
    "   -table               output mode table\n"
    "   -tabs                output mode list, with tabs between columns\n"
    "   -version             print the versions of warplite and SQLite\n";

/* A command: its line in the list, and what .help COMMAND adds (lines that begin with spaces). */
typedef struct topic {
  const char *line, *more;
} topic;

static const topic topics[] = {
    {".bail on|off             Stop at the first error; default off", NULL},
    {".databases               List the attached databases and their files", NULL},
    {".echo on|off             Print input before it runs", NULL},
    {".exit ?CODE?             Exit, with status CODE or 0", NULL},
    {".headers on|off          Print column names before the rows", NULL},
    {".help ?-all? ?TOPIC?     List the commands, or show those about TOPIC", NULL},
    {".import ?OPTIONS? FILE TABLE   Insert the rows of a text file into TABLE",
     "   OPTIONS:\n"
     "     --ascii        0x1F between columns, 0x1E between rows\n"
     "     --csv          commas between columns, line ends between rows\n"
     "     --schema S     the table is S.TABLE\n"
     "     --skip N       skip the first N records\n"
     "     -v             report what was done; twice for more\n"
     "   Without --ascii and --csv the separators are those of .mode and .separator.\n"
     "   If TABLE does not exist, it is created, with column names from the first\n"
     "   record. If FILE begins with |, the rest is a command and its output is read.\n"
     "   The import is one transaction. Ctrl-C rolls it back.\n"},
    {".indexes ?TABLE?         List indexes; TABLE is a LIKE pattern", NULL},
    {".load FILE ?ENTRY?       Load a SQLite extension", NULL},
    {".mode ?MODE? ?OPTIONS?   Set the output mode, or show it",
     "   MODE is one of\n"
     "     ascii       0x1F between columns, 0x1E between rows\n"
     "     box         a table drawn with lines (Unicode)\n"
     "     column      aligned columns\n"
     "     count       only the number of rows\n"
     "     csv         comma-separated values; lines end in CR LF\n"
     "     html        HTML table rows\n"
     "     insert      INSERT statements; the table's name may follow\n"
     "     json        an array of objects\n"
     "     line        one value per line\n"
     "     list        values with a separator between them\n"
     "     markdown    a Markdown table\n"
     "     off         no rows at all\n"
     "     qbox        like box --wrap 60 --quote\n"
     "     quote       values as SQL literals\n"
     "     table       a table drawn with - + |\n"
     "     tabs        like list, with tabs between values\n"
     "     tcl         values as TCL strings\n"
     "   OPTIONS, for box, column, markdown and table:\n"
     "     --wrap N       wrap cells after N characters; 0 never; default 60\n"
     "     --wordwrap B   wrap between words: on or off; default off\n"
     "     --ww           the same as --wordwrap on\n"
     "     --quote        print values as SQL literals\n"
     "     --noquote      print values as they are\n"},
    {".nullvalue STRING        Print STRING for NULL", NULL},
    {".open ?OPTIONS? ?FILE?   Close the database; open FILE or a new one in memory",
     "   OPTIONS:\n"
     "     --new          delete FILE first\n"
     "     --nofollow     refuse a symbolic link\n"
     "     --readonly     open for reading only\n"
     "   Settings given with -set apply to the new connection too.\n"},
    {".print STRING...         Print the strings", NULL},
    {".quit                    Exit", NULL},
    {".read FILE               Run the input in FILE",
     "   If FILE begins with |, the rest is a command and its output is run.\n"},
    {".schema ?PATTERN?        Print the CREATE statements that match PATTERN",
     "   PATTERN is a LIKE pattern, or a GLOB pattern if it contains one of * ? [\n"
     "   OPTIONS:\n"
     "     --indent       break long statements into lines\n"
     "     --nosys        leave out SQLite's own tables\n"},
    {".separator COL ?ROW?     Set the column and row separators", NULL},
    {".show                    Show the settings of the shell", NULL},
    {".stats ?on|off?          Print engine, reason and time of each statement on stderr",
     "   The line begins with the engine: cpu, gpu or sqlite.\n"
     "   Without an argument: print the engine and reason of the latest statement.\n"},
    {".tables ?PATTERN?        List tables and views; PATTERN is a LIKE pattern", NULL},
    {".timer on|off            Print the time that each input took", NULL},
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
