/*
** The text that TPC-H's comments are cut from: sentences by the grammar of the
** specification, with its words and about their shares.
*/
#ifndef SUITES_TEXT_H
#define SUITES_TEXT_H

#include "gen.h"

/* A piece of the text, least to most bytes; it stays where it is. */
const char *random_text(struct random *r, int least, int most, int *n);
void put_comment(struct sink *s, struct random *r, int least, int most);

#endif
