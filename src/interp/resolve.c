// SPDX-License-Identifier: Apache-2.0
// Resolves expressions and functions. Every variable, constant and intermediate result gets a slot
// in the function's frame before the run, so that running needs no lookup. Statements are resolved
// in resolve_stmt.c.
#include "interp/resolve.h"

#include "arith/arith.h"

int slot_new(Resolver *resolver, int width) {
  int slot = resolver->frame_size;
  resolver->frame_size += width;
  return slot;
}

static int type_width(DType type) {
  return type.code == TYPE_HANDLE ? 2 * type.lanes : type.lanes;
}

int slot_bind(Resolver *resolver, const Expr *var) {
  void *known = map_find(&resolver->slots, var);
  if (known) return (int)(intptr_t)known - 1;
  int slot = slot_new(resolver, type_width(var->type));
  map_put(&resolver->slots, var, (intptr_t)slot + 1);
  return slot;
}

void slot_share(Resolver *resolver, const Expr *var, int slot) {
  map_put(&resolver->slots, var, (intptr_t)slot + 1);
}

int slot_of(Resolver *resolver, const Expr *var) {
  void *known = map_find(&resolver->slots, var);
  if (!known) machine_fail(resolver->machine, "'%s' has no value here", var->as.var->name);
  return (int)(intptr_t)known - 1;
}

bool slot_is_bound(Resolver *resolver, const Expr *var) {
  return map_contains(&resolver->slots, var);
}

static InterpNode *node_new(Resolver *resolver, const Expr *e) {
  InterpNode *node = arena_new(resolver->arena, InterpNode);
  node->lanes = e->type.lanes;
  node->type = dtype_lanes(e->type, 1);
  return node;
}

static void constant_value(const Expr *e, InterpScalar *value) {
  if (e->op == EXPR_FLOAT)
    value->f = number_round(e->type, e->as.f);
  else if (e->op == EXPR_STRING)
    value->s = e->as.s;
  else
    value->i = number_wrap(e->type, e->as.i);
}

static InterpNode *resolve_constant(Resolver *resolver, const Expr *e) {
  InterpNode *node = map_find(&resolver->constants, e);
  if (node) return node;
  node = node_new(resolver, e);
  node->out = slot_new(resolver, 1);
  Constant constant = {node->out, {0}};
  constant_value(e, &constant.value);
  array_push(resolver->arena, &resolver->image, constant);
  map_put(&resolver->constants, e, node);
  return node;
}

static InterpNode *resolve_var(Resolver *resolver, const Expr *e) {
  InterpNode *node = node_new(resolver, e);
  node->out = slot_of(resolver, e);
  return node;
}

InterpNode **resolve_list(Resolver *resolver, Expr *const *exprs, int count) {
  InterpNode **nodes = arena_array(resolver->arena, InterpNode *, count);
  for (int i = 0; i < count; i++) nodes[i] = resolve_expr(resolver, exprs[i]);
  return nodes;
}

static void use_memory(Resolver *resolver, const Expr *data) {
  for (int i = 0; i < resolver->memories.count; i++) {
    ThreadMemory *memory = &resolver->memories.items[i];
    if (memory->data == data) memory->used = MAX_OF(memory->used, resolver->threads);
  }
}

// Notes shape, strides and offset where all of them are constants.
static void fix_access(InterpAccess *access, const Buffer *buffer, Expr *const *strides,
                       Arena *arena) {
  access->extents = arena_array(arena, int64_t, access->rank);
  access->steps = arena_array(arena, int64_t, access->rank);
  access->fixed = !buffer->offset || expr_as_int(buffer->offset, &access->start);
  for (int i = 0; i < access->rank; i++)
    access->fixed &= expr_as_int(buffer->shape[i], &access->extents[i]) &&
                     access->extents[i] >= 0 && expr_as_int(strides[i], &access->steps[i]);
  access->is_scalar = access->fixed && access->element_lanes == 1;
  for (int i = 0; i < access->rank; i++) access->is_scalar &= access->indices[i]->lanes == 1;
}

Expr **resolve_strides(Resolver *resolver, const Buffer *buffer) {
  Expr **strides = map_find(&resolver->strides, buffer);
  if (strides) return strides;
  strides = arena_array(resolver->arena, Expr *, buffer->rank);
  buffer_stride_exprs(resolver->machine->context, buffer, strides);
  return strides;
}

InterpAccess *resolve_access(Resolver *resolver, Buffer *buffer, Expr *const *indices, int rank) {
  InterpAccess *access = arena_new(resolver->arena, InterpAccess);
  if (rank != buffer->rank)
    machine_fail(resolver->machine, "%s has %d axes, the access %d", buffer->name, buffer->rank,
                 rank);
  Expr **strides = resolve_strides(resolver, buffer);
  access->buffer = buffer;
  void *view = map_find(&resolver->views, buffer);
  access->data = view ? (int)(intptr_t)view - 1 : slot_of(resolver, buffer->data);
  use_memory(resolver, buffer->data);
  access->rank = rank;
  access->indices = resolve_list(resolver, indices, rank);
  access->shape = resolve_list(resolver, buffer->shape, rank);
  access->strides = resolve_list(resolver, strides, rank);
  access->offset = buffer->offset ? resolve_expr(resolver, buffer->offset) : NULL;
  access->element_lanes = buffer->type.lanes;
  access->element_bytes = dtype_bytes(buffer->type);
  fix_access(access, buffer, strides, resolver->arena);
  return access;
}

static InterpNode *resolve_load(Resolver *resolver, const Expr *e) {
  InterpNode *node = node_new(resolver, e);
  node->as.access = resolve_access(resolver, e->as.buffer, e->args, e->count);
  node->eval = node->as.access->is_scalar ? eval_load_scalar : eval_load;
  node->out = slot_new(resolver, node->lanes);
  return node;
}

static InterpNode *resolve_address(Resolver *resolver, const Expr *e) {
  InterpNode *node = node_new(resolver, e);
  const Expr *load = e->args[0];
  node->as.access = resolve_access(resolver, load->as.buffer, load->args, load->count);
  node->eval = eval_address_of;
  node->out = slot_new(resolver, 2);
  return node;
}

static void run_let(Machine *machine, const InterpNode *node) {
  const InterpScalar *value = operand(machine, node, 0);
  memmove(machine->frame + node->args[2]->out, value,
          sizeof(InterpScalar) * (size_t)node->args[2]->lanes);
  const InterpScalar *body = operand(machine, node, 1);
  size_t width = (size_t)type_width(dtype_lanes(node->type, node->lanes));
  memmove(machine->frame + node->out, body, sizeof(InterpScalar) * width);
}

// The operands are the value, the body, and the variable's slot, whose lanes are its width.
static InterpNode *resolve_let(Resolver *resolver, const Expr *e) {
  resolver->lazy++;
  InterpNode *node = node_new(resolver, e), *var = arena_new(resolver->arena, InterpNode);
  node->count = 3;
  node->args = arena_array(resolver->arena, InterpNode *, 3);
  node->args[0] = resolve_expr(resolver, e->args[1]);
  var->out = slot_bind(resolver, e->args[0]);
  var->lanes = type_width(e->args[0]->type);
  node->args[2] = var;
  node->args[1] = resolve_expr(resolver, e->args[2]);
  node->out = slot_new(resolver, type_width(e->type));
  node->eval = run_let;
  resolver->lazy--;
  return node;
}

static InterpNode *resolve_shuffle(Resolver *resolver, const Expr *e) {
  InterpNode *node = node_new(resolver, e);
  const Expr *vectors = e->args[0], *lanes = e->args[1];
  node->count = vectors->count;
  node->args = resolve_list(resolver, vectors->args, vectors->count);
  node->as.lane_numbers = arena_array(resolver->arena, int, e->type.lanes);
  int given = 0;
  for (int i = 0; i < vectors->count; i++) given += vectors->args[i]->type.lanes;
  for (int i = 0; i < lanes->count && i < e->type.lanes; i++) {
    int64_t lane = -1;
    expr_as_int(lanes->args[i], &lane);
    if (lane < 0 || lane >= given)
      machine_fail(resolver->machine, "a shuffle takes lane %lld of %d lanes", (long long)lane,
                   given);
    node->as.lane_numbers[i] = (int)lane;
  }
  node->eval = eval_function(e, node);
  node->out = slot_new(resolver, node->lanes);
  return node;
}

static const InterpExtern *find_extern(const InterpOptions *options, const char *name) {
  for (int i = 0; i < options->extern_count; i++)
    if (!strcmp(options->externs[i].name, name)) return &options->externs[i];
  return NULL;
}

static const PrimFunc *find_function(const Module *module, const char *name) {
  for (int i = 0; module && i < module->funcs.count; i++)
    if (!strcmp(module->funcs.items[i].name, name)) return module->funcs.items[i].prim;
  return NULL;
}

// The slot of the callee's frame that has a size of a parameter.
static int size_slot(const BoundParam *param, const CallSize *size) {
  switch (size->kind) {
  case CALL_SIZE_EXTENT: return param->shape[size->axis]->out;
  case CALL_SIZE_STRIDE: return param->strides[size->axis]->out;
  case CALL_SIZE_OFFSET: break;
  }
  return param->offset->out;
}

static void resolve_sizes(Resolver *resolver, const PrimFunc *func, const Expr *e,
                          InterpCall *call) {
  Machine *machine = resolver->machine;
  CallSizes sizes = {0};
  SourcePos pos = machine->stmt ? machine->stmt->pos : func->pos;
  if (!resolver->scope.context) resolver->scope = call_scope(machine->context, resolver->func);
  if (!call_sizes(&resolver->scope, pos, func, e, &sizes)) longjmp(machine->failed, 1);
  call->size_count = sizes.count;
  call->sizes = arena_array(resolver->arena, InterpNode *, sizes.count);
  call->slots = arena_array(resolver->arena, int, sizes.count);
  for (int i = 0; i < sizes.count; i++) {
    const CallSize *size = &sizes.items[i];
    call->sizes[i] = resolve_expr(resolver, size->value);
    call->slots[i] = size_slot(&call->callee->params[size->param], size);
  }
}

static InterpCall *resolve_module_call(Resolver *resolver, const PrimFunc *func, const Expr *e) {
  Machine *machine = resolver->machine;
  if (func->param_count != e->count)
    machine_fail(machine, "%s takes %d arguments, the call gives %d", e->as.s, func->param_count,
                 e->count);
  InterpCall *call = arena_new(resolver->arena, InterpCall);
  call->callee = program_resolve(machine, func);
  if (call->callee->body->waits && resolver->threads)
    machine_fail(machine, "%s waits for other threads, but is called by each of them", e->as.s);
  resolve_sizes(resolver, func, e, call);
  return call;
}

static InterpNode *resolve_call(Resolver *resolver, const Expr *e) {
  Machine *machine = resolver->machine;
  InterpNode *node = node_new(resolver, e);
  node->count = e->count;
  node->args = resolve_list(resolver, e->args, e->count);
  const PrimFunc *func = find_function(machine->module, e->as.s);
  if (func) {
    node->as.call = resolve_module_call(resolver, func, e);
    node->eval = eval_call;
  } else {
    node->as.function = find_extern(&machine->options, e->as.s);
    node->eval = eval_extern;
  }
  if (!func && !node->as.function)
    machine_fail(machine, "the interpreter knows no function '%s'", e->as.s);
  node->out = slot_new(resolver, MAX_OF(type_width(e->type), 1));
  return node;
}

static InterpNode *resolve_exchange(Resolver *resolver, const Expr *e) {
  if (resolver->lazy)
    machine_fail(resolver->machine,
                 "T.%s stands in an expression of which a part may not be evaluated\n"
                 "give its value a name before",
                 e->as.s);
  InterpNode *node = node_new(resolver, e);
  node->count = e->count;
  node->args = resolve_list(resolver, e->args, e->count);
  node->as.exchange = expr_exchange(e);
  node->eval = eval_exchange;
  node->out = slot_new(resolver, node->lanes);
  array_push(resolver->arena, &resolver->exchanges, node);
  return node;
}

static InterpNode *resolve_barrier(Resolver *resolver, const Expr *e) {
  static const InterpNode nothing;
  (void)e;
  InterpNode *node = arena_new(resolver->arena, InterpNode);
  *node = nothing; // a thread alone does not wait
  return node;
}

// The evaluator of a function on packed arguments, or NULL.
static EvalFn packed_function(const Expr *e, InterpNode *node) {
  if (expr_is_null_test(e)) return eval_is_null;
  if (expr_is_moved_pointer(e)) return eval_moved_pointer;
  if (!expr_field_offset(e, &node->as.offset)) return NULL;
  return e->count == 4 ? eval_set_field : eval_field;
}

static InterpNode *resolve_intrinsic(Resolver *resolver, const Expr *e) {
  resolver->waits = MAX_OF(resolver->waits, expr_wait(e));
  if (expr_exchange(e)) return resolve_exchange(resolver, e);
  if (expr_is_barrier(e)) return resolve_barrier(resolver, e);
  Expr *value = intrinsic_value(resolver->machine->context, (Expr *)e);
  if (value) return resolve_expr(resolver, value);
  InterpNode *node = node_new(resolver, e);
  node->eval = packed_function(e, node);
  if (node->eval) {
    node->count = e->count;
    node->args = resolve_list(resolver, e->args, e->count);
    node->out = slot_new(resolver, MAX_OF(type_width(e->type), 1));
    return node;
  }
  machine_fail(resolver->machine, "T.%s is read and printed, but the interpreter cannot run it",
               e->as.s);
}

// ---- Sums of scalar integers, such as the indices of buffers with one axis: additions,
// subtractions and products with constants are one node. Modulo 2^bits, they may be done in any
// order.

typedef struct SumTerms {
  Array(InterpNode *) operands;
  Array(int64_t) factors;
  int64_t constant;
} SumTerms;

static void add_operand(Resolver *resolver, SumTerms *sum, InterpNode *node, int64_t factor) {
  for (int i = 0; i < sum->operands.count && !node->eval; i++)
    if (!sum->operands.items[i]->eval && sum->operands.items[i]->out == node->out) {
      sum->factors.items[i] = (int64_t)((uint64_t)sum->factors.items[i] + (uint64_t)factor);
      return;
    }
  array_push(resolver->arena, &sum->operands, node);
  array_push(resolver->arena, &sum->factors, factor);
}

static void add_to_sum(Resolver *resolver, SumTerms *sum, const Expr *e, int64_t factor) {
  int64_t number;
  bool negative = e->op == EXPR_SUB;
  if (expr_as_int(e, &number)) {
    sum->constant = (int64_t)((uint64_t)sum->constant + (uint64_t)number * (uint64_t)factor);
  } else if (e->op == EXPR_ADD || negative) {
    add_to_sum(resolver, sum, e->args[0], factor);
    add_to_sum(resolver, sum, e->args[1], negative ? (int64_t)(0 - (uint64_t)factor) : factor);
  } else if (e->op == EXPR_MUL && expr_as_int(e->args[1], &number)) {
    add_to_sum(resolver, sum, e->args[0], (int64_t)((uint64_t)factor * (uint64_t)number));
  } else {
    add_operand(resolver, sum, resolve_expr(resolver, e), factor);
  }
}

static bool is_sum(const Expr *e) {
  if (e->type.lanes != 1 || !dtype_is_int(e->type)) return false;
  return e->op == EXPR_ADD || e->op == EXPR_SUB ||
         (e->op == EXPR_MUL && e->args[1]->op == EXPR_INT);
}

static InterpNode *resolve_sum(Resolver *resolver, const Expr *e) {
  InterpNode *node = node_new(resolver, e);
  SumTerms sum = {0};
  add_to_sum(resolver, &sum, e, 1);
  node->count = sum.operands.count;
  node->args = sum.operands.items;
  node->as.sum.factors = sum.factors.items;
  node->as.sum.constant = sum.constant;
  node->eval = eval_sum;
  node->out = slot_new(resolver, 1);
  return node;
}

static InterpNode *resolve_plain(Resolver *resolver, const Expr *e) {
  InterpNode *node = node_new(resolver, e);
  bool is_lazy = e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_AND || e->op == EXPR_OR;
  node->count = e->op == EXPR_PREFETCH ? 0 : e->count; // a prefetch has no effect
  resolver->lazy += is_lazy;
  node->args = resolve_list(resolver, e->args, node->count);
  resolver->lazy -= is_lazy;
  bool is_address = e->op == EXPR_REINTERPRET && e->args[0]->type.code == TYPE_HANDLE;
  node->eval = is_address ? eval_address : eval_function(e, node);
  if (!node->eval)
    machine_fail(resolver->machine, "the interpreter has no %s of %s", op_table[e->op].name,
                 dtype_name(resolver->machine->context, e->type));
  node->out = slot_new(resolver, MAX_OF(type_width(e->type), 1));
  return node;
}

InterpNode *resolve_expr(Resolver *resolver, const Expr *e) {
  if (dtype_is_scalable(e->type))
    machine_fail(resolver->machine, "%s is read and printed, but the interpreter cannot run it",
                 dtype_name(resolver->machine->context, e->type));
  switch (e->op) {
  case EXPR_INT:
  case EXPR_FLOAT:
  case EXPR_STRING: return resolve_constant(resolver, e);
  case EXPR_VAR: return resolve_var(resolver, e);
  case EXPR_LOAD: return resolve_load(resolver, e);
  case EXPR_ADDRESS_OF: return resolve_address(resolver, e);
  case EXPR_LET: return resolve_let(resolver, e);
  case EXPR_SHUFFLE: return resolve_shuffle(resolver, e);
  case EXPR_INTRINSIC:
  case EXPR_INTRINSIC_PURE: return resolve_intrinsic(resolver, e);
  case EXPR_CALL:
  case EXPR_CALL_MODULE:
  case EXPR_CALL_PURE: return resolve_call(resolver, e);
  default: return is_sum(e) ? resolve_sum(resolver, e) : resolve_plain(resolver, e);
  }
}

// Gives slots to a parameter's shape, stride and offset variables before any of them is evaluated.
static void bind_shape_vars(Resolver *resolver, const Buffer *buffer) {
  for (int i = 0; i < buffer->rank; i++) {
    if (buffer->shape[i]->op == EXPR_VAR) slot_bind(resolver, buffer->shape[i]);
    if (buffer->strides && buffer->strides[i]->op == EXPR_VAR)
      slot_bind(resolver, buffer->strides[i]);
  }
  if (buffer->offset && buffer->offset->op == EXPR_VAR) slot_bind(resolver, buffer->offset);
}

static void resolve_param(Resolver *resolver, const PrimFunc *func, int i, BoundParam *param) {
  const Buffer *buffer = func->buffers ? func->buffers[i] : NULL;
  param->slot = slot_bind(resolver, func->params[i]);
  param->buffer = buffer;
  param->type = buffer ? buffer->type : func->params[i]->type;
  if (!buffer) return;
  if (buffer->broadcasts)
    machine_fail(resolver->machine, "%s broadcasts by itself, which the interpreter cannot run",
                 buffer->name);
  slot_share(resolver, buffer->data, param->slot);
  param->shape = resolve_list(resolver, buffer->shape, buffer->rank);
  if (buffer->strides) param->strides = resolve_list(resolver, buffer->strides, buffer->rank);
  if (buffer->offset) param->offset = resolve_expr(resolver, buffer->offset);
}

static void resolve_params(Resolver *resolver, const PrimFunc *func, InterpProgram *program) {
  for (int i = 0; i < func->param_count; i++) {
    slot_bind(resolver, func->params[i]);
    if (func->buffers && func->buffers[i]) bind_shape_vars(resolver, func->buffers[i]);
  }
  program->param_count = func->param_count;
  program->params = arena_array(resolver->arena, BoundParam, func->param_count);
  for (int i = 0; i < func->param_count; i++) resolve_param(resolver, func, i, &program->params[i]);
}

InterpProgram *program_resolve(Machine *machine, const PrimFunc *func) {
  InterpProgram *program = map_find(&machine->programs, func);
  if (program) return program;
  program = arena_new(machine->arena, InterpProgram);
  map_put(&machine->programs, func, program);
  Resolver resolver = {machine,
                       machine->arena,
                       map_new(machine->arena),
                       map_new(machine->arena),
                       map_new(machine->arena),
                       map_new(machine->arena),
                       .func = func,
                       .program = program};
  const Stmt *caller = machine->stmt;
  program->func = func;
  resolve_params(&resolver, func, program);
  program->body = resolve_stmt(&resolver, stmt_state_empty_inits(machine->context, func->body));
  program->frame_size = resolver.frame_size;
  program->image = arena_array(machine->arena, InterpScalar, resolver.frame_size);
  for (int i = 0; i < resolver.image.count; i++)
    program->image[resolver.image.items[i].slot] = resolver.image.items[i].value;
  machine->stmt = caller;
  return program;
}
