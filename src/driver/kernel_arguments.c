// SPDX-License-Identifier: Apache-2.0
// Makes the arguments of tensor programs: takes given arrays and binds free sizes to their shapes,
// and fills the others.
#include "driver/kernel_arguments.h"

#include <stdlib.h>

#include "arith/arith.h"
#include "base/caller.h"
#include "graph/graph.h"

typedef struct Making {
  Context *context;
  const Kernel *kernel;
  const KernelContents *contents;
  Array(InterpSize) sizes; // values of the variables in shapes
  KernelArguments *out;
  Tensor **given; // by parameter; NULL: the caller gives no array
} Making;

const char *kernel_param_name(const Kernel *kernel, int i) {
  const PrimFunc *func = kernel->func;
  return func->buffers[i] ? func->buffers[i]->name : func->params[i]->as.var->name;
}

static bool known_size(const Making *m, const Expr *var, int64_t *value) {
  for (int i = 0; i < m->sizes.count; i++)
    if (m->sizes.items[i].var == var) return *value = m->sizes.items[i].value, true;
  return false;
}

static void set_size(Making *m, const Expr *var, int64_t value) {
  int64_t known;
  InterpSize size = {var, value};
  if (!known_size(m, var, &known)) array_push(&m->context->arena, &m->sizes, size);
}

// The variable with this name in the shapes of parameters, or the scalar parameter; NULL when there
// is none.
static const Expr *find_size(const Kernel *kernel, const char *name) {
  const PrimFunc *func = kernel->func;
  for (int i = 0; i < func->param_count; i++)
    if (!func->buffers[i] && strcmp(func->params[i]->as.var->name, name) == 0)
      return func->params[i];
  return kernel_find_size(kernel, name);
}

static bool has_size(const Kernels *kernels, const char *name) {
  for (int i = 0; i < kernels->count; i++)
    if (find_size(&kernels->items[i], name)) return true;
  return false;
}

bool kernels_check_sizes(Context *context, const Kernels *kernels, const char *const *sizes,
                         int count) {
  for (int i = 0; i < count; i++) {
    Str name;
    int64_t value;
    if (given_size_read(context, sizes[i], &name, &value) && !has_size(kernels, name))
      diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                    "a size is given for '%s', which is not a free size", name);
  }
  return context->error_count == 0;
}

static bool read_sizes(Making *m) {
  for (int i = 0; i < m->contents->size_count; i++) {
    Str name;
    int64_t value;
    if (!given_size_read(m->context, m->contents->sizes[i], &name, &value)) return false;
    const Expr *var = find_size(m->kernel, name);
    if (var) set_size(m, var, value);
  }
  return true;
}

static bool refuse(Making *m, int i, const char *what) {
  const PrimFunc *func = m->kernel->func;
  return diag_error(m->context, func->pos, "parameter '%s' of '%s' %s",
                    kernel_param_name(m->kernel, i), func->name, what);
}

static bool not_given(Making *m, int i) {
  const PrimFunc *func = m->kernel->func;
  const char *name = kernel_param_name(m->kernel, i);
  return diag_error_as(m->context, DIAG_OPTION, (SourcePos){0},
                       "'%s' of '%s' has no contents\ngive --input %s=%s, or --fill random", name,
                       func->name, name, func->buffers[i] ? "file.npy" : "NUMBER");
}

static bool is_random(const Making *m) {
  return m->contents->fill && strcmp(m->contents->fill, "random") == 0;
}

static uint64_t seed_of(const Making *m, int i) {
  return (uint64_t)(m->contents->seed + i);
}

// ---- Scalars

static bool make_scalar(Making *m, int i) {
  const Expr *var = m->kernel->func->params[i];
  const char *text = m->contents->number(m->contents->env, var->as.var->name);
  int64_t size;
  char *end = "";
  double value = 0;
  if (!text && m->context->error_count) return false;
  if (text) value = strtod(text, &end);
  if (text && (end == text || *end)) return refuse(m, i, "is a number; give --input NAME=NUMBER");
  if (!text && known_size(m, var, &size))
    value = (double)size;
  else if (!text && !m->contents->fill)
    return not_given(m, i);
  else if (!text && is_random(m))
    value = 1;
  if (dtype_is_int(var->type)) set_size(m, var, (int64_t)value);
  ElementType type;
  if (!element_type_parse(dtype_name(m->context, var->type), &type))
    return refuse(m, i, "has a type that cannot be given here");
  Tensor *tensor = tensor_keep(m->context, tensor_new(type, NULL, 0));
  if (!tensor) return refuse(m, i, "finds no memory");
  element_set(type, tensor->data, value);
  m->out->tensors[i] = tensor;
  m->out->args[i] = (InterpTensor){.type = var->type, .data = tensor->data};
  return true;
}

// ---- Tensors

static InterpTensor argument_over(Context *context, const Buffer *buffer, Tensor *tensor) {
  InterpTensor arg = {.type = buffer->type, .rank = buffer->rank, .data = tensor->data};
  arg.shape = arena_copy(&context->arena, tensor->shape, sizeof(int64_t) * (size_t)buffer->rank);
  return arg;
}

static const char *given_name(const Making *m, const char *name) {
  const char *file = m->contents->file ? m->contents->file(m->contents->env, name) : NULL;
  return file ? arena_printf(&m->context->arena, "the array of '%s'", file) : "the array given";
}

// Does the array have the type and rank of the parameter? The lanes of its elements are a last
// axis.
static bool given_fits(Making *m, int i, const Tensor *tensor) {
  Context *context = m->context;
  const Buffer *buffer = m->kernel->func->buffers[i];
  int lanes = buffer->type.lanes, rank = buffer->rank + (lanes > 1);
  Str own = dtype_name(context, dtype_lanes(buffer->type, 1));
  const char *array = given_name(m, buffer->name);
  const char *axis =
      lanes > 1 ? arena_printf(&context->arena, " with %d lanes as last axis", lanes) : "";
  if (strcmp(element_type_name(tensor->type), own) != 0)
    return refuse(m, i,
                  arena_printf(&context->arena, "holds %s, %s has %s",
                               dtype_name(context, buffer->type), array,
                               element_type_name(tensor->type)));
  if (tensor->rank != rank)
    return refuse(
        m, i,
        arena_printf(&context->arena, "has rank %d%s, %s has %d", rank, axis, array, tensor->rank));
  if (lanes > 1 && tensor->shape[rank - 1] != lanes)
    return refuse(m, i,
                  arena_printf(&context->arena, "has elements of %d lanes, %s has %lld", lanes,
                               array, (long long)tensor->shape[rank - 1]));
  return true;
}

// Takes the array of parameter i from its file, and binds the free sizes to the array's shape.
static bool take_given(Making *m, int i) {
  Context *context = m->context;
  const Buffer *buffer = m->kernel->func->buffers[i];
  Tensor *tensor = m->contents->array(m->contents->env, buffer->name);
  if (!tensor) return context->error_count == 0;
  if (!given_fits(m, i, tensor)) return false;
  for (int d = 0; d < buffer->rank; d++)
    if (buffer->shape[d]->op == EXPR_VAR) set_size(m, buffer->shape[d], tensor->shape[d]);
  m->given[i] = tensor;
  if (buffer->strides || !expr_is_int(buffer->offset, 0)) return true; // copied by fill_tensor
  m->out->tensors[i] = tensor;
  m->out->args[i] = argument_over(context, buffer, tensor);
  return true;
}

static bool has_contents(Making *m, int i) {
  return m->contents->fill_all || (m->kernel->access[i] & PARAM_READ);
}

bool kernel_size_value(Context *context, const InterpSize *sizes, int count, const Expr *e,
                       int64_t *value) {
  ArenaMark mark = arena_mark(&context->scratch);
  Expr **vars = arena_array(&context->scratch, Expr *, count);
  int64_t *values = arena_array(&context->scratch, int64_t, count);
  for (int i = 0; i < count; i++) {
    vars[i] = (Expr *)sizes[i].var;
    values[i] = sizes[i].value;
  }
  bool known = expr_value(e, vars, values, count, value);
  arena_reset(&context->scratch, mark);
  return known;
}

// The value of a stride or offset. A variable that nothing gives has the usual value.
static bool layout_value(const Making *m, const Expr *e, int64_t usual, int64_t *value) {
  if (kernel_size_value(m->context, m->sizes.items, m->sizes.count, e, value)) return true;
  *value = usual;
  return e->op == EXPR_VAR;
}

// The strides of an argument; variables that nothing gives are those of rows without gaps.
static bool find_strides(Making *m, int i, const int64_t *shape, int64_t *strides) {
  const Buffer *buffer = m->kernel->func->buffers[i];
  int64_t step = 1;
  for (int d = buffer->rank - 1; d >= 0; d--) {
    const Expr *stride = buffer->strides[d];
    if (!layout_value(m, stride, step, &strides[d]))
      return refuse(m, i, "has strides that its arguments do not give");
    if (stride->op == EXPR_VAR) set_size(m, stride, strides[d]);
    if (strides[d] < 0) return refuse(m, i, "has a negative stride");
    step *= MAX_OF(shape[d], 1);
  }
  return true;
}

// The elements from the start of the memory to the first one.
static bool find_offset(Making *m, int i, int64_t *offset) {
  const Expr *e = m->kernel->func->buffers[i]->offset;
  if (!layout_value(m, e, 0, offset))
    return refuse(m, i, "has an elem_offset that its arguments do not give");
  return (*offset >= 0 && *offset <= INT32_MAX) ||
         refuse(m, i, "has an elem_offset that is not in [0, 2^31)");
}

// Makes one flat tensor of the elements that a buffer's offset and strides span.
static bool spanned(Making *m, int i, InterpTensor *arg, Tensor **flat) {
  Context *context = m->context;
  const Buffer *buffer = m->kernel->func->buffers[i];
  int64_t *strides = arena_array(&context->arena, int64_t, buffer->rank + 1);
  if (buffer->strides && !find_strides(m, i, arg->shape, strides)) return false;
  if (buffer->strides) arg->strides = strides;
  if (!find_offset(m, i, &arg->offset)) return false;
  int64_t bytes = interp_tensor_bytes(arg);
  ElementType type;
  if (!element_type_parse(dtype_name(context, dtype_lanes(buffer->type, 1)), &type))
    return refuse(m, i, "has a type that cannot be filled");
  *flat = tensor_keep(m->context, tensor_new(type, (int64_t[]){bytes / element_bytes(type)}, 1));
  return *flat || refuse(m, i, "finds no memory");
}

// The elements of an argument in its flat memory; their lanes are a last axis.
static Tensor *elements_of(Context *context, const Buffer *buffer, const InterpTensor *arg,
                           const Tensor *flat) {
  int rank = buffer->rank, lanes = buffer->type.lanes;
  int64_t *shape = arena_array(&context->arena, int64_t, rank + 1);
  int64_t *strides = arg->strides ? arena_array(&context->arena, int64_t, rank + 1) : NULL;
  for (int d = 0; d < rank; d++) {
    shape[d] = arg->shape[d];
    if (strides) strides[d] = arg->strides[d] * lanes;
  }
  shape[rank] = lanes;
  if (strides) strides[rank] = 1;
  Tensor *tensor = arena_new(&context->arena, Tensor);
  char *first = (char *)flat->data + arg->offset * element_bytes(flat->type) * lanes;
  *tensor = tensor_over(first, flat->type, shape, rank + (lanes > 1));
  tensor->strides = strides;
  return tensor;
}

static bool fill_tensor(Making *m, int i) {
  Context *context = m->context;
  const Buffer *buffer = m->kernel->func->buffers[i];
  int64_t *shape = arena_array(&context->arena, int64_t, buffer->rank + 1);
  Tensor *flat = NULL;
  if (has_contents(m, i) && !m->contents->fill && !m->given[i]) return not_given(m, i);
  InterpTensor arg = {.type = buffer->type, .rank = buffer->rank, .shape = shape};
  if (!interp_param_shape(context, m->kernel->func, i, m->sizes.items, m->sizes.count, shape))
    return diag_note(context, (SourcePos){0}, "%s gives the size n",
                     caller_size(context, "n", 128));
  if (!spanned(m, i, &arg, &flat)) return false;
  if (has_contents(m, i) && is_random(m) && !m->given[i])
    tensor_fill_random(flat, seed_of(m, i));
  else
    memset(flat->data, 0, (size_t)tensor_bytes(flat));
  arg.data = flat->data;
  Tensor *tensor = elements_of(context, buffer, &arg, flat);
  if (m->given[i]) tensor_copy(tensor, m->given[i]);
  m->out->tensors[i] = buffer->type.lanes == 1 ? tensor : flat;
  m->out->args[i] = arg;
  return true;
}

bool kernel_arguments(Context *context, const Kernel *kernel, const KernelContents *contents,
                      KernelArguments *out) {
  const PrimFunc *func = kernel->func;
  Arena *arena = &context->arena;
  Making m = {context, kernel, contents, {0}, out};
  out->args = arena_array(arena, InterpTensor, func->param_count);
  out->tensors = arena_array(arena, Tensor *, func->param_count);
  m.given = arena_array(arena, Tensor *, func->param_count);
  if (!read_sizes(&m)) return false;
  for (int i = 0; i < func->param_count; i++) // these arguments determine the free sizes
    if (!(func->buffers[i] ? take_given(&m, i) : make_scalar(&m, i))) return false;
  for (int i = 0; i < func->param_count; i++)
    if (!out->tensors[i] && !fill_tensor(&m, i)) return false;
  return true;
}
