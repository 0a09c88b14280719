// SPDX-License-Identifier: Apache-2.0
// Local buffers whose indices are all constant become one buffer of one element for each element or
// vector that is accessed as a whole, which targets keep in registers.
//
//   acc = allocate(32, scope="local")           acc_0, acc_1 = allocate(1, "float32x16", "local")
//   acc[T.Ramp(0, 1, 16)] = ...           →     acc_0[0] = ...
//   acc[T.Ramp(16, 1, 16)] = ...                acc_1[0] = ...
//
// All accesses must fall into the same pieces. Otherwise, and when an index is not constant, the
// address is taken, or there are more than MOST_REGISTERS pieces, the buffer stays in memory, and
// is reported.
#include "lower/pass.h"

enum { MOST_REGISTERS = 512, MOST_ELEMENTS = 1 << 16 };

typedef struct Candidate {
  Buffer *buffer;
  int64_t size;
  const char *obstacle; // why it stays in memory; NULL: it does not
  int *lanes;           // by first element of a piece; 0: no piece begins here
  int *owner;           // by element: its piece's first element + 1; 0: in none
  Buffer **pieces;      // by first element
  int count;
} Candidate;

typedef struct Promotion {
  Context *context;
  Map candidates; // Buffer* → Candidate*
  Map by_data;    // data variable → Candidate*
} Promotion;

// ---- Candidates

static bool enter_allocate(Visitor *visitor, Stmt *s) {
  Promotion *promotion = visitor->env;
  Arena *arena = &promotion->context->arena;
  if (s->kind != STMT_ALLOCATE || s->as.allocate.body->kind != STMT_DECL_BUFFER) return true;
  Buffer *buffer = s->as.allocate.body->as.declare.buffer;
  int64_t size;
  if (buffer->data != s->as.allocate.var || strcmp(buffer->scope, "local")) return true;
  if (buffer->rank != 1 || buffer->type.lanes != 1) return true;
  if (!expr_as_int(buffer->shape[0], &size) || size > MOST_ELEMENTS || size < 1) return true;
  Candidate *candidate = arena_new(arena, Candidate);
  *candidate = (Candidate){.buffer = buffer,
                           .size = size,
                           .lanes = arena_array(arena, int, size),
                           .owner = arena_array(arena, int, size),
                           .pieces = arena_array(arena, Buffer *, size)};
  map_put(&promotion->candidates, buffer, candidate);
  map_put(&promotion->by_data, buffer->data, candidate);
  return true;
}

// ---- Pieces

static bool constant_piece(const Expr *index, int64_t *first, int *lanes) {
  *lanes = index->type.lanes;
  if (expr_as_int(index, first)) return true;
  return index->op == EXPR_RAMP && expr_is_int(index->args[1], 1) &&
         expr_as_int(index->args[0], first);
}

static void note_piece(Candidate *candidate, const Expr *index) {
  int64_t first;
  int lanes;
  if (candidate->obstacle) return;
  if (!constant_piece(index, &first, &lanes)) {
    candidate->obstacle = "an index is not constant";
    return;
  }
  if (first < 0 || first + lanes > candidate->size) {
    candidate->obstacle = "an index is outside of it";
    return;
  }
  if (candidate->lanes[first] == lanes) return;
  for (int i = 0; i < lanes; i++)
    if (candidate->owner[first + i]) {
      candidate->obstacle = "its accesses differ in width";
      return;
    }
  for (int i = 0; i < lanes; i++) candidate->owner[first + i] = (int)first + 1;
  candidate->lanes[first] = lanes;
  if (++candidate->count > MOST_REGISTERS) candidate->obstacle = "it is too large";
}

static bool access_in_expr(Visitor *visitor, Expr *e) {
  Promotion *promotion = visitor->env;
  Candidate *candidate = NULL;
  if (e->op == EXPR_LOAD && (candidate = map_find(&promotion->candidates, e->as.buffer)))
    note_piece(candidate, e->args[0]);
  else if (e->op == EXPR_LOAD && (candidate = map_find(&promotion->by_data, e->as.buffer->data)))
    candidate->obstacle = "it has an alias";
  if (e->op == EXPR_ADDRESS_OF &&
      (candidate = map_find(&promotion->by_data, e->args[0]->as.buffer->data)))
    candidate->obstacle = "its address is taken";
  if (e->op == EXPR_VAR && (candidate = map_find(&promotion->by_data, e)))
    candidate->obstacle = "its address is taken";
  return true;
}

static bool access_in_stmt(Visitor *visitor, Stmt *s) {
  Promotion *promotion = visitor->env;
  if (s->kind != STMT_STORE) return true;
  Candidate *candidate = map_find(&promotion->candidates, s->as.store.buffer);
  if (candidate)
    note_piece(candidate, s->as.store.indices[0]);
  else if ((candidate = map_find(&promotion->by_data, s->as.store.buffer->data)))
    candidate->obstacle = "it has an alias";
  return true;
}

static void make_pieces(LowerState *state, Candidate *candidate) {
  Context *context = state->context;
  int64_t one = 1;
  int number = 0;
  if (candidate->obstacle) {
    lower_note(state, LOWER_NOT_REGISTERS, "buffer %s stays in memory: %s", candidate->buffer->name,
               candidate->obstacle);
    return;
  }
  for (int64_t i = 0; i < candidate->size; i++) {
    if (!candidate->lanes[i]) continue;
    bool alone = candidate->count == 1;
    Str name = alone ? candidate->buffer->name
                     : str_format(context, "%s_%d", candidate->buffer->name, number++);
    DType type = dtype_lanes(candidate->buffer->type, candidate->lanes[i]);
    candidate->pieces[i] = buffer_static(context, name, type, &one, 1, "local");
    candidate->pieces[i]->pos = candidate->buffer->pos;
  }
  state->report->counts[LOWER_REGISTERS] += candidate->count;
}

// ---- Rewriting

static Buffer *piece_at(const Promotion *promotion, const Buffer *buffer, const Expr *index) {
  const Candidate *candidate = map_find(&promotion->candidates, buffer);
  int64_t first;
  int lanes;
  if (!candidate || candidate->obstacle || !constant_piece(index, &first, &lanes)) return NULL;
  return candidate->pieces[first];
}

static Expr *promote_load(Rewriter *rewriter, Expr *e) {
  Buffer *piece = e->op == EXPR_LOAD ? piece_at(rewriter->env, e->as.buffer, e->args[0]) : NULL;
  if (!piece) return e;
  Expr *zero = expr_int(rewriter->context, DTYPE_INT32, 0);
  return expr_load(rewriter->context, piece, &zero, 1);
}

static Stmt *promote_stmt(Rewriter *rewriter, Stmt *s) {
  const Promotion *promotion = rewriter->env;
  if (s->kind == STMT_STORE) {
    Buffer *piece = piece_at(promotion, s->as.store.buffer, s->as.store.indices[0]);
    if (!piece) return s;
    Expr *zero = expr_int(rewriter->context, DTYPE_INT32, 0);
    Stmt *next = stmt_store(rewriter->context, piece, &zero, 1, s->as.store.value);
    next->pos = s->pos;
    return next;
  }
  const Candidate *candidate =
      s->kind == STMT_ALLOCATE ? map_find(&promotion->by_data, s->as.allocate.var) : NULL;
  if (!candidate || candidate->obstacle) return s;
  Stmt *body = s->as.allocate.body->as.declare.body;
  for (int64_t i = candidate->size - 1; i >= 0; i--)
    if (candidate->pieces[i]) body = stmt_allocate(rewriter->context, candidate->pieces[i], body);
  return body;
}

PrimFunc *lower_promote_registers(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  Promotion promotion = {context, map_new(&context->arena), map_new(&context->arena)};
  Visitor finder = {.env = &promotion, .enter_stmt = enter_allocate};
  visit_stmt(&finder, func->body);
  if (!promotion.candidates.count) return func;
  Visitor visitor = {.env = &promotion, .enter_expr = access_in_expr, .enter_stmt = access_in_stmt};
  visit_stmt(&visitor, func->body);
  for (int i = 0; i < promotion.candidates.count; i++)
    make_pieces(state, promotion.candidates.entries[i].value);
  Rewriter rewriter = {.context = context,
                       .env = &promotion,
                       .expr = promote_load,
                       .stmt = promote_stmt,
                       .buffer = keep_buffer};
  return prim_func_with_body(context, func, rewrite_stmt(&rewriter, func->body));
}
