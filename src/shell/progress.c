/*
** The progress bar. The shell shows it if reading a table into memory takes longer than a second.
** The library calls this through warplite_progress().
**
** Invariants:
** 1. Nothing is written unless standard error is a terminal.
** 2. The bar is one line. It is erased before anything else is written: the library reports the end
**    of a load, and nothing else is printed during a load.
*/
#include "shell.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BAR_CELLS = 30, REDRAW_MS = 100, DEFAULT_DELAY_MS = 1000 };

static struct {
  double delay_ms;       /* a load shorter than this is not shown */
  double started, drawn; /* in milliseconds */
  bool shown;
  bool terminal; /* standard error is a terminal */
} bar;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void draw(const char *table, double share) {
  char cells[BAR_CELLS + 1];
  int full = (int)(share * BAR_CELLS);
  memset(cells, '#', (size_t)full);
  memset(cells + full, '.', (size_t)(BAR_CELLS - full));
  cells[BAR_CELLS] = 0;
  if (!bar.shown) fflush(stdout);
  fprintf(stderr, "\rloading %.40s [%s] %3d %%", table, cells, (int)(share * 100));
  fflush(stderr);
  bar.shown = true;
}

static void progress(void *arg, const char *table, sqlite3_int64 done, sqlite3_int64 total) {
  (void)arg;
  double now = now_ms();
  if (done == 0) bar.started = now;
  if (done < total) {
    if (now - bar.started < bar.delay_ms || (bar.shown && now - bar.drawn < REDRAW_MS)) return;
    bar.drawn = now;
    draw(table, (double)done / (double)total);
  } else if (bar.shown) {
    fputs("\r\033[K", stderr);
    fflush(stderr);
    bar.shown = false;
  }
}

void wl_progress_tell(const char *table, sqlite3_int64 done, sqlite3_int64 total) {
  if (bar.terminal) progress(NULL, table, done, total);
}

void wl_progress_watch(sqlite3 *db) {
  const char *delay = getenv("WARPLITE_PROGRESS");
  if (!isatty(STDERR_FILENO)) return;
  bar.terminal = true;
  bar.delay_ms = delay ? atof(delay) * 1e3 : DEFAULT_DELAY_MS;
  warplite_progress(db, progress, NULL);
}
