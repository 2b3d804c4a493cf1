#ifndef WL_CLOCK_H
#define WL_CLOCK_H
#include <time.h>

/* Nanoseconds since some fixed point in time. */
static inline double wl_clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
#endif
