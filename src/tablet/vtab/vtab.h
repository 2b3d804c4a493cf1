/* The virtual table module `tablet`. */
#ifndef WL_TABLET_VTAB_H
#define WL_TABLET_VTAB_H

#include "base/sqlite.h"

int wl_tablet_register(sqlite3 *db);

#endif
