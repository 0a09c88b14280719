// SPDX-License-Identifier: Apache-2.0
// Splits text into Python's tokens, with indentation. The stream of tokens is always balanced: a
// bracket is reported and closed when a definition on a later line shows that it is unclosed, and
// every INDENT gets its DEDENT.
#include "script/python.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

enum { MOST_INDENTS = 100, MOST_BRACKETS = 200, TAB_WIDTH = 8, MOST_REWINDS = 20 };

typedef struct Lexer {
  Context *context;
  Arena *arena;
  const SourceFile *file;
  int32_t at, size;
  int indents[MOST_INDENTS], indent_count;
  Token brackets[MOST_BRACKETS];
  int bracket_count, rewinds;
  TokenArray tokens;
} Lexer;

static int peek(const Lexer *lexer, int ahead) {
  return lexer->at + ahead < lexer->size ? (unsigned char)lexer->file->text[lexer->at + ahead] : -1;
}

static SourcePos range(const Lexer *lexer, int32_t begin, int32_t end) {
  return (SourcePos){lexer->file, begin, end, NULL};
}

static Token *add(Lexer *lexer, TokenKind kind, int32_t begin) {
  Token token = {kind, begin, lexer->at, NULL, {0}};
  array_push(lexer->arena, &lexer->tokens, token);
  return &array_last(&lexer->tokens);
}

static void add_text(Lexer *lexer, TokenKind kind, int32_t begin) {
  const char *text = lexer->file->text + begin;
  add(lexer, kind, begin)->text = str_intern_n(lexer->context, text, (size_t)(lexer->at - begin));
}

static void add_error(Lexer *lexer, int32_t begin, const char *message) {
  add(lexer, TOKEN_ERROR, begin)->text = str_intern(lexer->context, message);
}

// ---- Names and numbers

int py_letter_bytes(const char *s) {
  static const struct {
    int first, last; // code points: Latin, Greek, Cyrillic, Kana, Han, Hangul
  } letters[] = {
      {0xC0, 0x24F}, {0x370, 0x52F}, {0x3041, 0x30FF}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3}};
  const unsigned char *p = (const unsigned char *)s;
  int bytes = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 0;
  int code = bytes == 2 ? p[0] & 0x1F : p[0] & 0x0F;
  for (int i = 1; i < bytes; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
    code = code << 6 | (p[i] & 0x3F);
  }
  if (code == 0xD7 || code == 0xF7) return 0; // the signs of multiplication and division
  for (int i = 0; bytes && i < COUNT_OF(letters); i++)
    if (code >= letters[i].first && code <= letters[i].last) return bytes;
  return 0;
}

// The bytes of the letter, digit or underscore at the current position; 0 for anything else.
static int name_part(const Lexer *lexer) {
  int c = peek(lexer, 0);
  if (c < 0) return 0;
  return c == '_' || isalnum(c) ? 1 : c < 0x80 ? 0 : py_letter_bytes(lexer->file->text + lexer->at);
}

static bool is_name_part(int c) {
  return c == '_' || (c >= 0 && (c >= 0x80 || isalnum(c)));
}

static void name(Lexer *lexer) {
  int32_t begin = lexer->at;
  for (int n; (n = name_part(lexer)); lexer->at += n) continue;
  add_text(lexer, TOKEN_NAME, begin);
}

// Copies the number's characters without underscores.
static const char *number_text(Lexer *lexer, int32_t begin) {
  char *copy = arena_alloc(lexer->arena, (size_t)(lexer->at - begin) + 1), *out = copy;
  for (int32_t i = begin; i < lexer->at; i++)
    if (lexer->file->text[i] != '_') *out++ = lexer->file->text[i];
  return copy;
}

static void integer(Lexer *lexer, int32_t begin, int base) {
  const char *text = number_text(lexer, begin);
  errno = 0;
  char *end;
  unsigned long long value = strtoull(base == 10 ? text : text + 2, &end, base);
  if (*end || (base != 10 && !text[2])) {
    add_error(lexer, begin, "this is not a number");
  } else if (errno) {
    add_error(lexer, begin, "this integer does not fit into 64 bits");
  } else {
    Token *token = add(lexer, TOKEN_INT, begin);
    token->i = (int64_t)value;
    if (value > INT64_MAX) token->text = str_intern(lexer->context, text);
  }
}

static void real(Lexer *lexer, int32_t begin) {
  char *end;
  double value = strtod(number_text(lexer, begin), &end);
  if (*end)
    add_error(lexer, begin, "this is not a number");
  else
    add(lexer, TOKEN_FLOAT, begin)->f = value;
}

static void number(Lexer *lexer) {
  int32_t begin = lexer->at;
  int second = tolower(MAX_OF(0, peek(lexer, 1)));
  int base = peek(lexer, 0) != '0' ? 10
             : second == 'x'       ? 16
             : second == 'b'       ? 2
             : second == 'o'       ? 8
                                   : 10;
  bool is_real = false;
  while (true) {
    int c = peek(lexer, 0);
    if (base == 10 && (c == 'e' || c == 'E') && (peek(lexer, 1) == '-' || peek(lexer, 1) == '+'))
      lexer->at++;
    else if (!is_name_part(c) && !(c == '.' && base == 10))
      break;
    is_real |= base == 10 && (c == '.' || c == 'e' || c == 'E');
    lexer->at++;
  }
  if (is_real)
    real(lexer, begin);
  else
    integer(lexer, begin, base);
}

// ---- Strings

static int hex_digit(int c) {
  return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

static void escape(Lexer *lexer, Text *out) {
  static const char from[] = "n\\t'\"ra", to[] = "\n\\\t'\"\r\a";
  int c = peek(lexer, 0);
  const char *found = c > 0 ? strchr(from, c) : NULL;
  char byte;
  if (c == '\n') {
    lexer->at++;
  } else if (found) {
    lexer->at++;
    text_append(out, &to[found - from], 1);
  } else if (c == 'x' && peek(lexer, 1) >= 0 && hex_digit(peek(lexer, 1)) >= 0 &&
             peek(lexer, 2) >= 0 && hex_digit(peek(lexer, 2)) >= 0) {
    byte = (char)(hex_digit(peek(lexer, 1)) * 16 + hex_digit(peek(lexer, 2)));
    lexer->at += 3;
    text_append(out, &byte, 1);
  } else {
    text_puts(out, "\\");
  }
}

// Reads a string after its prefix. A string that does not end is reported.
static void string(Lexer *lexer, int32_t begin, bool raw) {
  int quote = peek(lexer, 0);
  bool triple = peek(lexer, 1) == quote && peek(lexer, 2) == quote;
  lexer->at += triple ? 3 : 1;
  Text text = text_new(lexer->arena);
  while (true) {
    int c = peek(lexer, 0);
    if (c < 0 || (c == '\n' && !triple)) {
      add_error(lexer, begin, "this string is never closed");
      if (c >= 0) return;
      diag_error(lexer->context, range(lexer, begin, begin + 1), "this string is never closed");
      array_last(&lexer->tokens).text = NULL; // reported here
      return;
    }
    if (c == quote && (!triple || (peek(lexer, 1) == quote && peek(lexer, 2) == quote))) break;
    lexer->at++;
    if (c == '\\' && !raw) {
      escape(lexer, &text);
    } else {
      text_append(&text, &(char){(char)c}, 1);
      if (c == '\\' && peek(lexer, 0) >= 0) {
        text_append(&text, &(char){(char)peek(lexer, 0)}, 1);
        lexer->at++;
      }
    }
  }
  lexer->at += triple ? 3 : 1;
  add(lexer, TOKEN_STRING, begin)->text = str_intern(lexer->context, text_string(&text));
}

// The number of characters of a string prefix (a mix of r, b, u and f) before a quote; -1 when
// there is no string.
static int string_prefix(const Lexer *lexer, bool *raw) {
  *raw = false;
  for (int n = 0; n <= 2; n++) {
    int c = peek(lexer, n);
    if (c == '"' || c == '\'') return n;
    if (c <= 0 || !strchr("rRbBuUfF", c)) return -1;
    *raw |= c == 'r' || c == 'R';
  }
  return -1;
}

// ---- Operators and brackets

static void open_bracket(Lexer *lexer) {
  if (lexer->bracket_count < MOST_BRACKETS)
    lexer->brackets[lexer->bracket_count] = array_last(&lexer->tokens);
  else if (lexer->bracket_count == MOST_BRACKETS)
    diag_error(lexer->context, range(lexer, lexer->at - 1, lexer->at),
               "brackets nest deeper than %d", MOST_BRACKETS);
  lexer->bracket_count++;
}

static void operator(Lexer *lexer) {
  static const char *const spellings[] = {"**=", "//=", ">>=", "<<=", "...", "->", ":=", "**",
                                          "//",  "<<",  ">>",  "<=",  ">=",  "==", "!=", "+=",
                                          "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "@="};
  int32_t begin = lexer->at;
  const char *rest = lexer->file->text + begin;
  int length = 1;
  for (int i = 0; i < COUNT_OF(spellings) && length == 1; i++) {
    if (*rest != *spellings[i]) continue;
    size_t n = strlen(spellings[i]);
    if ((size_t)(lexer->size - begin) >= n && !memcmp(rest, spellings[i], n)) length = (int)n;
  }
  lexer->at += length;
  if (length == 1 && !strchr("+-*/%@&|^~<>()[]{},:.;=", *rest)) {
    while ((peek(lexer, 0) & 0xC0) == 0x80 && peek(lexer, 0) >= 0) lexer->at++;
    add_error(lexer, begin, "this character has no meaning here");
    return;
  }
  add_text(lexer, TOKEN_OPERATOR, begin);
  if (length > 1) return;
  if (strchr("([{", *rest)) open_bracket(lexer);
  if (strchr(")]}", *rest) && lexer->bracket_count) lexer->bracket_count--;
}

// ---- Lines

static bool line_starts_with_keyword(const Lexer *lexer, int32_t at) {
  static const char *const words[] = {"def ",   "class ",  "with ", "return ",
                                      "while ", "import ", "from "};
  for (int i = 0; i < COUNT_OF(words); i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(lexer->size - at) >= n && !memcmp(lexer->file->text + at, words[i], n))
      return true;
  }
  return false;
}

static int32_t line_end(const Lexer *lexer, int32_t at) {
  while (at < lexer->size && lexer->file->text[at] != '\n') at++;
  return at;
}

// Reports the innermost open bracket as unclosed, and continues after its line as if it were closed
// there. The error token tells the parser that the mistake is reported.
static void close_brackets(Lexer *lexer) {
  if (!lexer->bracket_count) return;
  Token open = lexer->brackets[MIN_OF(lexer->bracket_count, MOST_BRACKETS) - 1];
  diag_error(lexer->context, range(lexer, open.begin, open.end), "this '%s' is never closed",
             open.text);
  lexer->bracket_count = 0;
  if (lexer->rewinds++ < MOST_REWINDS) {
    lexer->at = line_end(lexer, open.begin);
    while (array_last(&lexer->tokens).begin > lexer->at) lexer->tokens.count--;
  }
  add(lexer, TOKEN_ERROR, lexer->at);
  add(lexer, TOKEN_NEWLINE, lexer->at);
}

static void set_indent(Lexer *lexer, int column) {
  if (column > lexer->indents[lexer->indent_count - 1]) {
    if (lexer->indent_count == MOST_INDENTS) {
      diag_error(lexer->context, range(lexer, lexer->at, lexer->at + 1),
                 "statements nest deeper than %d", MOST_INDENTS);
      lexer->at = lexer->size;
      return;
    }
    lexer->indents[lexer->indent_count++] = column;
    add(lexer, TOKEN_INDENT, lexer->at);
    return;
  }
  while (lexer->indent_count > 1 && column < lexer->indents[lexer->indent_count - 1]) {
    lexer->indent_count--;
    add(lexer, TOKEN_DEDENT, lexer->at);
  }
  if (column != lexer->indents[lexer->indent_count - 1]) {
    diag_error(lexer->context, range(lexer, lexer->at, lexer->at + 1),
               "this line's indentation matches no line before it");
    lexer->indents[lexer->indent_count - 1] =
        MIN_OF(column, lexer->indents[lexer->indent_count - 1]);
  }
}

static void skip_comment(Lexer *lexer) {
  while (peek(lexer, 0) >= 0 && peek(lexer, 0) != '\n') lexer->at++;
}

static bool is_blank(int c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

// Measures the indentation at the start of a line. Blank lines and comments give no token. The
// first line may be indented; its indentation is the margin.
static void line_start(Lexer *lexer) {
  int column = 0;
  for (; is_blank(peek(lexer, 0)); lexer->at++)
    column = peek(lexer, 0) == '\t' ? (column / TAB_WIDTH + 1) * TAB_WIDTH : column + 1;
  int c = peek(lexer, 0);
  if (c < 0 || c == '\n' || c == '#') return;
  if (lexer->bracket_count && line_starts_with_keyword(lexer, lexer->at)) {
    int rewinds = lexer->rewinds;
    close_brackets(lexer);
    if (rewinds < MOST_REWINDS) return;
  }
  if (!lexer->tokens.count) lexer->indents[0] = column;
  if (!lexer->bracket_count) set_indent(lexer, column);
}

static void newline(Lexer *lexer) {
  lexer->at++;
  bool empty = !lexer->tokens.count || array_last(&lexer->tokens).kind == TOKEN_NEWLINE ||
               array_last(&lexer->tokens).kind == TOKEN_INDENT ||
               array_last(&lexer->tokens).kind == TOKEN_DEDENT;
  if (!lexer->bracket_count && !empty) {
    lexer->at--;
    add(lexer, TOKEN_NEWLINE, lexer->at);
    lexer->at++;
  }
  line_start(lexer);
}

static void token(Lexer *lexer) {
  int c = peek(lexer, 0);
  bool raw;
  int prefix = string_prefix(lexer, &raw);
  if (prefix >= 0) {
    int32_t begin = lexer->at;
    lexer->at += prefix;
    string(lexer, begin, raw);
  } else if (!(c >= 0 && isdigit(c)) && name_part(lexer)) {
    name(lexer);
  } else if (isdigit(c) || (c == '.' && peek(lexer, 1) >= 0 && isdigit(peek(lexer, 1)))) {
    number(lexer);
  } else {
    operator(lexer);
  }
}

static void finish(Lexer *lexer) {
  if (lexer->tokens.count && array_last(&lexer->tokens).kind != TOKEN_NEWLINE)
    add(lexer, TOKEN_NEWLINE, lexer->at);
  for (; lexer->indent_count > 1; lexer->indent_count--) add(lexer, TOKEN_DEDENT, lexer->at);
  add(lexer, TOKEN_END, lexer->at);
}

static void next(Lexer *lexer) {
  int c = peek(lexer, 0);
  if (is_blank(c))
    lexer->at++;
  else if (c == '#')
    skip_comment(lexer);
  else if (c == '\n')
    newline(lexer);
  else if (c == '\\' && peek(lexer, 1) == '\n')
    lexer->at += 2;
  else if (c == '\\' && peek(lexer, 1) == '\r' && peek(lexer, 2) == '\n')
    lexer->at += 3;
  else
    token(lexer);
}

// Takes memory for as many tokens as dense text has, so that the array is seldom moved. What is not
// used is not written either.
static void reserve_tokens(Lexer *lexer) {
  enum { BYTES_OF_TOKEN = 2, MOST_RESERVED = 1 << 20 };
  TokenArray *tokens = &lexer->tokens;
  tokens->capacity = MIN_OF(lexer->size / BYTES_OF_TOKEN, (int32_t)MOST_RESERVED);
  tokens->items = arena_take(lexer->arena, sizeof(Token) * (size_t)tokens->capacity);
}

TokenArray py_tokens(Context *context, Arena *arena, const SourceFile *file) {
  Lexer *lexer = arena_new(arena, Lexer);
  *lexer = (Lexer){context, arena, file, .size = (int32_t)file->size, .indent_count = 1};
  reserve_tokens(lexer);
  if (lexer->size >= 3 && !memcmp(file->text, "\xEF\xBB\xBF", 3)) lexer->at = 3;
  line_start(lexer);
  do {
    while (lexer->at < lexer->size) next(lexer);
    close_brackets(lexer); // may move `at` back
  } while (lexer->at < lexer->size);
  finish(lexer);
  return lexer->tokens;
}
