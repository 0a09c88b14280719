// SPDX-License-Identifier: Apache-2.0
// Prints expressions, maps, layouts and answers. The text of a map parses back to the same map.
#include "layout/core/core.h"

typedef struct ExprPrinter {
  Text *out;
  const Str *names;
  int name_count;
} ExprPrinter;

static void put_expr(ExprPrinter *p, const LayoutExpr *e, int limit);

static void put_call(ExprPrinter *p, const LayoutExpr *e) {
  text_printf(p->out, "%s(", layout_op_text(e->op));
  for (int i = 0; i < layout_op_arguments(e->op); i++) {
    if (i) text_puts(p->out, ", ");
    put_expr(p, e->args[i], 99);
  }
  text_puts(p->out, ")");
}

static bool is_tight(LayoutOp op) {
  return op == LAYOUT_DIV || op == LAYOUT_MOD || op == LAYOUT_MUL;
}

static void put_operation(ExprPrinter *p, const LayoutExpr *e, int precedence) {
  if (e->op == LAYOUT_NOT) {
    text_puts(p->out, "not ");
    put_expr(p, e->args[0], precedence);
    return;
  }
  bool comparison = layout_op_class(e->op) == LAYOUT_OP_COMPARISON;
  put_expr(p, e->args[0], precedence - comparison);
  text_printf(p->out, is_tight(e->op) ? "%s" : " %s ", layout_op_text(e->op));
  put_expr(p, e->args[1], precedence - 1);
}

static void put_leaf(ExprPrinter *p, const LayoutExpr *e) {
  if (e->op == LAYOUT_CONST)
    text_printf(p->out, "%lld", (long long)e->value);
  else if (e->op == LAYOUT_SYMBOL)
    text_puts(p->out, e->symbol);
  else if (e->value < p->name_count)
    text_puts(p->out, p->names[e->value]);
  else
    text_printf(p->out, "i%lld", (long long)e->value);
}

// Prints an expression; operations that bind less than `limit` get parentheses.
static void put_expr(ExprPrinter *p, const LayoutExpr *e, int limit) {
  int precedence = layout_op_rows[e->op].precedence;
  bool negative = e->op == LAYOUT_CONST && e->value < 0;
  if (negative && limit < 99) {
    text_printf(p->out, "(%lld)", (long long)e->value);
    return;
  }
  if (!e->args[0]) return put_leaf(p, e);
  if (precedence == 0) return put_call(p, e);
  if (precedence > limit) text_puts(p->out, "(");
  put_operation(p, e, precedence);
  if (precedence > limit) text_puts(p->out, ")");
}

const char *layout_expr_text(Context *context, const LayoutExpr *e, const Str *names, int count) {
  Text text = text_new(&context->lasting);
  put_expr(&(ExprPrinter){&text, names, names ? count : 0}, e, 99);
  return text_string(&text);
}

static void put_outputs(Text *text, const IndexMap *map, const char *separator, int limit) {
  ExprPrinter p = {text, map->inputs, map->input_count + map->replica_count};
  int mark = 0;
  for (int i = 0; i <= map->output_count; i++) {
    bool marked = false;
    for (; mark < map->separator_count && map->separators[mark] == i; mark++, marked = true)
      text_printf(text, "%s%s", i || marked ? limit < 99 ? " " : ", " : "", separator);
    if (i == map->output_count) return;
    if (i || marked) text_puts(text, marked && limit < 99 ? " " : ", ");
    put_expr(&p, map->outputs[i], limit);
    if (map->resources[i]) text_printf(text, " @%s", map->resources[i]);
  }
}

// Prints the axes. Replica axes are `r=2`, which in arrow form follow a semicolon.
static void put_inputs(Text *text, const IndexMap *map, const char *before_replicas) {
  for (int i = 0; i < map->input_count; i++)
    text_printf(text, "%s%s", i ? ", " : "", map->inputs[i]);
  for (int i = 0; i < map->replica_count; i++)
    text_printf(text, "%s%s=%lld", i ? ", " : before_replicas, map->inputs[map->input_count + i],
                (long long)map->replicas[i]);
}

static void put_arrow(Text *text, const IndexMap *map) {
  put_inputs(text, map, "; ");
  text_puts(text, map->input_count + map->replica_count ? " -> " : "-> ");
  put_outputs(text, map, "|", 6);
}

const char *index_map_text(Context *context, const IndexMap *map) {
  Text text = text_new(&context->lasting);
  put_arrow(&text, map);
  return text_string(&text);
}

const char *index_map_lambda(Context *context, const IndexMap *map) {
  Text text = text_new(&context->lasting);
  text_puts(&text, map->input_count + map->replica_count ? "lambda " : "lambda");
  put_inputs(&text, map, map->input_count ? ", " : "");
  text_puts(&text, ": [");
  put_outputs(&text, map, "AXIS_SEPARATOR", 99);
  text_puts(&text, "]");
  return text_string(&text);
}

// ---- Layouts and answers -----------------------------------------------------------------------

const char *layout_text_in(Context *context, const Layout *layout, const char *spelling) {
  Text text = text_new(&context->lasting);
  text_printf(&text, "%s in [", spelling);
  for (int i = 0; i < layout->physical_rank; i++)
    text_printf(&text, "%s%s", i ? ", " : "",
                layout_expr_text(context, layout->physical[i], NULL, 0));
  text_puts(&text, "]");
  return text_string(&text);
}

const char *layout_text(Context *context, const Layout *layout) {
  const char *map = index_map_text(context, layout->map);
  return layout->cache->extents_given ? layout_text_in(context, layout, map) : map;
}

static void put_index(Text *text, const int64_t *index, int rank) {
  text_puts(text, "[");
  for (int i = 0; i < rank; i++) text_printf(text, "%s%lld", i ? ", " : "", (long long)index[i]);
  text_puts(text, "]");
}

static void put_witness(Text *text, const LayoutAnswer *answer) {
  text_puts(text, ": ");
  put_index(text, answer->witness, answer->witness_rank);
  if (answer->witness2) {
    text_puts(text, " and ");
    put_index(text, answer->witness2, answer->witness_rank);
    text_puts(text, " have the same physical index");
  }
}

static void put_instance(Text *text, const LayoutAnswer *answer) {
  for (int i = 0; i < answer->instance_count; i++)
    text_printf(text, "%s%s = %lld", i ? ", " : " with ", answer->instance[i].symbol,
                (long long)answer->instance[i].value);
}

const char *layout_answer_text(Context *context, const LayoutAnswer *answer) {
  static const char *const verdicts[] = {"undecided", "yes", "no"};
  Text text = text_new(&context->lasting);
  text_puts(&text, verdicts[answer->verdict]);
  if (answer->witness) put_witness(&text, answer);
  if (answer->witness) put_instance(&text, answer);
  if (answer->reason) text_printf(&text, "%s%s", answer->witness ? "; " : ": ", answer->reason);
  if (!answer->witness) put_instance(&text, answer);
  return text_string(&text);
}
