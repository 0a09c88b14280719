// SPDX-License-Identifier: Apache-2.0
// Fills a buffer one iteration before its values are used, so that reading and computing can
// overlap; the buffer gets an axis of two, of which iterations use one after the other (TVM's
// InjectDoubleBuffer):
//
//   for i in range(8):                                  B = allocate(2, 4)
//     B = allocate(4)                                    for j in range(4): B[0, j] = A[0, j]
//     with T.attr(B.data, "double_buffer_scope", 1):     for i in range(8):
//       for j in range(4): B[j] = A[i, j]            →     if i + 1 < 8:
//     for j in range(4): C[i, j] = B[j] + 1                  for j in range(4):
//                                                              B[(i + 1) % 2, j] = A[i + 1, j]
//                                                          for j in range(4):
//                                                            C[i, j] = B[i % 2, j] + 1
//
// partition_loops takes the condition out of the loop. With split_loop=2 each iteration does two of
// these, which know which half they use; the last ones, of which one fills nothing, are behind the
// loop. The statements of the attribute may only write to the buffer, and only read memory from
// outside of the loop that the loop does not write. An attribute where this does not hold stays as
// it is and is reported.
#include "ir/intrinsic.h"
#include "lower/pass.h"
#include "script/script.h"

#define SCOPE_ATTR "double_buffer_scope"
#define WRITE_ATTR "double_buffer_write"

enum { MOST_COPIES = 64 };

typedef struct Doubling {
  Context *context;
  Stmt *loop, *attr, *allocate; // attr: around the statements that fill the buffer
  Buffer *buffer;
  Map written;  // data variables that the rest of the loop writes
  Map owned;    // data variables and buffers that the rest of the loop defines
  Map scratch;  // the same for the statements that fill the buffer
  bool filling; // the walk is in them
  const char *obstacle;
} Doubling;

static void obstruct(Doubling *doubling, const char *why) {
  if (!doubling->obstacle) doubling->obstacle = why;
}

bool lower_is_double_buffer(const Stmt *s) {
  return s->kind == STMT_ATTR && s->as.attr.node && strcmp(s->as.attr.key, SCOPE_ATTR) == 0;
}

// ---- Attributes of a loop

typedef struct Producers {
  Context *context;
  PtrArray attrs;
  Map allocates; // data variable → ALLOCATE in the loop
} Producers;

// Not below loops, conditions and definitions, which would have to move with the statements.
static bool find_producer(Visitor *visitor, Stmt *s) {
  Producers *found = visitor->env;
  if (s->kind == STMT_ALLOCATE) map_put(&found->allocates, s->as.allocate.var, s);
  if (lower_is_double_buffer(s)) array_push(&found->context->arena, &found->attrs, s);
  return s->kind == STMT_SEQ || s->kind == STMT_ALLOCATE || s->kind == STMT_DECL_BUFFER ||
         (s->kind == STMT_ATTR && !lower_is_double_buffer(s));
}

// ---- What is in the way

static void define(Doubling *doubling, const void *what) {
  map_put(doubling->filling ? &doubling->scratch : &doubling->owned, what, what);
}

static bool define_in_stmt(Visitor *visitor, Stmt *s) {
  Doubling *doubling = visitor->env;
  if (s == doubling->attr) doubling->filling = true;
  if (s->kind == STMT_ALLOCATE) define(doubling, s->as.allocate.var);
  if (s->kind == STMT_ALLOCATE_CONST) define(doubling, s->as.allocate_const.var);
  if (s->kind == STMT_DECL_BUFFER) define(doubling, s->as.declare.buffer);
  if (s->kind != STMT_STORE || doubling->filling) return true;
  map_put(&doubling->written, s->as.store.buffer->data, s);
  if (s->as.store.buffer == doubling->buffer)
    obstruct(doubling, "it is also written by other statements");
  return true;
}

static bool effect_in_expr(Visitor *visitor, Expr *e) {
  Doubling *doubling = visitor->env;
  if (!expr_is_barrier(e) && (op_table[e->op].flags & OP_EFFECT))
    obstruct(doubling, "the loop calls functions");
  return true;
}

static void leave_attr(Visitor *visitor, Stmt *s) {
  Doubling *doubling = visitor->env;
  if (s == doubling->attr) doubling->filling = false;
}

static bool is_owned(const Doubling *doubling, const Buffer *buffer) {
  if (map_contains(&doubling->scratch, buffer->data)) return false;
  return map_contains(&doubling->owned, buffer->data) || map_contains(&doubling->owned, buffer);
}

static bool filling_in_expr(Visitor *visitor, Expr *e) {
  Doubling *doubling = visitor->env;
  if (e->op == EXPR_ADDRESS_OF || (e->op == EXPR_VAR && e->as.var->scope))
    obstruct(doubling, "an address is taken where it is filled");
  if (e->op != EXPR_LOAD || e->as.buffer == doubling->buffer) return true;
  if (is_owned(doubling, e->as.buffer))
    obstruct(doubling, "it is filled from memory that the loop defines");
  if (map_contains(&doubling->written, e->as.buffer->data))
    obstruct(doubling, "it is filled from memory that the loop writes");
  return true;
}

static bool filling_in_stmt(Visitor *visitor, Stmt *s) {
  Doubling *doubling = visitor->env;
  if (s->kind == STMT_ASSERT || lower_is_double_buffer(s))
    obstruct(doubling, "other things happen where it is filled");
  if (s->kind != STMT_STORE || s->as.store.buffer == doubling->buffer) return true;
  if (!map_contains(&doubling->scratch, s->as.store.buffer->data))
    obstruct(doubling, "other memory is written where it is filled");
  return true;
}

static void check_memory(Doubling *doubling) {
  if (!doubling->allocate) {
    obstruct(doubling, "it is not allocated in the loop, outside of conditions");
    return;
  }
  doubling->buffer = lower_sole_buffer(doubling->allocate);
  if (!doubling->buffer) {
    obstruct(doubling, "its memory has several descriptions");
    return;
  }
  for (int i = 0; i < doubling->buffer->rank; i++)
    if (expr_uses(doubling->buffer->shape[i], doubling->loop->as.loop.var))
      obstruct(doubling, "its size changes in the loop");
}

static void check(Doubling *doubling) {
  const Stmt *loop = doubling->loop;
  int64_t extent;
  if (loop->as.loop.kind != LOOP_SERIAL) obstruct(doubling, "the loop is not serial");
  if (expr_as_int(loop->as.loop.extent, &extent) && extent < 1)
    obstruct(doubling, "the loop has no iteration");
  if (expr_reads_memory(loop->as.loop.min) || expr_reads_memory(loop->as.loop.extent))
    obstruct(doubling, "the bounds of the loop read memory");
  check_memory(doubling);
  if (doubling->obstacle) return;
  Visitor outer = {.env = doubling,
                   .enter_stmt = define_in_stmt,
                   .leave_stmt = leave_attr,
                   .enter_expr = effect_in_expr};
  visit_stmt(&outer, loop->as.loop.body);
  Visitor inner = {.env = doubling, .enter_expr = filling_in_expr, .enter_stmt = filling_in_stmt};
  visit_stmt(&inner, lower_body(doubling->attr));
}

// ---- Rewriting

static Expr *next_iteration(Context *context, const Stmt *loop) {
  Expr *var = loop->as.loop.var;
  return expr_add(context, var, expr_int(context, var->type, 1));
}

static Stmt *fill_at(Context *context, const Stmt *loop, Stmt *filling, Expr *iteration) {
  return lower_substitute(context, stmt_renew(context, filling), loop->as.loop.var, iteration);
}

// Fills the buffer for the next iteration, and leaves out the allocation.
static Stmt *enter_doubled(Rewriter *rewriter, Stmt *s) {
  const Doubling *doubling = rewriter->env;
  Context *context = rewriter->context;
  const Stmt *loop = doubling->loop;
  if (s->kind == STMT_ALLOCATE && s->as.allocate.var == doubling->buffer->data)
    return rewrite_stmt(rewriter, lower_body(lower_body(s)));
  if (!lower_is_double_buffer(s) || s->as.attr.node != doubling->attr->as.attr.node) return NULL;
  Expr *next = next_iteration(context, loop), *one = expr_int(context, DTYPE_INT32, 1);
  Expr *end = expr_add(context, loop->as.loop.min, loop->as.loop.extent);
  Stmt *fill = fill_at(context, loop, s->as.attr.body, next);
  fill = stmt_attr(context, WRITE_ATTR, doubling->buffer->data, one, fill);
  return stmt_if(context, expr_lt(context, next, end), fill, NULL);
}

static bool find_scope(Visitor *visitor, Stmt *s) {
  void **env = visitor->env;
  Stmt **found = env[1];
  if (lower_is_double_buffer(s) && s->as.attr.node == env[0]) *found = s;
  return !*found;
}

static Stmt *doubled(Doubling *doubling) {
  Context *context = doubling->context;
  Stmt *loop = doubling->loop, *scope = NULL;
  Expr *var = loop->as.loop.var, *two = expr_int(context, var->type, 2);
  Buffer *wide = lower_with_first_axis(context, doubling->buffer, two);
  Expr *half = expr_floor_mod(context, expr_sub(context, var, loop->as.loop.min), two);
  Stmt *body = lower_index_first(context, loop->as.loop.body, doubling->buffer, wide, half);
  visit_stmt(
      &(Visitor){.env = (void *[]){doubling->attr->as.attr.node, &scope}, .enter_stmt = find_scope},
      body);
  Stmt *first = fill_at(context, loop, scope->as.attr.body, loop->as.loop.min);
  Expr *zero = expr_int(context, loop->as.loop.extent->type, 0);
  first = stmt_if(context, expr_lt(context, zero, loop->as.loop.extent), first, NULL);
  Rewriter rewriter = {.context = context,
                       .env = doubling,
                       .enter_stmt = enter_doubled,
                       .buffer = lower_keep_buffer};
  Stmt *rest = lower_with_body(context, loop, rewrite_stmt(&rewriter, body));
  Stmt *both = stmt_seq(context, (Stmt *[]){first, rest}, 2);
  return lower_allocate_with(context, doubling->allocate, wide, stmt_declare(context, wide, both));
}

static Stmt *double_first(LowerState *state, Stmt *loop, const Producers *found) {
  Context *context = state->context;
  Arena *arena = &context->arena;
  for (int i = 0; i < found->attrs.count; i++) {
    Stmt *attr = found->attrs.items[i];
    Doubling doubling = {.context = context,
                         .loop = loop,
                         .attr = attr,
                         .allocate = map_find(&found->allocates, attr->as.attr.node),
                         .written = map_new(arena),
                         .owned = map_new(arena),
                         .scratch = map_new(arena)};
    check(&doubling);
    if (!doubling.obstacle) return doubled(&doubling);
    lower_note(state, LOWER_COUNT_KINDS, "buffer %s is not doubled: %s",
               script_expr_text(context, attr->as.attr.node), doubling.obstacle);
  }
  return NULL;
}

// ---- Splitting the loop

typedef struct DoubleSplit {
  LowerState *state;
  int64_t split; // iterations of the loop that become one; 0: the loop stays
} DoubleSplit;

// The iteration of the loop that is `number` after its first one.
static Stmt *iteration_at(Context *context, const Stmt *loop, Expr *number) {
  Stmt *body = stmt_renew(context, loop->as.loop.body);
  Expr *var = loop->as.loop.var, *min = expr_cast(context, var->type, loop->as.loop.min);
  return lower_substitute(context, body, var, expr_add(context, min, number));
}

// Lets each iteration do those of `factor`, and puts the last 1 to `factor` ones behind the loop.
static Stmt *split_loop(Context *context, Stmt *loop, int64_t factor) {
  Expr *var = loop->as.loop.var, *extent = expr_cast(context, var->type, loop->as.loop.extent);
  Expr *zero = expr_int(context, var->type, 0), *by = expr_int(context, var->type, factor);
  Expr *before = expr_sub(context, extent, expr_int(context, var->type, 1));
  Expr *count = expr_floor_div(context, before, by);
  const char *name = arena_printf(&context->arena, "%s_outer", var->as.var->name);
  Expr *outer = expr_var(context, name, var->type);
  Stmt **main = arena_array(&context->arena, Stmt *, factor);
  Stmt **rest = arena_array(&context->arena, Stmt *, factor + 1);
  for (int64_t i = 0; i < factor; i++) {
    Expr *offset = expr_int(context, var->type, i);
    Expr *last = expr_add(context, expr_mul(context, count, by), offset);
    main[i] = iteration_at(context, loop, expr_add(context, expr_mul(context, outer, by), offset));
    rest[i + 1] =
        stmt_if(context, expr_lt(context, last, extent), iteration_at(context, loop, last), NULL);
  }
  rest[0] =
      stmt_for(context, outer, zero, count, LOOP_SERIAL, stmt_seq(context, main, (int)factor));
  Stmt *all = stmt_seq(context, rest, (int)factor + 1);
  return arith_simplify_stmt(context, stmt_if(context, expr_lt(context, zero, extent), all, NULL));
}

static Stmt *inject(Rewriter *rewriter, Stmt *s);

static Stmt *inject_again(Rewriter *rewriter, Stmt *loop) {
  const DoubleSplit *injection = rewriter->env;
  Stmt *done = inject(rewriter, loop);
  return done == loop && injection->split ? split_loop(rewriter->context, loop, injection->split)
                                          : done;
}

static Stmt *inject(Rewriter *rewriter, Stmt *s) {
  const DoubleSplit *injection = rewriter->env;
  Context *context = rewriter->context;
  if (s->kind != STMT_FOR) return s;
  Producers found = {.context = context, .allocates = map_new(&context->arena)};
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = find_producer}, s->as.loop.body);
  Stmt *next = double_first(injection->state, s, &found);
  if (!next) return s;
  Stmt *declare = lower_body(next), *both = lower_body(declare); // the loop is the last statement
  Stmt **items = both->kind == STMT_SEQ ? both->as.seq.items : &both;
  int count = both->kind == STMT_SEQ ? both->as.seq.count : 1;
  Stmt **all = arena_copy(&context->arena, items, sizeof *items * (size_t)count);
  all[count - 1] = inject_again(rewriter, all[count - 1]);
  both = stmt_seq(context, all, count);
  return lower_with_body(context, next, lower_with_body(context, declare, both));
}

PrimFunc *lower_inject_double_buffers(LowerState *state, PrimFunc *func) {
  DoubleSplit injection = {state, 0};
  if (!lower_take_number(state, "split_loop", &injection.split)) return NULL;
  if (injection.split > MOST_COPIES || (injection.split > 1 && injection.split % 2)) {
    diag_error(state->context, func->pos,
               "inject_double_buffers: split_loop is 0, 1 or an even number up to %d, not %lld",
               MOST_COPIES, (long long)injection.split);
    return NULL;
  }
  Rewriter rewriter = {.env = &injection, .stmt = inject, .buffer = lower_keep_buffer};
  return lower_rewrite(state, func, &rewriter);
}
