// SPDX-License-Identifier: Apache-2.0
// Applies tuning records to the stages: finds the kernels that a record is for, and makes each one
// more choice of its stages, whose layouts are those that the record's schedule gives the kernel's
// parameters, and whose cost is the measured one.
//   record for [conv, relu]:   conv is `inner`  ─ fused ─>  relu, all other tensors as stated
// All stages of such a kernel take part in it, or none does.
#include "plan/internal.h"

// ---- The layouts of a record

static bool refuse(const Planner *p, const TunedKernel *t, const char *why) {
  return diag_error_as(p->context, DIAG_OPTION, t->record->pos,
                       "the record cannot be used for '%s': %s", planner_stage_name(t->stages[0]),
                       why);
}

// The number of a parameter; -1 when the tensor is inside of the kernel.
static int param_of(const TunedKernel *t, const StageTensor *tensor) {
  for (int i = 0; i < t->params.count; i++)
    if (t->params.items[i] == tensor) return i;
  return -1;
}

// Constants are stored with zeros as padding. The padding of all other tensors has any content, so
// that no schedule may rely on it.
static bool padding_holds(const Planner *p, const TunedKernel *t, int param, const Layout *layout) {
  const StageTensor *tensor = t->params.items[param];
  bool written = param == t->params.count - 1;
  if (!layout || layout->padding.kind != LAYOUT_PADDING_CONSTANT || written) return true;
  if (tensor->data && layout->padding.value == 0) return true;
  return refuse(p, t,
                str_format(p->context, "its schedule relies on padding of %g in '%s', which %s",
                           layout->padding.value, plan_tensor_name(tensor),
                           tensor->data ? "is padded with 0" : "has any content there"));
}

static bool runs_in_order(const Stage *stage) {
  return stage_is_ordered(stage) || stage->te->program;
}

// Adds the layout of a parameter to the candidates of its tensor.
static bool take_layout(Planner *p, TunedKernel *t, int param, const Buffer *buffer) {
  const StageTensor *tensor = t->params.items[param];
  const Layout *own = buffer->layout;
  if (!padding_holds(p, t, param, own)) return false;
  if (!own) return true;
  if (runs_in_order(t->stages[0]))
    return refuse(p, t, "its operator takes and gives row-major tensors only");
  Candidate candidate = planner_candidate_of(p, tensor->buffer, own);
  candidate.requested = true;
  t->layouts[param] = candidate.layout;
  if (tensor->data || candidates_add(p, tensor, candidate) >= 0) return true;
  return refuse(
      p, t,
      str_format(p->context, "'%s' keeps its layout, or has too many", plan_tensor_name(tensor)));
}

static bool take_layouts(Planner *p, TunedKernel *t) {
  const PrimFunc *func = schedule_func(t->schedule);
  t->layouts = arena_array(&p->context->arena, const Layout *, t->params.count);
  for (int i = 0; i < t->params.count; i++)
    if (!take_layout(p, t, i, func->buffers[i])) return false;
  return true;
}

// ---- The kernels of a record

// Can the reader be fused with the stage?
static bool follows(const Planner *p, const Stage *stage, const Stage *reader) {
  return planner_is_read_once(stage->output) && !planner_writer_blocker(p, reader, stage);
}

// The stage that can be fused with this one, and belongs to no other way to compute an output; NULL
// when there is none.
static Stage *next_of(const Planner *p, const Stage *stage) {
  const PtrArray *users = &stage->output->users;
  for (int i = 0; i < users->count; i++) {
    Stage *reader = users->items[i];
    if ((!reader->serves || users->count == 1) && follows(p, stage, reader)) return reader;
  }
  return NULL;
}

// The stages of the longest kernel that begins with this one.
static PtrArray chain_from(const Planner *p, Stage *stage) {
  PtrArray chain = {0};
  for (; stage; stage = next_of(p, stage)) array_push(&p->context->arena, &chain, stage);
  return chain;
}

static bool add_kernel(Planner *p, const TuningRecord *record, const PtrArray *chain, int count,
                       Schedule *schedule, const StageTensors *params) {
  Arena *arena = &p->context->arena;
  TunedKernel *t = arena_new(arena, TunedKernel);
  *t = (TunedKernel){.record = record,
                     .stages = arena_copy(arena, chain->items, sizeof(Stage *) * (size_t)count),
                     .stage_count = count,
                     .params = *params,
                     .schedule = schedule};
  for (int i = 0; i < count; i++) {
    array_push(arena, &p->tuned[t->stages[i]->index], t);
    p->is_frozen[t->stages[i]->index] |= record->cycles < 0;
  }
  return take_layouts(p, t);
}

// The number of stages of the kernel that ends with the record's last operator; 0: there is none.
static int length_of(const TuningRecord *record, const PtrArray *chain) {
  for (int i = chain->count; i > 0 && record->last; i--) {
    const char *name = planner_stage_name(chain->items[i - 1]);
    if (name && !strcmp(name, record->last)) return i;
  }
  return record->last ? 0 : chain->count;
}

static bool refuse_last(const Planner *p, const TuningRecord *record, const PtrArray *chain) {
  Text text = text_new(&p->context->arena);
  for (int i = 0; i < chain->count; i++)
    text_printf(&text, "%s'%s'", i ? ", " : "", planner_stage_name(chain->items[i]));
  return diag_error_as(p->context, DIAG_OPTION, record->pos,
                       "no kernel begins with '%s' and ends with '%s'\nthese can be fused: %s",
                       record->first, record->last, text_string(&text));
}

static bool is_named(const TuningRecord *record, const Stage *stage) {
  const char *name = planner_stage_name(stage);
  return record->first && !stage->serves && name && !strcmp(name, record->first);
}

// Does a kernel of an operator with several stages begin at an earlier one?
static bool continues(const Planner *p, const TuningRecord *record, const Stage *stage) {
  for (int i = 0; i < stage->reads.count; i++) {
    const Stage *producer = ((const StageTensor *)stage->reads.items[i])->producer;
    if (producer && is_named(record, producer) && next_of(p, producer) == stage) return true;
  }
  return false;
}

static bool match_name(Planner *p, const TuningRecord *record, const PtrArray *chain, bool *used) {
  int count = length_of(record, chain);
  *used = true;
  if (!count) return refuse_last(p, record, chain);
  StageTensors params = stages_params(p->stages, (Stage **)chain->items, count);
  PrimFunc *func = stages_prim_func(p->stages, (Stage **)chain->items, count, record->first);
  Schedule *schedule = schedule_new(p->context, func);
  return schedule_replay_suite(schedule, record->steps) &&
         add_kernel(p, record, chain, count, schedule, &params);
}

PrimFunc *tuning_program(Context *context, PrimFunc *func) {
  return schedule_func(schedule_new(context, func));
}

static bool match_program(Planner *p, const PtrArray *chain) {
  Stage **stages = (Stage **)chain->items;
  StageTensors params = stages_params(p->stages, stages, chain->count);
  PrimFunc *func =
      tuning_program(p->context, stages_prim_func(p->stages, stages, chain->count, "kernel"));
  uint64_t hash = prim_func_hash(p->context, func);
  for (int i = 0; i < p->tuning->count; i++) {
    const TuningRecord *record = &p->tuning->items[i];
    if (!record->program || record->hash != hash ||
        !prim_func_equal(p->context, record->program, func, NULL))
      continue;
    if (!add_kernel(p, record, chain, chain->count, record->schedule, &params)) return false;
  }
  return true;
}

// Looks for the programs of all kernels that begin with these stages.
static bool match_programs(Planner *p, PtrArray *chain) {
  const Stage *last = array_last(chain);
  const PtrArray *users = &last->output->users;
  bool ok = match_program(p, chain);
  for (int i = 0; i < users->count && ok; i++) {
    if (!follows(p, last, users->items[i])) continue;
    array_push(&p->context->arena, chain, users->items[i]);
    ok = match_programs(p, chain);
    chain->count--;
  }
  return ok;
}

static bool has_programs(const Tuning *tuning) {
  for (int i = 0; i < tuning->count; i++)
    if (tuning->items[i].program) return true;
  return false;
}

static bool match_stage(Planner *p, Stage *stage, bool *used) {
  if (stage_is_opaque(stage)) return true;
  PtrArray chain = chain_from(p, stage);
  for (int i = 0; i < p->tuning->count; i++) {
    const TuningRecord *record = &p->tuning->items[i];
    if (is_named(record, stage) && !continues(p, record, stage) &&
        !match_name(p, record, &chain, &used[i]))
      return false;
  }
  chain.count = 1;
  return !has_programs(p->tuning) || match_programs(p, &chain);
}

static bool refuse_unused(const Planner *p, const TuningRecord *record) {
  Array(const char *) names = {0};
  for (int i = 0; i < p->stages->stages.count; i++) {
    const char *name = planner_stage_name(p->stages->stages.items[i]);
    if (name) array_push(&p->context->arena, &names, name);
  }
  const char *nearest = suggestion_of(&p->context->arena, record->first, names.items, names.count);
  return diag_error_as(p->context, DIAG_OPTION, record->pos,
                       "no kernel begins with an operator '%s'%s\n'plan --fusion' lists the "
                       "kernels, by the names of their first operators",
                       record->first, nearest);
}

bool planner_find_tuned(Planner *p) {
  Arena *arena = &p->context->arena;
  int count = p->stages->stages.count;
  bool *used = arena_array(arena, bool, p->tuning->count);
  p->tuned = arena_array(arena, PtrArray, count);
  p->is_frozen = arena_array(arena, bool, count);
  for (int i = 0; i < count; i++)
    if (!match_stage(p, p->stages->stages.items[i], used)) return false;
  for (int i = 0; i < p->tuning->count; i++)
    if (p->tuning->items[i].first && !used[i]) return refuse_unused(p, &p->tuning->items[i]);
  return true;
}

// ---- Choices

bool planner_tuned_alike(const StageChoice *from, const StageChoice *user, int read) {
  bool fused = user->fused == read;
  if (user->absent) return true;
  if (!from->inner && (!fused || (!from->tuned && !user->tuned))) return true;
  return from->inner && fused && from->tuned == user->tuned;
}

// Does a constraint of the user allow the layout that the record has for the tensor?
static bool is_allowed(const Planner *p, const TunedKernel *t, const Stage *stage, int read) {
  const StageConstraint *constraint = planner_constraint(p, stage, read);
  const StageTensor *tensor = read < 0 ? stage->output : stage->reads.items[read];
  int param = param_of(t, tensor);
  return !constraint || (param >= 0 && planner_same_layout(constraint->layout, t->layouts[param]));
}

static bool are_allowed(const Planner *p, const TunedKernel *t, const Stage *stage) {
  for (int i = -1; i < stage->reads.count; i++)
    if (!is_allowed(p, t, stage, i)) return false;
  return true;
}

// The candidate of a tensor that is read or written: row-major where it is inside of the kernel.
static int candidate_of(const Planner *p, const TunedKernel *t, const StageTensor *tensor) {
  int param = param_of(t, tensor);
  if (param < 0) return 0;
  return tensor->data ? READ_PACKED : planner_candidate_number(p, tensor, t->layouts[param]);
}

// The cycles of an own choice of the stage that reads and writes, outside of the kernel, the
// layouts of a record's, or gathers elements from them; PLAN_NEVER when it does neither.
static double similar_cost(const Planner *p, const Stage *stage, const StageChoice *own,
                           const StageChoice *choice) {
  double cost = own->cost;
  if (own->fused != choice->fused || own->in_place) return PLAN_NEVER;
  if (!choice->inner && own->output != choice->output) return PLAN_NEVER;
  for (int i = 0; i < stage->reads.count; i++)
    if (i != choice->fused && own->reads[i] != choice->reads[i])
      cost += planner_gathering(p, stage, own, i, choice->reads[i]);
  return cost;
}

// The least that own choices with these layouts cost; where there are none, the least of all for
// the first stage of the kernel, and nothing for others, which might not be fused otherwise.
static double estimated_cost(const Planner *p, const Stage *stage, const StageChoices *own,
                             const StageChoice *choice) {
  double least = PLAN_NEVER, similar = PLAN_NEVER;
  for (int i = 0; i < own->count; i++) {
    least = MIN_OF(least, own->items[i].cost);
    similar = MIN_OF(similar, similar_cost(p, stage, &own->items[i], choice));
  }
  if (similar < PLAN_NEVER) return similar;
  return choice->fused < 0 && own->count ? least : 0;
}

static void add_choice(Planner *p, const Stage *stage, const TunedKernel *t,
                       const StageChoices *own) {
  StageChoice *choice = planner_add_choice(p, stage);
  choice->tuned = t;
  choice->inner = t->stages[t->stage_count - 1] != stage;
  choice->output = choice->inner ? 0 : candidate_of(p, t, stage->output);
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    choice->reads[i] = candidate_of(p, t, tensor);
    if (!tensor->data && param_of(t, tensor) < 0) choice->fused = i;
  }
  double cycles = t->stages[0] == stage ? t->record->cycles : 0;
  choice->cost = t->record->cycles < 0 ? estimated_cost(p, stage, own, choice) : cycles;
}

bool planner_tuned_choices(Planner *p, const Stage *stage) {
  const PtrArray *kernels = &p->tuned[stage->index];
  StageChoices *choices = &p->choices[stage->index], own = *choices;
  if (!kernels->count) return true;
  own.items = arena_copy(&p->context->arena, own.items, sizeof *own.items * (size_t)own.count);
  if (p->is_frozen[stage->index]) choices->count = 0;
  for (int i = 0; i < kernels->count; i++)
    if (are_allowed(p, kernels->items[i], stage)) add_choice(p, stage, kernels->items[i], &own);
  return choices->count ||
         refuse(p, kernels->items[0], "a layout is asked for that its schedule does not have");
}
