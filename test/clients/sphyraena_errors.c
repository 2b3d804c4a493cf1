/*
** The errors of include/sphyraena.h: each failure has its code and a message, nothing crashes, and
** the sphyraena works afterwards. On the CPU and the simulator, and with WL_TEST_CUDA on CUDA.
*/
#include "staged.h"

static bool failed(sphyraena *s, int rc, int want, const char *part) {
  if (rc == want && strstr(sphyraena_errmsg(s), part)) return true;
  printf("# returned %d, not %d: %s\n", rc, want, sphyraena_errmsg(s));
  return false;
}

static void misuse(sqlite3 *db) {
  sphyraena s, zero;
  memset(&s, 0x5a, sizeof s);
  memset(&zero, 0, sizeof zero);
  CHECK("NULL instead of a sphyraena",
        sphyraena_init(NULL, db, 1, 1, 1) == SPHYRAENA_ERR_MISUSE &&
            sphyraena_cleanup(NULL) == SPHYRAENA_ERR_MISUSE &&
            sphyraena_set_device(NULL, "cpu") == SPHYRAENA_ERR_MISUSE &&
            sphyraena_prepare_data(NULL, "SELECT 1") == SPHYRAENA_ERR_MISUSE &&
            sphyraena_transfer_data(NULL) == SPHYRAENA_ERR_MISUSE &&
            sphyraena_select(NULL, "SELECT 1", 0) == SPHYRAENA_ERR_MISUSE &&
            sphyraena_select(NULL, NULL, 0) == SPHYRAENA_ERR_MISUSE &&
            sphyraena_vm(NULL) == SPHYRAENA_ERR_MISUSE &&
            sphyraena_vm_streaming(NULL) == SPHYRAENA_ERR_MISUSE &&
            sphyraena_transfer_results(NULL) == SPHYRAENA_ERR_MISUSE &&
            !strcmp(sphyraena_errmsg(NULL), "no sphyraena was given"));
  CHECK(
      "no connection",
      failed(&s, sphyraena_init(&s, NULL, 1, 1, 1), SPHYRAENA_ERR_MISUSE, "no connection") &&
          failed(&s, sphyraena_select(&s, "SELECT 1", 0), SPHYRAENA_ERR_MISUSE, "sphyraena_init") &&
          sphyraena_cleanup(&s) == SPHYRAENA_SUCCESS);
  CHECK("not initialized",
        failed(&zero, sphyraena_prepare_data(&zero, "SELECT 1"), SPHYRAENA_ERR_MISUSE, "init") &&
            failed(&zero, sphyraena_transfer_results(&zero), SPHYRAENA_ERR_MISUSE, "init"));
  CHECK("initializes", sphyraena_init(&s, db, 0, 0, 1) == SPHYRAENA_SUCCESS);
  CHECK("before anything is staged",
        failed(&s, sphyraena_transfer_data(&s), SPHYRAENA_ERR_MISUSE, "prepare_data") &&
            failed(&s, sphyraena_select(&s, "SELECT id FROM w", 0), SPHYRAENA_ERR_MISUSE,
                   "prepare_data") &&
            failed(&s, sphyraena_vm(&s), SPHYRAENA_ERR_MISUSE, "prepare_data"));
  CHECK("no text",
        failed(&s, sphyraena_prepare_data(&s, NULL), SPHYRAENA_ERR_MISUSE, "no statement") &&
            failed(&s, sphyraena_select(&s, NULL, 0), SPHYRAENA_ERR_MISUSE, "no statement"));
  sphyraena_prepare_data(&s, "SELECT id FROM w");
  CHECK("before a select",
        failed(&s, sphyraena_vm(&s), SPHYRAENA_ERR_MISUSE, "sphyraena_select") &&
            failed(&s, sphyraena_vm_streaming(&s), SPHYRAENA_ERR_MISUSE, "sphyraena_select") &&
            failed(&s, sphyraena_transfer_results(&s), SPHYRAENA_ERR_MISUSE, "sphyraena_select"));
  CHECK("devices",
        failed(&s, sphyraena_set_device(&s, NULL), SPHYRAENA_ERR_MISUSE, "no device") &&
            failed(&s, sphyraena_set_device(&s, "tpu"), SPHYRAENA_ERR_DEVICE, "cuda, sim") &&
            !strcmp(s.device, "auto"));
  if (!getenv("WL_TEST_CUDA"))
    CHECK("no CUDA device",
          failed(&s, sphyraena_set_device(&s, "cuda"), SPHYRAENA_ERR_DEVICE, "CUDA") &&
              !strcmp(s.device, "auto"));
  sphyraena_cleanup(&s);
  CHECK("after the cleanup",
        failed(&s, sphyraena_select(&s, "SELECT 1", 0), SPHYRAENA_ERR_MISUSE, "sphyraena_init"));
}

static void bad_statements(sqlite3 *db) {
  static const struct {
    const char *sql, *part;
  } cases[] = {{"SELECT nowhat FROM w", "no such column: nowhat"},
               {"SELEC", "syntax error"},
               {"", "needs a SELECT"},
               {"DELETE FROM w", "needs a SELECT"},
               {"EXPLAIN SELECT 1", "needs a SELECT"},
               {"SELECT id FROM w; SELECT 1", "needs one statement"}};
  sphyraena s;
  sphyraena_init(&s, db, 0, 0, 1);
  sphyraena_prepare_data(&s, "SELECT id FROM w");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[120];
    snprintf(name, sizeof name, "refused: %s", cases[i].sql);
    CHECK(name,
          failed(&s, sphyraena_prepare_data(&s, cases[i].sql), SPHYRAENA_ERR_STMT, cases[i].part) &&
              failed(&s, sphyraena_select(&s, cases[i].sql, 0), SPHYRAENA_ERR_STMT, cases[i].part));
  }
  CHECK("what was staged stays", s.data_cpu && fetch(&s, "SELECT count(*) FROM w", 0));
  CHECK("what cannot be staged",
        failed(&s, sphyraena_prepare_data(&s, "SELECT * FROM json_each('[1]')"), SPHYRAENA_ERR_STMT,
               "cannot be staged") &&
            !s.data_cpu);
  CHECK("a SELECT without tables stages nothing", !sphyraena_prepare_data(&s, "SELECT 1") &&
                                                      s.data_cpu && s.data_cpu->columns == 0 &&
                                                      !sphyraena_transfer_data(&s));
  CHECK("an error at a row",
        failed(&s, sphyraena_select(&s, "SELECT abs(i) FROM v", 0), SPHYRAENA_ERR_STMT,
               "integer overflow") &&
            !s.results_cpu && !s.results_gpu &&
            failed(&s, sphyraena_transfer_results(&s), SPHYRAENA_ERR_MISUSE, "sphyraena_select"));
  CHECK("and it can run again", failed(&s, sphyraena_vm(&s), SPHYRAENA_ERR_STMT, "overflow") &&
                                    fetch(&s, "SELECT count(*) FROM v", 0));
  sqlite3_stmt *step = s.stmt_cpu;
  sqlite3_step(step);
  CHECK("a statement that is stepped",
        failed(&s, sphyraena_vm(&s), SPHYRAENA_ERR_MISUSE, "stepped"));
  sqlite3_reset(step);
  CHECK("and reset", !sphyraena_vm(&s));
  sphyraena_cleanup(&s);
}

static int stop(void *arg) {
  (void)arg;
  return 1;
}

static int deny(void *arg, int code, const char *a, const char *b, const char *c, const char *d) {
  (void)b, (void)c, (void)d;
  return code == SQLITE_READ && a && !strcmp(a, "w") ? *(int *)arg : SQLITE_OK;
}

static void sizes(sqlite3 *db) {
  sphyraena s;
  sphyraena_init(&s, db, 100 << 10, 80 << 10, 1);
  sphyraena_set_device(&s, "cpu");
  CHECK("more than data_size",
        failed(&s, sphyraena_prepare_data(&s, "SELECT * FROM v"), SPHYRAENA_ERR_MEM, "data_size") &&
            s.sqlite_code == SQLITE_FULL && !s.data_cpu &&
            number(db, "SELECT count(*) FROM warplite_cache") == 0);
  CHECK("less than that", !sphyraena_prepare_data(&s, "SELECT * FROM w"));
  /* 5,000 rows of 16 bytes are 80,000; 80 KiB are 81,920 */
  CHECK("as much as results_size",
        fetch(&s, "SELECT id FROM v LIMIT 5120", 0) && s.results_cpu->size == 80 << 10);
  CHECK("more than results_size", failed(&s, sphyraena_select(&s, "SELECT id FROM v LIMIT 5121", 0),
                                         SPHYRAENA_ERR_MEM, "results_size") &&
                                      s.sqlite_code == SQLITE_FULL && !s.results_gpu);
  CHECK("texts count",
        failed(&s, sphyraena_select(&s, "SELECT hex(zeroblob(50000)) FROM w LIMIT 1", 0),
               SPHYRAENA_ERR_MEM, "results_size") &&
            fetch(&s, "SELECT hex(zeroblob(40000)) FROM w LIMIT 1", 0) &&
            s.results_cpu->size == 8 + 16 + 80001);
  sphyraena_cleanup(&s);

  sphyraena_init(&s, db, 0, 0, 1);
  run(db, "SELECT warplite_set('host_budget', '64K')");
  CHECK("more than host_budget", failed(&s, sphyraena_prepare_data(&s, "SELECT * FROM v"),
                                        SPHYRAENA_ERR_MEM, "host_budget"));
  run(db, "SELECT warplite_set('host_budget', '1G'), warplite_set('device_budget', '64K')");
  sphyraena_set_device(&s, "sim");
  CHECK("more than the device has",
        !sphyraena_prepare_data(&s, "SELECT id, f FROM v") &&
            failed(&s, sphyraena_transfer_data(&s), SPHYRAENA_ERR_CUDAMALLOC, "streaming") &&
            !s.data_gpu && fetch(&s, "SELECT sum(id) FROM v", 1) &&
            *(const int64_t *)sphyraena_value(s.results_cpu, 0, 0) == 2147581953);
  run(db, "SELECT warplite_set('device_budget', '0')");
  CHECK("and with more", !sphyraena_transfer_data(&s) && s.data_gpu);
  sphyraena_cleanup(&s);
}

static void stopped(sqlite3 *db, const char *device) {
  char name[100];
  sphyraena s;
  sphyraena_init(&s, db, 0, 0, 1);
  sphyraena_set_device(&s, device);
  sphyraena_prepare_data(&s, "SELECT * FROM v");
  const char *sql = "SELECT count(*) FROM v AS a, v AS b WHERE a.i + b.i = a.f";
  sqlite3_progress_handler(db, 100, stop, NULL);
  int rc = sphyraena_select(&s, sql, 0);
  sqlite3_progress_handler(db, 0, NULL, NULL);
  snprintf(name, sizeof name, "[%s] interrupted", device);
  CHECK(name, failed(&s, rc, SPHYRAENA_ERR_STMT, "interrupted") &&
                  s.sqlite_code == SQLITE_INTERRUPT && !s.results_gpu);
  snprintf(name, sizeof name, "[%s] and then not", device);
  CHECK(name, fetch(&s, "SELECT count(*) FROM v", 0) && s.results_cpu->rows == 1);
  sphyraena_cleanup(&s);
}

static void authorized(sqlite3 *db) {
  sphyraena s;
  int answer = SQLITE_DENY;
  sphyraena_init(&s, db, 0, 0, 1);
  sphyraena_prepare_data(&s, "SELECT id FROM v");
  warplite_set_authorizer(db, deny, &answer);
  CHECK("the authorizer denies", failed(&s, sphyraena_prepare_data(&s, "SELECT name FROM w"),
                                        SPHYRAENA_ERR_STMT, "prohibited") &&
                                     failed(&s, sphyraena_select(&s, "SELECT name FROM w", 0),
                                            SPHYRAENA_ERR_STMT, "prohibited") &&
                                     s.sqlite_code == SQLITE_AUTH);
  answer = SQLITE_IGNORE;
  CHECK("the authorizer hides", failed(&s, sphyraena_prepare_data(&s, "SELECT name FROM w"),
                                       SPHYRAENA_ERR_STMT, "IGNORE") &&
                                    fetch(&s, "SELECT name FROM w LIMIT 1", 0) &&
                                    sphyraena_type(s.results_cpu, 0, 0) == SPHYRAENA_NULL);
  warplite_set_authorizer(db, NULL, NULL);
  sphyraena_cleanup(&s);
}

int main(void) {
  const char *devices[] = {"cpu", "sim", getenv("WL_TEST_CUDA") ? "cuda" : NULL};
  sqlite3 *db;
  sqlite3_open(":memory:", &db);
  run(db, values);
  misuse(db);
  bad_statements(db);
  sizes(db);
  for (int i = 0; i < 3 && devices[i]; i++) stopped(db, devices[i]);
  authorized(db);
  CHECK("closes", sqlite3_close(db) == SQLITE_OK);
  rows_free(&r);
  return tap_done();
}
