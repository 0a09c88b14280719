// SPDX-License-Identifier: Apache-2.0
// Runs statements and calls. Loops of every kind run serially here; threads.c has those over
// threads that wait for one another. Storage lives as long as the block or allocation that makes
// it, and is new each time.
#include "interp/exec.h"

static void run(Machine *machine, const InterpStep *step) {
  step->run(machine, step);
}

void machine_count_step(Machine *machine) {
  if (!machine->options.max_steps || ++machine->steps <= machine->options.max_steps) return;
  if (machine->options.out_of_steps) *machine->options.out_of_steps = true;
  machine_fail(machine, "the limit of %lld loop iterations is reached",
               (long long)machine->options.max_steps);
}

// True when the loop ends after this iteration, because of a `break` in it or a `return`.
static bool leaves(Machine *machine) {
  Flow flow = machine->flow;
  if (flow != FLOW_RETURN) machine->flow = FLOW_NEXT;
  return flow == FLOW_BREAK || flow == FLOW_RETURN;
}

void run_for(Machine *machine, const InterpStep *step) {
  machine->stmt = step->stmt;
  int64_t min = node_value(machine, step->as.loop.min)->i;
  int64_t extent = node_value(machine, step->as.loop.extent)->i;
  for (int64_t i = 0; i < extent; i++) {
    machine_count_step(machine);
    machine->frame[step->as.loop.var].i = min + i;
    run(machine, step->as.loop.body);
    if (leaves(machine)) return;
  }
}

void run_let(Machine *machine, const InterpStep *step) {
  machine->stmt = step->stmt;
  const InterpNode *node = step->as.let.value;
  const InterpScalar *value = node_value(machine, node);
  int width = node->type.code == TYPE_HANDLE ? 2 * node->lanes : node->lanes;
  memmove(machine->frame + step->as.let.var, value, sizeof(InterpScalar) * (size_t)width);
  run(machine, step->as.let.body);
}

void run_if(Machine *machine, const InterpStep *step) {
  machine->stmt = step->stmt;
  bool holds = node_value(machine, step->as.branch.condition)->i;
  const InterpStep *taken = holds ? step->as.branch.then_body : step->as.branch.else_body;
  if (taken) run(machine, taken);
}

void run_while(Machine *machine, const InterpStep *step) {
  for (;;) {
    machine->stmt = step->stmt;
    if (!node_value(machine, step->as.branch.condition)->i) return;
    machine_count_step(machine);
    run(machine, step->as.branch.then_body);
    if (leaves(machine)) return;
  }
}

const Expr *assert_parts(const Stmt *s) {
  const Expr *message = s->as.check.message;
  bool has_parts = message && message->op == EXPR_TUPLE && message->count == 2 &&
                   message->args[0]->op == EXPR_STRING && message->args[1]->op == EXPR_TUPLE;
  return has_parts ? message->args[1] : NULL;
}

static const char *assert_message(Machine *machine, const InterpStep *step) {
  const Expr *message = step->stmt->as.check.message, *parts = assert_parts(step->stmt);
  Text text = text_new(machine->arena);
  if (!parts) return message && message->op == EXPR_STRING ? message->as.s : "";
  text_printf(&text, "%s: ", message->args[0]->as.s);
  for (int i = 0; i < parts->count; i++) {
    const InterpNode *node = step->as.check.parts[i];
    const InterpScalar *value = node ? node_value(machine, node) : NULL;
    if (!node)
      text_puts(&text, expr_text(parts->args[i]));
    else if (dtype_is_float(node->type))
      text_printf(&text, "%g", value->f);
    else
      text_printf(&text, "%lld", (long long)value->i);
  }
  return text_string(&text);
}

void check_assert(Machine *machine, const InterpStep *step) {
  if (!node_value(machine, step->as.check.condition)->i)
    machine_fail(machine, "assertion failed: %s", assert_message(machine, step));
}

void run_assert(Machine *machine, const InterpStep *step) {
  machine->stmt = step->stmt;
  check_assert(machine, step);
  if (step->as.check.body) run(machine, step->as.check.body);
}

void run_evaluate(Machine *machine, const InterpStep *step) {
  machine->stmt = step->stmt;
  node_value(machine, step->as.evaluate);
}

void run_seq(Machine *machine, const InterpStep *step) {
  for (int i = 0; i < step->as.seq.count && machine->flow == FLOW_NEXT; i++)
    run(machine, step->as.seq.items[i]);
}

void run_leave(Machine *machine, const InterpStep *step) {
  machine->stmt = step->stmt;
  if (step->as.leave.value) machine->returned = *node_value(machine, step->as.leave.value);
  machine->flow = step->as.leave.flow;
}

void run_body(Machine *machine, const InterpStep *step) {
  run(machine, step->as.body);
}

// ---- Storage ----------------------------------------------------------------------------------

typedef struct FrameScope {
  ArenaMark mark;
  int64_t bytes;
} FrameScope;

static FrameScope scope_enter(Machine *machine) {
  return (FrameScope){arena_mark(machine->arena), machine->bytes};
}

static void scope_leave(Machine *machine, FrameScope scope) {
  arena_reset(machine->arena, scope.mark);
  machine->bytes = scope.bytes;
}

static int64_t checked_extent(Machine *machine, const BoundBuffer *buffer, int i) {
  int64_t extent = node_value(machine, buffer->extents[i])->i;
  if (extent < 0)
    machine_fail(machine, "axis %d of %s has a negative extent: %lld", i, buffer->name,
                 (long long)extent);
  return extent;
}

// The number of elements from the start of the storage to the end of the last element.
static int64_t element_span(Machine *machine, const BoundBuffer *buffer) {
  int64_t span = 1;
  bool fits = true;
  for (int i = 0; i < buffer->rank; i++) {
    int64_t extent = checked_extent(machine, buffer, i), step;
    if (!extent) return 0;
    if (!buffer->strides) {
      fits &= mul_fits(span, extent, &span);
      continue;
    }
    int64_t stride = node_value(machine, buffer->strides[i])->i;
    fits &= mul_fits(extent - 1, stride, &step) && add_fits(span, step, &span);
  }
  if (buffer->offset) fits &= add_fits(span, node_value(machine, buffer->offset)->i, &span);
  if (!fits) machine_fail(machine, "the size of %s does not fit 64 bits", buffer->name);
  return span;
}

void make_storage(Machine *machine, const BoundBuffer *buffer) {
  int64_t bytes = (int64_t)dtype_bytes(buffer->type) * buffer->type.lanes;
  if (!mul_fits(bytes, element_span(machine, buffer), &bytes)) bytes = INT64_MAX;
  InterpScalar *handle = machine->frame + buffer->data;
  handle[0].storage = storage_new(machine, buffer->name, buffer->type, bytes);
  handle[1].i = 0;
}

void run_allocate(Machine *machine, const InterpStep *step) {
  FrameScope scope = scope_enter(machine);
  machine->stmt = step->stmt;
  make_storage(machine, &step->as.allocate.buffer);
  run(machine, step->as.allocate.body);
  scope_leave(machine, scope);
}

void run_constant(Machine *machine, const InterpStep *step) {
  InterpScalar *handle = machine->frame + step->as.constant.data;
  handle[0].storage = step->as.constant.storage;
  handle[1].i = 0;
  run(machine, step->as.constant.body);
}

// ---- Blocks -----------------------------------------------------------------------------------

void bind_vars(Machine *machine, const BlockStep *block) {
  for (int i = 0; i < block->var_count; i++) node_value(machine, block->vars[i].value);
}

// True in a reduction's first iteration for an element, where every reduction variable has its
// minimum.
bool block_is_first(Machine *machine, const BlockStep *block) {
  for (int i = block->var_count - 1; i >= 0; i--) { // the innermost loops' variables change most
    const BoundVar *var = &block->vars[i];
    if (var->min && machine->frame[var->value->out].i != node_value(machine, var->min)->i)
      return false;
  }
  return true;
}

static void set_slot(Machine *machine, int slot, int64_t value) {
  if (slot >= 0) machine->frame[slot].i = value;
}

// Binds a view. The view starts at the least element of the region, and its extents and strides are
// those of the source's last axes. A view with an offset variable has the data of the source and is
// offset instead.
void bind_match(Machine *machine, const BoundMatch *match) {
  const InterpAccess *source = &match->source;
  for (int i = 0; i < source->rank; i++) {
    node_value(machine, source->indices[i]);
    node_value(machine, source->shape[i]);
    node_value(machine, source->strides[i]);
    node_value(machine, match->extents[i]);
  }
  if (source->offset) node_value(machine, source->offset);
  int64_t size = (int64_t)source->element_bytes * source->element_lanes;
  int64_t address = access_address(machine, source, 0, false);
  const InterpScalar *from = machine->frame + source->data;
  InterpScalar *view = machine->frame + match->data;
  view[0] = from[0];
  view[1].i = match->offset_slot >= 0 ? from[1].i : address;
  set_slot(machine, match->offset_slot, (address - from[1].i) / size);
  for (int i = 0; i < match->rank; i++) {
    int axis = source->rank - match->rank + i;
    if (axis < 0) continue;
    set_slot(machine, match->shape_slots[i], machine->frame[match->extents[axis]->out].i);
    set_slot(machine, match->stride_slots[i], machine->frame[source->strides[axis]->out].i);
  }
}

void run_block(Machine *machine, const InterpStep *step) {
  const BlockStep *block = step->as.block;
  machine->stmt = step->stmt;
  if (block->predicate && !node_value(machine, block->predicate)->i) return;
  bool has_memory = block->alloc_count || block->match_count;
  FrameScope scope = has_memory ? scope_enter(machine) : (FrameScope){0};
  bind_vars(machine, block);
  for (int i = 0; i < block->alloc_count; i++) make_storage(machine, &block->allocs[i]);
  for (int i = 0; i < block->match_count; i++) bind_match(machine, &block->matches[i]);
  if (block->init && block_is_first(machine, block)) run(machine, block->init);
  run(machine, block->body);
  if (has_memory) scope_leave(machine, scope);
}

// ---- Calls ------------------------------------------------------------------------------------

enum { MAX_CALL_DEPTH = 200, MAX_EXTERN_ARGS = 16 };

void eval_call(Machine *machine, const InterpNode *node) {
  const InterpCall *call = node->as.call;
  const InterpProgram *program = call->callee;
  if (++machine->depth > MAX_CALL_DEPTH)
    machine_fail(machine, "calls nest deeper than %d", MAX_CALL_DEPTH);
  FrameScope scope = scope_enter(machine);
  const Stmt *caller = machine->stmt;
  InterpScalar *frame = arena_copy(machine->arena, program->image,
                                   sizeof(InterpScalar) * (size_t)MAX_OF(program->frame_size, 1));
  for (int i = 0; i < node->count; i++) {
    const InterpScalar *value = operand(machine, node, i);
    int width = node->args[i]->type.code == TYPE_HANDLE ? 2 : node->args[i]->lanes;
    memcpy(frame + program->params[i].slot, value, sizeof(InterpScalar) * (size_t)width);
  }
  for (int i = 0; i < call->size_count; i++)
    frame[call->slots[i]].i = node_value(machine, call->sizes[i])->i;
  InterpScalar *outer = machine->frame;
  machine->frame = frame;
  machine->returned.i = 0;
  run(machine, program->body);
  machine->flow = FLOW_NEXT;
  machine->frame = outer;
  machine->stmt = caller;
  machine->depth--;
  scope_leave(machine, scope);
  machine->frame[node->out] = machine->returned;
}

void eval_extern(Machine *machine, const InterpNode *node) {
  InterpValue args[MAX_EXTERN_ARGS];
  if (node->count > MAX_EXTERN_ARGS)
    machine_fail(machine, "the call has more than %d arguments", MAX_EXTERN_ARGS);
  for (int i = 0; i < node->count; i++) args[i].i = operand(machine, node, i)->i;
  const InterpExtern *function = node->as.function;
  InterpValue result = function->call(function->env, args, node->count);
  InterpScalar *out = machine->frame + node->out;
  if (dtype_is_float(node->type))
    out->f = number_round(node->type, result.f);
  else
    out->i = number_wrap(node->type, result.i);
}
