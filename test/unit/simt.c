/*
** Tests of the simulated GPU: right kernels give the right answer under every seed, wrong
** ones are shown to be wrong under some, and a kernel that can never end is an error.
*/
#include "simt_kernels.h"
#include "base/mem.h"
#include "exec/sim/fiber.h"
#include "exec/sim/launch.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef WL_FIBER_TSAN
#define SEEDS 10 /* there a switch costs microseconds, more with more fibers */
#define SIZES 4
#else
#define SEEDS 50
#define SIZES 5
#endif
#define N_MAX 65536

typedef void kernel_fn(const void *args);

/* What one OS thread needs to launch the kernels above. */
typedef struct bench {
  wl_u32 in[N_MAX];
  wl_u64 out[N_MAX];
  wl_u64 state[4096];
  wl_u32 count[16];
  wl_kargs args;
  wl_error err;
} bench;

static int n_failed;

static void ok(bool good, const char *what) {
  printf("%s %s\n", good ? "ok" : "not ok", what);
  if (!good) n_failed++;
}

static bench *open_bench(void) {
  bench *b = (bench *)calloc(1, sizeof *b);
  if (!b) abort();
  for (wl_u32 i = 0; i < N_MAX; i++) b->in[i] = (i * 2654435761u) >> 12;
  return b;
}

static wl_status launch(bench *b, kernel_fn *k, unsigned grid, unsigned block, size_t shared,
                        unsigned seed, wl_u32 n) {
  memset(b->out, 0xee, sizeof b->out);
  memset(b->state, 0, sizeof b->state);
  memset(b->count, 0, sizeof b->count);
  b->err.text[0] = 0;
  wl_kargs args = {b->in, n, b->count, b->state, b->out};
  b->args = args;
  wl_status rc = wl_sim_launch(k, &b->args, grid, block, shared, seed, &b->err);
  return rc;
}

/* ---- kernels that are right */

static bool block_sum_is_right(bench *b, unsigned block, unsigned seed) {
  unsigned grid = 7, n = grid * block - 5;
  if (launch(b, k_block_sum, grid, block, block * 8, seed, n) != WL_OK) return false;
  for (unsigned g = 0; g < grid; g++) {
    wl_u64 sum = 0;
    for (unsigned i = g * block; i < (g + 1) * block && i < n; i++) sum += b->in[i];
    if (b->out[g] != sum) return false;
  }
  return true;
}

static wl_u64 expected_warp_op(int op, wl_u32 id, wl_u32 bdim, wl_u32 grid) {
  wl_u32 lane = id & 31, base = id - lane;
#define BIG(l)   (((wl_u64)(base + (l)) << 32) | ((base + (l)) * 7u + 1u))
#define SMALL(l) ((base + (l)) * 3u + 1u)
  switch (op) {
  case 0: return 0x49249249u;
  case 1: return 1;
  case 2: return 0;
  case 3: return 1;
  case 4: return 0;
  case 5: return SMALL(31 - lane);
  case 6: return BIG((lane + 1) % 32);
  case 7: return SMALL(lane < 2 ? lane : lane - 2);
  case 8: return BIG(lane < 31 ? lane : 0);
  case 9: return BIG(lane + 5 > 31 ? lane : lane + 5);
  case 10: return BIG(lane ^ 17);
  case 11: return SMALL(lane + 16 > 31 ? lane : lane + 16);
  case 12: return SMALL(lane ^ 1);
  case 13: return 0xaaaaaaaau;
  default: return ((wl_u64)(id % bdim / 32) << 32) | grid;
  }
#undef BIG
#undef SMALL
}

static bool warp_ops_are_right(bench *b, unsigned seed) {
  unsigned grid = 5, block = 96;
  if (launch(b, k_warp_ops, grid, block, 0, seed, 0) != WL_OK) return false;
  for (wl_u32 id = 0; id < grid * block; id++) {
    for (int op = 0; op < WARP_OPS; op++) {
      if (b->out[id * WARP_OPS + op] == expected_warp_op(op, id, block, grid)) continue;
      printf("# warp operation %d, thread %u, seed %u: %llx\n", op, id, seed,
             b->out[id * WARP_OPS + op]);
      return false;
    }
  }
  return true;
}

static bool exits_are_right(bench *b, unsigned seed) {
  unsigned block = 128;
  if (launch(b, k_exits, 1, block, 4, seed, 0) != WL_OK) return false;
  for (unsigned i = 0; i < block; i++) {
    wl_u64 want = 0x77777777u | (wl_u64)(block * 3 / 4) << 32;
    if (i % 4 < 2) want |= 1ull << 63;
    if (i % 4 == 3) want = 0xeeeeeeeeeeeeeeeeull;
    if (b->out[i] != want) return false;
  }
  return true;
}

static bool scan_is_right(bench *b, unsigned block, unsigned seed) {
  unsigned n = 64 * block - 17, grid = 64;
  if (launch(b, k_scan, grid, block, (2 + block / 32) * 8, seed, n) != WL_OK) {
    printf("# scan, seed %u: %s\n", seed, b->err.text);
    return false;
  }
  wl_u64 sum = 0;
  for (unsigned i = 0; i < n; i++) {
    if (b->out[i] != sum) return false;
    sum += b->in[i];
  }
  for (unsigned i = 0; i < grid; i++)
    if ((b->state[i] & ~SCAN_VALUE) != SCAN_UP_TO) return false;
  return b->count[0] == grid && (b->state[grid - 1] & SCAN_VALUE) == sum;
}

static bool atomics_are_right(bench *b, unsigned seed) {
  wl_u32 grid = 9, block = 64, n = grid * block, max = 0, min = 0xffffffffu;
  wl_u64 sum = 0, ids = 0;
  if (launch(b, k_atomics, grid, block, 16, seed, 0) != WL_OK) return false;
  unsigned char seen[9 * 64] = {0};
  for (wl_u32 id = 0; id < n; id++) {
    wl_u32 hash = (id * 2654435761u) >> 8;
    if (hash > max) max = hash;
    if (hash < min) min = hash;
    sum += ((wl_u64)id << 20) + 1;
    ids += id;
    if (b->out[id] >= n || seen[b->out[id]]++) return false; /* each old value once */
  }
  return b->count[0] == n && b->count[1] == max && b->count[2] == 0xffffffffu &&
         b->count[3] == ~min && b->state[0] == sum && b->state[1] == ids;
}

static bool lock_is_right(bench *b, unsigned seed) {
  return launch(b, k_lock, 6, 128, 0, seed, 0) == WL_OK && b->state[1] == 24;
}

static bool publish_is_right(bench *b, unsigned seed) {
  if (launch(b, k_publish, 6, 128, 0, seed, 0) != WL_OK) return false;
  for (unsigned i = 0; i < 6 * 128; i++)
    if (b->out[i] != PUBLISHED) return false;
  return true;
}

static void test_right(bench *b) {
  bool sum = true, warp = true, exits = true, scan = true, atomics = true, lock = true;
  bool publish = true;
  for (unsigned seed = 0; seed < SEEDS; seed++) {
    static const unsigned sizes[5] = {32, 64, 96, 256, 1024};
    sum = sum && block_sum_is_right(b, sizes[seed % SIZES], seed);
    warp = warp && warp_ops_are_right(b, seed);
    exits = exits && exits_are_right(b, seed);
    scan = scan && scan_is_right(b, seed % 2 ? 64 : 128, seed);
    atomics = atomics && atomics_are_right(b, seed);
    lock = lock && lock_is_right(b, seed);
    publish = publish && publish_is_right(b, seed);
  }
  ok(sum, "block sum through shared memory, in blocks of many sizes");
  ok(warp, "votes and shuffles");
  ok(exits, "barriers and votes after threads have returned");
  ok(scan, "prefix sum by look-back over 64 blocks");
  ok(atomics, "atomics");
  ok(lock, "a lock with waiting threads");
  ok(publish, "an entry that one thread writes and all read");
}

/* ---- kernels that are wrong */

#ifdef WL_FIBER_TSAN
static const struct racing {
  kernel_fn *kernel;
  unsigned grid, block;
  bool races;
  const char *what;
} racing[] = {{k_wrong_no_barrier, 1, 64, true, "a missing barrier is reported"},
              {k_wrong_one_barrier, 1, 64, true, "a missing second barrier is reported"},
              {k_wrong_no_lock, 6, 128, true, "a missing lock is reported"},
              {k_wrong_vote, 1, 64, true, "a vote instead of a barrier is reported"},
              {k_wrong_no_acquire, 6, 128, true, "a missing acquire is reported"},
              {k_publish, 6, 128, false, "what is published may be read"}};
enum { N_RACING = sizeof racing / sizeof *racing };

static void run_racing(int number) {
  const struct racing *r = &racing[number];
  bench *b = open_bench();
  for (unsigned seed = 0; seed < SEEDS; seed++)
    if (launch(b, r->kernel, r->grid, r->block, 4 * r->block, seed, 0) != WL_OK) abort();
}

/* ThreadSanitizer reports the races of kernels, and makes the exit status of the process 66. */
static void test_races(bench *b) {
  for (int k = 0; k < N_RACING; k++) {
    char command[64];
    snprintf(command, sizeof command, "/proc/%d/exe %d 2>/dev/null", (int)getpid(), k);
    int status = system(command);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == (racing[k].races ? 66 : 0), racing[k].what);
  }
}
#else
static void test_races(bench *b) {
  int no_barrier = 0, one_barrier = 0, no_lock = 0;
  for (unsigned seed = 0; seed < SEEDS; seed++) {
    bool wrong = false;
    if (launch(b, k_wrong_no_barrier, 1, 64, 64 * 4, seed, 0) != WL_OK) wrong = true;
    for (unsigned i = 0; i < 64; i++) wrong |= b->out[i] != (i + 1) % 64;
    no_barrier += wrong;
    wrong = launch(b, k_wrong_one_barrier, 1, 64, 4, seed, 0) != WL_OK;
    for (unsigned i = 0; i < 64; i++) wrong |= b->out[i] != 36;
    one_barrier += wrong;
    wrong = launch(b, k_wrong_no_lock, 6, 128, 0, seed, 0) != WL_OK;
    no_lock += wrong || b->state[1] != 24;
  }
  printf("# wrong under %d, %d and %d of %d seeds\n", no_barrier, one_barrier, no_lock, SEEDS);
  ok(no_barrier > SEEDS / 2, "a missing barrier shows");
  ok(one_barrier > SEEDS / 2, "a missing second barrier shows");
  ok(no_lock > SEEDS / 4, "a missing lock shows");
}
#endif

static bool fails_with(bench *b, kernel_fn *k, unsigned grid, unsigned seed, const char *text) {
  wl_status rc = launch(b, k, grid, 64, 256, seed, 256);
  if (rc == WL_ERROR && strstr(b->err.text, text)) return true;
  printf("# status %d, message: %s\n", (int)rc, b->err.text);
  return false;
}

static void test_deadlock(bench *b) {
  bool flag = true, split = true, mixed = true, again = true;
  int no_ticket = 0;
  for (unsigned seed = 0; seed < 10; seed++) {
    flag = flag && fails_with(b, k_wrong_flag, 5, seed, "deadlock");
    split = split && fails_with(b, k_wrong_split, 1, seed, "32 threads at a barrier, 32 in a warp");
    mixed = mixed && fails_with(b, k_wrong_mixed, 2, seed, "different warp operations");
    again = again && scan_is_right(b, 64, seed);
    wl_status rc = launch(b, k_wrong_no_ticket, 40, 32, 0, seed, 0);
    no_ticket += rc == WL_ERROR && strstr(b->err.text, "spinning");
  }
  ok(flag, "waiting for a flag nobody sets is a deadlock");
  ok(split, "a warp half at a vote, half at the barrier is a deadlock");
  ok(mixed, "lanes that meet in different operations are an error");
  ok(no_ticket > 5, "waiting for a block that has not started is a deadlock");
  ok(again, "launches after a failed one are right");
}

/* Calls itself until its stack is used up, and some 100 bytes more. */
static int dig(const char *top) {
  volatile char use[64];
  use[0] = 1;
  const char *here = (const char *)__builtin_frame_address(0);
  if ((size_t)(top - here) > WL_FIBER_STACK - WL_FIBER_GAP - 64) return use[0];
  return dig(top) + use[0];
}

static void k_deep(const void *args) {
  const wl_kargs *a = (const wl_kargs *)args;
  int n = 0;
  if (simt_tid() == 40) n = dig((const char *)__builtin_frame_address(0));
  a->out[simt_tid()] = (wl_u64)n;
}

static void k_nested(const void *args) {
  const wl_kargs *a = (const wl_kargs *)args;
  a->out[simt_tid()] = (wl_u64)wl_sim_launch(k_nothing, args, 1, 32, 0, 0, NULL);
}

static void test_misuse(bench *b) {
  ok(fails_with(b, k_deep, 1, 1, "overran its stack"), "a stack overflow is an error");
#ifndef WL_FIBER_ASAN /* there the write itself is reported */
  ok(fails_with(b, k_wrong_past_shared, 3, 1, "past its shared memory"),
     "a write past shared memory is an error");
#endif
  bool poisoned = true;
  for (unsigned seed = 0; seed < 5; seed++) {
    poisoned = poisoned && launch(b, k_unwritten, 20, 64, 256, seed, 0) == WL_OK;
    for (unsigned i = 0; i < 20 * 64; i++) poisoned = poisoned && b->out[i] == 0xa5a5a5a5u;
  }
  ok(poisoned, "unwritten shared memory holds the pattern, in every block");
  ok(launch(b, k_nested, 1, 32, 0, 0, 0) == WL_OK && b->out[5] == WL_MISUSE,
     "a kernel cannot launch");
  ok(launch(b, k_nothing, 0, 32, 0, 0, 0) == WL_MISUSE &&
         launch(b, k_nothing, 1, 0, 0, 0, 0) == WL_MISUSE &&
         launch(b, k_nothing, 1, 33, 0, 0, 0) == WL_MISUSE &&
         launch(b, k_nothing, 1, 1056, 0, 0, 0) == WL_MISUSE &&
         launch(b, k_nothing, 1, 32, WL_SIM_MAX_SHARED + 1, 0, 0) == WL_MISUSE &&
         launch(b, k_nothing, 1, 32, WL_SIM_MAX_SHARED, 0, 9) == WL_OK && b->out[0] == 9,
     "impossible shapes are refused");
}

static void test_nomem(bench *b) {
  bool good = true;
  int n_failing = 0;
  for (long n = 1; n < 200; n++) {
    wl_sim_release();
    wl_mem_fail_after(n);
    wl_status rc = launch(b, k_scan, 8, 96, 5 * 8, 7, 8 * 96);
    wl_mem_fail_after(0);
    if (rc == WL_OK) break;
    n_failing++;
    good = good && rc == WL_NOMEM && scan_is_right(b, 64, (unsigned)n);
  }
  ok(good && n_failing > 5 && n_failing < 100, "out of memory at every point, then right again");
}

/* ---- two OS threads at once */

static void *run_thread(void *arg) {
  bench *b = open_bench();
  bool good = true;
  for (unsigned seed = 0; seed < 6 && good; seed++) {
    good = scan_is_right(b, 64, seed + *(unsigned *)arg) && lock_is_right(b, seed) &&
           fails_with(b, k_wrong_flag, 2, seed, "deadlock");
  }
  free(b);
  return good ? arg : NULL;
}

static void test_threads(void) {
  pthread_t t[2];
  unsigned first[2] = {100, 200};
  bool good = true;
  for (int i = 0; i < 2; i++)
    if (pthread_create(&t[i], NULL, run_thread, &first[i]) != 0) abort();
  for (int i = 0; i < 2; i++) {
    void *r = NULL;
    pthread_join(t[i], &r);
    good = good && r;
  }
  ok(good, "two OS threads launch at once");
}

/* ---- the same seed, the same run */

static void test_repeatable(bench *b) {
  wl_u64 *first = (wl_u64 *)malloc(sizeof b->out);
  bool same = first != NULL;
  int n_same_seeds = 0;
  for (unsigned seed = 0; same && seed < 20; seed++) {
    same = same && launch(b, k_atomics, 9, 64, 16, seed, 0) == WL_OK;
    n_same_seeds += seed > 0 && memcmp(first, b->out, sizeof b->out) == 0;
    memcpy(first, b->out, sizeof b->out);
    same = same && launch(b, k_atomics, 9, 64, 16, seed, 0) == WL_OK;
    same = same && memcmp(first, b->out, sizeof b->out) == 0;
  }
  ok(same && n_same_seeds == 0, "a seed decides the order, and only the seed");
  free(first);
}

/* ---- cost */

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double best_of(bench *b, kernel_fn *k, unsigned block, wl_u32 n) {
  double best = 1e9;
  wl_u32 in[1] = {n};
  wl_kargs args = {in, n, b->count, b->state, b->out};
  for (unsigned i = 0; i < 40; i++) {
    double t = seconds();
    if (wl_sim_launch(k, &args, 1, block, 256, i, &b->err) != WL_OK) return -1;
    t = seconds() - t;
    if (t < best) best = t;
  }
  return best * 1e6;
}

static void print_costs(bench *b) {
  printf("# 256 threads, 16 barriers: %.1f us\n", best_of(b, k_barriers, 256, 16));
  printf("# 256 threads, 16 shuffles: %.1f us\n", best_of(b, k_shuffles, 256, 16));
  printf("# 256 threads that do nothing: %.1f us\n", best_of(b, k_nothing, 256, 16));
  printf("# 32 threads that do nothing: %.1f us\n", best_of(b, k_nothing, 32, 16));
}

int main(int n_args, char **args) {
#ifdef WL_FIBER_TSAN
  if (n_args > 1) {
    run_racing(atoi(args[1]));
    return 0;
  }
#endif
  bench *b = open_bench();
  test_right(b);
  test_races(b);
  test_deadlock(b);
  test_misuse(b);
  test_nomem(b);
  test_threads();
  test_repeatable(b);
  print_costs(b);
  free(b);
  wl_sim_release();
  return n_failed != 0;
}
