/*
** The meaning of the date opcodes against SQLite's functions, call by call: random times, modifiers
** and formats. Codes of texts must give the texts back and have their order.
**
**     unit_dates [CALLS] [SEED]
*/
#include "api/enable.h"
#include "value/conv.h"
#include "value/date/plan.h"
#include "value/date/dialect.h"
#include "value/exchange.h"
#include "value/scratch.h"
#include "../dates.h"
#include "../tap.h"

/* By its own name, so that the program is linked with SQLite. */
#undef sqlite3_libversion_number
int sqlite3_libversion_number(void);

enum { MAX_FAILED = 10 };

static long n_planned, n_left, n_coded;

static bool same(wl_val a, wl_val b) {
  return a.t == b.t && (a.t == WL_T_NULL || wl_cmp_val(a, b, WL_COLL_BINARY) == 0);
}

static void show(const char *what, wl_val v) {
  if (v.t >= WL_T_TEXT)
    printf("# %s: '%.*s'\n", what, (int)v.n, (const char *)wl_bytes(v));
  else if (v.t == WL_T_REAL)
    printf("# %s: %.17g\n", what, wl_as_f64(v.v));
  else
    printf("# %s: %s %lld\n", what, v.t == WL_T_NULL ? "NULL" : "integer", (wl_i64)v.v);
}

static void check(bool ok, const char *name) {
  if (ok)
    tap_ok(name);
  else
    tap_bad(name, "see above");
}

static wl_val text_of(const char *s) {
  return wl_text((const wl_u8 *)s, (wl_u32)strlen(s));
}

/* The code of a text gives the text, and codes of two texts compare as the texts do. */
static bool check_codes(wl_vctx *x, wl_val plan, wl_val time, wl_val got, wl_val *last,
                        wl_val *last_code) {
  wl_i64 n = wl_date_n_codes(plan, false);
  if (n == 0) return true;
  n_coded++;
  wl_val code = wl_op_DateCode(x, time, plan, 0), text = wl_op_DateText(x, code, plan, 0);
  bool ok = same(text, got) && (code.t == WL_T_NULL || ((wl_i64)code.v >= 0 && (wl_i64)code.v < n));
  if (ok && code.t == WL_T_INT && last->t == WL_T_TEXT)
    ok = wl_cmp_val(code, *last_code, 0) == wl_cmp_val(got, *last, WL_COLL_BINARY);
  if (!ok) show("text", text), show("code", code), show("last", *last);
  if (got.t == WL_T_TEXT) *last = got, *last_code = code;
  return ok;
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 200000, n_bad = 0;
  rng r = {argc > 2 ? (unsigned long long)atoll(argv[2]) : 1};
  sqlite3 *db;
  wl_error err;
  wl_u32 fault = WL_FAULT_NONE;
  wl_vctx x = {.fault = &fault, .max_text = 1000000000};
  int dialect;
  if (sqlite3_libversion_number() <= 0 || !wl_api_bind(NULL)) return 2;
  if (sqlite3_open(":memory:", &db) || wl_conv_take(&x.conv, &err)) return 1;
  check(wl_date_dialect(&dialect), "the running SQLite's dates are known");
  printf("# dialect %d\n", dialect);
  while (n > 0 && n_bad < MAX_FAILED) {
    date_call c;
    wl_val plan, modifiers[4], last = wl_null(), last_code = wl_null();
    wl_arena arena;
    date_call_make(&r, &c);
    for (int k = 0; k < c.n_modifiers; k++) modifiers[k] = text_of(c.modifiers[k]);
    wl_arena_init(&arena);
    wl_date_answer a = wl_date_plan_make(&arena, &x, (wl_date_function)c.function,
                                         text_of(c.format), modifiers, c.n_modifiers, &plan);
    char *sql = date_sql(&c, "?1"), *select = sqlite3_mprintf("SELECT %s, ?1", sql);
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(db, select, -1, &q, NULL) != SQLITE_OK) return 1;
    int kind = rng_below(&r, 2) ? -1 : (int)rng_below(&r, 5);
    for (int k = 0; k < 12; k++, n--) {
      date_bind(&r, q, 1, kind);
      if (sqlite3_step(q) != SQLITE_ROW) break;
      wl_val want = wl_sqlite_val(sqlite3_column_value(q, 0)),
             time = wl_sqlite_val(sqlite3_column_value(q, 1)), got = wl_null();
      n_left += a == WL_DATE_LEFT;
      n_planned += a == WL_DATE_PLANNED;
      if (a == WL_DATE_PLANNED) got = wl_op_Date(&x, time, plan, 0);
      bool ok = a == WL_DATE_LEFT || (same(got, want) && !fault);
      if (ok && a == WL_DATE_PLANNED) ok = check_codes(&x, plan, time, got, &last, &last_code);
      if (!ok) {
        n_bad++;
        tap_bad(sql, "fault %u", fault);
        show("time", time), show("SQLite", want), show("here", got);
        fault = 0;
      }
      sqlite3_reset(q);
    }
    wl_scratch_reset(&x);
    sqlite3_finalize(q);
    sqlite3_free(sql);
    sqlite3_free(select);
    wl_arena_close(&arena);
  }
  check(n_bad == 0, "date functions give SQLite's values");
  check(n_planned > 10 * n_left && n_coded > n_planned / 4, "most calls are native");
  printf("# %ld planned, %ld left to SQLite, %ld with codes\n", n_planned, n_left, n_coded);
  wl_scratch_close(&x);
  wl_conv_give(x.conv);
  sqlite3_close(db);
  return tap_done();
}
