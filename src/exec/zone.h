/* Whether a tablet can be skipped because its zone maps show that no row passes the filters. */
#ifndef WL_ZONE_H
#define WL_ZONE_H

#include "program/program.h"
#include "column/column.h"

bool wl_zone_skips(const wl_program *p, wl_column **cols, int tablet);

#endif
