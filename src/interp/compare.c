// SPDX-License-Identifier: Apache-2.0
// Compares two programs on the same random inputs. Every parameter is filled, outputs too, so that
// elements which a program leaves unwritten are compared as well.
#include "interp/interp.h"

#include <math.h>

static uint64_t next_random(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15u; // splitmix64
  return hash_mix(*state, *state >> 29);
}

static double random_value(DType type, InterpFill fill, uint64_t random) {
  if (dtype_is_bool(type)) return (double)(random >> 63);
  if (type.code == TYPE_INT) return (double)(random % 17) - 8;
  if (type.code == TYPE_UINT) return (double)(random % 9);
  if (fill == INTERP_FILL_EIGHTHS) return (double)(random % 17) / 8 - 1;
  return (double)(random >> 11) * 0x1p-52 - 1;
}

void interp_fill(DType type, void *data, int64_t count, uint64_t seed, InterpFill fill) {
  char *place = data;
  int bytes = dtype_bytes(type);
  for (int64_t i = 0; i < count * type.lanes; i++, place += bytes)
    number_store(dtype_lanes(type, 1), place, random_value(type, fill, next_random(&seed)));
}

// Fills with integers from the whole range, or with floats that are sixteenths of it.
static void fill_range(DType type, void *data, int64_t count, uint64_t seed, InterpRange range) {
  int bytes = dtype_bytes(type);
  double steps = dtype_is_float(type) ? 16 : range.high - range.low;
  for (int64_t i = 0; i < count * type.lanes; i++) {
    double step = (double)(next_random(&seed) >> 32) * 0x1p-32 * (steps + 1);
    double value = range.low + floor(step) * (range.high - range.low) / steps;
    number_store(dtype_lanes(type, 1), (char *)data + i * bytes, value);
  }
}

// ---- Shapes -----------------------------------------------------------------------------------

static bool size_of_var(const Expr *e, const InterpSize *sizes, int count, int64_t *value) {
  for (int i = 0; i < count; i++)
    if (sizes[i].var == e) return *value = sizes[i].value, true;
  return false;
}

static bool extent_value(Context *context, const Expr *e, const InterpSize *sizes, int count,
                         int64_t *value) {
  if (expr_as_int(e, value)) return true;
  Map map = map_new(&context->scratch);
  for (int i = 0; i < count; i++)
    map_put(&map, sizes[i].var, expr_int(context, sizes[i].var->type, sizes[i].value));
  return expr_as_int(substitute_expr(context, (Expr *)e, &map), value);
}

bool interp_param_shape(Context *context, const PrimFunc *func, int param, const InterpSize *sizes,
                        int size_count, int64_t *shape) {
  const Buffer *buffer = func->buffers[param];
  for (int i = 0; i < buffer->rank; i++) {
    if (!extent_value(context, buffer->shape[i], sizes, size_count, &shape[i]))
      return diag_error(context, func->pos, "the extent of axis %d of %s is not given", i,
                        buffer->name);
    if (shape[i] < 0 || shape[i] > INT32_MAX)
      return diag_error(context, func->pos,
                        "axis %d of %s has extent %lld, which is not in [0, 2^31)", i, buffer->name,
                        (long long)shape[i]);
  }
  return true;
}

// ---- Arguments --------------------------------------------------------------------------------

typedef struct ResultComparison {
  Context *context;
  Arena *arena;
  const PrimFunc *a, *b;
  const InterpCompare *options;
  InterpTensor *args_a, *args_b; // the same values; args_b in b's layouts
  int count;
} ResultComparison;

static bool make_scalar(ResultComparison *c, int i, InterpTensor *arg) {
  const Expr *var = c->a->params[i];
  int64_t value = 1;
  size_of_var(var, c->options->sizes, c->options->size_count, &value);
  *arg = (InterpTensor){.type = var->type, .data = arena_alloc(c->arena, 16)};
  number_store(var->type, arg->data, (double)value);
  return true;
}

// The strides of an argument. The gaps that strides leave are filled and compared like elements.
static bool param_strides(ResultComparison *c, const Buffer *buffer, InterpTensor *arg) {
  int64_t *strides = arena_array(c->arena, int64_t, buffer->rank);
  arg->strides = buffer->strides ? strides : NULL;
  for (int i = 0; buffer->strides && i < buffer->rank; i++)
    if (!extent_value(c->context, buffer->strides[i], c->options->sizes, c->options->size_count,
                      &strides[i]))
      return diag_error(c->context, c->a->pos, "the stride of axis %d of %s is not given", i,
                        buffer->name);
  return true;
}

// An offset that is a variable of unknown value is 0.
static bool param_offset(ResultComparison *c, const Buffer *buffer, InterpTensor *arg) {
  const InterpCompare *options = c->options;
  bool known =
      extent_value(c->context, buffer->offset, options->sizes, options->size_count, &arg->offset);
  if (!known) arg->offset = 0;
  return (arg->offset >= 0 && (known || buffer->offset->op == EXPR_VAR)) ||
         diag_error(c->context, c->a->pos, "the offset of %s is not given, or is negative",
                    buffer->name);
}

static bool make_argument(ResultComparison *c, int i, InterpTensor *arg) {
  const Buffer *buffer = c->a->buffers ? c->a->buffers[i] : NULL;
  const InterpCompare *options = c->options;
  if (!buffer) return make_scalar(c, i, arg);
  int64_t *shape = arena_array(c->arena, int64_t, buffer->rank);
  *arg = (InterpTensor){.type = buffer->type, .rank = buffer->rank, .shape = shape};
  if (!interp_param_shape(c->context, c->a, i, options->sizes, options->size_count, shape))
    return false;
  if (!param_strides(c, buffer, arg) || !param_offset(c, buffer, arg)) return false;
  int64_t bytes = interp_tensor_bytes(arg);
  arg->data = arena_alloc(c->arena, (size_t)bytes + 64);
  int64_t size = (int64_t)dtype_bytes(arg->type) * arg->type.lanes;
  uint64_t seed = options->seed + 977 * (uint64_t)i;
  InterpRange range = options->ranges ? options->ranges[i] : (InterpRange){0, 0};
  if (range.low < range.high)
    fill_range(arg->type, arg->data, bytes / size, seed, range);
  else
    interp_fill(arg->type, arg->data, bytes / size, seed, options->fill);
  return true;
}

static InterpTensor copy_argument(ResultComparison *c, int i) {
  const InterpTensor *from = &c->args_a[i];
  if (c->options->pack && from->rank) return c->options->pack(c->options->env, c->arena, i, from);
  InterpTensor copy = *from;
  size_t bytes = (size_t)interp_tensor_bytes(from);
  copy.data = arena_alloc(c->arena, bytes + 64);
  memcpy(copy.data, from->data, bytes);
  return copy;
}

// Nobody knows what memory a bare handle points to.
static bool check_handle(const ResultComparison *c, int param) {
  bool has_buffer = c->a->buffers && c->a->buffers[param];
  if (has_buffer || c->a->params[param]->type.code != TYPE_HANDLE) return true;
  return diag_error(c->context, c->a->pos, "argument %d is a bare handle, not a tensor or a scalar",
                    param);
}

static bool make_arguments(ResultComparison *c) {
  c->count = c->a->param_count;
  c->args_a = arena_array(c->arena, InterpTensor, c->count);
  c->args_b = arena_array(c->arena, InterpTensor, c->count);
  for (int i = 0; i < c->count; i++) {
    if (!check_handle(c, i) || !make_argument(c, i, &c->args_a[i])) return false;
    c->args_b[i] = copy_argument(c, i);
  }
  return true;
}

static bool run_both(ResultComparison *c) {
  const InterpCompare *o = c->options;
  if (!interp_run(c->context, o->module_a, c->a, c->args_a, c->count, &o->options)) return false;
  if (o->run_b) return o->run_b(o->env, c->args_b, c->count);
  return interp_run(c->context, o->module_b, c->b, c->args_b, c->count, &o->options);
}

// ---- Differences ------------------------------------------------------------------------------

static bool same_special(double a, double b) {
  return (isnan(a) && isnan(b)) || (isinf(a) && a == b);
}

static void compare_element(const InterpCompare *options, double scale, double expected,
                            double actual, int param, int64_t index, InterpDifference *d) {
  if (expected == actual || same_special(expected, actual)) return;
  double error = fabs(expected - actual);
  double relative = error / fmax(fabs(expected), scale);
  if (!isfinite(error)) error = relative = INFINITY;
  if (!(error <= options->atol + options->rtol * fabs(expected))) d->mismatches++;
  d->max_abs = fmax(d->max_abs, error);
  if (relative <= d->max_rel) return;
  d->max_rel = relative;
  d->param = param;
  d->index = index;
  d->expected = expected;
  d->actual = actual;
}

static double largest(DType type, const char *data, int64_t count) {
  double result = 0;
  int bytes = dtype_bytes(type);
  for (int64_t i = 0; i < count; i++) {
    double value = fabs(number_load(type, data + i * bytes));
    if (isfinite(value)) result = fmax(result, value);
  }
  return result;
}

static void compare_argument(ResultComparison *c, int param, InterpDifference *difference) {
  const InterpTensor *expected = &c->args_a[param];
  InterpTensor actual = c->args_b[param];
  DType type = dtype_lanes(expected->type, 1);
  int bytes = dtype_bytes(type);
  int64_t count = interp_tensor_bytes(expected) / bytes;
  if (c->options->unpack && expected->rank) {
    actual = *expected;
    actual.data = arena_alloc(c->arena, (size_t)(count * bytes) + 64);
    c->options->unpack(c->options->env, param, &c->args_b[param], &actual);
  }
  double scale = fmax(1e-3 * largest(type, expected->data, count), 1e-30);
  for (int64_t i = 0; i < count; i++)
    compare_element(c->options, scale, number_load(type, (char *)expected->data + i * bytes),
                    number_load(type, (char *)actual.data + i * bytes), param, i, difference);
}

bool interp_compare(Context *context, const PrimFunc *a, const PrimFunc *b,
                    const InterpCompare *compare, InterpDifference *difference) {
  ArenaMark mark = arena_mark(&context->scratch);
  ResultComparison comparison = {context, &context->scratch, a, b, compare};
  *difference = (InterpDifference){0};
  bool done = make_arguments(&comparison) && run_both(&comparison);
  for (int i = 0; done && i < comparison.count; i++) compare_argument(&comparison, i, difference);
  arena_reset(&context->scratch, mark);
  return done && !difference->mismatches;
}

const char *interp_difference_text(Arena *arena, const PrimFunc *func, const InterpDifference *d) {
  const Buffer *buffer = func->buffers ? func->buffers[d->param] : NULL;
  Text text = text_new(arena);
  int64_t shape[16], index = d->index;
  text_printf(&text, "parameter %d (%s) at ", d->param,
              buffer ? buffer->name : func->params[d->param]->as.var->name);
  if (buffer && buffer->rank <= 16 && buffer_static_shape(buffer, shape)) {
    int64_t at[16];
    for (int i = buffer->rank - 1; i >= 0; index /= shape[i--]) at[i] = index % shape[i];
    for (int i = 0; i < buffer->rank; i++)
      text_printf(&text, "%s%lld", i ? ", " : "[", (long long)at[i]);
    text_puts(&text, buffer->rank ? "]" : "[]");
  } else {
    text_printf(&text, "element %lld", (long long)index);
  }
  text_printf(&text, ": expected %.9g, got %.9g (%lld elements differ)", d->expected, d->actual,
              (long long)d->mismatches);
  return text_string(&text);
}
