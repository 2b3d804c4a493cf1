/*
** The value lists of the generators, from which the queries' literals are drawn too: those that the
** Star Schema Benchmark and TPC-H have in common, as their specifications give them, and the names
** and titles of W (works.c).
*/
#include "gen.h"

const char *const regions[5] = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"};

const struct nation nations[25] = {
    {"ALGERIA", 0},       {"ARGENTINA", 1}, {"BRAZIL", 1}, {"CANADA", 1},
    {"EGYPT", 4},         {"ETHIOPIA", 0},  {"FRANCE", 3}, {"GERMANY", 3},
    {"INDIA", 2},         {"INDONESIA", 2}, {"IRAN", 4},   {"IRAQ", 4},
    {"JAPAN", 2},         {"JORDAN", 4},    {"KENYA", 0},  {"MOROCCO", 0},
    {"MOZAMBIQUE", 0},    {"PERU", 1},      {"CHINA", 2},  {"ROMANIA", 3},
    {"SAUDI ARABIA", 4},  {"VIETNAM", 2},   {"RUSSIA", 3}, {"UNITED KINGDOM", 3},
    {"UNITED STATES", 1},
};

const char *const segments[5] = {"AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"};
const char *const priorities[5] = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"};
const char *const modes[7] = {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};

const char *const sizes[6] = {"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"};
const char *const finishes[5] = {"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"};
const char *const metals[5] = {"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"};

const char *const containers[5] = {"SM", "LG", "MED", "JUMBO", "WRAP"};
const char *const wraps[8] = {"CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"};

const char *const colors[92] = {
    "almond",   "antique",   "aquamarine", "azure",      "beige",     "bisque",    "black",
    "blanched", "blue",      "blush",      "brown",      "burlywood", "burnished", "chartreuse",
    "chiffon",  "chocolate", "coral",      "cornflower", "cornsilk",  "cream",     "cyan",
    "dark",     "deep",      "dim",        "dodger",     "drab",      "firebrick", "floral",
    "forest",   "frosted",   "gainsboro",  "ghost",      "goldenrod", "green",     "grey",
    "honeydew", "hot",       "indian",     "ivory",      "khaki",     "lace",      "lavender",
    "lawn",     "lemon",     "light",      "lime",       "linen",     "magenta",   "maroon",
    "medium",   "metallic",  "midnight",   "mint",       "misty",     "moccasin",  "navajo",
    "navy",     "olive",     "orange",     "orchid",     "pale",      "papaya",    "peach",
    "peru",     "pink",      "plum",       "powder",     "puff",      "purple",    "red",
    "rose",     "rosy",      "royal",      "saddle",     "salmon",    "sandy",     "seashell",
    "sienna",   "sky",       "slate",      "smoke",      "snow",      "spring",    "steel",
    "tan",      "thistle",   "tomato",     "turquoise",  "violet",    "wheat",     "white",
    "yellow",
};

/* The most frequent first: the nth has a share as one over n and a few. */
const char *const first_names[72] = {
    "John",     "William",   "James",    "George",  "Charles", "Robert",    "Henry",    "Thomas",
    "Edward",   "Mary",      "Joseph",   "Frank",   "Walter",  "Arthur",    "Richard",  "Albert",
    "David",    "Paul",      "Samuel",   "Harry",   "Fred",    "Elizabeth", "Helen",    "Louis",
    "Carl",     "Margaret",  "Ralph",    "Ernest",  "Alfred",  "Anna",      "Daniel",   "Howard",
    "Peter",    "Ruth",      "Benjamin", "Herbert", "Francis", "Alice",     "Clarence", "Philip",
    "Florence", "Hugh",      "Edna",     "Martin",  "Edith",   "Andrew",    "Stephen",  "Jim",
    "Grace",    "Oscar",     "Lewis",    "Emma",    "Max",     "Otto",      "Clara",    "Edgar",
    "Leonard",  "Alexander", "Julia",    "Bertha",  "Lucy",    "Theodore",  "Sarah",    "Roy",
    "Horace",   "Ida",       "Norman",   "Eugene",  "Agnes",   "Victor",    "Earl",     "Laura",
};

const char *const last_names[72] = {
    "Smith",    "Johnson", "Brown",    "Williams", "Jones",    "Miller",     "Davis",   "Wilson",
    "Anderson", "Taylor",  "Moore",    "Clark",    "White",    "Thompson",   "Martin",  "Hall",
    "Lewis",    "Allen",   "Young",    "King",     "Campbell", "Wright",     "Adams",   "Hill",
    "Baker",    "Green",   "Scott",    "Robinson", "Walker",   "Mitchell",   "Carter",  "Roberts",
    "Evans",    "Turner",  "Phillips", "Parker",   "Collins",  "Edwards",    "Stewart", "Morris",
    "Murphy",   "Cook",    "Rogers",   "Morgan",   "Cooper",   "Peterson",   "Reed",    "Bailey",
    "Bell",     "Kelly",   "Howard",   "Ward",     "Cox",      "Richardson", "Wood",    "Watson",
    "Brooks",   "Bennett", "Gray",     "James",    "Hughes",   "Price",      "Myers",   "Long",
    "Foster",   "Sanders", "Ross",     "Morales",  "Powell",   "Sullivan",   "Russell", "Ortiz",
};

const char *const short_titles[32] = {
    "Front Matter",
    "Back Matter",
    "Book Reviews",
    "Notes",
    "Discussion",
    "Correspondence",
    "Notes and News",
    "Obituary",
    "Index",
    "Introduction",
    "Editorial",
    "Population",
    "Current Topics",
    "Book Notes",
    "Contributors",
    "Letters",
    "Recent Books",
    "Abstracts",
    "Errata",
    "Education",
    "Agriculture",
    "Proceedings",
    "Announcements",
    "The Weather",
    "Immigration",
    "Statistics",
    "Campbell",
    "Labor",
    "Rural Conditions in the South",
    "The Census",
    "Transportation",
    "Housing",
};

/* The last eight are also titles of documents, about as frequent as "Campbell". */
const char *const journals[20] = {
    "Science",        "The Scientific Monthly",
    "Nature",         "Scientific American",
    "Campbell",       "The Geographical Journal",
    "Isis",           "The Monist",
    "Economica",      "Folklore",
    "The Auk",        "The Condor",
    "Announcements",  "The Weather",
    "Immigration",    "Statistics",
    "Labor",          "The Census",
    "Transportation", "Housing",
};
