// SPDX-License-Identifier: Apache-2.0
// Implements the cursor over a text and the grammar of expressions, which all spellings share.
#include "layout/spellings/spellings.h"

#include <ctype.h>

LayoutReader layout_reader_new(Context *context, const LayoutSource *source,
                               const LayoutExpr *const *shape) {
  return (LayoutReader){.context = context,
                        .text = source->text,
                        .at = source->text,
                        .end = source->text + source->size,
                        .base = source->pos,
                        .rank = source->rank,
                        .shape = source->rank < 0 ? NULL : shape,
                        .order = source->order,
                        .symbols = source->symbols,
                        .definitions = source->definitions,
                        .definition_count = source->definition_count};
}

// The position of [from, to) in the text's file. A text that comes from no file becomes a file.
static SourcePos pos_of(LayoutReader *r, const char *from, const char *to) {
  size_t size = (size_t)(r->end - r->text);
  if (!r->base.file) r->base.file = source_file_copy(r->context, "<layout>", r->text, size);
  SourcePos pos = r->base;
  pos.begin = r->base.begin + (int32_t)(from - r->text);
  pos.end = r->base.begin + (int32_t)(MAX_OF(to, from) - r->text);
  return pos;
}

static bool report(LayoutReader *r, const char *from, const char *to, const char *format,
                   va_list args) {
  if (r->failed) return false;
  r->failed = true;
  r->error_from = (size_t)(from - r->text);
  r->error_to = (size_t)(MAX_OF(to, from) - r->text);
  ArenaMark mark = arena_mark(&r->context->scratch);
  diag_error(r->context, pos_of(r, from, to), "%s",
             arena_vprintf(&r->context->scratch, format, args));
  arena_reset(&r->context->scratch, mark);
  return false;
}

void layout_reader_left_out(LayoutReader *r, const char *from, const char *means) {
  if (r->failed) return;
  diag_warning(r->context, pos_of(r, from, r->at),
               "`%.*s`, %s, is no part of a layout and is left out", (int)(r->at - from), from,
               means);
}

bool layout_reader_error(LayoutReader *r, const char *from, const char *to, const char *format,
                         ...) {
  va_list args;
  va_start(args, format);
  report(r, from, to, format, args);
  va_end(args);
  return false;
}

bool layout_reader_refuse(LayoutReader *r, const char *from, const char *to, const char *format,
                          ...) {
  va_list args;
  r->hopeless |= !r->failed;
  va_start(args, format);
  report(r, from, to, format, args);
  va_end(args);
  return false;
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

// Whether this is `#ttg.linear<` or `#(u32)`, which do not begin a comment.
static bool is_attribute(const LayoutReader *r) {
  const char *p = r->at + 1;
  if (p < r->end && *p == '(') return true;
  while (p < r->end && (is_word(*p) || *p == '.')) p++;
  return p < r->end && p > r->at + 1 && *p == '<';
}

void layout_reader_space(LayoutReader *r) {
  for (;;) {
    while (r->at < r->end && isspace((unsigned char)*r->at)) r->at++;
    if (r->at == r->end || *r->at != '#' || is_attribute(r)) return;
    while (r->at < r->end && *r->at != '\n') r->at++;
  }
}

bool layout_reader_accept(LayoutReader *r, const char *token) {
  layout_reader_space(r);
  size_t size = strlen(token);
  if ((size_t)(r->end - r->at) < size || memcmp(r->at, token, size)) return false;
  bool word = is_word(token[size - 1]);
  if (word && r->at + size < r->end && is_word(r->at[size])) return false;
  r->at += size;
  return true;
}

bool layout_reader_at_end(LayoutReader *r) {
  layout_reader_space(r);
  return r->at == r->end;
}

static const char *token_end(LayoutReader *r) {
  const char *p = r->at;
  if (p == r->end) return p;
  if (!is_word(*p)) return p + 1;
  while (p < r->end && is_word(*p)) p++;
  return p;
}

const char *layout_reader_saw(LayoutReader *r) {
  layout_reader_space(r);
  if (r->at == r->end) return "the end of the text";
  return str_format(r->context, "`%.*s`", (int)(token_end(r) - r->at), r->at);
}

bool layout_reader_missing(LayoutReader *r, const char *to, const char *what) {
  const char *saw = layout_reader_saw(r);
  return layout_reader_error(r, r->at, to, "expected %s, saw %s", what, saw);
}

bool layout_reader_expect(LayoutReader *r, const char *token) {
  if (layout_reader_accept(r, token)) return true;
  const char *saw = layout_reader_saw(r);
  return layout_reader_error(r, r->at, token_end(r), "expected `%s`, saw %s", token, saw);
}

Str layout_reader_word(LayoutReader *r) {
  layout_reader_space(r);
  if (r->at == r->end || !is_word(*r->at) || isdigit((unsigned char)*r->at)) return NULL;
  const char *begin = r->at;
  r->at = token_end(r);
  return str_intern_n(r->context, begin, (size_t)(r->at - begin));
}

Str layout_reader_name(LayoutReader *r, const char *what) {
  Str name = layout_reader_word(r);
  if (!name) layout_reader_missing(r, r->at, what);
  return name;
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)tolower((unsigned char)c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

bool layout_reader_number(LayoutReader *r, int64_t *out) {
  layout_reader_space(r);
  const char *start = r->at, *end = token_end(r);
  if (start == end || !isdigit((unsigned char)*start))
    return layout_reader_missing(r, end, "a number");
  int base = end - start > 2 && *start == '0' && tolower((unsigned char)start[1]) == 'x' ? 16 : 10;
  *out = 0;
  for (const char *p = base == 16 ? start + 2 : start; p < end; p++) {
    if (*p == '_') continue;
    if (digit_of(*p) >= base)
      return layout_reader_error(r, start, end, "`%.*s` is not a number", (int)(end - start),
                                 start);
    if (!mul_fits(*out, base, out) || !add_fits(*out, digit_of(*p), out))
      return layout_reader_refuse(r, start, end, "this number does not fit 64 bits");
  }
  r->at = end;
  return true;
}

bool layout_reader_signed(LayoutReader *r, int64_t *out) {
  bool negative = layout_reader_accept(r, "-");
  if (!layout_reader_number(r, out)) return false;
  if (negative) *out = -*out;
  return true;
}

char layout_reader_open(LayoutReader *r, bool *more) {
  char close = layout_reader_accept(r, "(") ? ')' : layout_reader_accept(r, "[") ? ']' : 0;
  *more = !close || !layout_reader_accept(r, close == ')' ? ")" : "]");
  return close;
}

bool layout_reader_more(LayoutReader *r, char close) {
  const char stop[2] = {close, 0};
  if (layout_reader_accept(r, stop)) return false;
  if (!layout_reader_accept(r, ",")) return layout_reader_expect(r, stop);
  return !layout_reader_accept(r, stop);
}

bool layout_reader_resource(LayoutReader *r, bool short_memory, Str *out) {
  *out = layout_reader_name(r, "a resource after `@`");
  if (!*out) return false;
  if (*out == str_intern(r->context, "memory")) *out = NULL;
  if (short_memory && *out == str_intern(r->context, "m")) *out = NULL;
  return true;
}

bool layout_reader_check_rank(LayoutReader *r, int rank) {
  if (r->rank < 0 || rank == r->rank) return true;
  return layout_reader_refuse(r, r->text, r->at, "this layout has %d %s, the tensor %d", rank,
                              rank == 1 ? "axis" : "axes", r->rank);
}

// ---- Expressions -------------------------------------------------------------------------------

// The functions: first each operation that is printed as a call, then what other systems write.
static const struct {
  const char *name; // "": no function
  LayoutOp op;
  int arguments;
} call_rows[] = {
#define OP(name, arguments, precedence, text, ...)                                                 \
  {precedence ? "" : text, LAYOUT_##name, arguments},
#include "layout/core/ops.def"
#undef OP
    {"Select", LAYOUT_SELECT, 3},   {"if_then_else", LAYOUT_SELECT, 3},
    {"floordiv", LAYOUT_DIV, 2},    {"floormod", LAYOUT_MOD, 2},
    {"indexdiv", LAYOUT_DIV, 2},    {"indexmod", LAYOUT_MOD, 2},
    {"shift_left", LAYOUT_SHL, 2},  {"shift_right", LAYOUT_SHR, 2},
    {"bitwise_and", LAYOUT_AND, 2}, {"bitwise_or", LAYOUT_OR, 2},
    {"bitwise_xor", LAYOUT_XOR, 2}, {"int32", LAYOUT_ADD, 1},
    {"int64", LAYOUT_ADD, 1},
};

static const LayoutExpr *parse_ternary(LayoutReader *r);
static const LayoutExpr *parse_level(LayoutReader *r, int precedence);

static const LayoutExpr *make(LayoutReader *r, const char *from, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b, const LayoutExpr *c) {
  if (!a || (layout_op_arguments(op) > 1 && !b) || (layout_op_arguments(op) > 2 && !c)) return NULL;
  if (++r->nodes > MAX_NODES) {
    layout_reader_refuse(r, from, r->at, "this expression is too large");
    return NULL;
  }
  if ((op == LAYOUT_DIV || op == LAYOUT_MOD) && is_const(b) && b->value == 0) {
    layout_reader_refuse(r, from, r->at, "division by zero");
    return NULL;
  }
  if ((op == LAYOUT_SHL || op == LAYOUT_SHR) && is_const(b) && (b->value < 0 || b->value > 62)) {
    layout_reader_refuse(r, from, r->at, "shift by %lld is not between 0 and 62",
                         (long long)b->value);
    return NULL;
  }
  const LayoutExpr *e = layout_expr(r->context, op, a, b, c);
  if (e->args[0] && is_const(a) && (!b || is_const(b)) && (!c || is_const(c))) {
    layout_reader_refuse(r, from, r->at, "this constant does not fit 64 bits");
    return NULL;
  }
  return e;
}

static int call_row(Str name) {
  for (int i = 0; i < COUNT_OF(call_rows); i++)
    if (!strcmp(call_rows[i].name, name)) return i;
  return -1;
}

// call := name "(" expr ("," expr)* [","] ")"
static const LayoutExpr *parse_arguments(LayoutReader *r, const char *from, Str name) {
  int row = call_row(name);
  if (row < 0) {
    layout_reader_refuse(r, from, from + strlen(name),
                         "unknown function `%s`; known are min, max, select", name);
    return NULL;
  }
  LayoutOp op = call_rows[row].op;
  const LayoutExpr *args[3] = {0}, *arg;
  int count = 0;
  while (!layout_reader_accept(r, ")")) {
    if (count && !layout_reader_expect(r, ",")) return NULL;
    if (count && layout_reader_accept(r, ")")) break;
    if (count == 3) break;
    if (!(arg = parse_ternary(r))) return NULL;
    if (count == 2 && (op == LAYOUT_MIN || op == LAYOUT_MAX)) // takes any number of arguments
      args[0] = make(r, from, op, args[0], args[1], NULL), args[1] = arg;
    else
      args[count++] = arg;
  }
  if (count != call_rows[row].arguments) {
    layout_reader_error(r, from, r->at, "%s takes %d arguments", call_rows[row].name,
                        call_rows[row].arguments);
    return NULL;
  }
  if (count == 1) return args[0];
  return make(r, from, op, args[0], args[1], args[2]);
}

// star_item := name "[" ["-"] number "]"
static const LayoutExpr *parse_star_item(LayoutReader *r, const char *from) {
  if (!layout_reader_expect(r, "[")) return NULL;
  bool negative = layout_reader_accept(r, "-");
  int64_t i;
  if (!layout_reader_number(r, &i) || !layout_reader_expect(r, "]")) return NULL;
  if (negative) i = r->star_count - i;
  if (i < 0 || i >= r->star_count) {
    layout_reader_error(r, from, r->at, "`*%s` stands for %d axes", r->star, r->star_count);
    return NULL;
  }
  return layout_axis(r->context, r->star_begin + (int)i);
}

bool layout_reader_is_reserved(Str name) {
  static const char *const words[] = {"AXIS_SEPARATOR", "and", "else", "if", "in",
                                      "lambda",         "not", "or"};
  for (int i = 0; i < COUNT_OF(words); i++)
    if (!strcmp(words[i], name)) return true;
  return false;
}

static const LayoutExpr *parse_name(LayoutReader *r, const char *from, Str name) {
  const char *end = from + strlen(name);
  if (name == r->star) return parse_star_item(r, from);
  for (int i = 0; i < r->axis_count; i++)
    if (r->names[i] == name) return layout_axis(r->context, i);
  if (layout_reader_is_reserved(name)) {
    layout_reader_error(r, from, end, "expected an expression, saw `%s`", name);
    return NULL;
  }
  for (int i = 0; i < r->definition_count; i++) {
    const LayoutDefinition *definition = &r->definitions[i];
    if (definition->symbol != name) continue;
    if (!definition->obstacle) return definition->value;
    layout_reader_refuse(r, from, end, "%s", definition->obstacle);
    return NULL;
  }
  if (r->symbols) return layout_symbol(r->context, name);
  const char *near = nearest_name(name, r->names, r->axis_count);
  if (near)
    layout_reader_refuse(r, from, end, "unknown axis `%s`; did you mean `%s`?", name, near);
  else
    layout_reader_refuse(r, from, end, "unknown axis `%s`", name);
  return NULL;
}

bool layout_reader_module(LayoutReader *r) {
  LayoutReader ahead = *r;
  if (!layout_reader_word(&ahead) || ahead.at == r->end || *ahead.at != '.') return false;
  r->at = ahead.at + 1;
  return true;
}

// Skips `T.`, `te.`, `tir.` before a name.
static bool skip_module(LayoutReader *r, Str *name) {
  while (r->at < r->end && *r->at == '.') {
    r->at++;
    if (!(*name = layout_reader_name(r, "a name after `.`"))) return false;
  }
  return true;
}

// Reads the parentheses of a call of `name`, which is at `from`, or plain ones when it is NULL. `|`
// is an operator there.
static const LayoutExpr *parse_enclosed(LayoutReader *r, const char *from, Str name) {
  bool no_bar = r->no_bar;
  r->no_bar = false;
  const LayoutExpr *e = name ? parse_arguments(r, from, name) : parse_ternary(r);
  r->no_bar = no_bar;
  return e && (name || layout_reader_expect(r, ")")) ? e : NULL;
}

// primary := number | name | call | "(" expr ")"
static const LayoutExpr *parse_primary(LayoutReader *r) {
  if (layout_reader_accept(r, "(")) return parse_enclosed(r, r->at, NULL);
  Str name = layout_reader_word(r);
  if (name) {
    if (!skip_module(r, &name)) return NULL;
    const char *from = r->at - strlen(name);
    return layout_reader_accept(r, "(") ? parse_enclosed(r, from, name) : parse_name(r, from, name);
  }
  int64_t value;
  if (r->at < r->end && isdigit((unsigned char)*r->at))
    return layout_reader_number(r, &value) ? layout_const(r->context, value) : NULL;
  layout_reader_missing(r, token_end(r), "an expression");
  return NULL;
}

// Counts an expression that is printed with parentheses where it was read without them as more
// nodes, so that the printed text can be read again.
enum { PLAIN = 1, PRINTS_NESTED = 2 };

static const LayoutExpr *nested(LayoutReader *r, const LayoutExpr *(*parse)(LayoutReader *),
                                int cost) {
  r->depth += cost;
  if (r->depth > MAX_NESTING) {
    layout_reader_refuse(r, r->at, r->at, "nested more than %d deep", MAX_NESTING);
    return NULL;
  }
  const LayoutExpr *e = parse(r);
  r->depth -= cost;
  return e;
}

// unary := ("-" | "+") unary | primary
static const LayoutExpr *parse_unary(LayoutReader *r) {
  layout_reader_space(r);
  const char *from = r->at;
  if (layout_reader_accept(r, "-"))
    return make(r, from, LAYOUT_SUB, layout_const(r->context, 0),
                nested(r, parse_unary, PRINTS_NESTED), NULL);
  if (layout_reader_accept(r, "+")) return nested(r, parse_unary, PLAIN);
  return parse_primary(r);
}

static const LayoutExpr *parse_not(LayoutReader *r) {
  return parse_level(r, layout_op_rows[LAYOUT_NOT].precedence);
}

// The longest operator of this precedence that stands here, or LAYOUT_OP_COUNT. *swapped: the
// operator is `>` or `>=`, which is `<` or `<=` of the arguments in the other order.
static LayoutOp binary_op(LayoutReader *r, int precedence, bool *swapped) {
  const char *begin = r->at, *end = begin;
  LayoutOp op = LAYOUT_OP_COUNT;
  *swapped = false;
  if (begin + 1 < r->end && begin[0] == '-' && begin[1] == '>') return op;
  if (precedence == layout_op_rows[LAYOUT_OR].precedence && r->no_bar) return op;
  for (int i = 0; i < LAYOUT_OP_COUNT; i++, r->at = begin) {
    const LayoutOpRow *row = &layout_op_rows[i];
    if (row->precedence != precedence || row->arguments != 2) continue;
    if (layout_reader_accept(r, row->text) && r->at > end) op = (LayoutOp)i, end = r->at;
  }
  r->at = end;
  if (op != LAYOUT_OP_COUNT || precedence != layout_op_rows[LAYOUT_LT].precedence) return op;
  *swapped = true;
  return layout_reader_accept(r, ">=")  ? LAYOUT_LE
         : layout_reader_accept(r, ">") ? LAYOUT_LT
                                        : LAYOUT_OP_COUNT;
}

// level(p) := level(p - 1) (op level(p - 1))*, comparisons are not chained; "not" has its own level
static const LayoutExpr *parse_level(LayoutReader *r, int precedence) {
  if (precedence < layout_op_rows[LAYOUT_MUL].precedence) return nested(r, parse_unary, PLAIN);
  layout_reader_space(r);
  const char *from = r->at;
  if (precedence == layout_op_rows[LAYOUT_NOT].precedence && layout_reader_accept(r, "not"))
    return make(r, from, LAYOUT_NOT, nested(r, parse_not, PLAIN), NULL, NULL);
  const LayoutExpr *left = parse_level(r, precedence - 1);
  bool swapped;
  for (LayoutOp op; left && (layout_reader_space(r), op = binary_op(r, precedence, &swapped),
                                                     op != LAYOUT_OP_COUNT);) {
    const LayoutExpr *right = parse_level(r, precedence - 1);
    left = make(r, from, op, swapped ? right : left, swapped ? left : right, NULL);
    if (layout_op_class(op) == LAYOUT_OP_COMPARISON) break;
  }
  return left;
}

// ternary := or ["if" or "else" ternary], `or` being the level of "or"
static const LayoutExpr *parse_ternary_inner(LayoutReader *r) {
  layout_reader_space(r);
  const char *from = r->at;
  int lowest = layout_op_rows[LAYOUT_EITHER].precedence;
  const LayoutExpr *yes = parse_level(r, lowest);
  if (!yes || !layout_reader_accept(r, "if")) return yes;
  const LayoutExpr *condition = parse_level(r, lowest);
  if (!condition || !layout_reader_expect(r, "else")) return NULL;
  return make(r, from, LAYOUT_SELECT, condition, yes,
              nested(r, parse_ternary_inner, PRINTS_NESTED));
}

static const LayoutExpr *parse_ternary(LayoutReader *r) {
  return nested(r, parse_ternary_inner, PLAIN);
}

const LayoutExpr *layout_reader_expr(LayoutReader *r, bool no_bar) {
  r->depth = 0;
  r->no_bar = no_bar;
  return parse_ternary(r);
}
