// SPDX-License-Identifier: Apache-2.0
// Runs a function for a caller: binds arguments to parameters, and returns here on an error.
#include "interp/program.h"

void machine_fail(Machine *machine, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(&machine->context->arena, format, args);
  va_end(args);
  SourcePos none = {NULL};
  diag_error(machine->context, machine->stmt ? machine->stmt->pos : none, "%s", message);
  longjmp(machine->failed, 1);
}

int64_t interp_tensor_bytes(const InterpTensor *tensor) {
  int64_t span = 1, size = (int64_t)dtype_bytes(tensor->type) * tensor->type.lanes;
  for (int i = 0; i < tensor->rank; i++) {
    if (!tensor->shape[i]) return 0;
    if (tensor->strides)
      span += (tensor->shape[i] - 1) * tensor->strides[i];
    else
      span *= tensor->shape[i];
  }
  return (tensor->offset + span) * size;
}

static int64_t element_count(const InterpTensor *tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->rank; i++) count *= tensor->shape[i];
  return count;
}

typedef struct BufferBinding {
  Machine *machine;
  const PrimFunc *func;
  const InterpProgram *program;
  const InterpTensor *args;
  int count;
  BitSet known; // slots that have a value
} BufferBinding;

static int64_t tensor_stride(const InterpTensor *tensor, int axis) {
  if (tensor->strides) return tensor->strides[axis];
  int64_t stride = 1;
  for (int i = axis + 1; i < tensor->rank; i++) stride *= tensor->shape[i];
  return stride;
}

static void learn(BufferBinding *binding, const Expr *e, const InterpNode *node, int64_t value) {
  if (e->op != EXPR_VAR || bit_set_has(&binding->known, node->out)) return;
  binding->machine->frame[node->out].i = value;
  bit_set_add(&binding->known, node->out);
}

// Learns the variables that are alone in an extent, a stride or an offset from the argument's value
// there.
static void learn_sizes(BufferBinding *binding, const BoundParam *param, const InterpTensor *arg) {
  const Buffer *buffer = param->buffer;
  for (int i = 0; i < buffer->rank && arg->rank == buffer->rank; i++) {
    learn(binding, buffer->shape[i], param->shape[i], arg->shape[i]);
    if (buffer->strides)
      learn(binding, buffer->strides[i], param->strides[i], tensor_stride(arg, i));
  }
  if (buffer->offset) learn(binding, buffer->offset, param->offset, arg->offset);
}

static void bind_scalar(BufferBinding *binding, int i) {
  const BoundParam *param = &binding->program->params[i];
  const InterpTensor *arg = &binding->args[i];
  Machine *machine = binding->machine;
  if (param->type.code == TYPE_HANDLE && arg->type.code != TYPE_HANDLE)
    machine_fail(machine, "argument %d is a bare handle, not a tensor or a scalar", i);
  if (!dtype_equal(arg->type, param->type) || arg->rank)
    machine_fail(machine, "argument %d must be a scalar of %s", i,
                 dtype_name(machine->context, param->type));
  InterpScalar *value = machine->frame + param->slot;
  if (param->type.code == TYPE_HANDLE)
    handle_of_memory(machine, *(void **)arg->data, value);
  else if (dtype_is_float(param->type))
    value->f = number_load(param->type, arg->data);
  else
    value->i = number_load_int(param->type, arg->data);
  bit_set_add(&binding->known, param->slot);
}

static void bind_storage(BufferBinding *binding, int i) {
  const BoundParam *param = &binding->program->params[i];
  const InterpTensor *arg = &binding->args[i];
  Machine *machine = binding->machine;
  InterpStorage *storage = arena_new(machine->arena, InterpStorage);
  storage->name = param->buffer->name;
  storage->data = arg->data;
  storage->bytes = interp_tensor_bytes(arg);
  InterpScalar *handle = machine->frame + param->slot;
  handle[0].storage = storage;
  handle[1].i = 0;
}

static void check_type_rank(BufferBinding *binding, int i) {
  const Buffer *buffer = binding->program->params[i].buffer;
  const InterpTensor *arg = &binding->args[i];
  Context *context = binding->machine->context;
  if (!dtype_equal(arg->type, buffer->type))
    machine_fail(binding->machine, "argument %d: %s holds %s, not %s", i, buffer->name,
                 dtype_name(context, buffer->type), dtype_name(context, arg->type));
  if (arg->rank != buffer->rank && !binding->machine->options.flat_args)
    machine_fail(binding->machine, "argument %d: %s has %d axes, not %d", i, buffer->name,
                 buffer->rank, arg->rank);
}

static void check_shape(BufferBinding *binding, int i) {
  const BoundParam *param = &binding->program->params[i];
  const InterpTensor *arg = &binding->args[i];
  Machine *machine = binding->machine;
  int64_t elements = 1;
  for (int axis = 0; axis < param->buffer->rank; axis++) {
    int64_t extent = node_value(machine, param->shape[axis])->i;
    elements *= extent;
    if (arg->rank == param->buffer->rank && extent != arg->shape[axis])
      machine_fail(machine, "argument %d: axis %d of %s has extent %lld, not %lld", i, axis,
                   param->buffer->name, (long long)extent, (long long)arg->shape[axis]);
  }
  if (elements != element_count(arg))
    machine_fail(machine, "argument %d: %s has %lld elements, not %lld", i, param->buffer->name,
                 (long long)elements, (long long)element_count(arg));
}

// A caller may leave out trailing scalar parameters whose values the tensors' sizes give.
static void check_count(BufferBinding *binding) {
  const InterpProgram *program = binding->program;
  bool fits = binding->count <= program->param_count;
  for (int i = binding->count; fits && i < program->param_count; i++)
    fits = !program->params[i].buffer && bit_set_has(&binding->known, program->params[i].slot);
  if (!fits)
    machine_fail(binding->machine, "%s takes %d arguments, not %d", binding->func->name,
                 program->param_count, binding->count);
}

static void bind_args(BufferBinding *binding) {
  const InterpProgram *program = binding->program;
  int count = MIN_OF(binding->count, program->param_count);
  for (int i = 0; i < count; i++)
    if (program->params[i].buffer)
      check_type_rank(binding, i);
    else
      bind_scalar(binding, i);
  for (int i = 0; i < count; i++)
    if (program->params[i].buffer) learn_sizes(binding, &program->params[i], &binding->args[i]);
  check_count(binding);
  for (int i = 0; i < count; i++) {
    if (!program->params[i].buffer) continue;
    check_shape(binding, i);
    bind_storage(binding, i);
  }
}

static void run_function(Machine *machine, const PrimFunc *func, const InterpTensor *args,
                         int count) {
  const InterpProgram *program = program_resolve(machine, func);
  BufferBinding binding = {machine, func, program, args, count};
  binding.known = bit_set_new(machine->arena, program->frame_size);
  machine->frame = arena_copy(machine->arena, program->image,
                              sizeof(InterpScalar) * (size_t)MAX_OF(program->frame_size, 1));
  bind_args(&binding);
  program->body->run(machine, program->body);
}

InterpTensor interp_tensor_of(const ConstData *data) {
  return (InterpTensor){
      .type = data->type, .rank = data->rank, .shape = data->shape, .data = (void *)data->data};
}

bool interp_run(Context *context, const Module *module, const PrimFunc *func,
                const InterpTensor *args, int count, const InterpOptions *options) {
  ArenaMark mark = arena_mark(&context->scratch);
  Machine *machine = arena_new(&context->scratch, Machine);
  Stmt whole = {.pos = func->pos};
  machine->context = context;
  machine->module = module;
  machine->arena = &context->scratch;
  machine->programs = map_new(machine->arena);
  machine->stmt = &whole;
  if (options) machine->options = *options;
  bool done = !setjmp(machine->failed);
  if (done) run_function(machine, func, args, count);
  arena_reset(&context->scratch, mark);
  return done;
}
