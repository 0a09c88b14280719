// SPDX-License-Identifier: Apache-2.0
// Makes buffers of vectors out of buffers of scalars that are accessed in whole vectors, for
// targets that cannot convert pointers. The name of TVM's pass: PointerValueTypeRewrite.
//
//   A: T.Buffer((16,), "float32")         A_1 = T.decl_buffer((4,), "float32x4", data=A.data)
//   L = T.allocate([16], "float32")   →   L = T.allocate([4], "float32x4")
//   L[i * 4:i * 4 + 4] = A[…]             L[i] = A_1[i]
//   B[i] = L[i * 4 + 1]                   B[i] = T.Shuffle([L[i]], [1])
//
// Memory is rewritten as a whole: every access to it must be such a vector, or a load of one
// element whose lane is constant. Vectors must begin at proved multiples of their lanes. A
// parameter keeps its type, and the body accesses another buffer over its memory (RFC 63).
#include "lower/pass.h"

// The memory of a data variable.
typedef struct Memory {
  int lanes;  // of its vector accesses; 0: none was seen
  bool stays; // an access or another use keeps it as it is
  DType type; // of its buffers
  Expr *data; // the variable after the rewrite
} Memory;

typedef struct VectorBuffers {
  Context *context;
  Analyzer *analyzer;
  Map memory;          // data variable → Memory *
  Map buffers;         // Buffer * → the Buffer * of vectors
  Map params;          // Buffer * of parameters
  PtrArray undeclared; // buffers of vectors over the memory of parameters
} VectorBuffers;

// ---- Which memory

static Memory *memory_of(VectorBuffers *v, const Expr *data) {
  Memory *memory = map_find(&v->memory, data);
  if (memory) return memory;
  memory = arena_new(&v->context->arena, Memory);
  memory->type = DTYPE_VOID;
  memory->data = (Expr *)data;
  map_put(&v->memory, data, memory);
  return memory;
}

static bool has_lane(VectorBuffers *v, Expr *index, int64_t lanes, int64_t *lane) {
  int64_t divisor, rest;
  if (index->type.lanes != 1) return false;
  modular_form(v->analyzer, index, &divisor, &rest);
  *lane = floor_mod(rest, lanes);
  return divisor % lanes == 0;
}

// Notes a buffer over the memory. Those of other types, or with strides, an offset or a last axis
// that vectors do not fill, keep the memory as it is; the last axis is looked at once the lanes are
// known.
static Memory *note_buffer(VectorBuffers *v, const Buffer *b) {
  Memory *memory = memory_of(v, b->data);
  if (memory->type.code == TYPE_VOID) memory->type = b->type;
  bool is_plain = b->rank > 0 && !b->strides && expr_is_int(b->offset, 0) && b->type.lanes == 1 &&
                  !dtype_is_bool(b->type) && b->type.bits >= 8;
  memory->stays |= !is_plain || !dtype_equal(memory->type, b->type);
  return memory;
}

static bool is_plain_ramp(const Expr *e) {
  return e->op == EXPR_RAMP && expr_is_int(e->args[1], 1) && !dtype_is_scalable(e->type) &&
         e->type.lanes <= LOWER_MAX_LANES && (e->type.lanes & (e->type.lanes - 1)) == 0;
}

static void note_access(VectorBuffers *v, const Buffer *b, Expr *const *indices, bool is_load) {
  Memory *memory = note_buffer(v, b);
  Expr *last = b->rank ? indices[b->rank - 1] : NULL;
  if (!last || last->type.lanes == 1) {
    memory->stays |= !is_load;
    return;
  }
  memory->stays |= !is_plain_ramp(last) || (memory->lanes && memory->lanes != last->type.lanes) ||
                   !modular_is_multiple(v->analyzer, last->args[0], last->type.lanes);
  memory->lanes = last->type.lanes;
}

static bool note_expr(Visitor *visitor, Expr *e) {
  VectorBuffers *v = visitor->env;
  if (e->op == EXPR_LOAD) note_access(v, e->as.buffer, e->args, true);
  if (e->op == EXPR_VAR && e->type.code == TYPE_HANDLE) memory_of(v, e)->stays = true;
  if (e->op != EXPR_ADDRESS_OF) return true;
  memory_of(v, e->args[0]->as.buffer->data)->stays = true;
  return true;
}

static bool note_stmt(Visitor *visitor, Stmt *s) {
  VectorBuffers *v = visitor->env;
  if (s->kind == STMT_STORE) note_access(v, s->as.store.buffer, s->as.store.indices, false);
  if (s->kind == STMT_DECL_BUFFER) note_buffer(v, s->as.declare.buffer);
  if (s->kind == STMT_ALLOCATE_CONST) memory_of(v, s->as.allocate_const.var)->stays = true;
  return true;
}

// ---- Do the vectors fill the memory?

static void check_filled(VectorBuffers *v, const Expr *data, DType type, Expr *const *extents,
                         int rank) {
  Memory *memory = memory_of(v, data);
  if (memory->lanes &&
      (rank == 0 || !modular_is_multiple(v->analyzer, extents[rank - 1], memory->lanes) ||
       !dtype_equal(type, memory->type)))
    memory->stays = true;
}

static void check_buffer(VectorBuffers *v, const Buffer *b) {
  check_filled(v, b->data, b->type, b->shape, b->rank);
}

static bool check_lane(Visitor *visitor, Expr *e) {
  VectorBuffers *v = visitor->env;
  int64_t lane;
  if (e->op != EXPR_LOAD) return true;
  Memory *memory = memory_of(v, e->as.buffer->data);
  check_buffer(v, e->as.buffer);
  if (memory->lanes && !memory->stays && e->type.lanes == 1 &&
      !has_lane(v, e->args[e->count - 1], memory->lanes, &lane))
    memory->stays = true;
  return true;
}

static bool check_stmt(Visitor *visitor, Stmt *s) {
  VectorBuffers *v = visitor->env;
  if (s->kind == STMT_STORE) check_buffer(v, s->as.store.buffer);
  if (s->kind == STMT_DECL_BUFFER) check_buffer(v, s->as.declare.buffer);
  if (s->kind == STMT_ALLOCATE)
    check_filled(v, s->as.allocate.var, s->as.allocate.type, s->as.allocate.extents,
                 s->as.allocate.rank);
  return true;
}

// ---- Rewriting

static const Memory *rewritten(const VectorBuffers *v, const Expr *data) {
  const Memory *memory = map_find(&v->memory, data);
  return memory && memory->lanes && !memory->stays ? memory : NULL;
}

static Expr *in_vectors(VectorBuffers *v, Expr *e, int lanes) {
  return analyzer_simplify(v->analyzer,
                           expr_floor_div(v->context, e, expr_int(v->context, e->type, lanes)));
}

// The extents or indices with the last one in vectors.
static Expr **last_in_vectors(VectorBuffers *v, Expr *const *items, int rank, int lanes) {
  Expr **result = arena_copy(&v->context->arena, items, sizeof(Expr *) * (size_t)rank);
  Expr *last = result[rank - 1];
  result[rank - 1] = in_vectors(v, last->op == EXPR_RAMP ? last->args[0] : last, lanes);
  return result;
}

static Buffer *vector_buffer(VectorBuffers *v, Buffer *b, const Memory *memory) {
  Buffer *known = map_find(&v->buffers, b);
  if (known) return known;
  Buffer *next = buffer_copy(v->context, b);
  next->type = dtype_lanes(b->type, memory->lanes);
  next->data = memory->data;
  next->shape = last_in_vectors(v, b->shape, b->rank, memory->lanes);
  next->layout = NULL;
  map_put(&v->buffers, b, next);
  if (map_contains(&v->params, b)) array_push(&v->context->arena, &v->undeclared, next);
  return next;
}

static Expr *vector_load(Rewriter *rewriter, Expr *e) {
  VectorBuffers *v = rewriter->env;
  const Memory *memory = e->op == EXPR_LOAD ? rewritten(v, e->as.buffer->data) : NULL;
  if (!memory || e->as.buffer->type.lanes != 1) return e;
  Expr **indices = last_in_vectors(v, e->args, e->count, memory->lanes);
  Buffer *buffer = vector_buffer(v, e->as.buffer, memory);
  Expr *load = expr_load_like(v->context, e, buffer, indices, e->count);
  int64_t lane = 0;
  if (e->type.lanes > 1) return load;
  has_lane(v, e->args[e->count - 1], memory->lanes, &lane);
  return lower_shuffle(v->context, &load, 1, (int[]){(int)lane}, 1);
}

static Stmt *vector_store(VectorBuffers *v, Stmt *s, const Memory *memory) {
  Stmt *next = stmt_copy(v->context, s);
  int rank = s->as.store.rank;
  next->as.store.buffer = vector_buffer(v, s->as.store.buffer, memory);
  next->as.store.indices = last_in_vectors(v, s->as.store.indices, rank, memory->lanes);
  return next;
}

static Stmt *vector_allocate(VectorBuffers *v, Stmt *s, const Memory *memory) {
  Stmt *next = stmt_copy(v->context, s);
  next->as.allocate.var = memory->data;
  next->as.allocate.type = dtype_lanes(s->as.allocate.type, memory->lanes);
  next->as.allocate.extents =
      last_in_vectors(v, s->as.allocate.extents, s->as.allocate.rank, memory->lanes);
  return next;
}

static Stmt *vector_stmt(Rewriter *rewriter, Stmt *s) {
  VectorBuffers *v = rewriter->env;
  const Memory *memory = s->kind == STMT_STORE         ? rewritten(v, s->as.store.buffer->data)
                         : s->kind == STMT_ALLOCATE    ? rewritten(v, s->as.allocate.var)
                         : s->kind == STMT_DECL_BUFFER ? rewritten(v, s->as.declare.buffer->data)
                                                       : NULL;
  if (!memory) return s;
  if (s->kind == STMT_STORE) return vector_store(v, s, memory);
  if (s->kind == STMT_ALLOCATE) return vector_allocate(v, s, memory);
  Stmt *next = stmt_copy(v->context, s);
  next->as.declare.buffer = vector_buffer(v, s->as.declare.buffer, memory);
  return next;
}

// An allocation gets a variable for its memory of vectors.
static bool make_variable(Visitor *visitor, Stmt *s) {
  VectorBuffers *v = visitor->env;
  if (s->kind != STMT_ALLOCATE || !rewritten(v, s->as.allocate.var)) return true;
  const Var *var = s->as.allocate.var->as.var;
  Memory *memory = map_find(&v->memory, s->as.allocate.var);
  memory->data =
      expr_data_var(v->context, var->name, dtype_lanes(var->pointee, memory->lanes), var->scope);
  return true;
}

static bool finds_memory(VectorBuffers *v, PrimFunc *func) {
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i]) {
      map_put(&v->params, func->buffers[i], func->buffers[i]);
      note_buffer(v, func->buffers[i]);
    }
  visit_stmt(&(Visitor){.env = v, .enter_expr = note_expr, .enter_stmt = note_stmt}, func->body);
  visit_stmt(&(Visitor){.env = v, .enter_expr = check_lane, .enter_stmt = check_stmt}, func->body);
  visit_stmt(&(Visitor){.env = v, .enter_stmt = make_variable}, func->body);
  for (int i = 0; i < v->memory.count; i++)
    if (rewritten(v, (const Expr *)(uintptr_t)v->memory.entries[i].key)) return true;
  return false;
}

PrimFunc *lower_vector_buffers(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  Arena *arena = &context->arena;
  VectorBuffers v = {.context = context,
                     .analyzer = analyzer_new(context),
                     .memory = map_new(arena),
                     .buffers = map_new(arena),
                     .params = map_new(arena)};
  if (!finds_memory(&v, func)) return func;
  Rewriter rewriter = {
      .env = &v, .expr = vector_load, .stmt = vector_stmt, .buffer = lower_keep_buffer};
  PrimFunc *next = lower_rewrite(state, func, &rewriter);
  if (!next || next == func) return next;
  for (int i = v.undeclared.count - 1; i >= 0; i--)
    next->body = stmt_declare(context, v.undeclared.items[i], next->body);
  return next;
}
