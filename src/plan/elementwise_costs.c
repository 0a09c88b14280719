// SPDX-License-Identifier: Apache-2.0
// Predicts the cycles of stages without a reduction as their kernels are scheduled: in vectors
// along the rows that the output shares with all that is read, beside the memory that is moved.
#include "plan/internal.h"

// ---- Memory

// How far apart the elements are that a load reads along an axis, in elements: 1 where they are
// contiguous, 0 where they are the same or not in a line.
static int64_t stride_along(const NestRead *load, int axis) {
  int64_t stride = 0;
  for (int d = 0; d < load->buffer->rank; d++) {
    if (!nest_moves(load, d, axis)) continue;
    if (!load->linear[d] || stride) return 0;
    stride = load->coefficient[d][axis];
  }
  return stride < 0 ? -MAX_OF(stride, -INT64_MAX) : stride;
}

// How many elements memory has for each that a load reads along an axis: the stride, less where
// other axes read what is between, as within the heads of an attention.
static int64_t elements_apart(const Nest *nest, const NestRead *load, int axis) {
  int64_t stride = stride_along(load, axis), run = 1;
  for (int d = 0; d < load->buffer->rank && stride > 1; d++)
    for (int a = 0; a < nest->spatial_count && nest_moves(load, d, axis); a++) {
      int64_t between = a != axis && nest_moves(load, d, a) ? stride_along(load, a) : 0, length;
      if (between >= stride || nest->axes[a].extent < 1) continue;
      if (!linear_fits(between, nest->axes[a].extent - 1, run, 1, &length)) return 1;
      run = length;
    }
  return stride > run ? ceil_div(stride, run) : MIN_OF(stride, 1);
}

// The bytes of the lines that the stage's loads read of a tensor.
static double bytes_loaded(const Planner *p, const Stage *stage, const StageTensor *tensor) {
  const Nest *nest = planner_nest(p, stage);
  double bytes = 0;
  int64_t element = dtype_bytes(tensor->buffer->type), line = p->machine->line_bytes;
  for (int i = 0; nest && i < nest->read_count; i++) {
    int64_t bytes_apart = element;
    if (nest->reads[i].buffer != tensor->buffer) continue;
    for (int a = 0; a < nest->spatial_count; a++) {
      int64_t stride = MIN_OF(elements_apart(nest, &nest->reads[i], a), line);
      if (stride > 1) bytes_apart = MAX_OF(bytes_apart, element * stride);
    }
    bytes += nest->points * (double)MIN_OF(bytes_apart, MAX_OF(line, element));
  }
  return bytes;
}

// The bytes that the stage reads of a tensor with `bytes`: no more than all its loads have.
static double read_bytes(const Planner *p, const Stage *stage, const StageTensor *tensor,
                         double bytes) {
  double loaded = bytes_loaded(p, stage, tensor);
  return loaded > 0 ? MIN_OF(bytes, loaded) : bytes;
}

// The bytes that the stage reads of an entry of its reads.
static double bytes_read(const Planner *p, const Stage *stage, const StageChoice *choice,
                         int read) {
  const StageTensor *tensor = stage->reads.items[read];
  const Candidate *items = p->candidates[tensor->index].items;
  if (read == choice->fused) return 0;
  const Layout *layout = items[MAX_OF(choice->reads[read], 0)].layout;
  return read_bytes(p, stage, tensor, planner_tensor_bytes(tensor, layout));
}

// The cycles in which the kernel of the stage moves what the stage reads and writes.
static double memory_cost(const Planner *p, const Stage *stage, const StageChoice *choice) {
  const Candidate *output = &p->candidates[stage->output->index].items[choice->output];
  double written = choice->fused < 0 ? output->bytes : 0, moved = written;
  for (int i = 0; i < stage->reads.count; i++) moved += bytes_read(p, stage, choice, i);
  double cycles = planner_write_cost(p, written, moved);
  for (int i = 0; i < stage->reads.count; i++)
    cycles +=
        planner_read_cost(p, bytes_read(p, stage, choice, i), planner_passed(p, stage, i), moved);
  return cycles;
}

// ---- Transforms of tiles

double planner_transform_cycles(const Planner *p, const TeStage *te) {
  if (!te->transform) return 0;
  const Buffer *output = te->output;
  double elements = nest_buffer_bytes(output) / dtype_bytes(output->type);
  return elements / machine_lanes(p->machine, output->type) * te->transform->operations /
         cost_model_of(p->machine)->operations_a_cycle;
}

bool planner_transform_waits(const Planner *p, const TeStage *te) {
  return te->transform && te->transform->streams > cost_model_of(p->machine)->most_streams;
}

// Does the output in this candidate have vectors along an axis that chooses no formula?
static bool has_vectors(const Planner *p, const Stage *stage, int output) {
  const LayoutWalk *walk = p->candidates[stage->output->index].items[output].walk;
  const WalkDigit *last = walk && walk->count ? &walk->digits[walk->count - 1] : NULL;
  return last && last->cut == 1 && !(stage->te->transform->axes >> last->axis & 1) &&
         last->extent >= machine_lanes(p->machine, stage->output->buffer->type);
}

// The arithmetic of a transform of tiles, which takes as many times longer as vectors have elements
// where there are none, or where its operands are gathered. It waits for memory where a tile is in
// more places than the prefetcher follows.
static double transform_cost(const Planner *p, const Stage *stage, const StageChoice *choice) {
  bool vectors = stage->te->transform && has_vectors(p, stage, choice->output);
  for (int i = 0; i < stage->reads.count; i++) vectors &= choice->reads[i] != READ_ANY;
  double cycles = planner_transform_cycles(p, stage->te);
  if (!vectors) cycles *= machine_lanes(p->machine, stage->output->buffer->type);
  return planner_transform_waits(p, stage->te) ? cycles + memory_cost(p, stage, choice) : cycles;
}

// ---- Rows

// The elements of a vector of the widest type that the stage loads or stores.
static int64_t lanes_of(const Planner *p, const Stage *stage) {
  int lanes = machine_lanes(p->machine, stage->output->buffer->type);
  for (int i = 0; i < stage->reads.count; i++) {
    const StageTensor *tensor = stage->reads.items[i];
    lanes = MIN_OF(lanes, machine_lanes(p->machine, tensor->buffer->type));
  }
  return lanes;
}

// The digits of the output that run as one loop: those of `walk` from the number `first` on.
typedef struct RowDigits {
  const LayoutWalk *walk;
  int first;
} RowDigits;

// Is the load contiguous along the digits together, or does none of them move it?
static bool load_is_flat(const Nest *nest, const NestRead *load, const RowDigits *row,
                         bool walked) {
  bool moved = false, whole = walked;
  for (int i = row->first; i < row->walk->count; i++) {
    int axis = nest->output_axis[row->walk->digits[i].axis];
    if (axis < 0 || nest->axes[axis].extent == 1) continue;
    int d = nest_dimension_of(nest, load, axis);
    moved |= nest_depends(load, axis);
    whole &= d >= 0 && expr_is_int(load->buffer->shape[d], nest->axes[axis].extent);
  }
  return !moved || whole;
}

// Are all elements that the stage loads of its entry `read` contiguous along the digits, or the
// same? A tensor that is read in place or as a view is, where both are walked alike.
static bool read_is_flat(const Planner *p, const Stage *stage, const StageChoice *choice, int read,
                         const RowDigits *row) {
  const StageTensor *tensor = stage->reads.items[read];
  const Nest *nest = planner_nest(p, stage);
  if (read == choice->fused || planner_is_in_place(p, stage, read)) return true;
  int number = choice->reads[read];
  bool walked =
      tensor->data || (number >= 0 && planner_walks_alike(p, stage, read, number, choice->output));
  if (walked && planner_is_bijective(p, stage, read)) return true;
  for (int i = 0; i < nest->read_count; i++)
    if (nest->reads[i].buffer == tensor->buffer &&
        !load_is_flat(nest, &nest->reads[i], row, walked))
      return false;
  return true;
}

static bool is_flat(const Planner *p, const Stage *stage, const StageChoice *choice,
                    const RowDigits *row) {
  for (int i = 0; i < stage->reads.count; i++)
    if (!read_is_flat(p, stage, choice, i, row)) return false;
  return true;
}

static int64_t digits_extent(const RowDigits *row) {
  int64_t extent = 1;
  for (int i = row->first; i < row->walk->count; i++) extent *= row->walk->digits[i].extent;
  return extent;
}

// Finds the digits along which a loop of the kernel runs: the innermost, and as many more as are
// contiguous with it in all that is read, until they make whole vectors (autosched_elementwise).
static RowDigits find_row(const Planner *p, const Stage *stage, const StageChoice *choice) {
  const LayoutWalk *walk = p->candidates[stage->output->index].items[choice->output].walk;
  RowDigits row = {walk, walk ? walk->count : 0};
  int64_t lanes = lanes_of(p, stage);
  while (row.first && digits_extent(&row) % lanes) {
    row.first--;
    if (digits_extent(&row) == walk->digits[row.first].extent) continue;
    if (is_flat(p, stage, choice, &row)) continue;
    row.first++;
    break;
  }
  return row;
}

// How many loads read the same element in a whole row, before which they are done.
static double loads_outside_rows(const Planner *p, const Stage *stage, const RowDigits *row) {
  const Nest *nest = planner_nest(p, stage);
  double count = 0;
  for (int i = 0; i < nest->read_count; i++) {
    bool moved = false;
    for (int k = row->first; k < row->walk->count; k++) {
      int axis = nest->output_axis[row->walk->digits[k].axis];
      moved |= axis >= 0 && nest_depends(&nest->reads[i], axis);
    }
    count += !moved;
  }
  return count;
}

// ---- Loads that are no vectors

// Does the kernel load all elements of its entry `read` as its output is walked along axis `axis`,
// or in another way that the cost of its delivery has?
static bool is_delivered(const Planner *p, const Stage *stage, const StageChoice *choice, int read,
                         int axis) {
  const PlanRelation *r = planner_relation(p, stage, read);
  if (read == choice->fused || planner_is_in_place(p, stage, read)) return true;
  return r ? !(r->relation.loose >> axis & 1) : choice->reads[read] == READ_ANY;
}

// The loops in which a kernel of elementwise stages loads, in vectors along one axis.
typedef struct LoadLoops {
  const Nest *nest;
  int axis;      // of the nest, along which rows run; -1: none
  int dimension; // of the output, whose index that axis is
  double lanes, points, steps, rows;
} LoadLoops;

// Is the load's only index that moves along the rows an axis modulo a number of whole vectors?
static bool wraps_in_vectors(const LoadLoops *loops, const NestRead *load) {
  int64_t period;
  int last = load->buffer->rank - 1;
  const Expr *index = load->indices[last];
  for (int d = 0; d < last; d++)
    if (nest_moves(load, d, loops->axis)) return false;
  return index->op == EXPR_FLOOR_MOD && index->args[0] == loops->nest->axes[loops->axis].var &&
         expr_as_int(index->args[1], &period) && period % (int64_t)loops->lanes == 0;
}

// Is the load's only index that moves along the rows an axis divided by a number by which vectors
// divide? Each element is then repeated within a vector, or all over it.
static bool repeats_in_vectors(const LoadLoops *loops, const NestRead *load) {
  int64_t by;
  int last = load->buffer->rank - 1, lanes = (int)loops->lanes;
  const Expr *index = load->indices[last];
  for (int d = 0; d < last; d++)
    if (nest_moves(load, d, loops->axis)) return false;
  return index->op == EXPR_FLOOR_DIV && index->args[0] == loops->nest->axes[loops->axis].var &&
         expr_as_int(index->args[1], &by) && (lanes % by == 0 || by % lanes == 0);
}

// The share of the cycles of elements that are loaded by themselves which rows shorter than a
// vector take when they are shuffled.
static const double SHUFFLED_SHARE = 0.6;

// The cycles beside those of a vector's load for the elements that a load reads along the rows.
static double cycles_along(const Planner *p, const NestRead *load, const LoadLoops *loops) {
  const CostModel *costs = cost_model_of(p->machine);
  if (loops->axis < 0 || !nest_depends(load, loops->axis)) return 0;
  int64_t stride = stride_along(load, loops->axis);
  if (stride == 1 || wraps_in_vectors(loops, load)) return 0;
  double shuffle = loops->steps * costs->shuffle_loads / costs->loads_a_cycle;
  if (!stride && repeats_in_vectors(loops, load)) return shuffle;
  if (!stride) return loops->points * costs->divided_cycles;
  double shuffles = (double)stride * shuffle, apart = loops->points * costs->apart_cycles[0];
  return stride <= MOST_SHUFFLED_STRIDE ? MIN_OF(shuffles, apart * SHUFFLED_SHARE) : apart;
}

// Does an index of the load follow an axis other than that of the rows, but not linearly?
static bool divides_rows(const NestRead *load, const LoadLoops *loops) {
  for (int d = 0; d < load->buffer->rank; d++)
    for (int a = 0; !load->linear[d] && a < loops->nest->spatial_count; a++)
      if (a != loops->axis && load->uses[d][a]) return true;
  return false;
}

// The cycles beside those of vectors' loads for all elements that are not contiguous along the
// rows, and for the indices of the rows.
static double apart_loads(const Planner *p, const Stage *stage, const StageChoice *choice,
                          const LoadLoops *loops) {
  double cycles = 0;
  for (int j = 0; j < stage->reads.count; j++) {
    const StageTensor *tensor = stage->reads.items[j];
    if (is_delivered(p, stage, choice, j, loops->dimension)) continue;
    for (int i = 0; i < loops->nest->read_count; i++) {
      const NestRead *load = &loops->nest->reads[i];
      if (load->buffer != tensor->buffer) continue;
      cycles += cycles_along(p, load, loops);
      if (divides_rows(load, loops))
        cycles += loops->rows * cost_model_of(p->machine)->index_cycles;
    }
  }
  return cycles;
}

// ---- Arithmetic of stages without a reduction

// The cycles of the operations in vectors of a stage of the graph, which are those of the first
// stage whose loops are equal; -1: it has a reduction or no nest.
static double vector_operations(const Planner *p, const Stage *stage) {
  const Nest *nest = planner_nest(p, p->kinds[stage->index]);
  if (!nest || nest->axis_count > nest->spatial_count) return -1;
  return nest->points / (double)lanes_of(p, stage) * nest->work.operations /
         cost_model_of(p->machine)->operations_a_cycle;
}

double planner_operations_along(const Planner *p, const Stage *stage, int64_t row) {
  const Nest *nest = planner_nest(p, stage);
  if (!nest) return 0;
  double steps = nest->points / (double)MAX_OF(row, 1) * nest_vector_steps(row, lanes_of(p, stage));
  const OpWork *work = &nest->work;
  double operations = steps * (work->operations + work->guards) + nest->points * work->lane_work;
  return MAX_OF(operations, steps * work->divisions) /
         cost_model_of(p->machine)->operations_a_cycle;
}

double planner_chain_arithmetic(const Planner *p, const Stage *stage) {
  enum { LONGEST = 8 };
  double cycles = 0;
  for (int i = 0; i < LONGEST; i++) {
    double own = vector_operations(p, stage);
    if (own < 0) break;
    cycles += own;
    const StageTensor *output = stage->output; // whose users may be ways of one reader
    if (planner_most_readers(output) - output->is_output != 1) break;
    stage = output->users.items[0];
  }
  return cycles;
}

// The stage's own work. By itself it loads and stores vectors; fused with the producer of a tensor,
// it has them in registers, in the rows of a group that the choice has. Sets the length of the rows
// in which a kernel of elementwise stages runs.
static KernelWork own_work(const Planner *p, const Stage *stage, StageChoice *choice) {
  const Nest *nest = planner_nest(p, stage);
  if (stage->te->transform) return (KernelWork){.operations = transform_cost(p, stage, choice)};
  if (!nest) return (KernelWork){0};
  const CostModel *costs = cost_model_of(p->machine);
  const OpWork *work = &nest->work;
  double lanes = (double)lanes_of(p, stage), points = nest->points, outside = 0, rows = 0;
  RowDigits row = find_row(p, stage, choice);
  if (row.walk) points = (double)digits_extent(&(RowDigits){row.walk, 0});
  double steps = points / lanes, apart = 0;
  if (!choice->elementwise && choice->row)
    steps = points / (double)choice->row * nest_vector_steps(choice->row, (int64_t)lanes);
  if (choice->elementwise && row.walk) {
    choice->row = digits_extent(&row);
    rows = points / (double)choice->row;
    steps = rows * nest_vector_steps(choice->row, (int64_t)lanes);
    outside = loads_outside_rows(p, stage, &row);
    const WalkDigit *last = walk_row(row.walk);
    int d = last ? last->axis : 0, axis = last ? nest->output_axis[d] : -1;
    apart = apart_loads(p, stage, choice, &(LoadLoops){nest, axis, d, lanes, points, steps, rows});
  }
  double loads = nest->read_count - (choice->fused >= 0),
         operations = steps * (work->operations + work->guards) + nest->points * work->lane_work;
  return (KernelWork){.operations = operations / costs->operations_a_cycle,
                      .divisions = steps * work->divisions / costs->operations_a_cycle,
                      .loads = apart +
                               (steps * (loads - outside) + rows * outside) / costs->loads_a_cycle,
                      .stores = choice->fused < 0 ? steps / costs->row_moves_a_cycle : 0};
}

static KernelWork sum_of(KernelWork a, KernelWork b) {
  return (KernelWork){a.operations + b.operations, a.divisions + b.divisions, a.loads + b.loads,
                      a.stores + b.stores};
}

static double longest(KernelWork work) {
  return MAX_OF(MAX_OF(work.operations, work.divisions), MAX_OF(work.loads, work.stores));
}

static double overlapped_cost(const Planner *p, double arithmetic, double memory) {
  return (double)planner_integer_cost(overlapped_cycles(p->machine, arithmetic, memory));
}

// Sets what the kernel does up to this stage: what all its stages together do as one stage.
static void set_composed_work(Planner *p, const Stage *stage, StageChoice *choice,
                              const StageChoice *host) {
  planner_compose(p, stage, choice, host);
  StageChoice whole = {.output = choice->output, .fused = -1, .elementwise = true};
  whole.reads = (int *)choice->whole_reads;
  choice->work = own_work(p, choice->whole, &whole);
  choice->memory = memory_cost(p, choice->whole, &whole);
  choice->row = whole.row;
}

// Operations, loads, stores and memory overlap in the whole kernel, so a fused stage costs what the
// kernel takes longer with it, whether or not there is a view between the two.
void planner_set_elementwise_cost(Planner *p, const Stage *stage, StageChoice *choice,
                                  const StageChoice *host) {
  KernelWork before = host ? host->work : (KernelWork){0};
  double memory = host ? host->memory : 0;
  if (choice->elementwise) {
    set_composed_work(p, stage, choice, host);
  } else {
    choice->row = host ? host->row : 0;
    choice->work = sum_of(before, own_work(p, stage, choice));
    choice->memory = memory + memory_cost(p, stage, choice);
  }
  choice->cost = overlapped_cost(p, longest(choice->work), choice->memory) -
                 overlapped_cost(p, longest(before), memory);
  if (choice->fused < 0) choice->cost += cost_model_of(p->machine)->call_cycles;
  if (stage->serves) choice->cost = MAX_OF(choice->cost, 1); // it is absent where nothing reads it
}
