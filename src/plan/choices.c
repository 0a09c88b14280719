// SPDX-License-Identifier: Apache-2.0
// Finds the feasible ways to run each stage (its choices) and their costs in cycles of this
// machine. A choice says which layouts the stage reads and writes, and whether it is fused with a
// producer, where fusion_conditions.c allows that. The solver takes one choice for each stage
// (problem.c).
#include "plan/internal.h"

double planner_tensor_bytes(const StageTensor *tensor, const Layout *layout) {
  int64_t count = 1, extent;
  if (!layout || !layout_physical_size(layout, &count))
    for (int d = 0; d < tensor->buffer->rank; d++)
      if (expr_as_int(tensor->buffer->shape[d], &extent)) count *= extent;
  return (double)count * dtype_bytes(tensor->buffer->type);
}

// Cycles to stream `bytes` from or to the nearest level of memory that holds them all.
static double move_cost(const Planner *p, double bytes) {
  return memory_cycles(p->machine, bytes, memory_level(p->machine, bytes), MEMORY_STREAM);
}

int64_t planner_integer_cost(double cycles) {
  return (int64_t)(cycles + 0.5);
}

int stage_read_of(const Stage *stage, const StageTensor *tensor) {
  for (int i = 0; i < stage->reads.count; i++)
    if (stage->reads.items[i] == tensor) return i;
  return -1;
}

double planner_rewrite_cost(const Planner *p, const StageTensor *tensor, int from, int to) {
  if (from == to) return 0;
  const Candidate *items = p->candidates[tensor->index].items;
  double bytes = planner_tensor_bytes(tensor, items[from].layout) +
                 planner_tensor_bytes(tensor, items[to].layout);
  const CostModel *costs = cost_model_of(p->machine);
  return costs->rewrite_passes * move_cost(p, bytes) + costs->call_cycles;
}

static bool has_room(const Planner *p, const Stage *stage) {
  return p->choices[stage->index].count < p->most_choices;
}

static StageChoice *add_choice(Planner *p, const Stage *stage) {
  StageChoices *choices = &p->choices[stage->index];
  int *reads = arena_array(&p->context->arena, int, stage->reads.count);
  array_push(&p->context->arena, choices, ((StageChoice){.fused = -1, .reads = reads}));
  return &array_last(choices);
}

// The candidate of `tensor` whose layout has the form of candidate `like` of `other`, a tensor of
// the same rank; the row-major one when there is no such candidate.
static int candidate_as(const Planner *p, const StageTensor *tensor, const StageTensor *other,
                        int like) {
  const Candidates *c = &p->candidates[tensor->index], *o = &p->candidates[other->index];
  for (int i = 0; i < c->count && tensor->buffer->rank == other->buffer->rank; i++)
    if (candidate_like(&c->items[i], &o->items[like])) return i;
  return 0;
}

// The only candidate in which the constraints allow the stage to read its entry `read` (-1: to
// write its output), or -1 when every candidate is allowed.
static int only_candidate(const Planner *p, const Stage *stage, int read) {
  const StageConstraint *constraint = planner_constraint(p, stage, read);
  if (p->row_major) return 0;
  return constraint && !constraint->tensor->data
             ? MAX_OF(planner_candidate_number(p, constraint->tensor, constraint->layout), 0)
             : -1;
}

// ---- Reductions

typedef struct Combination {
  Planner *planner;
  const Stage *stage;
  const Nest *nest;
  StageChoice choice;
} Combination;

static const Layout *layout_read(const Combination *c, int read, bool *packed) {
  const Planner *p = c->planner;
  const StageTensor *tensor = c->stage->reads.items[read];
  const StageConstraint *constraint = tensor->data ? planner_constraint(p, c->stage, read) : NULL;
  *packed = tensor->data && !constraint;
  if (tensor->data) return constraint ? constraint->layout : NULL;
  return p->candidates[tensor->index].items[c->choice.reads[read]].layout;
}

static double reduction_cost(const Combination *c, StageChoice *choice) {
  NestLayouts layouts = {0};
  Planner *p = c->planner;
  layouts.output = p->candidates[c->stage->output->index].items[c->choice.output].layout;
  for (int i = 0; i < c->nest->read_count; i++)
    for (int j = 0; j < c->stage->reads.count; j++) {
      const StageTensor *tensor = c->stage->reads.items[j];
      if (tensor->buffer == c->nest->reads[i].buffer)
        layouts.reads[i] = layout_read(c, j, &layouts.packed[i]);
    }
  double write = move_cost(p, planner_tensor_bytes(c->stage->output, layouts.output));
  Strategies found = strategies_of(p->context, p->machine, c->nest, &layouts);
  choice->strategies = arena_copy(&p->context->arena, &found, sizeof found);
  double scalar = c->nest->points * cost_model_of(p->machine)->scalar_cycles;
  return (found.count ? found.items[0].cost : scalar) + write;
}

// ---- Groups that run row by row

// The cycles of one member of a group. A group is written row-major and read in any layout; rows
// that are not contiguous in the layout of a read are gathered element by element.
static double member_cycles(const Combination *c, const Stage *member) {
  const Planner *p = c->planner;
  const CostModel *costs = cost_model_of(p->machine);
  NestLayouts layouts = {0};
  const Nest *nest = planner_nest(p, member);
  if (!nest) return 0;
  for (int i = 0; i < nest->read_count; i++)
    for (int j = 0; j < c->stage->reads.count; j++) {
      bool packed;
      const StageTensor *tensor = c->stage->reads.items[j];
      if (tensor->buffer == nest->reads[i].buffer) layouts.reads[i] = layout_read(c, j, &packed);
    }
  int lanes = machine_lanes(p->machine, nest->output->type), last = nest->axis_count - 1;
  if (stage_is_reduction(member)) {
    double cycles = rows_cycles(p->context, p->machine, nest, &layouts);
    return cycles < 0 ? nest->points * costs->scalar_cycles : cycles;
  }
  bool strided = last < 0;
  for (int i = 0; i < nest->read_count && !strided; i++)
    strided =
        nest_step(p->context, nest, &nest->reads[i], layouts.reads[i], last, lanes) == NEST_STRIDED;
  return strided ? nest->points * costs->scalar_cycles
                 : nest->points / lanes *
                       (1 / costs->row_moves_a_cycle +
                        nest_operations(p->machine, nest) / costs->operations_a_cycle);
}

static double group_cost(const Combination *c) {
  const Planner *p = c->planner;
  double bytes = planner_tensor_bytes(c->stage->output, NULL),
         cycles = cost_model_of(p->machine)->call_cycles;
  for (int i = 0; i < c->stage->reads.count; i++) {
    bool packed;
    bytes += planner_tensor_bytes(c->stage->reads.items[i], layout_read(c, i, &packed));
  }
  for (int i = 0; i < c->stage->member_count; i++) cycles += member_cycles(c, c->stage->members[i]);
  return MAX_OF(cycles, move_cost(p, bytes));
}

// ---- Stages that read in any combination of layouts

static double combination_cost(const Combination *c, StageChoice *choice) {
  return c->stage->member_count ? group_cost(c) : reduction_cost(c, choice);
}

// How many layouts of a read are combined with those of the others.
static int layouts_combined(const Combination *c, int read) {
  const StageTensor *tensor = c->stage->reads.items[read];
  bool one = tensor->data || only_candidate(c->planner, c->stage, read) >= 0;
  return one ? 1 : c->planner->candidates[tensor->index].count;
}

static void combine_reads(Combination *c, int read) {
  Planner *p = c->planner;
  int reads = c->stage->reads.count;
  if (!has_room(p, c->stage)) return;
  if (read == reads) {
    StageChoice *choice = add_choice(p, c->stage);
    choice->output = c->choice.output;
    memcpy(choice->reads, c->choice.reads, sizeof *choice->reads * (size_t)reads);
    choice->cost = combination_cost(c, choice);
    return;
  }
  const StageTensor *tensor = c->stage->reads.items[read];
  int only = only_candidate(p, c->stage, read);
  int count = tensor->data ? 1 : p->candidates[tensor->index].count;
  for (int i = 0; i < count; i++) {
    if (only >= 0 && i != only) continue;
    c->choice.reads[read] = tensor->data ? -1 : i;
    combine_reads(c, read + 1);
  }
}

// Adds all combinations of the reads' layouts, as far as the limit on choices allows, and counts
// the combinations that were left out.
static void combine_all(Combination *c) {
  const double most = 1e15;
  Planner *p = c->planner;
  double all = 1;
  for (int i = 0; i < c->stage->reads.count; i++) all = MIN_OF(all * layouts_combined(c, i), most);
  int before = p->choices[c->stage->index].count;
  combine_reads(c, 0);
  int64_t left_out = (int64_t)all - (p->choices[c->stage->index].count - before);
  p->choices_left_out = MIN_OF(p->choices_left_out + left_out, (int64_t)most);
}

// Adds the only choice of a stage whose loops cannot be analysed: every tensor row-major.
static bool only_choice(Planner *p, const Stage *stage) {
  StageChoice *choice = add_choice(p, stage);
  choice->cost = MAX_OF(stage_iterations(stage), 0) * cost_model_of(p->machine)->scalar_cycles;
  for (int i = 0; i < stage->reads.count; i++)
    choice->reads[i] = ((StageTensor *)stage->reads.items[i])->data ? -1 : 0;
  for (int i = -1; i < stage->reads.count; i++)
    if (only_candidate(p, stage, i) > 0)
      return planner_refuses(p, stage,
                             stage_is_ordered(stage) ? "its elements are written in an order"
                                                     : "its loops have sizes that are not known");
  return true;
}

static bool reduction_choices(Planner *p, const Stage *stage) {
  const Nest *nest = planner_nest(p, stage);
  if (!nest) return only_choice(p, stage);
  int *reads = arena_array(&p->context->arena, int, stage->reads.count);
  Combination c = {p, stage, nest, {.fused = -1, .reads = reads}};
  int outputs = p->candidates[stage->output->index].count, only = only_candidate(p, stage, -1);
  for (c.choice.output = 0; c.choice.output < outputs; c.choice.output++)
    if (only < 0 || c.choice.output == only) combine_all(&c);
  return true;
}

static bool group_choices(Planner *p, const Stage *stage) {
  int *reads = arena_array(&p->context->arena, int, stage->reads.count);
  Combination c = {p, stage, NULL, {.fused = -1, .reads = reads}};
  combine_all(&c);
  return only_candidate(p, stage, -1) <= 0 ||
         planner_refuses(p, stage, "its rows are written as they are");
}

// ---- Stages without a reduction

// Searches a stage's value for a condition that would cut a block. Along a blocked axis, every
// piece of a concatenation has to start at a multiple of the block; a condition that compares the
// axis with any other number cuts a block.
typedef struct CutSearch {
  const Expr *axis;
  int64_t block;
  const Expr *cuts; // the condition; NULL where no block is cut
} CutSearch;

static bool find_cut(Visitor *visitor, Expr *e) {
  CutSearch *search = visitor->env;
  int64_t bound;
  if (e->op == EXPR_IF_THEN_ELSE && expr_uses(e->args[0], search->axis)) {
    const Expr *condition = e->args[0];
    bool aligned = condition->op == EXPR_LT && condition->args[0] == search->axis &&
                   expr_as_int(condition->args[1], &bound) && bound % search->block == 0;
    if (!aligned) search->cuts = condition;
  }
  return true;
}

static const Expr *cuts_blocks(const Planner *p, const Stage *stage, int output) {
  const Candidate *c = &p->candidates[stage->output->index].items[output];
  if (c->axis < 0 || (c->requested && !c->block)) return NULL;
  int64_t lanes = machine_lanes(p->machine, stage->output->buffer->type);
  CutSearch search = {stage->te->indices[c->axis], c->block ? c->block : lanes, NULL};
  Visitor visitor = {.env = &search, .enter_expr = find_cut};
  visit_expr(&visitor, stage->te->value);
  return search.cuts;
}

static double stage_bytes(const Planner *p, const Stage *stage, const StageChoice *choice) {
  double bytes = 0;
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    if (i == choice->fused) continue;
    int candidate = MAX_OF(choice->reads[i], 0);
    bytes += planner_tensor_bytes(tensor, p->candidates[tensor->index].items[candidate].layout);
  }
  if (choice->fused < 0)
    bytes += planner_tensor_bytes(stage->output,
                                  p->candidates[stage->output->index].items[choice->output].layout);
  return bytes;
}

static double elementwise_cost(const Planner *p, const Stage *stage, const StageChoice *choice) {
  double cycles = move_cost(p, stage_bytes(p, stage, choice));
  return choice->fused < 0 ? cycles + cost_model_of(p->machine)->call_cycles : cycles;
}

// Can the stage be fused with the producer of a tensor when it writes candidate `output`? The cost
// of a fused kernel is computed for the layout that the producer writes, so that layout has to have
// the form of the output's.
static bool can_fuse_as(const Planner *p, const Stage *stage, const StageTensor *tensor,
                        int output) {
  if (planner_fusion_blocker(p, stage, tensor)) return false;
  const Candidate *items = p->candidates[tensor->index].items;
  int like = p->row_major ? 0 : candidate_as(p, tensor, stage->output, output);
  return candidate_like(&items[like], &p->candidates[stage->output->index].items[output]);
}

static void set_reads(const Planner *p, const Stage *stage, StageChoice *choice) {
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    int only = only_candidate(p, stage, i);
    choice->reads[i] = tensor->data ? -1
                       : only >= 0  ? only
                                    : candidate_as(p, tensor, stage->output, choice->output);
  }
}

static bool refuse_cut(const Planner *p, const Stage *stage, const Expr *cut) {
  const Candidates *c = &p->candidates[stage->output->index];
  int64_t at = 0, block = c->items[only_candidate(p, stage, -1)].block;
  if (cut->op == EXPR_LT) expr_as_int(cut->args[1], &at);
  return planner_refuses(
      p, stage,
      str_format(p->context, "it would cut a block of %lld%s", (long long)block,
                 at ? str_format(p->context, " at index %lld", (long long)at) : ""));
}

static bool elementwise_choices(Planner *p, const Stage *stage) {
  int outputs = p->candidates[stage->output->index].count, only = only_candidate(p, stage, -1);
  for (int output = 0; output < outputs; output++) {
    if (only >= 0 && output != only) continue;
    const Expr *cut = cuts_blocks(p, stage, output);
    if (cut && only == output) return refuse_cut(p, stage, cut);
    for (int fused = -1; fused < stage->reads.count && !cut; fused++) {
      if (fused >= 0 && !can_fuse_as(p, stage, stage->reads.items[fused], output)) continue;
      if (!has_room(p, stage)) {
        p->choices_left_out++;
        continue;
      }
      StageChoice *choice = add_choice(p, stage);
      choice->output = output;
      choice->fused = fused;
      set_reads(p, stage, choice);
      choice->cost = elementwise_cost(p, stage, choice);
    }
  }
  return true;
}

bool planner_find_choices(Planner *p, int index) {
  const Stage *stage = p->stages->stages.items[index];
  planner_measure_body(p, stage);
  if (stage->member_count) return group_choices(p, stage);
  return stage_is_reduction(stage) ? reduction_choices(p, stage) : elementwise_choices(p, stage);
}
