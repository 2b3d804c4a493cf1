/*
** Eviction rules compared on a simulated cache, after the simulation in the 2014 paper on
** SQLite with a GPU: the share of requests, and of bytes asked for, that the cache can answer.
**
**     cachesim [-n REQUESTS] [-tables N] [-share PERCENT] [-skew X] [-drift N] [-spread X]
**              [-rounds N] [-seed S]
**
** The workload of the paper's table is not known; this is ours: N tables with sizes spread evenly
** on a logarithmic scale from 1 to `spread`, asked for by Zipf's law with exponent X in an order of
** popularity that has nothing to do with size; every `drift` requests two tables change places.
** The cache holds PERCENT of all bytes; figures are means over `rounds` workloads. A pool has six
** members, as in column/evict.h. The defaults are those of some 150 tried (by closeness to the
** paper's levels) whose popularity drifts; others order the rules differently.
*/
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POOL = 6, MOST_TABLES = 4096 };

typedef struct table {
  double size;
  long uses, last_use;
  int cached;
} table;

static table tables[MOST_TABLES];
static int n_tables = 30;
static unsigned long long state;

static double uniform(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) * 0x1p-53;
}

/* Which of two goes first, as a difference of keys: the smaller. */
typedef double (*key)(const table *t);
static double by_chance(const table *t) {
  (void)t;
  return uniform();
}
static double by_age(const table *t) {
  return (double)t->last_use;
}
static double by_uses(const table *t) {
  return (double)t->uses;
}
static double by_size(const table *t) {
  return -t->size;
}

/* The six first by `pool`, and of these the first by `pick`; without a pool, of all. */
static table *victim(key pool, key pick) {
  table *chosen[POOL];
  double keys[POOL];
  int n = 0;
  table *best = NULL;
  double least = 0;
  for (int i = 0; i < n_tables; i++) {
    table *t = &tables[i];
    if (!t->cached) continue;
    if (!pool) {
      double k = pick(t);
      if (!best || k < least) best = t, least = k;
      continue;
    }
    double k = pool(t);
    if (n == POOL && k >= keys[n - 1]) continue;
    int at = n < POOL ? n++ : n - 1;
    for (; at > 0 && keys[at - 1] > k; at--) keys[at] = keys[at - 1], chosen[at] = chosen[at - 1];
    keys[at] = k;
    chosen[at] = t;
  }
  for (int k = 0; k < n; k++)
    if (!best || pick(chosen[k]) < least) best = chosen[k], least = pick(chosen[k]);
  return best;
}

int main(int argc, char **argv) {
  long n_requests = 40000, drift = 1000, rounds = 20;
  double share = 40, skew = 1.3, spread = 20;
  unsigned long long seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "-n")) n_requests = atol(argv[i + 1]);
    if (!strcmp(argv[i], "-tables")) n_tables = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "-share")) share = atof(argv[i + 1]);
    if (!strcmp(argv[i], "-skew")) skew = atof(argv[i + 1]);
    if (!strcmp(argv[i], "-drift")) drift = atol(argv[i + 1]);
    if (!strcmp(argv[i], "-rounds")) rounds = atol(argv[i + 1]);
    if (!strcmp(argv[i], "-spread")) spread = atof(argv[i + 1]);
    if (!strcmp(argv[i], "-seed")) seed = (unsigned long long)atoll(argv[i + 1]);
  }
  if (n_tables < POOL || n_tables > MOST_TABLES || n_requests < 1 || drift < 1 || rounds < 1 ||
      argc % 2 == 0) {
    fprintf(stderr,
            "usage: cachesim [-n REQUESTS] [-tables 6..%d] [-share PERCENT] [-skew X] "
            "[-drift N] [-spread X] [-rounds N] [-seed S]\n",
            MOST_TABLES);
    return 2;
  }
  static const struct {
    const char *name;
    key pool, pick;
    double paper_count, paper_bytes;
  } rules[] = {{"random", NULL, by_chance, 79.3, 79.7},
               {"least recently used (LRU)", NULL, by_age, 79.9, 80.6},
               {"least used", NULL, by_uses, 78.6, 83.1},
               {"biggest first", NULL, by_size, 84.4, 81.0},
               {"biggest of least used", by_uses, by_size, 82.9, 77.2},
               {"least used of LRU (ours)", by_age, by_uses, 82.4, 84.3},
               {"LRU of least used", by_uses, by_age, 78.7, 79.2},
               {"biggest of LRU", by_age, by_size, 82.8, 76.8}};
  static double sum[MOST_TABLES];
  static int order[MOST_TABLES];
  printf("%-28s %8s %8s   %8s %8s\n", "rule", "hits %", "bytes %", "paper", "paper");
  for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
    double count = 0, bytes = 0;
    for (int round = 0; round < rounds; round++) {
      double room = 0, total = 0, asked = 0, hit_bytes = 0;
      long hits = 0;
      state = 0x9e3779b97f4a7c15ULL * (seed + 1 + (unsigned)round);
      for (int i = 0; i < n_tables; i++) {
        tables[i] = (table){.size = pow(spread, uniform())};
        room += tables[i].size * share / 100;
        order[i] = i;
        sum[i] = total += pow(i + 1, -skew);
      }
      unsigned long long requests = state; /* every rule sees the same ones */
      for (long now = 1; now <= n_requests; now++) {
        state = requests;
        double x = uniform() * total;
        int rank = 0;
        while (rank < n_tables - 1 && sum[rank] < x) rank++;
        if (now % drift == 0) {
          int a = (int)(uniform() * n_tables), b = (int)(uniform() * n_tables), o = order[a];
          order[a] = order[b];
          order[b] = o;
        }
        requests = state;
        table *t = &tables[order[rank]];
        asked += t->size;
        t->uses++;
        t->last_use = now;
        if (t->cached) {
          hits++;
          hit_bytes += t->size;
          continue;
        }
        state ^= 0x5851f42d4c957f2dULL; /* chance of a rule's own */
        while (t->size > room) {
          table *v = victim(rules[r].pool, rules[r].pick);
          if (!v) break;
          v->cached = 0;
          room += v->size;
        }
        if (t->size > room) continue;
        t->cached = 1;
        room -= t->size;
      }
      count += 100.0 * (double)hits / (double)n_requests / rounds;
      bytes += 100.0 * hit_bytes / asked / rounds;
    }
    printf("%-28s %8.1f %8.1f   %8.1f %8.1f\n", rules[r].name, count, bytes, rules[r].paper_count,
           rules[r].paper_bytes);
  }
  return 0;
}
