/*
** Opens and closes a worker of the CPU machine (exec.h): decides where each register is stored
** and sets up the constants.
*/
#include "base/mem.h"
#include "exec/cpu/exec_impl.h"
#include "exec/executed.h"
#include "value/conv.h"
#include "value/scratch.h"
#include <string.h>

enum { PLACE_BYTES = WL_VECTOR * (8 + 4 + 1) }; /* bytes of a vector: values, lengths, tags */

/* Whether an instruction other than Result reads register r, from pc on. */
static bool read_inside(const wl_exec *x, int pc, wl_i16 r) {
  for (; pc < x->end; pc++) {
    const wl_instr *in = &x->p->code[pc];
    if (in->op == WL_OP__Result) continue;
    for (int k = 0; k < wl_program_n_reads(x->p, in); k++)
      if (wl_program_read(x->p, in, k) == r) return true;
  }
  return false;
}

/*
** If a column is only returned, and is loaded after the last filter, it is loaded directly into the
** batch: the register's vector is the place in the batch where its rows belong.
*/
static void note_direct(wl_exec *x) {
  const wl_program *p = x->p;
  int last_filter = 0;
  for (int pc = 0; pc < x->end; pc++)
    if (p->code[pc].op == WL_OP__IfNot || p->code[pc].op == WL_OP__Probe ||
        p->code[pc].op == WL_OP__Expand || p->code[pc].op == WL_OP__Match)
      last_filter = pc;
  for (int k = 0; k < p->n_results && !x->source; k++) {
    wl_i16 r = p->results[k].operand;
    if (WL_IS_CONST(r) || x->direct[r] >= 0 || p->regs[r].type > WL_R_REAL) continue;
    int at = x->live.set_at[r];
    if (at < last_filter || p->code[at].op != WL_OP__Column) continue;
    if (!read_inside(x, at + 1, r)) x->direct[r] = k;
  }
}

/* Sets the vectors of the registers that the code sets. */
static void lay_registers(wl_exec *x, const int *place) {
  const wl_program *p = x->p;
  for (int r = 0; r < p->n_regs; r++) {
    if (x->live.set_at[r] < 0) continue;
    wl_u8 *at = (wl_u8 *)x->memory + (size_t)place[r] * PLACE_BYTES;
    plane *q = &x->regs[r];
    q->type = p->regs[r].type;
    q->stride = 1;
    q->v = (wl_u64 *)at;
    q->n = (wl_u32 *)(at + WL_VECTOR * 8);
    bool tagged = p->regs[r].nullable || q->type == WL_R_ANY || q->type == WL_R_TRUTH;
    q->t = tagged ? at + WL_VECTOR * 12 : NULL;
  }
}

/* Stores the constants. Each has 8 bytes for its value, then its length, its tag, and its value as
** a truth (CONST_TRUTH). */
static void lay_constants(wl_exec *x, wl_u8 *at) {
  wl_u8 *zeros = at;
  memset(zeros, 0, WL_VECTOR);
  at += WL_VECTOR;
  for (int k = 0; k < x->p->n_consts; k++, at += CONST_BYTES) {
    plane *q = &x->consts[k];
    wl_val v = x->p->consts[k];
    q->v = (wl_u64 *)at;
    q->n = (wl_u32 *)(at + 8);
    q->v[0] = v.v;
    q->n[0] = v.n;
    at[16] = v.t;
    at[CONST_TRUTH] = v.t == WL_T_NULL ? WL_UNKNOWN : v.v ? WL_TRUE : WL_FALSE;
    q->type = v.t == WL_T_TEXT   ? WL_R_TEXT
              : v.t == WL_T_BLOB ? WL_R_ANY
              : v.t == WL_T_REAL ? WL_R_REAL
                                 : WL_R_INT;
    q->t = v.t == WL_T_NULL ? zeros : v.t == WL_T_BLOB ? at + 16 : NULL;
  }
}

/* Allocates the notes about registers, results and instructions. */
static wl_status open_notes(wl_exec *x) {
  const wl_program *p = x->p;
  size_t n_regs = (size_t)p->n_regs + 1;
  x->regs = wl_mem_zalloc(n_regs * sizeof *x->regs);
  x->consts = wl_mem_zalloc(((size_t)p->n_consts + 1) * sizeof *x->consts);
  x->live.set_at = wl_mem_alloc(n_regs * sizeof(int));
  x->live.last_read = wl_mem_alloc(n_regs * sizeof(int));
  x->direct = wl_mem_alloc(n_regs * sizeof *x->direct);
  x->pending = wl_mem_alloc(n_regs * sizeof *x->pending);
  x->keys = wl_mem_zalloc(((size_t)p->n_keys + (size_t)p->n_order + 1) * sizeof *x->keys);
  x->ran = wl_mem_zalloc((size_t)x->end + 1);
  if (!x->regs || !x->consts || !x->live.set_at || !x->live.last_read || !x->direct ||
      !x->pending || !x->keys || !x->ran)
    return WL_NOMEM;
  memset(x->direct, -1, n_regs * sizeof *x->direct);
  memset(x->pending, -1, n_regs * sizeof *x->pending);
  return WL_OK;
}

static wl_status open_registers(wl_exec *x) {
  const wl_program *p = x->p;
  size_t n_regs = (size_t)p->n_regs + 1;
  wl_live_block block = {.p = p, .end = x->end};
  int *place = wl_mem_alloc(2 * n_regs * sizeof *place);
  wl_status rc = place ? WL_OK : WL_NOMEM;
  if (!rc) {
    wl_liveness_find(&block, &x->live);
    if (wl_sink_takes_rows(p->sink)) note_direct(x);
    size_t n = (size_t)wl_liveness_place(&block, &x->live, false, place, place + n_regs);
    x->memory = wl_mem_alloc(n * PLACE_BYTES + WL_VECTOR + (size_t)p->n_consts * CONST_BYTES);
    if (x->memory) {
      lay_registers(x, place);
      lay_constants(x, (wl_u8 *)x->memory + n * PLACE_BYTES);
    } else {
      rc = WL_NOMEM;
    }
  }
  wl_mem_free(place);
  return rc;
}

wl_status wl_exec_open(const wl_program *p, wl_column **cols, const wl_srccol *source,
                       wl_u64 max_text, wl_exec **out, wl_error *err) {
  wl_exec *x = *out = wl_mem_zalloc(sizeof *x);
  if (!x) return wl_nomem(err);
  x->p = p;
  x->end = p->n_code;
  x->cols = cols;
  x->source = source;
  x->ctx.fault = &x->fault;
  x->ctx.max_text = max_text;
  wl_exec_prepare();
  wl_status rc = WL_OK;
  for (int k = 0; k < p->n_columns && cols && !rc; k++)
    if (wl_column_source(p, k) != WL_NO_SOURCE) rc = wl_column_fetch(cols[k], err);
  if (rc) {
    wl_mem_free(x);
    *out = NULL;
    return rc;
  }
  rc = open_notes(x);
  if (!rc) rc = open_registers(x);
  if (!rc) rc = wl_exec_open_joins(x);
  if (rc) wl_nomem(err); /* nothing else can fail so far */
  if (!rc) rc = wl_conv_take(&x->ctx.conv, err);
  if (!rc) return WL_OK;
  wl_exec_close(x);
  *out = NULL;
  return rc;
}

void wl_exec_close(wl_exec *x) {
  if (!x) return;
  if (x->tally) wl_exec_add_up(x);
  wl_scratch_close(&x->ctx);
  wl_conv_give(x->ctx.conv);
  wl_exec_close_joins(x);
  wl_mem_free(x->memory);
  wl_mem_free(x->regs);
  wl_mem_free(x->consts);
  wl_mem_free(x->live.set_at);
  wl_mem_free(x->live.last_read);
  wl_mem_free(x->direct);
  wl_mem_free(x->pending);
  wl_mem_free(x->call_room);
  wl_mem_free(x->keys);
  for (int pc = 0; x->ran && pc < x->end; pc++)
    if (x->ran[pc]) wl_executed_opcode(WL_ON_CPU, x->p->code[pc].op);
  wl_mem_free(x->ran);
  wl_mem_free(x);
}
