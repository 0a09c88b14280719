// SPDX-License-Identifier: Apache-2.0
// Computes the elements of constant tables of indices where they follow a rule, so that what is
// chosen by a table is a view like any other:
//   at = [0, 0, 1, 1, 2, 2, …]    y[i] = x[at[i]]   =>   y[i] = x[i // 2]
//   at = [0, 2, 4, 6, …]          y[i] = x[at[i]]   =>   y[i] = x[i * 2]
//   at = 2                        y[i] = x[at, i]   =>   y[i] = x[2, i]
// Nearest neighbours are chosen by such tables, and slices, reversals and rotations by those of
// other exporters. A rule is floor((step * i + start) / length), where one of step and length is 1,
// and is compared with every element.
#include "graph/stages.h"

#include "interp/interp.h"

enum { MOST_ELEMENTS = 1 << 16, MOST_LENGTH = 64 };

typedef struct TableRule {
  int64_t step, start, length;
} TableRule;

typedef struct IndexTable {
  const ConstData *data;
  int64_t count;
} IndexTable;

static int64_t element_of(const IndexTable *table, int64_t i) {
  int64_t bytes = dtype_bytes(table->data->type);
  return number_load_int(table->data->type, (const char *)table->data->data + i * bytes);
}

// Finds the starts with which the step and the length give all elements: a range, of which 0 is
// taken where it has it.
static bool fits(const IndexTable *table, TableRule *rule) {
  int64_t low = INT64_MIN, high = INT64_MAX;
  for (int64_t i = 0; i < table->count; i++) {
    int64_t least = element_of(table, i) * rule->length - i * rule->step;
    low = MAX_OF(low, least);
    high = MIN_OF(high, least + rule->length - 1);
    if (low > high) return false;
  }
  rule->start = low > 0 ? low : MIN_OF(high, 0);
  return true;
}

// Elements that keep so large that products with positions stay exact are refused.
static bool is_small(const IndexTable *table) {
  for (int64_t i = 0; i < table->count; i++)
    if (element_of(table, i) > INT32_MAX || element_of(table, i) < INT32_MIN) return false;
  return true;
}

static bool find_rule(const IndexTable *table, TableRule *rule) {
  if (table->count < 1 || table->count > MOST_ELEMENTS || !is_small(table)) return false;
  *rule = (TableRule){table->count > 1 ? element_of(table, 1) - element_of(table, 0) : 0, 0, 1};
  if (fits(table, rule)) return true;
  for (int64_t length = 2; length <= MIN_OF(MOST_LENGTH, table->count); length++)
    for (int64_t step = -1; step <= 1; step += 2) {
      *rule = (TableRule){step, 0, length};
      if (fits(table, rule)) return true;
    }
  return false;
}

// The axis of the table with several elements, or any; -1 where there are two.
static int table_axis(const ConstData *data) {
  int axis = 0;
  for (int d = 0; d < data->rank; d++) {
    if (data->shape[d] > 1 && data->shape[axis] > 1 && d != axis) return -1;
    if (data->shape[d] > 1) axis = d;
  }
  return data->rank ? axis : -1;
}

// A load whose indices are looked at.
typedef struct IndexedLoad {
  const StageGraph *graph;
  const Expr *load;
} IndexedLoad;

// The steps of a recurrence read their parts of a tensor by an index that is an operand of the
// kernel, which they share.
static bool is_step(const IndexedLoad *indexed) {
  enum { MOST_PARTS = 8 };
  const StageTensor *tensor = stage_tensor_of(indexed->graph, indexed->load->as.buffer);
  return !tensor || tensor->users.count > MOST_PARTS;
}

static Expr *compute_load(Rewriter *rewriter, Expr *e) {
  const IndexedLoad *indexed = rewriter->env;
  Context *context = rewriter->context;
  const StageTensor *tensor =
      e->op == EXPR_LOAD ? stage_tensor_of(indexed->graph, e->as.buffer) : NULL;
  const ConstData *data = tensor ? tensor->data : NULL;
  if (!data || !data->data || e->type.code != TYPE_INT || e->type.lanes > 1) return e;
  int axis = table_axis(data);
  TableRule rule;
  IndexTable table = {data, axis < 0 ? 1 : data->shape[axis]};
  if ((axis < 0 && data->rank) || !find_rule(&table, &rule)) return e;
  if (!data->rank) return is_step(indexed) ? e : expr_int(context, e->type, rule.start);
  DType type = e->args[axis]->type;
  Expr *value = expr_mul(context, e->args[axis], expr_int(context, type, rule.step));
  value = expr_add(context, value, expr_int(context, type, rule.start));
  value = expr_floor_div(context, value, expr_int(context, type, rule.length));
  return expr_cast(context, e->type, value);
}

// Is the expression an index of a load? Other values of tables are no views, and stay as they are.
static Expr *compute_indices(Rewriter *rewriter, Expr *e) {
  StageGraph *s = rewriter->env;
  if (e->op != EXPR_LOAD) return e;
  IndexedLoad indexed = {s, e};
  Rewriter inside = {.context = s->context, .env = &indexed, .expr = compute_load};
  Expr **indices = arena_array(&s->context->arena, Expr *, e->count);
  bool changed = false;
  for (int i = 0; i < e->count; i++) {
    indices[i] = rewrite_expr(&inside, e->args[i]);
    changed |= indices[i] != e->args[i];
  }
  return changed ? expr_load(s->context, e->as.buffer, indices, e->count) : e;
}

static bool reads_table(const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (tensor->data && tensor->buffer->type.code == TYPE_INT) return true;
  }
  return false;
}

void stage_graph_compute_tables(StageGraph *s) {
  bool changed = false;
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i];
    Rewriter rewriter = {.context = s->context, .env = s, .expr = compute_indices};
    if (stage_is_opaque(stage) || stage->te->program || stage->member_count) continue;
    if (!reads_table(stage)) continue;
    Expr *value = rewrite_expr(&rewriter, stage->te->value);
    if (value == stage->te->value) continue;
    value = stage_simplify(s->context, stage->te, value);
    stage->te = te_with_value(s->context, stage->te, value);
    stage_graph_reread(s, stage);
    changed = true;
  }
  if (changed) stage_graph_prune(s);
}
