// SPDX-License-Identifier: Apache-2.0
// The planner's entry point: finds candidates and choices, takes the best choices or those of a
// policy, makes the kernels, and finds their schedules.
#include "config.h"
#include "plan/internal.h"

#include <ctype.h>

// ---- Names

Str plan_axis_letters(Context *context, const StageTensor *tensor) {
  static const char own[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (tensor->letters) return tensor->letters;
  return str_intern_n(context, own, (size_t)MIN_OF(tensor->buffer->rank, (int)strlen(own)));
}

// The layout as an index map whose axes have these letters, in lower case.
static const char *map_text(Context *context, const Layout *layout, const char *letters) {
  const IndexMap *map = layout->map;
  size_t names_size = sizeof(Str) * (size_t)(map->input_count + map->replica_count);
  Str *names = arena_copy(&context->arena, map->inputs, names_size);
  for (int d = 0; d < map->input_count; d++)
    names[d] = str_format(context, "%c", tolower((unsigned char)letters[d]));
  return layout_text(context, layout_with_names(context, layout, names));
}

// The end of the layout's text that states its physical extents, where they are not the derived
// ones: " in [1, 8]".
static const char *extents_suffix(Context *context, const Layout *layout) {
  return layout_text(context, layout) + strlen(index_map_text(context, layout->map));
}

const char *plan_layout_name(Context *context, const StageTensor *tensor, const Layout *layout) {
  Str letters = plan_axis_letters(context, tensor);
  if (!tensor->buffer->rank) return "scalar";
  if (!layout) return letters;
  const char *name = index_map_name(context, layout->map, letters);
  if (!name) return map_text(context, layout, letters);
  return str_format(context, "%s%s", name, extents_suffix(context, layout));
}

const char *plan_tensor_name(const StageTensor *tensor) {
  return tensor->value ? tensor->value->name : tensor->buffer->name;
}

int64_t plan_bytes(const StageTensor *tensor, const Layout *layout) {
  return (int64_t)planner_tensor_bytes(tensor, layout);
}

// ---- The plan

// The constraints that hold without planning: the layouts in which the caller has the inputs and
// outputs. All other tensors are row-major.
static const PlanConstraints *boundary_only(Context *context, const PlanConstraints *constraints) {
  if (!constraints) return NULL;
  PlanConstraints *boundary = arena_copy(&context->arena, constraints, sizeof *constraints);
  boundary->items.count = 0;
  boundary->asked.value = NULL;
  return boundary;
}

// The facts that depend on the stages alone.
static void find_facts(Planner *p) {
  Arena *arena = &p->context->arena;
  planner_count_readers(p->stages);
  p->nests = arena_new(arena, Map);
  *p->nests = map_new(arena);
  p->shapes = arena_new(arena, Map);
  *p->shapes = map_new(arena);
  planner_find_kinds(p);
  planner_find_relations(p);
  planner_find_pieces(p);
  p->bodies = arena_array(arena, LoopBody, p->stages->stages.count);
  for (int i = 0; i < p->stages->stages.count; i++)
    planner_measure_body(p, p->stages->stages.items[i]);
  planner_find_passed(p);
}

static void share_facts(Planner *p, const Planner *other) {
  p->kinds = other->kinds;
  p->nests = other->nests;
  p->shapes = other->shapes;
  p->relations = other->relations;
  p->shared_relations = other->shared_relations;
  p->pieces = other->pieces;
  p->bodies = other->bodies;
  p->passed = other->passed;
  p->passed_writer = other->passed_writer;
}

static double constant_bytes(const StageGraph *stages) {
  double bytes = 0;
  for (int i = 0; i < stages->tensors.count; i++) {
    const StageTensor *tensor = stages->tensors.items[i];
    if (tensor->data && tensor->users.count) bytes += planner_tensor_bytes(tensor, NULL);
  }
  return bytes;
}

static void free_growing(void *arena) {
  arena_free(arena);
}

// A planner with candidates and choices, or NULL with diagnostics when the constraints cannot be
// met. `other` is NULL, or a planner of the same stages.
static Planner *prepare(StageGraph *stages, const PlanOptions *options,
                        const PlanConstraints *constraints, bool proposals, bool is_small,
                        const Planner *other) {
  Context *context = stages->context;
  bool row_major = !other;
  Planner *p = arena_new(&context->arena, Planner);
  *p = (Planner){.context = context, .stages = stages, .machine = options->machine};
  p->constraints = constraints;
  p->constant_bytes = constant_bytes(stages);
  p->is_small = is_small;
  p->most_choices = is_small ? SMALL_MAX_CHOICES : PLAN_MAX_CHOICES;
  if (options->most_choices > 0) p->most_choices = options->most_choices;
  p->most_layouts = is_small ? PLAN_MAX_LAYOUTS : USUAL_MAX_LAYOUTS;
  if (options->most_layouts > 0) p->most_layouts = MIN_OF(options->most_layouts, PLAN_MAX_LAYOUTS);
  arena_init(&p->growing, context);
  context_at_free(context, free_growing, &p->growing);
  p->candidates = arena_array(&context->arena, Candidates, stages->tensors.count);
  other ? share_facts(p, other) : find_facts(p);
  p->given = arena_array(&context->arena, int, stages->tensors.count);
  p->copies_limited = arena_array(&context->arena, bool, stages->tensors.count);
  for (int i = 0; i < stages->tensors.count; i++)
    candidates_add(p, stages->tensors.items[i],
                   planner_row_major(p, ((StageTensor *)stages->tensors.items[i])->buffer));
  if (!planner_apply_constraints(p)) return NULL;
  planner_propose_ways(p);
  p->tuning = row_major ? NULL : options->tuning;
  if (p->tuning && !planner_find_tuned(p)) return NULL;
  if (!row_major) planner_find_candidates(p, proposals);
  planner_share_candidates(p);
  arena_recycle(&p->growing);
  p->row_major = row_major;
  p->shared_choices = map_new(&context->arena);
  p->composed = arena_new(&context->arena, Map);
  *p->composed = map_new(&context->arena);
  p->proposals = proposals;
  p->choices = arena_array(&context->arena, StageChoices, stages->stages.count);
  p->gather_costs = arena_array(&context->arena, GatherCosts *, stages->stages.count);
  bool ok = true;
  for (int i = 0; i < stages->stages.count; i++) ok &= planner_find_choices(p, i);
  return ok ? p : NULL;
}

static Assignment assign(const Planner *planner, const PlanOptions *options, double seconds) {
  switch (options->policy) {
  case PLAN_FORWARD: return planner_forward(planner);
  case PLAN_BACKWARD: return planner_backward(planner);
  case PLAN_OPTIMAL:
  case PLAN_NONE: break;
  }
  return planner_solve(planner, seconds, NULL, 0);
}

static PlanLimits limits_of(const Planner *p) {
  PlanLimits limits = {.choices = p->choices_dominated,
                       .layouts_left_out = p->layouts_left_out,
                       .choices_left_out = p->choices_left_out,
                       .fusions_decided = p->stages->fusions_decided};
  for (int i = 0; i < p->stages->stages.count; i++) limits.choices += p->choices[i].count;
  for (int i = 0; i < p->stages->tensors.count; i++)
    limits.layouts_left_out += p->candidates[i].left_out + p->copies_limited[i];
  return limits;
}

// Did the solver choose from everything?
static bool all_is_looked_at(const PlanLimits *limits) {
  return !limits->choices_left_out && !limits->layouts_left_out && !limits->fusions_decided;
}

static void note_costs(Plan *plan, const PlanOptions *options, double seconds,
                       const Assignment *taken, const Assignment *unplanned) {
  plan->cost_unplanned = (double)unplanned->cost;
  plan->cost = (double)taken->cost;
  plan->lower_bound = (double)taken->bound;
  plan->limits = limits_of(plan->planner);
  plan->optimal = taken->optimal && all_is_looked_at(&plan->limits);
  if (options->policy == PLAN_NONE) return;
  plan->cost_optimal = plan->cost;
  if (options->policy != PLAN_OPTIMAL) {
    Assignment best = planner_solve(plan->planner, seconds, NULL, 0);
    plan->cost_optimal = (double)best.cost;
    plan->lower_bound = (double)best.bound;
  }
  plan->cost_forward = (double)planner_forward(plan->planner).cost;
  plan->cost_backward = (double)planner_backward(plan->planner).cost;
}

// The choices and layouts that limits left out; NULL: none were.
static const char *not_looked_at(Arena *arena, const PlanLimits *limits) {
  long long choices = limits->choices_left_out, all = limits->choices + choices;
  long long layouts = limits->layouts_left_out;
  if (!choices && !layouts) return NULL;
  const char *of_choices = arena_printf(arena, "%lld choices of %lld", choices, all);
  const char *of_layouts = arena_printf(arena, "%lld layout%s", layouts, layouts == 1 ? "" : "s");
  if (choices && layouts)
    return arena_printf(arena, "%s and %s were not looked at", of_choices, of_layouts);
  return arena_printf(arena, "%s were not looked at", choices ? of_choices : of_layouts);
}

const char *plan_left_out(Arena *arena, const Plan *plan) {
  const PlanLimits *limits = &plan->limits;
  const char *left_out = not_looked_at(arena, limits);
  long long fusions = limits->fusions_decided;
  if (!fusions) return left_out;
  const char *decided =
      fusions == 1 ? "1 fusion was decided before planning"
                   : arena_printf(arena, "%lld fusions were decided before planning", fusions);
  return left_out ? arena_printf(arena, "%s, and %s", left_out, decided) : decided;
}

// Keeps the bilinear algorithms whose stages are in the plan.
static void note_bilinear(Plan *plan, const PlanBilinears *offered) {
  for (int i = 0; i < offered->count; i++) {
    const PlanBilinear *use = &offered->items[i];
    if (use->stage->output->producer == use->stage)
      array_push(&plan->context->arena, &plan->bilinear, *use);
  }
}

static bool has_requirements(const Tuning *tuning) {
  for (int i = 0; tuning && i < tuning->count; i++)
    if (tuning->items[i].cycles < 0) return true;
  return false;
}

static Plan *refuse_records(Context *context, const Tuning *tuning) {
  diag_error_as(context, DIAG_OPTION, tuning->items[0].pos,
                "no plan has the kernels of all records that state no cycles\na stage can be in "
                "one kernel only; state cycles=, so that the planner may choose");
  return NULL;
}

// A planner and its choices.
typedef struct Considered {
  Planner *planner;
  Assignment taken;
  int64_t work; // of the solver, for this and what was considered before it
} Considered;

static Considered consider_with(StageGraph *stages, const PlanOptions *options, double seconds,
                                bool is_small, const Planner *none) {
  Considered found = {
      prepare(stages, options, options->constraints, options->policy != PLAN_NONE, is_small, none)};
  if (found.planner) found.taken = assign(found.planner, options, seconds);
  found.work = found.taken.work;
  return found;
}

static int64_t layouts_beside(const Planner *all, const Planner *some) {
  int64_t count = 0;
  for (int i = 0; i < all->stages->tensors.count; i++)
    count += all->candidates[i].count + all->candidates[i].left_out - some->candidates[i].count -
             some->candidates[i].left_out;
  return MAX_OF(count, 0);
}

// Looks at all plain layouts of a small graph, as long as its solution takes little time; where it
// cannot be proved to be the best, without them too. No planner: the constraints cannot be met.
static Considered consider(StageGraph *stages, const PlanOptions *options, double seconds,
                           const Planner *none) {
  const double share = 1.0 / 3;
  bool is_small = options->policy != PLAN_NONE && stage_graph_is_small(stages);
  Considered found =
      consider_with(stages, options, is_small ? seconds * share : seconds, is_small, none);
  if (!is_small || !found.planner || options->policy != PLAN_OPTIMAL) return found;
  PlanLimits limits = limits_of(found.planner);
  bool whole = !limits.choices_left_out && !limits.layouts_left_out;
  if (found.taken.optimal && whole) return found;
  Considered usual = consider_with(stages, options, seconds, false, none);
  found.work = usual.work += found.work;
  if (!usual.planner || !usual.taken.choice) return found;
  if (found.taken.choice && found.taken.cost < usual.taken.cost) return found;
  usual.planner->layouts_left_out = layouts_beside(found.planner, usual.planner);
  return usual;
}

// Is a plan possible in which every tensor is row-major?
static bool is_free(const PlanOptions *options) {
  const PlanConstraints *constraints = options->constraints;
  return options->policy == PLAN_OPTIMAL && (!constraints || !constraints->items.count) &&
         !has_requirements(options->tuning);
}

static Plan *plan_new(StageGraph *stages, const PlanOptions *options) {
  Context *context = stages->context;
  Plan *plan = arena_new(&context->arena, Plan);
  *plan = (Plan){.context = context, .stages = stages, .machine = options->machine};
  plan->runner_up = options->runner_up;
  plan->sums_in_order = options->accuracy.exact;
  plan->constraints = options->constraints;
  plan->placements = map_new(&context->arena);
  plan->by_structure = map_new(&context->lasting); // kernels can be scheduled in an arena scope
  plan->by_stages = map_new(&context->lasting);
  return plan;
}

// The time of the solver. It has no more than 30,000 runs of the program without layouts take, so
// that a better plan of a tiny program does not take longer than it can save.
static double seconds_of(const PlanOptions *options, int64_t unplanned_cost) {
  const double runs = 3e4, cycles_per_second = 3e9, least = PLAN_SECONDS / 10;
  double seconds = options->seconds > 0 ? options->seconds : PLAN_SECONDS;
  double worth = (double)unplanned_cost * runs / cycles_per_second;
  return MIN_OF(seconds, MAX_OF(worth, least));
}

Plan *plan_graph(StageGraph *stages, const PlanOptions *options) {
  Context *context = stages->context;
  Plan *plan = plan_new(stages, options);
  const PlanConstraints *boundary = boundary_only(context, options->constraints);
  Planner *none = prepare(stages, options, boundary, false, false, NULL);
  if (!none) return NULL;
  Assignment unplanned = planner_solve(none, PLAN_SECONDS, NULL, 0);
  if (!unplanned.choice) bug(context, "the unplanned graph has no plan");
  double seconds = seconds_of(options, unplanned.cost);
  Considered best = consider(stages, options, seconds, none);
  if (!best.planner) return NULL;
  Assignment *taken = &best.taken;
  bool free = is_free(options);
  if (!taken->choice && best.planner->tuned) return refuse_records(context, options->tuning);
  if (!taken->choice && !free) bug(context, "no plan meets the constraints");
  if (free && (!taken->choice || taken->cost > unplanned.cost)) {
    unplanned.bound = MIN_OF(taken->bound, unplanned.cost);
    unplanned.optimal = taken->bound == unplanned.cost;
    none->layouts_left_out = limits_of(best.planner).layouts_left_out;
    best = (Considered){none, unplanned, best.work};
  }
  plan->work = best.work;
  plan->planner = best.planner;
  plan->choice = taken->choice;
  note_costs(plan, options, seconds, taken, &unplanned);
  planner_connect(best.planner, taken->choice);
  plan->stages = planner_stages_of(best.planner, taken->choice);
  note_bilinear(plan, &options->bilinear);
  planner_make_kernels(best.planner, taken->choice, plan);
  return plan;
}

const PlanPlacement *plan_placement(const Plan *plan, const StageTensor *tensor,
                                    const Layout *layout) {
  const PlanPlacement *placement = map_find(&plan->placements, tensor);
  return placement && planner_same_layout(placement->layout, layout) ? placement : NULL;
}

bool plan_kernel_writes(const PlanKernel *kernel, int param) {
  const Stage *producer = kernel->params.items[param]->producer;
  bool follows = kernel->call && producer && producer->te->call == kernel->call;
  return follows || param == kernel->params.count - 1;
}

const Layout *plan_memory_layout(const Plan *plan, const PlanKernel *kernel, int param) {
  Context *context = plan->context;
  const Layout *layout = kernel->choice.layouts[param];
  const PlanPlacement *placement = kernel->placements[param];
  if (!placement || placement->dense) return layout;
  const Buffer *buffer = kernel->params.items[param]->buffer;
  const LayoutExpr *sum = layout_const(context, 0);
  int64_t shape[TE_MAX_RANK];
  buffer_static_shape(buffer, shape);
  int count = layout ? layout->map->output_count : buffer->rank;
  for (int i = 0; i < count; i++) {
    const LayoutExpr *index = layout ? layout->map->outputs[i] : layout_axis(context, i),
                     *stride = layout_const(context, placement->strides[i]);
    index = layout_expr(context, LAYOUT_MUL, index, stride, NULL);
    sum = layout_expr(context, LAYOUT_ADD, sum, index, NULL);
  }
  const IndexMap *map = index_map_new(context, buffer->rank, NULL, 1, &sum, NULL, NULL, 0);
  return layout_static(context, map, shape, buffer->pos);
}

const Layout *plan_input_layout(const Plan *plan, int number) {
  const StageTensor *tensor = plan->stages->inputs.items[number];
  const Planner *p = plan->planner;
  return p->candidates[tensor->index].items[p->given[tensor->index]].layout;
}

const Layout *plan_output_layout(const Plan *plan, int number) {
  const StageTensor *tensor = plan->stages->outputs.items[number];
  const Planner *p = plan->planner;
  return p->candidates[tensor->index].items[p->given[tensor->index]].layout;
}

// ---- Schedules

// Adds the folded rewrites of a kernel's constants that are not in `noted`: by tensor and map, the
// folded rewrites so far. Kernels of one structure share constants.
static void note_folded(Plan *plan, PlanKernel *kernel, Map *noted) {
  for (int i = 0; i < kernel->params.count; i++) {
    const Layout *layout = kernel->choice.layouts[i];
    StageTensor *tensor = kernel->params.items[i];
    if (!tensor->data || !layout) continue;
    Map *maps = map_find(noted, tensor);
    if (maps && map_contains(maps, layout->map)) continue;
    if (!maps) {
      maps = arena_new(&plan->context->arena, Map);
      *maps = map_new(&plan->context->arena);
      map_put(noted, tensor, maps);
    }
    map_put(maps, layout->map, (void *)layout);
    PlanRewrite rewrite = {tensor,
                           NULL,
                           layout,
                           .folded = true,
                           .bytes = (int64_t)planner_tensor_bytes(tensor, layout),
                           .because =
                               str_format(plan->context, "read in the order of %s", kernel->name)};
    array_push(&plan->context->arena, &plan->rewrites, rewrite);
  }
}

// Do both parameters have the same strides?
static bool same_strides(const PlanPlacement *a, const PlanPlacement *b) {
  bool own_a = a && !a->dense, own_b = b && !b->dense;
  return own_a == own_b && (!own_a || !memcmp(a->strides, b->strides, sizeof a->strides));
}

// Do both kernels run in bands, with the same layouts of the tensors between their parts, or does
// neither?
static bool same_bands(const PlanBands *a, const PlanBands *b) {
  if (!a || !b) return a == b;
  bool same = a->count == b->count;
  for (int i = 0; i < a->count && same; i++)
    same = a->parts[i].blocks == b->parts[i].blocks &&
           planner_same_layout(a->parts[i].output, b->parts[i].output);
  return same;
}

static bool same_layouts(const PlanKernel *a, const PlanKernel *b) {
  if (!same_bands(a->bands, b->bands)) return false;
  if ((a->tuned ? a->tuned->record : NULL) != (b->tuned ? b->tuned->record : NULL)) return false;
  for (int i = 0; i < a->params.count; i++) {
    if (!same_strides(a->placements[i], b->placements[i])) return false;
    const Layout *x = a->layouts[i].layout, *y = b->layouts[i].layout;
    if (a->layouts[i].constant != b->layouts[i].constant || !x != !y) return false;
    if (x && x->map != y->map) return false; // the caller compares shapes with the functions
  }
  return true;
}

PrimFunc *plan_kernel_func(const Plan *plan, int number) {
  PlanKernel *kernel = plan->kernels.items[number];
  if (!kernel->func)
    kernel->func =
        stages_prim_func(plan->planner->stages, kernel->stages, kernel->stage_count, kernel->name);
  return kernel->func;
}

// The kernel with code of its own that equals the kernel, or -1. If there is none, later
// calls find the kernel.
static int find_same(Plan *plan, int index) {
  PlanKernel *kernel = plan->kernels.items[index];
  PrimFunc *func = plan_kernel_func(plan, index);
  uint64_t hash = prim_func_hash(plan->context, func);
  kernel->next_alike = map_get(&plan->by_structure, hash);
  for (const PlanKernel *other = kernel->next_alike; other; other = other->next_alike)
    if (other->params.count == kernel->params.count && same_layouts(other, kernel) &&
        prim_func_equal(plan->context, other->func, func, NULL))
      return other->number;
  kernel->number = index;
  map_set(&plan->by_structure, hash, kernel);
  return -1;
}

// The same, without a look at the program of a kernel whose stages are equal to those of an earlier
// one.
static int find_same_stages(Plan *plan, int index) {
  PlanKernel *kernel = plan->kernels.items[index];
  ArenaMark mark = arena_mark(&plan->context->scratch);
  WordKey key;
  bool has_key = planner_kernel_key(plan->planner, kernel, &key);
  void **known = has_key ? map_place(&plan->by_stages, &key) : NULL;
  arena_reset(&plan->context->scratch, mark);
  const PlanKernel *other = known ? *known : NULL;
  if (PLEAT_VERIFY_EACH && other &&
      !prim_func_equal(plan->context, other->func, plan_kernel_func(plan, index), NULL))
    bug(plan->context, "'%s' and '%s' have equal stages only", other->name, kernel->name);
  if (other) return other->number;
  int same = find_same(plan, index);
  if (known) *known = same < 0 ? kernel : plan->kernels.items[same];
  return same;
}

// A call has no schedule: its tensors have the layouts of its way.
static bool take_layouts(Plan *plan, PlanKernel *kernel) {
  Arena *arena = &plan->context->lasting;
  kernel->choice.layouts = arena_array(arena, const Layout *, kernel->params.count);
  for (int i = 0; i < kernel->params.count; i++)
    kernel->choice.layouts[i] = kernel->layouts[i].layout;
  return true;
}

// A kernel of a tuning record has the layouts that its schedule gives the parameters.
static bool take_record(Plan *plan, PlanKernel *kernel) {
  take_layouts(plan, kernel);
  kernel->choice.schedule = kernel->tuned->schedule;
  return true;
}

static bool schedule_by_cost(const Plan *plan, PlanKernel *kernel) {
  Strategies strategies = {0};
  const Strategies *planned = kernel->strategies ? &strategies : NULL;
  if (planned) strategies = *kernel->strategies;
  if (planned && plan->runner_up)
    strategies = strategies_behind(plan->context, plan->machine, &strategies, plan->runner_up);
  strategies.in_order = plan->sums_in_order;
  return autosched_kernel(plan->context, plan->machine, kernel->func, kernel->layouts, planned,
                          &kernel->choice);
}

// A kernel in bands was scheduled when it was found.
static bool take_bands(PlanKernel *kernel) {
  kernel->choice = kernel->bands->choice;
  return true;
}

void plan_match_kernel(Plan *plan, int number) {
  PlanKernel *kernel = plan->kernels.items[number];
  kernel->same_as = kernel->call ? -1 : find_same_stages(plan, number);
}

bool plan_schedule_kernel(Plan *plan, int number) {
  PlanKernel *kernel = plan->kernels.items[number];
  if (kernel->call) return take_layouts(plan, kernel);
  if (kernel->same_as < 0 && kernel->bands) return take_bands(kernel);
  if (kernel->same_as < 0 && kernel->tuned) return take_record(plan, kernel);
  if (kernel->same_as < 0 && kernel->stage_count && kernel->stages[0]->te->program) {
    autosched_program(plan->context, plan->machine, kernel->func, &kernel->choice);
    return true;
  }
  if (kernel->same_as < 0) return schedule_by_cost(plan, kernel);
  kernel->choice = plan->kernels.items[kernel->same_as]->choice;
  return true;
}

void plan_note_folded(Plan *plan) {
  Map noted = map_new(&plan->context->arena);
  for (int i = 0; i < plan->kernels.count; i++) note_folded(plan, plan->kernels.items[i], &noted);
}

bool plan_schedule(Plan *plan) {
  for (int i = 0; i < plan->kernels.count; i++) {
    plan_match_kernel(plan, i);
    if (!plan_schedule_kernel(plan, i)) return false;
  }
  plan_note_folded(plan);
  return true;
}
