// SPDX-License-Identifier: Apache-2.0
// Turns blocks into loops: variables are replaced by their bindings, predicates and inits become
// ifs, accesses of views (match_buffer) become accesses of their source, and each allocation of a
// block goes to the innermost loop or block that may hold it.
//
//   with T.block("root"):                         for i in range(30):
//     B = T.alloc_buffer((30,))                     B = allocate(30)
//     for i in range(30):                           for k in range(7):
//       for k in range(7):                            if k == 0:
//         with T.block("sum"):              →           B[i] = 0
//           vi, vk = T.axis.remap("SR", [i, k])       B[i] = B[i] + A[i, k]
//           with T.init(): B[vi] = 0                C[i] = B[i] * 2
//           B[vi] = B[vi] + A[vi, vk]
//       C[i] = B[i] * 2
//
// A loop of a reduction that may have no iterations gets a condition before it, which stores the
// init (arith/empty_reductions.c). Statements that leave loops become conditions too
// (structure_jumps.c). allocation_places.c finds the places of the allocations. Where the result is
// not compiled at once, loops over threads are written as T.launch_thread, and annotations
// "pragma_NAME" as T.attr, as TVM has them.
#include "ir/intrinsic.h"
#include "ir/view.h"
#include "lower/pass.h"
#include "script/script.h"

// ---- Blocks

typedef struct Conversion {
  Context *context;
  Map inside;  // loop or block before the conversion → PtrArray* of buffers to allocate in it
  Map aligned; // data variable → the axes to align (aligned_axes.c)
  bool compiles;
} Conversion;

static Expr *init_condition(Context *context, const Block *block) {
  Expr *condition = expr_bool(context, true);
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *v = &block->vars[i];
    if (v->kind != ITER_REDUCTION || expr_is_int(v->extent, 1)) continue;
    condition = expr_and(context, condition, expr_binary(context, EXPR_EQ, v->var, v->min));
  }
  return condition;
}

Stmt *lower_bind_block_vars(Context *context, const Block *block, Stmt *body) {
  if (!block->var_count) return body;
  Map vars = map_new(&context->arena);
  for (int i = 0; i < block->var_count; i++)
    map_put(&vars, block->vars[i].var,
            expr_cast(context, block->vars[i].var->type, block->vars[i].binding));
  return substitute_stmt(context, body, &vars, NULL);
}

Stmt *lower_body_with_init(Context *context, const Block *block) {
  if (!block->init) return block->body;
  Stmt *init = stmt_if(context, init_condition(context, block), block->init, NULL);
  return stmt_seq(context, (Stmt *[]){init, block->body}, 2);
}

// The statement for a block whose children hold no blocks any more.
static Stmt *convert_block(Context *context, const Block *block) {
  Stmt *body = lower_body_with_init(context, block);
  for (int i = block->match_count - 1; i >= 0; i--)
    body = stmt_resolve_view(context, &block->matches[i], body);
  return lower_bind_block_vars(context, block, body);
}

static Stmt *allocate_inside(Conversion *conversion, const Stmt *original, Stmt *body) {
  PtrArray *buffers = map_find(&conversion->inside, original);
  Context *context = conversion->context;
  for (int i = buffers ? buffers->count - 1 : -1; i >= 0; i--) {
    Buffer *buffer = buffers->items[i];
    body = stmt_allocate(context, buffer, body);
    Expr *axes = map_find(&conversion->aligned, buffer->data);
    Attrs *attrs = &body->as.allocate.annotations;
    if (axes)
      *attrs = attrs_with(&context->arena, *attrs, str_intern(context, "buffer_dim_align"), axes);
  }
  return body;
}

// ---- Loops

static bool is_pragma(const Attr *attr) {
  return !strncmp(attr->key, "pragma_", strlen("pragma_"));
}

// The value of an annotation as that of an attribute, where a number with a fraction is a float32.
static Expr *attribute_value(Context *context, Expr *value) {
  bool is_float = value->op == EXPR_FLOAT && dtype_is_float(value->type);
  return is_float ? expr_float(context, DTYPE_FLOAT32, value->as.f) : value;
}

// `body` in an attribute for each pragma, the first key outside.
static Stmt *in_pragmas(Context *context, const Attrs *attrs, Stmt *body) {
  Attrs left = *attrs;
  while (true) {
    const Attr *last = NULL;
    for (int i = 0; i < left.count; i++)
      if (is_pragma(&left.items[i]) && (!last || strcmp(left.items[i].key, last->key) > 0))
        last = &left.items[i];
    if (!last) return body;
    Expr *value = attribute_value(context, last->value);
    body = stmt_attr(context, last->key, expr_int(context, DTYPE_INT32, 0), value, body);
    left = attrs_without(&context->arena, left, last->key);
  }
}

// A loop over threads starts them, and pragmas stand around the loop.
static Stmt *convert_loop(Conversion *conversion, Stmt *s) {
  Context *context = conversion->context;
  if (conversion->compiles) return s;
  Stmt *next = stmt_copy(context, s);
  Attrs *kept = &next->as.loop.annotations;
  for (int i = 0; i < s->as.loop.annotations.count; i++)
    if (is_pragma(&s->as.loop.annotations.items[i]))
      *kept = attrs_without(&context->arena, *kept, s->as.loop.annotations.items[i].key);
  bool is_thread = s->as.loop.kind == LOOP_THREAD;
  next->as.loop.is_launch |= is_thread && expr_is_int(s->as.loop.min, 0) && !kept->count;
  bool same = kept->count == s->as.loop.annotations.count &&
              next->as.loop.is_launch == s->as.loop.is_launch;
  return same ? s : in_pragmas(context, &s->as.loop.annotations, next);
}

static Stmt *convert(Rewriter *rewriter, Stmt *s) {
  bool is_realize = s->kind == STMT_ATTR && !strcmp(s->as.attr.key, "realize_scope");
  if (is_realize) return rewrite_stmt(rewriter, s->as.attr.body); // states what is accessed
  Conversion *conversion = rewriter->env;
  Context *context = rewriter->context;
  if (s->kind == STMT_FOR) {
    Stmt *next = rewrite_stmt_children(rewriter, s);
    Stmt *body = allocate_inside(conversion, s, next->as.loop.body);
    if (body != next->as.loop.body) next = lower_with_body(context, next, body);
    next = convert_loop(conversion, next);
    Stmt *inits = loop_empty_inits(context, s);
    if (!inits) return next;
    return stmt_seq(context, (Stmt *[]){rewrite_stmt(rewriter, inits), next}, 2);
  }
  if (s->kind != STMT_BLOCK) return NULL;
  Stmt *next = rewrite_stmt_children(rewriter, s);
  Stmt *body = convert_block(context, next->as.block);
  body = allocate_inside(conversion, s, body);
  if (!conversion->compiles) body = in_pragmas(context, &next->as.block->annotations, body);
  Stmt *branch = stmt_if(context, next->as.block->predicate, body, NULL);
  if (branch != body) branch->pos = s->pos;
  return branch;
}

PrimFunc *lower_convert_blocks(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  int errors = context->error_count;
  if (!prim_func_check_views(context, func)) return NULL;
  Conversion conversion = {context, lower_allocation_places(context, func->body, false),
                           lower_find_aligned_axes(context, func->body), state->compiles};
  Rewriter rewriter = {
      .context = context, .env = &conversion, .enter_stmt = convert, .buffer = lower_keep_buffer};
  Stmt *body = rewrite_stmt(&rewriter, func->body);
  bool returns = state->compiles || state->options->drop_result;
  int jumps = JUMP_BREAK | JUMP_CONTINUE | (returns ? JUMP_RETURN : 0);
  if (context->error_count == errors) body = lower_structure_jumps(context, body, jumps);
  return context->error_count > errors ? NULL : prim_func_with_body(context, func, body);
}
