/*
** The handwritten lexer: one scanner for each kind of token, and a sorted table of keywords. lex.h
** explains its role and invariants.
*/
#include "sql/lex.h"
#include "parse.h"
#include <string.h>

/* From lemon's output: the token that can replace this one (a keyword used as a name), or 0. */
int wl_lemonFallback(int kind);

/*
** Character classes for ASCII. Every byte from 0x80 up is allowed in names.
*/
static bool is_digit(unsigned char c) {
  return c >= '0' && c <= '9';
}

static bool is_alpha(unsigned char c) {
  return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static bool is_hex(unsigned char c) {
  return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

static bool is_space(unsigned char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool starts_name(unsigned char c) {
  return is_alpha(c) || c == '_' || c >= 0x80;
}

static bool in_name(unsigned char c) {
  return starts_name(c) || is_digit(c) || c == '$';
}

/*
** The words that the grammar must distinguish from names, sorted. SQLite's other keywords can
** either always be used as names, or (WLT_RESERVED) do not occur in the statements parsed here.
*/
enum { LONGEST_WORD = 17 };

static const struct keyword {
  const char *word;
  int kind;
} keywords[] = {
    {"ABORT", WLT_ABORT},
    {"ADD", WLT_RESERVED},
    {"ALL", WLT_ALL},
    {"ALTER", WLT_RESERVED},
    {"AND", WLT_AND},
    {"AS", WLT_AS},
    {"ASC", WLT_ASC},
    {"AUTOINCREMENT", WLT_RESERVED},
    {"BETWEEN", WLT_BETWEEN},
    {"BY", WLT_BY},
    {"CASE", WLT_CASE},
    {"CAST", WLT_CAST},
    {"CHECK", WLT_RESERVED},
    {"COLLATE", WLT_COLLATE},
    {"COMMIT", WLT_RESERVED},
    {"CONFLICT", WLT_CONFLICT},
    {"CONSTRAINT", WLT_RESERVED},
    {"CREATE", WLT_RESERVED},
    {"CROSS", WLT_JOIN_KW},
    {"CURRENT", WLT_CURRENT},
    {"CURRENT_DATE", WLT_NOW},
    {"CURRENT_TIME", WLT_NOW},
    {"CURRENT_TIMESTAMP", WLT_NOW},
    {"DEFAULT", WLT_DEFAULT},
    {"DEFERRABLE", WLT_RESERVED},
    {"DELETE", WLT_DELETE},
    {"DESC", WLT_DESC},
    {"DISTINCT", WLT_DISTINCT},
    {"DO", WLT_DO},
    {"DROP", WLT_RESERVED},
    {"ELSE", WLT_ELSE},
    {"END", WLT_END},
    {"ESCAPE", WLT_ESCAPE},
    {"EXCEPT", WLT_EXCEPT},
    {"EXCLUDE", WLT_EXCLUDE},
    {"EXISTS", WLT_EXISTS},
    {"FAIL", WLT_FAIL},
    {"FILTER", WLT_FILTER},
    {"FIRST", WLT_FIRST},
    {"FOLLOWING", WLT_FOLLOWING},
    {"FOREIGN", WLT_RESERVED},
    {"FROM", WLT_FROM},
    {"FULL", WLT_JOIN_KW},
    {"GLOB", WLT_LIKE_KW},
    {"GROUP", WLT_GROUP},
    {"GROUPS", WLT_GROUPS},
    {"HAVING", WLT_HAVING},
    {"IGNORE", WLT_IGNORE},
    {"IN", WLT_IN},
    {"INDEX", WLT_RESERVED},
    {"INDEXED", WLT_INDEXED},
    {"INNER", WLT_JOIN_KW},
    {"INSERT", WLT_INSERT},
    {"INTERSECT", WLT_INTERSECT},
    {"INTO", WLT_INTO},
    {"IS", WLT_IS},
    {"ISNULL", WLT_ISNULL},
    {"JOIN", WLT_JOIN},
    {"LAST", WLT_LAST},
    {"LEFT", WLT_JOIN_KW},
    {"LIKE", WLT_LIKE_KW},
    {"LIMIT", WLT_LIMIT},
    {"MATCH", WLT_MATCH},
    {"MATERIALIZED", WLT_MATERIALIZED},
    {"NATURAL", WLT_JOIN_KW},
    {"NO", WLT_NO},
    {"NOT", WLT_NOT},
    {"NOTHING", WLT_NOTHING},
    {"NOTNULL", WLT_NOTNULL},
    {"NULL", WLT_NULL},
    {"NULLS", WLT_NULLS},
    {"OFFSET", WLT_OFFSET},
    {"ON", WLT_ON},
    {"OR", WLT_OR},
    {"ORDER", WLT_ORDER},
    {"OTHERS", WLT_OTHERS},
    {"OUTER", WLT_JOIN_KW},
    {"OVER", WLT_OVER},
    {"PARTITION", WLT_PARTITION},
    {"PRECEDING", WLT_PRECEDING},
    {"PRIMARY", WLT_RESERVED},
    {"RAISE", WLT_RAISE},
    {"RANGE", WLT_RANGE},
    {"RECURSIVE", WLT_RECURSIVE},
    {"REFERENCES", WLT_RESERVED},
    {"REGEXP", WLT_LIKE_KW},
    {"REPLACE", WLT_REPLACE},
    {"RETURNING", WLT_RETURNING},
    {"RIGHT", WLT_JOIN_KW},
    {"ROLLBACK", WLT_ROLLBACK},
    {"ROW", WLT_ROW},
    {"ROWS", WLT_ROWS},
    {"SELECT", WLT_SELECT},
    {"SET", WLT_SET},
    {"TABLE", WLT_RESERVED},
    {"THEN", WLT_THEN},
    {"TIES", WLT_TIES},
    {"TO", WLT_RESERVED},
    {"TRANSACTION", WLT_RESERVED},
    {"UNBOUNDED", WLT_UNBOUNDED},
    {"UNION", WLT_UNION},
    {"UNIQUE", WLT_RESERVED},
    {"UPDATE", WLT_UPDATE},
    {"USING", WLT_USING},
    {"VALUES", WLT_VALUES},
    {"WHEN", WLT_WHEN},
    {"WHERE", WLT_WHERE},
    {"WINDOW", WLT_WINDOW},
    {"WITH", WLT_WITH},
};

static int keyword_or_id(const char *s, size_t n) {
  char word[LONGEST_WORD + 1];
  if (n < 2 || n > LONGEST_WORD) return WLT_ID;
  for (size_t i = 0; i < n; i++)
    word[i] = (char)(is_alpha((unsigned char)s[i]) ? s[i] & ~32 : s[i]);
  word[n] = 0;
  size_t lo = 0, hi = sizeof keywords / sizeof keywords[0];
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    int c = strcmp(word, keywords[mid].word);
    if (c == 0) return keywords[mid].kind;
    if (c < 0) {
      hi = mid;
    } else {
      lo = mid + 1;
    }
  }
  return WLT_ID;
}

/* Byte i of the text, or 0 at and after its end, so that looking ahead needs no bounds check. */
static unsigned char at(const wl_lexer *lex, size_t i) {
  return i < lex->n ? (unsigned char)lex->sql[i] : 0;
}

static size_t skip_blank(const wl_lexer *lex, size_t i) {
  for (;;) {
    unsigned char c = at(lex, i);
    if (c == '\v') return i; /* SQLite accepts \v as space only after other space */
    if (is_space(c)) {
      while (is_space(at(lex, i))) i++;
    } else if (c == 0xEF && at(lex, i + 1) == 0xBB && at(lex, i + 2) == 0xBF) {
      i += 3;
    } else if (c == '-' && at(lex, i + 1) == '-') {
      while (i < lex->n && lex->sql[i] != '\n') i++;
    } else if (c == '/' && at(lex, i + 1) == '*' && i + 2 < lex->n) {
      i += 2;
      while (i < lex->n && !(lex->sql[i] == '*' && at(lex, i + 1) == '/')) i++;
      i = i < lex->n ? i + 2 : lex->n;
    } else {
      return i;
    }
  }
}

/* Each scanner below starts at the token's first byte, moves *end past the token and returns its
** kind. */

static int scan_quoted(const wl_lexer *lex, size_t start, size_t *end) {
  unsigned char quote = at(lex, start);
  unsigned char close = quote == '[' ? ']' : quote;
  size_t i = start + 1;
  for (; i < lex->n; i++) {
    if (at(lex, i) != close) continue;
    if (quote != '[' && at(lex, i + 1) == close) {
      i++;
      continue;
    }
    *end = i + 1;
    return quote == '\'' ? WLT_STRING : WLT_ID;
  }
  *end = lex->n;
  return WL_LEX_ILLEGAL;
}

static int scan_number(const wl_lexer *lex, size_t start, size_t *end) {
  size_t i = start;
  int kind = WLT_INTEGER;
  if (at(lex, i) == '0' && (at(lex, i + 1) | 32) == 'x' && is_hex(at(lex, i + 2))) {
    i += 3;
    while (is_hex(at(lex, i))) i++;
    *end = i; /* 0x1g is the number 0x1 and the name g */
    return kind;
  }
  while (is_digit(at(lex, i))) i++;
  if (at(lex, i) == '.') {
    kind = WLT_FLOAT;
    i++;
    while (is_digit(at(lex, i))) i++;
  }
  if ((at(lex, i) | 32) == 'e') {
    size_t sign = at(lex, i + 1) == '+' || at(lex, i + 1) == '-';
    if (is_digit(at(lex, i + 1 + sign))) {
      kind = WLT_FLOAT;
      i += 2 + sign;
      while (is_digit(at(lex, i))) i++;
    }
  }
  while (in_name(at(lex, i))) { /* 12abc is not a token */
    kind = WL_LEX_ILLEGAL;
    i++;
  }
  *end = i;
  return kind;
}

/* :name @name $name, with Tcl's ::parts and one (index) at the end. */
static int scan_named_param(const wl_lexer *lex, size_t start, size_t *end) {
  size_t i = start + 1, n = 0;
  int kind = WLT_VARIABLE;
  for (;; i++) {
    unsigned char c = at(lex, i);
    if (in_name(c)) {
      n++;
    } else if (c == '(' && n > 0) {
      do i++;
      while (at(lex, i) && !is_space(at(lex, i)) && at(lex, i) != ')');
      if (at(lex, i) == ')') {
        i++;
      } else {
        kind = WL_LEX_ILLEGAL;
      }
      break;
    } else if (c == ':' && at(lex, i + 1) == ':') {
      i++;
    } else {
      break;
    }
  }
  *end = i;
  if (n == 0) return WL_LEX_ILLEGAL;
  /* #1 is a register in SQLite's internal parses; applications cannot use it */
  if (at(lex, start) == '#' && is_digit(at(lex, start + 1))) return WL_LEX_ILLEGAL;
  return kind;
}

static int scan_blob(const wl_lexer *lex, size_t start, size_t *end) {
  size_t i = start + 2;
  while (is_hex(at(lex, i))) i++;
  if (at(lex, i) == '\'' && (i - start) % 2 == 0) {
    *end = i + 1;
    return WLT_BLOB;
  }
  while (i < lex->n && at(lex, i) != '\'') i++;
  *end = i < lex->n ? i + 1 : i;
  return WL_LEX_ILLEGAL;
}

static int scan_operator(const wl_lexer *lex, size_t start, size_t *end) {
  static const struct operator{
    char text[4];
    int kind;
  }
  operators[] = {
      /* longer operators before their prefixes */
      {"->>", WLT_ARROW2}, {"->", WLT_ARROW},  {"-", WLT_MINUS}, {"<<", WLT_LSHIFT},
      {"<=", WLT_LE},      {"<>", WLT_NE},     {"<", WLT_LT},    {">>", WLT_RSHIFT},
      {">=", WLT_GE},      {">", WLT_GT},      {"==", WLT_EQ},   {"=", WLT_EQ},
      {"!=", WLT_NE},      {"||", WLT_CONCAT}, {"|", WLT_BITOR}, {"&", WLT_BITAND},
      {"~", WLT_BITNOT},   {"+", WLT_PLUS},    {"*", WLT_STAR},  {"/", WLT_SLASH},
      {"%", WLT_REM},      {"(", WLT_LP},      {")", WLT_RP},    {",", WLT_COMMA},
      {".", WLT_DOT},      {";", WLT_SEMI},
  };
  for (size_t k = 0; k < sizeof operators / sizeof operators[0]; k++) {
    size_t n = strlen(operators[k].text);
    if (start + n <= lex->n && memcmp(lex->sql + start, operators[k].text, n) == 0) {
      *end = start + n;
      return operators[k].kind;
    }
  }
  *end = start + 1;
  return WL_LEX_ILLEGAL;
}

static int scan(const wl_lexer *lex, size_t start, size_t *end) {
  unsigned char c = at(lex, start), next = at(lex, start + 1);
  switch (c) {
  case 0: *end = start; return WL_LEX_END;
  case '\'':
  case '"':
  case '`':
  case '[': return scan_quoted(lex, start, end);
  case '?':
    *end = start + 1;
    while (is_digit(at(lex, *end))) ++*end;
    return WLT_VARIABLE;
  case ':':
  case '@':
  case '#':
  case '$': return scan_named_param(lex, start, end);
  default: break;
  }
  if (is_digit(c) || (c == '.' && is_digit(next))) return scan_number(lex, start, end);
  if ((c | 32) == 'x' && next == '\'') return scan_blob(lex, start, end);
  if (starts_name(c)) {
    *end = start + 1;
    while (in_name(at(lex, *end))) ++*end;
    return keyword_or_id(lex->sql + start, *end - start);
  }
  return scan_operator(lex, start, end);
}

/* The kind of the token at *pos. WLT_ID for everything that can be a name. */
static int peek(const wl_lexer *lex, size_t *pos) {
  size_t start = skip_blank(lex, *pos);
  int kind = scan(lex, start, pos);
  if (kind == WLT_STRING || kind == WLT_JOIN_KW || kind == WLT_WINDOW || kind == WLT_OVER)
    return WLT_ID;
  return kind > 0 && wl_lemonFallback(kind) == WLT_ID ? WLT_ID : kind;
}

void wl_lex_init(wl_lexer *lex, const char *sql, size_t n) {
  const char *nul = n ? memchr(sql, 0, n) : NULL;
  *lex = (wl_lexer){.sql = sql, .n = nul ? (size_t)(nul - sql) : n};
}

int wl_lex_next(wl_lexer *lex, wl_token *tok) {
  size_t start = skip_blank(lex, lex->pos), end = start;
  int kind = scan(lex, start, &end);
  size_t ahead = end;
  if (kind == WLT_WINDOW) {
    if (peek(lex, &ahead) != WLT_ID || peek(lex, &ahead) != WLT_AS) kind = WLT_ID;
  } else if (kind == WLT_OVER) {
    int next = lex->prev == WLT_RP ? peek(lex, &ahead) : WL_LEX_END;
    if (next != WLT_LP && next != WLT_ID) kind = WLT_ID;
  } else if (kind == WLT_FILTER) {
    if (lex->prev != WLT_RP || peek(lex, &ahead) != WLT_LP) kind = WLT_ID;
  }
  *tok = (wl_token){.pos = start, .n = end - start};
  lex->pos = end;
  lex->prev = kind;
  return kind;
}

bool wl_lex_is(const char *sql, wl_token tok, const char *word) {
  size_t n = strlen(word);
  if (tok.n != n) return false;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)sql[tok.pos + i];
    if ((is_alpha(c) ? c & ~32 : c) != (unsigned char)word[i]) return false;
  }
  return true;
}
