// SPDX-License-Identifier: Apache-2.0
// Makes functions of what loops over threads compute, which the host then calls. The name of TVM's
// pass: SplitHostDevice.
//
//   def main(A, B, n):                         def main(A, B, n):
//     for b in blockIdx.x(n):            →       main_kernel(A.data, B.data, n)
//       for x in threadIdx.x(16): …            def main_kernel(A, B, n):   # private
//                                                for b in blockIdx.x(n): …
//
// The parameters of a kernel are the memory that it accesses and the variables that it uses, in the
// order of their first use. TVM calls it by T.call_packed, which finds it in the code of the
// device; here it is another function of the module, whose body takes the place of the call where
// code is made. Needs functions without blocks.
#include "passes/passes.h"

typedef struct HostSplit {
  PassRun *run;
  Context *context;
  const PrimFunc *func;
} HostSplit;

typedef struct KernelUses {
  const HostSplit *split;
  Map defined;       // variables of the kernel itself
  PtrArray buffers;  // Buffer *: one for each memory, and the others over it
  PtrArray scalars;  // Expr *
  Map data, known;   // data variables to the first buffer, and what was seen
  const Expr *place; // memory that is passed on without a buffer that describes it
} KernelUses;

// ---- What a kernel uses

static bool define(Visitor *visitor, Stmt *s) {
  KernelUses *uses = visitor->env;
  Expr **var = stmt_defined_var(s);
  if (var) map_put(&uses->defined, *var, *var);
  return true;
}

static bool define_in_expr(Visitor *visitor, Expr *e) {
  KernelUses *uses = visitor->env;
  if (e->op == EXPR_LET) map_put(&uses->defined, e->args[0], e->args[0]);
  return true;
}

static bool use_expr(Visitor *visitor, Expr *e);

static void use_in(KernelUses *uses, Expr *e) {
  if (e) visit_expr(&(Visitor){.env = uses, .enter_expr = use_expr}, e);
}

static const Buffer *param_over(const PrimFunc *func, const Expr *data) {
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i] && func->buffers[i]->data == data) return func->buffers[i];
  return NULL;
}

static void use_buffer(KernelUses *uses, Buffer *buffer) {
  Arena *arena = &uses->split->context->arena;
  if (map_contains(&uses->known, buffer) || map_contains(&uses->defined, buffer->data)) return;
  const Buffer *param = param_over(uses->split->func, buffer->data);
  if (param && param != buffer) use_buffer(uses, (Buffer *)param);
  map_put(&uses->known, buffer, buffer);
  if (!map_contains(&uses->data, buffer->data)) map_put(&uses->data, buffer->data, buffer);
  array_push(arena, &uses->buffers, buffer);
  for (int d = 0; d < buffer->rank; d++) use_in(uses, buffer->shape[d]);
  for (int d = 0; buffer->strides && d < buffer->rank; d++) use_in(uses, buffer->strides[d]);
  use_in(uses, buffer->offset);
}

static void use_data(KernelUses *uses, Expr *data) {
  const Buffer *param = param_over(uses->split->func, data);
  if (param)
    use_buffer(uses, (Buffer *)param);
  else if (!map_contains(&uses->data, data))
    uses->place = data;
}

static bool use_expr(Visitor *visitor, Expr *e) {
  KernelUses *uses = visitor->env;
  if (e->op == EXPR_LOAD) use_buffer(uses, e->as.buffer);
  if (e->op != EXPR_VAR || map_contains(&uses->defined, e)) return true;
  if (e->as.var->scope) {
    use_data(uses, e);
  } else if (!map_contains(&uses->known, e)) {
    map_put(&uses->known, e, e);
    array_push(&uses->split->context->arena, &uses->scalars, e);
  }
  return true;
}

static bool use_stmt(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_STORE) use_buffer(visitor->env, s->as.store.buffer);
  if (s->kind == STMT_DECL_BUFFER) use_buffer(visitor->env, s->as.declare.buffer);
  return true;
}

// ---- The kernel

static Expr **substituted(Context *context, Expr *const *items, int count, const Map *vars) {
  if (!items) return NULL;
  Expr **result = arena_array(&context->arena, Expr *, count + 1);
  for (int i = 0; i < count; i++) result[i] = substitute_expr(context, items[i], vars);
  return result;
}

typedef struct KernelParts {
  PtrArray params, buffers, args; // Expr *, Buffer * or NULL, Expr *
  Map vars, memory;               // to the variables and buffers of the kernel
} KernelParts;

static void add_param(Context *context, KernelParts *k, Expr *param, Buffer *buffer, Expr *arg) {
  array_push(&context->arena, &k->params, param);
  array_push(&context->arena, &k->buffers, buffer);
  array_push(&context->arena, &k->args, arg);
}

static void take_scalars(Context *context, KernelParts *k, const KernelUses *uses) {
  for (int i = 0; i < uses->scalars.count; i++) {
    Expr *from = uses->scalars.items[i];
    map_put(&k->vars, from, expr_var(context, from->as.var->name, from->type));
  }
}

static void take_buffer(Context *context, KernelParts *k, const KernelUses *uses, Buffer *from) {
  Buffer *copy = buffer_copy(context, from);
  bool is_first = map_find(&uses->data, from->data) == from;
  if (is_first)
    map_put(&k->vars, from->data, expr_data_var(context, from->name, from->type, from->scope));
  copy->data = map_find(&k->vars, from->data);
  copy->shape = substituted(context, from->shape, from->rank, &k->vars);
  copy->strides = substituted(context, from->strides, from->rank, &k->vars);
  copy->offset = substitute_expr(context, from->offset, &k->vars);
  map_put(&k->memory, from, copy);
  if (!is_first) return;
  const char *name = str_format(context, "p_%s", from->name);
  add_param(context, k, expr_var(context, name, DTYPE_HANDLE), copy, from->data);
}

static Stmt *declared(Context *context, const KernelParts *k, const KernelUses *uses, Stmt *body) {
  for (int i = uses->buffers.count - 1; i >= 0; i--) {
    const Buffer *from = uses->buffers.items[i];
    bool is_first = map_find(&uses->data, from->data) == from;
    if (!is_first) body = stmt_declare(context, map_find(&k->memory, from), body);
  }
  return body;
}

static Stmt *call_kernel(HostSplit *split, Stmt *s, const KernelUses *uses) {
  Context *context = split->context;
  Arena *arena = &context->arena;
  KernelParts k = {.vars = map_new(arena), .memory = map_new(arena)};
  take_scalars(context, &k, uses);
  for (int i = 0; i < uses->buffers.count; i++)
    take_buffer(context, &k, uses, uses->buffers.items[i]);
  for (int i = 0; i < uses->scalars.count; i++)
    add_param(context, &k, map_find(&k.vars, uses->scalars.items[i]), NULL, uses->scalars.items[i]);
  Stmt *body = declared(context, &k, uses, substitute_stmt(context, s, &k.vars, &k.memory));
  PrimFunc *func =
      prim_func_new(context,
                    graph_free_name(context, split->run->module,
                                    str_format(context, "%s_kernel", split->func->name)),
                    (Expr **)k.params.items, (Buffer **)k.buffers.items, k.params.count, body);
  func->pos = s->pos;
  func->attrs =
      attrs_with(arena, func->attrs, str_intern(context, "private"), expr_bool(context, true));
  func->attrs = attrs_with(arena, func->attrs, str_intern(context, "tir.is_global_func"),
                           expr_bool(context, true));
  module_add_prim(split->run->module, func);
  return stmt_evaluate(context, expr_raw(context, EXPR_CALL_MODULE, DTYPE_VOID,
                                         str_intern(context, func->name), (Expr **)k.args.items,
                                         k.args.count));
}

static bool starts_threads(const Stmt *s) {
  return s->kind == STMT_FOR && s->as.loop.kind == LOOP_THREAD;
}

static Stmt *split_stmt(Rewriter *rewriter, Stmt *s) {
  HostSplit *split = rewriter->env;
  Context *context = split->context;
  if (!starts_threads(s)) return NULL;
  Map none = map_new(&context->arena);
  KernelUses uses = {.split = split, .defined = none, .data = none, .known = none};
  visit_stmt(&(Visitor){.env = &uses, .enter_stmt = define, .enter_expr = define_in_expr}, s);
  visit_stmt(&(Visitor){.env = &uses, .enter_stmt = use_stmt, .enter_expr = use_expr}, s);
  if (!uses.place) return call_kernel(split, s, &uses);
  diag_error(
      context, s->pos,
      "the loop over threads passes on %s, which is no parameter of %s, and does not access it\n"
      "access its memory by a buffer in the loop",
      uses.place->as.var->name, split->func->name);
  return s;
}

static bool see_block(Visitor *visitor, Stmt *s) {
  const Stmt **found = visitor->env;
  if (s->kind == STMT_BLOCK && !*found) *found = s;
  return !*found;
}

static bool split_func(PassRun *run, PrimFunc *func) {
  Context *context = run->context;
  int errors = context->error_count;
  HostSplit split = {run, context, func};
  const Stmt *block = NULL;
  bool is_kernel = attrs_get(&func->attrs, "tir.is_global_func") != NULL;
  visit_stmt(&(Visitor){.env = &block, .enter_stmt = see_block}, func->body);
  if (block)
    return diag_error(context, block->pos.file ? block->pos : func->pos,
                      "SplitHostDevice cannot run on %s, which has blocks; run convert_blocks "
                      "(LowerOpaqueBlock) first",
                      func->name);
  if (is_kernel) return true;
  Rewriter rewriter = {.context = context, .env = &split, .enter_stmt = split_stmt};
  Stmt *body = rewrite_stmt(&rewriter, func->body);
  if (body != func->body) module_add_prim(run->module, prim_func_with_body(context, func, body));
  return context->error_count == errors;
}

bool graph_split_host_device(PassRun *run) {
  bool ok = true;
  for (int i = 0, count = run->module->funcs.count; i < count && ok; i++)
    if (run->module->funcs.items[i].prim) ok = split_func(run, run->module->funcs.items[i].prim);
  return ok;
}
