/*
** MD5 (RFC 1321), which the recorded results of sqllogictest files are hashed with.
*/
#ifndef TEST_MD5_H
#define TEST_MD5_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <math.h>

typedef struct md5_state {
  uint32_t h[4];
  uint64_t n_bytes;
  unsigned char block[64];
} md5_state;

static inline void md5_init(md5_state *m) {
  static const uint32_t h0[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
  memcpy(m->h, h0, sizeof h0);
  m->n_bytes = 0;
}

static inline void md5_block(md5_state *m) {
  static const unsigned char turn[4][4] = {
      {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  static uint32_t k[64]; /* floor(2^32 |sin(i+1)|), as the RFC defines its table */
  if (!k[63])
    for (int i = 0; i < 64; i++) k[i] = (uint32_t)(int64_t)floor(fabs(sin(i + 1.0)) * 4294967296.0);
  uint32_t w[16], a = m->h[0], b = m->h[1], c = m->h[2], d = m->h[3];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)m->block[4 * i] | (uint32_t)m->block[4 * i + 1] << 8 |
           (uint32_t)m->block[4 * i + 2] << 16 | (uint32_t)m->block[4 * i + 3] << 24;
  for (int i = 0; i < 64; i++) {
    uint32_t f, t;
    int g;
    switch (i / 16) {
    case 0: f = (b & c) | (~b & d), g = i; break;
    case 1: f = (d & b) | (~d & c), g = (5 * i + 1) % 16; break;
    case 2: f = b ^ c ^ d, g = (3 * i + 5) % 16; break;
    default: f = c ^ (b | ~d), g = 7 * i % 16; break;
    }
    f += a + k[i] + w[g];
    t = turn[i / 16][i % 4];
    a = d, d = c, c = b;
    b += f << t | f >> (32 - t);
  }
  m->h[0] += a, m->h[1] += b, m->h[2] += c, m->h[3] += d;
}

static inline void md5_add(md5_state *m, const char *s, size_t n) {
  while (n--) {
    m->block[m->n_bytes++ % 64] = (unsigned char)*s++;
    if (m->n_bytes % 64 == 0) md5_block(m);
  }
}

static inline void md5_hex(md5_state *m, char hex[33]) {
  uint64_t bits = m->n_bytes * 8;
  char len[8];
  md5_add(m, "\x80", 1);
  while (m->n_bytes % 64 != 56) md5_add(m, "", 1);
  for (int i = 0; i < 8; i++) len[i] = (char)(bits >> (8 * i));
  md5_add(m, len, 8);
  for (int i = 0; i < 16; i++)
    snprintf(hex + 2 * i, 3, "%02x", (m->h[i / 4] >> (8 * (i % 4))) & 255);
}

#endif
