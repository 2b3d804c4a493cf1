/*
** The interface of include/sphyraena.h: state, errors, choice of the device, SELECTs. stage.c
** stages data, results.c runs statements and brings back their rows.
*/
#include "api/sphyraena/sphyraena_impl.h"
#include "api/enable.h"
#include "api/functions.h"
#include "base/authorizer.h"
#include "exec/gpu/limits.h"
#include "route/place_query.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(SPHYRAENA_MAX_OPS == WL_GPU_MAX_INSTR && SPHYRAENA_REGISTERS == WL_MAX_REGS &&
                  SPHYRAENA_GLOBAL_REGISTERS == WL_GPU_MAX_ACCS,
              "the header has the limits of programs");

/* ---- errors */

int wl_sphyraena_fail(sphyraena *s, int code, int sqlite_code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(s->message, sizeof s->message, fmt, ap);
  va_end(ap);
  s->sqlite_code = sqlite_code;
  return code;
}

int wl_sphyraena_failed(sphyraena *s, const wl_error *err) {
  bool memory = err->code == WL_NOMEM || err->code == WL_FULL;
  int code = err->code == WL_NOT_TAKEN ? SQLITE_ERROR : (int)err->code;
  return wl_sphyraena_fail(s, memory ? SPHYRAENA_ERR_MEM : SPHYRAENA_ERR_STMT, code, "%s",
                           err->text);
}

const char *sphyraena_errmsg(const sphyraena *s) {
  return s ? s->message : "no sphyraena was given";
}

/* ---- settings */

/* The setting block_threads: a power of two, because the kernels halve it. */
static int block_threads(int n) {
  int power = 32;
  if (n == SPHYRAENA_THREADS_PER_BLOCK || n <= 0) return 0;
  while (power < 512 && 2 * power <= n) power *= 2;
  return power;
}

static void choose(const sphyraena *s, bool streaming, wl_settings *set) {
  bool is_auto = strcmp(s->device, "auto") == 0, is_cpu = strcmp(s->device, "cpu") == 0;
  int width = s->stream_width;
  if (!is_auto) {
    set->engine = is_cpu ? WL_ENGINE_CPU : WL_ENGINE_GPU;
    set->route = WL_ROUTE_ALWAYS;
  }
  if (!is_auto && !is_cpu)
    set->device = strcmp(s->device, "sim") == 0 ? WL_DEVICE_SIM : WL_DEVICE_CUDA;
  if (streaming)
    set->transfer.mode = WL_TRANSFER_STREAM;
  else if (s->data_gpu)
    set->transfer.mode = WL_TRANSFER_CACHED;
  set->transfer.pinned = s->pinned_memory != 0;
  set->transfer.block_threads = block_threads(s->threads_per_block);
  set->transfer.stream_blocks = width < 1                       ? 1
                                : width > WL_STREAM_BLOCKS_MOST ? WL_STREAM_BLOCKS_MOST
                                                                : width;
}

int wl_sphyraena_enter(sphyraena *s, bool streaming, wl_sphyraena_call *call) {
  if (!s) return SPHYRAENA_ERR_MISUSE;
  wl_conn *c = s->db ? wl_conn_find(s->db) : NULL;
  if (!c)
    return wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE,
                             "call sphyraena_init() with an open connection first");
  sqlite3_mutex_enter(sqlite3_db_mutex(c->db));
  *call = (wl_sphyraena_call){c, c->set};
  choose(s, streaming, &c->set);
  return SPHYRAENA_SUCCESS;
}

void wl_sphyraena_leave(wl_sphyraena_call *call) {
  call->conn->set = call->before;
  sqlite3_mutex_leave(sqlite3_db_mutex(call->conn->db));
}

/* ---- life */

int sphyraena_init(sphyraena *s, sqlite3 *db, size_t data_size, size_t results_size,
                   int pinned_memory) {
  if (!s) return SPHYRAENA_ERR_MISUSE;
  memset(s, 0, sizeof *s);
  if (!db)
    return wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE, "no connection was given");
  int rc = warplite_enable(db);
  if (rc)
    return wl_sphyraena_fail(s, rc == SQLITE_NOMEM ? SPHYRAENA_ERR_MEM : SPHYRAENA_ERR_STMT, rc,
                             "%s", warplite_errmsg(db));
  s->db = db;
  s->data_size = data_size;
  s->results_size = results_size;
  s->pinned_memory = pinned_memory;
  s->threads_per_block = SPHYRAENA_THREADS_PER_BLOCK;
  s->stream_width = SPHYRAENA_STREAMWIDTH;
  s->device = "auto";
  return SPHYRAENA_SUCCESS;
}

int sphyraena_cleanup(sphyraena *s) {
  wl_sphyraena_call call;
  if (!s) return SPHYRAENA_ERR_MISUSE;
  if (!s->db) return SPHYRAENA_SUCCESS; /* never initialized, or cleaned up before */
  int rc = wl_sphyraena_enter(s, false, &call);
  if (rc) return rc;
  wl_sphyraena_drop_results(s);
  wl_sphyraena_drop_data(s, call.conn);
  wl_sphyraena_leave(&call);
  sqlite3_finalize(s->stmt_cpu); /* last: it may be what keeps a closed connection alive */
  memset(s, 0, sizeof *s);
  return SPHYRAENA_SUCCESS;
}

int sphyraena_set_device(sphyraena *s, const char *device) {
  static const char *const names[] = {"auto", "cpu", "cuda", "sim"};
  wl_sphyraena_call call;
  wl_error why = {0};
  int rc = wl_sphyraena_enter(s, false, &call);
  if (rc) return rc;
  const char *found = NULL;
  for (int k = 0; k < 4 && device; k++)
    if (strcmp(device, names[k]) == 0) found = names[k];
  bool is_gpu = found && *found != 'a' && strcmp(found, "cpu") != 0;
  if (!device) {
    rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE, "no device was given");
  } else if (!found) {
    rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_DEVICE, SQLITE_ERROR,
                           "there is no device '%.40s'; it is one of auto, cpu, cuda, sim", device);
  } else if (is_gpu && !wl_device_get(found, &why)) {
    rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_DEVICE, SQLITE_ERROR, "%s", why.text);
  } else {
    if (strcmp(s->device, found) != 0) wl_sphyraena_forget_device(s);
    s->device = found;
  }
  wl_sphyraena_leave(&call);
  return rc;
}

/* ---- SELECTs */

/* Prepares a SELECT as stmt_cpu. */
static int prepare(sphyraena *s, const char *sql) {
  wl_mask *mask = NULL;
  const char *tail = "";
  sqlite3_finalize(s->stmt_cpu);
  s->stmt_cpu = NULL;
  int rc = wl_ask_prepare(s->db, sql, -1, &s->stmt_cpu, &tail, &mask);
  wl_mask_free(mask);
  if (rc)
    return wl_sphyraena_fail(s, rc == SQLITE_NOMEM ? SPHYRAENA_ERR_MEM : SPHYRAENA_ERR_STMT, rc,
                             "%s", sqlite3_errmsg(s->db));
  const char *why = wl_select_refused(s->stmt_cpu, tail);
  if (!why) return SPHYRAENA_SUCCESS;
  sqlite3_finalize(s->stmt_cpu);
  s->stmt_cpu = NULL;
  return wl_sphyraena_fail(s, SPHYRAENA_ERR_STMT, SQLITE_ERROR, "sphyraena_select() %s", why);
}

/* Runs a text, or stmt_cpu if sql is NULL. */
static int run(sphyraena *s, const char *sql, bool streaming) {
  wl_sphyraena_call call;
  int rc = wl_sphyraena_enter(s, streaming, &call);
  if (rc) return rc;
  wl_sphyraena_drop_results(s);
  if (!s->data_cpu)
    rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE,
                           "nothing is staged; call sphyraena_prepare_data() first");
  else if (sql)
    rc = prepare(s, sql);
  else if (!s->stmt_cpu)
    rc = wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE,
                           "there is no statement; call sphyraena_select() first");
  if (!rc) rc = wl_sphyraena_run(s, call.conn);
  wl_sphyraena_leave(&call);
  return rc;
}

int sphyraena_select(sphyraena *s, const char *sql_stmt, int streaming) {
  if (s && !sql_stmt)
    return wl_sphyraena_fail(s, SPHYRAENA_ERR_MISUSE, SQLITE_MISUSE, "no statement was given");
  return run(s, sql_stmt, streaming != 0);
}

int sphyraena_vm(sphyraena *s) {
  return run(s, NULL, false);
}

int sphyraena_vm_streaming(sphyraena *s) {
  return run(s, NULL, true);
}
