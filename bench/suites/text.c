/*
** The grammar's words and a pool of sentences made of them once; see text.h.
**
** 1. Every comment is a piece of the pool, cut anywhere, as the specification allows. The
**    pool is large enough for comments to be nearly all different.
** 2. Words have weights. Those that queries look for ("special", "requests") are as
**    frequent as it takes for about one comment of orders in a hundred to have both.
*/
#include "text.h"

#include <pthread.h>
#include <string.h>

enum { POOL = 8 << 20, MARGIN = 256 };

struct word {
  const char *text;
  int weight;
};

static const struct word nouns[] = {
    {"packages", 40},     {"requests", 40},     {"accounts", 40},    {"deposits", 40},
    {"foxes", 20},        {"ideas", 20},        {"theodolites", 20}, {"pinto beans", 20},
    {"instructions", 20}, {"dependencies", 10}, {"excuses", 10},     {"platelets", 10},
    {"asymptotes", 10},   {"courts", 5},        {"dolphins", 5},     {"multipliers", 1},
    {"sauternes", 1},     {"warthogs", 1},      {"frets", 1},        {"dinos", 1},
    {"attainments", 1},   {"somas", 1},         {"Tiresias", 1},     {"patterns", 1},
    {"forges", 1},        {"braids", 1},        {"frays", 1},        {"warhorses", 1},
    {"dugouts", 1},       {"notornis", 1},      {"epitaphs", 1},     {"pearls", 1},
    {"tithes", 1},        {"waters", 1},        {"orbits", 1},       {"gifts", 1},
    {"sheaves", 1},       {"depths", 1},        {"sentiments", 1},   {"decoys", 1},
    {"realms", 1},        {"pains", 1},         {"grouches", 1},     {"escapades", 1},
    {"hockey players", 1}};

static const struct word verbs[] = {
    {"sleep", 20},    {"wake", 20},    {"are", 20},   {"cajole", 20}, {"haggle", 20},
    {"nag", 10},      {"use", 10},     {"boost", 10}, {"affix", 5},   {"detect", 5},
    {"integrate", 5}, {"maintain", 1}, {"nod", 1},    {"was", 1},     {"lose", 1},
    {"sublate", 1},   {"solve", 1},    {"thrash", 1}, {"promise", 1}, {"engage", 1},
    {"hinder", 1},    {"print", 1},    {"x-ray", 1},  {"breach", 1},  {"eat", 1},
    {"grow", 1},      {"impress", 1},  {"mold", 1},   {"poach", 1},   {"serve", 1},
    {"run", 1},       {"dazzle", 1},   {"snooze", 1}, {"doze", 1},    {"unwind", 1},
    {"kindle", 1},    {"play", 1},     {"hang", 1},   {"believe", 1}, {"doubt", 1}};

static const struct word adjectives[] = {
    {"special", 20}, {"pending", 20}, {"unusual", 20}, {"express", 20}, {"furious", 1},
    {"sly", 1},      {"careful", 1},  {"blithe", 1},   {"quick", 1},    {"fluffy", 1},
    {"slow", 1},     {"quiet", 1},    {"ruthless", 1}, {"thin", 1},     {"close", 1},
    {"dogged", 1},   {"daring", 1},   {"brave", 1},    {"stealthy", 1}, {"permanent", 1},
    {"enticing", 1}, {"idle", 1},     {"busy", 1},     {"regular", 50}, {"final", 40},
    {"ironic", 40},  {"even", 30},    {"bold", 20},    {"silent", 10}};

static const struct word adverbs[] = {
    {"sometimes", 1},  {"always", 1},     {"never", 1},      {"furiously", 50},  {"slyly", 50},
    {"carefully", 50}, {"blithely", 40},  {"quickly", 30},   {"fluffily", 20},   {"slowly", 1},
    {"quietly", 1},    {"ruthlessly", 1}, {"thinly", 1},     {"closely", 1},     {"doggedly", 1},
    {"daringly", 1},   {"bravely", 1},    {"stealthily", 1}, {"permanently", 1}, {"enticingly", 1},
    {"idly", 1},       {"busily", 1},     {"regularly", 1},  {"finally", 1},     {"ironically", 1},
    {"evenly", 1},     {"boldly", 1},     {"silently", 1}};

static const struct word prepositions[] = {{"about", 50},
                                           {"above", 50},
                                           {"according to", 50},
                                           {"across", 50},
                                           {"after", 50},
                                           {"against", 40},
                                           {"along", 40},
                                           {"alongside of", 30},
                                           {"among", 30},
                                           {"around", 20},
                                           {"at", 10},
                                           {"atop", 1},
                                           {"before", 1},
                                           {"behind", 1},
                                           {"beneath", 1},
                                           {"beside", 1},
                                           {"besides", 1},
                                           {"between", 1},
                                           {"beyond", 1},
                                           {"by", 1},
                                           {"despite", 1},
                                           {"during", 1},
                                           {"except", 1},
                                           {"for", 1},
                                           {"from", 1},
                                           {"in place of", 1},
                                           {"inside", 1},
                                           {"instead of", 1},
                                           {"into", 1},
                                           {"near", 1},
                                           {"of", 1},
                                           {"on", 1},
                                           {"outside", 1},
                                           {"over", 1},
                                           {"past", 1},
                                           {"since", 1},
                                           {"through", 1},
                                           {"throughout", 1},
                                           {"to", 1},
                                           {"toward", 1},
                                           {"under", 1},
                                           {"until", 1},
                                           {"up", 1},
                                           {"upon", 1},
                                           {"without", 1},
                                           {"with", 1},
                                           {"within", 1}};

static const struct word auxiliaries[] = {{"do", 1},
                                          {"may", 1},
                                          {"might", 1},
                                          {"shall", 1},
                                          {"will", 1},
                                          {"would", 1},
                                          {"can", 1},
                                          {"could", 1},
                                          {"should", 1},
                                          {"ought to", 1},
                                          {"must", 1},
                                          {"will have to", 1},
                                          {"shall have to", 1},
                                          {"could have to", 1},
                                          {"should have to", 1},
                                          {"must have to", 1},
                                          {"need to", 1},
                                          {"try to", 1}};

static const struct word ends[] = {{".", 50}, {";", 1}, {":", 1}, {"?", 1}, {"!", 1}, {"--", 1}};

/* Phrases: a letter is a word of its kind or a phrase, anything else stands for itself. */
static const struct word sentences[] = {
    {"N V.", 3}, {"N V P.", 3}, {"N V N.", 3}, {"N P V N.", 1}, {"N P V P.", 1}};
static const struct word noun_phrases[] = {{"n", 10}, {"j n", 20}, {"j, j n", 10}, {"d j n", 50}};
static const struct word verb_phrases[] = {{"v", 30}, {"x v", 1}, {"v d", 40}, {"x v d", 1}};
static const struct word preposition_phrases[] = {{"p the N", 1}};

#define KIND(letter, list)                                                                         \
  { letter, list, (int)(sizeof(list) / sizeof *(list)), 0 }
static struct kind {
  char letter;
  const struct word *words;
  int n, sum;
} kinds[] = {KIND('n', nouns),        KIND('v', verbs),
             KIND('j', adjectives),   KIND('d', adverbs),
             KIND('p', prepositions), KIND('x', auxiliaries),
             KIND('.', ends),         KIND('N', noun_phrases),
             KIND('V', verb_phrases), KIND('P', preposition_phrases),
             KIND('S', sentences)};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const char *pick(struct random *r, const struct kind *k) {
  int at = (int)random_in(r, 0, k->sum - 1), i = 0;
  while ((at -= k->words[i].weight) >= 0) i++;
  return k->words[i].text;
}

static char pool[POOL + MARGIN];

/* Writes a phrase out; nests no deeper than sentence, phrase, phrase, word. */
static int expand(struct random *r, const char *phrase, int at) {
  for (; *phrase && at < POOL; phrase++) {
    const struct kind *k = NULL;
    /* "the" is the one word in the phrases that is no letter */
    bool the = strncmp(phrase, "the ", 4) == 0;
    for (int i = 0; i < N_KINDS && !the; i++)
      if (kinds[i].letter == *phrase) k = &kinds[i];
    if (the) {
      memcpy(pool + at, "the ", 4);
      at += 4;
      phrase += 3;
    } else if (!k) {
      pool[at++] = *phrase;
    } else if (strchr("NVPS", k->letter)) {
      at = expand(r, pick(r, k), at);
    } else {
      const char *word = pick(r, k);
      for (; *word; word++) pool[at++] = *word;
    }
  }
  return at;
}

static void make_pool(void) {
  struct random r = random_for("tpch", "text");
  for (int i = 0; i < N_KINDS; i++)
    for (int w = 0; w < kinds[i].n; w++) kinds[i].sum += kinds[i].words[w].weight;
  for (int at = 0; at < POOL; pool[at++] = ' ') at = expand(&r, "S", at);
}

const char *random_text(struct random *r, int least, int most, int *n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_pool);
  *n = (int)random_in(r, least, most);
  return pool + random_in(r, 0, POOL - *n);
}

void put_comment(struct sink *s, struct random *r, int least, int most) {
  int n;
  const char *text = random_text(r, least, most, &n);
  put_text(s, text, n);
}
