/*
** What the three generators (ssb.c, tpch.c, works.c) have in common: random numbers, dates,
** and the sink that rows go into.
**
** A generator is a function of the scale alone. It tells the sink of each table, then gives
** its rows value by value. SQLite and DuckDB are two sinks (store.c): neither needs a copy
** of the other's data, and the two can be filled at the same time.
**
** 1. Every table has a random sequence of its own, seeded by suite and table, so that a
**    change in one table leaves the others as they were.
** 2. Rows have a value for every column, in the order of the table's columns.
** 3. After a failure the sink swallows everything: generators need not look.
*/
#ifndef SUITES_GEN_H
#define SUITES_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- tables ---- */

/* KEY: INTEGER PRIMARY KEY in SQLite. DATE: a text there, a DATE in DuckDB. */
enum column_type { KEY, INT, REAL, TEXT, DATE, N_COLUMN_TYPES };

struct column {
  const char *name;
  enum column_type type;
};

enum { TABLE_COLUMNS = 20 };

struct table {
  const char *name;
  const char *key;                      /* of several columns; declared on request (store.h) */
  struct column columns[TABLE_COLUMNS]; /* ends with a NULL name */
};

struct sink {
  bool failed;
  char why[256];
  void (*table)(struct sink *, const struct table *);
  void (*integer)(struct sink *, int64_t);
  void (*real)(struct sink *, double);
  void (*text)(struct sink *, const char *, int n);
  void (*date)(struct sink *, int day);
  void (*row)(struct sink *);
};

static inline void put_table(struct sink *s, const struct table *t) {
  if (!s->failed) s->table(s, t);
}

static inline void put_int(struct sink *s, int64_t v) {
  if (!s->failed) s->integer(s, v);
}

static inline void put_real(struct sink *s, double v) {
  if (!s->failed) s->real(s, v);
}

static inline void put_text(struct sink *s, const char *p, int n) {
  if (!s->failed) s->text(s, p, n);
}

static inline void put_date(struct sink *s, int day) {
  if (!s->failed) s->date(s, day);
}

static inline void put_row(struct sink *s) {
  if (!s->failed) s->row(s);
}

void put_string(struct sink *s, const char *text);
void put_format(struct sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void put_money(struct sink *s, int64_t cents);

/* ---- random numbers (splitmix64) ---- */

struct random {
  uint64_t state;
};

static inline uint64_t random_bits(struct random *r) {
  uint64_t z = (r->state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/* low … high, both included */
static inline int64_t random_in(struct random *r, int64_t low, int64_t high) {
  uint64_t span = (uint64_t)(high - low) + 1;
  return low + (int64_t)((unsigned __int128)random_bits(r) * span >> 64);
}

struct random random_for(const char *suite, const char *table);

/* One of n texts, each as likely as the next. */
#define RANDOM_OF(r, list) ((list)[random_in((r), 0, (int64_t)(sizeof(list) / sizeof *(list)) - 1)])

/* Letters, digits, spaces and commas: the specifications' v-string. */
void put_vstring(struct sink *s, struct random *r, int least, int most);
/* nn-nnn-nnn-nnnn, beginning with the nation's number and ten */
void put_phone(struct sink *s, struct random *r, int nation);
/* 1 to 99 in small Roman numbers */
void roman_number(char *out, int n);

/* ---- dates: days from 1992-01-01 on ---- */

enum { N_DAYS = 2557 + 365, LAST_ORDER_DAY = 2556 - 151 }; /* to the end of 1999 */

struct day {
  int year, month, day, of_year; /* of_year: from 1 */
  int key;                       /* 19920101 */
  char text[16];                 /* 1992-01-01 */
};

/* N_DAYS of them; made once. */
const struct day *days(void);

/* ---- what both published schemas share ---- */

struct nation {
  const char *name;
  int region;
};

extern const struct nation nations[25];
extern const char *const regions[5];
extern const char *const segments[5], *const priorities[5], *const modes[7];
extern const char *const sizes[6], *const finishes[5], *const metals[5];
extern const char *const containers[5], *const wraps[8];
extern const char *const colors[92];
/* Of W, the most frequent first. */
extern const char *const first_names[72], *const last_names[72], *const short_titles[32];
extern const char *const journals[20];

/* A part's price in cents, by the formula of TPC-H. */
static inline int64_t part_price(int64_t part) {
  return 90000 + part / 10 % 20001 + 100 * (part % 1000);
}

/* Every fourth group of eight numbers: order keys are sparse. */
static inline int64_t order_key(int64_t n) {
  return n / 8 * 32 + n % 8;
}

/* The rows of a table that has n of them at scale 1. */
int64_t scaled(double scale, int64_t n);

#endif
