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
// Statements that leave loops become conditions too (structure_jumps.c). allocation_places.c finds
// the places of the allocations.
#include "ir/intrinsic.h"
#include "ir/view.h"
#include "lower/pass.h"
#include "script/script.h"

// ---- Blocks

typedef struct Conversion {
  Context *context;
  Map inside;  // loop or block before the conversion → PtrArray* of buffers to allocate in it
  Map aligned; // data variable → the axes to align (aligned_axes.c)
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

static Stmt *convert(Rewriter *rewriter, Stmt *s) {
  bool is_realize = s->kind == STMT_ATTR && !strcmp(s->as.attr.key, "realize_scope");
  if (is_realize) return rewrite_stmt(rewriter, s->as.attr.body); // states what is accessed
  Conversion *conversion = rewriter->env;
  Context *context = rewriter->context;
  if (s->kind == STMT_FOR) {
    Stmt *next = rewrite_stmt_children(rewriter, s);
    Stmt *body = allocate_inside(conversion, s, next->as.loop.body);
    return body == next->as.loop.body ? next : lower_with_body(context, next, body);
  }
  if (s->kind != STMT_BLOCK) return NULL;
  Stmt *next = rewrite_stmt_children(rewriter, s);
  Stmt *body = convert_block(context, next->as.block);
  body = allocate_inside(conversion, s, body);
  Stmt *branch = stmt_if(context, next->as.block->predicate, body, NULL);
  if (branch != body) branch->pos = s->pos;
  return branch;
}

PrimFunc *lower_convert_blocks(LowerState *state, PrimFunc *func) {
  Context *context = state->context;
  int errors = context->error_count;
  if (!prim_func_check_views(context, func)) return NULL;
  Conversion conversion = {context, lower_allocation_places(context, func->body, false),
                           lower_find_aligned_axes(context, func->body)};
  Rewriter rewriter = {
      .context = context, .env = &conversion, .enter_stmt = convert, .buffer = lower_keep_buffer};
  Stmt *body = rewrite_stmt(&rewriter, func->body);
  bool returns = state->compiles || state->options->drop_result;
  int jumps = JUMP_BREAK | JUMP_CONTINUE | (returns ? JUMP_RETURN : 0);
  if (context->error_count == errors) body = lower_structure_jumps(context, body, jumps);
  return context->error_count > errors ? NULL : prim_func_with_body(context, func, body);
}
