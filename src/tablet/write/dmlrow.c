/*
** Rows that stand for changes already made: see dmlrow.h. dml/vtab.c, the source of the rewritten
** statement, makes the values; xUpdate of the module reads them.
*/
#include "tablet/write/dmlrow.h"
#include "base/fork.h"

/* All open runs. A connection may move between threads, so all threads share one list. */
static wl_dmlrun *runs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void protect_lock_at_fork(void) {
  wl_fork_lock(&lock);
}

wl_i64 wl_dmlrun_token(void) {
  wl_i64 token;
  sqlite3_randomness((int)sizeof token, &token);
  return (token & ~(wl_i64)3) | 4; /* never 0 */
}

void wl_dmlrun_open(wl_dmlrun *r, sqlite3 *db, wl_i64 token) {
  *r = (wl_dmlrun){.db = db, .last_rowid = sqlite3_last_insert_rowid(db)};
  r->at_once = token != 0;
  r->token = token ? token : wl_dmlrun_token();
  pthread_mutex_lock(&lock);
  r->next = runs;
  runs = r;
  pthread_mutex_unlock(&lock);
}

void wl_dmlrun_close(wl_dmlrun *r) {
  if (!r->db) return;
  pthread_mutex_lock(&lock);
  wl_dmlrun **at = &runs;
  while (*at && *at != r) at = &(*at)->next;
  if (*at) *at = r->next;
  pthread_mutex_unlock(&lock);
  r->db = NULL;
}

void wl_dmlrun_number(wl_dmlrun *r, sqlite3_context *ctx) {
  sqlite3_result_int64(ctx, r->token | r->kind);
}

static wl_dmlrun *find_run(sqlite3 *db, wl_i64 token) {
  pthread_mutex_lock(&lock);
  wl_dmlrun *r = runs;
  while (r && (r->db != db || r->token != token)) r = r->next;
  pthread_mutex_unlock(&lock);
  return r;
}

bool wl_dmlrow_read(sqlite3 *db, sqlite3_value **argv, sqlite3_value *v, int *rc,
                    sqlite3_int64 *rowid, const char **text) {
  if (sqlite3_value_type(v) != SQLITE_INTEGER) return false;
  wl_i64 token = sqlite3_value_int64(v);
  wl_dmlrun *r = find_run(db, token & ~(wl_i64)3);
  if (!r) return false;
  int kind = r->at_once ? r->kind : (int)(token & 3);
  *rowid = r->at_once ? r->rowid : sqlite3_value_int64(argv[1]);
  *rc = kind == WL_DMLROW_FAILS ? r->code : SQLITE_OK;
  *text = r->text;
  if (kind == WL_DMLROW_NEW)
    r->last_rowid = *rowid;
  else
    *rowid = r->last_rowid;
  return true;
}
