/*
** Sits between SQLite and the application's authorizer.
**
** SQLite has no function that returns a connection's authorizer. So the calls that set one come
** here (api/authorizer.c): SQLite gets our callback, which calls the application's. That shows
** which answers were IGNORE, and lets the library's own statements pass without asking.
**
** Invariants:
** 1. The application is asked only about its own statements, as often as SQLite alone would prepare
**    them.
** 2. The library's own statements are never denied, and never read NULL because of an IGNORE. So
**    what they put into a cache is what the file contains.
** 3. SQLite runs every statement that an IGNORE changes. It is never run natively.
**
** If an authorizer was known, we notice when another one was set without our knowledge: SQLite no
** longer calls our callback. Then every answer counts as IGNORE. If it is possible that no call
** comes here (wl_authorizer_blind), the columns of tables are tested before each run
** (store/source.c). In this case IGNORE for functions and views is not noticed.
*/
#ifndef WL_AUTHORIZER_H
#define WL_AUTHORIZER_H

#include "base/sqlite.h"
#include <stdbool.h>

typedef int wl_authorizer_call(void *arg, int code, const char *a, const char *b, const char *c,
                               const char *d);

/* Sets the connection's authorizer (NULL: none) through `real`, SQLite's own function. stays: keep
** our callback when the authorizer is removed, so that a statement prepared before can still run
** with the answers that it got. */
typedef int wl_set_authorizer(sqlite3 *db, wl_authorizer_call *call, void *arg);
int wl_authorizer_set(sqlite3 *db, wl_authorizer_call *call, void *arg, bool stays,
                      wl_set_authorizer *real);
/* For the preload library, which has installed a callback of its own: makes `call` the connection's
** authorizer without calling SQLite. NULL: out of memory. The callback passes on each question with
** wl_authorizer_ask() and the record returned here. */
struct authorizer;
struct authorizer *wl_authorizer_know(sqlite3 *db, wl_authorizer_call *call, void *arg);
int wl_authorizer_ask(void *record, int code, const char *a, const char *b, const char *c,
                      const char *d);
/* Called when warplite is enabled on a connection. Drops an authorizer that belonged to an earlier
** connection at the same address. */
void wl_authorizer_adopt(sqlite3 *db);
void wl_authorizer_forget(sqlite3 *db); /* called when the connection closes */

/* Whether the connection has an authorizer of the application that we know of. */
bool wl_authorizer_is_set(sqlite3 *db);

/* Whether the program may set authorizers without calling wl_authorizer_set. */
extern bool wl_authorizer_blind;

/* Between these two calls, every statement on this thread counts as the library's own. Used for
** work on behalf of the application about which it has already been asked. */
void wl_own_begin(void);
void wl_own_end(void);

/* The authorizer calls whose answer was not OK, with the answers. NULL: there are none. */
typedef struct wl_mask wl_mask;
void wl_mask_free(wl_mask *m);
bool wl_mask_ignores(const wl_mask *m); /* some answer was IGNORE */
bool wl_mask_denies(const wl_mask *m);  /* some answer was neither IGNORE nor OK */
/* Whether the answer to this call was IGNORE. b NULL: any second argument. */
bool wl_mask_has(const wl_mask *m, int code, const char *a, const char *b);
/* Converts a mask to a text, which the caller frees with sqlite3_free, and back. NULL: out of
** memory. */
char *wl_mask_text(const wl_mask *m);
wl_mask *wl_mask_read(const char *text);

/* Prepares a statement of the application. Calls its authorizer and adds the answers to *mask,
** which may be NULL before. */
int wl_ask_prepare(sqlite3 *db, const char *sql, int n_bytes, sqlite3_stmt **out, const char **tail,
                   wl_mask **mask);
/* The same for a statement of ours that contains a part of an application's statement. The
** application is not asked about INSERT and SELECT, which are ours. */
int wl_ask_part(sqlite3 *db, const char *sql, sqlite3_stmt **out, wl_mask **mask);
/* Prepares a statement of the application, or a part of it, with answers that it gave before. */
int wl_masked_prepare(sqlite3 *db, const char *sql, int n_bytes, const wl_mask *mask,
                      sqlite3_stmt **out, const char **tail);
/* Steps a statement that is, or contains, text of the application. It may call functions of the
** application, and the authorizer is asked about statements that these prepare. */
int wl_text_step(sqlite3_stmt *s);

#endif
