/*
** The tables of the Star Schema Benchmark (O'Neil, O'Neil, Chen, revision 3), made by a
** generator of our own.
**
** 1. At scale 1: 30,000 customers, 2,000 suppliers, 200,000 parts, 1,500,000 orders of one
**    to seven lines. Parts grow with the logarithm of the scale, as specified. Below 1 the
**    specification says nothing: lines shrink with the scale, the other tables with its
**    square root, so that narrow queries still find something.
** 2. The table of dates has every day of the seven years 1992 to 1998.
** 3. The key of lineorder, (lo_orderkey, lo_linenumber), is declared only on request: no
**    query uses it.
** 4. Amounts are integers, in cents.
*/
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

static const struct table customer = {"customer",
                                      NULL,
                                      {{"c_custkey", KEY},
                                       {"c_name", TEXT},
                                       {"c_address", TEXT},
                                       {"c_city", TEXT},
                                       {"c_nation", TEXT},
                                       {"c_region", TEXT},
                                       {"c_phone", TEXT},
                                       {"c_mktsegment", TEXT}}};

static const struct table supplier = {"supplier",
                                      NULL,
                                      {{"s_suppkey", KEY},
                                       {"s_name", TEXT},
                                       {"s_address", TEXT},
                                       {"s_city", TEXT},
                                       {"s_nation", TEXT},
                                       {"s_region", TEXT},
                                       {"s_phone", TEXT}}};

static const struct table part = {"part",
                                  NULL,
                                  {{"p_partkey", KEY},
                                   {"p_name", TEXT},
                                   {"p_mfgr", TEXT},
                                   {"p_category", TEXT},
                                   {"p_brand1", TEXT},
                                   {"p_color", TEXT},
                                   {"p_type", TEXT},
                                   {"p_size", INT},
                                   {"p_container", TEXT}}};

static const struct table date = {"date",
                                  NULL,
                                  {{"d_datekey", KEY},
                                   {"d_date", TEXT},
                                   {"d_dayofweek", TEXT},
                                   {"d_month", TEXT},
                                   {"d_year", INT},
                                   {"d_yearmonthnum", INT},
                                   {"d_yearmonth", TEXT},
                                   {"d_daynuminweek", INT},
                                   {"d_daynuminmonth", INT},
                                   {"d_daynuminyear", INT},
                                   {"d_monthnuminyear", INT},
                                   {"d_weeknuminyear", INT},
                                   {"d_sellingseason", TEXT},
                                   {"d_lastdayinweekfl", INT},
                                   {"d_lastdayinmonthfl", INT},
                                   {"d_holidayfl", INT},
                                   {"d_weekdayfl", INT}}};

static const struct table lineorder = {"lineorder",
                                       "lo_orderkey, lo_linenumber",
                                       {{"lo_orderkey", INT},
                                        {"lo_linenumber", INT},
                                        {"lo_custkey", INT},
                                        {"lo_partkey", INT},
                                        {"lo_suppkey", INT},
                                        {"lo_orderdate", INT},
                                        {"lo_orderpriority", TEXT},
                                        {"lo_shippriority", TEXT},
                                        {"lo_quantity", INT},
                                        {"lo_extendedprice", INT},
                                        {"lo_ordtotalprice", INT},
                                        {"lo_discount", INT},
                                        {"lo_revenue", INT},
                                        {"lo_supplycost", INT},
                                        {"lo_tax", INT},
                                        {"lo_commitdate", INT},
                                        {"lo_shipmode", TEXT}}};

/* City, nation, region and phone. A city is nine letters of its nation and a digit. */
static void put_place(struct sink *s, struct random *r) {
  int n = (int)random_in(r, 0, 24);
  put_format(s, "%-9.9s%d", nations[n].name, (int)random_in(r, 0, 9));
  put_string(s, nations[n].name);
  put_string(s, regions[nations[n].region]);
  put_phone(s, r, n);
}

static void make_customers(struct sink *s, int64_t n) {
  struct random r = random_for("ssb", "customer");
  put_table(s, &customer);
  for (int64_t key = 1; key <= n && !s->failed; key++) {
    put_int(s, key);
    put_format(s, "Customer#%09lld", (long long)key);
    put_vstring(s, &r, 10, 25);
    put_place(s, &r);
    put_string(s, RANDOM_OF(&r, segments));
    put_row(s);
  }
}

static void make_suppliers(struct sink *s, int64_t n) {
  struct random r = random_for("ssb", "supplier");
  put_table(s, &supplier);
  for (int64_t key = 1; key <= n && !s->failed; key++) {
    put_int(s, key);
    put_format(s, "Supplier#%09lld", (long long)key);
    put_vstring(s, &r, 10, 25);
    put_place(s, &r);
    put_row(s);
  }
}

static void make_parts(struct sink *s, int64_t n) {
  struct random r = random_for("ssb", "part");
  put_table(s, &part);
  for (int64_t key = 1; key <= n && !s->failed; key++) {
    int maker = (int)random_in(&r, 1, 5), category = (int)random_in(&r, 1, 5);
    const char *color = RANDOM_OF(&r, colors), *size = RANDOM_OF(&r, sizes),
               *finish = RANDOM_OF(&r, finishes), *metal = RANDOM_OF(&r, metals);
    put_int(s, key);
    put_format(s, "%s %s", color, RANDOM_OF(&r, colors));
    put_format(s, "MFGR#%d", maker);
    put_format(s, "MFGR#%d%d", maker, category);
    put_format(s, "MFGR#%d%d%d", maker, category, (int)random_in(&r, 1, 40));
    put_string(s, color);
    put_format(s, "%s %s %s", size, finish, metal);
    put_int(s, random_in(&r, 1, 50));
    const char *container = RANDOM_OF(&r, containers);
    put_format(s, "%s %s", container, RANDOM_OF(&r, wraps));
    put_row(s);
  }
}

static const char *season_of(const struct day *d) {
  switch (d->month) {
  case 12: return d->day >= 25 ? "Winter" : "Christmas";
  case 11: return "Christmas";
  case 1:
  case 2: return "Winter";
  case 3:
  case 4: return "Spring";
  case 8:
  case 9:
  case 10: return "Fall";
  default: return "Summer";
  }
}

static bool is_holiday(const struct day *d) {
  static const int list[] = {101, 220, 420, 501, 704, 905, 1015, 1125, 1225, 1231};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (list[i] == d->key % 10000) return true;
  return false;
}

static void make_dates(struct sink *s) {
  static const char *const months[] = {"January",   "February", "March",    "April",
                                       "May",       "June",     "July",     "August",
                                       "September", "October",  "November", "December"};
  static const char *const names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
  const struct day *all = days();
  put_table(s, &date);
  for (int i = 0; i < N_DAYS && all[i].year <= 1998; i++) {
    const struct day *d = &all[i];
    int weekday = (i + 3) % 7; /* 1992-01-01 was a Wednesday */
    const char *month = months[d->month - 1];
    put_int(s, d->key);
    put_format(s, "%s %d, %d", month, d->day, d->year);
    put_string(s, names[weekday]);
    put_string(s, month);
    put_int(s, d->year);
    put_int(s, d->key / 100);
    put_format(s, "%.3s%d", month, d->year);
    put_int(s, weekday + 1);
    put_int(s, d->day);
    put_int(s, d->of_year);
    put_int(s, d->month);
    put_int(s, (d->of_year - 1) / 7 + 1);
    put_string(s, season_of(d));
    put_int(s, weekday == 6);
    put_int(s, all[i + 1].month != d->month);
    put_int(s, is_holiday(d));
    put_int(s, weekday >= 1 && weekday <= 5);
    put_row(s);
  }
}

struct line {
  int64_t part, supplier, quantity, price, discount, tax;
  int commit;
  const char *mode;
};

static void make_lines(struct sink *s, int64_t n_orders, int64_t n_customers, int64_t n_suppliers,
                       int64_t n_parts) {
  struct random r = random_for("ssb", "lineorder");
  const struct day *all = days();
  put_table(s, &lineorder);
  for (int64_t n = 1; n <= n_orders && !s->failed; n++) {
    struct line lines[7];
    int n_lines = (int)random_in(&r, 1, 7);
    int64_t buyer = random_in(&r, 1, n_customers), total = 0;
    int when = (int)random_in(&r, 0, LAST_ORDER_DAY);
    const char *priority = RANDOM_OF(&r, priorities);
    for (int k = 0; k < n_lines; k++) {
      struct line *l = &lines[k];
      l->part = random_in(&r, 1, n_parts);
      l->supplier = random_in(&r, 1, n_suppliers);
      l->quantity = random_in(&r, 1, 50);
      l->price = l->quantity * part_price(l->part);
      l->discount = random_in(&r, 0, 10);
      l->tax = random_in(&r, 0, 8);
      l->commit = when + (int)random_in(&r, 30, 90);
      l->mode = RANDOM_OF(&r, modes);
      total += l->price * (100 - l->discount) / 100 * (100 + l->tax) / 100;
    }
    for (int k = 0; k < n_lines; k++) {
      const struct line *l = &lines[k];
      put_int(s, order_key(n));
      put_int(s, k + 1);
      put_int(s, buyer);
      put_int(s, l->part);
      put_int(s, l->supplier);
      put_int(s, all[when].key);
      put_string(s, priority);
      put_text(s, "0", 1);
      put_int(s, l->quantity);
      put_int(s, l->price);
      put_int(s, total);
      put_int(s, l->discount);
      put_int(s, l->price * (100 - l->discount) / 100);
      put_int(s, part_price(l->part) * 6 / 10);
      put_int(s, l->tax);
      put_int(s, all[l->commit].key);
      put_string(s, l->mode);
      put_row(s);
    }
  }
}

static void ssb_make(struct sink *s, double scale) {
  double small = scale < 1 ? sqrt(scale) : scale;
  int64_t n_parts = scale < 1 ? scaled(small, 200000) : 200000 * (1 + (int64_t)floor(log2(scale)));
  int64_t n_customers = scaled(small, 30000), n_suppliers = scaled(small, 2000);
  make_dates(s);
  make_suppliers(s, n_suppliers);
  make_customers(s, n_customers);
  make_parts(s, n_parts);
  make_lines(s, scaled(scale, 1500000), n_customers, n_suppliers, n_parts);
}

const struct tables ssb_tables = {"ssb", 1, ssb_make, true};
