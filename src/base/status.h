/*
** Status codes and error messages, for every layer.
**
** Invariants:
** 1. A wl_status is a SQLite result code, or WL_NOT_TAKEN, which never leaves the
**    library: it means "SQLite must run this", with the reason as the message.
** 2. The message is set once, where the error is found, in words for the user.
*/
#ifndef WL_STATUS_H
#define WL_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum wl_status {
  WL_OK = 0,
  WL_ERROR = 1,
  WL_BUSY = 5,
  WL_NOMEM = 7,
  WL_INTERRUPT = 9,
  WL_CORRUPT = 11,
  WL_FULL = 13,
  WL_TOOBIG = 18,
  WL_MISUSE = 21,
  WL_NOT_TAKEN = 10001
} wl_status;

#define WL_MUST __attribute__((warn_unused_result))

typedef struct wl_error {
  wl_status code;
  char text[480];
} wl_error;

/* Sets the message and code of err (which may be NULL) and returns the code. */
wl_status wl_fail(wl_error *err, wl_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Like wl_fail with WL_NOT_TAKEN. The message says why SQLite must run the statement. */
wl_status wl_not_taken(wl_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

wl_status wl_nomem(wl_error *err);

#endif
