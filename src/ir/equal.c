// SPDX-License-Identifier: Apache-2.0
// Decides the structural equality of programs, graphs and modules, up to the names of variables and
// buffers (alpha-equivalence). A variable or buffer of one side gets its partner of the other side
// where it is bound, and the partners must then occur together. Attributes are compared by key, and
// numbers in attributes by value. The regions that a root block states are not compared, since they
// are derived from its body.
#include "base/machine.h"
#include "ir/graph.h"
#include "ir/target.h"
#include "layout/layout.h"

typedef struct Comparison {
  Context *context;
  Arena *arena;
  Map forth, back; // variables, buffers and values: a's to b's, and b's to a's
  Map same;        // pairs of expressions found equal under the present partners
  SourcePos a, b;
  IrDifference *difference; // may be NULL
  bool in_module;
  bool blocks_by_name; // blocks of different names differ
} Comparison;

static Comparison comparison_new(Context *context, IrDifference *difference) {
  Arena *arena = &context->scratch;
  return (Comparison){.context = context,
                      .arena = arena,
                      .forth = map_new(arena),
                      .back = map_new(arena),
                      .same = map_new(arena),
                      .difference = difference,
                      .blocks_by_name = true};
}

static Comparison comparison_inside(const Comparison *c) {
  Comparison inner = comparison_new(c->context, c->difference);
  inner.blocks_by_name = c->blocks_by_name;
  return inner;
}

// Records the first difference and returns false.
PRINTF_LIKE(2, 3) static bool differ(Comparison *c, const char *format, ...) {
  if (!c->difference || c->difference->what) return false;
  va_list args;
  va_start(args, format);
  *c->difference = (IrDifference){c->a, c->b, arena_vprintf(&c->context->arena, format, args)};
  va_end(args);
  return false;
}

// ---- Partners

static void pair(Comparison *c, const void *a, const void *b) {
  if (c->same.count) c->same = map_new(c->arena);
  map_put(&c->forth, a, b);
  map_put(&c->back, b, a);
}

static bool is_pair(const Comparison *c, const void *a, const void *b) {
  const void *forth = map_find(&c->forth, a), *back = map_find(&c->back, b);
  return forth || back ? forth == b && back == a : a == b;
}

static bool is_free(const Comparison *c, const void *a, const void *b) {
  return !map_find(&c->forth, a) && !map_find(&c->back, b);
}

// ---- Expressions

static const char *brief(Comparison *c, const Expr *e) {
  switch ((ExprOp)e->op) {
  case EXPR_INT: return str_format(c->context, "%lld", (long long)e->as.i);
  case EXPR_FLOAT: return str_format(c->context, "%.9g", e->as.f);
  case EXPR_STRING: return str_format(c->context, "\"%s\"", e->as.s);
  case EXPR_VAR: return e->as.var->name;
  case EXPR_LOAD: return str_format(c->context, "an element of %s", e->as.buffer->name);
  case EXPR_CALL:
  case EXPR_CALL_PURE:
  case EXPR_CALL_MODULE:
  case EXPR_OBJECT:
  case EXPR_INTRINSIC:
  case EXPR_INTRINSIC_PURE: return str_format(c->context, "a call of %s", e->as.s);
  default: break;
  }
  const OpInfo *info = &op_table[e->op];
  return str_format(c->context, "an expression with '%s'", *info->spelling ? info->spelling : "[]");
}

static bool expr_differs(Comparison *c, const char *what, const Expr *a, const Expr *b) {
  bool alike = a->op == b->op && !dtype_equal(a->type, b->type);
  if (alike)
    return differ(c, "%s: types %s and %s", what, dtype_name(c->context, a->type),
                  dtype_name(c->context, b->type));
  return differ(c, "%s: %s and %s", what, brief(c, a), brief(c, b));
}

static bool same_buffer(Comparison *c, const Buffer *a, const Buffer *b);

static bool same_real(double a, double b) {
  return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

static bool same_payload(Comparison *c, const Expr *a, const Expr *b) {
  switch ((ExprOp)a->op) {
  case EXPR_INT: return a->as.i == b->as.i;
  case EXPR_FLOAT: return same_real(a->as.f, b->as.f);
  case EXPR_STRING:
  case EXPR_CALL:
  case EXPR_CALL_PURE:
  case EXPR_CALL_MODULE:
  case EXPR_OBJECT:
  case EXPR_INTRINSIC:
  case EXPR_INTRINSIC_PURE: return strcmp(a->as.s, b->as.s) == 0;
  case EXPR_VAR: return is_pair(c, a, b);
  case EXPR_LOAD: return same_buffer(c, a->as.buffer, b->as.buffer);
  default: return true;
  }
}

static bool same_expr(Comparison *c, const char *what, const Expr *a, const Expr *b);

static bool same_operands(Comparison *c, const char *what, const Expr *a, const Expr *b) {
  int first = 0;
  if (a->op == EXPR_LET) { // the variable is bound here
    if (!same_expr(c, what, a->args[1], b->args[1])) return false;
    pair(c, a->args[0], b->args[0]);
    first = 2;
  }
  if (a->op == EXPR_LAMBDA)
    for (; first + 1 < a->count; first++) pair(c, a->args[first], b->args[first]);
  for (int i = first; i < a->count; i++)
    if (!same_expr(c, what, a->args[i], b->args[i])) return false;
  return true;
}

static bool same_expr(Comparison *c, const char *what, const Expr *a, const Expr *b) {
  if (!a || !b) return a == b || differ(c, "%s: only one has it", what);
  uint64_t key = (uint64_t)a->id << 32 | b->id;
  if (map_get(&c->same, key)) return true;
  bool alike = a->op == b->op && a->count == b->count && dtype_equal(a->type, b->type) &&
               same_payload(c, a, b);
  if (!alike) return expr_differs(c, what, a, b);
  if (!same_operands(c, what, a, b)) return false;
  if (a->op != EXPR_VAR) map_set(&c->same, key, (void *)a);
  return true;
}

static bool same_exprs(Comparison *c, const char *what, Expr *const *a, Expr *const *b, int count) {
  for (int i = 0; i < count; i++)
    if (!same_expr(c, what, a[i], b[i])) return false;
  return true;
}

// ---- Attributes

static bool same_attribute(Comparison *c, const Expr *a, const Expr *b);

// Dictionaries are equal in any order of their keys.
static bool same_dictionary(Comparison *c, const Expr *a, const Expr *b) {
  for (int i = 0; i + 1 < a->count; i += 2) {
    int k = 0;
    while (k < b->count && !same_attribute(c, a->args[i], b->args[k])) k += 2;
    if (k >= b->count || !same_attribute(c, a->args[i + 1], b->args[k + 1])) return false;
  }
  return true;
}

static bool same_target(Comparison *c, const Expr *a, const Expr *b) {
  return same_attribute(c, target_normal_form(c->context, a), target_normal_form(c->context, b));
}

static bool same_attribute(Comparison *c, const Expr *a, const Expr *b) {
  if (expr_is_target(a) && expr_is_target(b)) return a == b || same_target(c, a, b);
  bool numbers = (a->op == EXPR_INT || a->op == EXPR_FLOAT) && a->op == b->op;
  if (numbers && a->op == EXPR_INT) return a->as.i == b->as.i;
  if (numbers) return same_real(a->as.f, b->as.f) || (float)a->as.f == (float)b->as.f;
  if (a->op != b->op || a->count != b->count) return a == b;
  if (a->op == EXPR_NONE) return true;
  if (a->op == EXPR_STRING) return strcmp(a->as.s, b->as.s) == 0;
  if (a->op == EXPR_VAR) return is_pair(c, a, b);
  if (a->op == EXPR_OBJECT && strcmp(a->as.s, b->as.s)) return false;
  if (a->op != EXPR_TUPLE && a->op != EXPR_DICT && a->op != EXPR_OBJECT)
    return a == b || same_expr(c, "value of an attribute", a, b); // such as a buffer
  if (a->op == EXPR_DICT) return same_dictionary(c, a, b);
  for (int i = 0; i < a->count; i++)
    if (!same_attribute(c, a->args[i], b->args[i])) return false;
  return true;
}

static bool is_of_window(const char *key) {
  static const char *const keys[] = {"strides", "padding", "dilation", "pool_size"};
  for (int i = 0; i < COUNT_OF(keys); i++)
    if (strcmp(key, keys[i]) == 0) return true;
  return false;
}

static bool same_index_map(const Comparison *c, const char *a, const char *b) {
  int diags = c->context->diags.count, errors = c->context->error_count;
  LayoutSource first = layout_source(a, -1), second = layout_source(b, -1);
  const IndexMap *x = index_map_parse(c->context, &first);
  const IndexMap *y = index_map_parse(c->context, &second);
  diag_forget(c->context, diags, errors);
  return x && y && index_map_same(x, y);
}

// Two lists of a window's attribute, of which the longer one repeats the shorter one, and two index
// maps that differ in the names of their axes, are equal.
static bool same_node_attribute(Comparison *c, Str key, const Expr *a, const Expr *b) {
  if (same_attribute(c, a, b)) return true;
  if (a->op == EXPR_STRING && b->op == EXPR_STRING && strcmp(key, "index_map") == 0)
    return same_index_map(c, a->as.s, b->as.s);
  const Expr *more = a->count > b->count ? a : b, *less = more == a ? b : a;
  bool repeats = a->op == EXPR_TUPLE && b->op == EXPR_TUPLE && less->count && is_of_window(key) &&
                 more->count % less->count == 0;
  for (int i = 0; repeats && i < more->count; i++)
    repeats = same_attribute(c, more->args[i], less->args[i % less->count]);
  return repeats;
}

static bool has_default(const Node *node, const Attr *attr) {
  return attribute_is_dialect(attr->key) || op_attribute_is_default(node, attr->key, attr->value);
}

// An attribute that only one node states may have the value that leaving it out gives.
static bool same_node_attrs(Comparison *c, const Node *a, const Node *b) {
  for (int i = 0; i < a->attrs.count; i++) {
    const Attr *attr = &a->attrs.items[i];
    const Expr *other = attrs_get(&b->attrs, attr->key);
    if (!other && !has_default(a, attr))
      return differ(c, "attribute '%s': only the first has it", attr->key);
    if (other && !attribute_is_dialect(attr->key) &&
        !same_node_attribute(c, attr->key, attr->value, other))
      return differ(c, "attribute '%s': %s and %s", attr->key, brief(c, attr->value),
                    brief(c, other));
  }
  for (int i = 0; i < b->attrs.count; i++) {
    const Attr *attr = &b->attrs.items[i];
    if (!attrs_get(&a->attrs, attr->key) && !has_default(b, attr))
      return differ(c, "attribute '%s': only the second has it", attr->key);
  }
  return true;
}

// The value of an attribute, whose key may have the prefix of either generation of TVM's names:
// `tir.noalias` is `tirx.noalias`.
static const Expr *value_of(const Attrs *attrs, const char *key) {
  const Expr *value = attrs_get(attrs, key);
  const char *base = attribute_base(key);
  for (int i = 0; !value && base != key && i < attrs->count; i++) {
    const Attr *attr = &attrs->items[i];
    const char *other = attribute_base(attr->key);
    if (other != attr->key && !strcmp(other, base)) value = attr->value;
  }
  return value;
}

static bool same_attrs(Comparison *c, const Attrs *a, const Attrs *b) {
  for (int i = 0; i < a->count; i++) {
    const Expr *other = value_of(b, a->items[i].key);
    if (attribute_is_dialect(a->items[i].key)) continue;
    if (!other) return differ(c, "attribute '%s': only the first has it", a->items[i].key);
    if (!same_attribute(c, a->items[i].value, other))
      return differ(c, "attribute '%s': %s and %s", a->items[i].key, brief(c, a->items[i].value),
                    brief(c, other));
  }
  for (int i = 0; i < b->count; i++)
    if (!value_of(a, b->items[i].key) && !attribute_is_dialect(b->items[i].key))
      return differ(c, "attribute '%s': only the second has it", b->items[i].key);
  return true;
}

// ---- Buffers

// Makes partners of the variables that are used at the same position of both expressions and have
// no partner yet.
static void bind_free(Comparison *c, const Expr *a, const Expr *b) {
  if (!a || !b || a->op != b->op || a->count != b->count) return;
  bool fresh = a->op == EXPR_VAR && is_free(c, a, b) && dtype_equal(a->type, b->type);
  if (fresh) pair(c, a, b);
  for (int i = 0; i < a->count; i++) bind_free(c, a->args[i], b->args[i]);
}

// The alignment of a buffer in bytes. One that is not stated is that of allocations, as in TVM.
static int alignment_of(const Buffer *b) {
  return b->alignment ? b->alignment : TENSOR_ALIGNMENT;
}

static bool same_fields(Comparison *c, const Buffer *a, const Buffer *b) {
  if (!dtype_equal(a->type, b->type))
    return differ(c, "element type of buffer '%s': %s and %s", a->name,
                  dtype_name(c->context, a->type), dtype_name(c->context, b->type));
  if (a->rank != b->rank)
    return differ(c, "axes of buffer '%s': %d and %d", a->name, a->rank, b->rank);
  if (strcmp(a->scope, b->scope))
    return differ(c, "scope of buffer '%s': %s and %s", a->name, a->scope, b->scope);
  if (!a->strides != !b->strides)
    return differ(c, "strides of buffer '%s': only one has them", a->name);
  if (a->broadcasts != b->broadcasts) return differ(c, "buffer_type of buffer '%s'", a->name);
  bool same_factor = MAX_OF(a->offset_factor, 1) == MAX_OF(b->offset_factor, 1);
  if (alignment_of(a) != alignment_of(b) || !same_factor)
    return differ(c, "alignment of buffer '%s'", a->name);
  bool same = a->separator_count == b->separator_count;
  for (int i = 0; same && i < a->separator_count; i++) same = a->separators[i] == b->separators[i];
  return same || differ(c, "axis separators of buffer '%s'", a->name);
}

// Compares two declarations and makes the buffers partners.
static bool same_declaration(Comparison *c, const Buffer *a, const Buffer *b) {
  SourcePos outer_a = c->a, outer_b = c->b;
  if (a->pos.file) c->a = a->pos;
  if (b->pos.file) c->b = b->pos;
  if (!same_fields(c, a, b)) return false;
  for (int i = 0; i < a->rank; i++) {
    bind_free(c, a->shape[i], b->shape[i]);
    if (a->strides) bind_free(c, a->strides[i], b->strides[i]);
  }
  bind_free(c, a->offset, b->offset);
  if (!same_exprs(c, "extent of a buffer", a->shape, b->shape, a->rank)) return false;
  if (a->strides && !same_exprs(c, "stride of a buffer", a->strides, b->strides, a->rank))
    return false;
  bool no_offset = expr_is_int(a->offset, 0) && expr_is_int(b->offset, 0); // of any type
  if (!no_offset && !same_expr(c, "offset of a buffer", a->offset, b->offset)) return false;
  if (!same_expr(c, "layout of a buffer", a->tile_layout, b->tile_layout)) return false;
  if (is_free(c, a->data, b->data)) pair(c, a->data, b->data);
  if (!is_pair(c, a->data, b->data)) return differ(c, "data of buffer '%s'", a->name);
  pair(c, a, b);
  c->a = outer_a;
  c->b = outer_b;
  return true;
}

// Compares two uses: the buffers are partners already, or neither is declared and they are alike.
static bool same_buffer(Comparison *c, const Buffer *a, const Buffer *b) {
  if (!is_free(c, a, b)) return is_pair(c, a, b);
  return a == b || same_declaration(c, a, b);
}

static bool same_data(Comparison *c, const ConstData *a, const ConstData *b) {
  bool same = dtype_equal(a->type, b->type) && a->rank == b->rank && a->bytes == b->bytes;
  for (int i = 0; same && i < a->rank; i++) same = a->shape[i] == b->shape[i];
  if (!same) return differ(c, "type or shape of constant '%s'", a->name);
  if (!a->data != !b->data)
    return differ(c, "contents of constant '%s': only one has them", a->name);
  if (!a->data)
    return !strcmp(a->name, b->name) || differ(c, "constants '%s' and '%s'", a->name, b->name);
  if (a->data == b->data) return true;
  return !memcmp(a->data, b->data, a->bytes) || differ(c, "contents of constant '%s'", a->name);
}

// ---- Statements

static bool same_stmt(Comparison *c, const Stmt *a, const Stmt *b);

static bool same_optional(Comparison *c, const char *what, const Stmt *a, const Stmt *b) {
  if (!a || !b) return a == b || differ(c, "%s: only one has it", what);
  return same_stmt(c, a, b);
}

static bool same_for(Comparison *c, const Stmt *a, const Stmt *b) {
  if (a->as.loop.kind != b->as.loop.kind)
    return differ(c, "kind of loop '%s'", a->as.loop.var->as.var->name);
  if (!same_expr(c, "start of the loop", a->as.loop.min, b->as.loop.min)) return false;
  if (!same_expr(c, "extent of the loop", a->as.loop.extent, b->as.loop.extent)) return false;
  if (!dtype_equal(a->as.loop.var->type, b->as.loop.var->type))
    return expr_differs(c, "loop variable", a->as.loop.var, b->as.loop.var);
  const char *x = a->as.loop.thread ? a->as.loop.thread : "";
  const char *y = b->as.loop.thread ? b->as.loop.thread : "";
  if (strcmp(x, y)) return differ(c, "thread axis of the loop: '%s' and '%s'", x, y);
  if (a->as.loop.is_launch != b->as.loop.is_launch)
    return differ(c, "T.launch_thread and T.thread_binding of '%s'", x);
  if (!same_attrs(c, &a->as.loop.annotations, &b->as.loop.annotations)) return false;
  pair(c, a->as.loop.var, b->as.loop.var);
  return same_stmt(c, a->as.loop.body, b->as.loop.body);
}

static bool same_store(Comparison *c, const Stmt *a, const Stmt *b) {
  if (!same_buffer(c, a->as.store.buffer, b->as.store.buffer))
    return differ(c, "buffer of the store: '%s' and '%s'", a->as.store.buffer->name,
                  b->as.store.buffer->name);
  if (a->as.store.rank != b->as.store.rank) return differ(c, "number of indices of the store");
  return same_exprs(c, "index of the store", a->as.store.indices, b->as.store.indices,
                    a->as.store.rank) &&
         same_expr(c, "value of the store", a->as.store.value, b->as.store.value);
}

static bool same_let(Comparison *c, const Stmt *a, const Stmt *b) {
  if (!same_expr(c, "value of the variable", a->as.let.value, b->as.let.value)) return false;
  if (!dtype_equal(a->as.let.var->type, b->as.let.var->type))
    return expr_differs(c, "variable", a->as.let.var, b->as.let.var);
  pair(c, a->as.let.var, b->as.let.var);
  return same_stmt(c, a->as.let.body, b->as.let.body);
}

static bool same_if(Comparison *c, const Stmt *a, const Stmt *b) {
  return same_expr(c, "condition", a->as.branch.condition, b->as.branch.condition) &&
         same_stmt(c, a->as.branch.then_body, b->as.branch.then_body) &&
         same_optional(c, "else", a->as.branch.else_body, b->as.branch.else_body);
}

static bool same_while(Comparison *c, const Stmt *a, const Stmt *b) {
  return same_expr(c, "condition", a->as.repeat.condition, b->as.repeat.condition) &&
         same_stmt(c, a->as.repeat.body, b->as.repeat.body);
}

static bool same_assert(Comparison *c, const Stmt *a, const Stmt *b) {
  return same_expr(c, "condition", a->as.check.condition, b->as.check.condition) &&
         same_expr(c, "message", a->as.check.message, b->as.check.message) &&
         same_optional(c, "body of the assert", a->as.check.body, b->as.check.body);
}

static bool same_evaluate(Comparison *c, const Stmt *a, const Stmt *b) {
  return same_expr(c, "value", a->as.evaluate, b->as.evaluate);
}

// The statement at *at, or the first one with an effect behind it; NULL behind the last.
static const Stmt *next_statement(const Stmt *s, int *at) {
  int count = s->kind == STMT_SEQ ? s->as.seq.count : 1;
  while (*at < count) {
    const Stmt *item = s->kind == STMT_SEQ ? s->as.seq.items[*at] : s;
    ++*at;
    if (!stmt_is_idle(item)) return item;
  }
  return NULL;
}

// Compares sequences, or single statements, without what has no effect in them.
static bool same_seq(Comparison *c, const Stmt *a, const Stmt *b) {
  for (int i = 0, j = 0;;) {
    const Stmt *x = next_statement(a, &i), *y = next_statement(b, &j);
    if (!x && !y) return true;
    if (!x || !y) return differ(c, "only the %s has one more statement", x ? "first" : "second");
    if (!same_stmt(c, x, y)) return false;
  }
}

static bool is_list(const Stmt *s) {
  return s->kind == STMT_SEQ || stmt_is_idle(s);
}

// TVM's lowering of blocks notes what it knows of the memory: no address, and the alignment that
// all memory has.
static Attrs without_usual_notes(Comparison *c, Attrs attrs) {
  const Expr *address = attrs_get(&attrs, "buffer_allocated_addr");
  if (address && address->op == EXPR_TUPLE && !address->count)
    attrs = attrs_without(c->arena, attrs, "buffer_allocated_addr");
  if (attrs_int(&attrs, "buffer_data_alignment", 0) == 64)
    attrs = attrs_without(c->arena, attrs, "buffer_data_alignment");
  return attrs;
}

static bool same_notes(Comparison *c, Attrs a, Attrs b) {
  Attrs first = without_usual_notes(c, a), second = without_usual_notes(c, b);
  return same_attrs(c, &first, &second);
}

static bool same_allocate(Comparison *c, const Stmt *a, const Stmt *b) {
  if (!dtype_equal(a->as.allocate.type, b->as.allocate.type) ||
      a->as.allocate.rank != b->as.allocate.rank)
    return differ(c, "type or axes of allocation '%s'", a->as.allocate.var->as.var->name);
  if (!same_exprs(c, "extent of the allocation", a->as.allocate.extents, b->as.allocate.extents,
                  a->as.allocate.rank))
    return false;
  if (!same_notes(c, a->as.allocate.annotations, b->as.allocate.annotations)) return false;
  pair(c, a->as.allocate.var, b->as.allocate.var);
  return same_stmt(c, a->as.allocate.body, b->as.allocate.body);
}

static bool same_allocate_const(Comparison *c, const Stmt *a, const Stmt *b) {
  if (!same_data(c, a->as.allocate_const.data, b->as.allocate_const.data)) return false;
  pair(c, a->as.allocate_const.var, b->as.allocate_const.var);
  return same_stmt(c, a->as.allocate_const.body, b->as.allocate_const.body);
}

static bool same_declare(Comparison *c, const Stmt *a, const Stmt *b) {
  return same_declaration(c, a->as.declare.buffer, b->as.declare.buffer) &&
         same_stmt(c, a->as.declare.body, b->as.declare.body);
}

static bool same_attr(Comparison *c, const Stmt *a, const Stmt *b) {
  if (strcmp(a->as.attr.key, b->as.attr.key))
    return differ(c, "attributes '%s' and '%s'", a->as.attr.key, b->as.attr.key);
  bind_free(c, expr_iter_var(a->as.attr.node), expr_iter_var(b->as.attr.node));
  return same_expr(c, "node of the attribute", a->as.attr.node, b->as.attr.node) &&
         (same_attribute(c, a->as.attr.value, b->as.attr.value) ||
          same_expr(c, "value of the attribute", a->as.attr.value, b->as.attr.value)) &&
         same_stmt(c, a->as.attr.body, b->as.attr.body);
}

// ---- Blocks

static bool same_region(Comparison *c, const char *what, const Region *a, const Region *b) {
  if (!same_buffer(c, a->buffer, b->buffer))
    return differ(c, "%s: '%s' and '%s'", what, a->buffer->name, b->buffer->name);
  for (int i = 0; i < a->buffer->rank; i++) {
    int64_t x, y;
    if (!same_expr(c, what, a->min[i], b->min[i])) return false;
    bool numbers = expr_as_int(a->extent[i], &x) && expr_as_int(b->extent[i], &y);
    if (numbers ? x != y : !same_expr(c, what, a->extent[i], b->extent[i]))
      return differ(c, "%s of '%s': extents of axis %d", what, a->buffer->name, i);
  }
  return true;
}

static bool same_regions(Comparison *c, const char *what, const Region *a, int count_a,
                         const Region *b, int count_b) {
  if (count_a != count_b) return differ(c, "%s: %d and %d", what, count_a, count_b);
  for (int i = 0; i < count_a; i++)
    if (!same_region(c, what, &a[i], &b[i])) return false;
  return true;
}

static bool same_block_vars(Comparison *c, const Block *a, const Block *b) {
  if (a->var_count != b->var_count)
    return differ(c, "variables of block '%s': %d and %d", a->name, a->var_count, b->var_count);
  for (int i = 0; i < a->var_count; i++) {
    const BlockVar *x = &a->vars[i], *y = &b->vars[i];
    if (x->kind != y->kind) return differ(c, "kind of block variable '%s'", x->var->as.var->name);
    if (!same_expr(c, "start of a block variable", x->min, y->min) ||
        !same_expr(c, "extent of a block variable", x->extent, y->extent) ||
        !same_expr(c, "binding of a block variable", x->binding, y->binding))
      return false;
  }
  if (!same_expr(c, "predicate", a->predicate, b->predicate)) return false;
  for (int i = 0; i < a->var_count; i++) pair(c, a->vars[i].var, b->vars[i].var);
  return true;
}

static bool same_block_buffers(Comparison *c, const Block *a, const Block *b) {
  if (a->alloc_count != b->alloc_count || a->match_count != b->match_count)
    return differ(c, "buffers of block '%s'", a->name);
  for (int i = 0; i < a->alloc_count; i++)
    if (!same_declaration(c, a->allocs[i], b->allocs[i])) return false;
  for (int i = 0; i < a->match_count; i++) {
    if (!same_region(c, "matched region", &a->matches[i].source, &b->matches[i].source))
      return false;
    if (!same_declaration(c, a->matches[i].buffer, b->matches[i].buffer)) return false;
  }
  return true;
}

static bool same_block(Comparison *c, const Stmt *s, const Stmt *t) {
  const Block *a = s->as.block, *b = t->as.block;
  bool root = block_is_root(a);
  if (root != block_is_root(b) || (c->blocks_by_name && strcmp(a->name, b->name)))
    return differ(c, "blocks '%s' and '%s'", a->name, b->name);
  return same_block_vars(c, a, b) && same_block_buffers(c, a, b) &&
         (root ||
          (same_regions(c, "reads", a->reads, a->read_count, b->reads, b->read_count) &&
           same_regions(c, "writes", a->writes, a->write_count, b->writes, b->write_count))) &&
         same_attrs(c, &a->annotations, &b->annotations) &&
         same_optional(c, "init", a->init, b->init) && same_stmt(c, a->body, b->body);
}

static bool (*const comparers[])(Comparison *, const Stmt *, const Stmt *) = {
    [STMT_FOR] = same_for,
    [STMT_STORE] = same_store,
    [STMT_LET] = same_let,
    [STMT_IF] = same_if,
    [STMT_WHILE] = same_while,
    [STMT_ASSERT] = same_assert,
    [STMT_EVALUATE] = same_evaluate,
    [STMT_BLOCK] = same_block,
    [STMT_ALLOCATE] = same_allocate,
    [STMT_ALLOCATE_CONST] = same_allocate_const,
    [STMT_DECL_BUFFER] = same_declare,
    [STMT_ATTR] = same_attr,
};

static SourcePos place_of(const Stmt *s, SourcePos otherwise) {
  if (s->pos.file) return s->pos;
  bool is_seq = s->kind == STMT_SEQ && s->as.seq.count;
  return is_seq ? place_of(s->as.seq.items[0], otherwise) : otherwise;
}

static bool same_stmt(Comparison *c, const Stmt *a, const Stmt *b) {
  SourcePos outer_a = c->a, outer_b = c->b;
  c->a = place_of(a, outer_a);
  c->b = place_of(b, outer_b);
  bool is_same = is_list(a) || is_list(b) ? same_seq(c, a, b)
                 : a->kind == b->kind     ? comparers[a->kind](c, a, b)
                                          : differ(c, "different statements");
  if (!is_same) return false;
  c->a = outer_a;
  c->b = outer_b;
  return true;
}

// ---- Tensor programs

static bool same_param(Comparison *c, const PrimFunc *a, const PrimFunc *b, int i) {
  if (!a->buffers[i] != !b->buffers[i])
    return differ(c, "parameter %d: only one is a buffer", i + 1);
  if (!dtype_equal(a->params[i]->type, b->params[i]->type))
    return expr_differs(c, "parameter", a->params[i], b->params[i]);
  pair(c, a->params[i], b->params[i]);
  return !a->buffers[i] || same_declaration(c, a->buffers[i], b->buffers[i]);
}

// The attributes of `func`, with its name as global_symbol where `other` states one: a public
// function has it whether it is stated or not.
static Attrs symbol_attrs(Comparison *c, const PrimFunc *func, const PrimFunc *other) {
  bool is_implied = attrs_get(&other->attrs, "global_symbol") &&
                    !attrs_get(&func->attrs, "global_symbol") &&
                    !attrs_get(&func->attrs, "private");
  if (!is_implied) return func->attrs;
  Expr *name = expr_string(c->context, func->name);
  return attrs_with(&c->context->arena, func->attrs, "global_symbol", name);
}

static bool same_prim_func(Comparison *c, const PrimFunc *a, const PrimFunc *b) {
  c->a = a->pos;
  c->b = b->pos;
  if (a->param_count != b->param_count)
    return differ(c, "parameters: %d and %d", a->param_count, b->param_count);
  if (!dtype_equal(a->result, b->result)) return differ(c, "type of the result");
  for (int i = 0; i < a->param_count; i++)
    if (!same_param(c, a, b, i)) return false;
  Attrs first = symbol_attrs(c, a, b), second = symbol_attrs(c, b, a);
  if (!same_attrs(c, &first, &second)) return false; // they may name the parameters
  return same_stmt(c, a->body, b->body);
}

// ---- Graph functions

static bool same_shape(Comparison *c, const Value *a, const Value *b) {
  if (!dtype_equal(a->type, b->type)) return differ(c, "element type of '%s'", a->name);
  if (a->rank != b->rank) return differ(c, "axes of '%s': %d and %d", a->name, a->rank, b->rank);
  for (int i = 0; i < a->rank; i++) {
    int64_t x, y;
    if (expr_as_int(a->shape[i], &x) && expr_as_int(b->shape[i], &y) && x == y) continue;
    bind_free(c, a->shape[i], b->shape[i]);
    if (!same_expr(c, "extent of a tensor", a->shape[i], b->shape[i])) return false;
  }
  return true;
}

static bool same_value(Comparison *c, const Value *a, const Value *b);

static bool same_term(Comparison *c, const GraphTerm *a, const GraphTerm *b) {
  if (!a || !b) return a == b || differ(c, "an argument is absent in one");
  if (a->kind != b->kind || a->count != b->count || a->plain != b->plain)
    return differ(c, "arguments of different kinds");
  if (!a->text != !b->text || (a->text && strcmp(a->text, b->text)))
    return differ(c, "arguments '%s' and '%s'", a->text ? a->text : "", b->text ? b->text : "");
  if (a->value || b->value) return same_value(c, a->value, b->value);
  if (a->e) bind_free(c, a->e, b->e);
  if (a->e && !same_expr(c, "argument", a->e, b->e)) return false;
  for (int i = 0; i < a->count; i++) {
    Str x = a->keys ? a->keys[i] : NULL, y = b->keys ? b->keys[i] : NULL;
    if (!x != !y || (x && strcmp(x, y))) return differ(c, "names of arguments");
    if (!same_term(c, a->items[i], b->items[i])) return false;
  }
  return true;
}

static bool same_type(Comparison *c, const Value *a, const Value *b) {
  if (!a->info != !b->info) return differ(c, "types of '%s' and '%s'", a->name, b->name);
  return same_shape(c, a, b) && (!a->info || same_term(c, a->info, b->info));
}

static bool same_value(Comparison *c, const Value *a, const Value *b) {
  if (!a || !b) return a == b || differ(c, "an input is absent in one");
  if (a->term || b->term) return same_term(c, a->term, b->term);
  if (!a->data != !b->data)
    return differ(c, "only one of '%s' and '%s' is a constant", a->name, b->name);
  if (a->data) return same_data(c, a->data, b->data);
  return is_pair(c, a, b) || differ(c, "tensors '%s' and '%s'", a->name, b->name);
}

static bool same_callee(Comparison *c, const Node *a, const Node *b) {
  if (a->kind == NODE_ITEM) return a->item == b->item || differ(c, "numbers of items");
  if (a->kind == NODE_CALL || a->kind == NODE_IF || a->kind == NODE_FUNC) return true;
  if (a->kind == NODE_OP)
    return !strcmp(a->op, b->op) || differ(c, "operators %s and %s", a->op, b->op);
  if (c->in_module)
    return !strcmp(a->callee->name, b->callee->name) ||
           differ(c, "calls of %s and %s", a->callee->name, b->callee->name);
  Comparison inner = comparison_inside(c);
  return same_prim_func(&inner, a->callee, b->callee);
}

static bool same_graph_func(Comparison *c, const GraphFunc *a, const GraphFunc *b);

static bool same_node(Comparison *c, const Node *a, const Node *b) {
  if (a->pos.file) c->a = a->pos;
  if (b->pos.file) c->b = b->pos;
  if (a->kind != b->kind) return differ(c, "different kinds of statements");
  if (!same_callee(c, a, b)) return false;
  if (a->input_count != b->input_count || a->output_count != b->output_count)
    return differ(c, "number of inputs or outputs");
  if (!same_node_attrs(c, a, b)) return false;
  for (int i = 0; i < a->input_count; i++)
    if (!same_value(c, a->inputs[i], b->inputs[i])) return false;
  if (!same_term(c, a->keywords, b->keywords)) return false;
  for (int i = 0; i < a->output_count; i++)
    if (a->kind == NODE_FUNC) pair(c, a->outputs[i], b->outputs[i]); // it may call itself
  for (int i = 0; i < 2; i++) {
    if (!a->bodies[i] != !b->bodies[i]) return differ(c, "bodies");
    if (a->bodies[i] && !same_graph_func(c, a->bodies[i], b->bodies[i])) return false;
  }
  for (int i = 0; i < a->output_count; i++) {
    if (!same_type(c, a->outputs[i], b->outputs[i])) return false;
    if (a->kind != NODE_FUNC) pair(c, a->outputs[i], b->outputs[i]);
  }
  return true;
}

static bool same_graph_func(Comparison *c, const GraphFunc *a, const GraphFunc *b) {
  c->a = a->pos;
  c->b = b->pos;
  if (a->param_count != b->param_count || a->output_count != b->output_count)
    return differ(c, "number of parameters or results");
  if (!same_attrs(c, &a->attrs, &b->attrs)) return false;
  if (!same_attrs(c, &a->options, &b->options)) return false;
  for (int i = 0; i < a->param_count; i++) {
    if (!same_type(c, a->params[i], b->params[i])) return false;
    pair(c, a->params[i], b->params[i]);
  }
  for (int i = 0; i < MIN_OF(a->nodes.count, b->nodes.count); i++)
    if (!same_node(c, a->nodes.items[i], b->nodes.items[i])) return false;
  if (a->nodes.count != b->nodes.count)
    return differ(c, "%d and %d calls", a->nodes.count, b->nodes.count);
  for (int i = 0; i < a->output_count; i++)
    if (!same_value(c, a->outputs[i], b->outputs[i])) return false;
  if (!a->result != !b->result) return differ(c, "forms of the result");
  return !a->result || same_value(c, a->result, b->result);
}

// ---- Modules

static bool same_module_func(Comparison *c, const ModuleFunc *a, const ModuleFunc *b) {
  if (!b) return differ(c, "function '%s': only the first has it", a->name);
  if (!a->prim != !b->prim) return differ(c, "kinds of function '%s'", a->name);
  Comparison inner = comparison_inside(c);
  inner.in_module = true;
  return a->prim ? same_prim_func(&inner, a->prim, b->prim)
                 : same_graph_func(&inner, a->graph, b->graph);
}

static bool same_module(Comparison *c, const Module *a, const Module *b) {
  if (!same_attrs(c, &a->attrs, &b->attrs) || !same_term(c, a->infos, b->infos)) return false;
  for (int i = 0; i < a->funcs.count; i++) {
    const ModuleFunc *func = &a->funcs.items[i];
    if (!same_module_func(c, func, module_find(b, func->name))) return false;
  }
  for (int i = 0; i < b->funcs.count; i++)
    if (!module_find(a, b->funcs.items[i].name))
      return differ(c, "function '%s': only the second has it", b->funcs.items[i].name);
  return true;
}

// ---- Entry points

#define COMPARE(same, a, b)                                                                        \
  if (difference) *difference = (IrDifference){0};                                                 \
  ArenaMark mark = arena_mark(&context->scratch);                                                  \
  Comparison comparison = comparison_new(context, difference);                                     \
  bool result = same(&comparison, a, b);                                                           \
  arena_reset(&context->scratch, mark);                                                            \
  return result

bool prim_func_equal(Context *context, const PrimFunc *a, const PrimFunc *b,
                     IrDifference *difference) {
  COMPARE(same_prim_func, a, b);
}

bool module_equal(Context *context, const Module *a, const Module *b, IrDifference *difference) {
  COMPARE(same_module, a, b);
}

static bool same_unnamed(Comparison *c, const Module *a, const Module *b) {
  c->blocks_by_name = false;
  return same_module(c, a, b);
}

static bool same_unnamed_program(Comparison *c, const PrimFunc *a, const PrimFunc *b) {
  c->blocks_by_name = false;
  return same_prim_func(c, a, b);
}

bool module_equal_but_names(Context *context, const Module *a, const Module *b,
                            IrDifference *difference) {
  const PrimFunc *x = module_only_program(a), *y = module_only_program(b);
  if (!x || !y) {
    COMPARE(same_unnamed, a, b);
  }
  COMPARE(same_unnamed_program, x, y);
}
