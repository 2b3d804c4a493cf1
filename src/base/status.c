/*
** Status codes and messages; see status.h.
*/
#include "base/status.h"
#include <stdio.h>

/* The arguments may include the text of *err itself, so the message is made in another buffer. */
static wl_status set(wl_error *err, wl_status code, const char *fmt, va_list ap) {
  if (err) {
    wl_error made = {.code = code};
    vsnprintf(made.text, sizeof made.text, fmt, ap);
    *err = made;
  }
  return code;
}

wl_status wl_fail(wl_error *err, wl_status code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  set(err, code, fmt, ap);
  va_end(ap);
  return code;
}

wl_status wl_not_taken(wl_error *err, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  set(err, WL_NOT_TAKEN, fmt, ap);
  va_end(ap);
  return WL_NOT_TAKEN;
}

wl_status wl_nomem(wl_error *err) {
  return wl_fail(err, WL_NOMEM, "out of memory");
}
