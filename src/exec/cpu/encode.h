/*
** Encodes vectors of keys as words, by a layout of value/keys.h. The words are those of
** wl_key_layout_encode(); the loops here run over many rows at once.
*/
#ifndef WL_ENCODE_H
#define WL_ENCODE_H

#include "exec/cpu/vector.h"
#include "value/keys.h"

/* Computes the words of n rows: word k of row i goes to out[k * WL_VECTOR + i]. */
void wl_encode_keys(const wl_key_layout *l, const wl_vec *keys, int n, wl_u64 *out);
/* Appends one part to its words. first: it is the first part of its word. */
void wl_encode_part(const wl_key_part *p, bool first, const wl_vec *v, int n, wl_u64 *out);
/* The same for values that may be out of range. ok[i] becomes whether all parts of row i up to this
** one have a code for its values (wl_key_holds()). If not, its word means nothing. */
void wl_encode_within(const wl_key_part *p, bool first, const wl_vec *v, int n, wl_u64 *out,
                      wl_u8 *ok);

#endif
