/*
** Damaged files: bytes of small databases are changed at random, and the loader that
** decodes pages must see rows exactly as SQLite does, or leave the table to SQLite; never
** crash, and never load what SQLite calls malformed.
**
**     unit_btree_fuzz [SEED [FILES]]
*/
#include "loaded.h"

enum { MAX_FILE = 1 << 20 };

static char dir[200], path[260];
static wl_u8 image[MAX_FILE], damaged[MAX_FILE];

/* Moves the rowids, so that they need another number of bytes from some row on. */
static void move_rowids(sqlite3 *db, rng *r) {
  static const int bits[] = {14, 21, 28, 35, 42, 49, 56, 62};
  char sql[200];
  snprintf(sql, sizeof sql, "UPDATE OR IGNORE t SET rowid=rowid+%lld-%d WHERE rowid < 1 << 61",
           1LL << bits[rng_below(r, 8)], rng_below(r, 400));
  must_exec(db, sql);
  if (rng_chance(r, 30)) must_exec(db, "UPDATE OR IGNORE t SET rowid=-rowid WHERE rowid%2");
}

/* Chooses columns to load: all, or some in their order, with the rowid or without it. */
static int choose_columns(rng *r, int n_cols, int *cols) {
  int n = 0;
  if (rng_chance(r, 30)) return 0;
  if (rng_chance(r, 40)) cols[n++] = -1;
  for (int i = 0; i < n_cols; i++)
    if (rng_chance(r, 40)) cols[n++] = i;
  return n;
}

static size_t make_image(rng *r, int *n_cols) {
  char sql[200];
  int key_col, page_size = 512 << rng_below(r, 3);
  unlink(path);
  sqlite3 *db = must_open(path);
  snprintf(sql, sizeof sql, "PRAGMA synchronous=OFF; PRAGMA page_size=%d; PRAGMA auto_vacuum=%d",
           page_size, rng_below(r, 3));
  must_exec(db, sql);
  int n = create_table(db, r, rng_chance(r, 30) ? 36 : 6, &key_col);
  insert_rows(db, r, 10 + rng_below(r, 300), n, key_col, 4000);
  if (rng_chance(r, 30)) must_exec(db, "DELETE FROM t WHERE rowid%3=0");
  if (rng_chance(r, 30)) move_rowids(db, r);
  *n_cols = n;
  if (rng_chance(r, 50)) {
    must_exec(db, "ALTER TABLE t ADD COLUMN extra TEXT DEFAULT 'more'");
    ++*n_cols;
  }
  sqlite3_close(db);
  FILE *f = fopen(path, "rb");
  size_t size = f ? fread(image, 1, sizeof image, f) : 0;
  if (f) fclose(f);
  return size;
}

/* Single bytes, small numbers where counts and types are, runs, a swap of pages, a cut. */
static size_t damage(rng *r, size_t size, int page_size) {
  memcpy(damaged, image, size);
  int n = 1 + rng_below(r, 6);
  for (int i = 0; i < n; i++) {
    size_t at = rng_next(r) % size, page = at / (size_t)page_size * (size_t)page_size;
    switch (rng_below(r, 7)) {
    case 0: damaged[at] ^= (wl_u8)(1 << rng_below(r, 8)); break;
    case 1: damaged[at] = (wl_u8)rng_next(r); break;
    case 2: damaged[page + (size_t)rng_below(r, 16)] = (wl_u8)rng_below(r, 16); break;
    case 3: damaged[page + 8 + (size_t)rng_below(r, 100)] ^= (wl_u8)(1 << rng_below(r, 8)); break;
    case 4: damaged[at] = 0xff; break;
    case 5:
      if (page) damaged[page + 3 + (size_t)rng_below(r, 9)] = (wl_u8)rng_next(r);
      break;
    default:
      if (rng_chance(r, 10)) {
        size_t from = rng_next(r) % (size / (size_t)page_size) * (size_t)page_size;
        memcpy(damaged + page, image + from, (size_t)page_size);
      } else if (rng_chance(r, 5)) {
        size = page ? page : size;
      }
    }
  }
  return size;
}

/* Rows that are not in the order of their rowids are left to SQLite, wherever they are in a page.
 */
static void check_order(int row) {
  char label[60];
  unlink(path);
  sqlite3 *db = must_open(path);
  must_exec(db, "PRAGMA synchronous=OFF; CREATE TABLE t(a);"
                "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n WHERE i<299) "
                "INSERT INTO t(rowid, a) SELECT i, i FROM n");
  sqlite3_close(db);
  FILE *f = fopen(path, "r+b");
  wl_u8 cells[4];
  if (!f || fseek(f, 4096 + 8 + 2 * row, SEEK_SET) || fread(cells, 1, 4, f) != 4 ||
      fseek(f, 4096 + 8 + 2 * row, SEEK_SET))
    exit(1);
  for (int i = 0; i < 4; i++) fputc(cells[i ^ 2], f);
  if (fclose(f)) exit(1);
  snprintf(label, sizeof label, "rows %d and %d are exchanged", row, row + 1);
  db = must_open(path);
  check_table(label, db, "main", "t", BY_STEPS);
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  rng r = {argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
  int n_files = argc > 2 ? atoi(argv[2]) : TEST_SANITIZED ? 60 : 250;
  long n_same = 0, n_left = 0, n_dead = 0, n_bad = 0;
  const char *tmp = getenv("TMPDIR");
  snprintf(dir, sizeof dir, "%.150s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(dir) || !bind_sqlite()) return 1;
  snprintf(path, sizeof path, "%s/x.db", dir);
  for (int row = 0; row < 199; row += 27) check_order(row); /* 27 and 28: another length */
  for (int k = 0; k < n_files; k++) {
    int n_cols, cols[40];
    size_t size = make_image(&r, &n_cols);
    int page_size = image[16] << 8 | image[17];
    for (int j = 0; j < 40 && size; j++) {
      size_t n = damage(&r, size, page_size);
      FILE *f = fopen(path, "wb");
      if (!f || fwrite(damaged, 1, n, f) != n || fclose(f)) return 1;
      sqlite3 *db = must_open(path);
      wl_store *s;
      wl_error err;
      loaded l;
      if (wl_store_open(db, &s, &err)) return 1;
      int n_load = choose_columns(&r, n_cols, cols);
      bool same = load_and_compare(s, db, "main", "t", n_load ? cols : NULL, n_load, true, &l);
      if (!same && l.by_pages && n_bad++ < 5)
        tap_bad("damaged files", "file %d, damage %d: %s", k, j, l.why);
      if (l.rc)
        n_dead++;
      else if (l.by_pages)
        n_same++;
      else
        n_left++;
      wl_store_close(s);
      sqlite3_close(db);
    }
  }
  if (!n_bad) tap_ok("damaged files");
  printf("-- %ld loaded and the same, %ld stepped by SQLite, %ld not loaded\n", n_same, n_left,
         n_dead);
  CHECK("damaged files: all three happen", n_same > 0 && n_left > 0 && n_dead > 0);
  unlink(path);
  rmdir(dir);
  return tap_done();
}
