// SPDX-License-Identifier: Apache-2.0
// Takes a function that make_packed made apart: into the statements that read and check the
// arguments, and a function of tensors and scalars that computes.
//
//   def f(self_handle, args, num_args, result) -> T.int32:
//       assert num_args == 2, …                         the statements of the host
//       k = T.Cast("int32", T.tvm_struct_get(args, 1, 15, "int64"))
//       A = T.tvm_struct_get(A_handle, 0, 1, "handle")
//       A_1 = T.decl_buffer((n, 4), data=A)             def f(A: T.Buffer((n, 4)), k: T.int32):
//       body; return 0                              →       body
//
// A body that stores its result, which is a tagged value, gets a parameter `result` of two int64
// for it: the kind, and the value. The attribute "packed_result" says so.
#include "ir/intrinsic.h"
#include "lower/pass.h"

typedef struct UnpackedParam {
  int index;      // among the packed arguments
  Expr *value;    // the pointer to the memory, or the scalar
  Buffer *buffer; // NULL: a scalar
} UnpackedParam;

typedef struct Unpacking {
  Context *context;
  const PrimFunc *func;
  LowerHost *host;
  Map indices; // variable → number of the packed argument + 1 that its value comes from
  Array(UnpackedParam) params;
  Stmt *core;
  Buffer *result;
  bool ok;
} Unpacking;

// ---- Where values come from

typedef struct Origin {
  const Unpacking *u;
  int found;      // number of the argument + 1; 0: none
  bool is_direct; // the value stands in the argument itself
} Origin;

static bool see_origin(Visitor *visitor, Expr *e) {
  Origin *origin = visitor->env;
  int64_t offset, index, field;
  if (e->op == EXPR_VAR && !origin->found)
    origin->found = (int)(intptr_t)map_find(&origin->u->indices, e);
  bool reads = expr_field_offset(e, &offset) && e->args[0] == origin->u->host->params[1];
  if (!reads) return true;
  expr_as_int(e->args[1], &index);
  expr_as_int(e->args[2], &field);
  origin->found = (int)index + 1;
  origin->is_direct |= field == FIELD_VALUE;
  return false;
}

static Origin origin_of(const Unpacking *u, Expr *e) {
  Origin origin = {.u = u};
  visit_expr(&(Visitor){.env = &origin, .enter_expr = see_origin}, e);
  return origin;
}

static void add_param(Unpacking *u, int index, Expr *value, Buffer *buffer) {
  int i = u->params.count;
  array_push(&u->context->scratch, &u->params, ((UnpackedParam){index, value, buffer}));
  for (; i > 0 && u->params.items[i - 1].index > index; i--)
    u->params.items[i] = u->params.items[i - 1];
  u->params.items[i] = (UnpackedParam){index, value, buffer};
}

static void take_let(Unpacking *u, const Stmt *s) {
  Expr *var = s->as.let.var;
  Origin origin = origin_of(u, s->as.let.value);
  map_put(&u->indices, var, (intptr_t)origin.found);
  if (origin.is_direct && var->type.code != TYPE_HANDLE) add_param(u, origin.found, var, NULL);
}

static bool has_param(const Unpacking *u, const Expr *data) {
  for (int i = 0; i < u->params.count; i++)
    if (u->params.items[i].value == data) return true;
  return false;
}

// ---- The statements

static void take(Unpacking *u, Stmt *s) {
  array_push(&u->context->arena, &u->host->statements, s);
}

static Stmt *rest_of(Context *context, const Stmt *seq, int from) {
  return stmt_seq(context, seq->as.seq.items + from, seq->as.seq.count - from);
}

// A packed argument is declared once; further names of its memory belong to the body.
static bool is_param(const Unpacking *u, const Buffer *buffer) {
  return map_find(&u->indices, buffer->data) && !has_param(u, buffer->data);
}

static void walk(Unpacking *u, Stmt *s) {
  Context *context = u->context;
  if (s->kind == STMT_SEQ && s->as.seq.items[0]->kind == STMT_ASSERT &&
      !s->as.seq.items[0]->as.check.body) {
    take(u, s->as.seq.items[0]);
    walk(u, rest_of(context, s, 1));
  } else if (s->kind == STMT_ASSERT && s->as.check.body) {
    take(u, s);
    walk(u, s->as.check.body);
  } else if (s->kind == STMT_LET) {
    take(u, s);
    take_let(u, s);
    walk(u, s->as.let.body);
  } else if (s->kind == STMT_DECL_BUFFER && is_param(u, s->as.declare.buffer)) {
    Buffer *buffer = s->as.declare.buffer;
    add_param(u, (int)(intptr_t)map_find(&u->indices, buffer->data), buffer->data, buffer);
    walk(u, s->as.declare.body);
  } else {
    u->core = s;
  }
}

// ---- The body

static Stmt *store_result(Unpacking *u, int word, Expr *value) {
  Context *context = u->context;
  int64_t two = 2;
  if (!u->result) u->result = buffer_static(context, "result", DTYPE_INT64, &two, 1, NULL);
  Expr *index = expr_int(context, DTYPE_INT32, word);
  DType type = DTYPE_INT64;
  value = dtype_is_float(value->type) ? expr_raw(context, EXPR_REINTERPRET, type, NULL, &value, 1)
                                      : expr_cast(context, type, value);
  return stmt_store(context, u->result, &index, 1, value);
}

static bool is_result(const Unpacking *u, const Expr *e) {
  int64_t ignored;
  return expr_field_offset(e, &ignored) && e->count == 4 && e->args[0] == u->host->params[3];
}

// The padding after the kind is 0.
static Stmt *rewrite_statement(Rewriter *rewriter, Stmt *s) {
  Unpacking *u = rewriter->env;
  int64_t field = 0;
  if (s->kind == STMT_ATTR && s->as.attr.key && !strcmp(s->as.attr.key, "compute_scope"))
    return s->as.attr.body;
  if (s->kind != STMT_EVALUATE || !is_result(u, s->as.evaluate)) return s;
  expr_as_int(s->as.evaluate->args[2], &field);
  Expr *value = s->as.evaluate->args[3];
  if (field == FIELD_KIND) return store_result(u, 0, value);
  if (field == FIELD_VALUE && value->type.code != TYPE_HANDLE) return store_result(u, 1, value);
  if (field != FIELD_PADDING || !expr_is_int(value, 0))
    u->ok = diag_error_as(u->context, DIAG_UNSUPPORTED, s->pos,
                          "%s stores a result that is no number", u->func->name);
  return stmt_evaluate(u->context, expr_int(u->context, DTYPE_INT32, 0));
}

static Stmt *without_last_return(Context *context, Stmt *s) {
  if (s->kind != STMT_SEQ || stmt_jump(s->as.seq.items[s->as.seq.count - 1]) != JUMP_RETURN)
    return s;
  return stmt_seq(context, s->as.seq.items, s->as.seq.count - 1);
}

// ---- The function

// A buffer over a data variable of its own, whose elements are known.
static Buffer *own_buffer(Context *context, const Buffer *from) {
  Buffer *buffer = buffer_copy(context, from);
  buffer->name = from->data->as.var->name;
  buffer->data = expr_data_var(context, buffer->name, from->type, from->scope);
  return buffer;
}

static PrimFunc *function_of(Unpacking *u) {
  Context *context = u->context;
  Arena *arena = &context->arena;
  Map vars = map_new(&context->scratch), buffers = map_new(&context->scratch);
  int count = u->params.count + (u->result != NULL);
  PrimFunc *func = prim_func_with_body(context, u->func, NULL);
  func->params = arena_array(arena, Expr *, count + 1);
  func->buffers = arena_array(arena, Buffer *, count + 1);
  u->host->values = arena_array(arena, Expr *, count + 1);
  func->param_count = count;
  for (int i = 0; i < count; i++) {
    const UnpackedParam *param = i < u->params.count ? &u->params.items[i] : NULL;
    Buffer *from = param ? param->buffer : u->result;
    u->host->values[i] = param ? param->value : u->host->params[3];
    func->params[i] = u->host->values[i];
    if (!from) continue;
    func->buffers[i] = param ? own_buffer(context, from) : from;
    func->params[i] = expr_var(context, func->buffers[i]->name, DTYPE_HANDLE);
    map_put(&buffers, from, func->buffers[i]);
    map_put(&vars, from->data, func->buffers[i]->data);
  }
  Stmt *core = lower_structure_jumps(context, without_last_return(context, u->core), JUMP_RETURN);
  if (!core) return NULL;
  func->body = substitute_stmt(context, core, &vars, &buffers);
  func->result = DTYPE_VOID;
  func->attrs = attrs_without(arena, func->attrs, "calling_conv");
  func->attrs = attrs_without(arena, func->attrs, "global_symbol");
  if (u->result)
    func->attrs = attrs_with(arena, func->attrs, str_intern(context, "packed_result"),
                             expr_bool(context, true));
  return func;
}

static bool see_use(Visitor *visitor, Expr *e) {
  Unpacking *u = visitor->env;
  bool packed = false;
  for (int i = 0; i < 4; i++) packed |= e == u->host->params[i];
  bool pointer = e->op == EXPR_VAR && e->type.code == TYPE_HANDLE && map_find(&u->indices, e) &&
                 !has_param(u, e);
  if (u->ok && (packed || pointer))
    u->ok = diag_error_as(u->context, DIAG_UNSUPPORTED, u->func->pos,
                          "the body of %s uses the pointer '%s', which is the memory of no buffer "
                          "that it declares",
                          u->func->name, e->as.var->name);
  return u->ok;
}

PrimFunc *lower_unpack(Context *context, PrimFunc *func, LowerHost **host) {
  Unpacking u = {.context = context, .func = func, .ok = true};
  const Expr *symbol = attrs_get(&func->attrs, "global_symbol");
  *host = NULL;
  if (!lower_is_packed(func)) return func;
  if (func->param_count != 4 || func->buffers[0] || func->buffers[1] || func->buffers[3]) {
    diag_error_as(context, DIAG_UNSUPPORTED, func->pos,
                  "%s has the convention of packed functions, but not the parameters self_handle, "
                  "args, num_args and result",
                  func->name);
    return NULL;
  }
  u.host = arena_new(&context->arena, LowerHost);
  u.host->symbol = symbol && symbol->op == EXPR_STRING ? symbol->as.s : func->name;
  memcpy(u.host->params, func->params, sizeof u.host->params);
  u.indices = map_new(&context->scratch);
  walk(&u, func->body);
  Rewriter rewriter = {
      .context = context, .env = &u, .stmt = rewrite_statement, .buffer = lower_keep_buffer};
  u.core = rewrite_stmt(&rewriter, u.core);
  visit_stmt(&(Visitor){.env = &u, .enter_expr = see_use}, u.core);
  if (!u.ok) return NULL;
  *host = u.host;
  return function_of(&u);
}

PrimFunc *lower_unpack_api(LowerState *state, PrimFunc *func) {
  LowerHost *host;
  return lower_unpack(state->context, func, &host);
}
