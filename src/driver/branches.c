// SPDX-License-Identifier: Apache-2.0
// Finds the steps whose result only one branch of an `if` needs, which runs leave out when the
// condition says so. A graph has no control flow: both branches are in it, and a selection reads
// their results, which are stored for this (StageTensor.branch).
//   t = matmul(x, w)            needed only if c[()]        => the step runs only if c[()]
//   y = select(c[()], t, x)     always needed
// The reads of a kernel tell under which condition it needs a tensor; a step needs nothing more
// than its own result is needed. What a step that is left out would have written is then
// undefined, so a step needs tensors whose elements are indices or divisors whenever it runs.
#include "driver/driver.h"

// ---- Branches that are worth it ----------------------------------------------------------------

static StageTensor *tensor_of(const StageGraph *stages, const Value *value) {
  for (int i = 0; i < stages->tensors.count; i++)
    if (stages->tensors.items[i]->value == value) return stages->tensors.items[i];
  return NULL;
}

// Is a tensor that only `only` needs, by way of other such tensors?
static bool is_for(const StageTensor *tensor, const StageTensor *only, const bool *found) {
  if (tensor == only) return true;
  if (tensor->is_output || !tensor->users.count) return false;
  for (int i = 0; i < tensor->users.count; i++)
    if (!found[((const Stage *)tensor->users.items[i])->index]) return false;
  return true;
}

// Does more than one loop over elements compute what only this result needs?
static bool is_long(const StageGraph *stages, const StageTensor *result) {
  ArenaMark mark = arena_mark(&stages->context->scratch);
  bool *found = arena_array(&stages->context->scratch, bool, stages->stages.count + 1);
  bool reduces = false;
  for (int i = stages->stages.count - 1; result && i >= 0; i--) {
    const Stage *stage = stages->stages.items[i];
    found[i] = is_for(stage->output, result, found);
    reduces |= found[i] && stage_is_reduction(stage);
  }
  arena_reset(&stages->context->scratch, mark);
  return reduces;
}

// Branches of elementwise operators are fused with the selection, which costs less.
void program_keep_branches(StageGraph *stages, const GraphFunc *graph) {
  for (int i = 0; i < graph->choices.count; i++) {
    const GraphChoice *choice = &graph->choices.items[i];
    StageTensor *tensors[] = {tensor_of(stages, choice->results[0]),
                              tensor_of(stages, choice->results[1]),
                              tensor_of(stages, choice->condition)};
    bool lasts[] = {is_long(stages, tensors[0]), is_long(stages, tensors[1])};
    const bool stored[] = {lasts[0], lasts[1], lasts[0] || lasts[1]};
    for (int k = 0; k < COUNT_OF(tensors); k++)
      if (tensors[k] && stored[k]) tensors[k]->branch = tensors[k]->kept = true;
  }
}

// ---- Needs -------------------------------------------------------------------------------------

enum { MOST_CONDITIONS = 4 }; // of branches inside branches

// Under which conditions a tensor is needed, those of outer branches first.
typedef struct Need {
  bool read; // by a step, or at all
  int count; // 0: it is always needed
  ProgramCondition items[MOST_CONDITIONS];
} Need;

typedef struct Branches {
  Program *program;
  Need *slots; // by slot: of all later steps
  int step;    // that is looked at
  Need own;    // the conditions under which it runs
  Map reads;   // Buffer* -> Need*, in its kernel
} Branches;

// The tensor is then needed under the conditions that both have.
static void add_need(Need *need, const Need *more) {
  int count = 0;
  if (!need->read) {
    *need = *more;
    need->read = true;
    return;
  }
  while (count < MIN_OF(need->count, more->count) &&
         need->items[count].slot == more->items[count].slot &&
         need->items[count].value == more->items[count].value)
    count++;
  need->count = count;
}

// ---- The reads of a kernel ---------------------------------------------------------------------

static void note_read(Branches *b, const Buffer *buffer, const Need *need) {
  Need *noted = map_find(&b->reads, buffer);
  if (!noted) {
    noted = arena_new(&b->program->context->scratch, Need);
    map_put(&b->reads, buffer, noted);
  }
  add_need(noted, need);
}

// The slot of a tensor of one bool that the step reads and that earlier steps have written; -1: the
// expression is no element of such a tensor.
static int condition_slot(const Branches *b, const Expr *e) {
  const ProgramStep *step = &b->program->steps.items[b->step];
  if (e->op != EXPR_LOAD || !dtype_is_bool(e->type)) return -1;
  for (int i = 0; i + 1 < step->plan->params.count; i++) {
    const StageTensor *tensor = step->plan->params.items[i];
    const ProgramSlot *slot = &b->program->slots.items[step->slots[i]];
    if (tensor->buffer == e->as.buffer)
      return slot->layout || stage_tensor_elements(tensor) != 1 ? -1 : step->slots[i];
  }
  return -1;
}

static void visit(Branches *b, const Expr *e, const Need *need);

static void visit_args(Branches *b, const Expr *e, const Need *need) {
  for (int i = 0; i < e->count; i++) visit(b, e->args[i], need);
}

static void visit_selection(Branches *b, const Expr *e, const Need *need) {
  int slot = need->count < MOST_CONDITIONS ? condition_slot(b, e->args[0]) : -1;
  visit(b, e->args[0], need);
  for (int i = 1; i < 3; i++) {
    Need arm = *need;
    if (slot >= 0) arm.items[arm.count++] = (ProgramCondition){slot, i == 1};
    visit(b, e->args[i], &arm);
  }
}

static void visit(Branches *b, const Expr *e, const Need *need) {
  if (e->op == EXPR_LOAD) {
    note_read(b, e->as.buffer, need);
    visit_args(b, e, &b->own);
  } else if (e->op == EXPR_SELECT || e->op == EXPR_IF_THEN_ELSE) {
    visit_selection(b, e, need);
  } else {
    visit_args(b, e, expr_may_divide_by_zero(e) ? &b->own : need);
  }
}

static void visit_stage(Branches *b, const Stage *stage, const Need *need) {
  for (int i = 0; i < stage->member_count; i++) visit_stage(b, stage->members[i], need);
  if (stage->member_count) return;
  if (stage_is_ordered(stage)) need = &b->own;
  visit(b, stage->te->value, need);
  if (stage->te->init) visit(b, stage->te->init, need);
}

// Sets b->reads. A stage that is fused into others is needed as these read its output.
static void find_reads(Branches *b, const PlanKernel *kernel) {
  b->reads = map_new(&b->program->context->scratch);
  for (int i = kernel->stage_count - 1; i >= 0; i--) {
    const Need *read = map_find(&b->reads, kernel->stages[i]->output->buffer);
    visit_stage(b, kernel->stages[i], i + 1 < kernel->stage_count && read ? read : &b->own);
  }
}

// ---- Steps -------------------------------------------------------------------------------------

// Is the memory of the slot only its own, and not what the caller gets?
static bool is_private(const Program *p, int number) {
  const ProgramSlot *slot = &p->slots.items[number];
  if (slot->kind != SLOT_ARENA || slot->whole >= 0) return false;
  for (int i = 0; i < p->slots.count; i++)
    if (p->slots.items[i].whole == number) return false;
  return true;
}

// Is the condition known before the step?
static bool is_known(const Branches *b, const ProgramCondition *condition) {
  const ProgramSlot *slot = &b->program->slots.items[condition->slot];
  return slot->kind == SLOT_INPUT || slot->kind == SLOT_CONSTANT || slot->first < b->step;
}

static void look_at(Branches *b, ProgramStep *step) {
  const PlanKernel *kernel = step->plan;
  int inputs = kernel->params.count - 1, output = step->slots[inputs];
  Need *own = &b->own;
  *own = b->slots[output];
  if (kernel->call || !is_private(b->program, output)) own->count = 0;
  while (step->condition_count < own->count && is_known(b, &own->items[step->condition_count]))
    step->condition_count++;
  own->count = step->condition_count;
  step->conditions =
      arena_copy(&b->program->context->arena, own->items, sizeof *own->items * (size_t)own->count);
  find_reads(b, kernel);
  for (int i = 0; i < inputs; i++) {
    const Need *read = map_find(&b->reads, kernel->params.items[i]->buffer);
    add_need(&b->slots[step->slots[i]], read ? read : own);
  }
}

void program_find_branches(Program *p) {
  ArenaMark mark = arena_mark(&p->context->scratch);
  Branches b = {.program = p, .slots = arena_array(&p->context->scratch, Need, p->slots.count + 1)};
  for (b.step = p->steps.count - 1; b.step >= 0; b.step--) look_at(&b, &p->steps.items[b.step]);
  arena_reset(&p->context->scratch, mark);
}
