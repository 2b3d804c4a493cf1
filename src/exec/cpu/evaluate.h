/*
** Compile-time evaluation by the CPU machine: what program/evaluate.h asks for.
*/
#ifndef WL_CPU_EVALUATE_H
#define WL_CPU_EVALUATE_H

#include "program/evaluate.h"

wl_status wl_cpu_evaluate(const wl_evaluation *e, wl_evaluated *out, wl_error *err) WL_MUST;

#endif
