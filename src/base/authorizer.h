/*
** The application's authorizer, between SQLite and the application.
**
** SQLite cannot be asked which authorizer a connection has. So the calls that set one come here
** (api/authorizer.c): SQLite gets a callback of ours, which passes its questions on. That shows
** which answers were IGNORE, and lets the library's own statements pass without a question.
**
** Invariants:
** 1. The application is asked about its own statements only, once for each time that SQLite alone
**    would prepare them.
** 2. The library's own statements are never denied and never get NULL for what they read, so what
**    they put into a cache is what the file holds.
** 3. What an IGNORE changed is run by SQLite, never natively.
**
** An authorizer that was set behind our back is noticed where one was known before (the callback
** is no longer ours): then all is as if it had answered IGNORE. Where it can be that none of them
** comes here (wl_authorizer_blind), the columns of tables are tried before each run
** (store/source.c); IGNORE of functions and of views is not seen then.
*/
#ifndef WL_AUTHORIZER_H
#define WL_AUTHORIZER_H

#include "base/sqlite.h"
#include <stdbool.h>

typedef int wl_authorizer_call(void *arg, int code, const char *a, const char *b, const char *c,
                               const char *d);

/* Sets the connection's authorizer, NULL for none, through `real`, SQLite's own function. stays: our
** callback stays when it is removed, so that a statement prepared before can still be run by the
** answers that it got. */
typedef int wl_set_authorizer(sqlite3 *db, wl_authorizer_call *call, void *arg);
int wl_authorizer_set(sqlite3 *db, wl_authorizer_call *call, void *arg, bool stays,
                      wl_set_authorizer *real);
/* A connection that warplite is enabled on: whether what is known of its address is true of it. */
void wl_authorizer_adopt(sqlite3 *db);
void wl_authorizer_forget(sqlite3 *db); /* it closes */

/* Whether the connection has an authorizer of the application's that we know of. */
bool wl_authorizer_is_set(sqlite3 *db);

/* Whether the program may set authorizers that do not come here. */
extern bool wl_authorizer_blind;

/* Between these two, on this thread, every statement is the library's own: for what is done in the
** application's name when it has been asked already. */
void wl_own_begin(void);
void wl_own_end(void);

/* The questions whose answer was not OK, with the answers. NULL: there are none. */
typedef struct wl_mask wl_mask;
void wl_mask_free(wl_mask *m);
bool wl_mask_ignores(const wl_mask *m); /* one of them was IGNORE */
bool wl_mask_denies(const wl_mask *m);  /* one was neither that nor OK */
/* Whether that one was answered by IGNORE: b may be NULL for any. */
bool wl_mask_has(const wl_mask *m, int code, const char *a, const char *b);
/* As a text, sqlite3_free'd by the caller, and back. NULL: out of memory. */
char *wl_mask_text(const wl_mask *m);
wl_mask *wl_mask_read(const char *text);

/* Prepares a statement of the application's. Its authorizer is asked, and the answers are added to
** *mask, which may be NULL before. */
int wl_ask_prepare(sqlite3 *db, const char *sql, int n_bytes, sqlite3_stmt **out, const char **tail,
                   wl_mask **mask);
/* The same for a statement of ours with a part of the application's in it: INSERT and SELECT are
** ours, and are not asked about. */
int wl_ask_part(sqlite3 *db, const char *sql, sqlite3_stmt **out, wl_mask **mask);
/* Prepares a statement of the application's, or a piece of it, by answers that it gave before. */
int wl_masked_prepare(sqlite3 *db, const char *sql, int n_bytes, const wl_mask *mask,
                      sqlite3_stmt **out, const char **tail);
/* Steps a statement that is, or contains, text of the application's: it may call functions of the
** application's, and about what these prepare the authorizer is asked. */
int wl_text_step(sqlite3_stmt *s);

#endif
