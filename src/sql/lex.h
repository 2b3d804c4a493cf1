/*
** The lexer: the first step of a query. It cuts SQL text into SQLite's tokens, by
** position only; what a token means (unquoting, numbers) is for the tree's builders.
**
** Invariants:
** 1. Tokens never overlap, come in order, and lie inside [0, n) of the text; only the
**    token at the end of the text (kind 0) is empty.
** 2. Space and comments are skipped, never returned.
** 3. A keyword that SQLite treats as one only in some places (WINDOW, OVER, FILTER) is
**    returned as a keyword only in those places, elsewhere as a plain name.
*/
#ifndef WL_LEX_H
#define WL_LEX_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wl_token {
  size_t pos, n; /* n == 0: no token (an optional one left out, or the end) */
} wl_token;

typedef struct wl_lexer {
  const char *sql;
  size_t n;
  size_t pos; /* where the next token is looked for */
  int prev;   /* kind of the token returned last, 0 at the start */
} wl_lexer;

enum { WL_LEX_END = 0, WL_LEX_ILLEGAL = -1 }; /* beside the grammar's token numbers */

/* The text ends at n or at its first NUL byte, whichever is first. */
void wl_lex_init(wl_lexer *lex, const char *sql, size_t n);

/* The next token: its kind (a number of the grammar's header, or one of the above). */
int wl_lex_next(wl_lexer *lex, wl_token *tok);

/* Whether the token is this word (given in upper case), in any case, unquoted. */
bool wl_lex_is(const char *sql, wl_token tok, const char *word);

#endif
