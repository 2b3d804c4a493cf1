/*
** Numbers in the pages of a database file: big-endian integers, varints, and the lengths of the
** types of a record.
*/
#ifndef WL_RECORD_H
#define WL_RECORD_H

#include "value/types.h"
#include <stddef.h>
#include <string.h>

static inline wl_u32 wl_be16(const wl_u8 *p) {
  return (wl_u32)p[0] << 8 | p[1];
}

static inline wl_u32 wl_be32(const wl_u8 *p) {
  wl_u32 x;
  memcpy(&x, p, sizeof x);
  return __builtin_bswap32(x);
}

static inline wl_u64 wl_be64(const wl_u8 *p) {
  wl_u64 x;
  memcpy(&x, p, sizeof x);
  return __builtin_bswap64(x);
}

/* Reads a varint of one to nine bytes. Returns the byte after it, or NULL if it does not end before
** end. */
static inline const wl_u8 *wl_varint_long(const wl_u8 *p, const wl_u8 *end, wl_u64 *out) {
  wl_u64 x = 0;
  for (int i = 0; i < 8; i++, p++) {
    if (p >= end) return NULL;
    x = x << 7 | (*p & 0x7f);
    if (*p < 0x80) {
      *out = x;
      return p + 1;
    }
  }
  if (p >= end) return NULL;
  *out = x << 8 | *p;
  return p + 1;
}

static inline const wl_u8 *wl_varint(const wl_u8 *p, const wl_u8 *end, wl_u64 *out) {
  if (p < end && *p < 0x80) {
    *out = *p;
    return p + 1;
  }
  return wl_varint_long(p, end, out);
}

/*
** A varint of at most eight bytes as a word that has the bytes as they are. If no varint is longer
** than it must be, these words have the order of the values.
*/
static inline wl_u64 wl_varint_value(wl_u64 raw) {
  wl_u64 x = raw & 0x7f7f7f7f7f7f7f7f;
  x = (x & 0x007f007f007f007f) | (x & 0x7f007f007f007f00) >> 1;
  x = (x & 0x00003fff00003fff) | (x & 0x3fff00003fff0000) >> 2;
  return (x & 0x000000000fffffff) | (x & 0x0fffffff00000000) >> 4;
}

/* The word of a value below 2^56. */
static inline wl_u64 wl_varint_raw(wl_u64 x) {
  wl_u64 raw = x & 0x7f;
  for (int at = 8; x >>= 7; at += 8) raw |= ((x & 0x7f) | 0x80) << at;
  return raw;
}

/* The lengths of the types below 12. Types 10 and 11 are never stored. */
static const wl_u8 wl_record_lengths[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 255, 255};

/* The length of a value of a type. */
static inline wl_u64 wl_record_length(wl_u64 type) {
  return type >= 12 ? (type - 12) >> 1 : wl_record_lengths[type];
}

#endif
