// SPDX-License-Identifier: Apache-2.0
// Hashes programs so that those which prim_func_equal or module_equal find equal have one hash:
// variables and buffers are known by the order in which they first occur, and what these functions
// do not compare is left out.
#include "ir/graph.h"
#include "ir/target.h"

typedef struct Hashing {
  uint64_t hash;
  Map numbers; // variables, buffers and values: the order of their first occurrence
  Visitor visitor;
} Hashing;

static void add(Hashing *h, uint64_t value) {
  h->hash = hash_mix(h->hash, value);
}

static uint64_t text_hash(const char *text) {
  return text ? hash_bytes(text, strlen(text)) : 0;
}

// Adds the number of the object; true when it occurs for the first time.
static bool add_object(Hashing *h, const void *object) {
  uint64_t known = (uint64_t)(uintptr_t)map_find(&h->numbers, object);
  uint64_t number = known ? known : (uint64_t)h->numbers.count + 1;
  if (!known) map_put(&h->numbers, object, (uintptr_t)number);
  add(h, number);
  return !known;
}

static void add_type(Hashing *h, DType type) {
  add(h, (uint64_t)type.code << 32 | (uint64_t)type.bits << 16 | type.lanes);
}

static void add_exprs(Hashing *h, Expr *const *items, int count) {
  for (int i = 0; items && i < count; i++)
    if (items[i]) visit_expr(&h->visitor, items[i]);
}

static void add_buffer(Hashing *h, const Buffer *buffer) {
  if (!add_object(h, buffer)) return;
  add_type(h, buffer->type);
  add(h, text_hash(buffer->scope));
  add_exprs(h, buffer->shape, buffer->rank);
  add_exprs(h, buffer->strides, buffer->rank);
}

// ---- Attributes ---------------------------------------------------------------------------------

static uint64_t attribute_hash(const Expr *e);

// In any order of the keys.
static uint64_t dictionary_hash(const Expr *e) {
  uint64_t sum = 0;
  for (int i = 0; i + 1 < e->count; i += 2)
    sum += hash_mix(attribute_hash(e->args[i]), attribute_hash(e->args[i + 1]));
  return sum;
}

static uint64_t attribute_hash(const Expr *e) {
  uint64_t hash = e->op;
  if (expr_is_target(e)) return hash; // of which equal ones may be written in many ways
  if (e->op == EXPR_DICT) return hash_mix(hash, dictionary_hash(e));
  float real = e->op == EXPR_FLOAT ? (float)e->as.f : 0;
  if (e->op == EXPR_INT) hash = hash_mix(hash, (uint64_t)e->as.i);
  if (e->op == EXPR_FLOAT && real == real) hash = hash_mix(hash, hash_bytes(&real, sizeof real));
  if (e->op == EXPR_STRING) hash = hash_mix(hash, text_hash(e->as.s));
  for (int i = 0; i < e->count; i++) hash = hash_mix(hash, attribute_hash(e->args[i]));
  return hash;
}

// Attributes are equal in any order.
static void add_attrs(Hashing *h, const Attrs *attrs) {
  uint64_t sum = 0;
  for (int i = 0; i < attrs->count; i++)
    if (!attribute_is_dialect(attrs->items[i].key))
      sum += hash_mix(text_hash(attribute_base(attrs->items[i].key)),
                      attribute_hash(attrs->items[i].value));
  add(h, sum);
}

// ---- Expressions and statements -----------------------------------------------------------------

static void add_payload(Hashing *h, const Expr *e) {
  switch ((ExprOp)e->op) {
  case EXPR_INT: add(h, (uint64_t)e->as.i); break;
  case EXPR_FLOAT:
    if (e->as.f == e->as.f) add(h, hash_bytes(&e->as.f, sizeof e->as.f));
    break;
  case EXPR_STRING:
  case EXPR_CALL:
  case EXPR_CALL_PURE:
  case EXPR_CALL_MODULE:
  case EXPR_OBJECT:
  case EXPR_INTRINSIC:
  case EXPR_INTRINSIC_PURE: add(h, text_hash(e->as.s)); break;
  case EXPR_VAR: add_object(h, e); break;
  case EXPR_LOAD: add_buffer(h, e->as.buffer); break;
  default: break;
  }
}

static bool enter_expr(Visitor *visitor, Expr *e) {
  Hashing *h = visitor->env;
  add(h, e->op);
  // Extents in regions are equal where their numbers are.
  if (e->op != EXPR_INT) add_type(h, e->type);
  add_payload(h, e);
  return true;
}

static void add_regions(Hashing *h, const Region *regions, int count) {
  add(h, (uint64_t)count);
  for (int i = 0; i < count; i++) add_buffer(h, regions[i].buffer);
}

static bool is_root(const Block *block) {
  return !block->var_count && !strcmp(block->name, "root");
}

static void add_block(Hashing *h, const Block *block) {
  for (int i = 0; i < block->alloc_count; i++) add_buffer(h, block->allocs[i]);
  add_attrs(h, &block->annotations);
  for (int i = 0; i < block->var_count; i++) add(h, block->vars[i].kind);
  if (is_root(block)) return;
  add_regions(h, block->reads, block->read_count);
  add_regions(h, block->writes, block->write_count);
}

static void add_statement(Hashing *h, const Stmt *s) {
  switch (s->kind) {
  case STMT_FOR:
    add(h, s->as.loop.kind);
    add(h, text_hash(s->as.loop.thread && *s->as.loop.thread ? s->as.loop.thread : NULL));
    add_attrs(h, &s->as.loop.annotations);
    break;
  case STMT_STORE: add_buffer(h, s->as.store.buffer); break;
  case STMT_BLOCK: add_block(h, s->as.block); break;
  case STMT_ALLOCATE: add_type(h, s->as.allocate.type); break;
  case STMT_ALLOCATE_CONST: add(h, s->as.allocate_const.data->bytes); break;
  case STMT_DECL_BUFFER: add_buffer(h, s->as.declare.buffer); break;
  case STMT_ATTR: add(h, text_hash(s->as.attr.key)); break;
  case STMT_SEQ:
  case STMT_LET:
  case STMT_IF:
  case STMT_WHILE:
  case STMT_ASSERT:
  case STMT_EVALUATE: break;
  }
}

static bool enter_stmt(Visitor *visitor, Stmt *s) {
  Hashing *h = visitor->env;
  if (stmt_is_idle(s)) return false;
  if (s->kind != STMT_SEQ) add(h, s->kind);
  add_statement(h, s);
  if (s->kind == STMT_ATTR) { // numbers in the value are equal by their values
    add(h, attribute_hash(s->as.attr.value));
    visit_stmt(visitor, s->as.attr.body);
    return false;
  }
  if (s->kind != STMT_BLOCK || !is_root(s->as.block)) return true;
  if (s->as.block->init) visit_stmt(visitor, s->as.block->init);
  visit_stmt(visitor, s->as.block->body);
  return false;
}

// ---- Functions ----------------------------------------------------------------------------------

static Hashing hashing_new(Context *context) {
  return (Hashing){.numbers = map_new(&context->scratch),
                   .visitor = {.enter_expr = enter_expr, .enter_stmt = enter_stmt}};
}

uint64_t prim_func_hash(Context *context, const PrimFunc *func) {
  ArenaMark mark = arena_mark(&context->scratch);
  Hashing h = hashing_new(context);
  h.visitor.env = &h;
  for (int i = 0; i < func->param_count; i++) {
    add_object(&h, func->params[i]);
    if (func->buffers[i])
      add_buffer(&h, func->buffers[i]);
    else
      add_type(&h, func->params[i]->type);
  }
  add_attrs(&h, &func->attrs);
  visit_stmt(&h.visitor, func->body);
  arena_reset(&context->scratch, mark);
  return h.hash;
}

static uint64_t graph_func_hash(Context *context, const GraphFunc *func) {
  ArenaMark mark = arena_mark(&context->scratch);
  Hashing h = hashing_new(context);
  for (int i = 0; i < func->param_count; i++) add_object(&h, func->params[i]);
  for (int i = 0; i < func->nodes.count; i++) {
    const Node *node = func->nodes.items[i];
    add(&h, node->kind);
    add(&h, text_hash(node->kind == NODE_CALL_TIR ? node->callee->name : node->op));
    for (int k = 0; k < node->output_count; k++) add_object(&h, node->outputs[k]);
  }
  arena_reset(&context->scratch, mark);
  return h.hash;
}

uint64_t module_hash(Context *context, const Module *module) {
  uint64_t sum = 0; // functions are equal in any order
  for (int i = 0; i < module->funcs.count; i++) {
    const ModuleFunc *func = &module->funcs.items[i];
    uint64_t hash =
        func->prim ? prim_func_hash(context, func->prim) : graph_func_hash(context, func->graph);
    sum += hash_mix(text_hash(func->name), hash);
  }
  return sum;
}
