/*
** The tables of the 2014 paper: what a library of scholarly writing knows of documents,
** their authors, and the editions and publications they stand in. The paper's data is not
** published; the names and titles are made here, skewed as such things are.
**
** 1. At scale 1 there are a million documents and a million authors; the other tables
**    follow from them. Keys are INTEGER PRIMARY KEYs, and there is no other index
**    (that of DocumentAuthors is declared on request).
** 2. Every constant of the nine queries is found in some rows: the frequent ones come out of
**    the skew, the rare ones ('Edna F. Campbell') are put at fixed ids.
** 3. Titles that are a first name are those of seldom names, at fixed ids: each matches
**    about a hundred authors of a million, so that query 7 has thousands of rows.
** 4. nameid stands for lastname and titleid for title, number by text: a condition over a
**    string has a twin over a number that finds the same rows.
*/
#include <stdio.h>
#include <string.h>

#include "store.h"

static const struct table authors = {"Authors",
                                     NULL,
                                     {{"id", KEY},
                                      {"firstname", TEXT},
                                      {"lastname", TEXT},
                                      {"fullname", TEXT},
                                      {"born", INT},
                                      {"nameid", INT}}};

static const struct table documents = {"Document",
                                       NULL,
                                       {{"id", KEY},
                                        {"title", TEXT},
                                        {"pagerange", TEXT},
                                        {"pubeditionid", INT},
                                        {"repositoryID", INT},
                                        {"year", INT},
                                        {"titleid", INT}}};

static const struct table document_authors = {
    "DocumentAuthors", "documentid, authorid", {{"documentid", INT}, {"authorid", INT}}};
static const struct table editions = {"PubEdition", NULL, {{"id", KEY}, {"pubid", INT}}};
static const struct table publications = {
    "Publication", NULL, {{"id", KEY}, {"title", TEXT}, {"publisherid", INT}}};

static const char *const seldom_names[] = {
    "Zenobia", "Lysander", "Ophelia",  "Ptolemy", "Cassius", "Hermione", "Endymion", "Calypso",
    "Orlando", "Perdita",  "Prospero", "Miranda", "Lavinia", "Octavian", "Evadne",   "Isolde",
};

static const char *const kinds[] = {
    "Study",   "History", "Theory", "Analysis", "Survey",    "Origin",    "Growth", "Geography",
    "Measure", "Future",  "Nature", "Problem",  "Chemistry", "Economics", "Limits", "Influence"};
static const char *const subjects[] = {
    "Soils", "Rivers", "Cities",    "Birds",   "Mountains", "Glaciers", "Languages", "Markets",
    "Wages", "Prices", "Railroads", "Schools", "Diseases",  "Insects",  "Forests",   "Minerals",
    "Tides", "Storms", "Heredity",  "Memory",  "Numbers",   "Colors",   "Sounds",    "Customs",
    "Laws",  "Banks",  "Taxes",     "Farms",   "Harbors",   "Stars",    "Comets",    "Enzymes"};
static const char *const places[] = {
    "New England", "the South",       "the West",    "Ohio",
    "California",  "Canada",          "Mexico",      "England",
    "France",      "Germany",         "Italy",       "Russia",
    "China",       "Japan",           "India",       "Egypt",
    "Africa",      "Brazil",          "the Tropics", "the Arctic",
    "Antiquity",   "the Renaissance", "Our Time",    "the Nineteenth Century"};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

/* Shares as one over the place and `flat`: the larger flat is, the less skew. */
enum { SKEW_MOST = 96 };
struct skew {
  uint64_t upto[SKEW_MOST]; /* sums of shares */
  int n;
};

static struct skew skew_over(int n, int flat) {
  struct skew k = {.n = n};
  uint64_t sum = 0;
  for (int i = 0; i < n; i++) k.upto[i] = sum += 1000000000u / (unsigned)(i + flat);
  return k;
}

static int skew_pick(const struct skew *k, struct random *r) {
  uint64_t x = (uint64_t)random_in(r, 0, (int64_t)k->upto[k->n - 1] - 1);
  int i = 0;
  while (x >= k->upto[i]) i++;
  return i;
}

/* A surname of the long tail, by its number. */
static void tail_name(int number, char *out, size_t n) {
  static const char *const heads[] = {"Al", "Ber", "Cor", "Dun",  "Ek",  "Far", "Gol", "Hart",
                                      "Iv", "Jan", "Kes", "Lind", "Mor", "Nor", "Os",  "Pel"};
  static const char *const middles[] = {"a", "en", "er", "i", "in", "o", "ow", "ul"};
  static const char *const tails[] = {"berg", "by",  "dale", "feld", "ford",  "ham",
                                      "hoff", "ley", "man",  "ner",  "quist", "ski",
                                      "son",  "ton", "well", "wood"};
  snprintf(out, n, "%s%s%s", heads[number & 15], middles[number >> 4 & 7], tails[number >> 7 & 15]);
}

static void make_authors(struct sink *s, int64_t n) {
  struct random r = random_for("w", "Authors");
  struct skew first = skew_over(COUNT(first_names), 8), last = skew_over(COUNT(last_names), 30);
  put_table(s, &authors);
  for (int64_t id = 1; id <= n && !s->failed; id++) {
    char tail[32];
    const char *given = first_names[skew_pick(&first, &r)], *family = tail;
    int nameid, chance = (int)random_in(&r, 0, 9999);
    char initial = "ABCDEFGHJKLMNPRSTW"[random_in(&r, 0, 17)];
    if (chance < 16) given = seldom_names[chance]; /* one in 10,000 each */
    if (chance % 5 < 2) {                          /* two in five have a common surname */
      nameid = skew_pick(&last, &r);
      family = last_names[nameid];
    } else {
      nameid = (int)random_in(&r, 0, 2047);
      tail_name(nameid, tail, sizeof tail);
      nameid += 1000;
    }
    if (id % 200000 == 4711) {
      given = "Edna";
      initial = 'F';
      nameid = 20;
      family = last_names[nameid];
    }
    put_int(s, id);
    put_string(s, given);
    put_string(s, family);
    put_format(s, "%s %c. %s", given, initial, family);
    put_int(s, random_in(&r, 1780, 1975));
    put_int(s, nameid);
    put_row(s);
  }
}

/* One in fifty stands before page one, in Roman numbers. */
static void put_pages(struct sink *s, struct random *r) {
  int first = (int)random_in(r, 1, 900), n = (int)random_in(r, 1, 30);
  if (random_in(r, 0, 49) == 0) {
    char from[16], to[16];
    first = first % 60 + 1;
    roman_number(from, first);
    roman_number(to, first + n % 4);
    put_format(s, n % 4 ? "pp. %s-%s" : "p. %s", from, to);
  } else {
    put_format(s, "pp. %d-%d", first, first + n);
  }
}

/* One in eight has a title that many have; the others say what they are about. */
static int title_of(struct random *r, const struct skew *skew, int64_t id, char *out, size_t n) {
  if (id % 25000 == 7 || (id < 1000 && id % 100 == 7)) {
    int k = (int)(id / 100 % COUNT(seldom_names));
    snprintf(out, n, "%s", seldom_names[k]);
    return 500 + k;
  }
  if (random_in(r, 0, 7) == 0) {
    int k = skew_pick(skew, r);
    snprintf(out, n, "%s", short_titles[k]);
    return k;
  }
  int a = (int)random_in(r, 0, COUNT(kinds) - 1), b = (int)random_in(r, 0, COUNT(subjects) - 1),
      c = (int)random_in(r, 0, COUNT(subjects) - 1), d = (int)random_in(r, 0, COUNT(places) - 1);
  snprintf(out, n, "The %s of %s and %s in %s", kinds[a], subjects[b], subjects[c], places[d]);
  return 1000 + ((a * COUNT(subjects) + b) * COUNT(subjects) + c) * COUNT(places) + d;
}

static void make_documents(struct sink *s, int64_t n, int64_t n_editions) {
  struct random r = random_for("w", "Document");
  struct skew skew = skew_over(COUNT(short_titles), 5);
  char title[128];
  put_table(s, &documents);
  for (int64_t id = 1; id <= n && !s->failed; id++) {
    int titleid = title_of(&r, &skew, id, title, sizeof title);
    put_int(s, id);
    put_string(s, title);
    put_pages(s, &r);
    put_int(s, random_in(&r, 1, n_editions));
    put_int(s, random_in(&r, 1, 5));
    put_int(s, random_in(&r, 1860, 1995));
    put_int(s, titleid);
    put_row(s);
  }
}

static void make_document_authors(struct sink *s, int64_t n) {
  struct random r = random_for("w", "DocumentAuthors");
  put_table(s, &document_authors);
  for (int64_t id = 1; id <= n && !s->failed; id++) {
    int chance = (int)random_in(&r, 0, 99);
    int64_t author = random_in(&r, 1, n);
    for (int k = chance < 55 ? 1 : chance < 85 ? 2 : 3; k > 0; k--) {
      put_int(s, id);
      put_int(s, author);
      put_row(s);
      author = author % n + random_in(&r, 1, n / 4 + 1); /* no author twice */
      if (author > n) author -= n;
    }
  }
}

static void make_publications(struct sink *s, int64_t n_editions, int64_t n) {
  struct random r = random_for("w", "Publication");
  put_table(s, &editions);
  for (int64_t id = 1; id <= n_editions && !s->failed; id++) {
    put_int(s, id);
    put_int(s, random_in(&r, 1, n));
    put_row(s);
  }
  put_table(s, &publications);
  for (int64_t id = 1; id <= n && !s->failed; id++) {
    put_int(s, id);
    if (id <= COUNT(journals)) {
      put_string(s, journals[id - 1]);
    } else {
      const char *subject = RANDOM_OF(&r, subjects);
      put_format(s, "Journal of %s in %s", subject, RANDOM_OF(&r, places));
    }
    put_int(s, random_in(&r, 1, 50));
    put_row(s);
  }
}

static void works_make(struct sink *s, double scale) {
  int64_t n = scaled(scale, 1000000), n_editions = n / 20 + 1, n_publications = n / 1000 + 50;
  make_authors(s, n);
  make_documents(s, n, n_editions);
  make_document_authors(s, n);
  make_publications(s, n_editions, n_publications);
}

const struct tables works_tables = {"w", 2, works_make, true};
