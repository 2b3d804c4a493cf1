/*
** What is known about the texts of a connection. Each is one word, so that threads need no lock:
**
**     63 …                             16 15 … 8   7 … 4   3 … 0
**     upper bits of the text's hash       skip     left    verdict
**
** left: how often in a row libwarplite has left it to SQLite, at most 3.
** skip: executions of a costly text that go to SQLite without a question.
*/
#include "preload/preload.h"

enum { SKIP = 8, LEFT = 4, MOST_LEFT = 3 };
#define HASH_BITS (~(uint64_t)0xffff)

static _Atomic uint64_t *place(wl_connection *c, uint64_t hash) {
  return &c->verdicts[hash % WL_VERDICTS];
}

/* The word without the hash; 0 if the place belongs to another text. */
static unsigned load(wl_connection *c, uint64_t hash) {
  uint64_t word = atomic_load_explicit(place(c, hash), memory_order_relaxed);
  return (word ^ hash) & HASH_BITS ? 0 : (unsigned)(word & 0xffff);
}

static void store(wl_connection *c, uint64_t hash, unsigned verdict, unsigned left, unsigned skip) {
  uint64_t word = (hash & HASH_BITS) | verdict | left << LEFT | skip << SKIP;
  atomic_store_explicit(place(c, hash), word, memory_order_relaxed);
}

wl_verdict wl_verdict_get(wl_connection *c, uint64_t hash) {
  return (wl_verdict)(load(c, hash) & 15);
}

void wl_verdict_set(wl_connection *c, uint64_t hash, wl_verdict v) {
  store(c, hash, v, 0, 0);
}

void wl_verdict_left(wl_connection *c, uint64_t hash) {
  unsigned word = load(c, hash), left = word >> LEFT & 15;
  if (left < MOST_LEFT) left++;
  store(c, hash, WL_COSTLY_TEXT, left, (1u << left) - 1);
}

void wl_verdict_ran(wl_connection *c, uint64_t hash) {
  if (load(c, hash) >> LEFT) store(c, hash, WL_COSTLY_TEXT, 0, 0);
}

bool wl_verdict_asks(wl_connection *c, uint64_t hash) {
  unsigned word = load(c, hash), skip = word >> SKIP;
  if (!skip) return true;
  store(c, hash, word & 15, word >> LEFT & 15, skip - 1);
  return false;
}
