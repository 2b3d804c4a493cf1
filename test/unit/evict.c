/*
** The rule of eviction: of the six least recently used, the least used; repeated until there
** is room. Checked by hand and against a slow reading of the rule over random caches.
*/
#include "column/evict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed;
static void check(int ok, const char *what) {
  printf("%s evict: %s\n", ok ? "ok" : "not ok", what);
  failed |= !ok;
}

typedef struct item {
  long long last_use, uses;
} item;

static item *choose(item *items, int n) {
  wl_evict e = {0};
  for (int k = 0; k < n; k++) wl_evict_offer(&e, &items[k], items[k].last_use, items[k].uses);
  return wl_evict_choice(&e);
}

/* The same by sorting everything. */
static int older(const void *a, const void *b) {
  const item *x = *(item *const *)a, *y = *(item *const *)b;
  return x->last_use < y->last_use ? -1 : x->last_use > y->last_use;
}
static item *choose_slowly(item *items, int n) {
  item *order[64];
  for (int k = 0; k < n; k++) order[k] = &items[k];
  qsort(order, (size_t)n, sizeof *order, older);
  item *best = order[0];
  for (int k = 1; k < n && k < 6; k++)
    if (order[k]->uses < best->uses) best = order[k];
  return best;
}

int main(void) {
  check(choose(NULL, 0) == NULL, "nothing to choose from");
  item one[] = {{5, 9}};
  check(choose(one, 1) == one, "one is the one");
  item some[] = {{1, 50}, {2, 40}, {3, 3}, {4, 60}, {5, 70}, {6, 80}, {7, 1}, {8, 1}};
  check(choose(some, 8) == &some[2], "the least used of six, not of all");
  some[0].last_use = 9; /* now the seventh is in the pool */
  check(choose(some, 8) == &some[6], "recent use takes a column out of the pool");
  item ties[] = {{4, 2}, {3, 2}, {9, 2}};
  check(choose(ties, 3) == &ties[1], "of equally used ones the older");
  unsigned seed = 1;
  int same = 1;
  for (int round = 0; round < 20000 && same; round++) {
    item items[64];
    seed = seed * 1103515245u + 12345u;
    int n = 1 + (int)(seed >> 16) % 40;
    for (int k = 0; k < n; k++) {
      seed = seed * 1103515245u + 12345u;
      items[k].uses = (long long)(seed >> 16) % 10;
      items[k].last_use = (k * 37LL) % 64; /* all different */
    }
    same = choose(items, n) == choose_slowly(items, n);
  }
  check(same, "20,000 random caches as by sorting");
  return failed;
}
