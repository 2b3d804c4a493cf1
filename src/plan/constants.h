/*
** What a machine takes for the pieces of work that prices are made of. For a GPU they are measured
** at its first use (exec/gpu/calibrate.h) and kept in a file; the defaults serve before that, and
** for the simulator.
**
** Invariants:
** 1. Every constant is in its range (constants.def), so it is a finite number above 0.
*/
#ifndef WL_CONSTANTS_H
#define WL_CONSTANTS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wl_constants {
#define WL_CONSTANT(name, preset, least, most, meaning) double name;
#include "plan/constants.def"
#undef WL_CONSTANT
} wl_constants;

enum { WL_CONSTANTS_TEXT = 1024 }; /* bytes for the text of all */

void wl_constants_init(wl_constants *c); /* the defaults */
/* Whether all are in their ranges. */
bool wl_constants_sane(const wl_constants *c);
/* Writes lines name=value, for a file, or with another separator. */
void wl_constants_print(const wl_constants *c, char separator, char *out, size_t n);
/* Reads such lines. False, and *c unchanged, unless there is each constant once and nothing else,
** all are in their ranges, and the text ends with a line end. */
bool wl_constants_parse(wl_constants *c, const char *text);

#endif
