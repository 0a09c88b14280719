// SPDX-License-Identifier: Apache-2.0
// Implements pleat_module_make of pleat/tir.h: makes a module of the nodes that pleat_module_nodes
// writes, or that a program has made. The result is printed and read again, so that all that the
// parser checks is checked here too.
#include "api/tir_nodes.h"

#include "api/contents.h"
#include "api/tir.h"

#include <jansson.h>
#include <stdlib.h>

#include "arith/arith.h"
#include "ir/intrinsic.h"
#include "lower/lower.h"
#include "script/const_data.h"
#include "script/script.h"

typedef enum MadeKind {
  MADE_EXPR,
  MADE_BUFFER,
  MADE_STMT,
  MADE_BLOCK,
  MADE_RANGE,
  MADE_REGION,
  MADE_MATCH,
  MADE_ITER,
  MADE_FUNC,
} MadeKind;

static const char *const kind_words[] = {
    [MADE_EXPR] = "an expression", [MADE_BUFFER] = "a buffer", [MADE_STMT] = "a statement",
    [MADE_BLOCK] = "a block",      [MADE_RANGE] = "a range",   [MADE_REGION] = "a region",
    [MADE_MATCH] = "a match",      [MADE_ITER] = "an IterVar", [MADE_FUNC] = "a function",
};

typedef struct Made {
  MadeKind kind;
  void *object; // NULL: a mistake that is reported
} Made;

typedef struct MadeRange {
  Expr *min, *extent;
} MadeRange;

struct NodesMaking {
  Context *context;
  Arena *arena;
  NodeKeys *keys; // may be NULL
  Made *made;
  int at;               // number of the node that is being made
  const char *type;     // and its type
  const json_t *record; // and its fields
  bool failed;          // the node has a mistake
  bool in_attribute;    // lists, dictionaries and the like are allowed
};

// ---- Fields -------------------------------------------------------------------------------------

PRINTF_LIKE(3, 4)
static void wrong(NodesMaking *m, const char *field, const char *format, ...) {
  va_list args;
  if (m->failed) return;
  m->failed = true;
  va_start(args, format);
  const char *why = arena_vprintf(m->arena, format, args);
  va_end(args);
  field_error(m->context, "json", "node %d (%s): field '%s' %s", m->at, m->type, field, why);
}

static const json_t *field_of(NodesMaking *m, const char *name) {
  return json_object_get(m->record, name);
}

static bool is_attribute_only(const Expr *e) {
  bool is_object = e->op == EXPR_OBJECT && !expr_text(e);
  return e->op == EXPR_TUPLE || e->op == EXPR_DICT || e->op == EXPR_NONE || is_object ||
         e->op == EXPR_LAMBDA;
}

// The object of a reference; NULL for null where it is optional, and after a report.
static void *object_of(NodesMaking *m, const char *field, const json_t *value, MadeKind kind,
                       bool is_optional) {
  const json_t *number = json_object_get(value, "node");
  if ((!value || json_is_null(value)) && is_optional) return NULL;
  json_int_t at = json_is_integer(number) ? json_integer_value(number) : -1;
  if (at < 0 || at >= m->at) {
    wrong(m, field, "does not refer to a node before it");
    return NULL;
  }
  const Made *made = &m->made[at];
  if (!made->object) m->failed = true;
  if (made->object && made->kind != kind)
    wrong(m, field, "is %s, expected %s", kind_words[made->kind], kind_words[kind]);
  bool is_expr = made->object && made->kind == MADE_EXPR && kind == MADE_EXPR;
  if (is_expr && !m->in_attribute && is_attribute_only(made->object))
    wrong(m, field, "is a value that only attributes have");
  return made->object && made->kind == kind ? made->object : NULL;
}

static void *get(NodesMaking *m, const char *field, MadeKind kind) {
  return object_of(m, field, field_of(m, field), kind, false);
}

static void *get_optional(NodesMaking *m, const char *field, MadeKind kind) {
  return object_of(m, field, field_of(m, field), kind, true);
}

// The objects of a list, in the context's arena. An absent list is empty.
static void **get_list(NodesMaking *m, const char *field, MadeKind kind, int *count) {
  const json_t *list = field_of(m, field);
  *count = (int)json_array_size(list);
  if (list && !json_is_null(list) && !json_is_array(list)) wrong(m, field, "is not a list");
  void **items = arena_array(m->arena, void *, *count);
  for (int i = 0; i < *count; i++)
    items[i] = object_of(m, field, json_array_get(list, (size_t)i), kind, false);
  return items;
}

static const char *get_string(NodesMaking *m, const char *field) {
  const char *text = json_string_value(field_of(m, field));
  if (!text) wrong(m, field, "is not a string");
  return text ? str_intern(m->context, text) : "";
}

static int64_t get_int(NodesMaking *m, const char *field, int64_t least, int64_t most) {
  const json_t *value = field_of(m, field);
  int64_t number = json_is_integer(value) ? json_integer_value(value) : least;
  if (!json_is_integer(value) || number < least || number > most)
    wrong(m, field, "is not an integer from %lld to %lld", (long long)least, (long long)most);
  return number;
}

static DType get_type(NodesMaking *m, const char *field) {
  DType type = DTYPE_INT32;
  const char *text = get_string(m, field);
  if (!strcmp(text, "string")) return DTYPE_STRING;
  if (!m->failed && !dtype_parse(text, strlen(text), &type))
    wrong(m, field, "is '%s', which is not a type", text);
  return type;
}

// ---- Attributes ---------------------------------------------------------------------------------

static Expr *attribute_of(NodesMaking *m, const char *field, const json_t *value);

static Expr *attribute_list(NodesMaking *m, const char *field, const json_t *value) {
  int count = (int)json_array_size(value);
  Expr **items = arena_array(m->arena, Expr *, count);
  for (int i = 0; i < count; i++)
    if (!(items[i] = attribute_of(m, field, json_array_get(value, (size_t)i)))) return NULL;
  return expr_tuple(m->context, items, count);
}

static Expr *attribute_map(NodesMaking *m, const char *field, const json_t *value) {
  Expr **items = arena_array(m->arena, Expr *, 2 * (int)json_object_size(value));
  const char *key;
  json_t *item;
  int count = 0;
  json_object_foreach((json_t *)value, key, item) {
    items[count++] = expr_string(m->context, key);
    if (!(items[count++] = attribute_of(m, field, item))) return NULL;
  }
  return expr_raw(m->context, EXPR_DICT, DTYPE_VOID, NULL, items, count);
}

static Expr *attribute_of(NodesMaking *m, const char *field, const json_t *value) {
  if (json_is_string(value)) return expr_string(m->context, json_string_value(value));
  if (json_is_boolean(value)) return expr_bool(m->context, json_is_true(value));
  if (json_is_integer(value)) return expr_index(m->context, json_integer_value(value));
  if (json_is_real(value)) return expr_float(m->context, DTYPE_FLOAT64, json_real_value(value));
  if (json_is_array(value)) return attribute_list(m, field, value);
  bool is_node = json_object_size(value) == 1 && json_object_get(value, "node");
  if (is_node) return object_of(m, field, value, MADE_EXPR, false);
  if (json_is_object(value)) return attribute_map(m, field, value);
  return expr_raw(m->context, EXPR_NONE, DTYPE_HANDLE, NULL, NULL, 0);
}

static Expr *get_attribute(NodesMaking *m, const char *field, const json_t *value) {
  m->in_attribute = true;
  Expr *result = attribute_of(m, field, value);
  m->in_attribute = false;
  return result;
}

static Attrs get_attrs(NodesMaking *m, const char *field) {
  Attrs attrs = {0};
  const char *key;
  json_t *item;
  json_object_foreach((json_t *)field_of(m, field), key, item) {
    Expr *value = get_attribute(m, field, item);
    if (value) attrs = attrs_with(m->arena, attrs, str_intern(m->context, key), value);
  }
  return attrs;
}

static Expr **get_attribute_list(NodesMaking *m, const char *field, int *count) {
  m->in_attribute = true;
  Expr **items = (Expr **)get_list(m, field, MADE_EXPR, count);
  m->in_attribute = false;
  return items;
}

// ---- Expressions --------------------------------------------------------------------------------

static Expr *number_of(NodesMaking *m) {
  DType type = get_type(m, "dtype");
  const json_t *value = field_of(m, "value");
  bool is_int = strcmp(m->type, "IntImm") == 0, is_truth = json_is_boolean(value);
  if (is_int && !json_is_integer(value) && !is_truth) wrong(m, "value", "is not an integer");
  if (!is_int && !json_is_number(value) && !json_is_string(value))
    wrong(m, "value", "is not a number");
  bool fits = type.lanes == 1 &&
              (is_int ? dtype_is_int(type) || dtype_is_bool(type) : dtype_is_float(type));
  if (!fits) wrong(m, "dtype", "is not the type of such a number");
  if (m->failed) return NULL;
  if (is_int)
    return expr_int(m->context, type, is_truth ? json_is_true(value) : json_integer_value(value));
  const char *word = json_string_value(value); // "inf", "-inf" or "nan"
  return expr_float(m->context, type, word ? strtod(word, NULL) : json_number_value(value));
}

static Expr *string_of(NodesMaking *m) {
  return expr_string(m->context, get_string(m, "value"));
}

static Expr *variable_of(NodesMaking *m) {
  DType type = get_type(m, "dtype");
  const char *name = get_string(m, "name");
  if (!*name) name = "v";
  if (!field_of(m, "element_type")) return m->failed ? NULL : expr_var(m->context, name, type);
  DType element = get_type(m, "element_type");
  const char *scope = get_string(m, "storage_scope");
  if (!m->failed && type.code != TYPE_HANDLE) wrong(m, "dtype", "is not handle");
  return m->failed ? NULL : expr_data_var(m->context, name, element, scope);
}

static Expr *load_of(NodesMaking *m) {
  int count;
  Buffer *buffer = get(m, "buffer", MADE_BUFFER);
  Expr **indices = (Expr **)get_list(m, "indices", MADE_EXPR, &count);
  if (buffer && count != buffer->rank)
    wrong(m, "indices", "has %d items, and the buffer %d axes", count, buffer->rank);
  for (int i = 0; i < count && !m->failed; i++)
    if (!dtype_is_int(indices[i]->type) && !dtype_is_bool(indices[i]->type))
      wrong(m, "indices", "has an item that is not an integer");
  return m->failed ? NULL : expr_load(m->context, buffer, indices, count);
}

// An operation with the operands. Its type is that of the field "dtype" where no rule gives it.
static Expr *operation(NodesMaking *m, ExprOp op, const void *payload, Expr **args, int count) {
  const OpInfo *info = &op_table[op];
  if (info->arity >= 0 && info->arity != count) wrong(m, "args", "has %d items", count);
  bool is_scalar_rule = info->result != OP_GIVEN && count > 0;
  bool same = is_scalar_rule || op == EXPR_SELECT || op == EXPR_IF_THEN_ELSE;
  int first = op == EXPR_SELECT || op == EXPR_IF_THEN_ELSE;
  for (int i = first + 1; same && i < count && !m->failed; i++)
    if (!dtype_equal(args[first]->type, args[i]->type))
      wrong(m, "b", "has the type %s, and the operand before it %s",
            dtype_name(m->context, args[i]->type), dtype_name(m->context, args[first]->type));
  if (op == EXPR_ADDRESS_OF && !m->failed && args[0]->op != EXPR_LOAD)
    wrong(m, "args", "is not an element of a buffer");
  if (m->failed) return NULL;
  DType type = !is_scalar_rule           ? get_type(m, "dtype")
               : info->result == OP_SAME ? args[0]->type
                                         : dtype_lanes(DTYPE_BOOL, args[0]->type.lanes);
  return m->failed ? NULL : expr_raw(m->context, op, type, payload, args, count);
}

static void check_lambda(NodesMaking *m, Expr *const *items, int count) {
  if (!count) wrong(m, "fields", "is empty");
  for (int i = 0; i + 1 < count && !m->failed; i++)
    if (items[i]->op != EXPR_VAR) wrong(m, "fields", "has a parameter that is not a variable");
}

static Expr *list_of(NodesMaking *m, ExprOp op, const char *const *fields) {
  int count;
  if (op_table[op].arity < 0 || !fields[0]) {
    Expr **items = fields[0] ? get_attribute_list(m, fields[0] + 1, &count) : NULL;
    if (!fields[0]) count = 0;
    if (op == EXPR_DICT && count % 2) wrong(m, "fields", "has a key without a value");
    if (op == EXPR_LAMBDA) check_lambda(m, items, count);
    return operation(m, op, NULL, items, count);
  }
  Expr *args[2];
  for (int i = 0; i < 2; i++) {
    Expr **items = (Expr **)get_list(m, fields[i] + 1, MADE_EXPR, &count);
    if (!count) wrong(m, fields[i] + 1, "is empty");
    args[i] = m->failed ? NULL : expr_tuple(m->context, items, count);
  }
  return operation(m, op, NULL, args, 2);
}

static Expr *row_of(NodesMaking *m, ExprOp op) {
  const char *const *fields = expr_rows[op].fields;
  Expr *args[3];
  int count = 0;
  if (!fields[0] || *fields[0] == '*') return list_of(m, op, fields);
  for (; count < 3 && fields[count]; count++) args[count] = get(m, fields[count], MADE_EXPR);
  if (m->failed) return NULL;
  if (op == EXPR_DIV && !dtype_is_float(args[0]->type)) op = EXPR_TRUNC_DIV;
  if (op == EXPR_LET && args[0]->op != EXPR_VAR) wrong(m, "var", "is not a variable");
  return operation(m, op, NULL, args, count);
}

static ExprOp operation_named(const char *name) {
  for (int op = 0; op < EXPR_OP_COUNT; op++) {
    bool is_call = !expr_rows[op].kind && op_table[op].class != OP_LEAF && op != EXPR_LOAD;
    if (is_call && *op_table[op].spelling && !strcmp(op_table[op].spelling, name))
      return (ExprOp)op;
  }
  return EXPR_OP_COUNT;
}

// The name of an operation of either dialect, tir.exp or tirx.exp, without the dialect.
static const char *without_dialect(const char *op) {
  if (!strncmp(op, "tir.", 4)) return op + 4;
  return strncmp(op, "tirx.", 5) ? op : op + 5;
}

static Expr *call_of(NodesMaking *m) {
  int count;
  const char *op = get_string(m, "op");
  const char *name = without_dialect(op);
  bool is_object = strncmp(op, "T.", 2) == 0;
  bool takes_lists = is_object || operation_named(name) == EXPR_OP_COUNT;
  Expr **args = takes_lists ? get_attribute_list(m, "args", &count)
                            : (Expr **)get_list(m, "args", MADE_EXPR, &count);
  if (m->failed) return NULL;
  if (!strchr(op, '.')) return operation(m, EXPR_CALL_MODULE, op, args, count);
  bool is_string = !strcmp(op, "T.metadata") && count == 1 && args[0]->op == EXPR_STRING;
  if (is_string) return expr_named_string(m->context, args[0]->as.s);
  if (is_object) return operation(m, EXPR_OBJECT, str_intern(m->context, op + 2), args, count);
  for (int i = 0; i < named_call_count; i++) {
    if (!named_calls[i].name || strcmp(named_calls[i].name, op) != 0) continue;
    if (!count || args[0]->op != EXPR_STRING) wrong(m, "args", "does not begin with a name");
    return m->failed ? NULL : operation(m, named_calls[i].op, args[0]->as.s, args + 1, count - 1);
  }
  ExprOp known = operation_named(name);
  if (known != EXPR_OP_COUNT) return operation(m, known, NULL, args, count);
  const Intrinsic *intrinsic = intrinsic_find(name);
  if (!intrinsic) wrong(m, "op", "is '%s', which is not an operation", op);
  if (m->failed) return NULL;
  bool is_pure = intrinsic->flags & INTRINSIC_PURE;
  return operation(m, is_pure ? EXPR_INTRINSIC_PURE : EXPR_INTRINSIC,
                   str_intern(m->context, intrinsic_name(intrinsic, name)), args, count);
}

// ---- Buffers and regions ------------------------------------------------------------------------

static void set_separators(NodesMaking *m, Buffer *buffer) {
  const json_t *list = field_of(m, "axis_separators");
  buffer->separator_count = (int)json_array_size(list);
  buffer->separators = arena_array(m->arena, int, buffer->separator_count);
  for (int i = 0, last = 0; i < buffer->separator_count; i++) {
    json_int_t axis = json_integer_value(json_array_get(list, (size_t)i));
    if (axis < last || axis > buffer->rank) wrong(m, "axis_separators", "do not ascend");
    buffer->separators[i] = last = m->failed ? last : (int)axis;
  }
}

static Expr *tile_layout_of(NodesMaking *m) {
  m->in_attribute = true;
  Expr *layout = get_optional(m, "layout", MADE_EXPR);
  m->in_attribute = false;
  bool is_layout = !layout || layout->op == EXPR_OBJECT || layout->op == EXPR_NONE;
  if (!is_layout) wrong(m, "layout", "is not a tile layout");
  return is_layout ? layout : NULL;
}

static void *buffer_of(NodesMaking *m) {
  int rank, stride_count;
  const char *name = get_string(m, "name"), *scope = get_string(m, "storage_scope");
  DType type = get_type(m, "dtype");
  Expr *data = get(m, "data", MADE_EXPR);
  Expr **shape = (Expr **)get_list(m, "shape", MADE_EXPR, &rank);
  Expr **strides = (Expr **)get_list(m, "strides", MADE_EXPR, &stride_count);
  if (data && (data->op != EXPR_VAR || data->type.code != TYPE_HANDLE))
    wrong(m, "data", "is not a variable of type handle");
  if (stride_count && stride_count != rank) wrong(m, "strides", "has %d items", stride_count);
  if (m->failed) return NULL;
  Buffer *buffer =
      buffer_new(m->context, *name ? name : "buffer", type, shape, rank, *scope ? scope : "global");
  buffer->data = data;
  buffer->strides = stride_count ? strides : NULL;
  buffer->alignment = (int)get_int(m, "data_alignment", 0, 1 << 20);
  buffer->offset_factor = (int)get_int(m, "offset_factor", 0, 1 << 20);
  buffer->broadcasts = json_integer_value(field_of(m, "buffer_type")) == TYPE_AUTO_BROADCAST;
  Expr *offset = get_optional(m, "elem_offset", MADE_EXPR);
  if (offset) buffer->offset = offset;
  buffer->tile_layout = tile_layout_of(m);
  set_separators(m, buffer);
  if (!data->as.var->scope) {
    data->as.var->scope = buffer->scope;
    data->as.var->pointee = dtype_lanes(type, 1);
  }
  return buffer;
}

static void *range_of(NodesMaking *m) {
  MadeRange range = {get(m, "min", MADE_EXPR), get(m, "extent", MADE_EXPR)};
  return m->failed ? NULL : arena_copy(m->arena, &range, sizeof range);
}

static void *region_of(NodesMaking *m) {
  int count;
  Buffer *buffer = get(m, "buffer", MADE_BUFFER);
  MadeRange **ranges = (MadeRange **)get_list(m, "region", MADE_RANGE, &count);
  if (buffer && count != buffer->rank) wrong(m, "region", "has %d axes", count);
  if (m->failed) return NULL;
  Region *region = arena_new(m->arena, Region);
  *region =
      (Region){buffer, arena_array(m->arena, Expr *, count), arena_array(m->arena, Expr *, count)};
  for (int i = 0; i < count; i++) {
    region->min[i] = ranges[i]->min;
    region->extent[i] = ranges[i]->extent;
  }
  return region;
}

static void *match_of(NodesMaking *m) {
  Buffer *buffer = get(m, "buffer", MADE_BUFFER);
  const Region *source = get(m, "source", MADE_REGION);
  if (m->failed) return NULL;
  MatchBuffer match = {buffer, *source};
  return arena_copy(m->arena, &match, sizeof match);
}

// ---- Blocks -------------------------------------------------------------------------------------

static void *iter_of(NodesMaking *m) {
  const MadeRange *domain = get_optional(m, "dom", MADE_RANGE);
  Expr *var = get(m, "var", MADE_EXPR);
  int64_t type = get_int(m, "iter_type", 0, 16);
  if (var && var->op != EXPR_VAR) wrong(m, "var", "is not a variable");
  if (m->failed) return NULL;
  BlockVar *iter = arena_new(m->arena, BlockVar);
  iter->var = var;
  iter->kind = type == ITER_COMMUTATIVE     ? ITER_REDUCTION
               : type == ITER_DATA_PARALLEL ? ITER_SPATIAL
               : type == ITER_ORDERED       ? ITER_SCAN
                                            : ITER_OPAQUE;
  if (domain) {
    iter->min = domain->min;
    iter->extent = domain->extent;
  }
  return iter;
}

static Region *regions_of(NodesMaking *m, const char *field, int *count) {
  Region **items = (Region **)get_list(m, field, MADE_REGION, count);
  Region *regions = arena_array(m->arena, Region, *count);
  for (int i = 0; i < *count && !m->failed; i++) regions[i] = *items[i];
  return regions;
}

static void *block_of(NodesMaking *m) {
  Block block = {.name = get_string(m, "name_hint"), .annotations = get_attrs(m, "annotations")};
  block.reads = regions_of(m, "reads", &block.read_count);
  block.writes = regions_of(m, "writes", &block.write_count);
  block.allocs = (Buffer **)get_list(m, "alloc_buffers", MADE_BUFFER, &block.alloc_count);
  MatchBuffer **matches =
      (MatchBuffer **)get_list(m, "match_buffers", MADE_MATCH, &block.match_count);
  BlockVar **vars = (BlockVar **)get_list(m, "iter_vars", MADE_ITER, &block.var_count);
  block.init = get_optional(m, "init", MADE_STMT);
  block.body = get(m, "body", MADE_STMT);
  block.matches = arena_array(m->arena, MatchBuffer, block.match_count);
  block.vars = arena_array(m->arena, BlockVar, block.var_count);
  for (int i = 0; i < block.match_count && !m->failed; i++) block.matches[i] = *matches[i];
  for (int i = 0; i < block.var_count && !m->failed; i++) {
    block.vars[i] = *vars[i];
    if (!vars[i]->extent) wrong(m, "iter_vars", "has a variable without a domain");
  }
  return m->failed ? NULL : block_copy(m->context, &block);
}

static Stmt *realize_of(NodesMaking *m) {
  int count;
  const Block *made = get(m, "block", MADE_BLOCK);
  Expr **values = (Expr **)get_list(m, "iter_values", MADE_EXPR, &count);
  Expr *predicate = get_optional(m, "predicate", MADE_EXPR);
  if (made && count != made->var_count) wrong(m, "iter_values", "has %d items", count);
  if (m->failed) return NULL;
  Block *block = block_copy(m->context, made);
  block->vars = arena_copy(m->arena, made->vars, sizeof *made->vars * (size_t)made->var_count);
  for (int i = 0; i < count; i++) block->vars[i].binding = values[i];
  block->predicate = predicate;
  return stmt_block(m->context, block);
}

// ---- Statements ---------------------------------------------------------------------------------

static Stmt *new_stmt(NodesMaking *m, StmtKind kind) {
  Stmt *s = arena_new(m->arena, Stmt);
  s->kind = kind;
  return s;
}

static Expr *get_variable(NodesMaking *m, const char *field) {
  Expr *var = get(m, field, MADE_EXPR);
  if (var && var->op != EXPR_VAR) wrong(m, field, "is not a variable");
  return var;
}

// The thread axis in the node of an IterVar, to which a field refers.
static const char *thread_of(NodesMaking *m, const json_t *nodes, const char *field) {
  const json_t *reference = field_of(m, field);
  if (!object_of(m, field, reference, MADE_ITER, true)) return NULL;
  size_t at = (size_t)json_integer_value(json_object_get(reference, "node"));
  const char *tag = json_string_value(json_object_get(json_array_get(nodes, at), "thread_tag"));
  if (!tag || !*tag) wrong(m, field, "has no thread axis");
  return tag ? str_intern(m->context, tag) : NULL;
}

static Stmt *for_of(NodesMaking *m, const json_t *nodes) {
  Expr *var = get_variable(m, "loop_var"), *min = get(m, "min", MADE_EXPR);
  Expr *extent = get(m, "extent", MADE_EXPR);
  LoopKind kind = (LoopKind)get_int(m, "kind", 0, LOOP_THREAD);
  Attrs annotations = get_attrs(m, "annotations");
  const char *thread = thread_of(m, nodes, "thread_binding");
  Stmt *body = get(m, "body", MADE_STMT);
  if ((kind == LOOP_THREAD) != (thread != NULL)) wrong(m, "thread_binding", "contradicts 'kind'");
  if (m->failed) return NULL;
  Stmt *s = stmt_for(m->context, var, min, extent, kind, body);
  s->as.loop.annotations = annotations;
  s->as.loop.thread = thread;
  return s;
}

// The attribute of an IterVar that starts threads; otherwise NULL.
static Stmt *launch_of(NodesMaking *m, const json_t *nodes) {
  const char *key = json_string_value(field_of(m, "attr_key"));
  const json_t *number = json_object_get(field_of(m, "node"), "node");
  json_int_t at = json_is_integer(number) ? json_integer_value(number) : -1;
  bool is_axis = at >= 0 && at < m->at && m->made[at].kind == MADE_ITER && m->made[at].object;
  if (!is_axis || !key || (strcmp(key, "thread_extent") && strcmp(key, "virtual_thread")))
    return NULL;
  const BlockVar *axis = m->made[at].object;
  const char *thread = thread_of(m, nodes, "node");
  Expr *extent = get(m, "value", MADE_EXPR);
  Stmt *body = get(m, "body", MADE_STMT);
  if (m->failed) return NULL;
  Expr *none = expr_int(m->context, axis->var->type, 0);
  extent = expr_cast(m->context, axis->var->type, extent);
  Stmt *s = stmt_for(m->context, axis->var, none, extent, LOOP_THREAD, body);
  s->as.loop.thread = thread;
  s->as.loop.is_launch = true;
  return s;
}

static Stmt *store_of(NodesMaking *m) {
  int count;
  Buffer *buffer = get(m, "buffer", MADE_BUFFER);
  Expr *value = get(m, "value", MADE_EXPR);
  Expr **indices = (Expr **)get_list(m, "indices", MADE_EXPR, &count);
  if (buffer && count != buffer->rank)
    wrong(m, "indices", "has %d items, and the buffer %d axes", count, buffer->rank);
  return m->failed ? NULL : stmt_store(m->context, buffer, indices, count, value);
}

static Stmt *seq_of(NodesMaking *m) {
  int count;
  Stmt **items = (Stmt **)get_list(m, "seq", MADE_STMT, &count);
  return m->failed ? NULL : stmt_seq(m->context, items, count);
}

static Stmt *allocate_of(NodesMaking *m) {
  Stmt *s = new_stmt(m, STMT_ALLOCATE);
  Expr *var = s->as.allocate.var = get_variable(m, "buffer_var");
  s->as.allocate.type = get_type(m, "dtype");
  s->as.allocate.extents = (Expr **)get_list(m, "extents", MADE_EXPR, &s->as.allocate.rank);
  s->as.allocate.annotations = get_attrs(m, "annotations");
  s->as.allocate.body = get(m, "body", MADE_STMT);
  if (m->failed || var->as.var->scope) return s;
  var->as.var->scope = "global";
  var->as.var->pointee = dtype_lanes(s->as.allocate.type, 1);
  return s;
}

enum { MOST_ELEMENTS = 1 << 28 };

static void set_extents(NodesMaking *m, ConstData *data) {
  const json_t *extents = field_of(m, "extents");
  int64_t count = 1;
  data->rank = (int)json_array_size(extents);
  data->shape = arena_array(m->arena, int64_t, data->rank);
  for (int i = 0; i < data->rank && !m->failed; i++) {
    data->shape[i] = json_integer_value(json_array_get(extents, (size_t)i));
    if (data->shape[i] < 0 || !mul_fits(count, data->shape[i], &count) || count > MOST_ELEMENTS)
      wrong(m, "extents", "are not those of a constant");
  }
}

// Takes the elements in base 64.
static void take_bytes(NodesMaking *m, ConstData *data, const json_t *text) {
  Contents *contents = NULL;
  bool is_text = json_is_string(text) && base64_contents(m->context, json_string_value(text),
                                                         json_string_length(text), &contents);
  if (!is_text)
    wrong(m, "data", "has no bytes in base 64");
  else if (!const_data_take(m->context, data, contents))
    wrong(m, "data", "does not have %lld items", (long long)const_data_count(data));
}

static ConstData *contents_of(NodesMaking *m) {
  const json_t *items = field_of(m, "data"), *bytes_text = json_object_get(items, "base64");
  ConstData *data = arena_new(m->arena, ConstData);
  *data = (ConstData){.name = "constant", .type = get_type(m, "dtype")};
  set_extents(m, data);
  int64_t count = const_data_count(data);
  bool can_store = const_data_storable(data->type) && data->type.lanes == 1;
  if (!can_store) wrong(m, "dtype", "is a type that constants cannot have");
  if (bytes_text && !m->failed) return take_bytes(m, data, bytes_text), data;
  if ((int64_t)json_array_size(items) != count)
    wrong(m, "data", "does not have %lld items", (long long)count);
  if (m->failed) return NULL;
  data->bytes = (size_t)(count * dtype_bytes(data->type));
  void *bytes = arena_alloc(m->arena, data->bytes);
  for (int64_t i = 0; i < count; i++) {
    const json_t *item = json_array_get(items, (size_t)i);
    const char *word = json_string_value(item); // "inf", "-inf" or "nan"
    double real = word ? strtod(word, NULL) : json_number_value(item);
    int64_t integer = json_is_boolean(item) ? json_is_true(item) : json_integer_value(item);
    const_data_store(bytes, data->type, i, real, integer);
  }
  data->data = bytes;
  return data;
}

static Stmt *allocate_const_of(NodesMaking *m) {
  Expr *var = get_variable(m, "buffer_var");
  ConstData *data = contents_of(m);
  Stmt *body = get(m, "body", MADE_STMT);
  if (m->failed) return NULL;
  Stmt *s = new_stmt(m, STMT_ALLOCATE_CONST);
  s->as.allocate_const.var = var;
  s->as.allocate_const.data = data;
  s->as.allocate_const.body = body;
  if (var->as.var->scope) return s;
  var->as.var->scope = "global";
  var->as.var->pointee = data->type;
  return s;
}

static Stmt *attr_of(NodesMaking *m) {
  const json_t *node = field_of(m, "node");
  const char *key = get_string(m, "attr_key");
  Expr *value = get_attribute(m, "value", field_of(m, "value"));
  Stmt *body = get(m, "body", MADE_STMT);
  Expr *object = json_is_null(node) || !node ? NULL : get_attribute(m, "node", node);
  return m->failed ? NULL : stmt_attr(m->context, key, object, value, body);
}

// ---- Functions ----------------------------------------------------------------------------------

static bool find_block(Visitor *visitor, Stmt *s) {
  bool *found = visitor->env;
  *found |= s->kind == STMT_BLOCK;
  return !*found;
}

// The body. If it has blocks and is not a root block, it is put into one.
static Stmt *with_root(NodesMaking *m, Stmt *body) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = find_block}, body);
  bool is_root = body->kind == STMT_BLOCK && block_is_root(body->as.block);
  if (!found || is_root) return body;
  Block root = {.name = str_intern(m->context, "root"), .body = body};
  return stmt_block(m->context, block_copy(m->context, &root));
}

static Buffer **param_buffers(NodesMaking *m, Expr *const *params, int count) {
  const json_t *pairs = field_of(m, "buffer_map");
  Buffer **buffers = arena_array(m->arena, Buffer *, count);
  for (size_t i = 0; i < json_array_size(pairs); i++) {
    const json_t *pair = json_array_get(pairs, i);
    const Expr *param = object_of(m, "buffer_map", json_array_get(pair, 0), MADE_EXPR, false);
    Buffer *buffer = object_of(m, "buffer_map", json_array_get(pair, 1), MADE_BUFFER, false);
    for (int k = 0; k < count; k++)
      if (params[k] == param) buffers[k] = buffer;
  }
  return buffers;
}

static void *function_of(NodesMaking *m) {
  int count;
  const char *name = get_string(m, "name");
  Expr **params = (Expr **)get_list(m, "params", MADE_EXPR, &count);
  Buffer **buffers = param_buffers(m, params, count);
  Attrs attrs = get_attrs(m, "attrs");
  DType result = get_type(m, "ret_type");
  Stmt *body = get(m, "body", MADE_STMT);
  for (int i = 0; i < count && !m->failed; i++)
    if (params[i]->op != EXPR_VAR) wrong(m, "params", "has an item that is not a variable");
  if (m->failed) return NULL;
  PrimFunc *func = prim_func_new(m->context, name, params, buffers, count, with_root(m, body));
  bool is_implied = json_is_true(field_of(m, "implied_symbol"));
  func->attrs = is_implied ? attrs_without(m->arena, attrs, "global_symbol") : attrs;
  func->result = result;
  func->is_newer = json_is_true(field_of(m, "is_newer"));
  return func;
}

// ---- Nodes --------------------------------------------------------------------------------------

typedef struct Maker {
  const char *type;
  MadeKind kind;
  void *(*make)(NodesMaking *m);
  Stmt *(*make_stmt)(NodesMaking *m);
  Expr *(*make_expr)(NodesMaking *m);
} Maker;

static const Maker makers[] = {
    {"Var", MADE_EXPR, .make_expr = variable_of},
    {"IntImm", MADE_EXPR, .make_expr = number_of},
    {"FloatImm", MADE_EXPR, .make_expr = number_of},
    {"StringImm", MADE_EXPR, .make_expr = string_of},
    {"BufferLoad", MADE_EXPR, .make_expr = load_of},
    {"Call", MADE_EXPR, .make_expr = call_of},
    {"Buffer", MADE_BUFFER, .make = buffer_of},
    {"Range", MADE_RANGE, .make = range_of},
    {"BufferRegion", MADE_REGION, .make = region_of},
    {"MatchBufferRegion", MADE_MATCH, .make = match_of},
    {"IterVar", MADE_ITER, .make = iter_of},
    {"Block", MADE_BLOCK, .make = block_of},
    {"BlockRealize", MADE_STMT, .make_stmt = realize_of},
    {"BufferStore", MADE_STMT, .make_stmt = store_of},
    {"SeqStmt", MADE_STMT, .make_stmt = seq_of},
    {"Allocate", MADE_STMT, .make_stmt = allocate_of},
    {"AllocateConst", MADE_STMT, .make_stmt = allocate_const_of},
    {"AttrStmt", MADE_STMT, .make_stmt = attr_of},
    {"PrimFunc", MADE_FUNC, .make = function_of},
};

static void *stmt_field_of(NodesMaking *m, const StmtField *field) {
  switch (field->kind) {
  case FIELD_VARIABLE: return get_variable(m, field->name);
  case FIELD_EXPR: return get(m, field->name, MADE_EXPR);
  case FIELD_ATTRIBUTE: return get_attribute(m, field->name, field_of(m, field->name));
  case FIELD_BUFFER: return get(m, field->name, MADE_BUFFER);
  case FIELD_BODY: return get(m, field->name, MADE_STMT);
  case FIELD_OPTIONAL_BODY: return get_optional(m, field->name, MADE_STMT);
  }
  return NULL;
}

static Stmt *stmt_row_of(NodesMaking *m, StmtKind kind) {
  Stmt *s = new_stmt(m, kind);
  const StmtField *fields = stmt_rows[kind].fields;
  for (int i = 0; i < 3 && fields[i].name; i++) {
    void *object = stmt_field_of(m, &fields[i]);
    memcpy((char *)s + fields[i].offset, &object, sizeof object);
  }
  return s;
}

static ExprOp row_named(const char *type) {
  for (int op = 0; op < EXPR_OP_COUNT; op++)
    if (expr_rows[op].kind && strcmp(expr_rows[op].kind, type) == 0) return (ExprOp)op;
  return EXPR_OP_COUNT;
}

static Made make_by(NodesMaking *m, const Maker *maker) {
  void *object = maker->make        ? maker->make(m)
                 : maker->make_stmt ? (void *)maker->make_stmt(m)
                                    : (void *)maker->make_expr(m);
  return (Made){maker->kind, m->failed ? NULL : object};
}

static Made make_any(NodesMaking *m, const json_t *nodes) {
  Stmt *s = strcmp(m->type, "For") == 0        ? for_of(m, nodes)
            : strcmp(m->type, "AttrStmt") == 0 ? launch_of(m, nodes)
                                               : NULL;
  for (int kind = 0; kind <= STMT_ATTR && !s; kind++)
    if (stmt_rows[kind].kind && strcmp(stmt_rows[kind].kind, m->type) == 0)
      s = stmt_row_of(m, (StmtKind)kind);
  if (s || m->failed) return (Made){MADE_STMT, m->failed ? NULL : s};
  for (int i = 0; i < COUNT_OF(makers); i++)
    if (strcmp(makers[i].type, m->type) == 0) return make_by(m, &makers[i]);
  ExprOp op = row_named(m->type);
  if (op == EXPR_OP_COUNT) wrong(m, "type", "is not the type of a node that can be made");
  Expr *e = m->failed ? NULL : row_of(m, op);
  return (Made){MADE_EXPR, m->failed ? NULL : e};
}

// A variable or buffer that another table has under the same key is that one.
static Made make_node(NodesMaking *m, const json_t *nodes) {
  m->failed = false;
  m->type = json_string_value(json_object_get(m->record, "type"));
  if (!m->type) m->type = "?";
  const json_t *field = m->keys ? field_of(m, "key") : NULL;
  if (!json_is_integer(field)) return make_any(m, nodes);
  int64_t key = json_integer_value(field);
  MadeKind kind = strcmp(m->type, "Buffer") == 0 ? MADE_BUFFER : MADE_EXPR;
  void *known = map_get(&m->keys->objects, (uint64_t)key);
  if (known) return (Made){kind, known};
  Made made = make_any(m, nodes);
  if (!made.object) return made;
  map_set(&m->keys->objects, (uint64_t)key, made.object);
  map_put(&m->keys->keys, made.object, (intptr_t)(key + 1));
  return made;
}

// ---- Tables -------------------------------------------------------------------------------------

NodesMaking *nodes_read(Context *context, const json_t *nodes, NodeKeys *keys) {
  NodesMaking *m = arena_new(&context->arena, NodesMaking);
  *m = (NodesMaking){.context = context, .arena = &context->arena, .keys = keys};
  m->made = arena_array(m->arena, Made, (int)json_array_size(nodes));
  for (m->at = 0; m->at < (int)json_array_size(nodes); m->at++) {
    m->record = json_array_get(nodes, (size_t)m->at);
    m->made[m->at] = make_node(m, nodes);
  }
  m->type = "the table";
  m->failed = false;
  return m;
}

Expr *nodes_expr(NodesMaking *making, const char *field, const json_t *reference) {
  return object_of(making, field, reference, MADE_EXPR, false);
}

typedef struct NodesMakeCall {
  ModuleCall call;
  const char *json;
  json_t *object;
  char *text;
} NodesMakeCall;

// Reads the table of a call. NULL with a diagnostic.
static NodesMaking *nodes_of_call(NodesMakeCall *call) {
  Context *context = call->call.context;
  json_error_t error;
  call->object = json_loads(call->json, 0, &error);
  const json_t *nodes = json_object_get(call->object, "nodes");
  if (!json_is_array(nodes)) {
    field_error(context, "json", "line %d: %s", error.line,
                call->object ? "there are no nodes" : error.text);
    return NULL;
  }
  NodesMaking *m = nodes_read(context, nodes, NULL);
  return context->error_count ? NULL : m;
}

// ---- Text ---------------------------------------------------------------------------------------

static void print_made(NodesMaking *m, const Made *made, Text *out) {
  switch (made->kind) {
  case MADE_EXPR: text_puts(out, script_expr_text(m->context, made->object)); return;
  case MADE_BUFFER: text_puts(out, script_buffer_text(m->context, made->object)); return;
  case MADE_STMT: script_print_stmt(m->context, made->object, out, NULL); return;
  case MADE_FUNC: script_print_prim_func(m->context, made->object, out, NULL); return;
  case MADE_BLOCK:
  case MADE_RANGE:
  case MADE_REGION:
  case MADE_MATCH:
  case MADE_ITER: break;
  }
  wrong(m, "node", "has no text of its own");
}

static void print_node(void *arg) {
  NodesMakeCall *call = arg;
  Context *context = call->call.context;
  NodesMaking *m = nodes_of_call(call);
  if (!m) return;
  Text text = text_new(&context->scratch);
  if (m->at && m->made[m->at - 1].object) print_made(m, &m->made[m->at - 1], &text);
  if (!context->error_count) call->text = module_owned_text(context, &text);
  call->call.done = call->text != NULL;
}

int pleat_node_print(const char *json, char **text, PleatMessages **messages) {
  if (!text) return messages_refuse("text", "is NULL, expected where to store it", messages);
  *text = NULL;
  if (!json) return messages_refuse("json", "is NULL, expected nodes", messages);
  NodesMakeCall call = {.call = {.body = print_node}, .json = json};
  PleatModule *none;
  int status = module_call_run_new(&call, &none, messages);
  json_decref(call.object);
  *text = call.text;
  return status;
}

// ---- Modules ------------------------------------------------------------------------------------

static bool add_functions(NodesMaking *m, const json_t *functions, Module *module) {
  const char *name;
  json_t *reference;
  m->type = "the module";
  json_object_foreach((json_t *)functions, name, reference) {
    m->failed = false;
    PrimFunc *func = object_of(m, "functions", reference, MADE_FUNC, false);
    if (func) func->body = lower_with_own_variables(m->context, func);
    if (func) func->body = blocks_find_regions(m->context, func->body);
    if (!func || !verify_prim_func(m->context, func, IR_LEVEL_TENSOR)) return false;
    module_add_prim(module, func);
  }
  return true;
}

static Module *checked_again(Context *context, const Module *made) {
  ContentsList contents = {.arena = &context->arena};
  Text text = module_text_with(context, made, &contents);
  Module *read = module_read(context, text.data, text.size, &contents);
  IrDifference difference;
  for (int i = 0; read && i < read->funcs.count; i++)
    read->funcs.items[i].prim->is_newer = made->funcs.items[i].prim->is_newer;
  if (!read || module_equal(context, made, read, &difference)) return read;
  field_error(context, "json", "the nodes have no spelling in TVMScript: %s", difference.what);
  return NULL;
}

static void make(void *arg) {
  NodesMakeCall *call = arg;
  Context *context = call->call.context;
  NodesMaking *m = nodes_of_call(call);
  if (!m) return;
  Module *made = module_new(context, "");
  bool done = add_functions(m, json_object_get(call->object, "functions"), made);
  call->call.result = done ? checked_again(context, made) : NULL;
  call->call.done = call->call.result != NULL;
}

int pleat_module_make(const char *json, PleatModule **module, PleatMessages **messages) {
  if (module) *module = NULL;
  if (!json) return messages_refuse("json", "is NULL, expected nodes", messages);
  NodesMakeCall call = {.call = {.body = make}, .json = json};
  int status = module_call_run_new(&call, module, messages);
  json_decref(call.object);
  return status;
}
