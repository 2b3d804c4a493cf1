#include "base/authorizer.h"
#include "base/fork.h"
#include "base/mem.h"
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The authorizer of one connection. The record stays when the authorizer is removed. It is changed
** only while the connection's SQLite mutex is held. */
typedef struct authorizer {
  struct authorizer *next;
  sqlite3 *db;
  wl_authorizer_call *call; /* NULL: none */
  void *arg;
  sqlite3_int64 n_calls; /* how often SQLite called our callback */
  wl_mask **noted;       /* where answers other than OK are recorded, or NULL */
} authorizer;

bool wl_authorizer_blind = true;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static authorizer *authorizers;

__attribute__((constructor)) static void guard(void) {
  wl_fork_lock(&lock);
}

/* Whose statement SQLite is preparing on this thread. */
enum { THEIRS, OURS, PARTLY };
static _Thread_local int whose = THEIRS;
static _Thread_local const wl_mask *masking; /* answers for a statement of ours */
static _Thread_local int n_begun;            /* calls of wl_own_begin() without wl_own_end() */

static authorizer *find(sqlite3 *db) {
  pthread_mutex_lock(&lock);
  authorizer *a = authorizers;
  while (a && a->db != db) a = a->next;
  pthread_mutex_unlock(&lock);
  return a;
}

/* ---- masks */

typedef struct question {
  struct question *next;
  int code, answer;
  char *texts[4]; /* in the same block, or NULL */
} question;

struct wl_mask {
  question *first;
  bool unknown; /* SQLite called an authorizer that we do not know */
  bool lost;    /* out of memory, so an answer is missing */
};

static bool same(const char *x, const char *y) {
  return x && y ? strcmp(x, y) == 0 : x == y;
}

void wl_mask_free(wl_mask *m) {
  if (!m) return;
  while (m->first) {
    question *q = m->first;
    m->first = q->next;
    wl_mem_free(q);
  }
  wl_mem_free(m);
}

bool wl_mask_ignores(const wl_mask *m) {
  for (const question *q = m ? m->first : NULL; q; q = q->next)
    if (q->answer == SQLITE_IGNORE) return true;
  return m && m->unknown;
}

bool wl_mask_denies(const wl_mask *m) {
  for (const question *q = m ? m->first : NULL; q; q = q->next)
    if (q->answer != SQLITE_IGNORE) return true;
  return false;
}

bool wl_mask_has(const wl_mask *m, int code, const char *a, const char *b) {
  for (const question *q = m ? m->first : NULL; q; q = q->next)
    if (q->code == code && q->answer == SQLITE_IGNORE && same(q->texts[0], a) &&
        (!b || same(q->texts[1], b)))
      return true;
  return false;
}

static int answered(const wl_mask *m, int code, const char *const texts[4]) {
  for (const question *q = m ? m->first : NULL; q; q = q->next) {
    int k = 0;
    while (q->code == code && k < 4 && same(q->texts[k], texts[k])) k++;
    if (k == 4) return q->answer;
  }
  return SQLITE_OK;
}

static void note(wl_mask *m, int code, int answer, const char *const texts[4]) {
  if (answered(m, code, texts) != SQLITE_OK) return;
  size_t n = sizeof(question);
  for (int k = 0; k < 4; k++) n += texts[k] ? strlen(texts[k]) + 1 : 0;
  question *q = wl_mem_zalloc(n);
  if (!q) {
    m->lost = true;
    return;
  }
  q->code = code;
  q->answer = answer;
  char *at = (char *)(q + 1);
  for (int k = 0; k < 4; k++) {
    if (!texts[k]) continue;
    q->texts[k] = strcpy(at, texts[k]);
    at += strlen(at) + 1;
  }
  q->next = m->first;
  m->first = q;
}

/* For each question: its code and answer, then for each of four texts the number of bytes (-1 for
** NULL) and the bytes. */
char *wl_mask_text(const wl_mask *m) {
  sqlite3_str *s = sqlite3_str_new(NULL);
  sqlite3_str_appendall(s, m->unknown ? "?" : ".");
  for (const question *q = m->first; q; q = q->next) {
    sqlite3_str_appendf(s, "%d %d ", q->code, q->answer);
    for (int k = 0; k < 4; k++) {
      const char *text = q->texts[k];
      sqlite3_str_appendf(s, "%d %s", text ? (int)strlen(text) : -1, text ? text : "");
    }
  }
  return sqlite3_str_finish(s);
}

/* A text in another format counts as IGNORE. */
wl_mask *wl_mask_read(const char *text) {
  wl_mask *m = wl_mem_zalloc(sizeof *m);
  if (!m) return NULL;
  m->unknown = *text != '.';
  char *at = (char *)text + (*text != 0);
  while (isdigit((unsigned char)*at) && !m->lost) {
    char *texts[4] = {NULL};
    int code = (int)strtol(at, &at, 10), answer = (int)strtol(at, &at, 10);
    at += *at == ' ';
    for (int k = 0; k < 4; k++) {
      long n = strtol(at, &at, 10);
      at += *at == ' ';
      if (n < 0) continue;
      if (n > (long)strlen(at)) {
        m->unknown = true;
        break;
      }
      texts[k] = wl_mem_zalloc((size_t)n + 1);
      if (texts[k])
        memcpy(texts[k], at, (size_t)n);
      else
        m->lost = true;
      at += n;
    }
    note(m, code, answer, (const char *const *)texts);
    for (int k = 0; k < 4; k++) wl_mem_free(texts[k]);
  }
  m->unknown |= *at != 0;
  if (!m->lost) return m;
  wl_mask_free(m);
  return NULL;
}

/* ---- what SQLite calls */

static bool is_number(const char *s, size_t n, int (*digit)(int)) {
  for (size_t i = 0; i < n; i++)
    if (!digit((unsigned char)s[i])) return false;
  return s[n] == 0;
}

/* Whether it is about a name that occurs only in statements of ours. SQLite may prepare these again
** on its own while the application steps them. */
static bool is_ours(int code, const char *a, const char *b) {
  static const char *const tables[] = {"wl_dml",      "wl_plan",  "wl_program",
                                       "wl_analysis", "wl_error", "wl_rowids"};
  if (code == SQLITE_FUNCTION) return b && (strcmp(b, "wl_args") == 0 || strcmp(b, "wl_real") == 0);
  if (code != SQLITE_READ || !a || strncmp(a, "wl_", 3) != 0) return false;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (strcmp(a, tables[i]) == 0) return true;
  if (strncmp(a, "wl_dml_", 7) == 0) return is_number(a + 7, strlen(a + 7), isdigit);
  return strlen(a) == 3 + 16 && is_number(a + 3, 16, isxdigit);
}

int wl_authorizer_ask(void *p, int code, const char *a, const char *b, const char *c,
                      const char *d) {
  authorizer *w = p;
  const char *const texts[4] = {a, b, c, d};
  w->n_calls++;
  if (whose == OURS || n_begun) return answered(masking, code, texts);
  if (!w->call || is_ours(code, a, b)) return SQLITE_OK;
  if (whose == PARTLY && (code == SQLITE_INSERT || code == SQLITE_SELECT)) return SQLITE_OK;
  int answer = w->call(w->arg, code, a, b, c, d);
  if (answer == SQLITE_OK || !w->noted) return answer;
  if (!*w->noted) *w->noted = wl_mem_zalloc(sizeof **w->noted);
  if (*w->noted) note(*w->noted, code, answer, texts);
  return *w->noted ? answer : SQLITE_DENY;
}

/* ---- life */

/* Whether SQLite calls our callback. */
static bool is_installed(authorizer *w) {
  sqlite3_stmt *s = NULL;
  sqlite3_int64 before = w->n_calls;
  sqlite3_prepare_v2(w->db, "SELECT 1", -1, &s, NULL);
  sqlite3_finalize(s);
  return w->n_calls != before;
}

/* Finds or makes the record of a connection and sets its authorizer. */
authorizer *wl_authorizer_know(sqlite3 *db, wl_authorizer_call *call, void *arg) {
  authorizer *w = find(db);
  if (!w) {
    w = wl_mem_zalloc(sizeof *w);
    if (!w) return NULL;
    w->db = db;
    pthread_mutex_lock(&lock);
    w->next = authorizers;
    authorizers = w;
    pthread_mutex_unlock(&lock);
  }
  w->call = call;
  w->arg = arg;
  return w;
}

int wl_authorizer_set(sqlite3 *db, wl_authorizer_call *call, void *arg, bool stays,
                      wl_set_authorizer *real) {
  if (!db) return real(db, call, arg);
  authorizer *w = find(db);
  if (w || call) w = wl_authorizer_know(db, call, arg);
  if (!w && call) return SQLITE_NOMEM;
  if (!call && stays && w && is_installed(w)) return SQLITE_OK;
  return real(db, call ? wl_authorizer_ask : NULL, w);
}

void wl_authorizer_forget(sqlite3 *db) {
  pthread_mutex_lock(&lock);
  for (authorizer **at = &authorizers; *at; at = &(*at)->next) {
    authorizer *w = *at;
    if (w->db != db) continue;
    *at = w->next;
    wl_mem_free(w);
    break;
  }
  pthread_mutex_unlock(&lock);
}

bool wl_authorizer_is_set(sqlite3 *db) {
  const authorizer *w = find(db);
  return w && w->call;
}

void wl_authorizer_adopt(sqlite3 *db) {
  authorizer *w = find(db);
  if (w && w->call && !is_installed(w)) w->call = NULL; /* from an earlier connection */
}

/* ---- statements of ours */

void wl_own_begin(void) {
  n_begun++;
}

void wl_own_end(void) {
  assert(n_begun > 0);
  n_begun--;
}

int wl_own_prepare_v3(sqlite3 *db, const char *sql, int n_bytes, unsigned flags, sqlite3_stmt **out,
                      const char **tail) {
  int before = whose;
  whose = OURS;
  int rc = sqlite3_api->prepare_v3(db, sql, n_bytes, flags, out, tail);
  whose = before;
  return rc;
}

int wl_own_prepare_v2(sqlite3 *db, const char *sql, int n_bytes, sqlite3_stmt **out,
                      const char **tail) {
  int before = whose;
  whose = OURS;
  int rc = sqlite3_api->prepare_v2(db, sql, n_bytes, out, tail);
  whose = before;
  return rc;
}

int wl_own_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *arg,
                char **message) {
  int before = whose;
  whose = OURS;
  int rc = sqlite3_api->exec(db, sql, row, arg, message);
  whose = before;
  return rc;
}

static int step_as(sqlite3_stmt *s, int as) {
  int before = whose;
  whose = as;
  int rc = sqlite3_api->step(s);
  whose = before;
  return rc;
}

int wl_own_step(sqlite3_stmt *s) {
  return step_as(s, OURS);
}

int wl_masked_prepare(sqlite3 *db, const char *sql, int n_bytes, const wl_mask *mask,
                      sqlite3_stmt **out, const char **tail) {
  const wl_mask *before = masking;
  masking = mask;
  int rc = sqlite3_prepare_v2(db, sql, n_bytes, out, tail);
  masking = before;
  return rc;
}

/* ---- statements of the application */

static int prepare(sqlite3 *db, int as, const char *sql, int n_bytes, sqlite3_stmt **out,
                   const char **tail, wl_mask **mask) {
  authorizer *w = find(db);
  int before = whose;
  sqlite3_int64 n_calls = w ? w->n_calls : 0;
  wl_mask **noted = w ? w->noted : NULL;
  if (w) w->noted = mask;
  whose = as;
  int rc = sqlite3_api->prepare_v2(db, sql, n_bytes, out, tail);
  whose = before;
  if (w) w->noted = noted;
  if (rc == SQLITE_OK && *out && w && w->call && w->n_calls == n_calls) {
    if (!*mask) *mask = wl_mem_zalloc(sizeof **mask);
    if (*mask) (*mask)->unknown = true;
    if (!*mask) rc = SQLITE_NOMEM;
  }
  if (*mask && (*mask)->lost) rc = SQLITE_NOMEM;
  if (rc == SQLITE_NOMEM) {
    sqlite3_finalize(*out);
    *out = NULL;
  }
  return rc;
}

int wl_ask_prepare(sqlite3 *db, const char *sql, int n_bytes, sqlite3_stmt **out, const char **tail,
                   wl_mask **mask) {
  return prepare(db, THEIRS, sql, n_bytes, out, tail, mask);
}

int wl_ask_part(sqlite3 *db, const char *sql, sqlite3_stmt **out, wl_mask **mask) {
  return prepare(db, PARTLY, sql, -1, out, NULL, mask);
}

int wl_text_step(sqlite3_stmt *s) {
  return step_as(s, THEIRS);
}
