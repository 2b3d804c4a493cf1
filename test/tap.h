/*
** What every test program says: one line a check, `ok NAME`, `not ok NAME - why` or
** `skip NAME - why`, counted by test/run. tap_done() gives the exit status.
**
** Invariants:
** 1. A program that stops half-way shows it: test/run counts a bad exit status without
**    a `not ok` line as a failure of its own.
** 2. Lines may be printed by several threads; each comes out whole.
*/
#ifndef TEST_TAP_H
#define TEST_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Built with a sanitizer: the same checks over less data. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif

/* Built with the thread sanitizer. */
#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#endif
#endif
#ifndef TEST_TSAN
#define TEST_TSAN 0
#endif

static int tap_n_ok, tap_n_bad, tap_n_skip;

/* A name on one line, whatever SQL it quotes. */
static inline void tap_name(const char *verdict, const char *name) {
  printf("%s ", verdict);
  for (; *name; name++) putchar((unsigned char)*name < ' ' ? ' ' : *name);
}

static inline bool tap_bad(const char *name, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool tap_bad(const char *name, const char *fmt, ...) {
  va_list ap;
  flockfile(stdout);
  tap_name("not ok", name);
  printf(" - ");
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  tap_n_bad++;
  fflush(stdout);
  funlockfile(stdout);
  return false;
}

static inline bool tap_ok(const char *name) {
  flockfile(stdout);
  tap_name("ok", name);
  putchar('\n');
  tap_n_ok++;
  funlockfile(stdout);
  return true;
}

static inline void tap_skip(const char *name, const char *why) {
  flockfile(stdout);
  printf("skip %s - %s\n", name, why);
  tap_n_skip++;
  funlockfile(stdout);
}

/* One check by a condition; the condition's text is the reason when it fails. */
#define CHECK(name, cond)                                                                          \
  ((cond) ? tap_ok(name) : tap_bad((name), "%s:%d: %s", __FILE__, __LINE__, #cond))

static inline int tap_done(void) {
  fflush(stdout);
  return tap_n_bad ? 1 : 0;
}

#endif
