// SPDX-License-Identifier: Apache-2.0
// Finds the accesses of shared memory by the threads of a warp:
//
//   for ty in T.thread_binding(16, "threadIdx.y"):        positions: warp, which has two rows
//     for tx in T.thread_binding(16, "threadIdx.x"):  →   (warp, lane) -> lane % 16,
//       S[tx, ty] = …                                                     warp * 2 + lane // 16
#include "arith/shared_access.h"

#include "ir/index_map.h"

enum { WARP = 32, THREAD_AXES = 3, MOST_VECTOR_BYTES = 16 };

typedef struct SharedSearch {
  Context *context;
  const Buffer *buffer; // NULL: all
  SharedAccesses *out;
  Map values;     // variables of blocks and lets around → their values in terms of loops
  Map allocated;  // buffers whose memory is as they are declared
  Map padded;     // buffers that storage_align pads when they are lowered
  PtrArray loops; // around, from the outside in
  int64_t launched[THREAD_AXES]; // threads of a block of the kernel
  SourcePos pos;
} SharedSearch;

// ---- The threads around an access -------------------------------------------------------------

typedef struct Threads {
  const Stmt *loops[THREAD_AXES]; // NULL: there is none over this axis
  int64_t extents[THREAD_AXES];   // 1 where there is none
  int64_t count;
} Threads;

// The threads that run the access are the first `count` of the block. NULL, or why they are not
// known to be.
static const char *find_threads(const SharedSearch *f, Threads *t) {
  *t = (Threads){.extents = {1, 1, 1}, .count = 1};
  for (int i = 0; i < f->loops.count; i++) {
    const Stmt *loop = f->loops.items[i];
    int axis = loop_thread_axis(loop, NULL);
    if (axis < 0) continue;
    if (t->loops[axis]) return "two loops around it are over the same threads";
    if (!expr_as_int(loop->as.loop.extent, &t->extents[axis]) || t->extents[axis] < 1)
      return "the number of threads is not constant";
    t->loops[axis] = loop;
  }
  bool first = true;
  for (int i = 0; i < THREAD_AXES; i++) {
    if (!first && t->extents[i] > 1) return "not all threads of a warp access it";
    first &= t->extents[i] == f->launched[i];
    if (!mul_fits(t->count, t->extents[i], &t->count)) return "there are too many threads";
  }
  return NULL;
}

// ---- The map of the lanes ---------------------------------------------------------------------

typedef struct LaneMap {
  SharedSearch *search;
  Analyzer *analyzer;
  Map values;     // variables of loops → their values in terms of vars
  Expr *vars[64]; // positions, the lane, and where there is one, the vectorised loop
  int64_t extents[64];
  int count;
} LaneMap;

static Expr *number(const LaneMap *m, int64_t value) {
  return expr_int(m->search->context, DTYPE_INT64, value);
}

static Expr *add_axis(LaneMap *m, const char *name, int64_t extent) {
  Expr *var = expr_var(m->search->context, name, DTYPE_INT64);
  analyzer_bind(m->analyzer, var, number(m, 0), number(m, extent));
  m->vars[m->count] = var;
  m->extents[m->count++] = extent;
  return var;
}

static void set_value(LaneMap *m, const Stmt *loop, Expr *at) {
  Context *context = m->search->context;
  const Expr *var = loop->as.loop.var;
  Expr *value = expr_add(context, expr_cast(context, DTYPE_INT64, loop->as.loop.min), at);
  map_put(&m->values, var, expr_cast(context, var->type, value));
}

// Thread number warp * 32 + lane is thread x + X * (y + Y * z).
static void set_threads(LaneMap *m, const Threads *t, bool is_last) {
  Context *context = m->search->context;
  int64_t warps = t->count / WARP, lanes = warps && !is_last ? WARP : t->count % WARP;
  Expr *rest = number(m, is_last ? warps : 0);
  if (!is_last && t->count > WARP) rest = add_axis(m, "warp", warps);
  rest = expr_mul(context, rest, number(m, WARP));
  rest = expr_add(context, rest, add_axis(m, "lane", lanes));
  for (int i = 0; i < THREAD_AXES; i++) {
    Expr *extent = number(m, t->extents[i]);
    if (t->loops[i]) set_value(m, t->loops[i], expr_binary(context, EXPR_FLOOR_MOD, rest, extent));
    rest = expr_binary(context, EXPR_FLOOR_DIV, rest, extent);
  }
}

static bool uses(Expr *const *indices, int rank, const Expr *var) {
  bool found = false;
  for (int i = 0; i < rank; i++) found |= expr_uses(indices[i], var);
  return found;
}

// Positions are the iterations of loops that the indices use, but for a vectorised one, which is
// *vector. NULL, or why they are not known.
static const char *set_positions(LaneMap *m, const Buffer *buffer, Expr *const *indices,
                                 const Stmt **vector) {
  const SharedSearch *f = m->search;
  for (int i = 0; i < f->loops.count; i++) {
    const Stmt *loop = f->loops.items[i];
    int64_t extent;
    if (loop_thread_axis(loop, NULL) >= 0 || !uses(indices, buffer->rank, loop->as.loop.var))
      continue;
    if (!expr_as_int(loop->as.loop.extent, &extent) || extent < 1)
      return "the extent of a loop that its indices use is not constant";
    if (m->count + 3 >= COUNT_OF(m->vars)) return "its indices use too many loops";
    if (loop->as.loop.kind == LOOP_VECTORIZED && !*vector)
      *vector = loop;
    else
      set_value(m, loop, add_axis(m, loop->as.loop.var->as.var->name, extent));
  }
  return NULL;
}

// Whether one instruction accesses the elements along the last axis of the map: they follow one
// another, from an aligned one on.
static bool is_vector(const LaneMap *m, const SharedAccess *access, const IndexMap *map) {
  Context *context = m->search->context;
  int last = m->count - 1;
  const Buffer *buffer = access->buffer;
  int64_t lanes = m->extents[last];
  const LayoutExpr **shape = arena_array(&context->arena, const LayoutExpr *, m->count);
  for (int i = 0; i < m->count; i++) shape[i] = layout_const(context, m->extents[i]);
  if (lanes * dtype_bytes(buffer->type) * buffer->type.lanes > MOST_VECTOR_BYTES) return false;
  LayoutPadding any = {LAYOUT_PADDING_ANY, 0};
  const Layout *layout =
      layout_new(context, map, shape, access->layout->shape, (LayoutFacts){0}, any, access->pos);
  return layout && layout_vector_width(context, layout, last) % lanes == 0;
}

// The map without its last axis, which is 0, or with the last two axes in the other order.
static const IndexMap *without_vector(const LaneMap *m, const IndexMap *map, bool is_vector) {
  Context *context = m->search->context;
  int last = m->count - 1;
  const LayoutExpr **axes = arena_array(&context->arena, const LayoutExpr *, m->count);
  const LayoutExpr **outputs = arena_array(&context->arena, const LayoutExpr *, map->output_count);
  Str *names = arena_copy(&context->arena, map->inputs, sizeof *map->inputs * (size_t)m->count);
  for (int i = 0; i < m->count; i++) axes[i] = layout_axis(context, i);
  axes[last] = is_vector ? layout_const(context, 0) : layout_axis(context, last - 1);
  if (!is_vector) axes[last - 1] = layout_axis(context, last);
  names[last] = map->inputs[last - 1];
  if (!is_vector) names[last - 1] = map->inputs[last];
  for (int i = 0; i < map->output_count; i++)
    outputs[i] = layout_expr_substitute(context, map->outputs[i], axes, m->count);
  return index_map_new(context, m->count - is_vector, names, map->output_count, outputs, NULL, NULL,
                       0);
}

static LayoutAccess lanes_of(LaneMap *m, const SharedAccess *access, const IndexMap *map,
                             bool vectorised) {
  int last = m->count - 1;
  int64_t width = vectorised ? m->extents[last] : 1;
  bool one = vectorised && is_vector(m, access, map);
  if (vectorised) {
    map = without_vector(m, map, one);
    m->extents[last] = m->extents[last - 1];
    m->extents[last - 1] = one ? m->extents[last] : width;
  }
  const int64_t *extents =
      arena_copy(&m->search->context->arena, m->extents, sizeof *m->extents * (size_t)m->count);
  return (LayoutAccess){map, extents, one ? width : 0, 1};
}

// The lanes of the whole warps, or of the last one, in *out. NULL, or why they are not known.
static const char *set_lanes(SharedSearch *f, const SharedAccess *access, const Threads *threads,
                             Expr *const *indices, bool is_last, LayoutAccess *out) {
  Context *context = f->context;
  LaneMap lane_map = {f, analyzer_new(context), map_new(&context->arena), {NULL}, {0}, 0};
  LaneMap *m = &lane_map;
  const Buffer *buffer = access->buffer;
  const Stmt *vector = NULL;
  int64_t width;
  const char *why = set_positions(m, buffer, indices, &vector);
  if (why) return why;
  set_threads(m, threads, is_last);
  if (vector && expr_as_int(vector->as.loop.extent, &width))
    set_value(m, vector, add_axis(m, vector->as.loop.var->as.var->name, width));
  Expr **at = arena_array(&context->arena, Expr *, buffer->rank);
  for (int i = 0; i < buffer->rank; i++) {
    Expr *index = substitute_expr(context, indices[i], &m->values);
    at[i] = analyzer_simplify(m->analyzer, expr_cast(context, DTYPE_INT64, index));
  }
  const IndexMap *map = index_map_from_exprs(context, m->vars, m->count, at, buffer->rank, false);
  if (!map) return "its indices are not those of a layout";
  *out = lanes_of(m, access, map, vector != NULL);
  return NULL;
}

// ---- Accesses ---------------------------------------------------------------------------------

static const char *set_layout(const SharedSearch *f, SharedAccess *access) {
  Context *context = f->context;
  const Buffer *buffer = access->buffer;
  int64_t *shape = arena_array(&context->arena, int64_t, buffer->rank + 1);
  if (!map_contains(&f->allocated, buffer)) return "it is a view of other memory";
  if (map_contains(&f->padded, buffer)) return "storage_align pads it when it is lowered";
  for (int i = 0; i < buffer->rank; i++)
    if (!expr_as_int(buffer->shape[i], &shape[i])) return "its shape is not constant";
  access->layout = layout_row_major(context, buffer->rank, shape);
  return access->layout && buffer->rank ? NULL : "its shape is too large";
}

static void add_access(SharedSearch *f, Buffer *buffer, Expr *const *indices, bool write) {
  Context *context = f->context;
  bool sought = f->buffer ? buffer->data == f->buffer->data : !strncmp(buffer->scope, "shared", 6);
  Threads threads;
  bool in_threads = false;
  for (int i = 0; i < f->loops.count; i++)
    in_threads |= loop_thread_axis(f->loops.items[i], NULL) >= 0;
  if (!sought || !in_threads) return;
  SharedAccess access = {.buffer = buffer, .indices = indices, .write = write, .pos = f->pos};
  Expr **values = arena_array(&context->arena, Expr *, buffer->rank + 1);
  for (int i = 0; i < buffer->rank; i++)
    values[i] = substitute_expr(context, indices[i], &f->values);
  access.why = set_layout(f, &access);
  if (!access.why) access.why = find_threads(f, &threads);
  if (!access.why) access.why = set_lanes(f, &access, &threads, values, false, &access.lanes);
  if (!access.why && threads.count > WARP && threads.count % WARP)
    access.why = set_lanes(f, &access, &threads, values, true, &access.last);
  array_push(&context->arena, f->out, access);
}

// ---- The walk ---------------------------------------------------------------------------------

static bool count_threads(Visitor *visitor, Stmt *s) {
  int64_t *launched = visitor->env, extent;
  int axis = loop_thread_axis(s, NULL);
  if (axis >= 0 && expr_as_int(s->as.loop.extent, &extent))
    launched[axis] = MAX_OF(launched[axis], extent);
  return true;
}

static void enter_loop(SharedSearch *f, Stmt *s) {
  if (!f->loops.count) {
    for (int i = 0; i < THREAD_AXES; i++) f->launched[i] = 1;
    visit_stmt(&(Visitor){.env = f->launched, .enter_stmt = count_threads}, s);
  }
  array_push(&f->context->arena, &f->loops, s);
}

static void enter_block(SharedSearch *f, const Block *block) {
  for (int i = 0; i < block->var_count; i++)
    map_put(&f->values, block->vars[i].var,
            substitute_expr(f->context, block->vars[i].binding, &f->values));
  for (int i = 0; i < block->alloc_count; i++)
    map_put(&f->allocated, block->allocs[i], block->allocs[i]);
  for (int i = 0; i < block->write_count; i++)
    if (attrs_get(&block->annotations, "buffer_dim_align"))
      map_put(&f->padded, block->writes[i].buffer, block->writes[i].buffer);
}

// The buffer that is declared directly below its allocation.
static void enter_allocation(SharedSearch *f, const Stmt *s) {
  const Stmt *below = s->as.allocate.body;
  if (below->kind != STMT_DECL_BUFFER) return;
  Buffer *buffer = below->as.declare.buffer;
  bool is_plain = buffer->data == s->as.allocate.var && !buffer->strides &&
                  expr_is_int(buffer->offset, 0) &&
                  !attrs_get(&s->as.allocate.annotations, "buffer_dim_align");
  if (is_plain) map_put(&f->allocated, buffer, buffer);
}

static bool enter_stmt(Visitor *visitor, Stmt *s) {
  SharedSearch *f = visitor->env;
  if (s->pos.file) f->pos = s->pos;
  if (s->kind == STMT_FOR) enter_loop(f, s);
  if (s->kind == STMT_BLOCK) enter_block(f, s->as.block);
  if (s->kind == STMT_ALLOCATE) enter_allocation(f, s);
  if (s->kind == STMT_LET)
    map_put(&f->values, s->as.let.var, substitute_expr(f->context, s->as.let.value, &f->values));
  if (s->kind == STMT_STORE) add_access(f, s->as.store.buffer, s->as.store.indices, true);
  return true;
}

static void leave_stmt(Visitor *visitor, Stmt *s) {
  SharedSearch *f = visitor->env;
  if (s->kind == STMT_FOR) f->loops.count--;
}

static bool enter_expr(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_LOAD) add_access(visitor->env, e->as.buffer, e->args, false);
  return true;
}

void shared_accesses(Context *context, const PrimFunc *func, const Buffer *buffer,
                     SharedAccesses *out) {
  SharedSearch f = {.context = context,
                    .buffer = buffer,
                    .out = out,
                    .values = map_new(&context->arena),
                    .allocated = map_new(&context->arena),
                    .padded = map_new(&context->arena)};
  visit_stmt(
      &(Visitor){
          .env = &f, .enter_stmt = enter_stmt, .leave_stmt = leave_stmt, .enter_expr = enter_expr},
      func->body);
}

LayoutBanks shared_banks(const Buffer *buffer) {
  return (LayoutBanks){8 * (int64_t)dtype_bytes(buffer->type) * buffer->type.lanes, 4, WARP};
}

LayoutAnswer shared_access_conflicts(Context *context, const SharedAccess *access,
                                     LayoutConflicts *out) {
  *out = (LayoutConflicts){0};
  if (access->why) return (LayoutAnswer){.verdict = VERDICT_UNDECIDED, .reason = access->why};
  LayoutBanks banks = shared_banks(access->buffer);
  LayoutConflicts last = {0};
  LayoutAnswer answer = layout_bank_conflicts(context, access->layout, &access->lanes, banks, out);
  if (answer.verdict == VERDICT_UNDECIDED || !access->last.lanes) return answer;
  LayoutAnswer other = layout_bank_conflicts(context, access->layout, &access->last, banks, &last);
  if (last.degree > out->degree) out->bank = last.bank;
  out->degree = MAX_OF(out->degree, last.degree);
  out->waves += last.waves;
  out->words += last.words;
  return other.verdict != VERDICT_YES ? other : answer;
}
