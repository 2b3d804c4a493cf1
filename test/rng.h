/*
** Random numbers for tests (splitmix64): the same seed gives the same test everywhere.
*/
#ifndef TEST_RNG_H
#define TEST_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rng {
  uint64_t s;
} rng;

static inline uint64_t rng_next(rng *r) {
  uint64_t z = r->s += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* 0 … n-1 */
static inline int rng_below(rng *r, int n) {
  return (int)(rng_next(r) % (uint64_t)n);
}

static inline bool rng_chance(rng *r, int percent) {
  return rng_below(r, 100) < percent;
}

#endif
