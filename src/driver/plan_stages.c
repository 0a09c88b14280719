// SPDX-License-Identifier: Apache-2.0
// Makes the stages of a program and plans them. Some decisions are made before planning: results
// are inlined into their readers, groups are made, outputs are turned. A small graph is planned
// without these too, and the cheapest of the plans is taken.
#include "base/caller.h"
#include "driver/driver.h"
#include "offload/offload.h"

static bool check_static(Context *context, const StageGraph *stages) {
  for (int i = 0; i < stages->tensors.count; i++) {
    const StageTensor *tensor = stages->tensors.items[i];
    int64_t shape[TE_MAX_RANK];
    if (!buffer_static_shape(tensor->buffer, shape))
      return diag_error(context, tensor->buffer->pos,
                        "'%s' has a symbolic extent; give sizes with %s", plan_tensor_name(tensor),
                        caller_size(context, "name", 1));
  }
  return true;
}

// Tensors with a layout constraint stay in memory: they are not inlined into their readers.
static void keep_constrained(StageGraph *stages, const PlanConstraints *constraints) {
  for (int i = 0; i < stages->tensors.count; i++) {
    StageTensor *tensor = stages->tensors.items[i];
    for (int k = 0; constraints && k < constraints->items.count; k++)
      tensor->kept |= tensor->value && constraints->items.items[k].value == tensor->value;
  }
  for (int i = 0; i < stages->stages.count; i++) {
    Stage *stage = stages->stages.items[i];
    for (int k = 0; constraints && k < constraints->items.count; k++) {
      const Node *node = constraints->items.items[k].node;
      stage->asked |= node && node == stage->node;
    }
  }
}

// Bilinear algorithms are left out where code is to be made quickly: they take more kernels.
static PlanOptions plan_options(const Program *p) {
  PlanOptions options = {.machine = &p->options.machine,
                         .policy = p->options.policy,
                         .constraints = p->options.constraints,
                         .accuracy = p->options.accuracy,
                         .tuning = p->options.tuning,
                         .facts = p->bilinear_facts,
                         .runner_up = p->options.runner_up};
  options.accuracy.exact |= p->options.quick;
  return options;
}

// The decisions without which a plan is made.
typedef struct Avoided {
  unsigned decisions; // set of StageDecision
  BitSet kept;        // tensors that are not inlined, by their numbers before any are
} Avoided;

// A plan, and the stages of which it was made.
typedef struct PlannedStages {
  Avoided avoided;
  StageGraph *stages;
  Plan *plan;       // NULL: there are diagnostics
  PtrArray tensors; // StageTensor*, before any were inlined
} PlannedStages;

static void keep_tensors(PlannedStages *to) {
  StageGraph *stages = to->stages;
  for (int i = 0; i < stages->tensors.count; i++) {
    StageTensor *tensor = stages->tensors.items[i];
    array_push(&stages->context->arena, &to->tensors, tensor);
    if (tensor->kept || !to->avoided.kept.words || !bit_set_has(&to->avoided.kept, i)) continue;
    tensor->kept = tensor->cheaper_kept = true;
  }
}

// In larger graphs no result is stored only to save arithmetic: the solver would take too long.
enum { MOST_STORING = 1000 };

// The stages to plan.
static StageGraph *make_stages(Program *p, PlanOptions *options, PlannedStages *to) {
  StageGraph *stages = to->stages = stage_graph_new(p->context, p->graph);
  if (!stages || !check_static(p->context, stages)) return NULL;
  stages->avoided = to->avoided.decisions;
  stage_graph_prune(stages);
  if (stages->stages.count > MOST_STORING && stages->avoided & DECISION_ARITHMETIC) {
    stages->avoided -= DECISION_ARITHMETIC;
    options->seconds = 0;
  }
  stage_graph_keep_packed(stages, options->machine);
  if (!program_fold_small(p, stages)) return NULL;
  keep_constrained(stages, p->options.constraints);
  keep_tensors(to);
  program_keep_branches(stages, p->graph);
  stage_graph_compute_tables(stages);
  stage_graph_compose_moves(stages);
  stage_graph_inline_copies(stages);
  stage_graph_wrap_indices(stages);
  stage_graph_compute_at_views(stages);
  stage_graph_inline_views(stages);
  stage_graph_inline_packed(stages);
  stage_graph_inline_intermediates(stages, options->machine);
  if (!stages->arithmetic) options->seconds = 0;
  if (!program_fold_small(p, stages)) return NULL;
  if (p->options.offload &&
      !offload_stages(stages, &p->options.machine, caller_option(p->context, CALLER_OFFLOAD),
                      p->options.offload))
    return NULL;
  stage_graph_inline_scalars(stages);
  stage_graph_inline_padding(stages);
  plan_use_byte_products(stages, options);
  options->bilinear = plan_add_bilinear(stages, options);
  if (!program_fold(p, stages)) return NULL;
  stage_graph_inline_scalars(stages);
  stage_graph_group_rows(stages);
  stage_graph_move_rows(stages);
  stage_graph_offer_members(stages);
  stage_graph_offer_stored(stages);
  return stages;
}

// Plans without these decisions, unless that takes more than `most` stages. The solver takes
// `seconds`, or 0: its usual time.
static PlannedStages plan_without(Program *p, Avoided avoided, double seconds, int most) {
  PlanOptions options = plan_options(p);
  options.seconds = seconds;
  PlannedStages found = {.avoided = avoided};
  found.stages = make_stages(p, &options, &found);
  bool may = found.stages && found.stages->stages.count <= most;
  if (may) found.plan = plan_graph(found.stages, &options);
  return found;
}

// Bounds the number of further plans of a small graph, and the work of making their stages and of
// the solver. A chain of many elementwise stages takes long: each has a choice for every stage at
// which its kernel may begin.
enum {
  MOST_TRIALS = 64,
  MOST_WORK = 100000000,
  LAST_TRIALS = 12, // kept for the end, with their work
  LAST_WORK = MOST_WORK / 2,
  STAGES_OF_MIDDLE = 128, // a graph of so many stages has fewer trials
  TRIALS_OF_MIDDLE = 24,
  MORE_STAGES = 16, // than twice those of the first plan are too many
  MOST_TENSORS = 8192
};

// The plans of a program that were made so far.
typedef struct Planning {
  Program *program;
  PlannedStages made[1 + MOST_TRIALS + LAST_TRIALS];
  int count;
  PlannedStages *best; // the first of the cheapest
  unsigned decisions;  // set of StageDecision: those that plans are tried without
  int most_stages;     // that a plan is tried with
  int most_trials;
  double seconds;          // of the solver for one trial; 0: its usual time
  int64_t work, most_work; // of the solver
  int tensors;             // from which the plans were made, together
} Planning;

// The decisions without which a plan of a small graph is looked at too. Records may have kernels
// that only such a plan has.
static unsigned decisions_to_avoid(const Program *p, const PlannedStages *first) {
  const StageGraph *stages = first->stages;
  bool planned = first->plan || p->options.tuning;
  if (!stages || !planned || stages->stages.count - stages->later_groups > STAGES_OF_MIDDLE ||
      p->options.policy != PLAN_OPTIMAL || p->options.offload)
    return 0;
  return stages->decided | (stages->fusions_decided ? DECISION_INLINE : 0);
}

static bool may_try(const Planning *g) {
  return g->count <= g->most_trials && g->work < g->most_work && g->tensors < MOST_TENSORS;
}

static bool is_cheaper(const PlannedStages *a, const PlannedStages *b) {
  return a->plan && (!b->plan || a->plan->cost < b->plan->cost);
}

// Notes a plan that was made, if there is one.
static PlannedStages *note_plan(Planning *g, PlannedStages plan) {
  PlannedStages *made = &g->made[g->count++];
  *made = plan;
  g->tensors += plan.tensors.count;
  if (!plan.plan) return made;
  g->work += plan.plan->work;
  if (is_cheaper(made, g->best)) g->best = made;
  return made;
}

static PlannedStages *try_without(Planning *g, Avoided avoided) {
  Context *context = g->program->context;
  int first = context->diags.count, errors = context->error_count;
  PlannedStages *made = note_plan(g, plan_without(g->program, avoided, g->seconds, g->most_stages));
  if (!made->plan) diag_forget(context, first, errors);
  return made;
}

static bool is_kept(const Avoided *avoided, int tensor) {
  return avoided->kept.words && bit_set_has(&avoided->kept, tensor);
}

// Is a plan that avoids these decisions the plan that was made? The decisions that are avoided in
// addition were then not made for it.
static bool same_decisions(const PlannedStages *made, unsigned decisions) {
  const unsigned known = DECISION_TURN | DECISION_MOVE_ROWS | DECISION_BYTES;
  bool arithmetic = !made->stages || made->stages->arithmetic;
  unsigned alike = arithmetic ? 0 : DECISION_ARITHMETIC;
  unsigned other = made->avoided.decisions & ~alike, more = decisions & ~alike & ~other;
  if (other & ~decisions) return false;
  return !more || (!(more & ~known) && made->stages && !(made->stages->decided & more));
}

// Was a plan made that avoids the same?
static bool was_made(const Planning *g, const Avoided *avoided, int tensors) {
  for (int i = 0; i < g->count; i++) {
    const Avoided *other = &g->made[i].avoided;
    bool same = same_decisions(&g->made[i], avoided->decisions);
    for (int k = 0; same && k < tensors; k++) same = is_kept(other, k) == is_kept(avoided, k);
    if (same) return true;
  }
  return false;
}

static void try_decisions(Planning *g, unsigned decisions) {
  Avoided avoided = {.decisions = decisions};
  if (may_try(g) && !was_made(g, &avoided, 0)) try_without(g, avoided);
}

// Tries the best plan with groups that begin with a later reduction too. This comes last, since
// such groups make the problem larger and rarely gain anything.
static void try_later_groups(Planning *g) {
  Avoided avoided = g->best->avoided;
  avoided.decisions |= DECISION_WHOLE;
  if (may_try(g)) try_without(g, avoided);
}

static bool is_decided(const StageTensor *tensor) {
  return tensor->decided && !tensor->data && !tensor->kept;
}

// Each thing that a plan may do without has a number: first the inlining of each tensor, then each
// kind of decision.
static bool avoids(const PlannedStages *from, int number) {
  int decision = number - from->tensors.count;
  return decision < 0 ? is_kept(&from->avoided, number) : from->avoided.decisions >> decision & 1;
}

static bool may_avoid(const Planning *g, const PlannedStages *from, int number) {
  int decision = number - from->tensors.count;
  return decision < 0 ? is_decided(from->tensors.items[number]) : g->decisions >> decision & 1;
}

// All that `from` avoids, with one more number and, unless it is -1, without another.
static Avoided avoiding(const Planning *g, const PlannedStages *from, int number, int instead) {
  int tensors = from->tensors.count;
  Avoided avoided = {from->avoided.decisions, bit_set_new(&g->program->context->arena, tensors)};
  for (int i = 0; i < tensors; i++)
    if (i == number || (i != instead && is_kept(&from->avoided, i))) bit_set_add(&avoided.kept, i);
  if (number >= tensors) avoided.decisions |= 1u << (number - tensors);
  if (instead >= tensors) avoided.decisions &= ~(1u << (instead - tensors));
  return avoided;
}

static void avoid_cheaper(Planning *g, const PlannedStages *from, int start);

// Avoids one more, also in the place of each that was avoided.
static void avoid_one(Planning *g, const PlannedStages *from, int number) {
  int tensors = from->tensors.count;
  for (int i = -1; i < tensors + DECISION_KINDS && may_try(g); i++) {
    bool replaces = i >= 0 && avoids(from, i) && (i < tensors || may_avoid(g, from, i));
    if (i >= 0 && !replaces) continue;
    Avoided avoided = avoiding(g, from, number, i);
    if (was_made(g, &avoided, tensors)) continue;
    const PlannedStages *made = try_without(g, avoided);
    if (made->plan && made->plan->cost < from->plan->cost) avoid_cheaper(g, made, number + 1);
  }
}

static void avoid_new(Planning *g, const PlannedStages *from, int number) {
  if (may_try(g) && may_avoid(g, from, number) && !avoids(from, number)) avoid_one(g, from, number);
}

// Climbs from a plan: avoids each decision that was made, first the kinds of them, then those about
// tensors, the one at `start` first, and climbs from each plan that is cheaper. Decisions about
// tensors because of groups gain least and come last. A decision without which it is cheaper may be
// in the way of others for which that holds together, so the others are avoided without it too.
static void avoid_cheaper(Planning *g, const PlannedStages *from, int start) {
  int tensors = from->plan ? from->tensors.count : 0;
  for (int k = 0; k < DECISION_KINDS && tensors; k++) avoid_new(g, from, tensors + k);
  for (int grouped = 0; grouped < 2; grouped++)
    for (int k = 0; k < tensors; k++) {
      const StageTensor *tensor = from->tensors.items[(start + k) % tensors];
      if (tensor->grouped == grouped) avoid_new(g, from, (start + k) % tensors);
    }
}

// The cheapest plan that avoids what `from` does except for one thing; NULL: none is cheaper.
static const PlannedStages *avoid_one_less(Planning *g, const PlannedStages *from) {
  const PlannedStages *best = g->best;
  int tensors = from->plan ? from->tensors.count : 0,
      count = tensors ? tensors + DECISION_KINDS : 0;
  for (int i = 0; i < count && may_try(g); i++) {
    if (!avoids(from, i) || (i >= tensors && !may_avoid(g, from, i))) continue;
    Avoided avoided = avoiding(g, from, -1, i);
    if (!was_made(g, &avoided, tensors)) try_without(g, avoided);
  }
  return g->best == best ? NULL : g->best;
}

// Avoids one thing after another no more. One that was avoided early may be of no use beside a
// later one, and the trials may have ended before that was seen.
static void avoid_less(Planning *g) {
  g->most_trials += LAST_TRIALS;
  g->most_work += LAST_WORK;
  for (const PlannedStages *from = g->best; from;) from = avoid_one_less(g, from);
}

// Plans also with results stored only to save arithmetic. That rarely gains much and makes the
// problem larger, so the solver has less time than usual.
static PlannedStages plan_storing(Program *p) {
  static const double seconds_of_node = 2e-4;
  int nodes = p->graph->nodes.count;
  bool small = nodes <= STAGES_OF_SMALL;
  double seconds = small ? PLAN_SECONDS : MIN_OF(seconds_of_node * nodes, PLAN_SECONDS);
  return plan_without(p, (Avoided){DECISION_ARITHMETIC}, seconds, INT32_MAX);
}

// May a plan with all decisions be cheaper, by more than a quarter of a percent in a large graph?
// The solver has not proved that it is not, or the results that may be stored are read several
// times, which forbids fusions. Without such results, the plan has all decisions.
static bool may_be_cheaper(const PlannedStages *whole) {
  enum { SHARE = 400 };
  if (!whole->stages->arithmetic || !(whole->stages->avoided & DECISION_ARITHMETIC)) return false;
  bool small = stage_graph_is_small(whole->stages);
  int64_t gap = whole->plan->cost - whole->plan->lower_bound;
  return small ? !whole->plan->optimal : gap > whole->plan->cost / SHARE;
}

// Counts the decisions that only some of the plans avoid.
static void note_decided(Plan *plan, const StageGraph *first) {
  PlanLimits *limits = &plan->limits;
  limits->fusions_decided = MAX_OF(limits->fusions_decided, first->fusions_decided);
  plan->optimal &= !limits->fusions_decided;
}

// The cheapest plan of those with all decisions, without each kind of them, without any, and with
// results stored that would be computed inside of their readers.
Plan *program_plan_stages(Program *p) {
  int diags = p->context->diags.count, errors = p->context->error_count;
  Planning g = {.program = p, .best = g.made, .most_stages = INT32_MAX};
  g.most_trials = MOST_TRIALS;
  g.most_work = MOST_WORK;
  PlannedStages *whole = note_plan(&g, plan_storing(p)), *first = whole;
  if (whole->plan && may_be_cheaper(whole)) {
    g.work = 0;
    first = try_without(&g, (Avoided){0});
  }
  unsigned tried = decisions_to_avoid(p, first), all = tried & ~(unsigned)DECISION_WHOLE;
  unsigned also = first->avoided.decisions;
  g.decisions = all;
  if (all) g.most_stages = 2 * first->stages->stages.count + MORE_STAGES;
  bool small = all && stage_graph_is_small(first->stages);
  if (all && !small) g.most_trials = TRIALS_OF_MIDDLE;
  bool hard = g.work > MOST_WORK / 2; // the trials have the other half
  if (all && (!small || hard)) g.seconds = PLAN_SECONDS / (small ? 16 : 8);
  g.work = MIN_OF(g.work, MOST_WORK / 2);
  for (unsigned left = all; left; left &= left - 1) try_decisions(&g, also | (left & -left));
  if (all & (all - 1)) try_decisions(&g, also | all);
  const PlannedStages *start = is_cheaper(g.best, first) ? g.best : first;
  if (all) avoid_cheaper(&g, start, 0);
  if (all && start != first) avoid_cheaper(&g, first, 0);
  if (all && g.best != start && g.best->avoided.decisions) avoid_cheaper(&g, g.best, 0);
  if (tried != all) try_later_groups(&g);
  if (all) avoid_less(&g);
  if (g.best != first && g.best != whole) note_decided(g.best->plan, first->stages);
  if (g.best->plan && !first->plan) diag_forget(p->context, diags, errors);
  p->nodes_folded = g.best->stages ? g.best->stages->folded_stages : 0;
  return g.best->plan;
}
