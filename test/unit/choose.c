/*
** The choice between CPU, GPU and SQLite by price: given machines, sizes and earlier runs, which
** engine. Prices only rise with work.
*/
#include "../tap.h"
#include "plan/choose.h"
#include <string.h>

/* A query over a table with 4 bytes for each row, by 8 threads or a GPU, as SQLite's price allows.
 */
typedef struct world {
  wl_settings set;
  wl_query q;
  wl_plan_facts facts;
  wl_place_table t;
  wl_machines m;
  wl_measured measured;
} world;

static world a_world(double n_rows) {
  world w;
  memset(&w, 0, sizeof w);
  wl_settings_init(&w.set);
  wl_constants_init(&w.m.is);
  w.m.n_threads = 8;
  w.m.has_device = true;
  w.m.memory = (wl_i64)80 << 30;
  w.q.n_sources = 1;
  w.q.n_results = 1;
  w.q.n_nodes_cost = 4;
  w.q.aggregate = true;
  w.t.size = (wl_query_size){.n_rows = (wl_i64)n_rows, .exact = true};
  w.t.copies.n_bytes = n_rows * 4;
  w.t.native_factor[0] = w.t.native_factor[1] = 1;
  w.t.compiled = true;
  w.t.by_batch = true;
  w.t.price.ns = w.t.price.least_ns = w.t.price.whole_ns = n_rows * 100;
  w.t.price.n_rows = 1;
  return w;
}

static wl_placement place(world *w) {
  wl_placement out;
  memset(&out, 0, sizeof out);
  w->t.measured = &w->measured;
  wl_place(&w->set, &w->q, &w->facts, &w->t, &w->m, &out);
  return out;
}

static const char *name_of(wl_engine e) {
  return e == WL_ENGINE_GPU ? "gpu" : e == WL_ENGINE_CPU ? "cpu" : "sqlite";
}

static wl_placement expect(const char *name, world *w, wl_engine want) {
  wl_placement got = place(w);
  if (got.engine == want)
    tap_ok(name);
  else
    tap_bad(name, "%s: %s; cpu %.0f us, gpu %.0f us", name_of(got.engine), got.reason,
            got.cpu_ns / 1e3, got.gpu_ns / 1e3);
  return got;
}

static void test_sizes(void) {
  world w = a_world(300);
  expect("few rows", &w, WL_ENGINE_SQLITE);
  w = a_world(2e5);
  expect("small work", &w, WL_ENGINE_CPU);
  w = a_world(1e8);
  wl_placement p = expect("a large scan of resident columns", &w, WL_ENGINE_GPU);
  CHECK("its reason has the numbers", strstr(p.reason, "100000000 rows, estimated ") &&
                                          strstr(p.reason, " in SQLite") &&
                                          !strstr(p.reason, "to copy"));
  CHECK("it copies nothing", !p.copies && p.not_copied_ns == 0);
  w.m.has_device = false;
  expect("the same without a device", &w, WL_ENGINE_CPU);
  w = a_world(1e8);
  w.set.device = WL_DEVICE_SIM;
  expect("the same with device=sim", &w, WL_ENGINE_CPU);
  w.set.device = WL_DEVICE_CUDA;
  w.set.engine = WL_ENGINE_CPU;
  expect("the same with engine=cpu", &w, WL_ENGINE_CPU);
  w = a_world(2e5);
  w.set.engine = WL_ENGINE_GPU;
  w.set.route = WL_ROUTE_ALWAYS;
  expect("small work with engine=gpu", &w, WL_ENGINE_GPU);
  w = a_world(1e8);
  w.set.route = WL_ROUTE_ALWAYS;
  expect("route=always chooses between CPU and GPU as well", &w, WL_ENGINE_GPU);
  w = a_world(1e8);
  w.t.slow_calls = 1;
  expect("calls into SQLite stay on the CPU", &w, WL_ENGINE_SQLITE);
  w.set.route = WL_ROUTE_ALWAYS;
  expect("calls into SQLite, natively", &w, WL_ENGINE_CPU);
}

/* Columns that are not on the device. */
static void test_copies(void) {
  world w = a_world(3e6);
  w.q.n_nodes_cost = 8;
  w.m.is.pinned_in_rate = 2;
  expect("columns are there", &w, WL_ENGINE_GPU);
  w.t.copies.n_absent = w.t.copies.n_bytes;
  wl_placement p = expect("a small query does not pay for the copy", &w, WL_ENGINE_CPU);
  CHECK("it counts as lost time", p.not_copied_ns > 0 && !p.copies);
  int n = 0;
  while (place(&w).engine == WL_ENGINE_CPU && n < 1000) {
    w.t.copies.lost_ns += place(&w).not_copied_ns;
    n++;
  }
  if (n > 0 && n < 20)
    tap_ok("several of them do");
  else
    tap_bad("several of them do", "%d", n);
  p = expect("the copy is made then", &w, WL_ENGINE_GPU);
  CHECK("the reason says so", p.copies && strstr(p.reason, "to copy"));
  w = a_world(1e8);
  w.q.n_nodes_cost = 40;
  w.t.copies.n_absent = w.t.copies.n_bytes;
  expect("a large query pays for it at once", &w, WL_ENGINE_GPU);
  w.m.is.pinned_in_rate = 0.1;
  expect("not over a slow bus", &w, WL_ENGINE_CPU);
  w.t.copies.lost_ns = 1e12;
  expect("in the end over a slow bus", &w, WL_ENGINE_GPU);
  w.set.transfer.mode = WL_TRANSFER_STREAM;
  expect("never if it is not kept", &w, WL_ENGINE_CPU);
  w = a_world(1e8);
  w.m.memory = (wl_i64)1 << 28;
  w.m.is.pinned_in_rate = 0.5;
  expect("never if it does not fit", &w, WL_ENGINE_CPU);
  w = a_world(1e8);
  w.q.n_nodes_cost = 1;
  w.t.copies.n_absent = w.t.copies.n_bytes;
  double with = wl_choose_copy(&w.set, &w.t, &w.m);
  w.set.transfer.pinned = 0;
  CHECK("from pageable memory it takes longer", wl_choose_copy(&w.set, &w.t, &w.m) > with);
}

static void test_results(void) {
  world w = a_world(2e7);
  expect("a small result", &w, WL_ENGINE_GPU);
  w.t.price.n_rows = 2e7;
  w.q.aggregate = false;
  w.q.n_nodes_cost = 1;
  w.q.n_results = 4;
  w.m.is.out_rate = 8;
  expect("a large result over the bus", &w, WL_ENGINE_CPU);
}

static void test_machines(void) {
  world w = a_world(2e6);
  w.q.n_nodes_cost = 8;
  expect("by the defaults", &w, WL_ENGINE_GPU);
  w.m.is.gpu_pipeline_ns = 5e6;
  expect("a device that is slow to start", &w, WL_ENGINE_CPU);
  w = a_world(2e6);
  w.q.n_nodes_cost = 8;
  w.m.is.gpu_node_ns = 2;
  expect("a device that computes slowly", &w, WL_ENGINE_CPU);
  w = a_world(2e6);
  w.q.n_nodes_cost = 8;
  w.m.n_threads = 128;
  expect("many threads", &w, WL_ENGINE_CPU);
  w.m.is.cpu_sharing = 0.05;
  expect("many threads that slow each other down", &w, WL_ENGINE_GPU);
  w = a_world(1e6);
  w.q.n_nodes_cost = 8;
  w.m.is.cpu_node_ns /= 4;
  expect("a fast CPU", &w, WL_ENGINE_CPU);
  w.m.is.cpu_node_ns *= 8;
  expect("a slow CPU", &w, WL_ENGINE_GPU);
}

/* More of anything never costs less. */
static void test_rising(void) {
  double last_cpu = 0, last_gpu = 0, last_copy = 0;
  bool rises = true;
  for (double n = 1e3; n < 1e10; n *= 1.7) {
    world w = a_world(n);
    w.t.copies.n_absent = w.t.copies.n_bytes;
    wl_placement p = place(&w);
    double copy = wl_choose_copy(&w.set, &w.t, &w.m);
    rises &= p.cpu_ns >= last_cpu && p.gpu_ns >= last_gpu && (copy >= last_copy || copy == 0);
    last_cpu = p.cpu_ns, last_gpu = p.gpu_ns, last_copy = copy;
  }
  CHECK("prices rise with rows", rises);
  last_cpu = last_gpu = 0;
  for (int n = 0; n < 100; n++) {
    world w = a_world(1e7);
    w.q.n_nodes_cost = n;
    w.q.n_results = n + 1;
    wl_placement p = place(&w);
    rises &= p.cpu_ns > last_cpu && p.gpu_ns > last_gpu;
    last_cpu = p.cpu_ns, last_gpu = p.gpu_ns;
  }
  CHECK("prices rise with operators and results", rises);
  last_cpu = last_gpu = 0;
  for (int n = 1; n < 20; n++) {
    world w = a_world(1e7);
    wl_placement p;
    w.q.n_sources = n;
    memset(&p, 0, sizeof p);
    wl_place_join(&w.set, &w.q, &w.t, &w.m, &p);
    rises &= p.cpu_ns > last_cpu && p.gpu_ns > last_gpu;
    last_cpu = p.cpu_ns, last_gpu = p.gpu_ns;
  }
  CHECK("prices rise with joined tables", rises);
  world w = a_world(1e7), sorted = w;
  sorted.facts.sorts = true;
  wl_placement p = place(&w), s = place(&sorted);
  CHECK("a sort costs", s.cpu_ns > p.cpu_ns && s.gpu_ns > p.gpu_ns);
}

/* Runs a text so often on machines that take cpu and gpu ns. Returns the time of all runs over that
** of the better machine alone, and how often it was on the GPU. */
static double run_often(world *w, double cpu, double gpu, int n, int *on_gpu) {
  double took = 0;
  *on_gpu = 0;
  for (int k = 0; k < n; k++) {
    wl_placement p = place(w);
    bool there = p.engine == WL_ENGINE_GPU;
    double ns = there ? gpu : cpu;
    ns *= k % 2 ? 1.03 : 0.97; /* no clock is exact */
    took += ns;
    *on_gpu += there;
    wl_choose_note(&w->measured, there ? WL_ON_GPU_MACHINE : WL_ON_CPU_MACHINE, ns, p.run_ns);
  }
  return took / (n * (cpu < gpu ? cpu : gpu));
}

static void check_runs(const char *name, double n_rows, double cpu, double gpu, int n, double most,
                       int least_gpu, int most_gpu) {
  world w = a_world(n_rows);
  int on_gpu;
  double share = run_often(&w, cpu, gpu, n, &on_gpu);
  if (share <= most && on_gpu >= least_gpu && on_gpu <= most_gpu)
    tap_ok(name);
  else
    tap_bad(name, "%.3f of the better one's time, %d of %d runs on the GPU", share, on_gpu, n);
}

static void test_measured(void) {
  /* By price the GPU is the better one at 100 million rows, and the CPU at 400,000. */
  check_runs("both as estimated", 1e8, 5e7, 1.6e7, 100, 1.05, 99, 100);
  check_runs("a GPU that proves slow is left", 1e8, 2e7, 2e8, 100, 1.2, 1, 3);
  check_runs("… at little cost in the end", 1e8, 2e7, 2e8, 10000, 1.1, 1, 100);
  check_runs("a GPU that proves somewhat slow", 1e8, 2e7, 4e7, 300, 1.1, 1, 20);
  check_runs("a CPU that proves slow is left", 4e5, 8e6, 4e5, 100, 1.5, 90, 99);
  check_runs("two that are alike", 1e8, 1.7e7, 1.6e7, 1000, 1.1, 0, 1000);
  check_runs("… the other way round", 1e8, 1.6e7, 1.7e7, 1000, 1.1, 0, 1000);
  world w = a_world(1e8);
  int changes = 0, last = -1, on_gpu;
  w.m.is.gpu_pipeline_ns = 1e8;
  (void)run_often(&w, 3e7, 1e9, 1000, &on_gpu);
  CHECK("a machine that is far slower by estimate is not tried", on_gpu == 0);
  w = a_world(1e8);
  for (int k = 0; k < 300; k++) {
    (void)run_often(&w, 1.62e7, 1.6e7, 1, &on_gpu);
    changes += last >= 0 && on_gpu != last;
    last = on_gpu;
  }
  if (changes <= 3)
    tap_ok("no going back and forth");
  else
    tap_bad("no going back and forth", "%d changes", changes);
  w = a_world(1e8);
  wl_choose_refused(&w.measured);
  expect("what the GPU refuses goes to the CPU", &w, WL_ENGINE_CPU);
  int n = 0;
  for (; n < 100000 && place(&w).engine == WL_ENGINE_CPU; n++) {
    wl_placement p = place(&w);
    wl_choose_note(&w.measured, WL_ON_CPU_MACHINE, p.run_ns, p.run_ns);
  }
  if (n > 100 && n < 5000)
    tap_ok("it is asked again at some time");
  else
    tap_bad("it is asked again at some time", "after %d runs", n);
}

int main(void) {
  test_sizes();
  test_copies();
  test_results();
  test_machines();
  test_rising();
  test_measured();
  return tap_done();
}
