/*
** The test of literals.c: what placeholders mean, and which are refused.
*/
#include <stdio.h>
#include <string.h>
#include "../../test/tap.h"
#include "literals.h"
#include "run.h"

enum { N_RUNS = 40 };

/* Ranges stay in their bounds, +K adds, and draws of one kind differ. */
static void check_ranges(void) {
  static const char text[] = "{{2..4#1:2}} {{2..4#2:3}} {{2..4#3:4}} {{2..4#1+10:12}} "
                             "{{-0.05..0.07:0.01}} {{-0.05..0.07+0.02:0.03}} "
                             "{{1993-01..1997-10:1993-11}} {{1993-01..1997-10+3:1994-02}} "
                             "{{1995-02-27..1995-03-02:1995-02-28}}";
  struct run_texts t = {0};
  char why[WHY] = "";
  bool ok = run_texts_make(&t, "check", "ranges", text, NULL, N_RUNS, why, sizeof why);
  for (int i = 0; ok && i < N_RUNS; i++) {
    int a, b, c, plus, year, month, later_year, later_month, day_year, day_month, day;
    double low, high;
    ok = sscanf(t.sql[i], "%d %d %d %d %lf %lf %4d-%2d %4d-%2d %4d-%2d-%2d", &a, &b, &c, &plus,
                &low, &high, &year, &month, &later_year, &later_month, &day_year, &day_month,
                &day) == 13 &&
         a + b + c == 9 && a != b && b != c && a != c && a >= 2 && a <= 4 && b >= 2 && b <= 4 &&
         plus == a + 10 && low >= -0.05 && low <= 0.07 && fabs(high - low - 0.02) < 1e-9 &&
         year * 12 + month >= 1993 * 12 + 1 && year * 12 + month <= 1997 * 12 + 10 && month >= 1 &&
         month <= 12 && later_year * 12 + later_month == year * 12 + month + 3 &&
         later_month >= 1 && later_month <= 12 && day_year == 1995 &&
         ((day_month == 2 && day >= 27 && day <= 28) || (day_month == 3 && day >= 1 && day <= 2));
    if (!ok) snprintf(why, sizeof why, "run %d: %s", i, t.sql[i]);
  }
  if (ok)
    tap_ok("literals: ranges");
  else
    tap_bad("literals: ranges", "%s", why);
  run_texts_free(&t);
}

/* Words, lists, what belongs to a value, and DuckDB's text with the same values. */
static void check_lists(void) {
  static const char text[] = "{{a|b:a}} {{nation:FRANCE}} of {{nation.region:EUROPE}}";
  static const char duck[] = "{{nation:FRANCE}} of {{nation.region:EUROPE}} {{a|b:a}}";
  struct run_texts t = {0};
  char why[WHY] = "", turned[WHY];
  bool ok = run_texts_make(&t, "check", "lists", text, duck, N_RUNS, why, sizeof why);
  for (int i = 0; ok && i < N_RUNS; i++) {
    const char *region = strstr(t.sql[i], " of ");
    bool home = false;
    for (int k = 0; region && k < 25; k++)
      home |= strncmp(t.sql[i] + 2, nations[k].name, (size_t)(region - t.sql[i]) - 2) == 0 &&
              strcmp(region + 4, regions[nations[k].region]) == 0;
    snprintf(turned, sizeof turned, "%s %c", t.sql[i] + 2, t.sql[i][0]);
    ok = home && strcmp(turned, t.duck_sql[i]) == 0;
    if (!ok) snprintf(why, sizeof why, "run %d: %.100s; %.100s", i, t.sql[i], t.duck_sql[i]);
  }
  if (ok)
    tap_ok("literals: lists");
  else
    tap_bad("literals: lists", "%s", why);
  run_texts_free(&t);
}

static void check_refused(void) {
  static const char *const bad[] = {"{{nonsense:1}}",    "{{1..3#4:1}}",   "{{3..1:1}}",
                                    "{{1..3:1",          "{{1..3#0:1}}",   "{{a|b+1:a}}",
                                    "{{region.city:X}}", "{{1..3+0.5:1}}", "{{1.0..3.00:1.0}}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct run_texts t = {0};
    char why[WHY] = "", name[64];
    snprintf(name, sizeof name, "literals: %s is refused", bad[i]);
    if (run_texts_make(&t, "check", "refused", bad[i], NULL, 2, why, sizeof why))
      tap_bad(name, "it became %s", t.sql[1]);
    else
      tap_ok(name);
    run_texts_free(&t);
  }
}

void literals_check(void) {
  check_ranges();
  check_lists();
  check_refused();
}
