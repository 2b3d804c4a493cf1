/* Where the search for a key word starts in a hashed lookup. All machines use this function. */
#ifndef WL_KEY_HASH_H
#define WL_KEY_HASH_H

#include "value/types.h"

/* Spreads neighbouring keys. The low bits, which choose the slot, depend on all bits. */
WL_FN wl_u64 wl_key_hash(wl_u64 word) {
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93ULL;
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93ULL;
  return word ^ word >> 32;
}

#endif
