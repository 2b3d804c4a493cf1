/*
** See constants.h. Numbers have six decimals and are read and written without the C library's
** functions, because the application may have set a locale with another decimal point.
*/
#include "plan/constants.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct constant {
  const char *name;
  size_t offset;
  double preset, least, most;
} constant;

static const constant list[] = {
#define WL_CONSTANT(name, preset, least, most, meaning)                                            \
  {#name, offsetof(wl_constants, name), preset, least, most},
#include "plan/constants.def"
#undef WL_CONSTANT
};
enum { N_CONSTANTS = sizeof list / sizeof *list };

static double *value_of(wl_constants *c, const constant *k) {
  return (double *)(void *)((char *)c + k->offset);
}
static double value_in(const wl_constants *c, const constant *k) {
  return *(const double *)(const void *)((const char *)c + k->offset);
}

void wl_constants_init(wl_constants *c) {
  for (int k = 0; k < N_CONSTANTS; k++) *value_of(c, &list[k]) = list[k].preset;
}

static bool in_range(const constant *k, double v) {
  return v >= k->least && v <= k->most; /* false for NaN */
}

bool wl_constants_sane(const wl_constants *c) {
  for (int k = 0; k < N_CONSTANTS; k++)
    if (!in_range(&list[k], value_in(c, &list[k]))) return false;
  return true;
}

void wl_constants_print(const wl_constants *c, char separator, char *out, size_t n) {
  size_t at = 0;
  if (n) *out = 0;
  for (int k = 0; k < N_CONSTANTS && at < n; k++) {
    int64_t millionths = (int64_t)(value_in(c, &list[k]) * 1e6 + 0.5);
    int wrote =
        snprintf(out + at, n - at, "%s=%lld.%06lld%c", list[k].name,
                 (long long)(millionths / 1000000), (long long)(millionths % 1000000), separator);
    at += wrote > 0 ? (size_t)wrote : 0;
  }
  if (separator != '\n' && at && at < n) out[at - 1] = 0; /* between them, not after the last */
}

/* Reads digits with at most one point up to the end of the line. */
static bool number(const char *s, size_t n, double *out) {
  double v = 0, place = 0;
  bool digits = false;
  if (n > 24) return false;
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '.' && place == 0) {
      place = 1;
    } else if (s[i] >= '0' && s[i] <= '9') {
      v = v * 10 + (s[i] - '0');
      place *= 10;
      digits = true;
    } else {
      return false;
    }
  }
  *out = place > 0 ? v / place : v;
  return digits;
}

static const constant *named(const char *s, size_t n) {
  for (int k = 0; k < N_CONSTANTS; k++)
    if (strlen(list[k].name) == n && memcmp(list[k].name, s, n) == 0) return &list[k];
  return NULL;
}

bool wl_constants_parse(wl_constants *c, const char *text) {
  wl_constants read;
  bool seen[N_CONSTANTS] = {false};
  int n_seen = 0;
  memset(&read, 0, sizeof read);
  while (*text) {
    size_t n = strcspn(text, "\n"), n_name = strcspn(text, "=\n");
    if (text[n] != '\n' || n_name >= n) return false;
    const constant *k = named(text, n_name);
    if (!k || seen[k - list]) return false;
    if (!number(text + n_name + 1, n - n_name - 1, value_of(&read, k))) return false;
    if (!in_range(k, value_in(&read, k))) return false;
    seen[k - list] = true;
    n_seen++;
    text += n + 1;
  }
  if (n_seen < N_CONSTANTS) return false;
  *c = read;
  return true;
}
