/*
** SQLite's own conversions between text and numbers, and its functions, asked of SQLite: no
** second implementation agrees with it in every last digit. Each worker thread borrows a
** converter, a private memory database with prepared statements.
*/
#ifndef WL_CONV_H
#define WL_CONV_H

#include "base/status.h"
#include "value/ops.h"

typedef struct wl_conv wl_conv;

/* Borrows a converter from the process's pool (opening one if none is idle). */
wl_status wl_conv_take(wl_conv **out, wl_error *err) WL_MUST;
void wl_conv_give(wl_conv *c); /* NULL is fine */

/* A numeric literal as SQLite's parser reads it. */
wl_status wl_conv_literal(const char *text, size_t n, wl_val *out, wl_error *err) WL_MUST;

/* Whether SQLite has a scalar function of that name that depends on its arguments alone. */
bool wl_conv_function(const char *name);

/* The converter's calls (value/calls.h); NULL: out of memory. It keeps them. */
struct wl_calls *wl_conv_calls(wl_conv *c);

#endif
