/*
** SQLite's conversions between text and numbers, and its functions. Most texts become numbers
** without SQLite (text_number.h). The rest, and reals that become text, call SQLite itself, because
** no second implementation agrees with it in every digit. Each worker thread borrows a converter: a
** private in-memory database with prepared statements.
*/
#ifndef WL_CONV_H
#define WL_CONV_H

#include "base/status.h"
#include "value/ops.h"

typedef struct wl_conv wl_conv;

/* Borrows a converter from the process's pool. Opens one if none is idle. */
wl_status wl_conv_take(wl_conv **out, wl_error *err) WL_MUST;
void wl_conv_give(wl_conv *c); /* NULL is allowed */
void wl_conv_close_idle(void); /* closes all that are not borrowed */

/* Reads a numeric literal as SQLite's parser does. */
wl_status wl_conv_literal(const char *text, size_t n, wl_val *out, wl_error *err) WL_MUST;

/* SQLite's rule for the affinity of a column or CAST, based on words that the declared type
** contains: 'A' blob, 'B' text, 'C' numeric, 'D' integer, 'E' real. NULL or "" is 'A'. */
char wl_affinity_of_type(const char *decl);

/* Whether SQLite has a scalar function with that name whose result depends only on its
** arguments. */
bool wl_conv_function(const char *name);

/* The converter's calls (value/calls.h), which it owns. NULL: out of memory. */
struct wl_calls *wl_conv_calls(wl_conv *c);

#endif
