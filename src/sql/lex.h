/*
** The lexer, the first step of a query. It splits SQL text into SQLite's tokens, by position only.
** The builders of the tree (build.h) interpret them: they remove quotes and convert numbers.
**
** Invariants:
** 1. Tokens never overlap, come in order, and lie inside [0, n) of the text. Only the token at the
**    end of the text (kind 0) is empty.
** 2. Space and comments are skipped, never returned.
** 3. Some words are keywords only in some places (WINDOW, OVER, FILTER). They are returned as
**    keywords only there, and as plain names elsewhere.
*/
#ifndef WL_LEX_H
#define WL_LEX_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wl_token {
  size_t pos, n; /* n == 0: no token (an optional one was left out, or the end) */
} wl_token;

typedef struct wl_lexer {
  const char *sql;
  size_t n;
  size_t pos; /* where the next token starts */
  int prev;   /* kind of the last token, 0 at the start */
} wl_lexer;

enum { WL_LEX_END = 0, WL_LEX_ILLEGAL = -1 }; /* in addition to the grammar's token numbers */

/* The text ends at n or at its first NUL byte, whichever comes first. */
void wl_lex_init(wl_lexer *lex, const char *sql, size_t n);

/* Reads the next token and returns its kind: a number from the grammar's header, or one of the
** above. */
int wl_lex_next(wl_lexer *lex, wl_token *tok);

/* Whether the token is this unquoted word, in upper or lower case. word is in upper case. */
bool wl_lex_is(const char *sql, wl_token tok, const char *word);

#endif
