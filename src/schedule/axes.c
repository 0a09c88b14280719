// SPDX-License-Identifier: Apache-2.0
// Implements the steps that change a buffer's layout axis by axis. Each makes a small index map,
// which the buffer gets as transform_layout gives it any other; the buffer's axis separators stay
// between the axes that they were between.
//   split_axis(b, s, 1, [None, 4])    i, j -> i, j // 4, j % 4
//   fuse_axes(b, s, [0, 1])           i, j -> i * J + j           (J: the extent of j)
//   reorder_axes(b, s, [1, 0])        i, j -> j, i
//   pad_axis(b, s, 1, 4)              i, j -> i, j // 4 * 4 + j % 4
//   swizzle_axes(b, s, 1, 0)          i, j -> i, j ^ i
//   separate_axis(b, s, 1)            i, j -> i, AXIS_SEPARATOR, j
#include "schedule/internal.h"

enum { MOST_AXES = 64 };

// The map that a step makes for the buffer.
typedef struct AxisChange {
  Schedule *schedule;
  Context *context;
  StepCall *call;
  Path path;
  Buffer *buffer;
  const LayoutExpr **shape;
  const LayoutExpr *outputs[MOST_AXES];
  int output_count;
  int separators[MOST_AXES + 1], separator_count;
} AxisChange;

static SourcePos pos_of(const AxisChange *c) {
  return path_end(&c->path)->pos;
}

static bool begin(Schedule *schedule, StepCall *call, AxisChange *c) {
  *c = (AxisChange){.schedule = schedule, .context = schedule->context, .call = call};
  if (!schedule_find_buffer(schedule, call, &c->path, &c->buffer)) return false;
  int rank = c->buffer->rank;
  if (rank > MOST_AXES)
    return schedule_refuse(schedule, pos_of(c), "'%s' has more than %d axes", c->buffer->name,
                           MOST_AXES);
  if (!(c->shape = buffer_layout_shape(schedule, pos_of(c), c->buffer))) return false;
  c->separator_count = c->buffer->separator_count;
  for (int i = 0; i < c->separator_count; i++) c->separators[i] = c->buffer->separators[i];
  return true;
}

// The number of an axis, where negative ones count from the last; false after a refusal.
static bool axis_number(const AxisChange *c, const StepValue *value, int *out) {
  int rank = c->buffer->rank;
  int64_t axis = value->kind == VALUE_INT ? value->as.i : INT64_MIN;
  if (axis < -rank || axis >= rank)
    return value->kind == VALUE_INT
               ? schedule_refuse(c->schedule, pos_of(c), "'%s' has %d axes; there is no axis %lld",
                                 c->buffer->name, rank, (long long)axis)
               : schedule_refuse(c->schedule, pos_of(c), "the number of an axis is an integer");
  *out = (int)(axis < 0 ? axis + rank : axis);
  return true;
}

static const LayoutExpr *operation(const AxisChange *c, LayoutOp op, const LayoutExpr *a,
                                   int64_t number) {
  return layout_expr(c->context, op, a, layout_const(c->context, number), NULL);
}

static void put(AxisChange *c, const LayoutExpr *e) {
  c->outputs[c->output_count++] = e;
}

static void put_axes(AxisChange *c, int from, int to) {
  for (int i = from; i < to; i++) put(c, layout_axis(c->context, i));
}

// Separators behind axis `axis` move by `by`.
static void move_separators(AxisChange *c, int axis, int by) {
  for (int i = 0; i < c->separator_count; i++)
    if (c->separators[i] > axis) c->separators[i] += by;
}

static bool apply(AxisChange *c, const StepValue *padding) {
  const IndexMap *map = index_map_new(c->context, c->buffer->rank, NULL, c->output_count,
                                      c->outputs, NULL, c->separators, c->separator_count);
  StepValue none = {VALUE_NONE};
  return schedule_relayout(c->schedule, c->call, path_end(&c->path), c->buffer, map,
                           padding ? padding : &none);
}

// ---- split_axis ------------------------------------------------------------------------------

// Reads the factors, of which at most one is None; it becomes what the others leave, or stays 0
// when it is the first.
static bool read_factors(const AxisChange *c, int axis, const StepValue *list, int64_t *factors) {
  int64_t product = 1;
  int open = -1, count = list->as.list.count;
  const char *expected = "the factors are positive integers, at most one of them None";
  if (!count || count + c->buffer->rank > MOST_AXES)
    return schedule_refuse(c->schedule, pos_of(c), "the number of factors is 1 to %d",
                           MOST_AXES - c->buffer->rank);
  for (int i = 0; i < count; i++) {
    const StepValue *item = &list->as.list.items[i];
    bool none = item->kind == VALUE_NONE;
    if (none ? open >= 0 : item->kind != VALUE_INT || item->as.i < 1)
      return schedule_refuse(c->schedule, pos_of(c), "%s", expected);
    if (none) open = i;
    factors[i] = none ? 0 : item->as.i;
    if (!none && !mul_fits(product, item->as.i, &product))
      return schedule_refuse(c->schedule, pos_of(c), "the product of the factors is too large");
  }
  const LayoutExpr *extent = c->shape[axis];
  if (open > 0 && extent->op != LAYOUT_CONST)
    return schedule_refuse(c->schedule, pos_of(c),
                           "the extent of axis %d of '%s' is symbolic, so only the first factor "
                           "may be None",
                           axis, c->buffer->name);
  if (open > 0) factors[open] = MAX_OF(ceil_div(extent->value, product), 1);
  return true;
}

bool step_split_axis(Schedule *schedule, StepCall *call) {
  AxisChange c;
  int axis, count = call->args[3].as.list.count;
  int64_t factors[MOST_AXES], cut = 1;
  if (!begin(schedule, call, &c) || !axis_number(&c, &call->args[2], &axis) ||
      !read_factors(&c, axis, &call->args[3], factors))
    return false;
  put_axes(&c, 0, axis);
  c.output_count += count;
  for (int i = count - 1; i >= 0; i--) {
    const LayoutExpr *e = operation(&c, LAYOUT_DIV, layout_axis(c.context, axis), cut);
    c.outputs[axis + i] = factors[i] ? operation(&c, LAYOUT_MOD, e, factors[i]) : e;
    cut *= MAX_OF(factors[i], 1);
  }
  put_axes(&c, axis + 1, c.buffer->rank);
  move_separators(&c, axis, count - 1);
  return apply(&c, &call->args[4]);
}

// ---- fuse_axes -------------------------------------------------------------------------------

// The axes follow one another, and no separator is between them.
static bool read_run(const AxisChange *c, const StepValue *list, int *first) {
  int count = list->as.list.count;
  for (int i = 0; i < count; i++) {
    int axis;
    if (!axis_number(c, &list->as.list.items[i], &axis)) return false;
    if (!i) *first = axis;
    if (axis != *first + i)
      return schedule_refuse(c->schedule, pos_of(c),
                             "the axes must follow one another; use reorder_axes before");
  }
  if (!count) return schedule_refuse(c->schedule, pos_of(c), "no axis is given");
  for (int i = 0; i < c->separator_count; i++)
    if (c->separators[i] > *first && c->separators[i] < *first + count)
      return schedule_refuse(c->schedule, pos_of(c), "an axis separator of '%s' is before axis %d",
                             c->buffer->name, c->separators[i]);
  return true;
}

bool step_fuse_axes(Schedule *schedule, StepCall *call) {
  AxisChange c;
  int first = 0, count = call->args[2].as.list.count;
  if (!begin(schedule, call, &c) || !read_run(&c, &call->args[2], &first)) return false;
  put_axes(&c, 0, first);
  const LayoutExpr *sum = layout_axis(c.context, first);
  for (int i = first + 1; i < first + count; i++) {
    sum = layout_expr(c.context, LAYOUT_MUL, sum, c.shape[i], NULL);
    sum = layout_expr(c.context, LAYOUT_ADD, sum, layout_axis(c.context, i), NULL);
  }
  put(&c, sum);
  put_axes(&c, first + count, c.buffer->rank);
  move_separators(&c, first, 1 - count);
  return apply(&c, NULL);
}

// ---- reorder_axes ----------------------------------------------------------------------------

bool step_reorder_axes(Schedule *schedule, StepCall *call) {
  AxisChange c;
  bool taken[MOST_AXES] = {false};
  if (!begin(schedule, call, &c)) return false;
  const StepValue *order = &call->args[2];
  bool formed = order->as.list.count == c.buffer->rank;
  for (int i = 0, axis; formed && i < c.buffer->rank; i++) {
    if (!axis_number(&c, &order->as.list.items[i], &axis)) return false;
    formed = !taken[axis];
    taken[axis] = true;
    put(&c, layout_axis(c.context, axis));
  }
  if (!formed)
    return schedule_refuse(schedule, pos_of(&c), "the order has each of the %d axes of '%s' once",
                           c.buffer->rank, c.buffer->name);
  return apply(&c, NULL);
}

// ---- pad_axis, swizzle_axes, separate_axis ---------------------------------------------------

bool step_pad_axis(Schedule *schedule, StepCall *call) {
  AxisChange c;
  int axis;
  int64_t multiple = call->args[3].as.i;
  if (!begin(schedule, call, &c) || !axis_number(&c, &call->args[2], &axis)) return false;
  if (multiple < 1)
    return schedule_refuse(schedule, pos_of(&c), "the multiple %lld is not positive",
                           (long long)multiple);
  const LayoutExpr *i = layout_axis(c.context, axis);
  const LayoutExpr *high = operation(&c, LAYOUT_DIV, i, multiple);
  put_axes(&c, 0, c.buffer->rank);
  c.outputs[axis] = layout_expr(c.context, LAYOUT_ADD, operation(&c, LAYOUT_MUL, high, multiple),
                                operation(&c, LAYOUT_MOD, i, multiple), NULL);
  return apply(&c, &call->args[4]);
}

bool step_swizzle_axes(Schedule *schedule, StepCall *call) {
  AxisChange c;
  int axis, by;
  if (!begin(schedule, call, &c) || !axis_number(&c, &call->args[2], &axis) ||
      !axis_number(&c, &call->args[3], &by))
    return false;
  if (axis == by)
    return schedule_refuse(schedule, pos_of(&c), "an axis is swizzled by another one");
  put_axes(&c, 0, c.buffer->rank);
  c.outputs[axis] = layout_expr(c.context, LAYOUT_XOR, c.outputs[axis], c.outputs[by], NULL);
  return apply(&c, &call->args[4]);
}

bool step_separate_axis(Schedule *schedule, StepCall *call) {
  AxisChange c;
  int axis, at;
  if (!begin(schedule, call, &c) || !axis_number(&c, &call->args[2], &axis)) return false;
  if (!axis)
    return schedule_refuse(schedule, pos_of(&c), "no axis of '%s' is before axis 0",
                           c.buffer->name);
  for (at = c.separator_count; at > 0 && c.separators[at - 1] >= axis; at--)
    if (c.separators[at - 1] == axis)
      return schedule_refuse(schedule, pos_of(&c), "axis %d of '%s' is separated already", axis,
                             c.buffer->name);
  for (int i = c.separator_count++; i > at; i--) c.separators[i] = c.separators[i - 1];
  c.separators[at] = axis;
  put_axes(&c, 0, c.buffer->rank);
  return apply(&c, NULL);
}
