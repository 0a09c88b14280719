// SPDX-License-Identifier: Apache-2.0
// Defines sums of products whose equation names their axes: "bij,bjk->bik". An equation becomes one
// reduction, so that a contraction is scheduled as one.
#include "graph/ops/ops.h"

enum { MOST_TERMS = 16 };

// Every axis has a key: its letter, or its distance from the end of the ellipsis.
typedef struct EinsumTerm {
  int rank;
  int keys[TE_MAX_RANK];
} EinsumTerm;

typedef struct Einsum {
  OpCall *call;
  int term_count; // number of operands
  EinsumTerm terms[MOST_TERMS], output;
  Expr *extents[128], *axes[128]; // by key
  int dots;                       // most axes of an ellipsis
} Einsum;

enum { FIRST_DOT = 1 }; // keys of ellipsis axes, from the end; letters are larger

static bool push_key(Einsum *e, EinsumTerm *term, int key) {
  if (term->rank == TE_MAX_RANK) return op_error(e->call, "a term has too many axes");
  term->keys[term->rank++] = key;
  return true;
}

static bool push_dots(Einsum *e, EinsumTerm *term, int count) {
  for (int i = count - 1; i >= 0; i--)
    if (!push_key(e, term, FIRST_DOT + i)) return false;
  return true;
}

static int letters_in(const char *from, const char *to) {
  int count = 0;
  while (from < to) count += char_is_letter(*from++);
  return count;
}

static bool refuse_character(const Einsum *e, char c) {
  return op_error(e->call, "'%c' in its equation is neither a letter nor one ellipsis a term", c);
}

// Reads one term, up to `to`; its ellipsis has `dots` axes.
static bool read_term(Einsum *e, const char *from, const char *to, int dots, EinsumTerm *term) {
  bool seen = false;
  for (const char *p = from; p < to; p++) {
    if (*p == ' ') continue;
    if (to - p >= 3 && strncmp(p, "...", 3) == 0 && !seen) {
      seen = true;
      p += 2;
      if (!push_dots(e, term, dots)) return false;
    } else if (!char_is_letter(*p)) {
      return refuse_character(e, *p);
    } else if (!push_key(e, term, *p)) {
      return false;
    }
  }
  return true;
}

static bool meet(Einsum *e, int key, Expr *extent) {
  Expr *known = e->extents[key];
  if (!known || expr_is_int(known, 1)) {
    e->extents[key] = extent;
    return true;
  }
  if (known == extent || expr_is_int(extent, 1)) return true;
  return key < 'A' ? op_error(e->call, "the axes of its ellipses do not broadcast")
                   : op_error(e->call, "its axes '%c' have different extents", key);
}

static bool read_operand(Einsum *e, int i, const char *from, const char *to) {
  const Buffer *x = e->call->inputs[i];
  EinsumTerm *term = &e->terms[i];
  const char *dots = strstr(from, "...");
  int spread = x->rank - letters_in(from, to);
  bool has_dots = dots && dots < to;
  for (const char *p = from; p < to; p++)
    if (!char_is_letter(*p) && *p != ' ' && *p != '.') return refuse_character(e, *p);
  if (spread < 0 || (spread && !has_dots) || spread > TE_MAX_RANK)
    return op_error(e->call, "operand %d of its equation names %d axes, the tensor has %d", i,
                    letters_in(from, to), x->rank);
  if (!read_term(e, from, to, spread, term)) return false;
  e->dots = MAX_OF(e->dots, spread);
  for (int d = 0; d < term->rank; d++)
    if (!meet(e, term->keys[d], x->shape[d])) return false;
  return true;
}

// The output of an equation without an arrow: the ellipsis, then the letters that occur once, in
// alphabetical order.
static bool implicit_output(Einsum *e) {
  int times[128] = {0};
  for (int i = 0; i < e->term_count; i++)
    for (int d = 0; d < e->terms[i].rank; d++) times[e->terms[i].keys[d]]++;
  if (!push_dots(e, &e->output, e->dots)) return false;
  for (int key = 'A'; key <= 'z'; key++)
    if (times[key] == 1 && !push_key(e, &e->output, key)) return false;
  return true;
}

static bool check_output(Einsum *e) {
  for (int d = 0; d < e->output.rank; d++) {
    int key = e->output.keys[d];
    if (!e->extents[key])
      return op_error(e->call, "its result has '%c', which no operand has", key);
    for (int k = 0; k < d; k++)
      if (e->output.keys[k] == key) return op_error(e->call, "its result has '%c' twice", key);
  }
  return true;
}

static bool read_equation(Einsum *e) {
  const char *equation =
      node_string(e->call->node, "equation", node_string(e->call->node, "subscripts", ""));
  const char *arrow = strstr(equation, "->"), *from = equation;
  const char *end = arrow ? arrow : equation + strlen(equation);
  e->term_count = e->call->input_count;
  if (e->term_count > MOST_TERMS) return op_error(e->call, "takes at most %d operands", MOST_TERMS);
  for (int i = 0; i < e->term_count; i++) {
    if (!e->call->inputs[i]) return op_error(e->call, "input %d is missing", i);
    if (from > end)
      return op_error(e->call, "its equation has %d operands, not %d", i, e->term_count);
    const char *to = from;
    while (to < end && *to != ',') to++;
    if (!read_operand(e, i, from, to)) return false;
    from = to + 1;
  }
  if (from <= end)
    return op_error(e->call, "its equation has more than %d operands", e->term_count);
  bool ok = arrow ? read_term(e, arrow + 2, arrow + strlen(arrow), e->dots, &e->output)
                  : implicit_output(e);
  return ok && check_output(e);
}

static Expr *operand_at(Einsum *e, int i) {
  Buffer *x = e->call->inputs[i];
  Expr *at[TE_MAX_RANK];
  for (int d = 0; d < x->rank; d++)
    at[d] = expr_is_int(x->shape[d], 1) ? expr_index(e->call->context, 0)
                                        : e->axes[e->terms[i].keys[d]];
  return te_at(e->call->te, x, at);
}

static bool define_einsum(OpCall *call) {
  Context *context = call->context;
  Einsum e = {.call = call};
  if (!read_equation(&e)) return false;
  DType type = call->inputs[0]->type;
  Expr *shape[TE_MAX_RANK], *value = NULL;
  for (int d = 0; d < e.output.rank; d++) shape[d] = e.extents[e.output.keys[d]];
  TeAxes axes = te_axes(call->te, shape, e.output.rank);
  TeReduction sum = {.combine = EXPR_ADD, .init = expr_const(context, type, 0)};
  for (int d = 0; d < e.output.rank; d++) e.axes[e.output.keys[d]] = axes.at[d];
  for (int key = 0; key < 128; key++) {
    if (!e.extents[key] || e.axes[key]) continue;
    if (sum.count == TE_MAX_RANK) return op_error(call, "sums over too many axes");
    Str name = key < 'A' ? str_format(context, "r%d", key) : str_format(context, "r%c", key);
    e.axes[key] = op_reduce_axis(call, &sum, name, e.extents[key]);
  }
  for (int i = 0; i < e.term_count; i++) {
    Expr *factor = operand_at(&e, i);
    value = value ? expr_mul(context, value, factor) : factor;
  }
  op_output(call, te_reduce(call->te, call->node->name, type, shape, &axes, &sum, value));
  return true;
}

const OpRow einsum_ops[] = {
    {"einsum", "Einsum", 1, -1, define_einsum, "equation subscripts", .positional = "subscripts"},
};
const int einsum_op_count = COUNT_OF(einsum_ops);
