// SPDX-License-Identifier: Apache-2.0
// Finds into how many chunks a parallel region is worth cutting. Another thread costs
// `region_cycles` of the machine, so a chunk must have at least that much work:
//
//   chunks = max(1, min(iterations, cycles of the region / region_cycles))
//
// The cycles are those of the operations in the loops, of their loads and stores, or of the memory
// that they touch, whichever is most. Sizes that only a call knows stay variables of the result.
// Where a loop's length is not known at all, each iteration may be a chunk.
#include "base/cost_model.h"
#include "lower/pass.h"

// count * sizes; sizes NULL: 1.
typedef struct WorkTerm {
  Expr *sizes;
  double count;
} WorkTerm;
typedef Array(WorkTerm) WorkSum;

typedef struct Traffic { // of the memory behind one data variable
  Expr *data;
  const Buffer *buffer;
  WorkSum bytes;
} Traffic;

typedef struct RegionWork {
  Context *context;
  const HostMachine *machine;
  const CostModel *model;
  Analyzer *analyzer;
  Map known;             // scalar parameters and symbolic sizes
  Map allocated;         // data variables of memory that the region allocates
  Array(WorkTerm) trips; // how often each open loop and branch runs, the outermost first
  Map seen;       // expression → the body in which it was counted, because it is computed once
  uintptr_t body; // increases with each loop and branch that opens or closes
  WorkSum operations, accesses; // in cycles
  Map traffic_of;               // data variable → Traffic*
  PtrArray traffic;
  bool unknown; // a loop has no bound
} RegionWork;

// ---- Sums

static void sum_add(Arena *arena, WorkSum *sum, WorkTerm term) {
  for (int i = 0; i < sum->count; i++)
    if (sum->items[i].sizes == term.sizes) {
      sum->items[i].count += term.count;
      return;
    }
  array_push(arena, sum, term);
}

static Expr *sum_value(Context *context, const WorkSum *sum) {
  const double most = 1e15; // so that sums and products of a few sizes stay in int64
  Expr *value = expr_int(context, DTYPE_INT64, 0);
  for (int i = 0; i < sum->count; i++) {
    double count = MIN_OF(sum->items[i].count + 0.5, most);
    Expr *term = expr_int(context, DTYPE_INT64, (int64_t)count);
    if (sum->items[i].sizes) term = expr_mul(context, sum->items[i].sizes, term);
    value = expr_add(context, value, term);
  }
  return value;
}

static WorkTerm times(const RegionWork *work, double count) {
  WorkTerm term = array_last(&work->trips);
  term.count *= count;
  return term;
}

// ---- Instructions

static double vectors_of(const RegionWork *work, DType type) {
  double bytes = (double)dtype_bytes(type) * (type.lanes & ~DTYPE_SCALABLE);
  return MAX_OF(1, bytes / work->machine->vector_bytes);
}

static void add_traffic(RegionWork *work, const Buffer *buffer, DType type) {
  Arena *arena = &work->context->scratch;
  if (map_contains(&work->allocated, buffer->data)) return;
  Traffic *traffic = map_find(&work->traffic_of, buffer->data);
  if (!traffic) {
    traffic = arena_new(arena, Traffic);
    *traffic = (Traffic){.data = buffer->data, .buffer = buffer};
    map_put(&work->traffic_of, buffer->data, traffic);
    array_push(arena, &work->traffic, traffic);
  }
  sum_add(arena, &traffic->bytes, times(work, (double)dtype_bytes(type) * type.lanes));
}

// Cycles to load or store a value; a lane each where the index is no ramp of stride 1.
static double access_cycles(const RegionWork *work, DType type, const Expr *index) {
  const CostModel *model = work->model;
  bool apart = index->type.lanes > 1 && !(index->op == EXPR_RAMP && expr_is_int(index->args[1], 1));
  return (apart ? index->type.lanes * model->lane_loads : vectors_of(work, type)) /
         model->loads_a_cycle;
}

static void add_access(RegionWork *work, const Buffer *buffer, DType type, const Expr *index) {
  if (buffer_is_local(buffer)) return;
  add_traffic(work, buffer, type);
  sum_add(&work->context->scratch, &work->accesses, times(work, access_cycles(work, type, index)));
}

static bool is_fused(const RegionWork *work, const Expr *e) {
  return work->machine->fma && e->op == EXPR_ADD && dtype_is_float(e->type) &&
         (e->args[0]->op == EXPR_MUL || e->args[1]->op == EXPR_MUL);
}

static double operations_of(const RegionWork *work, const Expr *e) {
  switch (op_table[e->op].class) {
  case OP_LEAF:
  case OP_MEMORY:
  case OP_VECTOR: return 0;
  case OP_MATH: return work->model->function_operations;
  case OP_ARITH:
  case OP_COMPARE:
  case OP_LOGIC:
  case OP_BIT:
  case OP_CHOICE:
  case OP_OTHER: break;
  }
  return is_fused(work, e) ? 0 : 1;
}

static bool enter_expr(Visitor *visitor, Expr *e) {
  RegionWork *work = visitor->env;
  if (!e->count || map_find(&work->seen, e) == (void *)work->body) return false;
  map_put(&work->seen, e, (void *)work->body);
  if (e->op == EXPR_LOAD) {
    add_access(work, e->as.buffer, e->type, e->args[e->count - 1]);
    return false;
  }
  double operations = operations_of(work, e) * vectors_of(work, e->type);
  if (operations > 0)
    sum_add(&work->context->scratch, &work->operations,
            times(work, operations / work->model->operations_a_cycle));
  return true;
}

// ---- Statements

static bool enter_unknown(Visitor *visitor, Expr *e) {
  const void **env = visitor->env;
  if (e->op == EXPR_LOAD || (e->op == EXPR_VAR && !map_contains(env[0], e))) env[1] = e;
  return true;
}

// Whether a call knows the value before the region starts.
static bool is_known(const RegionWork *work, Expr *e) {
  const void *env[2] = {&work->known, NULL};
  Visitor visitor = {.env = env, .enter_expr = enter_unknown};
  visit_expr(&visitor, e);
  return !env[1] && expr_is_pure(e);
}

static WorkTerm times_extent(RegionWork *work, Expr *extent) {
  int64_t low, high;
  if (expr_as_int(extent, &high)) return times(work, (double)MAX_OF(high, 0));
  WorkTerm term = times(work, 1);
  if (is_known(work, extent)) {
    Expr *zero = expr_int(work->context, DTYPE_INT64, 0);
    extent = expr_max(work->context, expr_cast(work->context, DTYPE_INT64, extent), zero);
    term.sizes = term.sizes ? expr_mul(work->context, term.sizes, extent) : extent;
    return term;
  }
  work->unknown |= !analyzer_const_bounds(work->analyzer, extent, &low, &high);
  if (!work->unknown) term.count *= (double)MAX_OF(high, 0);
  return term;
}

static void open(RegionWork *work, WorkTerm trips) {
  array_push(&work->context->scratch, &work->trips, trips);
  work->body++;
}

static void open_loop(RegionWork *work, const Stmt *s) {
  open(work, times_extent(work, s->as.loop.extent));
  analyzer_bind(work->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
}

static bool enter_stmt(Visitor *visitor, Stmt *s) {
  RegionWork *work = visitor->env;
  if (s->kind == STMT_FOR) open_loop(work, s);
  if (s->kind == STMT_IF) // each of two branches is assumed to run half of the times
    open(work, times(work, s->as.branch.else_body ? 0.5 : 1));
  if (s->kind == STMT_ALLOCATE) map_put(&work->allocated, s->as.allocate.var, s);
  work->unknown |= s->kind == STMT_WHILE;
  if (s->kind != STMT_STORE) return true;
  Expr *value = s->as.store.value;
  add_access(work, s->as.store.buffer, value->type, s->as.store.indices[s->as.store.rank - 1]);
  visit_expr(visitor, value);
  return false;
}

static void leave_stmt(Visitor *visitor, Stmt *s) {
  RegionWork *work = visitor->env;
  if (s->kind != STMT_FOR && s->kind != STMT_IF) return;
  work->trips.count--;
  work->body++;
}

// ---- The whole region

// A buffer is not counted beyond its size, since what is read again is mostly still near the core.
static Expr *touched_bytes(const RegionWork *work, const Traffic *traffic) {
  Context *context = work->context;
  const Buffer *buffer = traffic->buffer;
  Expr *size = expr_int(context, DTYPE_INT64, buffer_element_bytes(buffer));
  for (int i = 0; i < buffer->rank; i++) {
    if (!is_known(work, buffer->shape[i])) return sum_value(context, &traffic->bytes);
    size = expr_mul(context, size, expr_cast(context, DTYPE_INT64, buffer->shape[i]));
  }
  return expr_min(context, sum_value(context, &traffic->bytes), size);
}

// The rate is that of the second-level cache: a region whose data are in the first level has too
// little work for this to matter, and one with more data has enough.
static Expr *memory_cycles_of(const RegionWork *work) {
  Context *context = work->context;
  Expr *bytes = expr_int(context, DTYPE_INT64, 0);
  for (int i = 0; i < work->traffic.count; i++)
    bytes = expr_add(context, bytes, touched_bytes(work, work->traffic.items[i]));
  Expr *rate = expr_int(
      context, DTYPE_INT64,
      (int64_t)MAX_OF(work->machine->vector_bytes * work->model->stream_vectors[MEMORY_L2], 1));
  return expr_floor_div(context, bytes, rate);
}

static Expr *cycles_of(const RegionWork *work) {
  Expr *operations = sum_value(work->context, &work->operations);
  Expr *accesses = sum_value(work->context, &work->accesses);
  return expr_max(work->context, expr_max(work->context, operations, accesses),
                  memory_cycles_of(work));
}

static Expr *chunks_of(RegionWork *work, Stmt *loop, Expr *most) {
  Context *context = work->context;
  Visitor visitor = {
      .env = work, .enter_expr = enter_expr, .enter_stmt = enter_stmt, .leave_stmt = leave_stmt};
  open(work, (WorkTerm){NULL, 1});
  visit_stmt(&visitor, loop);
  if (work->unknown) return most;
  Expr *least = expr_int(context, DTYPE_INT64, work->machine->region_cycles);
  Expr *chunks = expr_floor_div(context, cycles_of(work), least);
  return expr_max(context, expr_min(context, chunks, most), expr_int(context, DTYPE_INT64, 1));
}

Expr *lower_region_chunks(Context *context, const HostMachine *machine, const LowerKernel *kernel,
                          Stmt *loop, Expr *extent) {
  Expr *most = expr_max(context, extent, expr_int(context, DTYPE_INT64, 1));
  if (!machine || machine->region_cycles <= 0 || expr_is_int(most, 1)) return most;
  ArenaMark mark = arena_mark(&context->scratch);
  RegionWork work = {.context = context,
                     .machine = machine,
                     .model = cost_model_of(machine),
                     .analyzer = analyzer_new(context),
                     .known = map_new(&context->scratch),
                     .seen = map_new(&context->scratch),
                     .allocated = map_new(&context->scratch),
                     .traffic_of = map_new(&context->scratch)};
  for (int i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i].kind != LOWER_ARG_TENSOR)
      map_put(&work.known, kernel->args[i].var, kernel->args[i].var);
  Expr *chunks = chunks_of(&work, loop, most);
  arena_reset(&context->scratch, mark);
  return chunks;
}
