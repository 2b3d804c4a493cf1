/*
** See choose.h.
*/
#include "plan/choose.h"

#define SORT_BYTES   256.0   /* that a device moves in its memory to sort a row */
#define RESULT_BYTES 9.0     /* of a value of the result that comes back */
#define COLUMN_NS    20000.0 /* copying a column takes at least this long */

/* A machine that has run is left if the other one is so much faster. */
#define CHANGE 1.1
/* A machine that has not run is tried if it is at most so much slower by estimate … */
#define FAR 2.0
/* … after so many runs on the other one, and if these are long enough to matter. */
enum { FIRST_RUNS = 2 };
#define SHORT_NS 200000.0
#define MOST     1000.0 /* a correction is at most this, and at least the reciprocal */
/* With each run on the other machine, a correction gets so much nearer to 1. A machine that takes
** x times its estimate is tried again after x / FADE runs at most, so trying costs a 20th of the
** time. */
#define FADE    0.05
#define REFUSED 100.0 /* the correction of a GPU that cannot run it at all */

double wl_choose_scale(const wl_machines *m) {
  wl_constants preset;
  wl_constants_init(&preset);
  return m->is.cpu_node_ns / preset.cpu_node_ns;
}

double wl_choose_threads(const wl_machines *m) {
  return 1 + (m->n_threads - 1) * m->is.cpu_sharing;
}

/* How fast columns get to the device. */
static double in_rate(const wl_settings *set, const wl_machines *m) {
  bool pinned = set->transfer.pinned || set->transfer.mode == WL_TRANSFER_MAPPED;
  return pinned ? m->is.pinned_in_rate : m->is.pageable_in_rate;
}

/* Whether columns stay on the device. A quarter of its memory is for results. */
static bool keeps_columns(const wl_settings *set, const wl_place_table *t, const wl_machines *m) {
  bool may = set->transfer.mode == WL_TRANSFER_AUTO || set->transfer.mode == WL_TRANSFER_CACHED;
  return may && t->copies.n_bytes <= (double)m->memory * 0.75;
}

static double larger(double a, double b) {
  return a > b ? a : b;
}

double wl_choose_gpu(const wl_settings *set, const wl_work *w, const wl_place_table *t,
                     const wl_machines *m) {
  const wl_constants *is = &m->is;
  double host = (w->host_ns + w->client_ns) * wl_choose_scale(m);
  double reads = t->copies.n_bytes / is->gpu_memory_rate;
  if (m->has_device && !keeps_columns(set, t, m)) reads = t->copies.n_bytes / in_rate(set, m);
  double computes = w->n_rows * w->nodes * is->gpu_node_ns;
  double sorts = w->sorted * SORT_BYTES / is->gpu_memory_rate;
  double back = is->gpu_wait_ns + w->n_results * RESULT_BYTES / is->out_rate;
  return host + w->n_pipelines * is->gpu_pipeline_ns + larger(reads, computes) + sorts + back;
}

double wl_choose_copy(const wl_settings *set, const wl_place_table *t, const wl_machines *m) {
  if (t->copies.n_absent <= 0 || !keeps_columns(set, t, m)) return 0;
  return COLUMN_NS + t->copies.n_absent / in_rate(set, m);
}

static double corrected(const wl_measured *x, int machine, double ns) {
  return x && x->ratio[machine] > 0 ? ns * x->ratio[machine] : ns;
}

/* Whether it is time to try the machine that has not run. */
static bool tries(const wl_measured *x, int other, double ns, double other_ns) {
  return x && x->ratio[other] <= 0 && x->n_runs >= FIRST_RUNS && ns > SHORT_NS &&
         other_ns < ns * FAR;
}

wl_engine wl_choose(const wl_place_table *t, double cpu, double gpu, double copy,
                    double *not_copied) {
  const wl_measured *x = t->measured;
  *not_copied = 0;
  cpu = corrected(x, WL_ON_CPU_MACHINE, cpu);
  gpu = corrected(x, WL_ON_GPU_MACHINE, gpu);
  bool ran = x && x->n_runs > 0, on_gpu = ran && x->last == WL_ON_GPU_MACHINE;
  if (on_gpu && tries(x, WL_ON_CPU_MACHINE, gpu, cpu)) return WL_ENGINE_CPU;
  if (ran && !on_gpu && tries(x, WL_ON_GPU_MACHINE, cpu, gpu + copy)) return WL_ENGINE_GPU;
  bool both = x && x->ratio[WL_ON_CPU_MACHINE] > 0 && x->ratio[WL_ON_GPU_MACHINE] > 0;
  double stay = both ? CHANGE : 1;
  if (on_gpu ? gpu >= cpu * stay : gpu * stay >= cpu) return WL_ENGINE_CPU;
  double saved = cpu - gpu;
  if (copy <= 0 || saved >= copy) return WL_ENGINE_GPU;
  if (saved > 0 && t->copies.lost_ns + saved >= copy) return WL_ENGINE_GPU;
  *not_copied = saved > 0 ? saved : 0;
  return WL_ENGINE_CPU;
}

static double faded(double ratio) {
  if (ratio <= 0) return ratio;
  return ratio > 1 + FADE ? ratio - FADE : 1 - (1 - ratio) * (1 - FADE);
}

void wl_choose_note(wl_measured *x, int machine, double ns, double estimate) {
  int other = machine == WL_ON_CPU_MACHINE ? WL_ON_GPU_MACHINE : WL_ON_CPU_MACHINE;
  if (estimate <= 0 || ns <= 0) return;
  double now = ns / estimate, *ratio = &x->ratio[machine];
  now = now > MOST ? MOST : now < 1 / MOST ? 1 / MOST : now;
  /* One slow run may be chance, one fast run is not. The first may have prepared what later ones
  ** find. A faded correction says nothing. */
  bool again = *ratio > 0 && x->last == machine;
  if (x->n_on[machine] > 0 || now <= 1)
    *ratio = !again || now < *ratio ? now : (*ratio * 2 + now) / 3;
  if (x->n_on[machine] < 2) x->n_on[machine]++;
  x->ratio[other] = faded(x->ratio[other]);
  x->last = machine;
  if (x->n_runs < FIRST_RUNS) x->n_runs++;
}

void wl_choose_refused(wl_measured *x) {
  x->ratio[WL_ON_GPU_MACHINE] = REFUSED;
  x->last = WL_ON_CPU_MACHINE;
}
