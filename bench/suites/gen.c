/*
** Random numbers, dates and small texts for the generators; see gen.h.
*/
#include "gen.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct random random_for(const char *suite, const char *table) {
  uint64_t h = 0xcbf29ce484222325ULL;
  for (const char *p = suite; *p; p++) h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
  h = (h ^ '/') * 0x100000001b3ULL;
  for (const char *p = table; *p; p++) h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
  return (struct random){h};
}

int64_t scaled(double scale, int64_t n) {
  int64_t rows = llround(scale * (double)n);
  return rows < 1 ? 1 : rows;
}

void put_string(struct sink *s, const char *text) {
  put_text(s, text, (int)strlen(text));
}

void put_format(struct sink *s, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  put_text(s, text, n < (int)sizeof text ? n : (int)sizeof text - 1);
}

/* The nearest double, which is also what the decimal text of it means. */
void put_money(struct sink *s, int64_t cents) {
  put_real(s, (double)cents / 100.0);
}

void put_vstring(struct sink *s, struct random *r, int least, int most) {
  static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ";
  char text[64];
  int n = (int)random_in(r, least, most);
  uint64_t bits = 0;
  for (int i = 0; i < n; i++, bits >>= 6) {
    if (i % 10 == 0) bits = random_bits(r);
    text[i] = letters[bits & 63];
  }
  put_text(s, text, n);
}

void put_phone(struct sink *s, struct random *r, int nation) {
  int a = (int)random_in(r, 100, 999), b = (int)random_in(r, 100, 999);
  put_format(s, "%d-%d-%d-%d", nation + 10, a, b, (int)random_in(r, 1000, 9999));
}

void roman_number(char *out, int n) {
  static const char *const tens[] = {"", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx", "xc"};
  static const char *const ones[] = {"", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"};
  sprintf(out, "%s%s", tens[n / 10 % 10], ones[n % 10]);
}

static struct day all_days[N_DAYS];

static void make_days(void) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  struct day d = {1992, 1, 1, 1, 0, ""};
  for (int i = 0; i < N_DAYS; i++) {
    d.key = d.year * 10000 + d.month * 100 + d.day;
    snprintf(d.text, sizeof d.text, "%04d-%02d-%02d", d.year, d.month, d.day);
    all_days[i] = d;
    int leap = d.year % 4 == 0 && d.month == 2;
    d.of_year++;
    if (++d.day <= lengths[d.month - 1] + leap) continue;
    d.day = 1;
    if (++d.month <= 12) continue;
    d.month = d.of_year = 1;
    d.year++;
  }
}

/* Two generators may run at the same time. */
const struct day *days(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_days);
  return all_days;
}
