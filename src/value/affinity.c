/*
** The affinity of a declared type; see affinity.h.
*/
#include "value/affinity.h"
#include "base/sqlite.h"
#include <stdbool.h>
#include <string.h>

/* Whether the declared type contains word, ignoring the case of ASCII letters. */
static bool holds(const char *type, const char *word) {
  size_t n = strlen(word);
  for (; *type; type++)
    if (sqlite3_strnicmp(type, word, (int)n) == 0) return true;
  return false;
}

char wl_affinity_of_type(const char *decl) {
  if (!decl || !*decl) return 'A';
  if (holds(decl, "INT")) return 'D';
  if (holds(decl, "CHAR") || holds(decl, "CLOB") || holds(decl, "TEXT")) return 'B';
  if (holds(decl, "BLOB")) return 'A';
  if (holds(decl, "REAL") || holds(decl, "FLOA") || holds(decl, "DOUB")) return 'E';
  return 'C';
}
