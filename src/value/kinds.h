/*
** The types of registers and of stored columns, for code that also compiles for a device.
*/
#ifndef WL_KINDS_H
#define WL_KINDS_H

typedef enum wl_regtype { WL_R_INT, WL_R_REAL, WL_R_TRUTH, WL_R_TEXT, WL_R_ANY } wl_regtype;

/* Physical column types; see column/column.h. */
typedef enum wl_phys {
  WL_P_I8,
  WL_P_I16,
  WL_P_I32,
  WL_P_I64,
  WL_P_F32,
  WL_P_F64,
  WL_P_TEXT, /* 8-byte offsets into the heap */
  WL_P_ANY   /* for each row a tag, and 8 bytes: integer, real, or offset into the heap */
} wl_phys;

/* What is computed from the state of an accumulator (aggregates.h). */
typedef enum wl_agg_final {
#define WL_AGG_FINAL(name) WL_AGG_##name,
#include "value/aggregates.def"
#undef WL_AGG_FINAL
} wl_agg_final;

#endif
