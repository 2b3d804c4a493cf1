/*
** The eight tables of TPC-H (specification 3, clause 4.2), made by a generator of our own.
**
** 1. Rows at scale 1: 10,000 suppliers, 200,000 parts with four suppliers each, 150,000
**    customers, 1,500,000 orders of one to seven lines; below and above in proportion.
** 2. Dates are texts as 1992-01-01 in SQLite. Amounts are reals, each the nearest to its
**    decimal; quantities are integers.
** 3. The keys of lineitem and partsupp, which have two columns, are declared only on
**    request. Without them SQLite has to build automatic indexes, as it would for any
**    join without an index.
** 4. Lines are made with their orders, from one random sequence: orders need the sums of
**    their lines. The two tables are written one after the other, by making them twice.
*/
#include <stdio.h>
#include <string.h>

#include "store.h"
#include "text.h"

static const struct table region = {
    "region", NULL, {{"r_regionkey", KEY}, {"r_name", TEXT}, {"r_comment", TEXT}}};
static const struct table nation = {
    "nation",
    NULL,
    {{"n_nationkey", KEY}, {"n_name", TEXT}, {"n_regionkey", INT}, {"n_comment", TEXT}}};
static const struct table supplier = {"supplier",
                                      NULL,
                                      {{"s_suppkey", KEY},
                                       {"s_name", TEXT},
                                       {"s_address", TEXT},
                                       {"s_nationkey", INT},
                                       {"s_phone", TEXT},
                                       {"s_acctbal", REAL},
                                       {"s_comment", TEXT}}};
static const struct table part = {"part",
                                  NULL,
                                  {{"p_partkey", KEY},
                                   {"p_name", TEXT},
                                   {"p_mfgr", TEXT},
                                   {"p_brand", TEXT},
                                   {"p_type", TEXT},
                                   {"p_size", INT},
                                   {"p_container", TEXT},
                                   {"p_retailprice", REAL},
                                   {"p_comment", TEXT}}};
static const struct table partsupp = {"partsupp",
                                      "ps_partkey, ps_suppkey",
                                      {{"ps_partkey", INT},
                                       {"ps_suppkey", INT},
                                       {"ps_availqty", INT},
                                       {"ps_supplycost", REAL},
                                       {"ps_comment", TEXT}}};
static const struct table customer = {"customer",
                                      NULL,
                                      {{"c_custkey", KEY},
                                       {"c_name", TEXT},
                                       {"c_address", TEXT},
                                       {"c_nationkey", INT},
                                       {"c_phone", TEXT},
                                       {"c_acctbal", REAL},
                                       {"c_mktsegment", TEXT},
                                       {"c_comment", TEXT}}};
static const struct table orders = {"orders",
                                    NULL,
                                    {{"o_orderkey", KEY},
                                     {"o_custkey", INT},
                                     {"o_orderstatus", TEXT},
                                     {"o_totalprice", REAL},
                                     {"o_orderdate", DATE},
                                     {"o_orderpriority", TEXT},
                                     {"o_clerk", TEXT},
                                     {"o_shippriority", INT},
                                     {"o_comment", TEXT}}};
static const struct table lineitem = {"lineitem",
                                      "l_orderkey, l_linenumber",
                                      {{"l_orderkey", INT},
                                       {"l_partkey", INT},
                                       {"l_suppkey", INT},
                                       {"l_linenumber", INT},
                                       {"l_quantity", INT},
                                       {"l_extendedprice", REAL},
                                       {"l_discount", REAL},
                                       {"l_tax", REAL},
                                       {"l_returnflag", TEXT},
                                       {"l_linestatus", TEXT},
                                       {"l_shipdate", DATE},
                                       {"l_commitdate", DATE},
                                       {"l_receiptdate", DATE},
                                       {"l_shipinstruct", TEXT},
                                       {"l_shipmode", TEXT},
                                       {"l_comment", TEXT}}};

static const char *const instructions[4] = {"DELIVER IN PERSON", "COLLECT COD", "NONE",
                                            "TAKE BACK RETURN"};

enum { CURRENT_DAY = 1263 }; /* 1995-06-17 */

struct counts {
  int64_t suppliers, parts, customers, orders, clerks;
};

static void make_places(struct sink *s) {
  struct random r = random_for("tpch", "region");
  put_table(s, &region);
  for (int i = 0; i < 5; i++) {
    put_int(s, i);
    put_string(s, regions[i]);
    put_comment(s, &r, 31, 115);
    put_row(s);
  }
  put_table(s, &nation);
  for (int i = 0; i < 25; i++) {
    put_int(s, i);
    put_string(s, nations[i].name);
    put_int(s, nations[i].region);
    put_comment(s, &r, 31, 114);
    put_row(s);
  }
}

/* Five suppliers in 10,000 have complaints and five are recommended; one of each at least. */
static void put_supplier_comment(struct sink *s, struct random *r, int64_t key) {
  char text[128];
  int n;
  const char *piece = random_text(r, 63, 100, &n);
  const char *verdict = key % 2000 == 17 ? "Complaints" : key % 2000 == 71 ? "Recommends" : NULL;
  memcpy(text, piece, (size_t)n);
  if (verdict) {
    int at = (int)random_in(r, 0, 20), gap = (int)random_in(r, 1, 20);
    memcpy(text + at, "Customer ", 9);
    memcpy(text + at + 9 + gap, verdict, strlen(verdict));
  } else {
    n = (int)random_in(r, 25, n);
  }
  put_text(s, text, n);
}

static void make_suppliers(struct sink *s, const struct counts *c) {
  struct random r = random_for("tpch", "supplier");
  put_table(s, &supplier);
  for (int64_t key = 1; key <= c->suppliers && !s->failed; key++) {
    int n = (int)random_in(&r, 0, 24);
    put_int(s, key);
    put_format(s, "Supplier#%09lld", (long long)key);
    put_vstring(s, &r, 10, 40);
    put_int(s, n);
    put_phone(s, &r, n);
    put_money(s, random_in(&r, -99999, 999999));
    put_supplier_comment(s, &r, key);
    put_row(s);
  }
}

/* Five different colours. */
static void put_part_name(struct sink *s, struct random *r) {
  char text[128];
  int n = 0, chosen[5];
  for (int i = 0; i < 5; i++) {
    bool again;
    do {
      again = false;
      chosen[i] = (int)random_in(r, 0, 91);
      for (int k = 0; k < i; k++) again |= chosen[k] == chosen[i];
    } while (again);
    if (i) text[n++] = ' ';
    for (const char *p = colors[chosen[i]]; *p; p++) text[n++] = *p;
  }
  put_text(s, text, n);
}

static void make_parts(struct sink *s, const struct counts *c) {
  struct random r = random_for("tpch", "part");
  put_table(s, &part);
  for (int64_t key = 1; key <= c->parts && !s->failed; key++) {
    int maker = (int)random_in(&r, 1, 5);
    put_int(s, key);
    put_part_name(s, &r);
    put_format(s, "Manufacturer#%d", maker);
    put_format(s, "Brand#%d%d", maker, (int)random_in(&r, 1, 5));
    const char *size = RANDOM_OF(&r, sizes), *finish = RANDOM_OF(&r, finishes);
    put_format(s, "%s %s %s", size, finish, RANDOM_OF(&r, metals));
    put_int(s, random_in(&r, 1, 50));
    const char *container = RANDOM_OF(&r, containers);
    put_format(s, "%s %s", container, RANDOM_OF(&r, wraps));
    put_money(s, part_price(key));
    put_comment(s, &r, 5, 22);
    put_row(s);
  }
}

/*
** The ith (0 to 3) of a part's four suppliers, by the specification's formula. With less than
** 240 suppliers, which it does not foresee, its four would not always be different: there
** the step stays below a third of them.
*/
static int64_t supplier_of(int64_t part_key, int64_t i, int64_t n) {
  int64_t more = (part_key - 1) / n;
  if (n < 240) more %= n < 13 ? 1 : n / 13;
  return (part_key + i * (n / 4 + more)) % n + 1;
}

static void make_partsupps(struct sink *s, const struct counts *c) {
  struct random r = random_for("tpch", "partsupp");
  put_table(s, &partsupp);
  for (int64_t key = 1; key <= c->parts && !s->failed; key++)
    for (int i = 0; i < 4; i++) {
      put_int(s, key);
      put_int(s, supplier_of(key, i, c->suppliers));
      put_int(s, random_in(&r, 1, 9999));
      put_money(s, random_in(&r, 100, 100000));
      put_comment(s, &r, 49, 198);
      put_row(s);
    }
}

static void make_customers(struct sink *s, const struct counts *c) {
  struct random r = random_for("tpch", "customer");
  put_table(s, &customer);
  for (int64_t key = 1; key <= c->customers && !s->failed; key++) {
    int n = (int)random_in(&r, 0, 24);
    put_int(s, key);
    put_format(s, "Customer#%09lld", (long long)key);
    put_vstring(s, &r, 10, 40);
    put_int(s, n);
    put_phone(s, &r, n);
    put_money(s, random_in(&r, -99999, 999999));
    put_string(s, RANDOM_OF(&r, segments));
    put_comment(s, &r, 29, 116);
    put_row(s);
  }
}

struct line {
  int64_t part, supplier, quantity, price, discount, tax;
  int ship, commit, receipt;
  const char *flag, *instruction, *mode;
};

struct order {
  int64_t customer, total, clerk;
  int day, n_lines, n_open;
  const char *priority;
  struct line lines[7];
};

/* A third of the customers, those whose number three divides, never order. */
static void make_order(struct random *r, const struct counts *c, struct order *o) {
  do o->customer = random_in(r, 1, c->customers);
  while (o->customer % 3 == 0);
  o->day = (int)random_in(r, 0, LAST_ORDER_DAY);
  o->priority = RANDOM_OF(r, priorities);
  o->clerk = random_in(r, 1, c->clerks);
  o->n_lines = (int)random_in(r, 1, 7);
  o->n_open = 0;
  o->total = 0;
  for (int k = 0; k < o->n_lines; k++) {
    struct line *l = &o->lines[k];
    l->part = random_in(r, 1, c->parts);
    l->supplier = supplier_of(l->part, random_in(r, 0, 3), c->suppliers);
    l->quantity = random_in(r, 1, 50);
    l->price = l->quantity * part_price(l->part);
    l->discount = random_in(r, 0, 10);
    l->tax = random_in(r, 0, 8);
    l->ship = o->day + (int)random_in(r, 1, 121);
    l->commit = o->day + (int)random_in(r, 30, 90);
    l->receipt = l->ship + (int)random_in(r, 1, 30);
    l->flag = l->receipt > CURRENT_DAY ? "N" : random_in(r, 0, 1) ? "R" : "A";
    l->instruction = RANDOM_OF(r, instructions);
    l->mode = RANDOM_OF(r, modes);
    o->n_open += l->ship > CURRENT_DAY;
    o->total += (l->price * (100 - l->discount) * (100 + l->tax) + 5000) / 10000;
  }
}

static void make_orders(struct sink *s, const struct counts *c) {
  struct random r = random_for("tpch", "orders"), comments = random_for("tpch", "o_comment");
  struct order o;
  put_table(s, &orders);
  for (int64_t n = 1; n <= c->orders && !s->failed; n++) {
    make_order(&r, c, &o);
    put_int(s, order_key(n));
    put_int(s, o.customer);
    put_text(s, o.n_open == 0 ? "F" : o.n_open == o.n_lines ? "O" : "P", 1);
    put_money(s, o.total);
    put_date(s, o.day);
    put_string(s, o.priority);
    put_format(s, "Clerk#%09lld", (long long)o.clerk);
    put_int(s, 0);
    put_comment(s, &comments, 19, 78);
    put_row(s);
  }
}

static void make_lines(struct sink *s, const struct counts *c) {
  struct random r = random_for("tpch", "orders"), comments = random_for("tpch", "l_comment");
  struct order o;
  put_table(s, &lineitem);
  for (int64_t n = 1; n <= c->orders && !s->failed; n++) {
    make_order(&r, c, &o);
    for (int k = 0; k < o.n_lines; k++) {
      const struct line *l = &o.lines[k];
      put_int(s, order_key(n));
      put_int(s, l->part);
      put_int(s, l->supplier);
      put_int(s, k + 1);
      put_int(s, l->quantity);
      put_money(s, l->price);
      put_money(s, l->discount);
      put_money(s, l->tax);
      put_text(s, l->flag, 1);
      put_text(s, l->ship > CURRENT_DAY ? "O" : "F", 1);
      put_date(s, l->ship);
      put_date(s, l->commit);
      put_date(s, l->receipt);
      put_string(s, l->instruction);
      put_string(s, l->mode);
      put_comment(s, &comments, 10, 43);
      put_row(s);
    }
  }
}

static void tpch_make(struct sink *s, double scale) {
  struct counts c = {scaled(scale < 0.001 ? 0.001 : scale, 10000), scaled(scale, 200000),
                     scaled(scale, 150000), scaled(scale, 1500000), scaled(scale, 1000)};
  make_places(s);
  make_suppliers(s, &c);
  make_parts(s, &c);
  make_partsupps(s, &c);
  make_customers(s, &c);
  make_orders(s, &c);
  make_lines(s, &c);
}

const struct tables tpch_tables = {"tpch", 1, tpch_make, false};
