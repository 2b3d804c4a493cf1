/*
** Whether the SQL tests execute everything that EXPLAIN can print: every opcode, source and sink on
** the CPU, and on a device what it has. It runs the SQL files given after the engine and then reads
** the library's counts.
**
** Usage: unit_executed cpu|sim FILE...
*/
#define main slt_main
#include "../sql/slt.c"
#undef main
#include "exec/executed.h"

static int n_missing;

static void check(const char *what, const char *name, long count) {
  if (count > 0) return;
  printf("not ok executed: %s %s is never executed by the SQL tests\n", what, name);
  n_missing++;
}

/* Whether programs for a device have the opcode. It splits them at Expand, and the compiler uses
** Row only for the CPU (test/unit/device_joins.c runs it on a device). */
static bool device_has(int op) {
  return !wl_opcodes[op].host_only && op != WL_OP__Row;
}

int main(int argc, char **argv) {
  static const char *const sources[] = {
#define WL_SOURCE_KIND(name, meaning) #name,
#include "program/pipelines.def"
#undef WL_SOURCE_KIND
  };
  static const char *const sinks[] = {
#define WL_SINK_KIND(name, leaves) #name,
#include "program/pipelines.def"
#undef WL_SINK_KIND
  };
  if (argc < 3) {
    printf("skip executed - it needs an engine and SQL files\n");
    return 0;
  }
  bool device = strcmp(argv[1], "cpu") != 0;
  char **args = calloc((size_t)argc + 2, sizeof *args);
  if (!args) return 1;
  args[0] = argv[0];
  args[1] = (char *)(size_t) "--engine";
  for (int k = 1; k < argc; k++) args[k + 1] = argv[k];
  int rc = slt_main(argc + 1, args);
  free(args);
  if (rc) return rc;
  const wl_executed *c = &wl_executed_counts[device ? WL_ON_DEVICE : WL_ON_CPU];
  for (int op = 0; op < WL_N_OPCODES; op++)
    if (!device || device_has(op)) check("opcode", wl_opcodes[op].name, c->opcodes[op]);
  for (int k = 0; k < WL_N_SOURCE_KINDS; k++)
    if (!device || k == WL_SOURCE_TABLE || k == WL_SOURCE_UNMATCHED)
      check("source", sources[k], c->sources[k]);
  for (int k = 0; k < WL_N_SINK_KINDS; k++)
    if (!device || (k != WL_SINK_LOOKUP && k != WL_SINK_SORT_KEYS))
      check("sink", sinks[k], c->sinks[k]);
  if (!device) check("sink", "Limit", c->limits);
  printf("%s executed: every opcode, source and sink [%s]\n", n_missing ? "not ok" : "ok", argv[1]);
  return n_missing > 0;
}
