// SPDX-License-Identifier: Apache-2.0
// Finds the bounds of a kernel's result where the kernel rounds to coarse steps, such as those of a
// quantised tensor.
//
//   sum = 4.4999998 (definition), 4.5000002 (compiled, added in another order)
//   round(sum) = 4, and 5: both are right
//
// Two numbers that agree within the tolerance may be on both sides of a boundary between two steps,
// and then the results are a whole step apart. A node rounds if its definition rounds, converts a
// float to an integer or to a float of 8 bits or fewer, or compares floats. The result of such a
// node may be anywhere between the results for operands that are lower and higher by the tolerance.
// This covers every result that operands within the tolerance give, because rounding is monotone.
// The nodes after it are computed from both ends of these ranges.
//
// All is computed from the contents that the kernel read, so that a step which an earlier kernel
// rounded otherwise does not count against this one.
#include "driver/reference.h"

typedef struct Bounding {
  Reference *reference;
  const Map *read, *settled;
  const Tolerance *tolerance;
  Map ranges; // from a Value to its Expected *
} Bounding;

// ---- Nodes that round ---------------------------------------------------------------------------

static bool is_coarse(const Expr *e) {
  const Expr *operand = e->count ? e->args[0] : NULL;
  if (!operand || !dtype_is_float(operand->type)) return false;
  switch (e->op) {
  case EXPR_ROUND:
  case EXPR_FLOOR:
  case EXPR_CEIL:
  case EXPR_TRUNC:
  case EXPR_FLOOR_DIV:
  case EXPR_FLOOR_MOD: return true;
  case EXPR_CAST: return !dtype_is_float(e->type) || e->type.bits <= 8;
  default: return op_table[e->op].class == OP_COMPARE;
  }
}

static bool find_coarse(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= is_coarse(e);
  return true;
}

static bool rounds(const Bounding *b, int node) {
  bool found = false;
  Visitor visitor = {.env = &found, .enter_expr = find_coarse};
  visit_stmt(&visitor, b->reference->funcs[node]->body);
  return found;
}

// ---- The nodes of a kernel ----------------------------------------------------------------------

static bool is_given(const Bounding *b, const Value *value) {
  return !value->producer || map_contains(b->read, value) || map_contains(b->settled, value);
}

static bool makes_one_of(const Node *node, const Map *values) {
  for (int i = 0; i < node->output_count; i++)
    if (map_contains(values, node->outputs[i])) return true;
  return false;
}

// The numbers of the nodes that compute the value from what is given, in descending order.
static IntArray nodes_of(const Bounding *b, const Value *value) {
  Arena *arena = &b->reference->context->scratch;
  Map needed = map_new(arena);
  IntArray nodes = {0};
  map_put(&needed, value, (void *)value);
  for (int i = b->reference->graph->nodes.count - 1; i >= 0; i--) {
    const Node *node = b->reference->graph->nodes.items[i];
    if (!makes_one_of(node, &needed)) continue;
    array_push(arena, &nodes, i);
    for (int k = 0; k < node->input_count; k++)
      if (node->inputs[k] && !is_given(b, node->inputs[k]))
        map_put(&needed, node->inputs[k], node->inputs[k]);
  }
  return nodes;
}

// ---- Ranges -------------------------------------------------------------------------------------

static int64_t count_of(const Value *value) {
  return value_static_bytes(value) / dtype_bytes(value->type);
}

static const Expected *range_of(Bounding *b, const Value *value) {
  Expected *range = map_find(&b->ranges, value);
  if (range) return range;
  range = arena_new(&b->reference->context->scratch, Expected);
  range->value = map_contains(b->read, value) ? map_find(b->read, value)
                                              : reference_value(b->reference, value);
  map_put(&b->ranges, value, range);
  return range;
}

// The elements, each lower (`sign` -1) or higher by the tolerance.
static const void *moved(const Bounding *b, const Value *value, const void *data, int sign) {
  DType type = value->type;
  int64_t count = count_of(value);
  int bytes = dtype_bytes(type);
  double largest = values_largest(type, data, count);
  char *out = arena_alloc(&b->reference->context->scratch, (size_t)(count * bytes) + 64);
  for (int64_t i = 0; i < count; i++) {
    double at = number_load(type, (const char *)data + i * bytes);
    double by = tolerance_of(type, b->tolerance, largest, at);
    number_store(type, out + i * bytes, at + sign * by);
  }
  return out;
}

static void widen(const Value *value, const void *data, Expected *range) {
  int bytes = dtype_bytes(value->type);
  for (int64_t i = 0, count = count_of(value); i < count; i++) {
    const char *from = (const char *)data + i * bytes;
    char *low = (char *)range->low + i * bytes, *high = (char *)range->high + i * bytes;
    double at = number_load(value->type, from);
    if (at < number_load(value->type, low)) memcpy(low, from, (size_t)bytes);
    if (at > number_load(value->type, high)) memcpy(high, from, (size_t)bytes);
  }
}

// ---- Nodes --------------------------------------------------------------------------------------

typedef struct NodeRun {
  Bounding *bounding;
  const Node *node;
  int number;
  const void **inputs;      // of the next run
  const void **low, **high; // by input; NULL: certain
  int uncertain;            // number of inputs that are not certain
} NodeRun;

// Runs the node; the results become the ranges of its outputs, or widen them.
static bool run_node(NodeRun *run, bool first) {
  Context *context = run->bounding->reference->context;
  const Node *node = run->node;
  void **outputs = arena_array(&context->scratch, void *, node->output_count);
  for (int i = 0; i < node->output_count; i++)
    outputs[i] = arena_alloc(&context->scratch, (size_t)value_static_bytes(node->outputs[i]) + 64);
  if (!reference_run(run->bounding->reference, run->number, run->inputs, outputs)) return false;
  for (int i = 0; i < node->output_count; i++) {
    const Value *value = node->outputs[i];
    Expected *range =
        first ? arena_new(&context->scratch, Expected) : map_find(&run->bounding->ranges, value);
    if (first) range->value = outputs[i];
    if (first && run->uncertain) {
      size_t bytes = (size_t)value_static_bytes(value);
      range->low = arena_copy(&context->scratch, outputs[i], bytes + 64);
      range->high = arena_copy(&context->scratch, outputs[i], bytes + 64);
    }
    if (first) map_put(&run->bounding->ranges, value, range);
    if (!first) widen(value, outputs[i], range);
  }
  return true;
}

static void set_inputs(NodeRun *run) {
  const Node *node = run->node;
  Arena *arena = &run->bounding->reference->context->scratch;
  bool moves = rounds(run->bounding, run->number);
  run->inputs = arena_array(arena, const void *, node->input_count);
  run->low = arena_array(arena, const void *, node->input_count);
  run->high = arena_array(arena, const void *, node->input_count);
  for (int i = 0; i < node->input_count; i++) {
    const Value *value = node->inputs[i];
    if (!value) continue;
    const Expected *range = range_of(run->bounding, value);
    const void *low = range->low, *high = range->high;
    if (moves && dtype_is_float(value->type)) {
      low = moved(run->bounding, value, low ? low : range->value, -1);
      high = moved(run->bounding, value, high ? high : range->value, 1);
    }
    run->inputs[i] = range->value;
    run->low[i] = low;
    run->high[i] = high;
    run->uncertain += low != NULL;
  }
}

// Runs the node with one input after the other at both ends of its range.
static bool run_each(NodeRun *run) {
  for (int i = 0; i < run->node->input_count; i++) {
    const void *value = run->inputs[i];
    if (!run->low[i]) continue;
    run->inputs[i] = run->low[i];
    if (!run_node(run, false)) return false;
    run->inputs[i] = run->high[i];
    if (!run_node(run, false)) return false;
    run->inputs[i] = value;
  }
  return true;
}

static bool run_together(NodeRun *run, const void *const *ends) {
  for (int i = 0; i < run->node->input_count; i++)
    if (ends[i]) run->inputs[i] = ends[i];
  return run_node(run, false);
}

static bool bound_node(Bounding *b, int number) {
  NodeRun run = {.bounding = b, .node = b->reference->graph->nodes.items[number], .number = number};
  set_inputs(&run);
  return run_node(&run, true) && run_each(&run) &&
         (run.uncertain < 2 || (run_together(&run, run.low) && run_together(&run, run.high)));
}

bool reference_bounds(Reference *reference, const Value *value, const Map *read, const Map *settled,
                      const Tolerance *tolerance, Expected *out) {
  Bounding b = {reference, read, settled, tolerance,
                .ranges = map_new(&reference->context->scratch)};
  if (map_contains(read, value)) return false; // a rewrite
  IntArray nodes = nodes_of(&b, value);
  bool coarse = false;
  for (int i = 0; i < nodes.count; i++) coarse |= rounds(&b, (int)nodes.items[i]);
  if (!coarse) return false;
  for (int i = nodes.count - 1; i >= 0; i--)
    if (!bound_node(&b, (int)nodes.items[i])) return false;
  *out = *range_of(&b, value);
  return true;
}
