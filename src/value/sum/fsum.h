/*
** The exact sum of doubles, rounded once. The result has the same bits in any order, on any
** machine.
**
** Layout: a fixed-point number with 70 digits of 32 bits. Digit 0 has weight 2^-1074. Each digit is
** in a signed 64-bit word, so that carries can be delayed.
**
** Invariants:
** 1. The value is exactly the sum of word[k] * 2^(32k - 1074), whatever was added.
** 2. No word is further than 2^62 from zero. Carries are propagated before that can happen.
*/
#ifndef WL_FSUM_H
#define WL_FSUM_H

#include "value/types.h"

enum { WL_FSUM_WORDS = 70 };

typedef struct wl_fsum {
  wl_i64 word[WL_FSUM_WORDS];
  wl_i64 n_added; /* values added since carries were last propagated */
  wl_i64 n_plus_inf, n_minus_inf;
  int anchor; /* exponent that wl_fsum_vector works around; 0: not chosen yet */
} wl_fsum;

void wl_fsum_add(wl_fsum *s, double x);               /* one value, not NaN */
void wl_fsum_add_scaled(wl_fsum *s, wl_i64 k, int e); /* k * 2^e, with no bit below 2^-1074 */
void wl_fsum_add_i128(wl_fsum *s, __int128 v);
void wl_fsum_vector(wl_fsum *s, const double *x, int n); /* many values, fast */
void wl_fsum_merge(wl_fsum *s, const wl_fsum *from);
double wl_fsum_round(const wl_fsum *s); /* NaN if infinities of both signs were added */

/* Three digits of 40 bits around an anchor e hold |x| < 2^(e+40) down to 2^(e-80). */
enum { WL_FSUM_DIGIT = 40, WL_FSUM_MIN_ANCHOR = -850, WL_FSUM_MAX_ANCHOR = 850 };
int wl_fsum_anchor(double largest); /* the anchor for values up to a few times largest */
/* The same for values below bound, which is infinity if nothing is known. The result can be used
** directly. */
int wl_fsum_anchor_within(double bound);

#endif
