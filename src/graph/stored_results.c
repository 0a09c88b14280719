// SPDX-License-Identifier: Apache-2.0
// Lets the planner store results that were inlined into the stages that read them. Where a stage is
// inlined, the reader's definition before that is noted as one of its forms; at the end each form
// becomes another way to compute the reader's output.
//   t[i, j] = x[j, i];  y[i] += t[i, j]   =>   y[i] += x[j, i]
//                                              or  t[i, j] = x[j, i];  y[i] += t[i, j]
// A reader of several such results has a form for each set of them that is stored, as far as
// MOST_FORMS allows. A stored result can have been made of others; it has forms too. Where a reader
// has more results than MOST_INLINED, as one of a decision tree, none is offered, and no more where
// the graph would have several times as many stages, because the solver would take too long.
#include "graph/stages.h"

enum {
  MOST_FORMS = 4,
  MOST_INLINED = 8,
  MOST_GROWTH = 2,
  ALWAYS_OFFERED = 32,
  MOST_NODES = 100, // of the value of a stage whose forms are offered
};

// ---- Forms

static void add_form(StageGraph *s, Stage *reader, TeStage *te, StageParts parts) {
  if (!te || reader->forms.count == MOST_FORMS)
    reader->forms_left_out = true;
  else
    array_push(&s->context->arena, &reader->forms, ((StageForm){te, parts}));
}

static void note_inlined(StageGraph *s, Stage *reader, const Stage *stage) {
  for (int i = 0; i < reader->inlined.count; i++)
    if (reader->inlined.items[i] == stage) return;
  array_push(&s->context->arena, &reader->inlined, (void *)stage);
}

StageParts stage_parts_together(StageGraph *s, const Stage *stage, StageParts of_reader) {
  StageParts parts = {0};
  for (int i = 0; i < stage->parts.count; i++)
    array_push(&s->context->arena, &parts, stage->parts.items[i]);
  for (int i = 0; i < of_reader.count; i++)
    array_push(&s->context->arena, &parts, of_reader.items[i]);
  return parts;
}

static StageParts parts_with(StageGraph *s, const Stage *stage, StageParts of_reader,
                             StageInlining how) {
  return how.parts ? stage_parts_together(s, stage, of_reader) : of_reader;
}

// The forms become those with the stage inlined too; those that read its result stay where the
// result may be stored.
static void inline_in_forms(StageGraph *s, const Stage *stage, Stage *reader, StageInlining how) {
  int known = reader->forms.count;
  for (int i = 0; i < known; i++) {
    Stage as = *reader;
    as.te = reader->forms.items[i].te;
    TeStage *te = how.inlined(s, stage, &as);
    StageParts parts = parts_with(s, stage, reader->forms.items[i].parts, how);
    if (how.decided)
      add_form(s, reader, te, parts);
    else if (te)
      reader->forms.items[i] = (StageForm){te, parts};
    else
      reader->forms_left_out = true;
  }
}

// Does the form store a result that no plan needs to be stored?
static bool is_useless(StageGraph *s, const Stage *reader, const StageForm *form,
                       const HostMachine *machine) {
  Stage as = *reader;
  as.te = form->te;
  as.parts = form->parts;
  for (int i = 0; i < reader->inlined.count; i++) {
    const Stage *stored = reader->inlined.items[i];
    if (!expr_reads(form->te->value, stored->te->output)) continue;
    const Stage *with = stage_with_producer(s, &as, stored);
    if (!stage_storing_gains(s, machine, stored, &as, with->te)) return true;
  }
  return false;
}

static void drop_useless(StageGraph *s, Stage *reader, const HostMachine *machine) {
  int kept = 0;
  if (!machine || reader->inlined.count > MOST_INLINED) return;
  for (int i = 0; i < reader->forms.count; i++)
    if (!is_useless(s, reader, &reader->forms.items[i], machine))
      reader->forms.items[kept++] = reader->forms.items[i];
  reader->forms.count = kept;
}

void stage_note_forms(StageGraph *s, const Stage *stage, Stage *reader, StageInlining how) {
  if (reader->forms.count && reader->formed != reader->te) {
    reader->forms.count = 0;
    reader->forms_left_out = true;
  }
  inline_in_forms(s, stage, reader, how);
  if (how.decided) add_form(s, reader, reader->te, reader->parts);
  for (int i = 0; stage->formed == stage->te && i < stage->forms.count; i++) {
    Stage as = *stage;
    as.te = stage->forms.items[i].te;
    as.parts = stage->forms.items[i].parts;
    add_form(s, reader, how.inlined(s, &as, reader), parts_with(s, &as, reader->parts, how));
  }
  for (int i = 0; i < stage->inlined.count; i++) note_inlined(s, reader, stage->inlined.items[i]);
  reader->forms_left_out |=
      stage->forms_left_out || (stage->forms.count && stage->formed != stage->te);
  if (how.decided) note_inlined(s, reader, stage);
  drop_useless(s, reader, how.machine);
}

// ---- Constants of one element

static TeStage *with_literals(const StageGraph *s, TeStage *te) {
  Expr *value = stage_with_literals(s, te->value);
  return value == te->value ? te : te_with_value(s->context, te, value);
}

static void put_literals(const StageGraph *s, Stage *stage) {
  TeStage *te = with_literals(s, stage->te);
  if (stage->formed == stage->te) stage->formed = te;
  stage->te = te;
  for (int i = 0; i < stage->forms.count; i++)
    stage->forms.items[i].te = with_literals(s, stage->forms.items[i].te);
}

void stage_put_literals(const StageGraph *s, Stage *stage) {
  put_literals(s, stage);
  for (int i = 0; i < stage->inlined.count; i++) put_literals(s, stage->inlined.items[i]);
}

// ---- Other ways

typedef struct StoredResults {
  StageGraph *graph;
  Arena *arena;
  PtrArray stages; // Stage*: of the new graph, so far
  int most;        // how many stages it may have
  Map offered;     // Stage* that were inlined -> themselves
  Map left_out;    // Stage* that were inlined -> themselves: not in all of their readers' forms
} StoredResults;

// The tensors that a form reads.
typedef struct FormReads {
  const StoredResults *results;
  const Stage *reader;
  PtrArray stored; // Stage*: those among the inlined stages that compute one of them
  bool known;      // is each of them in the graph, or computed by these?
} FormReads;

// Is the stage a member of a group that is offered as a stage of its own?
static bool serves_group(const Stage *stage) {
  return stage->serves && stage->serves->output->producer->member_count;
}

static void push_once(Arena *arena, PtrArray *stages, Stage *stage) {
  for (int i = 0; i < stages->count; i++)
    if (stages->items[i] == stage) return;
  array_push(arena, stages, stage);
}

static bool note_load(Visitor *visitor, Expr *e) {
  FormReads *r = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  const StageTensor *tensor = stage_tensor_of(r->results->graph, e->as.buffer);
  const Stage *producer = tensor ? tensor->producer : NULL;
  if (tensor && (!producer || !producer->serves || serves_group(producer))) return true;
  for (int i = 0; i < r->reader->inlined.count; i++) {
    Stage *stage = r->reader->inlined.items[i];
    if (stage->te->output != e->as.buffer) continue;
    push_once(r->results->arena, &r->stored, stage);
    return true;
  }
  r->known &= e->as.buffer == r->reader->te->output; // a sum reads itself
  return true;
}

static FormReads form_reads(const StoredResults *r, const Stage *reader, const TeStage *te) {
  FormReads reads = {r, reader, {0}, true};
  Visitor visitor = {.env = &reads, .enter_expr = note_load};
  visit_expr(&visitor, te->value);
  return reads;
}

static bool offer_stage(StoredResults *r, Stage *stage, const Stage *reader);

// Adds the stages that compute what the definition reads.
static bool offer_reads(StoredResults *r, const Stage *stage, const TeStage *te,
                        const Stage *serves) {
  FormReads reads = form_reads(r, stage, te);
  for (int i = 0; i < reads.stored.count && reads.known; i++)
    reads.known = offer_stage(r, reads.stored.items[i], serves);
  return reads.known;
}

static int times_read(const TeStage *te, const PtrArray *stages, const StageTensor *tensor) {
  int count = expr_reads(te->value, tensor->buffer);
  for (int i = 0; i < stages->count; i++)
    count += expr_reads(((const Stage *)stages->items[i])->te->value, tensor->buffer);
  return count;
}

typedef struct ReadIndices {
  const Buffer *buffer;
  Expr *const *indices; // of the first load
  bool differ;          // those of another load do
} ReadIndices;

static bool compare_indices(Visitor *visitor, Expr *e) {
  ReadIndices *r = visitor->env;
  if (e->op != EXPR_LOAD || e->as.buffer != r->buffer) return true;
  for (int d = 0; r->indices && d < e->count; d++) r->differ |= e->args[d] != r->indices[d];
  r->indices = e->args;
  return true;
}

// Can the stage be fused with the producer of the tensor? It reads one element of it then.
static bool may_fuse(const Stage *stage, const StageTensor *tensor) {
  ReadIndices reads = {tensor->buffer};
  Visitor visitor = {.env = &reads, .enter_expr = compare_indices};
  visit_expr(&visitor, stage->te->value);
  return !reads.differ && !stage_is_ordered(tensor->producer);
}

// The stage of the graph for which a stage is offered, or the stage itself.
static const Stage *owner_of(const Stage *stage) {
  return stage->serves ? stage->serves->output->producer : stage;
}

// Would a tensor that the stage's owner alone reads have several readers? The owner could then not
// be fused with the producer of the tensor in any plan. And do other stages read one of which a sum
// or a concatenation reads parts? The problem would take the solver too long.
static bool adds_readers(const StoredResults *r, const Stage *stage, const TeStage *te) {
  FormReads reads = form_reads(r, stage, te);
  for (int i = 0; i < reads.stored.count; i++) {
    const Stage *stored = reads.stored.items[i];
    FormReads more = form_reads(r, stored, stored->te);
    for (int k = 0; k < more.stored.count; k++)
      push_once(r->arena, &reads.stored, more.stored.items[k]);
  }
  const Stage *owner = owner_of(stage);
  for (int i = 0; i < owner->reads.count; i++) {
    const StageTensor *tensor = owner->reads.items[i];
    if (!tensor->producer) continue;
    bool alone = tensor->users.count == 1 && may_fuse(owner, tensor);
    bool parts = stage_is_reduction(owner) || owner->te->value->op == EXPR_IF_THEN_ELSE;
    bool adds = alone ? times_read(te, &reads.stored, tensor) > 1 : parts;
    if (adds) return true;
  }
  return false;
}

// Makes the form another way to compute the output of the stage.
static bool offer_form(StoredResults *r, Stage *stage, const StageForm *form) {
  if (r->stages.count >= r->most) return false;
  Stage *other = arena_new(r->arena, Stage);
  *other = (Stage){.node = stage->node, .output = stage->output, .parts = form->parts};
  other->te = form->te;
  other->serves = other;
  if (adds_readers(r, stage, other->te) || !offer_reads(r, stage, other->te, other)) return false;
  array_push(r->arena, &r->stages, other);
  Stage *first = serves_group(stage) ? stage->output->producer : stage;
  array_push(r->arena, &first->others, other);
  return true;
}

// Each form has choices for all layouts, and each choice is priced by looking at the whole value.
static bool is_short(const Stage *stage) {
  return expr_tree_size(stage->te->value, NULL, 0, MOST_NODES) < MOST_NODES;
}

// Offers the forms of a stage; what was inlined into it is left out where one cannot be.
static void offer_forms(StoredResults *r, Stage *stage) {
  bool may = stage->formed == stage->te && !stage->asked && !stage_is_ordered(stage) &&
             stage->inlined.count <= MOST_INLINED && is_short(stage);
  bool all = may && !stage->forms_left_out;
  for (int i = 0; may && i < stage->forms.count; i++)
    all &= offer_form(r, stage, &stage->forms.items[i]);
  for (int i = 0; !all && i < stage->inlined.count; i++)
    map_put(&r->left_out, stage->inlined.items[i], stage->inlined.items[i]);
}

// Adds an inlined stage, which is in a plan only where another stage reads its result.
static bool offer_stage(StoredResults *r, Stage *stage, const Stage *reader) {
  if (map_contains(&r->offered, stage)) return true;
  if (stage->asked || stage_is_ordered(stage) || stage->te->program) return false;
  if (!offer_reads(r, stage, stage->te, reader)) return false;
  stage->serves = reader;
  map_put(&r->offered, stage, stage);
  array_push(r->arena, &r->graph->tensors, stage->output);
  offer_forms(r, stage);
  array_push(r->arena, &r->stages, stage);
  return true;
}

static void leave_out_of_members(StoredResults *r, const Stage *group) {
  for (int i = 0; i < group->member_count; i++) {
    const PtrArray *inlined = &group->members[i]->inlined;
    for (int k = 0; k < inlined->count; k++)
      map_put(&r->left_out, inlined->items[k], inlined->items[k]);
  }
}

// The number of inlined stages of which nothing was left out.
static int count_offered(StoredResults *r) {
  Map counted = map_new(&r->graph->context->scratch);
  int count = 0;
  for (int i = 0; i < r->stages.count; i++) {
    const PtrArray *inlined = &((const Stage *)r->stages.items[i])->inlined;
    for (int k = 0; k < inlined->count; k++) {
      const Stage *stage = inlined->items[k];
      if (map_contains(&counted, stage) || map_contains(&r->left_out, stage)) continue;
      map_put(&counted, stage, stage);
      stage->output->decided = false;
      count++;
    }
  }
  return count;
}

void stage_graph_offer_stored(StageGraph *s) {
  StoredResults r = {s, &s->context->arena};
  r.most = MOST_GROWTH * s->stages.count + ALWAYS_OFFERED;
  r.offered = map_new(&s->context->arena);
  r.left_out = map_new(&s->context->arena);
  for (int i = 0; i < s->stages.count; i++) {
    Stage *stage = s->stages.items[i];
    if (stage->member_count) leave_out_of_members(&r, stage);
    if (!stage->member_count) offer_forms(&r, stage);
    array_push(r.arena, &r.stages, stage);
  }
  s->fusions_decided -= count_offered(&r);
  if (r.stages.count == s->stages.count) return;
  memset(&s->stages, 0, sizeof s->stages);
  for (int i = 0; i < r.stages.count; i++) array_push(r.arena, &s->stages, r.stages.items[i]);
  stage_graph_connect(s);
}
