/*
** The names of collations; see collation.h.
*/
#include "value/collation.h"
#include "base/sqlite.h"
#include "value/value.h"
#include <assert.h>

enum { N_COLLATIONS = 3 };

static const char *const names[N_COLLATIONS] = {[WL_COLL_BINARY] = "BINARY",
                                                [WL_COLL_NOCASE] = "NOCASE",
                                                [WL_COLL_RTRIM] = "RTRIM"};

const char *wl_collation_name(int coll) {
  assert(coll >= 0 && coll < N_COLLATIONS);
  return names[coll];
}

int wl_collation_find(const char *name) {
  for (int k = 0; name && k < N_COLLATIONS; k++)
    if (sqlite3_stricmp(name, names[k]) == 0) return k;
  return -1;
}

bool wl_collation_is(const char *name, int coll) {
  return coll >= 0 && wl_collation_find(name) == coll;
}
