// SPDX-License-Identifier: Apache-2.0
// Replaces a local buffer whose indices are all constant by registers: one buffer of one element
// for each element or vector that is accessed as a whole (scalar replacement of aggregates).
//
//   acc = allocate(32, scope="local")           acc_0, acc_1 = allocate(1, "float32x16", "local")
//   acc[T.Ramp(0, 1, 16)] = ...           →     acc_0[0] = ...
//   acc[T.Ramp(16, 1, 16)] = ...                acc_1[0] = ...
//   C[...] = acc[T.Ramp(16, 1, 8)]              C[...] = shuffle(acc_1[0], lanes 0 to 7)
//   C[...] = acc[T.Ramp(3, 16, 2)]              C[...] = shuffle(acc_0[0], acc_1[0], lanes 3, 19)
//
// A load whose lanes are in several pieces is a column of a matrix that has the pieces as rows. All
// columns together are the transposed matrix, which takes one shuffle for each piece and each power
// of two in their number: the columns share the expressions of these shuffles.
//
// A buffer stays in memory and is reported when two accesses overlap and neither contains the
// other, an index is not constant, the lanes of a vector are not a power of two, the address is
// taken, or it has more than MOST_REGISTERS pieces.
#include "lower/pass.h"

#include <stdlib.h>

enum { MOST_REGISTERS = 512, MOST_ELEMENTS = 1 << 16 };

typedef struct Piece {
  int64_t first;
  int lanes;
  Buffer *buffer;
} Piece;

typedef struct RegisterCandidate {
  Buffer *buffer;
  int64_t size;
  const char *obstacle;  // why the buffer stays in memory; NULL when it becomes registers
  Array(Piece) accesses; // each distinct access once
  Array(Piece) pieces;
  int *owner; // for each element, the index of its piece + 1; 0 without a piece
} RegisterCandidate;

typedef struct Promotion {
  Context *context;
  Map candidates; // Buffer* → RegisterCandidate*
  Map by_data;    // data variable → RegisterCandidate*
} Promotion;

// ---- Candidates

static bool enter_allocate(Visitor *visitor, Stmt *s) {
  Promotion *promotion = visitor->env;
  Arena *arena = &promotion->context->arena;
  if (s->kind != STMT_ALLOCATE || s->as.allocate.body->kind != STMT_DECL_BUFFER) return true;
  Buffer *buffer = s->as.allocate.body->as.declare.buffer;
  int64_t size;
  if (buffer->data != s->as.allocate.var || !buffer_is_local(buffer)) return true;
  if (buffer->rank != 1 || buffer->type.lanes != 1) return true;
  if (!expr_as_int(buffer->shape[0], &size) || size > MOST_ELEMENTS || size < 1) return true;
  RegisterCandidate *candidate = arena_new(arena, RegisterCandidate);
  *candidate =
      (RegisterCandidate){.buffer = buffer, .size = size, .owner = arena_array(arena, int, size)};
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

// Is the index of each lane a constant?
static bool constant_lanes(Expr *index, int64_t *at) {
  bool known = index->type.lanes <= LOWER_MAX_LANES;
  for (int i = 0; i < index->type.lanes && known; i++) known = expr_lane_value(index, i, &at[i]);
  return known;
}

static void note_piece(Promotion *promotion, RegisterCandidate *candidate, Piece access) {
  if (access.first < 0 || access.first + access.lanes > candidate->size) {
    candidate->obstacle = "an index is outside of it";
    return;
  }
  if (log2_of(access.lanes) < 0) {
    candidate->obstacle = "the lanes of a vector are not a power of two";
    return;
  }
  for (int i = 0; i < candidate->accesses.count; i++) {
    const Piece *known = &candidate->accesses.items[i];
    if (known->first == access.first && known->lanes == access.lanes) return;
  }
  array_push(&promotion->context->arena, &candidate->accesses, access);
  if (candidate->accesses.count > 2 * MOST_REGISTERS) candidate->obstacle = "it is too large";
}

static void note_access(Promotion *promotion, RegisterCandidate *candidate, Expr *index,
                        bool is_load) {
  Piece access = {0};
  int64_t at[LOWER_MAX_LANES];
  if (candidate->obstacle) return;
  if (constant_piece(index, &access.first, &access.lanes)) {
    note_piece(promotion, candidate, access);
  } else if (is_load && constant_lanes(index, at)) {
    for (int i = 0; i < index->type.lanes && !candidate->obstacle; i++)
      note_piece(promotion, candidate, (Piece){.first = at[i], .lanes = 1});
  } else {
    candidate->obstacle = "an index is not constant";
  }
}

static bool access_in_expr(Visitor *visitor, Expr *e) {
  Promotion *promotion = visitor->env;
  RegisterCandidate *candidate = NULL;
  if (e->op == EXPR_LOAD && (candidate = map_find(&promotion->candidates, e->as.buffer)))
    note_access(promotion, candidate, e->args[0], true);
  else if (e->op == EXPR_LOAD && (candidate = map_find(&promotion->by_data, e->as.buffer->data)))
    candidate->obstacle = "it has an alias";
  if (e->op == EXPR_ADDRESS_OF &&
      (candidate = map_find(&promotion->by_data, e->args[0]->as.buffer->data)))
    candidate->obstacle = "its address is taken";
  if (e->op == EXPR_VAR && (candidate = map_find(&promotion->by_data, e)))
    candidate->obstacle = "its address is taken";
  return true;
}

static bool access_in_size(Visitor *visitor, Expr *e) {
  const Promotion *promotion = visitor->env;
  RegisterCandidate *candidate =
      e->op == EXPR_LOAD ? map_find(&promotion->by_data, e->as.buffer->data) : NULL;
  if (candidate) candidate->obstacle = "the size of another buffer reads it";
  return true;
}

static bool access_in_stmt(Visitor *visitor, Stmt *s) {
  Promotion *promotion = visitor->env;
  if (s->kind == STMT_DECL_BUFFER)
    lower_visit_sizes(&(Visitor){.env = promotion, .enter_expr = access_in_size},
                      s->as.declare.buffer);
  if (s->kind != STMT_STORE) return true;
  RegisterCandidate *candidate = map_find(&promotion->candidates, s->as.store.buffer);
  if (candidate)
    note_access(promotion, candidate, s->as.store.indices[0], false);
  else if ((candidate = map_find(&promotion->by_data, s->as.store.buffer->data)))
    candidate->obstacle = "it has an alias";
  return true;
}

static int by_width(const void *a, const void *b) {
  const Piece *p = a, *q = b;
  if (p->lanes != q->lanes) return q->lanes - p->lanes;
  return (p->first > q->first) - (p->first < q->first);
}

static int by_place(const void *a, const void *b) {
  const Piece *p = a, *q = b;
  return (p->first > q->first) - (p->first < q->first);
}

// Takes the widest accesses first; each of them is a new piece or is contained in one.
static void find_pieces(Promotion *promotion, RegisterCandidate *candidate) {
  if (!candidate->accesses.count) return;
  qsort(candidate->accesses.items, (size_t)candidate->accesses.count, sizeof(Piece), by_width);
  for (int i = 0; i < candidate->accesses.count && !candidate->obstacle; i++) {
    Piece access = candidate->accesses.items[i];
    int *owner = candidate->owner + access.first;
    for (int k = 1; k < access.lanes; k++)
      if (owner[k] != owner[0]) candidate->obstacle = "its accesses overlap";
    if (owner[0] || candidate->obstacle) continue;
    array_push(&promotion->context->arena, &candidate->pieces, access);
    for (int k = 0; k < access.lanes; k++) owner[k] = candidate->pieces.count;
  }
  if (candidate->pieces.count > MOST_REGISTERS) candidate->obstacle = "it is too large";
}

// Sorts the pieces by their elements and makes a buffer for each.
static void make_buffers(Promotion *promotion, RegisterCandidate *candidate) {
  Context *context = promotion->context;
  int64_t one = 1;
  int count = candidate->pieces.count;
  if (!count) return;
  qsort(candidate->pieces.items, (size_t)count, sizeof(Piece), by_place);
  for (int i = 0; i < count; i++) {
    Piece *piece = &candidate->pieces.items[i];
    Str name = candidate->buffer->name;
    if (count > 1) name = str_format(context, "%s_%d", name, i);
    DType type = dtype_lanes(candidate->buffer->type, piece->lanes);
    piece->buffer = buffer_static(context, name, type, &one, 1, "local");
    piece->buffer->pos = candidate->buffer->pos;
    for (int k = 0; k < piece->lanes; k++) candidate->owner[piece->first + k] = i + 1;
  }
}

static void settle(LowerState *state, Promotion *promotion, RegisterCandidate *candidate) {
  find_pieces(promotion, candidate);
  if (candidate->obstacle) {
    lower_note(state, LOWER_NOT_REGISTERS, "buffer %s stays in memory: %s", candidate->buffer->name,
               candidate->obstacle);
    return;
  }
  make_buffers(promotion, candidate);
  state->report->counts[LOWER_REGISTERS] += candidate->pieces.count;
}

// ---- Rewriting

// The piece that contains an access, which begins at element *at of it; NULL when the buffer stays
// in memory.
static const Piece *piece_of(const Promotion *promotion, const Buffer *buffer, const Expr *index,
                             int *at, int *lanes) {
  const RegisterCandidate *candidate = map_find(&promotion->candidates, buffer);
  int64_t first;
  if (!candidate || candidate->obstacle || !constant_piece(index, &first, lanes)) return NULL;
  const Piece *piece = &candidate->pieces.items[candidate->owner[first] - 1];
  *at = (int)(first - piece->first);
  return piece;
}

// `like`: an access whose origin the load gets; may be NULL.
static Expr *whole(Context *context, const Piece *piece, const Expr *like) {
  Expr *zero = expr_int(context, DTYPE_INT32, 0);
  Expr *load = expr_load(context, piece->buffer, &zero, 1);
  if (like) expr_set_origin(context, load, expr_origin(like));
  return load;
}

// ---- Columns

enum { CHUNK_BYTES = 16 }; // within which the cheapest shuffles of two vectors move lanes

// Combines blocks of `size` lanes of two vectors: half of the pairs of blocks of one number, and
// among them that of block *block, whose number in the result replaces it. While the blocks are
// shorter than a chunk, half of the pairs of each chunk are taken.
static Expr *combine_blocks(Context *context, Expr *low, Expr *high, int size, int *block) {
  int numbers[LOWER_MAX_LANES], n = 0, lanes = low->type.lanes;
  int chunk = MIN_OF(CHUNK_BYTES / MAX_OF(dtype_bytes(dtype_lanes(low->type, 1)), 1), lanes);
  int of_group = (size < chunk ? chunk : lanes) / size, half = of_group / 2;
  bool upper = *block % of_group >= half;
  for (int b = 0; b < lanes / size; b++)
    for (int i = 0; (b % of_group >= half) == upper && i < 2 * size; i++)
      numbers[n++] = (i < size ? 0 : lanes - size) + b * size + i;
  *block = *block / of_group * half + *block % half;
  return lower_shuffle(context, (Expr *[]){low, high}, 2, numbers, n);
}

// Lane `lane` of each of the vectors, whose number is a power of two and at most that of their
// lanes. Works as a transposition of the matrix of all their lanes by exchange of bits (Eklundh,
// "A fast computer method for matrix transposing").
static Expr *column_of(Context *context, Expr **vectors, int count, int lane) {
  int numbers[LOWER_MAX_LANES], lanes = vectors[0]->type.lanes, block = lane;
  for (int size = 1; size < count; size *= 2) {
    int next = block;
    for (int i = 0; i < count / size; i += 2) {
      next = block;
      vectors[i / 2] = combine_blocks(context, vectors[i], vectors[i + 1], size, &next);
    }
    block = next;
  }
  if (count == lanes) return vectors[0];
  for (int i = 0; i < count; i++) numbers[i] = block * count + i;
  return lower_shuffle(context, vectors, 1, numbers, count);
}

// The vector with as many lanes as `lanes`; those that are added have any value.
static Expr *widened(Context *context, Expr *vector, int lanes) {
  int numbers[LOWER_MAX_LANES];
  if (vector->type.lanes == lanes) return vector;
  for (int i = 0; i < lanes; i++) numbers[i] = MIN_OF(i, vector->type.lanes - 1);
  return lower_shuffle(context, &vector, 1, numbers, lanes);
}

// Lane `lane` of each of `count` vectors of equal length. Their number is filled up to a power of
// two, and their lanes to that number. NULL where that is more than a vector may have.
static Expr *column_of_any(Context *context, Expr *const *rows, int count, int lane) {
  Expr *vectors[LOWER_MAX_LANES];
  int numbers[LOWER_MAX_LANES], height = 1;
  while (height < count) height *= 2;
  int width = MAX_OF(rows[0]->type.lanes, height);
  if (width > LOWER_MAX_LANES) return NULL;
  for (int i = 0; i < height; i++) vectors[i] = widened(context, rows[MIN_OF(i, count - 1)], width);
  Expr *column = column_of(context, vectors, height, lane);
  if (height == count) return column;
  for (int i = 0; i < count; i++) numbers[i] = i;
  return lower_shuffle(context, &column, 1, numbers, count);
}

// The lanes of a load, by the pieces that have them.
typedef struct LaneSources {
  const Piece *pieces[LOWER_MAX_LANES]; // without repetition
  int count, lanes;
  int piece[LOWER_MAX_LANES], at[LOWER_MAX_LANES]; // of each lane
} LaneSources;

static bool find_sources(const Promotion *promotion, const Expr *e, LaneSources *out) {
  const RegisterCandidate *candidate = map_find(&promotion->candidates, e->as.buffer);
  int64_t at[LOWER_MAX_LANES];
  if (!candidate || candidate->obstacle || !constant_lanes(e->args[0], at)) return false;
  *out = (LaneSources){.lanes = e->type.lanes};
  for (int i = 0; i < out->lanes; i++) {
    const Piece *piece = &candidate->pieces.items[candidate->owner[at[i]] - 1];
    int k = 0;
    while (k < out->count && out->pieces[k] != piece) k++;
    if (k == out->count) out->pieces[out->count++] = piece;
    out->piece[i] = k;
    out->at[i] = (int)(at[i] - piece->first);
  }
  return true;
}

// Is each lane that of another piece, of equal length, and all are at one place?
static bool is_column(const LaneSources *s) {
  bool equal = s->lanes > 1 && s->count == s->lanes;
  for (int i = 1; i < s->lanes && equal; i++)
    equal = s->pieces[i]->lanes == s->pieces[0]->lanes && s->at[i] == s->at[0];
  return equal;
}

// A shuffle of all vectors at once.
static Expr *shuffle_all(Context *context, const LaneSources *s, Expr **vectors) {
  int numbers[LOWER_MAX_LANES], before[LOWER_MAX_LANES] = {0};
  for (int k = 1; k < s->count; k++) before[k] = before[k - 1] + s->pieces[k - 1]->lanes;
  for (int i = 0; i < s->lanes; i++) numbers[i] = before[s->piece[i]] + s->at[i];
  return lower_shuffle(context, vectors, s->count, numbers, s->lanes);
}

// Few pieces are put together one by one, since targets shuffle two vectors at a time.
static Expr *pick_lanes(Context *context, const LaneSources *s, Expr **vectors) {
  enum { FEW_PIECES = 3 };
  int numbers[LOWER_MAX_LANES];
  if (s->count == 1 || s->count > FEW_PIECES) return shuffle_all(context, s, vectors);
  Expr *picked = vectors[0];
  for (int k = 1; k < s->count; k++) {
    int width = picked->type.lanes;
    for (int i = 0; i < s->lanes; i++) {
      int before = k > 1 ? i : s->piece[i] ? i % width : s->at[i];
      numbers[i] = s->piece[i] == k ? width + s->at[i] : before;
    }
    picked = lower_shuffle(context, (Expr *[]){picked, vectors[k]}, 2, numbers, s->lanes);
  }
  return picked;
}

// A load whose lanes are those of several pieces, or in another order; NULL where the buffer stays
// in memory.
static Expr *promote_lanes(Rewriter *rewriter, const Expr *e) {
  Context *context = rewriter->context;
  Expr *vectors[LOWER_MAX_LANES] = {NULL}, *column = NULL;
  LaneSources sources;
  if (!find_sources(rewriter->env, e, &sources)) return NULL;
  for (int i = 0; i < sources.count; i++) vectors[i] = whole(context, sources.pieces[i], NULL);
  if (is_column(&sources)) column = column_of_any(context, vectors, sources.lanes, sources.at[0]);
  return column ? column : pick_lanes(context, &sources, vectors);
}

static Expr *promote_load(Rewriter *rewriter, Expr *e) {
  int at, lanes, numbers[LOWER_MAX_LANES];
  const Piece *piece =
      e->op == EXPR_LOAD ? piece_of(rewriter->env, e->as.buffer, e->args[0], &at, &lanes) : NULL;
  Expr *column = piece || e->op != EXPR_LOAD ? NULL : promote_lanes(rewriter, e);
  if (column) return column;
  if (!piece) return e;
  Expr *value = whole(rewriter->context, piece, lanes == piece->lanes ? e : NULL);
  if (lanes == piece->lanes) return value;
  for (int i = 0; i < lanes; i++) numbers[i] = at + i;
  return lower_shuffle(rewriter->context, &value, 1, numbers, lanes);
}

// A store to a part of a piece keeps the other lanes.
static Stmt *promote_store(Rewriter *rewriter, Stmt *s) {
  Context *context = rewriter->context;
  int at, lanes, numbers[LOWER_MAX_LANES];
  Expr *value = s->as.store.value, *zero = expr_int(context, DTYPE_INT32, 0);
  const Piece *piece =
      piece_of(rewriter->env, s->as.store.buffer, s->as.store.indices[0], &at, &lanes);
  if (!piece) return s;
  if (lanes < piece->lanes) {
    for (int i = 0; i < piece->lanes; i++)
      numbers[i] = i >= at && i < at + lanes ? piece->lanes + i - at : i;
    Expr *vectors[] = {whole(context, piece, NULL), value};
    value = lower_shuffle(context, vectors, 2, numbers, piece->lanes);
  }
  Stmt *next = stmt_copy(context, s);
  next->as.store.buffer = piece->buffer;
  next->as.store.rank = 1;
  next->as.store.indices = arena_copy(&context->arena, &zero, sizeof zero);
  next->as.store.value = value;
  return next;
}

static Stmt *promote_stmt(Rewriter *rewriter, Stmt *s) {
  const Promotion *promotion = rewriter->env;
  if (s->kind == STMT_STORE) return promote_store(rewriter, s);
  const RegisterCandidate *candidate =
      s->kind == STMT_ALLOCATE ? map_find(&promotion->by_data, s->as.allocate.var) : NULL;
  if (!candidate || candidate->obstacle) return s;
  Stmt *body = s->as.allocate.body->as.declare.body;
  for (int i = candidate->pieces.count - 1; i >= 0; i--)
    body = stmt_allocate(rewriter->context, candidate->pieces.items[i].buffer, body);
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
    settle(state, &promotion, promotion.candidates.entries[i].value);
  Rewriter rewriter = {.context = context,
                       .env = &promotion,
                       .expr = promote_load,
                       .stmt = promote_stmt,
                       .buffer = lower_keep_buffer};
  return prim_func_with_body(context, func, rewrite_stmt(&rewriter, func->body));
}
