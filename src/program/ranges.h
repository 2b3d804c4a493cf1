/*
** Interval arithmetic over integers and reals: what an operation can return, given what its
** operands can be. The compiler uses it to omit overflow and NULL checks that can never fail.
*/
#ifndef WL_RANGES_H
#define WL_RANGES_H

#include "sql/ast.h"
#include "value/domain.h"

/* The integer range of a op b, for + - * / % & |. Returns false if the result may leave 64 bits. */
bool wl_domain_arith_int(wl_op op, const wl_domain *a, const wl_domain *b, wl_i64 *lo, wl_i64 *hi);
/* The real range of a op b for + - *, everything for / and %. *nan: the result may be NaN, hence
** NULL. */
void wl_domain_arith_real(wl_op op, const wl_domain *a, const wl_domain *b, double *lo, double *hi,
                          bool *nan);
/* Integers and reals mixed, under + - *: the ranges of the integer and the real results. The mask
** keeps both types, because it determines the register's type. A type that cannot occur has an
** empty range. */
void wl_domain_arith_mixed(wl_op op, const wl_domain *a, const wl_domain *b, bool nullable,
                           wl_domain *out);

#endif
