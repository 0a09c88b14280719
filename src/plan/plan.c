// SPDX-License-Identifier: Apache-2.0
// Planning: one variable per stage; for a tensor with several users, an input or an output, one
// more variable that says in which layout it is written and in which it exists, so that one rewrite
// serves every user that wants it. The solution becomes groups of stages and rewrites between them.
#include "plan/internal.h"
#include "plan/solve.h"

typedef struct TensorState { // a value of a tensor's variable
  int written;
  unsigned exists; // set of candidates, `written` among them
} TensorState;

typedef struct Solving {
  Planner planner;
  PlanProblem *problem;
  int *stage_variable;  // by stage->index
  int *tensor_variable; // by tensor->index; -1: an edge between producer and user serves
  int *choice;          // by stage->index: the choice taken
  PlanSolution solution;
} Solving;

static int64_t integer_cost(double cycles) {
  return (int64_t)(cycles + 0.5);
}

// ---- Variables

static void add_stage_variable(Solving *s, const Stage *stage) {
  StageChoices *choices = &s->planner.choices[stage->index];
  int64_t costs[PLAN_MAX_CHOICES];
  for (int i = 0; i < choices->count; i++) costs[i] = integer_cost(choices->items[i].cost);
  s->stage_variable[stage->index] = problem_variable(s->problem, choices->count, costs);
}

static int state_count(const Candidates *c) {
  return c->count * (1 << (c->count - 1));
}

// State number i: `written` and the other candidates that exist beside it.
static TensorState state_at(const Candidates *c, int i) {
  int written = i >> (c->count - 1), others = i & ((1 << (c->count - 1)) - 1);
  unsigned low = (unsigned)others & ((1u << written) - 1);
  unsigned high = ((unsigned)others >> written) << (written + 1);
  return (TensorState){written, low | high | 1u << written};
}

static int64_t state_cost(const Solving *s, const StageTensor *tensor, TensorState state) {
  const Candidates *c = &s->planner.candidates[tensor->index];
  double cost = 0;
  if (tensor->input >= 0 && state.written != 0) return PROBLEM_INFINITY;
  if (tensor->is_output && !(state.exists & 1)) return PROBLEM_INFINITY;
  for (int i = 0; i < c->count; i++)
    if (state.exists >> i & 1) cost += planner_rewrite_cost(&s->planner, tensor, state.written, i);
  return integer_cost(cost);
}

static bool needs_variable(const StageTensor *tensor) {
  return !tensor->data && (tensor->users.count != 1 || tensor->is_output || tensor->input >= 0);
}

static void add_tensor_variable(Solving *s, const StageTensor *tensor) {
  s->tensor_variable[tensor->index] = -1;
  if (!needs_variable(tensor)) return;
  const Candidates *c = &s->planner.candidates[tensor->index];
  int count = state_count(c);
  int64_t *costs = arena_array(&s->planner.context->scratch, int64_t, count);
  for (int i = 0; i < count; i++) costs[i] = state_cost(s, tensor, state_at(c, i));
  s->tensor_variable[tensor->index] = problem_variable(s->problem, count, costs);
}

// ---- Edges

static int read_of(const Stage *stage, const StageTensor *tensor) {
  for (int i = 0; i < stage->reads.count; i++)
    if (stage->reads.items[i] == tensor) return i;
  return -1;
}

static int64_t *matrix_new(Solving *s, int rows, int columns) {
  return arena_array(&s->planner.context->scratch, int64_t, (size_t)rows * (size_t)columns);
}

static void edge_written(Solving *s, const StageTensor *tensor) {
  const Candidates *c = &s->planner.candidates[tensor->index];
  const StageChoices *from = &s->planner.choices[tensor->producer->index];
  int count = state_count(c);
  int64_t *matrix = matrix_new(s, from->count, count);
  for (int i = 0; i < from->count; i++)
    for (int j = 0; j < count; j++)
      matrix[i * count + j] =
          from->items[i].output == state_at(c, j).written ? 0 : PROBLEM_INFINITY;
  problem_edge(s->problem, s->stage_variable[tensor->producer->index],
               s->tensor_variable[tensor->index], matrix);
}

static void edge_read(Solving *s, const StageTensor *tensor, const Stage *user) {
  const Candidates *c = &s->planner.candidates[tensor->index];
  const StageChoices *to = &s->planner.choices[user->index];
  int count = state_count(c), read = read_of(user, tensor);
  int64_t *matrix = matrix_new(s, count, to->count);
  for (int i = 0; i < count; i++)
    for (int j = 0; j < to->count; j++)
      matrix[i * to->count + j] =
          state_at(c, i).exists >> to->items[j].reads[read] & 1 ? 0 : PROBLEM_INFINITY;
  problem_edge(s->problem, s->tensor_variable[tensor->index], s->stage_variable[user->index],
               matrix);
}

// Producer and only user: a rewrite where layouts differ, and none at all when the user joins.
static void edge_direct(Solving *s, const StageTensor *tensor, const Stage *user) {
  const StageChoices *from = &s->planner.choices[tensor->producer->index];
  const StageChoices *to = &s->planner.choices[user->index];
  int read = read_of(user, tensor);
  int64_t *matrix = matrix_new(s, from->count, to->count);
  for (int i = 0; i < from->count; i++)
    for (int j = 0; j < to->count; j++) {
      int written = from->items[i].output, wanted = to->items[j].reads[read];
      double cost = planner_rewrite_cost(&s->planner, tensor, written, wanted);
      bool joins = to->items[j].fused == read;
      matrix[i * to->count + j] =
          joins && written != wanted ? PROBLEM_INFINITY : integer_cost(cost);
    }
  problem_edge(s->problem, s->stage_variable[tensor->producer->index],
               s->stage_variable[user->index], matrix);
}

static void add_edges(Solving *s, const StageTensor *tensor) {
  if (tensor->data) return;
  bool shared = s->tensor_variable[tensor->index] >= 0;
  if (shared && tensor->producer) edge_written(s, tensor);
  for (int i = 0; i < tensor->users.count; i++) {
    if (shared)
      edge_read(s, tensor, tensor->users.items[i]);
    else
      edge_direct(s, tensor, tensor->users.items[i]);
  }
}

static bool solve(Solving *s, double seconds) {
  StageGraph *g = s->planner.stages;
  Context *context = s->planner.context;
  s->problem = problem_new(context);
  s->stage_variable = arena_array(&context->arena, int, g->stages.count);
  s->tensor_variable = arena_array(&context->arena, int, g->tensors.count);
  s->choice = arena_array(&context->arena, int, g->stages.count);
  for (int i = 0; i < g->stages.count; i++) add_stage_variable(s, g->stages.items[i]);
  for (int i = 0; i < g->tensors.count; i++) add_tensor_variable(s, g->tensors.items[i]);
  for (int i = 0; i < g->tensors.count; i++) add_edges(s, g->tensors.items[i]);
  s->solution = problem_solve(s->problem, seconds);
  if (!s->solution.choices) return false;
  for (int i = 0; i < g->stages.count; i++)
    s->choice[i] = s->solution.choices[s->stage_variable[i]];
  return true;
}

// ---- Layouts of the solution

static const StageChoice *chosen(const Solving *s, const Stage *stage) {
  return &s->planner.choices[stage->index].items[s->choice[stage->index]];
}

static const Layout *layout_number(const Solving *s, const StageTensor *tensor, int i) {
  return i < 0 ? NULL : s->planner.candidates[tensor->index].items[i];
}

static int written_number(const Solving *s, const StageTensor *tensor) {
  return tensor->producer ? chosen(s, tensor->producer)->output : 0;
}

const char *plan_layout_name(Context *context, const StageTensor *tensor, const Layout *layout) {
  static const char *const data[] = {"scalar", "C", "NC", "NCW", "NCHW", "NCDHW"};
  static const char *const weights[] = {"scalar", "C", "OI", "OIW", "OIHW", "OIDHW"};
  int rank = tensor->buffer->rank;
  const char *usual = rank >= COUNT_OF(data) ? NULL : tensor->data ? weights[rank] : data[rank];
  if (!layout) return usual ? usual : "row-major";
  const char *name = index_map_name(context, layout->map, usual);
  return name ? name : index_map_text(context, layout->map);
}

const char *plan_tensor_name(const StageTensor *tensor) {
  return tensor->value ? tensor->value->name : tensor->buffer->name;
}

// ---- Kernels

typedef struct Grouping {
  Solving *s;
  Plan *plan;
  int *group;       // by stage->index: the index of the group's first stage
  PtrArray *stages; // by first stage
} Grouping;

static const char *stage_label(const Stage *stage) {
  return stage->node ? stage->node->name : stage->te->name;
}

static void add_rewrite(Grouping *g, StageTensor *tensor, int from, int to, const char *because) {
  Plan *plan = g->plan;
  Context *context = plan->context;
  Te *te = te_new(context);
  Buffer *like = tensor->buffer;
  Buffer *input = te_input(te, like->name, like->type, like->shape, like->rank);
  TeAxes axes = te_axes(te, like->shape, like->rank);
  Buffer *output = te_compute(te, str_format(context, "%s_rewritten", like->name), like->type,
                              like->shape, &axes, te_at(te, input, axes.at));
  array_push(&context->arena, &te->outputs, output);
  PlanKernel *kernel = arena_new(&context->arena, PlanKernel);
  kernel->is_rewrite = true;
  kernel->name = str_format(context, "rewrite_%s", plan_tensor_name(tensor));
  kernel->func = te_prim_func(te, kernel->name);
  for (int i = 0; i < 2; i++) array_push(&context->arena, &kernel->params, tensor);
  kernel->layouts = arena_array(&context->arena, KernelParam, 2);
  kernel->layouts[0].layout = layout_number(g->s, tensor, from);
  kernel->layouts[1].layout = layout_number(g->s, tensor, to);
  array_push(&context->arena, &plan->kernels, kernel);
  double bytes = MAX_OF(tensor_bytes_as(tensor, kernel->layouts[0].layout),
                        tensor_bytes_as(tensor, kernel->layouts[1].layout));
  PlanRewrite rewrite = {tensor,
                         kernel->layouts[0].layout,
                         kernel->layouts[1].layout,
                         .bytes = (int64_t)bytes,
                         .cost = planner_rewrite_cost(&g->s->planner, tensor, from, to),
                         .because = because,
                         .kernel = kernel};
  array_push(&context->arena, &plan->rewrites, rewrite);
}

// The rewrites of a tensor, right after it was written: for each layout that a user outside its
// group wants, once.
static void add_rewrites_of(Grouping *g, StageTensor *tensor) {
  int from = written_number(g->s, tensor);
  unsigned done = 1u << from;
  Context *context = g->plan->context;
  for (int i = 0; i < tensor->users.count; i++) {
    Stage *user = tensor->users.items[i];
    int to = chosen(g->s, user)->reads[read_of(user, tensor)];
    if (to < 0 || done >> to & 1) continue;
    done |= 1u << to;
    const Layout *layout = layout_number(g->s, tensor, to);
    const char *from_name = tensor->producer
                                ? str_format(context, "%s writes", stage_label(tensor->producer))
                                : "the input is";
    add_rewrite(g, tensor, from, to,
                str_format(context, "%s reads %s, %s %s", stage_label(user),
                           plan_layout_name(context, tensor, layout), from_name,
                           plan_layout_name(context, tensor, layout_number(g->s, tensor, from))));
  }
  if (tensor->is_output && !(done & 1))
    add_rewrite(g, tensor, from, 0, "the graph's output is row-major");
}

static const Layout *param_layout(const Grouping *g, Stage *const *stages, int count,
                                  const StageTensor *tensor) {
  for (int i = 0; i < count; i++) {
    int read = read_of(stages[i], tensor);
    if (read >= 0) return layout_number(g->s, tensor, chosen(g->s, stages[i])->reads[read]);
    if (stages[i]->output == tensor)
      return layout_number(g->s, tensor, chosen(g->s, stages[i])->output);
  }
  return NULL;
}

static Stage *anchor_of(Stage *const *stages, int count) {
  for (int i = 0; i < count; i++)
    if (stage_is_reduction(stages[i])) return stages[i];
  return stages[0];
}

static void add_kernel(Grouping *g, const PtrArray *stages) {
  Context *context = g->plan->context;
  PlanKernel *kernel = arena_new(&context->arena, PlanKernel);
  kernel->stages = (Stage **)stages->items;
  kernel->stage_count = stages->count;
  kernel->name = stage_label(anchor_of(kernel->stages, kernel->stage_count));
  kernel->func = stages_prim_func(g->s->planner.stages, kernel->stages, kernel->stage_count,
                                  kernel->name, &kernel->params);
  kernel->layouts = arena_array(&context->arena, KernelParam, kernel->params.count);
  for (int i = 0; i < kernel->params.count; i++) {
    StageTensor *tensor = kernel->params.items[i];
    kernel->layouts[i].constant = tensor->data != NULL;
    if (!tensor->data)
      kernel->layouts[i].layout = param_layout(g, kernel->stages, kernel->stage_count, tensor);
  }
  array_push(&context->arena, &g->plan->kernels, kernel);
  add_rewrites_of(g, array_last(&kernel->params));
}

static void find_groups(Grouping *g) {
  const StageGraph *graph = g->s->planner.stages;
  Arena *arena = &g->plan->context->arena;
  g->group = arena_array(arena, int, graph->stages.count);
  g->stages = arena_array(arena, PtrArray, graph->stages.count);
  for (int i = 0; i < graph->stages.count; i++) {
    Stage *stage = graph->stages.items[i];
    int fused = chosen(g->s, stage)->fused;
    g->group[i] =
        fused < 0 ? i : g->group[((StageTensor *)stage->reads.items[fused])->producer->index];
    array_push(arena, &g->stages[g->group[i]], stage);
  }
}

static void make_kernels(Grouping *g) {
  const StageGraph *graph = g->s->planner.stages;
  find_groups(g);
  for (int i = 0; i < graph->inputs.count; i++) add_rewrites_of(g, graph->inputs.items[i]);
  for (int i = 0; i < graph->stages.count; i++) {
    const PtrArray *stages = &g->stages[g->group[i]];
    if (array_last(stages) == graph->stages.items[i]) add_kernel(g, stages);
  }
}

// ---- The plan

static Solving prepare(StageGraph *stages, const PlanOptions *options, bool layouts_free) {
  Context *context = stages->context;
  Solving s = {.planner = {context, stages, options->machine, NULL, NULL}};
  planner_find_candidates(&s.planner);
  for (int i = 0; i < stages->tensors.count && !layouts_free; i++)
    s.planner.candidates[i].count = 1;
  s.planner.choices = arena_array(&context->arena, StageChoices, stages->stages.count);
  for (int i = 0; i < stages->stages.count; i++) planner_find_choices(&s.planner, i);
  return s;
}

Plan *plan_graph(StageGraph *stages, const PlanOptions *options) {
  Context *context = stages->context;
  double seconds = options->seconds > 0 ? options->seconds : 2;
  Plan *plan = arena_new(&context->arena, Plan);
  *plan = (Plan){.context = context, .stages = stages, .machine = options->machine};
  Solving unplanned = prepare(stages, options, false), planned = unplanned;
  if (!solve(&unplanned, seconds)) bug(context, "the unplanned graph has no plan");
  if (options->policy == PLAN_OPTIMAL) {
    planned = prepare(stages, options, true);
    bool better = solve(&planned, seconds) && planned.solution.cost <= unplanned.solution.cost;
    if (!better) planned = unplanned;
  } else {
    planned = unplanned;
  }
  plan->cost_unplanned = (double)unplanned.solution.cost;
  plan->cost = (double)planned.solution.cost;
  plan->lower_bound = (double)planned.solution.bound;
  plan->optimal = planned.solution.optimal;
  Grouping grouping = {.s = &planned, .plan = plan};
  make_kernels(&grouping);
  return plan;
}

// ---- Schedules

static void note_folded(Plan *plan, PlanKernel *kernel) {
  for (int i = 0; i < kernel->params.count; i++) {
    const Layout *layout = kernel->choice.layouts[i];
    StageTensor *tensor = kernel->params.items[i];
    if (!tensor->data || !layout) continue;
    PlanRewrite rewrite = {tensor,
                           NULL,
                           layout,
                           .folded = true,
                           .bytes = (int64_t)tensor_bytes_as(tensor, layout),
                           .because =
                               str_format(plan->context, "read in the order of %s", kernel->name)};
    array_push(&plan->context->arena, &plan->rewrites, rewrite);
  }
}

static bool same_layouts(const PlanKernel *a, const PlanKernel *b) {
  for (int i = 0; i < a->params.count; i++) {
    const Layout *x = a->layouts[i].layout, *y = b->layouts[i].layout;
    if (a->layouts[i].constant != b->layouts[i].constant || !x != !y) return false;
    if (x && x->map != y->map) return false; // shapes are compared with the functions
  }
  return true;
}

static int find_same(const Plan *plan, int index) {
  const PlanKernel *kernel = plan->kernels.items[index];
  for (int i = 0; i < index; i++) {
    const PlanKernel *other = plan->kernels.items[i];
    if (other->same_as < 0 && other->params.count == kernel->params.count &&
        same_layouts(other, kernel) &&
        prim_func_equal(plan->context, other->func, kernel->func, NULL))
      return i;
  }
  return -1;
}

bool plan_schedule(Plan *plan) {
  for (int i = 0; i < plan->kernels.count; i++) {
    PlanKernel *kernel = plan->kernels.items[i];
    kernel->same_as = find_same(plan, i);
    if (kernel->same_as >= 0)
      kernel->choice = plan->kernels.items[kernel->same_as]->choice;
    else if (!kernel_schedule(plan->context, plan->machine, kernel->func, kernel->layouts,
                              &kernel->choice))
      return false;
    note_folded(plan, kernel);
  }
  return true;
}
