// SPDX-License-Identifier: Apache-2.0
// Implements pleat_module_nodes of pleat/tir.h: writes a module as a list of nodes with TVM's kinds
// and fields. A node follows the nodes that it refers to.
#include "api/tir_nodes.h"

#include "api/contents.h"
#include "api/tir.h"
#include "ir/intrinsic.h"
#include "script/const_data.h"

#include <math.h>

struct Nodes {
  Context *context;
  Arena *arena;
  const NodeKeys *keys;      // may be NULL
  Array(const char *) items; // each the JSON object of a node
  Map known;                 // expressions, variables and buffers to their number + 1
};

// A node under construction.
typedef struct NodeText {
  Nodes *nodes;
  Text text;
} NodeText;

static int expr_node(Nodes *nodes, const Expr *e);
static int stmt_node(Nodes *nodes, const Stmt *s);
static int buffer_node(Nodes *nodes, const Buffer *buffer);

// ---- JSON ---------------------------------------------------------------------------------------

static void put_string(Text *out, const char *s) {
  text_puts(out, "\"");
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\')
      text_printf(out, "\\%c", c);
    else if (c < ' ')
      text_printf(out, "\\u%04x", c);
    else
      text_append(out, s, 1);
  }
  text_puts(out, "\"");
}

static NodeText node_begin(Nodes *nodes, const char *kind) {
  NodeText node = {nodes, text_new(nodes->arena)};
  text_printf(&node.text, "{\"type\": \"%s\"", kind);
  return node;
}

static void field(NodeText *node, const char *name) {
  text_printf(&node->text, ", \"%s\": ", name);
}

static void put_number(Text *out, int number) {
  text_printf(out, number < 0 ? "null" : "{\"node\": %d}", number);
}

// Writes a node as a field; below 0 there is none.
static void field_node(NodeText *node, const char *name, int number) {
  field(node, name);
  put_number(&node->text, number);
}

static void field_string(NodeText *node, const char *name, const char *value) {
  field(node, name);
  put_string(&node->text, value ? value : "");
}

static void field_int(NodeText *node, const char *name, int64_t value) {
  field(node, name);
  text_printf(&node->text, "%lld", (long long)value);
}

static void field_type(NodeText *node, DType type) {
  field_string(node, "dtype", dtype_name(node->nodes->context, type));
}

static void field_nodes(NodeText *node, const char *name, const int *numbers, int count) {
  field(node, name);
  for (int i = 0; i < count; i++) {
    text_puts(&node->text, i ? ", " : "[");
    put_number(&node->text, numbers[i]);
  }
  text_puts(&node->text, count ? "]" : "[]");
}

static void field_exprs(NodeText *node, const char *name, Expr *const *items, int count) {
  int *numbers = arena_array(node->nodes->arena, int, count);
  for (int i = 0; i < count; i++) numbers[i] = expr_node(node->nodes, items[i]);
  field_nodes(node, name, numbers, count);
}

static void field_key(NodeText *node, const void *object) {
  const NodeKeys *keys = node->nodes->keys;
  intptr_t key = keys ? (intptr_t)map_find(&keys->keys, object) : 0;
  if (key) field_int(node, "key", key - 1);
}

static int node_end(NodeText *node) {
  text_puts(&node->text, "}");
  array_push(node->nodes->arena, &node->nodes->items, text_string(&node->text));
  return node->nodes->items.count - 1;
}

static int known_node(const Nodes *nodes, const void *object) {
  return (int)(intptr_t)map_find(&nodes->known, object) - 1;
}

static int keep_node(Nodes *nodes, const void *object, int number) {
  map_put(&nodes->known, object, (intptr_t)(number + 1));
  return number;
}

// ---- Attributes ---------------------------------------------------------------------------------

static void put_float(Text *out, double value) {
  char digits[40];
  snprintf(digits, sizeof digits, "%.17g", value);
  bool is_whole = isfinite(value) && !strpbrk(digits, ".e");
  text_printf(out, isfinite(value) ? "%s%s" : "\"%s\"%s", digits, is_whole ? ".0" : "");
}

static void put_attribute(Nodes *nodes, Text *out, const Expr *e);

static void put_dictionary(Nodes *nodes, Text *out, const Expr *e) {
  text_puts(out, "{");
  for (int i = 0; i + 1 < e->count; i += 2) {
    if (i) text_puts(out, ", ");
    put_string(out, e->args[i]->op == EXPR_STRING ? e->args[i]->as.s : "");
    text_puts(out, ": ");
    put_attribute(nodes, out, e->args[i + 1]);
  }
  text_puts(out, "}");
}

static void put_attribute(Nodes *nodes, Text *out, const Expr *e) {
  if (!e || e->op == EXPR_NONE) {
    text_puts(out, "null");
  } else if (e->op == EXPR_TUPLE) {
    text_puts(out, "[");
    for (int i = 0; i < e->count; i++) {
      if (i) text_puts(out, ", ");
      put_attribute(nodes, out, e->args[i]);
    }
    text_puts(out, "]");
  } else if (e->op == EXPR_DICT) {
    put_dictionary(nodes, out, e);
  } else if (e->op == EXPR_STRING) {
    put_string(out, e->as.s);
  } else if (e->op == EXPR_INT && dtype_is_bool(e->type)) {
    text_puts(out, e->as.i ? "true" : "false");
  } else if (e->op == EXPR_INT) {
    text_printf(out, "%lld", (long long)e->as.i);
  } else if (e->op == EXPR_FLOAT) {
    put_float(out, e->as.f);
  } else {
    put_number(out, expr_node(nodes, e));
  }
}

// Writes attributes as an object, `first`, unless it is NULL, before them.
static void put_attrs(Nodes *nodes, Text *out, const Attrs *attrs, const char *first,
                      const char *first_value) {
  int count = 0;
  text_puts(out, "{");
  if (first) {
    text_printf(out, "\"%s\": ", first);
    put_string(out, first_value);
    count++;
  }
  for (int i = 0; i < attrs->count; i++) {
    if (count++) text_puts(out, ", ");
    put_string(out, attrs->items[i].key);
    text_puts(out, ": ");
    put_attribute(nodes, out, attrs->items[i].value);
  }
  text_puts(out, "}");
}

static void field_attrs(NodeText *node, const char *name, const Attrs *attrs, const char *first,
                        const char *first_value) {
  field(node, name);
  put_attrs(node->nodes, &node->text, attrs, first, first_value);
}

// ---- Expressions --------------------------------------------------------------------------------

const ExprRow expr_rows[EXPR_OP_COUNT] = {
    [EXPR_CAST] = {"Cast", {"value"}, false},
    [EXPR_ADD] = {"Add", {"a", "b"}, false},
    [EXPR_SUB] = {"Sub", {"a", "b"}, false},
    [EXPR_MUL] = {"Mul", {"a", "b"}, false},
    [EXPR_DIV] = {"Div", {"a", "b"}, false},
    [EXPR_TRUNC_DIV] = {"Div", {"a", "b"}, false},
    [EXPR_TRUNC_MOD] = {"Mod", {"a", "b"}, false},
    [EXPR_FLOOR_DIV] = {"FloorDiv", {"a", "b"}, false},
    [EXPR_FLOOR_MOD] = {"FloorMod", {"a", "b"}, false},
    [EXPR_MIN] = {"Min", {"a", "b"}, false},
    [EXPR_MAX] = {"Max", {"a", "b"}, false},
    [EXPR_EQ] = {"EQ", {"a", "b"}, false},
    [EXPR_NE] = {"NE", {"a", "b"}, false},
    [EXPR_LT] = {"LT", {"a", "b"}, false},
    [EXPR_LE] = {"LE", {"a", "b"}, false},
    [EXPR_GT] = {"GT", {"a", "b"}, false},
    [EXPR_GE] = {"GE", {"a", "b"}, false},
    [EXPR_AND] = {"And", {"a", "b"}, false},
    [EXPR_OR] = {"Or", {"a", "b"}, false},
    [EXPR_NOT] = {"Not", {"a"}, false},
    [EXPR_SELECT] = {"Select", {"condition", "true_value", "false_value"}, false},
    [EXPR_LET] = {"Let", {"var", "value", "body"}, false},
    [EXPR_RAMP] = {"Ramp", {"base", "stride"}, true},
    [EXPR_BROADCAST] = {"Broadcast", {"value"}, true},
    [EXPR_SHUFFLE] = {"Shuffle", {"*vectors", "*indices"}, false},
    [EXPR_TUPLE] = {"Array", {"*fields"}, false},
    [EXPR_DICT] = {"Map", {"*fields"}, false},
    [EXPR_LAMBDA] = {"Lambda", {"*fields"}, false},
    [EXPR_NONE] = {"None", {NULL}, false},
};

const NamedCall named_calls[] = {
    {EXPR_CALL, "tir.call_extern"}, {EXPR_CALL_PURE, "tir.call_pure_extern"},
    {EXPR_CALL_MODULE, NULL},       {EXPR_OBJECT, NULL},
    {EXPR_INTRINSIC, NULL},         {EXPR_INTRINSIC_PURE, NULL},
};
const int named_call_count = COUNT_OF(named_calls);

static int leaf_node(Nodes *nodes, const Expr *e) {
  const char *kind = e->op == EXPR_INT      ? "IntImm"
                     : e->op == EXPR_FLOAT  ? "FloatImm"
                     : e->op == EXPR_STRING ? "StringImm"
                                            : "Var";
  NodeText node = node_begin(nodes, kind);
  if (e->op == EXPR_INT) field_int(&node, "value", e->as.i);
  if (e->op == EXPR_STRING) field_string(&node, "value", e->as.s);
  if (e->op == EXPR_VAR) field_string(&node, "name", e->as.var->name);
  if (e->op == EXPR_VAR && e->as.var->scope) {
    field_string(&node, "element_type", dtype_name(nodes->context, e->as.var->pointee));
    field_string(&node, "storage_scope", e->as.var->scope);
  }
  if (e->op == EXPR_VAR) field_key(&node, e);
  if (e->op == EXPR_FLOAT) {
    field(&node, "value");
    put_float(&node.text, e->as.f);
  }
  field_type(&node, e->type);
  return node_end(&node);
}

static int load_node(Nodes *nodes, const Expr *e) {
  NodeText node = node_begin(nodes, "BufferLoad");
  field_node(&node, "buffer", buffer_node(nodes, e->as.buffer));
  field_exprs(&node, "indices", e->args, e->count);
  field_type(&node, e->type);
  return node_end(&node);
}

static int call_node(Nodes *nodes, const Expr *e) {
  const char *op = NULL, *callee = NULL;
  for (int i = 0; i < COUNT_OF(named_calls); i++) {
    if (named_calls[i].op != e->op) continue;
    op = named_calls[i].name;
    callee = e->as.s;
    if (!op && intrinsic_registered_name(callee)) callee = intrinsic_registered_name(callee);
  }
  bool is_extern = op != NULL;
  const char *prefix = e->op == EXPR_CALL_MODULE ? "" : e->op == EXPR_OBJECT ? "T." : "tir.";
  if (!op)
    op = arena_printf(nodes->arena, "%s%s", prefix, callee ? callee : op_table[e->op].spelling);
  Expr **args = arena_array(nodes->arena, Expr *, e->count + 1);
  if (is_extern) args[0] = expr_string(nodes->context, callee);
  for (int i = 0; i < e->count; i++) args[i + is_extern] = e->args[i];
  NodeText node = node_begin(nodes, "Call");
  field_string(&node, "op", op);
  field_exprs(&node, "args", args, e->count + is_extern);
  field_type(&node, e->type);
  return node_end(&node);
}

static int row_node(Nodes *nodes, const Expr *e) {
  NodeText node = node_begin(nodes, expr_rows[e->op].kind);
  const char *const *fields = expr_rows[e->op].fields;
  bool is_list = fields[0] && *fields[0] == '*' && op_table[e->op].arity < 0;
  for (int i = 0; i < 3 && fields[i]; i++) {
    const char *name = fields[i];
    const Expr *value = is_list ? e : e->args[i];
    if (*name == '*')
      field_exprs(&node, name + 1, value->args, value->count);
    else
      field_node(&node, name, expr_node(nodes, value));
  }
  int lanes = e->type.lanes & ~DTYPE_SCALABLE;
  if (expr_rows[e->op].has_lanes && dtype_is_scalable(e->type))
    field_string(&node, "lanes", arena_printf(nodes->arena, "vscalex%d", lanes));
  else if (expr_rows[e->op].has_lanes)
    field_int(&node, "lanes", lanes);
  field_type(&node, e->type);
  return node_end(&node);
}

static int expr_node(Nodes *nodes, const Expr *e) {
  if (!e) return -1;
  int known = known_node(nodes, e);
  if (known >= 0) return known;
  int number = e->op == EXPR_LOAD                 ? load_node(nodes, e)
               : expr_rows[e->op].kind            ? row_node(nodes, e)
               : op_table[e->op].class == OP_LEAF ? leaf_node(nodes, e)
                                                  : call_node(nodes, e);
  return keep_node(nodes, e, number);
}

// ---- Buffers and regions ------------------------------------------------------------------------

static int buffer_node(Nodes *nodes, const Buffer *buffer) {
  int known = known_node(nodes, buffer);
  if (known >= 0) return known;
  NodeText node = node_begin(nodes, "Buffer");
  field_string(&node, "name", buffer->name);
  field_key(&node, buffer);
  field_type(&node, buffer->type);
  field_node(&node, "data", expr_node(nodes, buffer->data));
  field_exprs(&node, "shape", buffer->shape, buffer->rank);
  field_exprs(&node, "strides", buffer->strides, buffer->strides ? buffer->rank : 0);
  field_node(&node, "elem_offset", expr_node(nodes, buffer->offset));
  field(&node, "axis_separators");
  for (int i = 0; i < buffer->separator_count; i++)
    text_printf(&node.text, "%s%d", i ? ", " : "[", buffer->separators[i]);
  text_puts(&node.text, buffer->separator_count ? "]" : "[]");
  field_int(&node, "data_alignment", buffer->alignment);
  field_int(&node, "offset_factor", buffer->offset_factor);
  field_string(&node, "storage_scope", buffer->scope);
  field_int(&node, "buffer_type", buffer->broadcasts ? TYPE_AUTO_BROADCAST : TYPE_DEFAULT);
  field_node(&node, "layout", expr_node(nodes, buffer->tile_layout));
  return keep_node(nodes, buffer, node_end(&node));
}

static int range_node(Nodes *nodes, const Expr *min, const Expr *extent) {
  NodeText node = node_begin(nodes, "Range");
  field_node(&node, "min", expr_node(nodes, min));
  field_node(&node, "extent", expr_node(nodes, extent));
  return node_end(&node);
}

static int region_node(Nodes *nodes, const Region *region) {
  int rank = region->buffer->rank, *ranges = arena_array(nodes->arena, int, rank);
  NodeText node = node_begin(nodes, "BufferRegion");
  for (int i = 0; i < rank; i++) ranges[i] = range_node(nodes, region->min[i], region->extent[i]);
  field_node(&node, "buffer", buffer_node(nodes, region->buffer));
  field_nodes(&node, "region", ranges, rank);
  return node_end(&node);
}

static void field_regions(NodeText *node, const char *name, const Region *regions, int count) {
  int *numbers = arena_array(node->nodes->arena, int, count);
  for (int i = 0; i < count; i++) numbers[i] = region_node(node->nodes, &regions[i]);
  field_nodes(node, name, numbers, count);
}

// ---- Blocks -------------------------------------------------------------------------------------

static int iter_node(Nodes *nodes, const Expr *var, const Expr *min, const Expr *extent, int type,
                     const char *thread) {
  NodeText node = node_begin(nodes, "IterVar");
  field_node(&node, "dom", extent ? range_node(nodes, min, extent) : -1);
  field_node(&node, "var", expr_node(nodes, var));
  field_int(&node, "iter_type", type);
  field_string(&node, "thread_tag", thread);
  return node_end(&node);
}

static void field_block_vars(NodeText *node, const Block *block) {
  static const int types[] = {[ITER_SPATIAL] = ITER_DATA_PARALLEL,
                              [ITER_REDUCTION] = ITER_COMMUTATIVE,
                              [ITER_SCAN] = ITER_ORDERED,
                              [ITER_OPAQUE] = ITER_OPAQUE_TYPE};
  int *numbers = arena_array(node->nodes->arena, int, block->var_count);
  for (int i = 0; i < block->var_count; i++) {
    const BlockVar *var = &block->vars[i];
    numbers[i] = iter_node(node->nodes, var->var, var->min, var->extent, types[var->kind], NULL);
  }
  field_nodes(node, "iter_vars", numbers, block->var_count);
}

static void field_block_buffers(NodeText *node, const Block *block) {
  Nodes *nodes = node->nodes;
  int *numbers = arena_array(nodes->arena, int, block->alloc_count + block->match_count);
  for (int i = 0; i < block->alloc_count; i++) numbers[i] = buffer_node(nodes, block->allocs[i]);
  field_nodes(node, "alloc_buffers", numbers, block->alloc_count);
  for (int i = 0; i < block->match_count; i++) {
    NodeText match = node_begin(nodes, "MatchBufferRegion");
    field_node(&match, "buffer", buffer_node(nodes, block->matches[i].buffer));
    field_node(&match, "source", region_node(nodes, &block->matches[i].source));
    numbers[i] = node_end(&match);
  }
  field_nodes(node, "match_buffers", numbers, block->match_count);
}

static int block_node(Nodes *nodes, const Block *block) {
  NodeText node = node_begin(nodes, "Block");
  field_block_vars(&node, block);
  field_regions(&node, "reads", block->reads, block->read_count);
  field_regions(&node, "writes", block->writes, block->write_count);
  field_string(&node, "name_hint", block->name);
  field_block_buffers(&node, block);
  field_attrs(&node, "annotations", &block->annotations, NULL, NULL);
  field_node(&node, "init", stmt_node(nodes, block->init));
  field_node(&node, "body", stmt_node(nodes, block->body));
  return node_end(&node);
}

static int realize_node(Nodes *nodes, const Stmt *s) {
  const Block *block = s->as.block;
  Expr **values = arena_array(nodes->arena, Expr *, block->var_count);
  for (int i = 0; i < block->var_count; i++) values[i] = block->vars[i].binding;
  NodeText node = node_begin(nodes, "BlockRealize");
  field_exprs(&node, "iter_values", values, block->var_count);
  field_node(&node, "predicate", expr_node(nodes, block->predicate));
  field_node(&node, "block", block_node(nodes, block));
  return node_end(&node);
}

// ---- Statements ---------------------------------------------------------------------------------

#define FIELD(NAME, KIND, MEMBER)                                                                  \
  { NAME, FIELD_##KIND, offsetof(Stmt, as.MEMBER) }

const StmtRow stmt_rows[] = {
    [STMT_LET] = {"LetStmt",
                  {FIELD("var", VARIABLE, let.var), FIELD("value", EXPR, let.value),
                   FIELD("body", BODY, let.body)}},
    [STMT_IF] = {"IfThenElse",
                 {FIELD("condition", EXPR, branch.condition),
                  FIELD("then_case", BODY, branch.then_body),
                  FIELD("else_case", OPTIONAL_BODY, branch.else_body)}},
    [STMT_WHILE] = {"While",
                    {FIELD("condition", EXPR, repeat.condition), FIELD("body", BODY, repeat.body)}},
    [STMT_ASSERT] = {"AssertStmt",
                     {FIELD("condition", EXPR, check.condition),
                      FIELD("message", ATTRIBUTE, check.message),
                      FIELD("body", OPTIONAL_BODY, check.body)}},
    [STMT_EVALUATE] = {"Evaluate", {FIELD("value", EXPR, evaluate)}},
    [STMT_DECL_BUFFER] = {"DeclBuffer",
                          {FIELD("buffer", BUFFER, declare.buffer),
                           FIELD("body", BODY, declare.body)}},
    [STMT_ATTR] = {NULL},
};

static int stmt_row_node(Nodes *nodes, const Stmt *s) {
  NodeText node = node_begin(nodes, stmt_rows[s->kind].kind);
  const StmtField *fields = stmt_rows[s->kind].fields;
  for (int i = 0; i < 3 && fields[i].name; i++) {
    const void *object;
    memcpy(&object, (const char *)s + fields[i].offset, sizeof object);
    bool is_stmt = fields[i].kind == FIELD_BODY || fields[i].kind == FIELD_OPTIONAL_BODY;
    field_node(&node, fields[i].name,
               is_stmt                          ? stmt_node(nodes, object)
               : fields[i].kind == FIELD_BUFFER ? buffer_node(nodes, object)
                                                : expr_node(nodes, object));
  }
  return node_end(&node);
}

// Threads that a statement starts: the attribute of an IterVar.
static int launch_node(Nodes *nodes, const Stmt *s) {
  const char *thread = s->as.loop.thread;
  bool is_virtual = strncmp(thread, "vthread", strlen("vthread")) == 0;
  int axis =
      iter_node(nodes, s->as.loop.var, s->as.loop.min, s->as.loop.extent, ITER_THREAD, thread);
  NodeText node = node_begin(nodes, "AttrStmt");
  field_node(&node, "node", axis);
  field_string(&node, "attr_key", is_virtual ? "virtual_thread" : "thread_extent");
  field_node(&node, "value", expr_node(nodes, s->as.loop.extent));
  field_node(&node, "body", stmt_node(nodes, s->as.loop.body));
  return node_end(&node);
}

static int for_node(Nodes *nodes, const Stmt *s) {
  if (s->as.loop.is_launch) return launch_node(nodes, s);
  NodeText node = node_begin(nodes, "For");
  const char *thread = s->as.loop.thread;
  field_node(&node, "loop_var", expr_node(nodes, s->as.loop.var));
  field_node(&node, "min", expr_node(nodes, s->as.loop.min));
  field_node(&node, "extent", expr_node(nodes, s->as.loop.extent));
  field_int(&node, "kind", s->as.loop.kind);
  field_node(&node, "thread_binding",
             thread ? iter_node(nodes, s->as.loop.var, NULL, NULL, ITER_THREAD, thread) : -1);
  field_attrs(&node, "annotations", &s->as.loop.annotations, NULL, NULL);
  field_node(&node, "body", stmt_node(nodes, s->as.loop.body));
  return node_end(&node);
}

static int store_node(Nodes *nodes, const Stmt *s) {
  NodeText node = node_begin(nodes, "BufferStore");
  field_node(&node, "buffer", buffer_node(nodes, s->as.store.buffer));
  field_node(&node, "value", expr_node(nodes, s->as.store.value));
  field_exprs(&node, "indices", s->as.store.indices, s->as.store.rank);
  return node_end(&node);
}

static int seq_node(Nodes *nodes, const Stmt *s) {
  int count = s->as.seq.count, *numbers = arena_array(nodes->arena, int, count);
  for (int i = 0; i < count; i++) numbers[i] = stmt_node(nodes, s->as.seq.items[i]);
  NodeText node = node_begin(nodes, "SeqStmt");
  field_nodes(&node, "seq", numbers, count);
  return node_end(&node);
}

static int allocate_node(Nodes *nodes, const Stmt *s) {
  NodeText node = node_begin(nodes, "Allocate");
  field_node(&node, "buffer_var", expr_node(nodes, s->as.allocate.var));
  field_type(&node, s->as.allocate.type);
  field_exprs(&node, "extents", s->as.allocate.extents, s->as.allocate.rank);
  field_node(&node, "condition", expr_node(nodes, expr_bool(nodes->context, true)));
  field_attrs(&node, "annotations", &s->as.allocate.annotations, NULL, NULL);
  field_node(&node, "body", stmt_node(nodes, s->as.allocate.body));
  return node_end(&node);
}

// Do NumPy's types include the type?
static bool is_plain_type(DType type) {
  int bits = type.bits;
  if (type.lanes != 1) return false;
  if (dtype_is_float(type)) return bits == 64 || bits == 32;
  return dtype_is_int(type) && (bits == 64 || bits == 32 || bits == 16 || bits == 8);
}

// The elements in row-major order, those of a large constant in base 64; null where it has none.
static void field_contents(NodeText *node, const ConstData *data) {
  field(node, "data");
  if (!data->data) {
    text_puts(&node->text, "null");
    return;
  }
  int64_t count = const_data_count(data);
  if (count > MOST_PRINTED && is_plain_type(data->type)) {
    size_t bytes = (size_t)(count * dtype_bytes(data->type));
    text_printf(&node->text, "{\"base64\": \"%s\"}",
                base64_text(node->nodes->arena, data->data, bytes));
    return;
  }
  text_puts(&node->text, "[");
  for (int64_t i = 0; i < count; i++) {
    if (i) text_puts(&node->text, ", ");
    put_attribute(node->nodes, &node->text, const_data_load(node->nodes->context, data, i));
  }
  text_puts(&node->text, "]");
}

static int allocate_const_node(Nodes *nodes, const Stmt *s) {
  const ConstData *data = s->as.allocate_const.data;
  NodeText node = node_begin(nodes, "AllocateConst");
  field_node(&node, "buffer_var", expr_node(nodes, s->as.allocate_const.var));
  field_type(&node, data->type);
  field(&node, "extents");
  for (int i = 0; i < data->rank; i++)
    text_printf(&node.text, "%s%lld", i ? ", " : "[", (long long)data->shape[i]);
  text_puts(&node.text, data->rank ? "]" : "[]");
  field_contents(&node, data);
  field_node(&node, "body", stmt_node(nodes, s->as.allocate_const.body));
  return node_end(&node);
}

static int attr_node(Nodes *nodes, const Stmt *s) {
  NodeText node = node_begin(nodes, "AttrStmt");
  field(&node, "node");
  put_attribute(nodes, &node.text, s->as.attr.node);
  field_string(&node, "attr_key", s->as.attr.key);
  field_node(&node, "value", expr_node(nodes, s->as.attr.value));
  field_node(&node, "body", stmt_node(nodes, s->as.attr.body));
  return node_end(&node);
}

static int stmt_node(Nodes *nodes, const Stmt *s) {
  if (!s) return -1;
  switch (s->kind) {
  case STMT_FOR: return for_node(nodes, s);
  case STMT_STORE: return store_node(nodes, s);
  case STMT_LET:
  case STMT_IF:
  case STMT_WHILE:
  case STMT_ASSERT:
  case STMT_EVALUATE:
  case STMT_DECL_BUFFER: return stmt_row_node(nodes, s);
  case STMT_SEQ: return seq_node(nodes, s);
  case STMT_BLOCK: return realize_node(nodes, s);
  case STMT_ALLOCATE: return allocate_node(nodes, s);
  case STMT_ALLOCATE_CONST: return allocate_const_node(nodes, s);
  case STMT_ATTR: return attr_node(nodes, s);
  }
  return -1;
}

// ---- Functions ----------------------------------------------------------------------------------

static int prim_func_node(Nodes *nodes, const PrimFunc *func) {
  NodeText node = node_begin(nodes, "PrimFunc");
  bool is_named = attrs_get(&func->attrs, "private") || attrs_get(&func->attrs, "global_symbol");
  field_string(&node, "name", func->name);
  field_exprs(&node, "params", func->params, func->param_count);
  field(&node, "buffer_map"); // pairs of a parameter and its buffer
  text_puts(&node.text, "[");
  for (int i = 0, count = 0; i < func->param_count; i++) {
    if (!func->buffers[i]) continue;
    text_puts(&node.text, count++ ? ", [" : "[");
    put_number(&node.text, expr_node(nodes, func->params[i]));
    text_puts(&node.text, ", ");
    put_number(&node.text, buffer_node(nodes, func->buffers[i]));
    text_puts(&node.text, "]");
  }
  text_puts(&node.text, "]");
  field_string(&node, "ret_type", dtype_name(nodes->context, func->result));
  field_attrs(&node, "attrs", &func->attrs, is_named ? NULL : "global_symbol", func->name);
  field(&node, "implied_symbol"); // not stated as an attribute
  text_puts(&node.text, is_named ? "false" : "true");
  field(&node, "is_newer");
  text_puts(&node.text, func->is_newer ? "true" : "false");
  field_node(&node, "body", stmt_node(nodes, func->body));
  return node_end(&node);
}

// ---- Tables -------------------------------------------------------------------------------------

NodeKeys node_keys_new(Arena *arena) {
  return (NodeKeys){map_new(arena), map_new(arena)};
}

Nodes *nodes_new(Context *context, const NodeKeys *keys) {
  Nodes *nodes = arena_new(&context->scratch, Nodes);
  *nodes = (Nodes){.context = context,
                   .arena = &context->scratch,
                   .keys = keys,
                   .known = map_new(&context->scratch)};
  return nodes;
}

int nodes_add(Nodes *nodes, const Expr *e) {
  return expr_node(nodes, e);
}

void nodes_print(const Nodes *nodes, Text *out) {
  text_puts(out, "[");
  for (int i = 0; i < nodes->items.count; i++)
    text_printf(out, "%s%s", i ? ",\n" : "\n", nodes->items.items[i]);
  text_puts(out, "]");
}

static Text module_nodes(Context *context, const Module *module) {
  Nodes *nodes = nodes_new(context, NULL);
  Text out = text_new(&context->scratch), functions = text_new(&context->scratch);
  for (int i = 0; i < module->funcs.count; i++) {
    const PrimFunc *func = module->funcs.items[i].prim;
    if (!func) continue;
    text_puts(&functions, functions.size ? ", " : "");
    put_string(&functions, func->name);
    text_puts(&functions, ": ");
    put_number(&functions, prim_func_node(nodes, func));
  }
  Text attrs = text_new(&context->scratch);
  put_attrs(nodes, &attrs, &module->attrs, NULL, NULL); // before the nodes are printed: adds some
  text_puts(&out, "{\"nodes\": ");
  nodes_print(nodes, &out);
  text_printf(&out, ",\n\"functions\": {%s},\n\"attrs\": %s}\n", text_string(&functions),
              text_string(&attrs));
  return out;
}

typedef struct NodesCall {
  ModuleCall call;
  char *json;
} NodesCall;

static void write_nodes(void *arg) {
  NodesCall *call = arg;
  Context *context = call->call.context;
  Text text = module_nodes(context, call->call.on->module);
  call->json = module_owned_text(context, &text);
  call->call.done = call->json != NULL;
}

int pleat_module_nodes(const PleatModule *module, char **json, PleatMessages **messages) {
  if (!json) return messages_refuse("json", "is NULL, expected where to store it", messages);
  *json = NULL;
  if (!module) return module_refuse_null(messages);
  NodesCall call = {.call = {.on = module, .body = write_nodes}};
  int status = module_call_run(&call, NULL, messages);
  *json = call.json;
  return status;
}
