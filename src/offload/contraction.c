// SPDX-License-Identifier: Apache-2.0
// Reads contractions off the loops of stages.
#include "offload/contraction.h"

// ---- The value of the stage --------------------------------------------------------------------

// One factor: a load, with the condition under which it is not zero.
typedef struct OffloadFactor {
  const Expr *load, *condition; // condition NULL: always
} OffloadFactor;

static bool is_zero(const Expr *e) {
  return e->op == EXPR_FLOAT ? e->as.f == 0 : e->op == EXPR_INT && e->as.i == 0;
}

static bool factor_of(const Expr *e, OffloadFactor *out) {
  bool choice = (e->op == EXPR_IF_THEN_ELSE || e->op == EXPR_SELECT) && is_zero(e->args[2]);
  *out = (OffloadFactor){choice ? e->args[1] : e, choice ? e->args[0] : NULL};
  return out->load->op == EXPR_LOAD;
}

static bool loads(const Expr *e, const Buffer *buffer) {
  return e->op == EXPR_LOAD && e->as.buffer == buffer;
}

static bool is_float32(const Buffer *buffer) {
  return dtype_equal(buffer->type, DTYPE_FLOAT32);
}

// value = output + a * b, from 0 on
static bool factors_of(const TeStage *te, OffloadFactor *a, OffloadFactor *b) {
  const Expr *value = te->value;
  if (!te->init || !is_zero(te->init) || value->op != EXPR_ADD) return false;
  const Expr *product = loads(value->args[0], te->output) ? value->args[1] : value->args[0];
  if (!loads(product == value->args[1] ? value->args[0] : value->args[1], te->output)) return false;
  return product->op == EXPR_MUL && factor_of(product->args[0], a) &&
         factor_of(product->args[1], b) && a->load->as.buffer != b->load->as.buffer &&
         is_float32(te->output) && is_float32(a->load->as.buffer) && is_float32(b->load->as.buffer);
}

// ---- The axes ----------------------------------------------------------------------------------

typedef struct Matching {
  Context *context;
  const Nest *nest;
  const NestRead *data, *weights;
  const Expr *condition; // of the data
  Contraction *out;
} Matching;

static const NestRead *read_of(const Nest *nest, const Buffer *buffer) {
  for (int i = 0; i < nest->read_count; i++)
    if (nest->reads[i].buffer == buffer) return &nest->reads[i];
  return NULL;
}

// Is index d linear, without terms of groups?
static bool is_plain(const NestRead *read) {
  for (int d = 0; d < read->buffer->rank; d++)
    if (!read->linear[d] || read->group_size[d]) return false;
  return true;
}

// The dimensions of the read that move with the axis.
static int dimensions_with(const NestRead *read, int axis, int *dimension) {
  int count = 0;
  for (int d = 0; d < read->buffer->rank; d++)
    if (read->coefficient[d][axis]) {
      *dimension = d;
      count++;
    }
  return count;
}

static int output_dimension(const Nest *nest, int axis) {
  for (int d = 0; d < nest->output->rank; d++)
    if (nest->output_axis[d] == axis) return d;
  return -1;
}

static int64_t extent_of(const Buffer *buffer, int d) {
  int64_t extent = 0;
  expr_as_int(buffer->shape[d], &extent);
  return extent;
}

static void put(OffloadOperand *operand, int axis) {
  operand->axis[operand->rank] = axis;
  operand->dims[operand->rank++] = axis < 0 ? 1 : extent_of(operand->buffer, axis);
}

// Has the operand each axis of its buffer once, apart from axes of extent 1?
static bool is_whole(const OffloadOperand *operand) {
  for (int d = 0; d < operand->buffer->rank; d++) {
    int found = 0;
    for (int k = 0; k < operand->rank; k++) found += operand->axis[k] == d;
    if (found > 1 || (!found && extent_of(operand->buffer, d) != 1)) return false;
  }
  return true;
}

// The dimension of the read whose index is the axis alone; -1: none.
static int own_dimension(const Matching *m, const NestRead *read, int axis) {
  int d = -1;
  if (dimensions_with(read, axis, &d) != 1 || nest_dimension_of(m->nest, read, axis) != d)
    return -1;
  return d;
}

// ---- Products of matrices ----------------------------------------------------------------------

static bool add_batch(Matching *m, int axis, bool in_data, bool in_weights) {
  Contraction *c = m->out;
  int data = in_data ? own_dimension(m, m->data, axis) : -1,
      weights = in_weights ? own_dimension(m, m->weights, axis) : -1;
  if ((in_data && data < 0) || (in_weights && weights < 0) ||
      c->output.rank + 2 >= CONTRACTION_RANK)
    return false;
  put(&c->data, data);
  put(&c->weights, weights);
  put(&c->output, output_dimension(m->nest, axis));
  return true;
}

// The last axis of the output that only this read moves with; -1: none.
static int last_axis_of(const Matching *m, const NestRead *read, const NestRead *other) {
  for (int a = m->nest->spatial_count - 1; a >= 0; a--)
    if (nest_depends(read, a) && !nest_depends(other, a)) return a;
  return -1;
}

static bool match_product(Matching *m) {
  const Nest *nest = m->nest;
  Contraction *c = m->out;
  int rows = last_axis_of(m, m->data, m->weights), columns = last_axis_of(m, m->weights, m->data);
  if (m->condition || nest->axis_count != nest->spatial_count + 1) return false;
  for (int a = 0; a < nest->spatial_count; a++) {
    bool data = nest_depends(m->data, a), weights = nest_depends(m->weights, a);
    if (a == rows || a == columns || nest->axes[a].extent == 1) continue;
    if (!add_batch(m, a, data, weights)) return false;
  }
  int inner = nest->spatial_count, left = own_dimension(m, m->data, inner),
      right = own_dimension(m, m->weights, inner);
  int row = rows < 0 ? -1 : own_dimension(m, m->data, rows),
      column = columns < 0 ? -1 : own_dimension(m, m->weights, columns);
  if (left < 0 || right < 0 || (rows >= 0 && row < 0) || (columns >= 0 && column < 0)) return false;
  put(&c->data, row);
  put(&c->data, left);
  put(&c->weights, right);
  put(&c->weights, column);
  put(&c->output, rows < 0 ? -1 : output_dimension(nest, rows));
  c->channel = c->output.rank;
  put(&c->output, columns < 0 ? -1 : output_dimension(nest, columns));
  return true;
}

// ---- Convolutions ------------------------------------------------------------------------------

// The axis of a kind with which dimension d of the data moves; -1: none, -2: several.
static int axis_of(const Matching *m, int d, bool reduction) {
  int found = -1;
  for (int a = 0; a < m->nest->axis_count; a++)
    if (m->data->coefficient[d][a] && m->nest->axes[a].reduction == reduction)
      found = found == -1 ? a : -2;
  return found;
}

// The condition's parts that read only these two axes hold exactly where the index is inside.
typedef struct Bounds {
  Expr *vars[2];
  int64_t extents[2], coefficients[2], base, extent;
} Bounds;

static bool part_holds(const Expr *condition, const Bounds *b, const int64_t *at, bool *known) {
  int64_t value;
  if (condition->op == EXPR_AND)
    return part_holds(condition->args[0], b, at, known) &
           part_holds(condition->args[1], b, at, known);
  if (expr_value(condition, b->vars, at, 2, &value)) return value != 0;
  *known = false; // it is about other axes, and is looked at there
  return true;
}

static bool is_condition_of(const Expr *condition, const Bounds *b) {
  for (int64_t y = 0; y < b->extents[0]; y++)
    for (int64_t k = 0; k < b->extents[1]; k++) {
      const int64_t at[] = {y, k};
      bool known = true;
      int64_t index = b->base + y * b->coefficients[0] + k * b->coefficients[1];
      bool inside = index >= 0 && index < b->extent;
      if ((condition ? part_holds(condition, b, at, &known) : true) != inside) return false;
    }
  return true;
}

// Does each part of the condition depend on the axes of one window only?
static bool parts_are_of_windows(const Matching *m, const Expr *condition, const Bounds *windows) {
  if (!condition) return true;
  if (condition->op == EXPR_AND)
    return parts_are_of_windows(m, condition->args[0], windows) &&
           parts_are_of_windows(m, condition->args[1], windows);
  for (int i = 0; i < m->out->space; i++) {
    int64_t value, at[] = {0, 0};
    if (expr_value(condition, windows[i].vars, at, 2, &value)) return true;
  }
  return false;
}

static int weights_dimension(const Matching *m, int axis, bool *taken) {
  int found = -1;
  for (int d = 0; d < m->weights->buffer->rank; d++) {
    bool constant = true;
    for (int a = 0; a < m->nest->axis_count; a++) constant &= !m->weights->coefficient[d][a];
    bool fits = axis < 0 ? constant && extent_of(m->weights->buffer, d) == 1
                         : nest_dimension_of(m->nest, m->weights, axis) == d;
    if (found < 0 && fits && !taken[d]) found = d;
  }
  if (found >= 0) taken[found] = true;
  return found;
}

// Adds a window along dimension d of the data.
static bool add_window(Matching *m, int d, Bounds *bounds) {
  Contraction *c = m->out;
  const Nest *nest = m->nest;
  int place = axis_of(m, d, false), tap = axis_of(m, d, true), i = c->space++;
  if (place < 0 || tap == -2) return false;
  int64_t extent = extent_of(m->data->buffer, d), taps = tap < 0 ? 1 : nest->axes[tap].extent;
  c->stride[i] = m->data->coefficient[d][place];
  c->dilation[i] = tap < 0 ? 1 : m->data->coefficient[d][tap];
  c->before[i] = -m->data->base[d];
  int64_t last = (nest->axes[place].extent - 1) * c->stride[i] + (taps - 1) * c->dilation[i];
  c->after[i] = MAX_OF(last - c->before[i] - extent + 1, 0);
  *bounds = (Bounds){{nest->axes[place].var, nest->axes[tap < 0 ? place : tap].var},
                     {nest->axes[place].extent, taps},
                     {c->stride[i], c->dilation[i]},
                     -c->before[i],
                     extent};
  int64_t places = (extent + c->before[i] + c->after[i] - (taps - 1) * c->dilation[i] - 1);
  return c->stride[i] > 0 && c->dilation[i] > 0 && c->before[i] >= 0 && places >= 0 &&
         places / c->stride[i] + 1 == nest->axes[place].extent &&
         is_condition_of(m->condition, bounds);
}

// The dimension of the data that holds channels: it moves with a reduction axis alone.
static int channel_dimension(const Matching *m) {
  int found = -1;
  for (int d = 0; d < m->data->buffer->rank; d++)
    if (axis_of(m, d, false) == -1 && !m->data->base[d]) found = found == -1 ? d : -2;
  return found;
}

static bool is_batch(const Matching *m, int d) {
  int axis = axis_of(m, d, false);
  return axis >= 0 && axis_of(m, d, true) == -1 && m->data->coefficient[d][axis] == 1 &&
         !m->data->base[d] && extent_of(m->data->buffer, d) == m->nest->axes[axis].extent;
}

static bool match_window(Matching *m) {
  Contraction *c = m->out;
  const Nest *nest = m->nest;
  int rank = m->data->buffer->rank, channels = channel_dimension(m), batch = -1;
  bool taken[TE_MAX_RANK] = {false};
  Bounds windows[CONTRACTION_RANK];
  if (rank < 3 || rank > 5 || m->weights->buffer->rank != rank || nest->output->rank != rank ||
      channels < 0)
    return false;
  for (int d = 0; d < rank && batch < 0; d++)
    if (d != channels && is_batch(m, d)) batch = d;
  int filters = last_axis_of(m, m->weights, m->data), input = axis_of(m, channels, true);
  if (batch < 0 || filters < 0 || input == -2 ||
      (input >= 0 && nest_dimension_of(nest, m->data, input) != channels))
    return false;
  put(&c->data, batch);
  put(&c->data, channels);
  put(&c->weights, weights_dimension(m, filters, taken));
  put(&c->weights, weights_dimension(m, input, taken));
  put(&c->output, output_dimension(nest, axis_of(m, batch, false)));
  put(&c->output, output_dimension(nest, filters));
  c->channel = 1;
  for (int d = 0; d < rank; d++) {
    if (d == batch || d == channels) continue;
    if (!add_window(m, d, &windows[c->space])) return false;
    put(&c->data, d);
    put(&c->weights, weights_dimension(m, axis_of(m, d, true), taken));
    put(&c->output, output_dimension(nest, axis_of(m, d, false)));
  }
  for (int i = 0; i < rank; i++)
    if (c->weights.axis[i] < 0 || c->output.axis[i] < 0) return false;
  return parts_are_of_windows(m, m->condition, windows);
}

// ---- The contraction ---------------------------------------------------------------------------

static Nest *nest_of_stage(Context *context, const Stage *stage) {
  Nest *nest = arena_new(&context->arena, Nest);
  Stmt *s = te_stage_stmt(context, stage->te);
  while (s->kind == STMT_FOR) s = s->as.loop.body;
  return s->kind == STMT_BLOCK && nest_of_block(context, s->as.block, nest) ? nest : NULL;
}

static bool match_factors(Context *context, const Nest *nest, const OffloadFactor *a,
                          const OffloadFactor *b, Contraction *out) {
  Matching m = {
      context,      nest, read_of(nest, a->load->as.buffer), read_of(nest, b->load->as.buffer),
      a->condition, out};
  if (b->condition || !m.data || !m.weights || !is_plain(m.data) || !is_plain(m.weights))
    return false;
  for (int window = 1; window >= 0; window--) {
    *out = (Contraction){.is_window = window, .points = nest->points};
    out->data.buffer = m.data->buffer;
    out->weights.buffer = m.weights->buffer;
    out->output.buffer = nest->output;
    if ((window ? match_window : match_product)(&m) && is_whole(&out->data) &&
        is_whole(&out->weights) && is_whole(&out->output))
      return true;
  }
  return false;
}

bool contraction_match(Context *context, const Stage *stage, Contraction *out) {
  OffloadFactor a, b;
  if (stage->member_count || stage_is_ordered(stage) || !stage_is_reduction(stage) ||
      !factors_of(stage->te, &a, &b))
    return false;
  const Nest *nest = nest_of_stage(context, stage);
  if (!nest || nest->read_count != 2 || nest->points <= 0) return false;
  return match_factors(context, nest, &a, &b, out) || match_factors(context, nest, &b, &a, out);
}

// ---- Operations that follow --------------------------------------------------------------------

static bool is_bias(const Contraction *c, const TeStage *te, const Expr *load) {
  const Buffer *buffer = load->as.buffer;
  int along = c->output.axis[c->channel];
  bool found = false;
  for (int d = 0; d < load->count; d++) {
    bool moves = along >= 0 && load->args[d] == te->indices[along];
    if (moves ? found : !expr_is_int(load->args[d], 0)) return false;
    found |= moves;
    if (extent_of(buffer, d) != (moves ? c->output.dims[c->channel] : 1)) return false;
  }
  return found && is_float32(buffer) && !c->post_count;
}

static bool is_addend(const Contraction *c, const TeStage *te, const Expr *load) {
  const Buffer *buffer = load->as.buffer;
  if (buffer->rank != te->output->rank || !is_float32(buffer)) return false;
  for (int i = 0; i < c->post_count; i++)
    if (c->posts[i].kind == POST_ADD) return false;
  for (int d = 0; d < buffer->rank; d++) {
    bool unit = extent_of(buffer, d) == 1 && expr_is_int(load->args[d], 0);
    if (extent_of(buffer, d) != extent_of(te->output, d)) return false;
    if (load->args[d] != te->indices[d] && !unit) return false;
  }
  return true;
}

static bool add_post(Contraction *c, PostOpKind kind, Buffer *buffer) {
  if (c->post_count == MOST_POST_OPS) return false;
  c->posts[c->post_count++] = (PostOp){kind, buffer};
  return true;
}

static bool take(Contraction *c, const TeStage *te, const Buffer *result, const Expr *e);

static bool take_sum(Contraction *c, const TeStage *te, const Buffer *result, const Expr *e,
                     const Expr *addend) {
  if (addend->op != EXPR_LOAD || addend->as.buffer == result) return false;
  Contraction before = *c;
  if (!take(c, te, result, e)) {
    *c = before;
    return false;
  }
  bool bias = is_bias(c, te, addend);
  if (bias || is_addend(c, te, addend))
    return add_post(c, bias ? POST_BIAS : POST_ADD, addend->as.buffer);
  *c = before;
  return false;
}

// Reads e as operations that follow the result of the contraction.
static bool take(Contraction *c, const TeStage *te, const Buffer *result, const Expr *e) {
  if (e->op == EXPR_LOAD) return e->as.buffer == result;
  if (e->op == EXPR_MAX && (is_zero(e->args[0]) || is_zero(e->args[1])))
    return take(c, te, result, e->args[is_zero(e->args[0])]) && add_post(c, POST_RELU, NULL);
  return e->op == EXPR_ADD && (take_sum(c, te, result, e->args[0], e->args[1]) ||
                               take_sum(c, te, result, e->args[1], e->args[0]));
}

bool contraction_take(Contraction *c, const Stage *follower) {
  Contraction taken = *c;
  if (follower->member_count || stage_is_ordered(follower) || stage_is_reduction(follower) ||
      !is_float32(follower->te->output) ||
      !take(&taken, follower->te, c->output.buffer, follower->te->value))
    return false;
  taken.output.buffer = follower->te->output;
  *c = taken;
  return true;
}
