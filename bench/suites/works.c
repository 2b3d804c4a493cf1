#include "gen.h"
void works_make(struct sink *s, double scale) {
  (void)s;
  (void)scale;
}
