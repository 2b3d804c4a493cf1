/*
** Fills the placeholders of query texts; see literals.h.
*/
#include "literals.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen.h"

enum { VALUE_MAX = 64, KIND_MAX = 160, TEXT_MAX = 1 << 14, ATTEMPTS = 200 };

/* ---- lists with a name ---- */

static const char *const months[12] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const initials[18] = {"A", "B", "C", "D", "E", "F", "G", "H", "J",
                                         "K", "L", "M", "N", "P", "R", "S", "T", "W"};
/* Words of four letters in the strings of ../onetable.h. */
static const char *const words[13] = {"warp", "weft", "loom", "reed", "yarn", "wool", "silk",
                                      "hemp", "lace", "felt", "knit", "spin", "card"};

/* The parts of W's skewed lists have about the frequency of the published name or title. */
static const struct {
  const char *name;
  const char *const *list;
  int n;
} lists[] = {
    {"region", regions, 5},
    {"segment", segments, 5},
    {"mode", modes, 7},
    {"size", sizes, 6},
    {"finish", finishes, 5},
    {"metal", metals, 5},
    {"container", containers, 5},
    {"wrap", wraps, 8},
    {"color", colors, 92},
    {"month", months, 12},
    {"initial", initials, 18},
    {"word", words, 13},
    {"frequent_name", first_names, 5},
    {"seldom_name", first_names + 40, 16},
    {"surname", last_names + 12, 17},
    {"frequent_title", short_titles + 7, 9},
    {"seldom_title", short_titles + 24, 8},
    {"journal", journals, 12},
    {"title_of_both", journals + 12, 8},
};
enum { N_LISTS = sizeof lists / sizeof *lists };

/* ---- kinds ---- */

enum domain_type { LIST, NATION, PAGES, WORDS, INTEGERS, DECIMALS, MONTHS, DAYS };

/* The values that a KIND draws from: `n` of them, numbered from `low` on. */
struct domain {
  enum domain_type type;
  int64_t low, n;
  int digits;              /* of decimals, behind the point */
  const char *const *list; /* of LIST */
};

struct placeholder {
  char kind[KIND_MAX], part[VALUE_MAX], plus[VALUE_MAX], published[VALUE_MAX];
  int nth;
  struct domain domain;
};

static bool wrong(char *why, size_t n_why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool wrong(char *why, size_t n_why, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, n_why, format, args);
  va_end(args);
  return false;
}

static int64_t day_number(const char *text) {
  for (int i = 0; i < N_DAYS; i++)
    if (strcmp(days()[i].text, text) == 0) return i;
  return -1;
}

/* The number that a value of a range stands for. */
static bool parse_value(const struct domain *d, const char *text, int64_t *out) {
  char *end;
  int64_t whole = strtoll(text, &end, 10), power = 1;
  switch (d->type) {
  case INTEGERS: *out = whole; return end > text && !*end;
  case DAYS: *out = day_number(text); return *out >= 0;
  case MONTHS:
    if (end != text + 4 || *end != '-') return false;
    *out = whole * 12 + strtoll(end + 1, &end, 10) - 1;
    return !*end;
  case DECIMALS: {
    int64_t fraction = 0;
    for (int i = 0; i < d->digits; i++) power *= 10;
    if (*end == '.') {
      const char *point = end;
      fraction = strtoll(point + 1, &end, 10);
      if (end - point - 1 != d->digits) return false;
    }
    *out = whole * power + (*text == '-' ? -fraction : fraction);
    return end > text && !*end;
  }
  default: return false;
  }
}

static bool parse_range(struct domain *d, const char *kind) {
  char low[VALUE_MAX];
  const char *dots = strstr(kind, "..");
  if (!dots || (size_t)(dots - kind) >= sizeof low) return false;
  memcpy(low, kind, (size_t)(dots - kind));
  low[dots - kind] = '\0';
  const char *point = strchr(low, '.'), *high = dots + 2;
  bool dashed = strlen(low) > 4 && low[4] == '-';
  d->type = point ? DECIMALS : !dashed ? INTEGERS : strlen(low) == 7 ? MONTHS : DAYS;
  if (point) d->digits = (int)strlen(point + 1);
  int64_t to;
  if (!parse_value(d, low, &d->low) || !parse_value(d, high, &to)) return false;
  d->n = to - d->low + 1;
  return true;
}

static bool parse_kind(struct domain *d, const char *kind) {
  memset(d, 0, sizeof *d);
  if (strchr(kind, '|')) {
    d->type = WORDS;
    for (d->n = 1; *kind; kind++) d->n += *kind == '|';
    return true;
  }
  if (isdigit((unsigned char)*kind) || *kind == '-') return parse_range(d, kind) && d->n > 0;
  if (strcmp(kind, "nation") == 0) {
    d->type = NATION;
    d->n = 25;
    return true;
  }
  if (strcmp(kind, "pages") == 0) {
    d->type = PAGES;
    d->low = 1;
    d->n = 60;
    return true;
  }
  for (int i = 0; i < N_LISTS; i++)
    if (strcmp(lists[i].name, kind) == 0) {
      d->list = lists[i].list;
      d->n = lists[i].n;
      return true;
    }
  return false;
}

static void format_decimal(int64_t v, int digits, char *out) {
  int64_t power = 1, size = v < 0 ? -v : v;
  for (int i = 0; i < digits; i++) power *= 10;
  snprintf(out, VALUE_MAX, "%s%lld.%0*lld", v < 0 ? "-" : "", (long long)(size / power), digits,
           (long long)(size % power));
}

static void format_value(const struct placeholder *p, int64_t v, char *out) {
  const struct domain *d = &p->domain;
  switch (d->type) {
  case LIST: snprintf(out, VALUE_MAX, "%s", d->list[v]); break;
  case NATION: {
    const struct nation *n = &nations[v];
    if (strcmp(p->part, "region") == 0)
      snprintf(out, VALUE_MAX, "%s", regions[n->region]);
    else /* a city is nine letters of its nation and a digit */
      snprintf(out, VALUE_MAX, strcmp(p->part, "city") == 0 ? "%-9.9s" : "%s", n->name);
    break;
  }
  case PAGES: {
    char from[16], to[16];
    roman_number(from, (int)v);
    roman_number(to, (int)v + 1);
    snprintf(out, VALUE_MAX, "pp. %s-%s", from, to);
    break;
  }
  case WORDS: {
    const char *at = p->kind;
    for (; v > 0; v--) at = strchr(at, '|') + 1;
    snprintf(out, VALUE_MAX, "%.*s", (int)strcspn(at, "|"), at);
    break;
  }
  case INTEGERS: snprintf(out, VALUE_MAX, "%lld", (long long)v); break;
  case DECIMALS: format_decimal(v, d->digits, out); break;
  case MONTHS: snprintf(out, VALUE_MAX, "%04d-%02d", (int)(v / 12), (int)(v % 12) + 1); break;
  case DAYS: snprintf(out, VALUE_MAX, "%s", days()[v].text); break;
  }
}

/* ---- placeholders ---- */

/* Copies up to one of the characters of `stop`; false: too long. */
static bool take(const char **at, const char *stop, char *out, size_t n_out) {
  size_t n = strcspn(*at, stop);
  if (n >= n_out) return false;
  memcpy(out, *at, n);
  out[n] = '\0';
  *at += n;
  return true;
}

/* Reads the placeholder at *at, which is behind its opening braces, and goes behind the closing
** ones. */
static bool parse_placeholder(struct placeholder *p, const char **at, char *why, size_t n_why) {
  const char *start = *at;
  char nth[VALUE_MAX] = "1";
  memset(p, 0, sizeof *p);
  bool named = isalpha((unsigned char)**at);
  bool ok = take(at, named ? ".#+:}" : "#+:}", p->kind, sizeof p->kind);
  if (ok && **at == '.') ok = (*at)++, take(at, "#+:}", p->part, sizeof p->part);
  if (ok && **at == '#') ok = (*at)++, take(at, "+:}", nth, sizeof nth);
  if (ok && **at == '+') ok = (*at)++, take(at, ":}", p->plus, sizeof p->plus);
  if (ok && **at == ':') ok = (*at)++, take(at, "}", p->published, sizeof p->published);
  p->nth = atoi(nth);
  if (!ok || (*at)[0] != '}' || (*at)[1] != '}' || p->nth < 1 || !parse_kind(&p->domain, p->kind) ||
      p->nth > p->domain.n || (*p->plus && p->domain.type < INTEGERS) ||
      (*p->part && p->domain.type != NATION))
    return wrong(why, n_why, "the placeholder {{%.60s cannot be used", start);
  *at += 2;
  return true;
}

static uint64_t mix(uint64_t h, const char *text) {
  for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3ULL;
  return (h ^ 0xff) * 0x100000001b3ULL;
}

/* The nth of the values that the seed draws for this kind, all different. */
static int64_t draw(const struct placeholder *p, uint64_t seed) {
  struct random r = {mix(seed, p->kind)};
  int64_t drawn[64];
  for (int i = 0; i < p->nth && i < 64; i++) {
    bool again;
    do {
      again = false;
      drawn[i] = random_in(&r, 0, p->domain.n - 1);
      for (int k = 0; k < i; k++) again |= drawn[k] == drawn[i];
    } while (again);
  }
  return p->domain.low + drawn[p->nth <= 64 ? p->nth - 1 : 63];
}

static bool value_of(const struct placeholder *p, uint64_t seed, char *out, char *why,
                     size_t n_why) {
  int64_t value = draw(p, seed), plus = 0;
  struct domain unit = p->domain;
  if (unit.type == MONTHS || unit.type == DAYS) unit.type = INTEGERS;
  if (*p->plus && !parse_value(&unit, p->plus, &plus))
    return wrong(why, n_why, "+%s fits no value of %s", p->plus, p->kind);
  format_value(p, value + plus, out);
  return true;
}

/* The text with its values, to be freed. seed 0: the published ones. */
static char *fill(const char *text, uint64_t seed, bool *varies, char *why, size_t n_why) {
  char *out = malloc(TEXT_MAX), value[VALUE_MAX];
  size_t n = 0;
  while (out && *text) {
    struct placeholder p;
    if (strncmp(text, "{{", 2) != 0) {
      value[0] = *text++;
      value[1] = '\0';
    } else {
      text += 2;
      *varies = true;
      bool ok = parse_placeholder(&p, &text, why, n_why) && value_of(&p, seed, value, why, n_why);
      if (!ok) goto failed;
      if (seed == 0) strcpy(value, p.published);
    }
    if (n + strlen(value) >= TEXT_MAX) {
      wrong(why, n_why, "the text is too long");
      goto failed;
    }
    n += (size_t)sprintf(out + n, "%s", value);
  }
  if (out) out[n] = '\0';
  return out;
failed:
  free(out);
  return NULL;
}

/* ---- runs ---- */

static char *with_comment(const char *text, int run) {
  size_t n = strlen(text) + 32;
  char *out = malloc(n);
  if (out) snprintf(out, n, "/* run %d */ %s", run, text);
  return out;
}

/* Whether the text of this run is as different as invariant 4 says. */
static bool differs(const struct run_texts *t, int run, const char *text, int attempt) {
  for (int k = attempt < ATTEMPTS / 2 ? 0 : run - 1; k < run; k++)
    if (strcmp(t->sql[k], text) == 0) return false;
  return true;
}

static bool make_run(struct run_texts *t, const char *suite, const char *query, const char *sql,
                     const char *duck_sql, int run, char *why, size_t n_why) {
  bool varies = false, ignored;
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    char number[32];
    snprintf(number, sizeof number, "%d/%d", run, attempt);
    uint64_t seed = mix(mix(mix(0xcbf29ce484222325ULL, suite), query), number) | 1;
    char *text = fill(sql, run ? seed : 0, &varies, why, n_why);
    if (text && run > 0 && !varies) {
      char *commented = with_comment(text, run);
      free(text);
      text = commented;
    } else if (text && run > 0 && !differs(t, run, text, attempt)) {
      free(text);
      continue;
    }
    t->sql[run] = text;
    if (!text) return false;
    if (duck_sql && varies)
      t->duck_sql[run] = fill(duck_sql, run ? seed : 0, &ignored, why, n_why);
    else
      t->duck_sql[run] = strdup(duck_sql && run == 0 ? duck_sql : text);
    return t->duck_sql[run] != NULL;
  }
  return wrong(why, n_why, "no two runs of %s %s differ", suite, query);
}

bool run_texts_make(struct run_texts *t, const char *suite, const char *query, const char *sql,
                    const char *duck_sql, int n, char *why, size_t n_why) {
  wrong(why, n_why, "out of memory");
  *t = (struct run_texts){n, calloc((size_t)n, sizeof *t->sql), calloc((size_t)n, sizeof *t->sql)};
  bool ok = t->sql && t->duck_sql;
  for (int run = 0; ok && run < n; run++)
    ok = make_run(t, suite, query, sql, duck_sql, run, why, n_why);
  if (!ok) run_texts_free(t);
  return ok;
}

void run_texts_free(struct run_texts *t) {
  for (int i = 0; i < t->n; i++) {
    if (t->sql) free(t->sql[i]);
    if (t->duck_sql) free(t->duck_sql[i]);
  }
  free(t->sql);
  free(t->duck_sql);
  memset(t, 0, sizeof *t);
}
