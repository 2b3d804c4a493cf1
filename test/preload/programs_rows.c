/*
** Values of random programs (programs.h): reading rows by all functions in any order, binding.
*/
#include "programs.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

void print_bytes(const void *bytes, int n) {
  const unsigned char *b = bytes;
  if (!b) printf("null");
  for (int k = 0; b && k < n && k < 60; k++) printf("%02x", b[k]);
  printf("/%d", n);
}

static void print_text16(const void *text) {
  const uint16_t *u = text;
  if (!u) printf("null");
  for (int k = 0; u && u[k] && k < 30; k++) printf("%x.", u[k]);
}

/* ---- rows */

enum { N_ACCESSORS = 11 };

static void accessor(sqlite3_stmt *s, int i, int which) {
  const void *p;
  switch (which) {
  case 0: printf(" type=%d", sqlite3_column_type(s, i)); break;
  case 1: printf(" int=%d", sqlite3_column_int(s, i)); break;
  case 2: printf(" int64=%lld", sqlite3_column_int64(s, i)); break;
  case 3: printf(" double=%.17g", sqlite3_column_double(s, i)); break;
  case 4:
    p = sqlite3_column_text(s, i);
    printf(" text=[%s]", p ? (const char *)p : "null");
    break;
  case 5: printf(" bytes=%d", sqlite3_column_bytes(s, i)); break;
  case 6:
    p = sqlite3_column_blob(s, i);
    printf(" blob=");
    print_bytes(p, sqlite3_column_bytes(s, i));
    break;
  case 7: printf(" bytes16=%d", sqlite3_column_bytes16(s, i)); break;
  case 8:
    printf(" text16=");
    print_text16(sqlite3_column_text16(s, i));
    break;
  case 9: print_value(sqlite3_column_value(s, i)); break;
  default: { /* bytes before the pointer */
    int n = sqlite3_column_bytes(s, i);
    printf(" bytes and blob=");
    print_bytes(sqlite3_column_blob(s, i), n);
  }
  }
}

void print_value(sqlite3_value *v) {
  sqlite3_value *copy = sqlite3_value_dup(v);
  printf(" value=%d", sqlite3_value_type(copy));
  for (int n = 1 + below(3); n > 0; n--) {
    switch (below(7)) {
    case 0: printf(" int64 %lld", sqlite3_value_int64(copy)); break;
    case 1: printf(" double %.17g", sqlite3_value_double(copy)); break;
    case 2:
      printf(" blob ");
      print_bytes(sqlite3_value_blob(copy), sqlite3_value_bytes(copy));
      break;
    case 3: printf(" numeric %d", sqlite3_value_numeric_type(copy)); break;
    case 4:
      printf(" text16 ");
      print_text16(sqlite3_value_text16(copy));
      break;
    case 5: printf(" bytes16 %d", sqlite3_value_bytes16(copy)); break;
    default: {
      const char *t = (const char *)sqlite3_value_text(copy);
      printf(" text [%s]", t ? t : "null");
    }
    }
  }
  printf(" subtype %d", sqlite3_value_subtype(copy));
  sqlite3_value_free(copy);
}

/* Pointers to the texts of a row must all stay valid. */
static void print_texts(sqlite3_stmt *s, int n) {
  const char *texts[20];
  for (int i = 0; i < n && i < 20; i++) texts[i] = (const char *)sqlite3_column_text(s, i);
  for (int i = 0; i < n && i < 20; i++) printf(" [%s]", texts[i] ? texts[i] : "null");
}

void print_row(sqlite3_stmt *s) {
  int n = sqlite3_column_count(s);
  printf("row %d:", sqlite3_data_count(s));
  if (chance(20)) {
    print_texts(s, n);
  } else {
    for (int k = 1 + below(3 * n + 2); k > 0; k--) {
      int i = chance(97) ? below(n + (n == 0)) : below(n + 3) - 1;
      printf(" %d", i);
      accessor(s, i, below(N_ACCESSORS));
    }
  }
  putchar('\n');
}

uint64_t hash_row(sqlite3_stmt *s, uint64_t h) {
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    h = (h ^ (uint64_t)sqlite3_column_type(s, i)) * 0x100000001b3u;
    const unsigned char *p = sqlite3_column_blob(s, i);
    for (int k = 0, n = sqlite3_column_bytes(s, i); k < n; k++) h = (h ^ p[k]) * 0x100000001b3u;
  }
  return h;
}

/* ---- what is known about a statement */

static const char *text(const char *s) {
  return s ? s : "null";
}

void print_statement(sqlite3_stmt *s) {
  char *expanded = sqlite3_expanded_sql(s);
  int n = sqlite3_column_count(s);
  say("sql [%s] expanded [%s] readonly %d explain %d busy %d columns %d data %d run %d",
      text(sqlite3_sql(s)), text(expanded), sqlite3_stmt_readonly(s), sqlite3_stmt_isexplain(s),
      sqlite3_stmt_busy(s), n, sqlite3_data_count(s),
      w.patterns ? -1 : sqlite3_stmt_status(s, SQLITE_STMTSTATUS_RUN, 0));
  sqlite3_free(expanded);
  for (int i = 0; i < n; i++)
    printf(" %s:%s:%s.%s.%s", text(sqlite3_column_name(s, i)), text(sqlite3_column_decltype(s, i)),
           text(sqlite3_column_database_name(s, i)), text(sqlite3_column_table_name(s, i)),
           text(sqlite3_column_origin_name(s, i)));
  if (n && chance(30)) print_text16(sqlite3_column_name16(s, below(n)));
  for (int i = 1; i <= sqlite3_bind_parameter_count(s); i++)
    printf(" ?%d=%s", i, text(sqlite3_bind_parameter_name(s, i)));
  putchar('\n');
}

/* ---- parameters */

static void destroyed(void *p) {
  w.n_destroyed++;
}

static int bind_one(sqlite3_stmt *s, int i) {
  static const sqlite3_int64 integers[] = {0, 1, -1, 7, 12, 100, 3000, INT64_MAX, INT64_MIN};
  static const double reals[] = {0.0, -0.0, 7.0, 12.5, 1e300, HUGE_VAL, NAN, 9007199254740993.0};
  static const char *const texts[] = {"",
                                      "text 3",
                                      "ROW 2",
                                      "12",
                                      " 7 ",
                                      "1e3",
                                      "%1%",
                                      "\xc3\xa9\xe2\x82\xac",
                                      ("\xff\xfe"
                                       "bad"),
                                      "abc"};
  static const uint16_t wide[] = {'t', 'e', 'x', 't', ' ', '4', 0xd83d, 0xde00, 0xdc00, 0};
  const char *t = PICK(texts);
  switch (below(12)) {
  case 0:
  case 1:
  case 2: return sqlite3_bind_int64(s, i, integers[below(9)]);
  case 3: return sqlite3_bind_int(s, i, (int)integers[below(7)]);
  case 4: return sqlite3_bind_double(s, i, reals[below(8)]);
  case 5: return sqlite3_bind_text(s, i, t, chance(70) ? -1 : (int)strlen(t) / 2, SQLITE_TRANSIENT);
  case 6: return sqlite3_bind_text(s, i, t, (int)strlen(t), destroyed);
  case 7: return sqlite3_bind_text16(s, i, wide, chance(50) ? -1 : 2 * below(9), SQLITE_STATIC);
  case 8: return sqlite3_bind_blob(s, i, t, (int)strlen(t), SQLITE_STATIC);
  case 9: return chance(50) ? sqlite3_bind_zeroblob(s, i, below(20)) : sqlite3_bind_null(s, i);
  case 10:
    return w.values[i & 3] ? sqlite3_bind_value(s, i, w.values[i & 3]) : sqlite3_bind_null(s, i);
  default:
    return sqlite3_bind_text64(s, i, t, strlen(t), chance(50) ? SQLITE_STATIC : destroyed,
                               SQLITE_UTF8);
  }
}

void bind_some(connection *c, sqlite3_stmt *s) {
  int n = sqlite3_bind_parameter_count(s);
  if (chance(3)) result(c, "bind out of range", sqlite3_bind_int(s, n + 1, 1));
  if (n == 0 || chance(10)) return;
  printf("bind");
  for (int i = 1; i <= n; i++)
    if (chance(90)) printf(" %d", bind_one(s, i));
  printf(" destroyed %d\n", w.n_destroyed);
  if (chance(20)) result(c, "bind", SQLITE_OK);
}
