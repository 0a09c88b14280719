// SPDX-License-Identifier: Apache-2.0
// Reads the nest of a block for the cost model: its axes, its accesses as linear forms, and how
// accesses move along an axis.
#include "autosched/nest.h"

#include "arith/arith.h"

#include <math.h>
#include <stdlib.h>

typedef struct NestReading {
  Context *context;
  Nest *nest;
  Expr *vars[NEST_MAX_AXES];
  NestRead *reads; // room for NEST_MAX_READS
  bool ok;
} NestReading;

typedef struct Quotient {
  Expr *axis, *by; // axis // by
  Expr *groups;    // the variable that stands for axis // by
  bool several;    // another quotient occurs too
} Quotient;

static Expr *take_quotient(Rewriter *rewriter, Expr *e) {
  Quotient *quotient = rewriter->env;
  if (e->op != EXPR_FLOOR_DIV || e->args[0]->op != EXPR_VAR || e->args[1]->op != EXPR_INT) return e;
  quotient->several |=
      quotient->axis && (quotient->axis != e->args[0] || quotient->by != e->args[1]);
  quotient->axis = e->args[0];
  quotient->by = e->args[1];
  if (!quotient->groups) quotient->groups = expr_var(rewriter->context, "groups", e->type);
  return quotient->groups;
}

// Finds the linear form of an index in which one axis occurs only divided by a constant.
static bool grouped_form(NestReading *reading, NestRead *read, int d, Expr **base) {
  Nest *nest = reading->nest;
  Quotient quotient = {0};
  Rewriter rewriter = {.context = reading->context, .env = &quotient, .expr = take_quotient};
  Expr *index = rewrite_expr(&rewriter, read->indices[d]), *vars[NEST_MAX_AXES + 1];
  int64_t coefficients[NEST_MAX_AXES + 1];
  int count = nest->axis_count;
  if (!quotient.axis || quotient.several || quotient.by->as.i < 1) return false;
  memcpy(vars, reading->vars, sizeof *vars * (size_t)count);
  vars[count] = quotient.groups;
  if (!linear_form(reading->context, index, vars, count + 1, coefficients, base)) return false;
  for (int a = 0; a < nest->spatial_count; a++) {
    if (quotient.axis != vars[a] || coefficients[a]) continue;
    memcpy(read->coefficient[d], coefficients, sizeof *coefficients * (size_t)count);
    read->group_axis[d] = a;
    read->group_size[d] = quotient.by->as.i;
    read->group_step[d] = coefficients[count];
    return true;
  }
  return false;
}

static void add_read(NestReading *reading, Expr *load) {
  Nest *nest = reading->nest;
  for (int i = 0; i < nest->read_count; i++)
    if (reading->reads[i].indices == load->args) return; // the same load
  if (load->as.buffer == nest->output) return;
  if (nest->read_count == NEST_MAX_READS || load->count > TE_MAX_RANK) {
    reading->ok = false;
    return;
  }
  NestRead *read = &reading->reads[nest->read_count++];
  size_t rank = load->count;
  *read = (NestRead){
      .buffer = load->as.buffer,
      .indices = load->args,
      .coefficient = arena_alloc(&reading->context->arena, rank * sizeof *read->coefficient),
      .uses = arena_alloc(&reading->context->arena, rank * sizeof *read->uses),
  };
  for (int d = 0; d < load->count; d++) {
    Expr *base;
    read->linear[d] = linear_form(reading->context, load->args[d], reading->vars, nest->axis_count,
                                  read->coefficient[d], &base) ||
                      grouped_form(reading, read, d, &base);
    if (read->linear[d] && !expr_as_int(base, &read->base[d])) read->base[d] = 1;
    for (int a = 0; a < nest->axis_count && !read->linear[d]; a++)
      read->uses[d][a] = expr_uses(load->args[d], nest->axes[a].var);
  }
}

static void note_guard(Nest *nest, const Expr *condition) {
  nest->conditional = true;
  for (int a = 0; a < nest->axis_count; a++)
    if (expr_uses(condition, nest->axes[a].var)) nest->guard_axes |= 1u << a;
}

static bool enter(Visitor *visitor, Expr *e) {
  NestReading *reading = visitor->env;
  if (e->op == EXPR_LOAD) add_read(reading, e);
  if (e->op == EXPR_IF_THEN_ELSE) note_guard(reading->nest, e->args[0]);
  return e->op != EXPR_LOAD;
}

static bool read_axes(const Block *block, NestReading *reading) {
  Nest *nest = reading->nest;
  nest->points = 1;
  if (block->var_count > NEST_MAX_AXES) return false;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < block->var_count; i++) {
      const BlockVar *v = &block->vars[i];
      bool reduction = v->kind == ITER_REDUCTION;
      if (reduction != (pass == 1)) continue;
      int64_t extent;
      if (!expr_as_int(v->extent, &extent) || !expr_is_int(v->min, 0)) return false;
      reading->vars[nest->axis_count] = v->var;
      nest->axes[nest->axis_count++] = (NestAxis){v->var, extent, reduction};
      nest->spatial_count += !reduction;
      nest->points *= (double)extent;
    }
  return true;
}

bool nest_of_block(Context *context, const Block *block, Nest *nest) {
  *nest = (Nest){.digest = arena_new(&context->arena, NestDigest)};
  NestRead reads[NEST_MAX_READS];
  NestReading reading = {.context = context, .nest = nest, .reads = reads, .ok = true};
  if (block->body->kind != STMT_STORE || !read_axes(block, &reading)) return false;
  const Stmt *store = block->body;
  nest->output = store->as.store.buffer;
  if (store->as.store.rank > TE_MAX_RANK) return false;
  for (int d = 0; d < store->as.store.rank; d++) {
    nest->output_axis[d] = -1;
    for (int a = 0; a < nest->spatial_count; a++)
      if (store->as.store.indices[d] == nest->axes[a].var) nest->output_axis[d] = a;
    if (nest->output_axis[d] < 0 && !expr_is_int(store->as.store.indices[d], 0)) return false;
  }
  Visitor visitor = {.env = &reading, .enter_expr = enter};
  visit_expr(&visitor, store->as.store.value);
  nest->work = expr_op_work(context, store->as.store.value);
  nest->reads =
      arena_copy(&context->arena, reading.reads, sizeof *nest->reads * (size_t)nest->read_count);
  return reading.ok;
}

bool nest_moves(const NestRead *read, int d, int axis) {
  if (!read->linear[d]) return read->uses[d][axis];
  return read->coefficient[d][axis] || (read->group_size[d] && read->group_axis[d] == axis);
}

bool nest_depends(const NestRead *read, int axis) {
  for (int d = 0; d < read->buffer->rank; d++)
    if (nest_moves(read, d, axis)) return true;
  return false;
}

double nest_repeats(const Nest *nest, const NestRead *read, int axis) {
  double extent = (double)nest->axes[axis].extent, repeats = MAX_OF(extent, 1);
  for (int d = 0; d < read->buffer->rank; d++) {
    if (!nest_moves(read, d, axis)) continue;
    bool grouped = read->linear[d] && !read->coefficient[d][axis];
    repeats = MIN_OF(repeats, grouped ? (double)read->group_size[d] : 1);
  }
  return repeats;
}

static bool only_axis(const Nest *nest, const NestRead *read, int d, int axis) {
  if (!read->linear[d] || read->coefficient[d][axis] != 1) return false;
  for (int a = 0; a < nest->axis_count; a++)
    if (a != axis && read->coefficient[d][a]) return false;
  return read->indices[d] == nest->axes[axis].var;
}

int nest_dimension_of(const Nest *nest, const NestRead *read, int axis) {
  int found = -1;
  for (int d = 0; d < read->buffer->rank; d++) {
    if (!nest_moves(read, d, axis)) continue;
    if (found >= 0 || !only_axis(nest, read, d, axis)) return -1;
    found = d;
  }
  return found;
}

int nest_window(const Nest *nest, const NestRead *read, int axis, int *moved_by) {
  for (int d = 0; d < read->buffer->rank; d++)
    for (int a = 0; read->linear[d] && read->coefficient[d][axis] && a < nest->spatial_count; a++)
      if (read->coefficient[d][a]) {
        *moved_by = a;
        return d;
      }
  return -1;
}

int64_t nest_block(const Layout *layout, int d) {
  if (!layout || !layout->map->output_count) return 1;
  const LayoutExpr *e = layout->map->outputs[layout->map->output_count - 1];
  bool digit = e->op == LAYOUT_MOD && e->args[0]->op == LAYOUT_AXIS && e->args[0]->value == d &&
               e->args[1]->op == LAYOUT_CONST;
  return digit ? e->args[1]->value : 1;
}

// Do `lanes` consecutive values of the axis, from a multiple of `lanes` on, start at a multiple of
// `lanes` in dimension `d`?
static bool aligned_along(const Nest *nest, const NestRead *read, int d, int axis, int64_t lanes) {
  for (int a = 0; a < nest->axis_count; a++)
    if (a != axis && read->coefficient[d][a] % lanes) return false;
  if (read->group_size[d] && read->group_step[d] % lanes) return false;
  return read->base[d] % lanes == 0;
}

// Does index `d` move by one with each `group_size` values of the axis, which fill vectors?
static bool repeats(const NestRead *read, int d, int axis, int lanes) {
  return read->group_size[d] && read->group_axis[d] == axis && read->group_step[d] == 1 &&
         !read->coefficient[d][axis] && lanes % read->group_size[d] == 0;
}

NestStep nest_step(Context *context, const Nest *nest, const NestRead *read, const Layout *layout,
                   int axis, int lanes) {
  int moved = -1;
  NestStep found = NEST_CONTIGUOUS;
  for (int d = 0; d < read->buffer->rank; d++) {
    if (!nest_moves(read, d, axis)) continue;
    if (!read->linear[d]) return NEST_STRIDED;
    if (read->group_size[d] && read->group_axis[d] == axis && read->group_size[d] % lanes == 0)
      continue;
    bool repeated = repeats(read, d, axis, lanes);
    if (moved >= 0 || (!repeated && read->coefficient[d][axis] != 1)) return NEST_STRIDED;
    if (repeated) found = NEST_REPEATED;
    if (repeated) lanes /= (int)read->group_size[d];
    moved = d;
  }
  if (moved < 0) return NEST_SAME;
  if (!layout) {
    for (int d = moved + 1; d < read->buffer->rank; d++)
      if (!expr_is_int(read->buffer->shape[d], 1)) return NEST_STRIDED;
    return found;
  }
  int64_t strides[TE_MAX_RANK];
  bool has[TE_MAX_RANK] = {false};
  layout_strides(context, layout, strides, has);
  if (has[moved] && strides[moved] == 1) return found; // whether aligned or not
  bool wide = nest_block(layout, moved) % lanes == 0 &&
              (found == NEST_REPEATED || aligned_along(nest, read, moved, axis, lanes));
  return wide ? found : NEST_STRIDED;
}

int64_t nest_block_along(const Nest *nest, const NestRead *read, const Layout *layout, int axis) {
  int found = -1;
  for (int d = 0; d < read->buffer->rank; d++) {
    if (!nest_moves(read, d, axis)) continue;
    if (found >= 0 || !read->linear[d] || read->coefficient[d][axis] != 1) return 1;
    found = d;
  }
  int64_t block = found < 0 ? 1 : nest_block(layout, found);
  return block > 1 && aligned_along(nest, read, found, axis, block) ? block : 1;
}

int64_t nest_stride(const NestRead *read, const Layout *layout, int axis) {
  int last = read->buffer->rank - 1;
  for (int d = 0; d < last; d++)
    if (nest_moves(read, d, axis)) return 0;
  if (layout || last < 0 || !read->linear[last]) return 0;
  int64_t stride = read->coefficient[last][axis];
  bool grouped = read->group_size[last] && read->group_axis[last] == axis;
  return stride > 1 && stride <= MOST_SHUFFLED_STRIDE && !grouped ? stride : 0;
}

double nest_buffer_bytes(const Buffer *buffer) {
  double bytes = dtype_bytes(buffer->type);
  int64_t extent;
  for (int d = 0; d < buffer->rank; d++)
    if (expr_as_int(buffer->shape[d], &extent)) bytes *= (double)extent;
  return bytes;
}

// The step along a dimension that the layout splits, whose first step is given. Few pieces whose
// elements take turns are streams that the first cache holds, so the step is that of one piece.
static int64_t split_step(const Layout *layout, int d, int64_t first) {
  enum { FEW_STREAMS = 4 };
  int64_t index[TE_MAX_RANK] = {0}, origin, offset;
  if (!layout_offset(layout, index, &origin)) return first;
  for (index[d] = 2; index[d] <= MIN_OF(FEW_STREAMS, layout->extents[d] - 1); index[d]++)
    if (layout_offset(layout, index, &offset) && llabs(offset - origin) < llabs(first))
      return offset - origin;
  return first;
}

void nest_strides(Context *context, const Buffer *buffer, const Layout *layout, int64_t *strides) {
  bool has[TE_MAX_RANK];
  int64_t pitch = 1, extent;
  if (layout) layout_strides(context, layout, strides, has);
  for (int d = buffer->rank - 1; d >= 0; d--) {
    if (!layout) strides[d] = pitch;
    if (layout && !has[d]) strides[d] = strides[d] ? split_step(layout, d, strides[d]) : 1;
    if (expr_as_int(buffer->shape[d], &extent)) pitch *= extent;
  }
}

// The values that index `d` takes: fewer than the dimension has where a stride leaves some out.
static double values_of_index(const Nest *nest, const NestRead *read, int d, int64_t size) {
  double values = 1, span = 1;
  if (!read->linear[d] || read->group_size[d]) return (double)size;
  for (int a = 0; a < nest->axis_count; a++) {
    double steps = (double)nest->axes[a].extent - 1;
    if (read->coefficient[d][a]) values *= steps + 1;
    span += fabs((double)read->coefficient[d][a]) * steps;
  }
  return MIN_OF(MIN_OF(values, span), (double)size);
}

double nest_read_bytes(Context *context, const HostMachine *machine, const Nest *nest,
                       const NestLayouts *layouts, int i) {
  const NestRead *read = &nest->reads[i];
  int64_t strides[TE_MAX_RANK], size;
  double element = dtype_bytes(read->buffer->type), bytes = element;
  nest_strides(context, read->buffer, layouts->packed[i] ? NULL : layouts->reads[i], strides);
  for (int d = 0; d < read->buffer->rank; d++) {
    if (!expr_as_int(read->buffer->shape[d], &size)) continue;
    bool lines = (double)strides[d] * element >= (double)machine->line_bytes;
    bytes *= lines ? values_of_index(nest, read, d, size) : (double)size;
  }
  return bytes;
}

double nest_vector_steps(int64_t extent, int64_t lanes) {
  int64_t width = MAX_OF(lanes, 1); // a processor without vectors
  double steps = (double)(extent / width);
  for (int64_t rest = extent % width; rest; rest &= rest - 1) steps++;
  return steps;
}

double nest_product_operations(const HostMachine *machine, const Nest *nest) {
  const CostModel *costs = cost_model_of(machine);
  if (nest->work.pairs) return 2; // products, and their sum
  if (nest->work.dots) return machine->dot_bytes ? 1 : costs->dot_operations;
  bool is_float = dtype_is_float(nest->output->type);
  double fused = !machine->fma ? 0 : is_float ? 1 : 1 - costs->integer_add_operations;
  return MAX_OF(nest_operations(machine, nest) - fused, 1);
}

double nest_operations(const HostMachine *machine, const Nest *nest) {
  return nest->work.operations + nest->work.lane_work * machine_lanes(machine, nest->output->type);
}

double nest_chain_latency(const CostModel *costs, const Nest *nest) {
  if (nest->work.combine > 1) return costs->checked_latency;
  return nest->work.operations > 1 ? costs->fma_latency : costs->add_latency;
}
