/*
** Numbers of texts (value/text_number.h) against SQLite: what is decided is the same, bit for bit,
** and nearly all ordinary texts are decided. The ways of rounding that the running SQLite does not
** have are checked against the same computation in C.
**
** Usage: unit_text_number [texts] [seed]
*/
#include "../rng.h"
#include "../tap.h"
#include "api/enable.h"
#include "base/sqlite.h"
#include "value/ops.h"
#include "value/rounding.h"
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By its own name, so that the program is linked with SQLite. */
#undef sqlite3_libversion_number
int sqlite3_libversion_number(void);

typedef struct text {
  char p[80];
  wl_u32 n;
} text;

static const char *const names[] = {"x*1", "affinity", "CAST AS REAL", "CAST AS NUMERIC"};
static const char *const sql[] = {"SELECT ?1*1", "SELECT x FROM n WHERE rowid = 1",
                                  "SELECT CAST(?1 AS REAL)", "SELECT CAST(?1 AS NUMERIC)"};
static sqlite3_stmt *query[4];

/* ---- texts */

static void append(text *t, const char *s) {
  for (; *s && t->n < sizeof t->p; s++) t->p[t->n++] = *s;
}
static void append_digits(rng *r, text *t, int n) {
  for (; n > 0 && t->n < sizeof t->p; n--) t->p[t->n++] = (char)('0' + rng_below(r, 10));
}

/* A price, a measurement, an integer: what columns of text mostly hold. */
static text ordinary(rng *r) {
  text t = {.n = 0};
  if (rng_chance(r, 20)) append(&t, "-");
  int whole = 1 + rng_below(r, 7), part = rng_below(r, 9);
  append_digits(r, &t, whole);
  if (rng_chance(r, 70)) {
    append(&t, ".");
    append_digits(r, &t, part);
  }
  if (rng_chance(r, 5)) append(&t, rng_chance(r, 50) ? "e-3" : "E+5");
  return t;
}

static text hostile(rng *r) {
  static const char *const pieces[] = {" ",
                                       "\t",
                                       "+",
                                       "-",
                                       ".",
                                       "e",
                                       "E",
                                       "0",
                                       "00000000000000000000",
                                       "9223372036854775807",
                                       "9223372036854775808",
                                       "999999999999999999",
                                       "1",
                                       "5",
                                       "x",
                                       "inf",
                                       "nan",
                                       "0x10",
                                       "e5",
                                       "e-5",
                                       "e+",
                                       "e400",
                                       "e-400",
                                       "e10000",
                                       "e-10000",
                                       "\xc2\xa0",
                                       "_",
                                       ",",
                                       "1.0",
                                       ".5",
                                       "1.",
                                       "1e"};
  text t = {.n = 0};
  for (int n = rng_below(r, 6); n > 0; n--) {
    int k = rng_below(r, (int)(sizeof pieces / sizeof *pieces) + 8);
    if (k < (int)(sizeof pieces / sizeof *pieces))
      append(&t, pieces[k]);
    else if (k % 8 == 0 && t.n < sizeof t.p)
      t.p[t.n++] = rng_chance(r, 50) ? 0 : (char)rng_below(r, 256);
    else
      append_digits(r, &t, 1 + rng_below(r, 19));
  }
  return t;
}

/* Up to 18 digits with any exponent in range. */
static text exact(rng *r) {
  text t = {.n = 0};
  char e[16];
  if (rng_chance(r, 50)) append(&t, "-");
  append_digits(r, &t, 1 + rng_below(r, 9));
  if (rng_chance(r, 50)) append(&t, ".");
  append_digits(r, &t, 1 + rng_below(r, 9));
  snprintf(e, sizeof e, "e%d", rng_below(r, 60) - 30);
  if (rng_chance(r, 50)) append(&t, e);
  return t;
}

/* ---- SQLite's answers */

static wl_val answer(sqlite3 *db, wl_val a, int want) {
  static sqlite3_stmt *insert;
  sqlite3_stmt *q = query[want];
  if (want == WL_NUMBER_AFFINITY) { /* what a NUMERIC column stores; it makes 1.0 an integer */
    if (!insert &&
        sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO n VALUES(1,?1)", -1, &insert, NULL))
      exit(2);
    sqlite3_bind_text(insert, 1, (const char *)wl_bytes(a), (int)a.n, SQLITE_STATIC);
    if (sqlite3_step(insert) != SQLITE_DONE) exit(2);
    sqlite3_reset(insert);
  } else if (a.t == WL_T_TEXT) {
    sqlite3_bind_text(q, 1, (const char *)wl_bytes(a), (int)a.n, SQLITE_STATIC);
  } else {
    sqlite3_bind_blob(q, 1, a.n ? (const void *)wl_bytes(a) : "", (int)a.n, SQLITE_STATIC);
  }
  wl_val v = a;
  if (sqlite3_step(q) != SQLITE_ROW) exit(2);
  int type = sqlite3_column_type(q, 0);
  if (type == SQLITE_INTEGER) v = wl_int(sqlite3_column_int64(q, 0));
  if (type == SQLITE_FLOAT) v = wl_real(sqlite3_column_double(q, 0));
  sqlite3_reset(q);
  return v;
}

static bool same(wl_val got, wl_val want, int how) {
  if (how == WL_NUMBER_AFFINITY && got.t == WL_T_REAL && want.t == WL_T_INT)
    return wl_cmp_val(got, want, 0) == 0;
  return got.t == want.t && got.v == want.v && got.n == want.n;
}

static long n_decided, n_asked;

static bool check(sqlite3 *db, const text *t, wl_u8 type) {
  wl_val a = wl_val_make(type, (wl_u64)(size_t)t->p, t->n);
  for (int want = WL_NUMBER_ARITH; want <= WL_NUMBER_NUMERIC; want++) {
    wl_val got;
    if (want == WL_NUMBER_AFFINITY && type != WL_T_TEXT) continue;
    n_asked++;
    if (!wl_number_of_text(a, want, wl_rounding_get(), &got)) continue;
    n_decided++;
    wl_val v = answer(db, a, want);
    if (same(got, v, want)) continue;
    tap_bad(names[want], "'%.*s': type %d, %llx; SQLite has type %d, %llx", (int)t->n, t->p, got.t,
            got.v, v.t, v.v);
    return false;
  }
  return true;
}

static void run(sqlite3 *db, rng *r, const char *what, text (*make)(rng *), long n, double least) {
  bool ok = true;
  n_asked = n_decided = 0;
  for (long k = 0; k < n && ok; k++) {
    text t = make(r);
    ok = check(db, &t, rng_chance(r, 90) ? WL_T_TEXT : WL_T_BLOB);
  }
  double share = (double)n_decided / (double)n_asked;
  printf("# %s: %.4f%% of %ld decided\n", what, 100 * share, n_asked);
  if (ok && share >= least)
    tap_ok(what);
  else if (ok)
    tap_bad(what, "only %.4f%% are decided", 100 * share);
}

/* ---- the ways of rounding */

/* The same steps as SQLite 3.43 to 3.46, and as SQLite before them, in C. */
static double by_steps(wl_u64 digits, int e) {
  long double v = (long double)digits;
  for (; e >= 10; e -= 10) v *= 1.0e+10L;
  for (; e >= 1; e--) v *= 1.0e+01L;
  for (; e <= -10; e += 10) v *= 1.0e-10L;
  for (; e <= -1; e++) v *= 1.0e-01L;
  return (double)v;
}
static double at_once(wl_u64 digits, int e) {
  long double scale = 1;
  for (int k = e < 0 ? -e : e; k > 0; k--) scale *= 10;
  return (double)(e < 0 ? (long double)digits / scale : (long double)digits * scale);
}

/* The product of two pairs of doubles, whose value is their sum, with the precision of SQLite 3.47:
** the factors are split after 27 bits, and only the largest of the products is exact. */
static void pair_multiply(double a[2], double y, double y_rest) {
  double x_high = wl_as_f64(wl_f64_bits(a[0]) & ~0x3ffffffULL), x_low = a[0] - x_high;
  double y_high = wl_as_f64(wl_f64_bits(y) & ~0x3ffffffULL), y_low = y - y_high;
  double high = x_high * y_high, middle = x_high * y_low + x_low * y_high, sum = high + middle;
  double rest = high - sum + middle + x_low * y_low;
  rest = a[0] * y_rest + a[1] * y + rest;
  a[0] = sum + rest;
  a[1] = sum - a[0] + rest;
}
static double by_pairs(wl_u64 digits, int e) {
  double a[2] = {(double)digits, 0};
  wl_u64 whole = (wl_u64)a[0];
  a[1] = digits >= whole ? (double)(digits - whole) : -(double)(whole - digits);
  for (; e >= 10; e -= 10) pair_multiply(a, 1e10, 0);
  for (; e >= 1; e--) pair_multiply(a, 10, 0);
  for (; e <= -10; e += 10) pair_multiply(a, 1e-10, -3.6432197315497741579e-27);
  for (; e <= -1; e++) pair_multiply(a, 0.1, -5.5511151231257827021e-18);
  return a[0] + a[1];
}

static void check_ways(rng *r, long n) {
  bool ok = true;
  long n_near = 0;
  for (long k = 0; k < n && ok; k++) {
    wl_u64 digits = rng_next(r) % 1000000000000000000u;
    int e = rng_below(r, 54) - 27, rest = e;
    double nearest = 0, divided = 0, multiplied = 0;
    char t[40];
    while (digits > 9 && rng_chance(r, 10)) digits /= 10;
    if (!digits || digits % 10 == 0) continue;
    snprintf(t, sizeof t, "%llue%d", digits, e);
    bool near = !wl_decimal_round(digits, e, WL_ROUND_NEAREST, &nearest);
    n_near += near;
    ok = (near || nearest == strtod(t, NULL)) &&
         wl_decimal_round(digits, e, WL_ROUND_DIVIDE, &divided) &&
         wl_decimal_round(digits, e, WL_ROUND_MULTIPLY, &multiplied);
    for (; rest > 0 && digits < 1844674407370955161u; rest--) digits *= 10;
    ok &= near || nearest == by_pairs(digits, rest);
    if (LDBL_MANT_DIG == 64)
      ok &= divided == at_once(digits, rest) && multiplied == by_steps(digits, rest);
    if (!ok) tap_bad("ways of rounding", "%s: %a %a %a", t, nearest, divided, multiplied);
  }
  if (ok && n_near > n / 1000) tap_bad("ways of rounding", "%ld of %ld are not decided", n_near, n);
  if (ok && n_near <= n / 1000) tap_ok("ways of rounding");
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 300000;
  rng r = {argc > 2 ? (unsigned long long)atoll(argv[2]) : 1};
  sqlite3 *db;
  if (sqlite3_libversion_number() <= 0 || !wl_api_bind(NULL)) return 2;
  if (sqlite3_open(":memory:", &db) ||
      sqlite3_exec(db, "CREATE TABLE n(rowid INTEGER PRIMARY KEY, x NUMERIC)", NULL, NULL, NULL))
    return 1;
  for (int k = 0; k < 4; k++)
    if (sqlite3_prepare_v2(db, sql[k], -1, &query[k], NULL)) return 1;
  printf("# rounding %d\n", wl_rounding_get());
  if (wl_rounding_get() == WL_ROUND_UNKNOWN)
    tap_bad("rounding", "the running SQLite's rounding is not known");
  else
    tap_ok("the running SQLite's rounding is known");
  run(db, &r, "ordinary texts", ordinary, n, 0.9999);
  run(db, &r, "texts of up to 18 digits", exact, n, 0.85);
  run(db, &r, "hostile texts", hostile, n, 0.3);
  check_ways(&r, 4 * n);
  for (int k = 0; k < 4; k++) sqlite3_finalize(query[k]);
  return tap_done();
}
