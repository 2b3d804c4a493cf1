/* What bulk.c shares with the other ways of loading. */
#ifndef WL_BULK_H
#define WL_BULK_H

#include "tablet/table_impl.h"

/* The column as one of that affinity stores it: the same, held, or another. */
wl_status wl_bulk_convert(char affinity, wl_column *c, wl_column **out, wl_error *err) WL_MUST;

#endif
