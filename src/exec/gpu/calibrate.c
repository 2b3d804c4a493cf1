/*
** See calibrate.h. The programs that it runs are made by hand and go the way of every other program
** (exec/run.h): a column, some additions, and a filter that no row passes.
*/
#include "exec/gpu/calibrate.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"
#include "plan/user_cache.h"
#include "exec/gpu/columns/devcol.h"
#include "exec/run.h"
#include "warplite.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { RUNS = 5, FEW_NODES = 2, MANY_NODES = 18, COPY_BYTES = 4 << 20 };
static const double share_ns = 3e6; /* for one measurement */
/* What is read and written in device memory: more than a cache has, and a share of small devices.
 */
enum { MEMORY_BYTES = 256 << 20, MEMORY_SHARE = 64 };
static const double clear_ns = 200000; /* a difference that is more than noise */

/* ---- a program of n_nodes additions and a comparison. No sum of natural numbers is less than one
** of them, and no zone map says so. */

static wl_program *make_program(wl_arena *arena, const wl_column *c, int n_nodes) {
  wl_program *p = WL_NEW_N(arena, wl_program, 1);
  int n = n_nodes + 4;
  if (!p) return NULL;
  p->code = WL_NEW_N(arena, wl_instr, n);
  p->regs = WL_NEW_N(arena, wl_reg, n);
  p->columns = WL_NEW_N(arena, wl_i16, 1);
  p->column_names = WL_NEW_N(arena, const char *, 1);
  p->column_regs = WL_NEW_N(arena, wl_reg, 1);
  p->results = WL_NEW_N(arena, wl_result, 1);
  if (!p->code || !p->regs || !p->columns || !p->column_names || !p->column_regs || !p->results)
    return NULL;
  p->table = "numbers";
  p->column_names[0] = "n";
  p->column_regs[0] = wl_column_reg(c);
  p->n_columns = p->n_sources = p->n_results = p->n_given = 1;
  p->limit = p->host_op = -1;
  p->as_sqlite = true;
  int last = n_nodes - 1; /* the comparison is a node, too */
  for (int k = 0; k <= last; k++) p->regs[k] = (wl_reg){WL_R_INT, false};
  p->regs[n_nodes] = (wl_reg){WL_R_TRUTH, false};
  p->n_regs = n_nodes + 1;
  p->code[p->n_code++] = (wl_instr){WL_OP__Column, 0, 0, 0, 0};
  for (int k = 1; k <= last; k++)
    p->code[p->n_code++] = (wl_instr){WL_OP__AddI, (wl_i16)k, (wl_i16)(k - 1), 0, 0};
  p->code[p->n_code++] = (wl_instr){WL_OP__LtI, (wl_i16)n_nodes, (wl_i16)last, 0, 0};
  p->code[p->n_code++] = (wl_instr){WL_OP__IfNot, 0, (wl_i16)n_nodes, 0, (wl_i16)(n_nodes + 3)};
  p->code[p->n_code++] = (wl_instr){WL_OP__Result, 0, 0, 1, 0};
  p->results[0] = (wl_result){
      .name = "n", .operand = 0, .domain = wl_domain_int(c->domain.lo, c->domain.hi, false)};
  return p;
}

/* A column of n small integers. */
static wl_column *make_column(wl_i64 n) {
  wl_error ignored;
  wl_builder *b = NULL;
  wl_column *c = NULL;
  wl_u64 *v = wl_mem_alloc(WL_TABLET_ROWS * sizeof *v);
  wl_status rc = v ? wl_builder_open(&b, &ignored) : WL_NOMEM;
  for (int i = 0; i < WL_TABLET_ROWS && !rc; i++) v[i] = (wl_u64)i * 7919 % 1000003;
  for (wl_i64 at = 0; at < n && !rc; at += WL_TABLET_ROWS)
    rc = wl_builder_add_numbers(b, WL_T_INT, v, NULL,
                                n - at < WL_TABLET_ROWS ? n - at : WL_TABLET_ROWS);
  if (!rc) rc = wl_builder_finish(b, &c, &ignored);
  wl_builder_close(b);
  wl_mem_free(v);
  return rc ? NULL : c;
}

/* ---- measuring */

/* Runs a piece of work once. */
typedef wl_status piece(void *arg, wl_error *err);

/* The shortest time of a piece of work, after a run that does not count. Not the median, because
** other threads of the process are at work, too. Below 0: it failed. */
static double time_of(piece *run, void *arg) {
  double best = -1, begin = wl_clock_ns();
  wl_error ignored;
  if (run(arg, &ignored)) return -1;
  for (int n = 0; n < RUNS && (n == 0 || wl_clock_ns() - begin < share_ns); n++) {
    double start = wl_clock_ns();
    if (run(arg, &ignored)) return -1;
    double ns = wl_clock_ns() - start;
    if (n == 0 || ns < best) best = ns;
  }
  return best;
}

typedef struct scan {
  wl_device *device; /* NULL: the CPU */
  wl_column *column;
  int n_nodes, threads;
} scan;

/* Runs the program. */
static wl_status run_scan(void *arg, wl_error *err) {
  const scan *s = arg;
  wl_arena arena;
  wl_run *run = NULL;
  wl_batch *batch = NULL;
  wl_run_config config = {.threads = s->threads, .max_text = 1 << 20, .device = s->device};
  config.transfer = (wl_transfer){.mode = WL_TRANSFER_AUTO, .stream_blocks = 1, .pinned = 0};
  wl_arena_init(&arena);
  wl_program *p = make_program(&arena, s->column, s->n_nodes);
  wl_snapshot snap = {.n_rows = s->column->n_rows, .cols = wl_mem_zalloc(sizeof *snap.cols)};
  if (snap.cols) snap.cols[snap.n_cols++] = wl_column_hold(s->column);
  if (!p || !snap.cols) {
    wl_snapshot_release(&snap);
    wl_arena_close(&arena);
    return wl_nomem(err);
  }
  wl_status rc = wl_run_open(&config, &arena, p, &snap, &run, err);
  if (!rc) rc = wl_run_next(run, &batch, err);
  if (batch) wl_batch_give(batch);
  if (!rc && s->device && wl_run_detour(run)) rc = wl_not_taken(err, "%s", wl_run_detour(run));
  wl_run_close(run);
  return rc;
}

/* The time of the program with so many nodes over n rows. */
static double time_scan(wl_device *d, wl_column *c, int n_nodes, int threads) {
  scan s = {d, c, n_nodes, threads};
  return time_of(run_scan, &s);
}

typedef struct copy {
  wl_device *d;
  void *on_device, *other;
  size_t n_on; /* bytes at on_device */
  enum { COPY_IN, COPY_OUT, COPY_ON, ONLY_WAIT } what;
} copy;

static wl_status run_copy(void *arg, wl_error *err) {
  const copy *c = arg;
  wl_device *d = c->d;
  wl_status rc = WL_OK;
  switch (c->what) {
  case COPY_IN: rc = d->copy_in_later(d, c->on_device, c->other, COPY_BYTES, err); break;
  case COPY_OUT: rc = d->copy_out_later(d, c->other, c->on_device, COPY_BYTES, err); break;
  case COPY_ON:
    rc = d->copy_on(d, (char *)c->on_device + c->n_on / 2, c->on_device, c->n_on / 2, err);
    break;
  case ONLY_WAIT: {
    wl_ktiles none = {c->on_device, c->on_device, 0};
    rc = d->launch(d, WL_K_TILES, &none, sizeof none, 1, 32, 0, err);
  }
  }
  return rc ? rc : d->finish(d, err);
}

/* Bytes per ns. n: how many bytes are read or written. 0: it failed. wait: what the least piece of
** work takes. */
static double rate(copy c, double n, double wait) {
  double ns = time_of(run_copy, &c);
  return ns < 0 ? 0 : ns - wait > ns / 4 ? n / (ns - wait) : n / (ns / 4);
}

/* Copies, and the launch of a kernel that does nothing. The device is locked. */
static bool measure_copies(wl_device *d, wl_constants *out) {
  wl_error ignored;
  void *on = NULL, *pinned = NULL, *pageable = wl_mem_alloc(COPY_BYTES);
  size_t n = (size_t)(d->free_memory / MEMORY_SHARE);
  n = n > MEMORY_BYTES ? MEMORY_BYTES : n < COPY_BYTES ? COPY_BYTES : n;
  n -= n % (2 * WL_DEV_ALIGN);
  bool fine = pageable && !wl_dev_alloc(d, n, &on, &ignored) &&
              !d->host_alloc(d, COPY_BYTES, &pinned, &ignored);
  if (fine) {
    memset(pageable, 1, COPY_BYTES);
    memset(pinned, 1, COPY_BYTES);
    double wait = time_of(run_copy, &(copy){d, on, NULL, n, ONLY_WAIT});
    out->gpu_wait_ns = wait;
    out->pinned_in_rate = rate((copy){d, on, pinned, n, COPY_IN}, COPY_BYTES, wait);
    out->pageable_in_rate = rate((copy){d, on, pageable, n, COPY_IN}, COPY_BYTES, wait);
    out->out_rate = rate((copy){d, on, pinned, n, COPY_OUT}, COPY_BYTES, wait);
    out->gpu_memory_rate = rate((copy){d, on, NULL, n, COPY_ON}, (double)n, wait);
  }
  if (pinned) d->host_free(d, pinned);
  wl_dev_free(d, on, n);
  wl_mem_free(pageable);
  return fine;
}

/* The program on the device. Rows are added until more nodes make a clear difference. */
static bool measure_device(wl_device *d, wl_constants *out) {
  static const wl_i64 n_rows[] = {1 << 12, 1 << 14, 1 << 17, 1 << 20};
  enum { SIZES = sizeof n_rows / sizeof *n_rows };
  for (int k = 0; k < SIZES; k++) {
    wl_column *c = make_column(n_rows[k]);
    double few = c ? time_scan(d, c, FEW_NODES, 1) : -1;
    double many = few < 0 ? -1 : time_scan(d, c, MANY_NODES, 1);
    wl_column_drop(c);
    if (few < 0 || many < 0) return false;
    double each = (many - few) / ((MANY_NODES - FEW_NODES) * (double)n_rows[k]);
    if (k == 0) out->gpu_pipeline_ns = few;
    out->gpu_node_ns = each;
    if (many - few >= clear_ns) return true;
  }
  return true; /* so fast that it makes no difference; if it is no number, the caller sees it */
}

/* The program on the CPU, by one thread and by all. */
static bool measure_cpu(wl_constants *out) {
  const wl_i64 n_few = 1 << 17, n_many = 1 << 20;
  int cores = wl_threads_cores();
  wl_column *c = make_column(n_few), *large = make_column(n_many);
  bool fine = c && large;
  double few = fine ? time_scan(NULL, c, FEW_NODES, 1) : -1;
  double many = fine ? time_scan(NULL, c, MANY_NODES, 1) : -1;
  double alone = fine ? time_scan(NULL, large, MANY_NODES, 1) : -1;
  double all = fine ? time_scan(NULL, large, MANY_NODES, cores) : -1;
  wl_column_drop(c);
  wl_column_drop(large);
  if (few < 0 || many < 0 || alone < 0 || all <= 0) return false;
  out->cpu_node_ns = (many - few) / ((MANY_NODES - FEW_NODES) * (double)n_few);
  double sharing = cores > 1 ? (alone / all - 1) / (cores - 1) : 1;
  const double worst = 0.5; /* less means that others were at work */
  out->cpu_sharing = sharing > 1 ? 1 : sharing < worst ? worst : sharing;
  return true;
}

static bool measure(wl_device *d, wl_constants *out) {
  wl_constants now;
  wl_constants_init(&now);
  wl_device_lock(d);
  wl_i64 budget = d->budget;
  d->budget = d->free_memory;
  bool fine = measure_copies(d, &now) && measure_device(d, &now);
  d->budget = budget;
  wl_device_unlock(d);
  fine = fine && measure_cpu(&now) && wl_constants_sane(&now);
  if (fine) *out = now;
  return fine;
}

/* ---- the file */

static void cpu_model(char *out, size_t n) {
  char line[256];
  FILE *f = fopen("/proc/cpuinfo", "re");
  snprintf(out, n, "unknown");
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, "model name", 10) == 0 || strncmp(line, "CPU part", 8) == 0) {
      line[strcspn(line, "\n")] = 0;
      snprintf(out, n, "%s", line);
      break;
    }
  if (f) fclose(f);
}

void wl_calibrate_name(const wl_device *d, char *out, size_t n) {
  char cpu[256], text[640];
  cpu_model(cpu, sizeof cpu);
  int length = snprintf(text, sizeof text, "%s\n%d\n%s\n%d\n%s\n%s\n", cpu, wl_threads_cores(),
                        d->name, d->n_processors, d->version, WARPLITE_VERSION);
  snprintf(out, n, "machine-%016" PRIx64 ".txt", (uint64_t)XXH3_64bits(text, (size_t)length));
}

wl_constants_from wl_calibrate(wl_device *d, bool again, wl_constants *out) {
  char name[64], text[WL_CONSTANTS_TEXT];
  wl_constants_init(out);
  wl_calibrate_name(d, name, sizeof name);
  if (!again && wl_user_cache_read(name, text, sizeof text) && wl_constants_parse(out, text))
    return WL_CONSTANTS_FILE;
  if (!measure(d, out)) return WL_CONSTANTS_PRESET;
  wl_constants_print(out, '\n', text, sizeof text);
  (void)wl_user_cache_write(name, text);
  return WL_CONSTANTS_MEASURED;
}
