// SPDX-License-Identifier: Apache-2.0
// Writes a layout as C code for `pleat layout --code`: the offset of an element as a function, and
// the loops that pack a row-major tensor and unpack it. The code includes only <stdint.h>.
#include "explain/explain.h"

typedef struct Code {
  Context *context;
  const Layout *layout;
  const char *name, *type;
  const char **axes; // C names of the logical and the replica axes
  int axis_count;
  Array(Str) symbols;
  bool floors; // a division of a value that may be negative is used
  Text *out;
} Code;

// ---- Expressions ------------------------------------------------------------------------------

static const struct {
  int rank;
  const char *text;
} rows[LAYOUT_OP_COUNT] = {
#define OP(name, arguments, precedence, text, class, commutes, neutral, value, goal_rank, goal,    \
           c_rank, c_text, ...)                                                                    \
  {c_rank, c_text},
#include "layout/core/ops.def"
#undef OP
};

// choice_text has a case for each operation that C writes without an operator.
enum {
  CHOICES = 0
#define OP(name, arguments, precedence, text, class, commutes, neutral, value, goal_rank, goal,    \
           c_rank, ...)                                                                            \
  +(arguments && !c_rank)
#include "layout/core/ops.def"
#undef OP
};
_Static_assert(CHOICES == 4, "an operation needs a case in choice_text: min, max, not, select");

static bool may_be_negative(const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST) return e->value < 0;
  if (e->op == LAYOUT_AXIS || e->op == LAYOUT_SYMBOL) return false;
  if (e->op == LAYOUT_SUB) return true;
  if (e->op == LAYOUT_MOD) return may_be_negative(e->args[1]);
  for (int i = e->op == LAYOUT_SELECT; i < 3 && e->args[i]; i++)
    if (may_be_negative(e->args[i])) return true;
  return false;
}

static const char *c_text(Code *c, const LayoutExpr *e, int limit);

static const char *call_text(Code *c, const LayoutExpr *e) {
  Arena *arena = &c->context->arena;
  c->floors = true;
  return arena_printf(arena, "%s_%s(%s, %s)", c->name,
                      e->op == LAYOUT_DIV ? "floor_div" : "floor_mod", c_text(c, e->args[0], 99),
                      c_text(c, e->args[1], 99));
}

static const char *choice_text(Code *c, const LayoutExpr *e) {
  Arena *arena = &c->context->arena;
  if (e->op == LAYOUT_SELECT)
    return arena_printf(arena, "(%s ? %s : %s)", c_text(c, e->args[0], 10),
                        c_text(c, e->args[1], 10), c_text(c, e->args[2], 10));
  if (e->op == LAYOUT_NOT) return arena_printf(arena, "!(%s)", c_text(c, e->args[0], 99));
  const char *a = c_text(c, e->args[0], 3), *b = c_text(c, e->args[1], 3);
  return arena_printf(arena, "(%s %s %s ? %s : %s)", a, e->op == LAYOUT_MIN ? "<" : ">", b, a, b);
}

// The expression as C. Operations that bind less tightly than `limit` are put in parentheses, and
// so are operations about which compilers warn without them.
static const char *c_text(Code *c, const LayoutExpr *e, int limit) {
  Arena *arena = &c->context->arena;
  if (e->op == LAYOUT_CONST) {
    bool wide = e->value > INT32_MAX || e->value < -INT32_MAX;
    return arena_printf(arena, e->value < 0 ? "(%lld%s)" : "%lld%s", (long long)e->value,
                        wide ? "LL" : "");
  }
  if (e->op == LAYOUT_AXIS) return c->axes[e->value];
  if (e->op == LAYOUT_SYMBOL) return e->symbol;
  if ((e->op == LAYOUT_DIV || e->op == LAYOUT_MOD) &&
      (may_be_negative(e->args[0]) || may_be_negative(e->args[1])))
    return call_text(c, e);
  int own = rows[e->op].rank;
  if (!own) return choice_text(c, e);
  const char *text = arena_printf(arena, "%s %s %s", c_text(c, e->args[0], own > 2 ? 1 : own),
                                  rows[e->op].text, c_text(c, e->args[1], own > 2 ? 1 : own - 1));
  return own > limit ? arena_printf(arena, "(%s)", text) : text;
}

// ---- Names ------------------------------------------------------------------------------------

static const char *const taken[] = {
    "auto",   "break",  "case",     "char",    "const",    "continue", "default", "do",
    "double", "else",   "enum",     "extern",  "float",    "for",      "goto",    "inline",
    "int",    "long",   "register", "return",  "restrict", "short",    "signed",  "sizeof",
    "static", "struct", "switch",   "typedef", "union",    "unsigned", "void",    "volatile",
    "while",  "from",   "to",       "offset"};

static const char *c_name(Code *c, const char *name) {
  for (int i = 0; i < COUNT_OF(taken); i++)
    if (strcmp(taken[i], name) == 0) return arena_printf(&c->context->arena, "%s_", name);
  return name;
}

static void find_symbols(Code *c, const LayoutExpr *e) {
  for (int i = 0; e->op == LAYOUT_SYMBOL && i < c->symbols.count; i++)
    if (c->symbols.items[i] == e->symbol) return;
  if (e->op == LAYOUT_SYMBOL) array_push(&c->context->arena, &c->symbols, e->symbol);
  for (int i = 0; i < 3 && e->args[i]; i++) find_symbols(c, e->args[i]);
}

static void collect_names(Code *c) {
  const Layout *layout = c->layout;
  c->axis_count = layout->map->input_count + layout->map->replica_count;
  c->axes = arena_array(&c->context->arena, const char *, c->axis_count + 1);
  for (int i = 0; i < c->axis_count; i++) c->axes[i] = c_name(c, layout->map->inputs[i]);
  for (int i = 0; i < layout->rank; i++) find_symbols(c, layout->shape[i]);
  for (int i = 0; i < layout->physical_rank; i++) find_symbols(c, layout->physical[i]);
  for (int i = 0; i < layout->physical_rank; i++) find_symbols(c, layout->map->outputs[i]);
}

// The list "int64_t n, int64_t c" of the axes, after the symbols; without `type`, the names alone.
static const char *list(Code *c, const char *type, bool axes) {
  Text text = text_new(&c->context->arena);
  for (int i = 0; i < c->symbols.count; i++)
    text_printf(&text, "%s%s%s", text.size ? ", " : "", type, c->symbols.items[i]);
  for (int i = 0; axes && i < c->axis_count; i++)
    text_printf(&text, "%s%s%s", text.size ? ", " : "", type, c->axes[i]);
  return text_string(&text);
}

// ---- Functions --------------------------------------------------------------------------------

static const LayoutExpr *product(Context *context, const LayoutExpr *const *extents, int count) {
  const LayoutExpr *size = layout_const(context, 1);
  for (int i = 0; i < count; i++) size = layout_expr(context, LAYOUT_MUL, size, extents[i], NULL);
  return size;
}

static const LayoutExpr *offset_of(Code *c) {
  const LayoutExpr *e = layout_offset_expr(c->context, c->layout);
  if (!c->layout->is_static || c->layout->map->replica_count) return e;
  return layout_expr_simplify(c->context, e, c->layout->extents, c->layout->rank);
}

static void put_signature(Code *c, const char *returns, const char *what, const char *parameters) {
  text_printf(c->out, "static inline %s %s_%s(%s) {\n", returns, c->name, what,
              *parameters ? parameters : "void");
}

static bool reads(const LayoutExpr *e, const LayoutExpr *leaf) {
  bool found = e == leaf;
  for (int i = 0; i < 3 && e->args[i]; i++) found |= reads(e->args[i], leaf);
  return found;
}

// Marks the parameters that the result does not need as unused.
static void put_unused(Code *c, const LayoutExpr *e, bool axes) {
  for (int i = 0; i < c->symbols.count; i++)
    if (!reads(e, layout_symbol(c->context, c->symbols.items[i])))
      text_printf(c->out, "  (void)%s;\n", c->symbols.items[i]);
  for (int i = 0; axes && i < c->axis_count; i++)
    if (!reads(e, layout_axis(c->context, i))) text_printf(c->out, "  (void)%s;\n", c->axes[i]);
}

static void put_floors(Code *c) {
  text_printf(c->out,
              "static inline int64_t %s_floor_div(int64_t a, int64_t b) {\n"
              "  return a / b - (a %% b != 0 && (a < 0) != (b < 0));\n}\n\n"
              "static inline int64_t %s_floor_mod(int64_t a, int64_t b) {\n"
              "  return a - %s_floor_div(a, b) * b;\n}\n\n",
              c->name, c->name, c->name);
}

// Writes the loops "for (int64_t n = 0; n < 1; n++) …" and the index in the row-major tensor.
static void put_loops(Code *c, int axes) {
  const Layout *layout = c->layout;
  for (int i = 0; i < axes; i++) {
    text_pad(c->out, ' ', 2 + 2 * i);
    const char *extent = i < layout->rank
                             ? c_text(c, layout->shape[i], 3)
                             : arena_printf(&c->context->arena, "%lld",
                                            (long long)layout->map->replicas[i - layout->rank]);
    text_printf(c->out, "for (int64_t %s = 0; %s < %s; %s++)\n", c->axes[i], c->axes[i], extent,
                c->axes[i]);
  }
  text_pad(c->out, ' ', 2 + 2 * axes);
}

static const char *row_major_text(Code *c) {
  const Layout *layout = c->layout;
  const LayoutExpr *at = NULL;
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *axis = layout_axis(c->context, i);
    at = at ? layout_expr(c->context, LAYOUT_ADD,
                          layout_expr(c->context, LAYOUT_MUL, at, layout->shape[i], NULL), axis,
                          NULL)
            : axis;
  }
  return at ? c_text(c, at, 99) : "0";
}

static const char *call_offset(Code *c, bool first_copy) {
  Text text = text_new(&c->context->arena);
  text_printf(&text, "%s_offset(", c->name);
  for (int i = 0; i < c->symbols.count; i++)
    text_printf(&text, "%s%s", i ? ", " : "", c->symbols.items[i]);
  for (int i = 0; i < c->axis_count; i++)
    text_printf(&text, "%s%s", i || c->symbols.count ? ", " : "",
                first_copy && i >= c->layout->rank ? "0" : c->axes[i]);
  text_puts(&text, ")");
  return text_string(&text);
}

static void put_fill(Code *c) {
  LayoutPadding padding = c->layout->padding;
  if (padding.kind == LAYOUT_PADDING_ANY ||
      layout_is_onto(c->context, c->layout).verdict == VERDICT_YES)
    return;
  double value = padding.kind == LAYOUT_PADDING_CONSTANT ? padding.value : 0;
  const char *symbols = list(c, "", false);
  text_printf(c->out,
              "  for (int64_t offset = 0; offset < %s_size(%s); offset++) to[offset] = %.17g;\n",
              c->name, symbols, value);
}

static void put_copies(Code *c) {
  Arena *arena = &c->context->arena;
  const char *symbols = list(c, "int64_t ", false), *comma = *symbols ? ", " : "";
  text_puts(c->out, "// Row-major to this layout; the padding is filled.\n");
  put_signature(
      c, "void", "pack",
      arena_printf(arena, "%s%sconst %s *from, %s *to", symbols, comma, c->type, c->type));
  put_fill(c);
  put_loops(c, c->axis_count);
  text_printf(c->out, "to[%s] = from[%s];\n}\n\n", call_offset(c, false), row_major_text(c));
  text_puts(c->out, "// Back to row-major.\n");
  put_signature(
      c, "void", "unpack",
      arena_printf(arena, "%s%sconst %s *from, %s *to", symbols, comma, c->type, c->type));
  put_loops(c, c->layout->rank);
  text_printf(c->out, "to[%s] = from[%s];\n}\n", row_major_text(c), call_offset(c, true));
}

const char *layout_code(Context *context, const Layout *layout, const char *name,
                        const char *element_type) {
  Text out = text_new(&context->arena);
  Code c = {context, layout, name, element_type, .out = &out};
  collect_names(&c);
  const LayoutExpr *offset = offset_of(&c);
  const LayoutExpr *size = product(context, layout->physical, layout->physical_rank);
  c_text(&c, offset, 99); // records which helpers the code needs
  c_text(&c, size, 99);
  text_printf(&out, "// %s\n#include <stdint.h>\n\n", layout_text(context, layout));
  if (c.floors) put_floors(&c);
  text_puts(&out, "// The number of elements in memory, with padding.\n");
  put_signature(&c, "int64_t", "size", list(&c, "int64_t ", false));
  put_unused(&c, size, false);
  text_printf(&out, "  return %s;\n}\n\n// The offset of an element.\n", c_text(&c, size, 99));
  put_signature(&c, "int64_t", "offset", list(&c, "int64_t ", true));
  put_unused(&c, offset, true);
  text_printf(&out, "  return %s;\n}\n\n", c_text(&c, offset, 99));
  put_copies(&c);
  return text_string(&out);
}
