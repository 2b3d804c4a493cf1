/*
** The dialect of the running SQLite; see dialect.h.
*/
#include "value/date/dialect.h"
#include "base/quirks.h"
#include "base/status.h"
#include "value/conv.h"
#include "value/date/plan.h"
#include "value/exchange.h"
#include "value/scratch.h"
#include <pthread.h>
#include <string.h>

static struct {
  int bits;
  bool formats[128];
  bool known; /* date_ops.h gives the same answers */
} dialect;

/* ---- questions */

static void find_bits(sqlite3 *db) {
  static const struct {
    int bit;
    const char *sql;
  } questions[] = {
      {WL_DATE_EARLY_YEARS, "SELECT julianday(date(1684959)) = 1684958.5"},
      {WL_DATE_WHOLE_MONTHS, "SELECT date('2023-02-31') = '2023-03-03'"},
      {WL_DATE_CUT_SECONDS, "SELECT strftime('%s', '2000-01-01 00:00:00.9999') = '946684800'"},
      {WL_DATE_SUBSEC, "SELECT datetime('2000-01-01', 'subsec') IS NOT NULL"},
      {WL_DATE_SHIFTS, "SELECT date('2000-01-01', '+0001-01-01') IS NOT NULL"},
      {WL_DATE_FLOOR, "SELECT date('2000-01-01', 'floor') IS NOT NULL"},
  };
  for (size_t k = 0; k < sizeof questions / sizeof *questions; k++)
    if (wl_quirks_ask(db, questions[k].sql)) dialect.bits |= questions[k].bit;
}

static void find_formats(sqlite3 *db) {
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(db, "SELECT strftime('%' || ?1, 0) IS NOT NULL", -1, &q, NULL)) return;
  for (int c = '%'; c < 128; c++) {
    if (c > '%' && c < 'A') continue;
    char letter = (char)c;
    sqlite3_bind_text(q, 1, &letter, 1, SQLITE_STATIC);
    dialect.formats[c] = sqlite3_step(q) == SQLITE_ROW && sqlite3_column_int(q, 0);
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
}

/* ---- the examination */

/* Times, modifiers and formats whose combinations are compared. */
static const char *const times[] = {"2023-02-31",        "-0044-03-15 23:59:59.9996",
                                    "1999-12-31T24:00",  "2000-02-29 12:34:56.5 +05:30",
                                    "12:00:59.9995Z",    "2460000.5",
                                    "-4713-11-24 12:00", "9999-12-31 23:59:59.999",
                                    "0000-01-01",        "-4713-11-24 11:59"};
static const char *const modifiers[] = {NULL,
                                        "start of month",
                                        "+1 month",
                                        "-13 months",
                                        "weekday 3",
                                        "+1.5 years",
                                        "-12:34:56.789",
                                        "julianday",
                                        "unixepoch",
                                        "auto",
                                        "start of year",
                                        "+2.25 days",
                                        "subsec",
                                        "-0001-02-03 04:05",
                                        "floor"};
static const char format[] = "%Y %m %d %H %M %S %f %j %w %W %s";

static wl_val text_of(const char *s) {
  return wl_text((const wl_u8 *)s, (wl_u32)strlen(s));
}

static bool same(wl_val a, wl_val b) {
  return a.t == b.t && (a.t == WL_T_NULL || wl_cmp_val(a, b, WL_COLL_BINARY) == 0);
}

/* Compares one call with SQLite's answer. */
static bool agrees(wl_vctx *x, wl_date_function f, const char *time, const char *modifier,
                   wl_val want) {
  wl_arena arena;
  wl_val plan, m = modifier ? text_of(modifier) : wl_null(), got = wl_null();
  wl_arena_init(&arena);
  wl_date_answer a = wl_date_plan_make(&arena, x, f, text_of(format), &m, modifier ? 1 : 0, &plan);
  if (a == WL_DATE_PLANNED) got = wl_op_Date(x, text_of(time), plan, 0);
  bool ok = a == WL_DATE_PLANNED || a == WL_DATE_IS_NULL ? same(got, want) : false;
  wl_arena_close(&arena);
  return ok;
}

static bool examine(sqlite3 *db, wl_vctx *x) {
  sqlite3_stmt *q = NULL;
  bool ok = true;
  for (int with = 0; with < 2 && ok; with++) {
    const char *sql = with ? "SELECT date(?1, ?2), time(?1, ?2), datetime(?1, ?2), "
                             "julianday(?1, ?2), unixepoch(?1, ?2), strftime(?3, ?1, ?2)"
                           : "SELECT date(?1), time(?1), datetime(?1), julianday(?1), "
                             "unixepoch(?1), strftime(?3, ?1)";
    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL)) return false;
    for (size_t t = 0; t < sizeof times / sizeof *times && ok; t++)
      for (size_t k = with ? 1 + t % 3 : 0; k < (with ? sizeof modifiers / sizeof *modifiers : 1);
           k += 3) {
        sqlite3_bind_text(q, 1, times[t], -1, SQLITE_STATIC);
        if (with) sqlite3_bind_text(q, 2, modifiers[k], -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 3, format, -1, SQLITE_STATIC);
        ok = ok && sqlite3_step(q) == SQLITE_ROW;
        for (int f = WL_DATE_DATE; f <= WL_DATE_STRFTIME && ok; f++)
          ok = agrees(x, (wl_date_function)f, times[t], modifiers[k],
                      wl_sqlite_val(sqlite3_column_value(q, f)));
        sqlite3_reset(q);
      }
    sqlite3_finalize(q);
    q = NULL;
  }
  return ok;
}

static void find(void) {
  sqlite3 *db = NULL;
  wl_error ignored;
  wl_u32 fault = WL_FAULT_NONE;
  wl_vctx x = {.fault = &fault, .max_text = 1000000};
  if (wl_conv_take(&x.conv, &ignored)) return;
  if (sqlite3_open_v2(":memory:", &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      NULL) == 0) {
    find_bits(db);
    find_formats(db);
    dialect.known = true; /* plans can be made only now */
    dialect.known = examine(db, &x) && !fault;
  }
  sqlite3_close(db);
  wl_scratch_close(&x);
  wl_conv_give(x.conv);
}

/* ---- answers */

static __thread bool examining;

bool wl_date_dialect(int *out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!examining) {
    examining = true;
    pthread_once(&once, find);
    examining = false;
  }
  *out = dialect.bits;
  return dialect.known;
}

bool wl_date_dialect_has_format(wl_u8 letter) {
  return letter < 128 && dialect.formats[letter];
}
