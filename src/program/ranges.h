/*
** What an operation can yield, given what its operands can be: interval arithmetic over
** integers and reals, so that the compiler may drop overflow and NULL checks that cannot fire.
*/
#ifndef WL_RANGES_H
#define WL_RANGES_H

#include "sql/ast.h"
#include "value/domain.h"

/* The integers of a op b, for + - * / % & |. False if the result may leave 64 bits. */
bool wl_domain_arith_int(wl_op op, const wl_domain *a, const wl_domain *b, wl_i64 *lo, wl_i64 *hi);
/* The reals of a op b for + - *, anything for / and %; *nan: a NaN, so NULL, is possible. */
void wl_domain_arith_real(wl_op op, const wl_domain *a, const wl_domain *b, double *lo, double *hi,
                          bool *nan);
/* Numbers of both kinds under + - *: what the integers and the reals of the result can be. Both
** kinds stay in the mask, for that is the register's type; a kind that cannot come has an
** empty range. */
void wl_domain_arith_mixed(wl_op op, const wl_domain *a, const wl_domain *b, bool nullable,
                           wl_domain *out);

#endif
