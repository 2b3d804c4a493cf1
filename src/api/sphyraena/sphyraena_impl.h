/*
** What the files behind include/sphyraena.h share.
**
** Invariants:
** 1. Every public function works between wl_sphyraena_enter() and wl_sphyraena_leave(): with the
**    connection's mutex held, and with its settings changed to what the sphyraena asks for. The
**    settings are put back.
** 2. Everything that a sphyraena points to belongs to it, and its pointers are NULL or valid.
*/
#ifndef WL_SPHYRAENA_IMPL_H
#define WL_SPHYRAENA_IMPL_H

#include "route/conn.h"
#include "sphyraena.h"

/* The connection of a sphyraena during a call. */
typedef struct wl_sphyraena_call {
  wl_conn *conn;
  wl_settings before;
} wl_sphyraena_call;

/* Fails if s is NULL or has not been initialized. Otherwise leave must follow. */
int wl_sphyraena_enter(sphyraena *s, bool streaming, wl_sphyraena_call *call) WL_MUST;
void wl_sphyraena_leave(wl_sphyraena_call *call);

/* Sets the message, and returns code. */
int wl_sphyraena_fail(sphyraena *s, int code, int sqlite_code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The error of a statement: SPHYRAENA_ERR_MEM if memory ran out, else SPHYRAENA_ERR_STMT. */
int wl_sphyraena_failed(sphyraena *s, const wl_error *err);

/* ---- stage.c */
void wl_sphyraena_drop_data(sphyraena *s, wl_conn *c); /* unloads it, too */
void wl_sphyraena_forget_device(sphyraena *s);         /* data_gpu becomes NULL */

/* ---- results.c */
void wl_sphyraena_drop_results(sphyraena *s);
/* Runs stmt_cpu, and sets results_gpu. */
int wl_sphyraena_run(sphyraena *s, wl_conn *c) WL_MUST;

#endif
