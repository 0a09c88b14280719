// SPDX-License-Identifier: Apache-2.0
// Constructs statements, attributes, tensor programs and modules.
#include "ir/graph.h"

static Stmt *new_stmt(Context *context, StmtKind kind) {
  Stmt *s = arena_new(&context->arena, Stmt);
  s->kind = kind;
  return s;
}

bool loop_is_ordered(const Stmt *loop) {
  return loop->kind == STMT_WHILE || loop->as.loop.kind == LOOP_SERIAL ||
         loop->as.loop.kind == LOOP_UNROLLED;
}

// TVM's names. Threads of a cluster are read and printed, and no target of this build has them.
static const char *const thread_axes[] = {
    "blockIdx.x",
    "blockIdx.y",
    "blockIdx.z",
    "threadIdx.x",
    "threadIdx.y",
    "threadIdx.z",
    "vthread.x",
    "vthread.y",
    "vthread.z",
    "vthread",
    "cthread",
    "clusterCtaIdx.x",
    "clusterCtaIdx.y",
    "clusterCtaIdx.z",
    "preferredClusterCtaIdx.x",
    "preferredClusterCtaIdx.y",
    "preferredClusterCtaIdx.z",
};

const char *thread_axis_fault(Context *context, const char *thread) {
  for (int i = 0; i < COUNT_OF(thread_axes); i++)
    if (!strcmp(thread_axes[i], thread)) return NULL;
  const char *near = suggestion_of(&context->arena, thread, thread_axes, COUNT_OF(thread_axes));
  return str_format(context, "'%s' is not a thread axis%s", thread, near);
}

bool loop_is_partitioned(const Stmt *loop) {
  return attrs_get(&loop->as.loop.annotations, "pleat.partition") != NULL;
}

int loop_thread_axis(const Stmt *loop, bool *is_block) {
  const char *thread =
      loop->kind == STMT_FOR && loop->as.loop.kind == LOOP_THREAD ? loop->as.loop.thread : "";
  const char *axis = "";
  bool of_blocks = !strncmp(thread, "blockIdx.", 9);
  if (is_block) *is_block = of_blocks;
  if (of_blocks && is_block) axis = thread + 9;
  if (!strncmp(thread, "threadIdx.", 10)) axis = thread + 10;
  return *axis >= 'x' && *axis <= 'z' && !axis[1] ? *axis - 'x' : -1;
}

Expr **stmt_defined_var(Stmt *s) {
  switch (s->kind) {
  case STMT_FOR: return &s->as.loop.var;
  case STMT_LET: return &s->as.let.var;
  case STMT_ALLOCATE: return &s->as.allocate.var;
  case STMT_ALLOCATE_CONST: return &s->as.allocate_const.var;
  default: return NULL;
  }
}

bool loop_is_virtual(const Stmt *loop) {
  return loop->kind == STMT_FOR && loop->as.loop.kind == LOOP_THREAD &&
         !strncmp(loop->as.loop.thread, "vthread", strlen("vthread"));
}

bool scope_is_texture(const char *scope) {
  return !strncmp(scope, "global.texture", strlen("global.texture"));
}

bool scope_is_shared_by(const char *scope, const char *thread) {
  bool is_block = !strncmp(thread, "blockIdx", strlen("blockIdx"));
  if (!strncmp(scope, "global", strlen("global"))) return true;
  if (!strncmp(scope, "shared", strlen("shared"))) return !is_block;
  return !strcmp(scope, "warp") && !strcmp(thread, "threadIdx.x");
}

Stmt *stmt_for(Context *context, Expr *var, Expr *min, Expr *extent, LoopKind kind, Stmt *body) {
  Stmt *s = new_stmt(context, STMT_FOR);
  s->as.loop.var = var;
  s->as.loop.min = expr_cast(context, var->type, min);
  s->as.loop.extent = expr_cast(context, var->type, extent);
  s->as.loop.kind = kind;
  s->as.loop.body = body;
  return s;
}

Stmt *stmt_store(Context *context, Buffer *buffer, Expr *const *indices, int rank, Expr *value) {
  Stmt *s = new_stmt(context, STMT_STORE);
  s->as.store.buffer = buffer;
  s->as.store.rank = rank;
  s->as.store.indices = arena_copy(&context->arena, indices, sizeof *indices * (size_t)rank);
  s->as.store.value = value;
  return s;
}

bool expr_loads_stored(const Expr *e, const Stmt *store) {
  if (e->op != EXPR_LOAD || e->as.buffer != store->as.store.buffer) return false;
  for (int i = 0; i < e->count; i++)
    if (e->args[i] != store->as.store.indices[i]) return false;
  return true;
}

bool store_is_idle(const Stmt *store) {
  for (int i = 0; i < store->as.store.rank; i++)
    if (!expr_is_pure(store->as.store.indices[i])) return false;
  return expr_loads_stored(store->as.store.value, store);
}

Stmt *stmt_let(Context *context, Expr *var, Expr *value, Stmt *body) {
  Stmt *s = new_stmt(context, STMT_LET);
  s->as.let.var = var;
  s->as.let.value = value;
  s->as.let.body = body;
  return s;
}

Stmt *stmt_if(Context *context, Expr *condition, Stmt *then_body, Stmt *else_body) {
  int64_t constant;
  if (expr_as_int(condition, &constant)) {
    if (constant) return then_body;
    return else_body ? else_body : stmt_nothing(context);
  }
  Stmt *s = new_stmt(context, STMT_IF);
  s->as.branch.condition = condition;
  s->as.branch.then_body = then_body;
  s->as.branch.else_body = else_body;
  return s;
}

Stmt *stmt_seq(Context *context, Stmt *const *items, int count) {
  Array(Stmt *) flat = {0};
  for (int i = 0; i < count; i++) {
    if (items[i]->kind == STMT_SEQ)
      for (int j = 0; j < items[i]->as.seq.count; j++)
        array_push(&context->arena, &flat, items[i]->as.seq.items[j]);
    else
      array_push(&context->arena, &flat, items[i]);
  }
  if (flat.count == 1) return flat.items[0];
  Stmt *s = new_stmt(context, STMT_SEQ);
  s->as.seq.items = flat.items;
  s->as.seq.count = flat.count;
  return s;
}

Stmt *stmt_nothing(Context *context) {
  return new_stmt(context, STMT_SEQ);
}

bool stmt_is_nothing(const Stmt *s) {
  return s->kind == STMT_SEQ && s->as.seq.count == 0;
}

bool stmt_is_idle(const Stmt *s) {
  return stmt_is_nothing(s) || (s->kind == STMT_EVALUATE && s->as.evaluate->op == EXPR_INT);
}

bool stmt_is_assumption(const Stmt *s) {
  const Expr *e = s->kind == STMT_EVALUATE ? s->as.evaluate : NULL;
  return e && (e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE) &&
         !strcmp(e->as.s, "assume");
}

Stmt *stmt_evaluate(Context *context, Expr *value) {
  Stmt *s = new_stmt(context, STMT_EVALUATE);
  s->as.evaluate = value;
  return s;
}

Stmt *stmt_block(Context *context, Block *block) {
  Stmt *s = new_stmt(context, STMT_BLOCK);
  if (!block->predicate) block->predicate = expr_bool(context, true);
  s->as.block = block;
  return s;
}

Stmt *stmt_attr(Context *context, const char *key, Expr *node, Expr *value, Stmt *body) {
  Stmt *s = new_stmt(context, STMT_ATTR);
  s->as.attr.key = str_intern(context, key);
  s->as.attr.node = node;
  s->as.attr.value = value;
  s->as.attr.body = body;
  return s;
}

Stmt *stmt_declare(Context *context, Buffer *buffer, Stmt *body) {
  Stmt *s = new_stmt(context, STMT_DECL_BUFFER);
  s->as.declare.buffer = buffer;
  s->as.declare.body = body;
  return s;
}

Stmt *stmt_allocate(Context *context, Buffer *buffer, Stmt *body) {
  Stmt *s = new_stmt(context, STMT_ALLOCATE);
  s->as.allocate.var = buffer->data;
  s->as.allocate.type = buffer->type;
  s->as.allocate.rank = buffer->rank;
  s->as.allocate.extents = buffer->shape;
  s->as.allocate.body = stmt_declare(context, buffer, body);
  return s;
}

Stmt *stmt_copy(Context *context, const Stmt *s) {
  return arena_copy(&context->arena, s, sizeof *s);
}

Block *block_copy(Context *context, const Block *b) {
  return arena_copy(&context->arena, b, sizeof *b);
}

bool block_is_reduction(const Block *b) {
  for (int i = 0; i < b->var_count; i++)
    if (b->vars[i].kind == ITER_REDUCTION) return true;
  return false;
}

bool block_is_root(const Block *b) {
  return b->var_count == 0 && strcmp(b->name, "root") == 0;
}

// ---- Attributes

const char *attribute_base(const char *key) {
  static const char *const prefixes[] = {"tirx.", "tir."};
  for (int i = 0; i < COUNT_OF(prefixes); i++)
    if (!strncmp(key, prefixes[i], strlen(prefixes[i]))) return key + strlen(prefixes[i]);
  return key;
}

bool attribute_is_dialect(const char *key) {
  return !strcmp(key, "s_tir");
}

Expr *attrs_get(const Attrs *attrs, const char *key) {
  for (int i = 0; i < attrs->count; i++)
    if (strcmp(attrs->items[i].key, key) == 0) return attrs->items[i].value;
  return NULL;
}

int64_t attrs_int(const Attrs *attrs, const char *key, int64_t otherwise) {
  Expr *value = attrs_get(attrs, key);
  int64_t result;
  return value && expr_as_int(value, &result) ? result : otherwise;
}

Attrs attrs_with(Arena *arena, Attrs attrs, Str key, Expr *value) {
  Attrs result = {arena_array(arena, Attr, attrs.count + 1), 0};
  bool replaced = false;
  for (int i = 0; i < attrs.count; i++) {
    bool same = strcmp(attrs.items[i].key, key) == 0;
    result.items[result.count++] = same ? (Attr){key, value} : attrs.items[i];
    replaced |= same;
  }
  if (!replaced) result.items[result.count++] = (Attr){key, value};
  return result;
}

Attrs attrs_without(Arena *arena, Attrs attrs, const char *key) {
  Attrs result = {arena_array(arena, Attr, attrs.count), 0};
  for (int i = 0; i < attrs.count; i++)
    if (strcmp(attrs.items[i].key, key)) result.items[result.count++] = attrs.items[i];
  return result;
}

// ---- Functions and modules

PrimFunc *prim_func_new(Context *context, const char *name, Expr *const *params,
                        Buffer *const *buffers, int param_count, Stmt *body) {
  PrimFunc *func = arena_new(&context->arena, PrimFunc);
  *func = (PrimFunc){
      .name = str_intern(context, name),
      .param_count = param_count,
      .params = arena_copy(&context->arena, params, sizeof *params * (size_t)param_count),
      .buffers = arena_copy(&context->arena, buffers, sizeof *buffers * (size_t)param_count),
      .body = body,
      .result = DTYPE_VOID,
  };
  return func;
}

PrimFunc *prim_func_copy(Context *context, const PrimFunc *func) {
  PrimFunc *copy = arena_copy(&context->arena, func, sizeof *func);
  size_t n = (size_t)func->param_count;
  copy->params = arena_copy(&context->arena, func->params, sizeof *func->params * n);
  copy->buffers = arena_copy(&context->arena, func->buffers, sizeof *func->buffers * n);
  return copy;
}

PrimFunc *prim_func_with_body(Context *context, const PrimFunc *func, Stmt *body) {
  PrimFunc *copy = prim_func_copy(context, func);
  copy->body = body;
  return copy;
}

Module *module_new(Context *context, const char *name) {
  Module *module = arena_new(&context->arena, Module);
  module->context = context;
  module->name = str_intern(context, name);
  return module;
}

const PrimFunc *module_only_program(const Module *module) {
  bool is_single = module->funcs.count == 1 && !(module->name && *module->name);
  return is_single ? module->funcs.items[0].prim : NULL;
}

ModuleFunc *module_find(const Module *module, const char *name) {
  for (int i = 0; i < module->funcs.count; i++)
    if (strcmp(module->funcs.items[i].name, name) == 0) return &module->funcs.items[i];
  return NULL;
}

static void add_func(Module *module, ModuleFunc func) {
  ModuleFunc *old = module_find(module, func.name);
  if (old)
    *old = func;
  else
    array_push(&module->context->arena, &module->funcs, func);
}

void module_add_prim(Module *module, PrimFunc *func) {
  add_func(module, (ModuleFunc){.name = func->name, .prim = func});
}

void module_add_graph(Module *module, GraphFunc *func) {
  add_func(module, (ModuleFunc){.name = func->name, .graph = func});
}
