/*
** Random calls of date functions: times, modifiers and formats, good ones and broken ones.
*/
#ifndef TEST_DATES_H
#define TEST_DATES_H

#include "rng.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATE_PICK(r, list) list[date_below(r, sizeof list / sizeof *list)]

typedef struct date_call {
  int function; /* in date_functions */
  char format[80];
  char modifiers[4][48];
  int n_modifiers;
} date_call;

static const char *const date_functions[] = {"date",      "time",      "datetime",
                                             "julianday", "unixepoch", "strftime"};
enum { DATE_STRFTIME = 5 };

/* 0 … n-1 */
static inline uint64_t date_below(rng *r, uint64_t n) {
  return rng_next(r) % n;
}
static inline double date_real(rng *r, double lo, double hi) {
  return lo + (hi - lo) * (double)(rng_next(r) >> 11) * 0x1p-53;
}

/* A text that looks like a time. */
static inline void date_text(rng *r, char *out, size_t n) {
  static const char *const seconds[] = {
      "%02d",      "%02d.%d",   "%02d.%03d", "%02d.9995",    "%02d.9999999999999999",
      "%02d.0005", "%02d.%06d", "%02d.",     "%02d.99949999"};
  static const char *const zones[] = {"Z",      "z",       " Z ",    "+01:00", "-14:00",
                                      "+14:59", " +05:30", "+15:00", "-00:00", "+1:00",
                                      " x",     "Zz",      "+00:00 "};
  static const char *const odd[] = {"",
                                    " ",
                                    "now ",
                                    "noon",
                                    "2023",
                                    "1e3",
                                    "2460000.5",
                                    "  2460000.75 ",
                                    "-1",
                                    "1.5e9",
                                    "2460000.123",
                                    ".5",
                                    "5.",
                                    "5373484.5",
                                    "5373484.499999",
                                    "-0",
                                    "+12:30",
                                    "24:00:00",
                                    "23:60",
                                    "2023-1-1",
                                    "2023-13-01",
                                    "2023-00-10",
                                    "2023-01-32",
                                    "2023-01-00",
                                    "99999-01-01",
                                    "-2023-01-01",
                                    "--001-01-01",
                                    "2023-01-01X",
                                    "1700000000",
                                    "-210866760000",
                                    "253402300799",
                                    "253402300799.999",
                                    "253402300800",
                                    "1e400",
                                    "0x10",
                                    "2023-01-01T",
                                    "2023-01-01TT12:00",
                                    "2023-01-01 12",
                                    "2023-01-01 12:",
                                    "2023-01-01 12:0",
                                    "2023-01-01 12:00:",
                                    "2023-01-01 12:00:0",
                                    "\xc3\xa9",
                                    "12:34:56.7891",
                                    "00:00",
                                    "1700000000.5",
                                    "1700000000.123"};
  int year =
      (int)date_below(r, 4) ? (int)date_below(r, 60) + 1980 : (int)date_below(r, 14713) - 4713;
  if (date_below(r, 12) == 0) {
    snprintf(out, n, "%s", DATE_PICK(r, odd));
    return;
  }
  size_t at = 0;
  if (date_below(r, 8)) {
    static const int ends[] = {28, 29, 30, 31, 1};
    int day = date_below(r, 4) ? (int)date_below(r, 28) + 1 : DATE_PICK(r, ends);
    at = (size_t)snprintf(out, n, "%s%04d-%02d-%02d", year < 0 ? "-" : "", abs(year),
                          (int)date_below(r, 12) + 1, day);
    if (date_below(r, 3) == 0) return;
    static const char *const gaps[] = {" ", "T", "  ", " T", ""};
    at += (size_t)snprintf(out + at, n - at, "%s", date_below(r, 4) ? " " : DATE_PICK(r, gaps));
  }
  int hour = (int)date_below(r, 25), minute = (int)date_below(r, date_below(r, 50) ? 60 : 61);
  at += (size_t)snprintf(out + at, n - at, "%02d:%02d", hour, minute);
  if (date_below(r, 4)) {
    out[at++] = ':';
    const char *f = date_below(r, 3) ? seconds[date_below(r, 3)] : DATE_PICK(r, seconds);
    at += (size_t)snprintf(out + at, n - at, f, (int)date_below(r, date_below(r, 50) ? 60 : 61),
                           (int)date_below(r, 1000));
  }
  if (date_below(r, 5) == 0) at += (size_t)snprintf(out + at, n - at, "%s", DATE_PICK(r, zones));
  if (date_below(r, 40) == 0 && at > 0) out[date_below(r, at)] = (char)(' ' + date_below(r, 95));
}

/* Binds a random time, or one of a kind if kind >= 0: 0 NULL, 1 integer, 2 real, 3 text, 4 blob. */
static inline void date_bind(rng *r, sqlite3_stmt *st, int index, int kind) {
  char text[100];
  static const sqlite3_int64 ints[] = {0,
                                       1,
                                       -1,
                                       5373484,
                                       5373485,
                                       2460000,
                                       1700000000,
                                       -210866760000,
                                       -210866760001,
                                       253402300799,
                                       253402300800,
                                       9223372036854775807,
                                       -9223372036854775807 - 1,
                                       86400,
                                       9007199254740993,
                                       1684959,
                                       464269060800,
                                       464269060799999};
  static const double reals[] = {0.0,
                                 -0.0,
                                 0.5,
                                 -0.5,
                                 5373484.5,
                                 5373484.499999999,
                                 5373484.49999999999,
                                 1e300,
                                 -1e300,
                                 2460000.5,
                                 253402300799.9999,
                                 -210866760000.0004,
                                 253402300799.0,
                                 253402300799.5};
  if (kind < 0) kind = (int)date_below(r, 20) ? 1 + (int)date_below(r, 3) : (int)date_below(r, 5);
  switch (kind) {
  case 0: sqlite3_bind_null(st, index); break;
  case 1:
    if (date_below(r, 6) == 0)
      sqlite3_bind_int64(st, index, DATE_PICK(r, ints));
    else if (date_below(r, 2))
      sqlite3_bind_int64(st, index, (sqlite3_int64)date_below(r, 4102444800) - 86400LL * 3650);
    else if (date_below(r, 2))
      sqlite3_bind_int64(st, index, (sqlite3_int64)date_below(r, 5373490));
    else
      sqlite3_bind_int64(st, index, (sqlite3_int64)date_below(r, 464269060900) - 210866760100);
    break;
  case 2:
    if (date_below(r, 6) == 0)
      sqlite3_bind_double(st, index, DATE_PICK(r, reals));
    else if (date_below(r, 2))
      sqlite3_bind_double(st, index, date_real(r, -10, 5373490));
    else
      sqlite3_bind_double(st, index, date_real(r, -210866760100.0, 253402300900.0));
    break;
  case 3:
    date_text(r, text, sizeof text);
    sqlite3_bind_text(st, index, text, -1, SQLITE_TRANSIENT);
    break;
  default:
    date_text(r, text, sizeof text);
    sqlite3_bind_blob(st, index, text, (int)(strlen(text) + date_below(r, 2)), SQLITE_TRANSIENT);
  }
}

static inline void date_modifier(rng *r, char *out, size_t n) {
  static const char *const words[] = {
      "unixepoch", "auto",      "julianday",      "start of day", "start of month", "start of year",
      "weekday 0", "weekday 3", "weekday 6",      "floor",        "ceiling",        "subsec",
      "subsecond", "UnixEpoch", "Start of Month", "WEEKDAY 2"};
  static const char *const broken[] = {"",
                                       "weekday 7",
                                       "weekday",
                                       "weekday 1.5",
                                       "start of week",
                                       "start of",
                                       "utcx",
                                       "1 dayz",
                                       "+1",
                                       "days",
                                       "+1 fortnight",
                                       "unixepoch ",
                                       "+ 1 day",
                                       "weekday  4",
                                       "weekday 2.0",
                                       "+25:00",
                                       "+10:60",
                                       "+1e3 days",
                                       "1.5.5 days",
                                       "- 1 day",
                                       "+0x1 days",
                                       "+1day",
                                       "-.5 days",
                                       "+5000000 days",
                                       "+6000000 days",
                                       "+176546 months",
                                       "-14713 years",
                                       "+4.6427e14 seconds",
                                       "+0001-02-03x",
                                       "+0001-12-03",
                                       "+0001-02-31",
                                       "+001-02-03",
                                       "+00001-02-03 04:05:06.789",
                                       "0001-02-03",
                                       "+0001-02-03 ",
                                       "+0001-02-03 4:05",
                                       "+99999-01-01",
                                       "+14712-11-30"};
  static const char *const units[] = {"second",  "minute",  "hour",  "day",  "month",  "year",
                                      "seconds", "Minutes", "hours", "days", "months", "YEARS"};
  static const char *const signs[] = {"+", "-", ""};
  switch (date_below(r, 12)) {
  case 0: snprintf(out, n, "%s", DATE_PICK(r, broken)); break;
  case 1:
    snprintf(out, n, "%s%02d:%02d", DATE_PICK(r, signs), (int)date_below(r, 26),
             (int)date_below(r, 61));
    break;
  case 2:
    snprintf(out, n, "%s%02d:%02d:%02d.%d", DATE_PICK(r, signs), (int)date_below(r, 24),
             (int)date_below(r, 60), (int)date_below(r, 60), (int)date_below(r, 10000));
    break;
  case 3:
    snprintf(out, n, "%s%04d-%02d-%02d%s", date_below(r, 2) ? "+" : "-", (int)date_below(r, 100),
             (int)date_below(r, 13), (int)date_below(r, 32),
             date_below(r, 2) ? "" : " 12:34:56.789");
    break;
  case 4:
  case 5:
    snprintf(out, n, "%s%d %s", DATE_PICK(r, signs),
             (int)date_below(r, date_below(r, 4) ? 40 : 200000), DATE_PICK(r, units));
    break;
  case 6:
    snprintf(out, n, "%s%.*f %s", DATE_PICK(r, signs), (int)date_below(r, 7),
             date_real(r, 0, date_below(r, 4) ? 40 : 1e6), DATE_PICK(r, units));
    break;
  default: snprintf(out, n, "%s", DATE_PICK(r, words));
  }
}

static inline void date_format(rng *r, char *out, size_t n) {
  static const char *const whole[] = {"%Y-%m",
                                      "%Y-%m-%d",
                                      "%H:%M",
                                      "%Y-%m-%d %H:%M:%S",
                                      "%Y%m%d",
                                      "%W",
                                      "%j",
                                      "%s",
                                      "%Y-%m-%dT%H:%M:%fZ",
                                      "%d.%m.%Y",
                                      "%Y",
                                      "%m",
                                      "%H",
                                      "%G-W%V",
                                      "%F %T",
                                      "%f",
                                      "%S"};
  static const char letters[] = "YmdHMSfjwWsYmdHMSfjwWsJ%eFGgIklpPRTuUVxz";
  static const char *const literals[] = {"-", ":", " ", "x", "/", "0", "\xc3\xa9", "T", "."};
  size_t at = 0;
  if (date_below(r, 3)) {
    snprintf(out, n, "%s", DATE_PICK(r, whole));
    return;
  }
  out[0] = 0;
  for (int k = (int)date_below(r, 7); k >= 0; k--) {
    char letter = letters[date_below(r, date_below(r, 4) ? 22 : sizeof letters - 1)];
    at += date_below(r, 2) ? (size_t)snprintf(out + at, n - at, "%%%c", letter)
                           : (size_t)snprintf(out + at, n - at, "%s", DATE_PICK(r, literals));
  }
  if (date_below(r, 60) == 0) snprintf(out + at, n - at, "%%");
}

static inline void date_call_make(rng *r, date_call *c) {
  c->function = (int)(date_below(r, 3) ? DATE_STRFTIME : date_below(r, 6));
  c->format[0] = 0;
  if (c->function == DATE_STRFTIME) date_format(r, c->format, sizeof c->format);
  c->n_modifiers = (int)(date_below(r, 3) ? date_below(r, 3) : date_below(r, 5));
  for (int k = 0; k < c->n_modifiers; k++) {
    if (k == 0 && date_below(r, 3) == 0)
      snprintf(c->modifiers[k], sizeof c->modifiers[k], "unixepoch");
    else
      date_modifier(r, c->modifiers[k], sizeof c->modifiers[k]);
  }
}

/* The call as SQL over a first argument. Free with sqlite3_free(). */
static inline char *date_sql(const date_call *c, const char *argument) {
  sqlite3_str *s = sqlite3_str_new(NULL);
  sqlite3_str_appendf(s, "%s(", date_functions[c->function]);
  if (c->function == DATE_STRFTIME) sqlite3_str_appendf(s, "%Q, ", c->format);
  sqlite3_str_appendf(s, "%s", argument);
  for (int k = 0; k < c->n_modifiers; k++) sqlite3_str_appendf(s, ", %Q", c->modifiers[k]);
  sqlite3_str_appendall(s, ")");
  return sqlite3_str_finish(s);
}

#endif
