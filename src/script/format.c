// SPDX-License-Identifier: Apache-2.0
// Formats the functions and classes of TVMScript in a file: four spaces for each level of
// indentation, one space around operators and after commas, lines of at most 100 columns, at most
// one empty line in a row. The formatter works on tokens. Only the space between them changes, and
// the quotes of strings, so that a program keeps its meaning; comments keep their lines.
//
// A long line is broken after a comma or before an operator inside brackets, as late as the part up
// to the next place of the same or of an outer level fits, and continues under the first character
// after the bracket.
#include "script/format.h"

enum { LINE_WIDTH = 100, INDENT_WIDTH = 4, MOST_LEVELS = 128, LATEST_BRACKET = 70, HANGING = 8 };

typedef struct Formatter {
  Context *context;
  Arena *arena;
  const SourceFile *file;
  TokenArray tokens;
  Text *out;
  const char *newline;      // of the file
  int columns[MOST_LEVELS]; // in the file, of the levels of indentation
  int depth;
} Formatter;

// ---- Kinds of tokens ----------------------------------------------------------------------------

static bool is(const Token *token, const char *text) {
  return (token->kind == TOKEN_OPERATOR || token->kind == TOKEN_NAME) && !strcmp(token->text, text);
}

static bool is_any(const Token *token, const char *const *words) {
  for (; *words; words++)
    if (is(token, *words)) return true;
  return false;
}

static bool opens(const Token *token) {
  return token->kind == TOKEN_OPERATOR && strchr("([{", *token->text);
}

static bool closes(const Token *token) {
  return token->kind == TOKEN_OPERATOR && strchr(")]}", *token->text);
}

static bool is_word(const Token *token) {
  static const char *const words[] = {"and",    "as",     "assert", "async",  "await", "del",
                                      "elif",   "else",   "except", "for",    "from",  "if",
                                      "import", "in",     "is",     "lambda", "not",   "or",
                                      "raise",  "return", "while",  "with",   "yield", NULL};
  return token->kind == TOKEN_NAME && is_any(token, words);
}

// Can an expression end with the token?
static bool ends_operand(const Token *token) {
  if (token->kind == TOKEN_NAME) return !is_word(token);
  return token->kind == TOKEN_INT || token->kind == TOKEN_FLOAT || token->kind == TOKEN_STRING ||
         closes(token) || is(token, "...");
}

// ---- A logical line -----------------------------------------------------------------------------

// A token of a line with what its neighbours decide.
typedef struct LineToken {
  const Token *token;
  const char *text;
  int width;          // of the text, in characters
  bool space;         // before it
  bool may_break;     // before it
  bool has_backslash; // the file has a line break with a backslash before it
  int level;          // the number of brackets around it
} LineToken;
typedef Array(LineToken) Line;

// An open bracket while a line is read.
typedef struct Bracket {
  bool is_subscript, is_annotated; // a colon other than a lambda's stands since the last comma
  int lambdas;                     // whose colon is still to come
} Bracket;
typedef Array(Bracket) Brackets;

static int characters(const char *s) {
  int count = 0;
  for (; *s; s++) count += (*s & 0xC0) != 0x80;
  return count;
}

// The text of a string with double quotes, where this changes nothing but the quotes.
static const char *string_text(Formatter *f, const char *text) {
  size_t n = strlen(text);
  if (text[0] != '\'' || n < 2 || strpbrk(text, "\"\\") || strchr(text + 1, '\'') != text + n - 1)
    return text;
  return str_format(f->context, "\"%.*s\"", (int)n - 2, text + 1);
}

static bool is_unary(const Token *before, const Token *token) {
  static const char *const signs[] = {"-", "+", "~", "*", "**", NULL};
  return is_any(token, signs) && (!before || !ends_operand(before));
}

// A space before or after the sign of an assignment or of a keyword argument?
static bool spaces_equals(const Brackets *brackets) {
  return !brackets->count || array_last(brackets).is_annotated;
}

// A space after a colon? Not in a slice.
static bool spaces_colon(const Brackets *brackets, bool of_lambda) {
  return of_lambda || !brackets->count || !array_last(brackets).is_subscript;
}

// The state between two tokens: the token before, and whether it is a sign without a left operand.
typedef struct Between {
  const Token *before;
  bool unary, of_lambda; // `before` is a unary sign; it is the colon of a lambda
} Between;

static bool space_after(const Between *b, const Token *token, const Brackets *brackets) {
  const Token *before = b->before;
  if (opens(before) || b->unary) return false;
  if (is(before, ".")) return is(token, "import");
  if (is(before, "@")) return true;
  if (is(before, ":")) return spaces_colon(brackets, b->of_lambda);
  if (is(before, "=")) return spaces_equals(brackets);
  return true;
}

static bool has_space(const Between *b, const Token *token, const Brackets *brackets) {
  const Token *before = b->before;
  if (closes(token) || is(token, ",") || is(token, ";") || is(token, ":")) return false;
  if (!space_after(b, token, brackets)) return false;
  if (is(token, ".")) return is_word(before);
  if (is(token, "(") || is(token, "[")) return !ends_operand(before);
  if (is(token, "=")) return spaces_equals(brackets);
  return true;
}

static bool is_binary(const Token *before, const Token *token) {
  static const char *const signs[] = {
      "+", "-", "*",  "/",  "//", "%",  "@",  "&",   "|",  "^",  "<<",   ">>",
      "<", ">", "<=", ">=", "==", "!=", "**", "and", "or", "if", "else", NULL};
  return before && ends_operand(before) && is_any(token, signs);
}

static void update_brackets(Formatter *f, const Between *b, const Token *token,
                            Brackets *brackets) {
  if (opens(token)) {
    bool subscript = is(token, "[") && b->before && ends_operand(b->before);
    array_push(f->arena, brackets, ((Bracket){.is_subscript = subscript}));
  }
  if (closes(token) && brackets->count) brackets->count--;
  if (!brackets->count) return;
  Bracket *inner = &array_last(brackets);
  if (is(token, ",")) inner->is_annotated = false;
  if (is(token, "lambda")) inner->lambdas++;
  if (is(token, ":") && inner->lambdas)
    inner->lambdas--;
  else if (is(token, ":"))
    inner->is_annotated = true;
}

static bool gap_has(const Formatter *f, int32_t from, int32_t to, char c) {
  return to > from && memchr(f->file->text + from, c, (size_t)(to - from));
}

static Line line_of(Formatter *f, int first, int end) {
  Line line = {0};
  Brackets brackets = {0};
  Between b = {0};
  int outer_lambdas = 0;
  for (int i = first; i < end; i++) {
    const Token *token = &f->tokens.items[i];
    const char *text =
        str_intern_n(f->context, f->file->text + token->begin, (size_t)(token->end - token->begin));
    LineToken piece = {.token = token, .level = brackets.count - closes(token)};
    piece.text = token->kind == TOKEN_STRING ? string_text(f, text) : text;
    piece.width = characters(piece.text);
    piece.space = b.before && has_space(&b, token, &brackets);
    piece.has_backslash = b.before && gap_has(f, b.before->end, token->begin, '\\');
    piece.may_break = b.before && brackets.count && !closes(token) &&
                      (is(b.before, ",") || is_binary(b.before, token));
    if (i == first + 1 && is(b.before, "@")) piece.space = false; // a decorator
    array_push(f->arena, &line, piece);
    outer_lambdas += is(token, "lambda") && !brackets.count;
    bool lambda =
        is(token, ":") && (brackets.count ? array_last(&brackets).lambdas > 0 : outer_lambdas > 0);
    if (lambda && !brackets.count) outer_lambdas--;
    update_brackets(f, &b, token, &brackets);
    b = (Between){token, is_unary(b.before, token), lambda};
  }
  return line;
}

// ---- Breaking lines -----------------------------------------------------------------------------

// The width of the pieces from `at` up to the next place at the level of `at` or at an outer one
// where the line may break.
static int width_of_part(const Line *line, int at) {
  int width = line->items[at].width, level = line->items[at].level;
  for (int i = at + 1; i < line->count; i++) {
    const LineToken *piece = &line->items[i];
    if ((piece->may_break || piece->has_backslash) && piece->level <= level) break;
    width += piece->width + piece->space;
  }
  return width;
}

static int width_of_line(const Line *line) {
  int width = 0;
  for (int i = 0; i < line->count; i++) width += line->items[i].width + line->items[i].space;
  return width;
}

static void break_before(Formatter *f, int column, bool backslash) {
  text_puts(f->out, backslash ? " \\" : "");
  text_puts(f->out, f->newline);
  text_pad(f->out, ' ', column);
}

static void put_line(Formatter *f, const Line *line) {
  int indent = f->depth * INDENT_WIDTH, column = indent;
  bool fits = indent + width_of_line(line) <= LINE_WIDTH;
  IntArray starts = {0}; // the column at which each open bracket's contents begin
  text_pad(f->out, ' ', indent);
  for (int i = 0; i < line->count; i++) {
    const LineToken *piece = &line->items[i];
    bool inside = piece->may_break && starts.count;
    int64_t start = inside ? array_last(&starts) : indent + INDENT_WIDTH;
    bool overflows = column + piece->space + width_of_part(line, i) > LINE_WIDTH;
    if (!fits && overflows && column > start && (inside || piece->has_backslash)) {
      break_before(f, (int)start, !inside);
      column = (int)start;
    } else if (piece->space) {
      text_puts(f->out, " ");
      column++;
    }
    text_puts(f->out, piece->text);
    column += piece->width;
    if (opens(piece->token))
      array_push(f->arena, &starts, column <= LATEST_BRACKET ? column : indent + HANGING);
    if (closes(piece->token) && starts.count) starts.count--;
  }
}

// ---- Comments and empty lines -------------------------------------------------------------------

static int column_of(const Formatter *f, int32_t at) {
  int32_t begin = at;
  while (begin > 0 && f->file->text[begin - 1] != '\n') begin--;
  return at - begin;
}

// The level of a comment line: the deepest one that begins at its column or to the left of it.
static int comment_depth(const Formatter *f, int column, int deepest) {
  int depth = deepest;
  while (depth > f->depth && f->columns[depth] > column) depth--;
  return depth;
}

static void put_comment(Formatter *f, int32_t *at, int32_t end) {
  const char *text = f->file->text;
  int32_t begin = *at;
  while (*at < end && text[*at] != '\n') ++*at;
  int32_t last = *at;
  while (last > begin && strchr(" \t\r\f", text[last - 1])) last--;
  text_append(f->out, text + begin, (size_t)(last - begin));
}

// Writes the comments and at most one empty line in a row of the text before a logical line. The
// indentation before it was `old_depth` levels deep.
static void put_lines_between(Formatter *f, int32_t from, int32_t to, int old_depth,
                              bool at_start) {
  int newlines = 0, deepest = MAX_OF(old_depth, f->depth);
  for (int32_t at = from; at < to;) {
    char c = f->file->text[at];
    newlines += c == '\n';
    if (c != '#') {
      at++;
      continue;
    }
    if (newlines > 1 && !at_start) text_puts(f->out, f->newline);
    text_pad(f->out, ' ', comment_depth(f, column_of(f, at), deepest) * INDENT_WIDTH);
    put_comment(f, &at, to);
    text_puts(f->out, f->newline);
    newlines = 0;
    at_start = false;
  }
  if (newlines > 1 && !at_start) text_puts(f->out, f->newline);
}

// ---- Lines that are kept ------------------------------------------------------------------------

// A comment inside a logical line, or a string of several lines, keeps all of the line's breaks.
static bool is_kept(const Formatter *f, int first, int end) {
  for (int i = first; i < end; i++) {
    const Token *token = &f->tokens.items[i];
    if (gap_has(f, token->begin, token->end, '\n')) return true;
    if (i + 1 < end && gap_has(f, token->end, f->tokens.items[i + 1].begin, '#')) return true;
  }
  return false;
}

static bool is_in_token(const Formatter *f, int first, int end, int32_t at) {
  for (int i = first; i < end; i++)
    if (f->tokens.items[i].begin < at && at < f->tokens.items[i].end) return true;
  return false;
}

// Writes the line as it is; its further lines move with the first one, but not the lines of a
// string.
static void put_kept(Formatter *f, int first, int end) {
  const char *text = f->file->text;
  int32_t at = f->tokens.items[first].begin, last = f->tokens.items[end - 1].end;
  int shift = f->depth * INDENT_WIDTH - column_of(f, at);
  text_pad(f->out, ' ', f->depth * INDENT_WIDTH);
  while (at < last) {
    int32_t stop = at;
    while (stop < last && text[stop] != '\n') stop++;
    bool has_return = stop < last && stop > at && text[stop - 1] == '\r';
    text_append(f->out, text + at, (size_t)(stop - at - has_return));
    if (stop == last) return;
    text_puts(f->out, f->newline);
    at = stop + 1;
    if (is_in_token(f, first, end, at)) continue;
    int column = 0;
    for (; at < last && (text[at] == ' ' || text[at] == '\t'); at++) column++;
    if (at < last && text[at] != '\n') text_pad(f->out, ' ', MAX_OF(0, column + shift));
  }
}

// ---- The file -----------------------------------------------------------------------------------

static int end_of_line(const Formatter *f, int at) {
  while (f->tokens.items[at].kind != TOKEN_NEWLINE && f->tokens.items[at].kind != TOKEN_END) at++;
  return at;
}

static void put_trailing_comment(Formatter *f, int end) {
  int32_t at = f->tokens.items[end - 1].end, stop = f->tokens.items[end].begin;
  while (at < stop && f->file->text[at] != '#') at++;
  if (at == stop) return;
  text_puts(f->out, "  ");
  put_comment(f, &at, stop);
}

// Formats the logical lines from token `at` to the one that begins at `limit` or after it.
static int put_lines(Formatter *f, int at, int32_t limit) {
  int32_t before = f->tokens.items[at].begin;
  bool at_start = true;
  int old_depth = f->depth = 0;
  while (f->tokens.items[at].begin < limit && f->tokens.items[at].kind != TOKEN_END) {
    const Token *token = &f->tokens.items[at];
    if (token->kind == TOKEN_INDENT) {
      f->depth++;
      if (f->depth < MOST_LEVELS)
        f->columns[f->depth] = column_of(f, f->tokens.items[at + 1].begin);
    }
    f->depth -= token->kind == TOKEN_DEDENT;
    if (token->kind == TOKEN_INDENT || token->kind == TOKEN_DEDENT ||
        token->kind == TOKEN_NEWLINE) {
      at++;
      continue;
    }
    put_lines_between(f, before, token->begin, old_depth, at_start);
    int end = end_of_line(f, at);
    Line line = line_of(f, at, end);
    if (is_kept(f, at, end))
      put_kept(f, at, end);
    else
      put_line(f, &line);
    put_trailing_comment(f, end);
    text_puts(f->out, f->newline);
    before = f->tokens.items[end].begin;
    old_depth = f->depth;
    at_start = false;
    at = end;
  }
  return at;
}

SourcePos py_definition_range(const PyNode *definition) {
  const PyNode *decorators = definition->items[0];
  const PyNode *suite = definition->items[definition->count - 1];
  SourcePos range = definition->pos;
  if (decorators->count) range.begin = decorators->pos.begin;
  range.end = suite->pos.end;
  return range;
}

int py_token_at(const TokenArray *tokens, int32_t position) {
  int low = 0, high = tokens->count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (tokens->items[middle].begin < position)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int32_t py_text_end(const TokenArray *tokens, int32_t end) {
  for (int i = py_token_at(tokens, end) - 1; i >= 0; i--) {
    TokenKind kind = tokens->items[i].kind;
    if (kind != TOKEN_NEWLINE && kind != TOKEN_INDENT && kind != TOKEN_DEDENT)
      return tokens->items[i].end;
  }
  return 0;
}

static void format_file(Formatter *f, const PyNode *suite) {
  int32_t copied = 0;
  int at = 0;
  for (int i = 0; i < suite->count; i++) {
    const PyNode *node = suite->items[i];
    if (node->kind != PY_DEF && node->kind != PY_CLASS) continue;
    SourcePos range = py_definition_range(node);
    int32_t begin = range.begin, end = py_text_end(&f->tokens, range.end);
    text_append(f->out, f->file->text + copied, (size_t)(begin - copied));
    while (f->tokens.items[at].begin < begin || f->tokens.items[at].kind == TOKEN_DEDENT) at++;
    at = put_lines(f, at, end);
    copied = f->tokens.items[at].kind == TOKEN_END ? (int32_t)f->file->size : end;
    while (copied < (int32_t)f->file->size && f->file->text[copied - 1] != '\n') copied++;
  }
  text_append(f->out, f->file->text + copied, f->file->size - (size_t)copied);
}

// ---- Checking the result ------------------------------------------------------------------------

static bool equal_tokens(const TokenArray *a, const TokenArray *b) {
  if (a->count != b->count) return false;
  for (int i = 0; i < a->count; i++) {
    const Token *x = &a->items[i], *y = &b->items[i];
    bool equal = x->kind == y->kind && x->text == y->text &&
                 (x->kind != TOKEN_INT || x->i == y->i) && (x->kind != TOKEN_FLOAT || x->f == y->f);
    if (!equal) return false;
  }
  return true;
}

bool script_format(Context *context, const SourceFile *file, const FormatOptions *options,
                   Text *out) {
  int errors = context->error_count;
  if (options->upgrade && !(file = script_upgrade(context, file, options->newer))) return false;
  PyNode *suite = py_parse_file(context, &context->arena, file, PY_DEFINITIONS);
  if (context->error_count != errors) return false;
  Text text = text_new(&context->arena);
  Formatter f = {context, &context->arena, file, .out = &text, .newline = "\n"};
  const char *first = memchr(file->text, '\n', file->size);
  if (first && first > file->text && first[-1] == '\r') f.newline = "\r\n";
  f.tokens = py_tokens(context, f.arena, file);
  format_file(&f, suite);
  SourceFile *result = source_file_new(context, file->name, text_string(&text), text.size);
  TokenArray again = py_tokens(context, f.arena, result);
  if (!equal_tokens(&f.tokens, &again))
    bug(context, "formatting changed the tokens of %s", file->name);
  text_append(out, text_string(&text), text.size);
  return true;
}
