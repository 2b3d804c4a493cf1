/*
** How SQLite rounds the numbers of texts, by experiment; see rounding.h.
*/
#include "value/rounding.h"
#include "base/sqlite.h"
#include "value/text_number.h"
#include <pthread.h>
#include <stdbool.h>

/* Numbers whose last bit shows how they were rounded: digits * 10^exponent. */
static const struct {
  wl_u64 digits;
  int exponent;
} telling[] = {
    {841146976446487897u, -27}, {301032766209875083u, -27}, {603827495592581158u, -22},
    {325978282810261668u, -22}, {157956510742434178u, -18}, {242691502620526231u, -18},
    {140548334419979696u, -15}, {114278088898624965u, -15}, {703616138760364207u, -12},
    {992391709136490419u, -12}, {981673408658468902u, -9},  {209280601027547732u, -9},
    {280983268021111969u, -6},  {227698703193312973u, -6},  {967876918990801535u, 3},
    {912381722317299843u, 3},   {686592803806196636u, 9},   {109499284685234071u, 9},
    {404009253941869977u, 17},  {686170036121177919u, 17},  {688300472611780149u, 24},
    {728060889434878625u, 24},
};
enum { N_TELLING = sizeof telling / sizeof *telling };

static int rounding = WL_ROUND_UNKNOWN;

static bool read_numbers(sqlite3 *db, double *out) {
  sqlite3_stmt *q = NULL;
  bool ok = sqlite3_prepare_v2(db, "SELECT CAST(?1 AS REAL)", -1, &q, NULL) == SQLITE_OK;
  for (int k = 0; k < N_TELLING && ok; k++) {
    char text[40];
    sqlite3_snprintf((int)sizeof text, text, "%llue%d", telling[k].digits, telling[k].exponent);
    ok = sqlite3_bind_text(q, 1, text, -1, SQLITE_TRANSIENT) == SQLITE_OK &&
         sqlite3_step(q) == SQLITE_ROW;
    if (ok) out[k] = sqlite3_column_double(q, 0);
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
  return ok;
}

static bool explains(int way, const double *numbers) {
  for (int k = 0; k < N_TELLING; k++) {
    double r = 0;
    if (!wl_decimal_round(telling[k].digits, telling[k].exponent, way, &r)) return false;
    if (wl_f64_bits(r) != wl_f64_bits(numbers[k])) return false;
  }
  return true;
}

static void find(void) {
  double numbers[N_TELLING];
  sqlite3 *db = NULL;
  if (sqlite3_open_v2(":memory:", &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      NULL) == SQLITE_OK &&
      read_numbers(db, numbers)) {
    for (int way = WL_ROUND_NEAREST; way <= WL_ROUND_MULTIPLY && !rounding; way++)
      if (explains(way, numbers)) rounding = way;
  }
  sqlite3_close(db);
}

int wl_rounding_get(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find);
  return rounding;
}
