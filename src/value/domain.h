/*
** Domains: what a value can be, judging by the data, and the register type that holds such values.
*/
#ifndef WL_DOMAIN_H
#define WL_DOMAIN_H

#include "value/kinds.h"
#include "value/value.h"
#include <stdbool.h>

typedef struct wl_reg {
  wl_u8 type;
  bool nullable; /* never set for truth registers, which hold NULL as WL_UNKNOWN */
} wl_reg;

/* What a value can be, judging by the data: which types occur, and in which range. */
typedef struct wl_domain {
  wl_u8 mask;      /* 1 << WL_T_ for each type that may occur */
  wl_i64 lo, hi;   /* range of the integers */
  double flo, fhi; /* range of the reals */
} wl_domain;

#define WL_M(t) (1u << (t))

wl_domain wl_domain_of(wl_val v);
wl_domain wl_domain_int(wl_i64 lo, wl_i64 hi, bool nullable);
wl_domain wl_domain_real(double lo, double hi, bool nullable);
wl_domain wl_domain_any(unsigned mask); /* full ranges of the types in mask */
/* The register type for such values. This is the only rule for register types. */
wl_reg wl_domain_reg(wl_domain d);
/* Whether all values fit one type, and which (NULL: there are only NULLs). Integers beside reals
** are reals, if each is exact as a real. */
bool wl_domain_one_type(const wl_domain *d, wl_u8 *type);
wl_domain wl_domain_union(wl_domain a, wl_domain b);
wl_domain wl_domain_with_null(wl_domain d, bool null); /* the same, with or without NULL */
/* The types of values that are stored as integer codes of texts. mask: those of the codes. */
static inline wl_u8 wl_mask_of_coded(unsigned mask) {
  return (wl_u8)(mask & WL_M(WL_T_INT) ? (mask & ~WL_M(WL_T_INT)) | WL_M(WL_T_TEXT) : mask);
}
wl_u64 wl_domain_magnitude(const wl_domain *d); /* the largest |integer| */

#endif
