// SPDX-License-Identifier: Apache-2.0
// Reads statements with a scope, in both spellings: `with T.attr(…):` with an indented suite; and
// as a statement or assignment whose scope is the rest of the suite.
#include "script/parse_stmt.h"

Stmt *stmt_assert(Parser *parser, Expr *condition, Expr *message, Stmt *body) {
  Stmt *s = arena_new(&parser->context->arena, Stmt);
  s->kind = STMT_ASSERT;
  s->as.check.condition = condition;
  s->as.check.message = message;
  s->as.check.body = body;
  return s;
}

// The statement of a scope, and the address of its body. `target` may be NULL.
typedef struct Scope {
  Stmt *stmt, **hole;
} Scope;

// ---- T.attr

// T.attr({"key": value, …}): an attribute for each key.
static Scope short_attr_scope(Parser *parser, const PyNode *entries) {
  Scope scope = {0};
  for (int i = 0; i < entries->count; i += 2) {
    Str key = parse_string(parser, entries->items[i], "the key");
    Expr *value = parse_attribute_value(parser, entries->items[i + 1]);
    if (!key || !value) return (Scope){0};
    Stmt *s = stmt_attr(parser->context, key, NULL, value, NULL);
    s->pos = entries->pos;
    if (scope.stmt)
      *scope.hole = s;
    else
      scope.stmt = s;
    scope.hole = &s->as.attr.body;
  }
  if (!scope.stmt) REPORT(parser, entries, "expected a key and its value");
  return scope;
}

// Starts threads, with this variable in their scope, which `name` stands for there.
static Scope launch_var(Parser *parser, Str name, Expr *var, Str thread, Expr *extent) {
  Context *context = parser->context;
  DType type = var->type;
  Binding *binding = parser_bind(parser, name, BOUND_EXPR);
  binding->expr = var;
  binding->min = expr_int(context, type, 0);
  binding->extent = expr_cast(context, type, extent);
  Stmt *s = stmt_for(context, binding->expr, binding->min, binding->extent, LOOP_THREAD, NULL);
  s->as.loop.thread = thread;
  s->as.loop.is_launch = true;
  return (Scope){s, &s->as.loop.body};
}

// Starts threads, with a variable of this name in their scope.
static Scope launch(Parser *parser, Str name, DType type, Str thread, Expr *extent) {
  return launch_var(parser, name, expr_var(parser->context, name, type), thread, extent);
}

// The text of v in T.iter_var(v, …).
static const PyNode *axis_text(const PyNode *node) {
  const PyNode *text = node->kind == PY_CALL && node->count > 1 ? node->items[1] : NULL;
  return text && text->kind == PY_KEYWORD ? text->items[0] : text;
}

// The variable of T.iter_var(v, …), in the text of the node, if it is free, so that an attribute
// may start threads with it. Otherwise NULL.
static Binding *free_axis(Parser *parser, const PyNode *node, const Expr *var) {
  const PyNode *name = axis_text(node);
  Binding *binding = name && name->kind == PY_NAME ? parser_find(parser, name->text) : NULL;
  bool is_it = binding && binding->kind == BOUND_EXPR && binding->expr == var;
  return is_it && !binding->min && !binding->is_param ? binding : NULL;
}

// T.attr(T.iter_var(v, None, "ThreadIndex", "threadIdx.x"), "thread_extent", 4) starts threads, as
// T.launch_thread does. No statement for other attributes.
static Scope thread_scope(Parser *parser, const PyNode *text, Str key, const Expr *node,
                          Expr *value) {
  const Expr *var = expr_iter_var(node);
  bool starts = !strcmp(key, "thread_extent") || !strcmp(key, "virtual_thread");
  if (!starts || !var || node->count < 4 || node->args[3]->op != EXPR_STRING) return (Scope){0};
  Str thread = str_intern(parser->context, node->args[3]->as.s);
  bool fits = !thread_axis_fault(parser->context, thread) && dtype_is_int(var->type) &&
              dtype_is_int(value->type);
  if (!fits) return (Scope){0};
  Binding *binding = free_axis(parser, text, var);
  if (binding) return launch(parser, binding->name, var->type, thread, value);
  Expr *own = expr_var(parser->context, var->as.var->name, var->type);
  Str name = parser_set_captured(parser, axis_text(text), var, own);
  return name ? launch_var(parser, name, own, thread, value) : (Scope){0};
}

static Scope attr_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  (void)target;
  PyNode *args[3];
  if (call->count == 2 && call->items[1]->kind == PY_DICT)
    return short_attr_scope(parser, call->items[1]);
  if (!py_arguments(parser->context, call, "node? attr_key value", args, NULL)) return (Scope){0};
  Str key = parse_string(parser, args[1], "the key");
  Expr *value = parse_attribute_value(parser, args[2]);
  Expr *node = args[0] ? parse_attribute_value(parser, args[0]) : NULL;
  if (!key || !value || (args[0] && !node)) return (Scope){0};
  Scope threads = node ? thread_scope(parser, args[0], key, node, value) : (Scope){0};
  if (threads.stmt) return threads;
  Stmt *s = stmt_attr(parser->context, key, node, value, NULL);
  return (Scope){s, &s->as.attr.body};
}

// Rejects the arguments of an allocation that TVM has and Pleat does not support.
static bool check_plain(Parser *parser, const PyNode *condition, const PyNode *annotations) {
  if (condition && (condition->kind != PY_BOOL || !condition->i))
    return REPORT(parser, condition, "an allocation under a condition is not supported");
  if (annotations && (annotations->kind != PY_DICT || annotations->count))
    return REPORT(parser, annotations, "annotations of a constant are not supported");
  return true;
}

// T.hint("message", key=value, …)
static Scope hint_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  (void)target;
  Context *context = parser->context;
  Expr **items = arena_array(parser->arena, Expr *, 2 * call->count);
  int count = 0;
  for (int i = 1; i < call->count; i++) {
    const PyNode *item = call->items[i];
    bool is_keyword = item->kind == PY_KEYWORD;
    if (!is_keyword && (i > 1 || !parse_string(parser, item, "a message"))) {
      if (i > 1) REPORT(parser, item, "expected a keyword argument");
      return (Scope){0};
    }
    bool is_empty = !is_keyword && !*item->text; // as if there were none
    if (is_empty) continue;
    items[count++] = expr_string(context, is_keyword ? item->text : "message");
    Expr *value = parse_attribute_value(parser, is_keyword ? item->items[0] : item);
    if (!value) return (Scope){0};
    items[count++] = value;
  }
  Expr *hints = expr_raw(context, EXPR_DICT, DTYPE_VOID, NULL, items, count);
  Stmt *s = stmt_attr(context, "tirx_hint", hints, expr_int(context, DTYPE_INT32, 1), NULL);
  return (Scope){s, &s->as.attr.body};
}

// T.realize(A[0:16, 0:4], "global"), of classic TVM: these elements of A are accessed. A has its
// memory from where it is declared.
static Scope realize_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  (void)target;
  PyNode *args[3];
  Str scope = "";
  if (!py_arguments(parser->context, call, "buffer_slice storage_scope? condition?", args, NULL))
    return (Scope){0};
  if (args[1] && !(scope = parse_string(parser, args[1], "a scope"))) return (Scope){0};
  if (!check_plain(parser, args[2], NULL)) return (Scope){0};
  Expr *region = parse_region_operand(parser, args[0]);
  if (!region) return (Scope){0};
  Stmt *s = stmt_attr(parser->context, "realize_scope", region, expr_string(parser->context, scope),
                      NULL);
  return (Scope){s, &s->as.attr.body};
}

// ---- T.LetStmt, T.let, T.bind

// The scope of a value that a name stands for; a variable that exists already is defined by it.
static Scope let_of(Parser *parser, const PyNode *name, Expr *value, bool is_known) {
  Binding *known = is_known ? parser_find(parser, name->text) : NULL;
  Expr *var = known && known->kind == BOUND_EXPR && known->expr->op == EXPR_VAR
                  ? known->expr
                  : expr_var(parser->context, name->text, value->type);
  parser_bind_expr(parser, name->text, var);
  Stmt *s = stmt_let(parser->context, var, value, NULL);
  return (Scope){s, &s->as.let.body};
}

// A has the memory to which a pointer points.
static Scope memory_of(Parser *parser, Buffer *buffer, Expr *pointer) {
  Stmt *declare = stmt_declare(parser->context, buffer, NULL);
  Stmt *s = stmt_let(parser->context, buffer->data, pointer, declare);
  return (Scope){s, &declare->as.declare.body};
}

// T.LetStmt(pointer, var=A.data): A, which was declared before, has this memory from here on.
static Scope let_memory(Parser *parser, const PyNode *stated, const PyNode *name) {
  Buffer *buffer = parse_buffer_name(parser, name);
  Expr *value = buffer ? parse_value(parser, stated) : NULL;
  return value ? memory_of(parser, buffer, value) : (Scope){0};
}

static bool is_memory(const PyNode *node) {
  return node && node->kind == PY_ATTRIBUTE && !strcmp(node->text, "data");
}

static Scope let_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "value var?", args, NULL)) return (Scope){0};
  if (is_memory(args[1])) return let_memory(parser, args[0], args[1]->items[0]);
  const PyNode *name = args[1] && args[1]->kind == PY_NAME ? args[1] : target;
  Expr *value = parse_value(parser, args[0]);
  if (!value) return (Scope){0};
  if (name && name->kind == PY_NAME) return let_of(parser, name, value, name != target);
  REPORT(parser, call, "expected `as` and a name");
  return (Scope){0};
}

// T.let(x, value)
static Scope classic_let_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  (void)target;
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "var value", args, NULL)) return (Scope){0};
  if (is_memory(args[0])) return let_memory(parser, args[1], args[0]->items[0]);
  Expr *value = parse_value(parser, args[1]);
  if (!value) return (Scope){0};
  if (args[0]->kind == PY_NAME) return let_of(parser, args[0], value, true);
  REPORT(parser, args[0], "expected the name of a variable");
  return (Scope){0};
}

// x = T.bind(value), x = T.bind(value, T.int32), T.bind(value, var=x)
static Scope bind_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  PyNode *args[3];
  DType type = DTYPE_VOID;
  if (!py_arguments(parser->context, call, "value type_annotation? var?", args, NULL))
    return (Scope){0};
  const PyNode *name = args[2] ? args[2] : target;
  if (!name || name->kind != PY_NAME) {
    REPORT(parser, call, "expected a name for the value, as in x = T.bind(1)");
    return (Scope){0};
  }
  if (args[1] && !parse_dtype(parser, args[1], &type)) return (Scope){0};
  Expr *value = parse_stated_value(parser, args[0], type);
  return value ? let_of(parser, name, value, args[2] != NULL) : (Scope){0};
}

// ---- T.Assert

static Scope assert_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  (void)target;
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "condition message", args, NULL)) return (Scope){0};
  Expr *condition = parse_condition(parser, args[0]), *message = parse_value(parser, args[1]);
  if (!condition || !message) return (Scope){0};
  Stmt *s = stmt_assert(parser, condition, message, NULL);
  return (Scope){s, &s->as.check.body};
}

// ---- Storage

static bool has_name(Parser *parser, const PyNode *call, const PyNode *target) {
  if (target && target->kind == PY_NAME) return true;
  return REPORT(parser, call, "expected a name for this");
}

// RFC 63 also writes the memory first: T.buffer_decl(X.data, [6], "float32").
static const PyNode *memory_last(Parser *parser, const PyNode *call) {
  if (!py_is_memory_first(call)) return call;
  PyNode *keyword = arena_new(parser->arena, PyNode), *turned = arena_new(parser->arena, PyNode);
  *keyword = *call->items[1];
  keyword->kind = PY_KEYWORD;
  keyword->items = arena_copy(parser->arena, &call->items[1], sizeof *call->items);
  keyword->count = 1;
  *turned = *call;
  turned->items = arena_copy(parser->arena, call->items, sizeof *call->items * (size_t)call->count);
  for (int i = 1; i + 1 < call->count; i++) turned->items[i] = call->items[i + 1];
  turned->items[call->count - 1] = keyword;
  return turned;
}

static Scope decl_buffer_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  if (!has_name(parser, call, target)) return (Scope){0};
  call = memory_last(parser, call);
  Expr *pointer = NULL;
  parser->pointer = &pointer;
  Buffer *buffer = parse_buffer(parser, call, target->text, NULL);
  parser->pointer = NULL;
  if (!buffer) return (Scope){0};
  parser_bind_buffer(parser, target->text, buffer);
  if (pointer) return memory_of(parser, buffer, pointer);
  bool is_alias = false;
  for (int i = 1; i < call->count; i++) {
    bool is_keyword = call->items[i]->kind == PY_KEYWORD;
    is_alias |= is_keyword ? !strcmp(call->items[i]->text, "data") : i == 3;
  }
  bool is_let = !is_alias && map_find(&parser->let_data, target->text);
  is_alias |= is_let;
  Stmt *s = is_alias ? stmt_declare(parser->context, buffer, NULL)
                     : stmt_allocate(parser->context, buffer, NULL);
  if (is_let) map_put(&parser->let_declared, s, buffer);
  Stmt *declare = is_alias ? s : s->as.allocate.body;
  declare->pos = call->pos;
  return (Scope){s, &declare->as.declare.body};
}

// T.alloc_buffer(shape, dtype), T.alloc_local(…), T.alloc_shared(…) as statements.
static Scope alloc_scope(Parser *parser, const PyNode *call, const PyNode *target,
                         const char *scope) {
  if (!has_name(parser, call, target) || !parse_hides_no_parameter(parser, target))
    return (Scope){0};
  const PyNode *last = call->items[call->count - 1];
  bool is_annotated = last->kind == PY_KEYWORD && !strcmp(last->text, "annotations");
  PyNode plain = *call;
  plain.count -= is_annotated;
  Attrs annotations = {0};
  Buffer *buffer = parse_buffer(parser, &plain, target->text, NULL);
  if (!buffer || (is_annotated && !parse_attributes(parser, last->items[0], &annotations)))
    return (Scope){0};
  if (scope) buffer->scope = buffer->data->as.var->scope = str_intern(parser->context, scope);
  parser_bind_buffer(parser, target->text, buffer);
  Stmt *s = stmt_allocate(parser->context, buffer, NULL);
  s->as.allocate.annotations = annotations;
  s->as.allocate.body->pos = call->pos;
  return (Scope){s, &s->as.allocate.body->as.declare.body};
}

static Scope alloc_buffer_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  return alloc_scope(parser, call, target, NULL);
}

static Scope alloc_local_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  return alloc_scope(parser, call, target, "local");
}

static Scope alloc_shared_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  return alloc_scope(parser, call, target, "shared");
}

// Declares the buffer of an allocation in older programs: the flat one that T.load and T.store
// access, or, where the name itself has indices, as in TVM 0.9, one with the extents of the
// allocation. Returns where the rest of the scope goes.
static Stmt **declare_memory(Parser *parser, Str name, Expr *data, DType type, Expr *const *extents,
                             int rank, Stmt **hole) {
  Context *context = parser->context;
  bool is_indexed = !parser->uses_pointers && map_find(&parser->indexed, name);
  if (!is_indexed && !parser->uses_pointers) return hole;
  Buffer *buffer = is_indexed ? buffer_new(context, name, type, extents, rank, data->as.var->scope)
                              : parse_flat(parser, name, data, type, extents, rank);
  buffer->data = data;
  parser_bind_buffer(parser, is_indexed ? name : str_format(context, "%s.flat", name), buffer);
  *hole = stmt_declare(context, buffer, NULL);
  return &(*hole)->as.declare.body;
}

static Scope allocate_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  PyNode *args[5];
  DType type;
  Str scope = "global";
  Stmt *s = arena_new(&parser->context->arena, Stmt);
  s->kind = STMT_ALLOCATE;
  if (!has_name(parser, call, target)) return (Scope){0};
  if (!py_arguments(parser->context, call, "extents dtype scope? condition? annotations?", args,
                    NULL))
    return (Scope){0};
  if (!parse_extents(parser, args[0], &s->as.allocate.extents, &s->as.allocate.rank) ||
      !parse_dtype(parser, args[1], &type))
    return (Scope){0};
  if (args[2] && !(scope = parse_string(parser, args[2], "a scope"))) return (Scope){0};
  if (!check_plain(parser, args[3], NULL)) return (Scope){0};
  if (args[4] && !parse_attributes(parser, args[4], &s->as.allocate.annotations)) return (Scope){0};
  s->as.allocate.type = type;
  s->as.allocate.var = expr_data_var(parser->context, target->text, dtype_lanes(type, 1), scope);
  parser_bind_expr(parser, target->text, s->as.allocate.var);
  Stmt **hole = &s->as.allocate.body;
  hole = declare_memory(parser, target->text, s->as.allocate.var,
                        parser->uses_pointers ? dtype_lanes(type, 1) : type, s->as.allocate.extents,
                        s->as.allocate.rank, hole);
  return (Scope){s, hole};
}

static Scope allocate_const_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  PyNode *args[4];
  if (!has_name(parser, call, target)) return (Scope){0};
  if (!py_arguments(parser->context, call, "data dtype extents annotations?", args, NULL))
    return (Scope){0};
  if (!check_plain(parser, NULL, args[3])) return (Scope){0};
  ConstData *data = parse_const_data(parser, args[0], args[1], args[2]);
  if (!data) return (Scope){0};
  data->name = target->text;
  Stmt *s = arena_new(&parser->context->arena, Stmt);
  s->kind = STMT_ALLOCATE_CONST;
  s->as.allocate_const.data = data;
  s->as.allocate_const.var = expr_data_var(parser->context, target->text, data->type, "global");
  parser_bind_expr(parser, target->text, s->as.allocate_const.var);
  Stmt **hole = &s->as.allocate_const.body;
  Expr **extents = arena_array(parser->arena, Expr *, data->rank);
  for (int i = 0; i < data->rank; i++) extents[i] = expr_index(parser->context, data->shape[i]);
  hole = declare_memory(parser, target->text, s->as.allocate_const.var, data->type, extents,
                        data->rank, hole);
  return (Scope){s, hole};
}

// tx = T.launch_thread("threadIdx.x", 128), or T.launch_thread(tx, 128) after T.env_thread
static Scope launch_thread_scope(Parser *parser, const PyNode *call, const PyNode *target) {
  PyNode *args[2];
  if (!py_arguments(parser->context, call, "thread extent", args, NULL)) return (Scope){0};
  Expr *extent = parse_value(parser, args[1]);
  Binding *known = args[0]->kind == PY_NAME ? parser_lookup(parser, args[0]) : NULL;
  bool is_unknown = args[0]->kind == PY_NAME && (!known || known->kind == BOUND_NOTHING);
  if (!extent || is_unknown) return (Scope){0};
  if (known && known->thread)
    return launch(parser, known->name, known->expr->type, known->thread, extent);
  Str thread = parse_thread_axis(parser, args[0]);
  if (!thread || !has_name(parser, call, target)) return (Scope){0};
  return launch(parser, target->text, extent->type, thread, extent);
}

typedef struct ScopeRule {
  const char *name;
  Scope (*make)(Parser *parser, const PyNode *call, const PyNode *target);
} ScopeRule;

static const ScopeRule scope_rules[] = {
    {"attr", attr_scope},
    {"hint", hint_scope},
    {"realize", realize_scope},
    {"LetStmt", let_scope},
    {"let", classic_let_scope},
    {"bind", bind_scope},
    {"Bind", bind_scope},
    {"Assert", assert_scope},
    {"decl_buffer", decl_buffer_scope},
    {"buffer_decl", decl_buffer_scope},
    {"Buffer", decl_buffer_scope},
    {"alloc_buffer", alloc_buffer_scope},
    {"alloc_local", alloc_local_scope},
    {"alloc_shared", alloc_shared_scope},
    {"allocate", allocate_scope},
    {"allocate_const", allocate_const_scope},
    {"launch_thread", launch_thread_scope},
};

static const ScopeRule *scope_rule(Str member) {
  for (int i = 0; i < COUNT_OF(scope_rules); i++)
    if (!strcmp(scope_rules[i].name, member)) return &scope_rules[i];
  return NULL;
}

// ---- Other calls that are statements

static void evaluate(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {
  PyNode *args[1];
  if (!py_arguments(parser->context, call, "value", args, NULL)) return;
  Expr *e = parse_value(parser, args[0]);
  if (e) sequence_add(parser, sequence, node, stmt_evaluate(parser->context, e));
}

typedef struct NamedBuffers {
  Parser *parser;
  const PyNode *node;
} NamedBuffers;

static bool refuse_local_buffer(Visitor *visitor, Expr *e) {
  const NamedBuffers *named = visitor->env;
  if (e->op != EXPR_LOAD) return true;
  for (int i = 0; i < named->parser->matched.count; i++)
    if (named->parser->matched.items[i] == e->as.buffer) return true;
  REPORT(named->parser, named->node,
         "buffer '%s' is no parameter, and only parameters can be values of an attribute of the "
         "function",
         e->as.buffer->name);
  return false;
}

// The attributes are written before the statements of the body, and so cannot name what these make.
static void check_func_attrs(Parser *parser, const PyNode *node) {
  NamedBuffers named = {parser, node};
  Visitor visitor = {.env = &named, .enter_expr = refuse_local_buffer};
  for (int i = 0; i < parser->func_attrs.count; i++)
    visit_expr(&visitor, parser->func_attrs.items[i].value);
}

static void func_attr(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {
  (void)sequence, (void)node;
  PyNode *args[1];
  if (!py_arguments(parser->context, call, "attrs", args, NULL)) return;
  parse_attributes(parser, args[0], &parser->func_attrs);
  check_func_attrs(parser, args[0]);
}

// T.buffer_store(A, value, [i, j])
static void buffer_store(Parser *parser, Sequence *sequence, const PyNode *node,
                         const PyNode *call) {
  PyNode *args[3];
  if (!py_arguments(parser->context, call, "buffer value indices", args, NULL)) return;
  Buffer *buffer = parse_buffer_name(parser, args[0]);
  Operand value = parse_operand(parser, args[1]);
  if (!buffer || !value.e) return;
  PyNode access = *args[2];
  PyNode **items = arena_array(parser->arena, PyNode *, access.count + 1);
  items[0] = args[0];
  memcpy(items + 1, access.items, sizeof *items * (size_t)access.count);
  access.items = items;
  access.count++;
  Expr **indices = parse_indices(parser, &access, buffer);
  if (indices)
    sequence_add(parser, sequence, node, parse_store(parser, args[1], buffer, indices, value));
}

// T.store(A.data, index, value)
static void store(Parser *parser, Sequence *sequence, const PyNode *node, const PyNode *call) {
  PyNode *args[4];
  if (!py_arguments(parser->context, call, "var index value predicate?", args, NULL)) return;
  Buffer *buffer = parse_pointer(parser, args[0], DTYPE_VOID);
  Expr *index = parse_value(parser, args[1]);
  Operand value = parse_operand(parser, args[2]);
  if (!buffer || !index || !value.e || !parse_no_predicate(parser, args[3])) return;
  if (dtype_is_int(index->type))
    sequence_add(parser, sequence, node, parse_store(parser, args[2], buffer, &index, value));
  else
    REPORT(parser, args[1], "an index must be an integer, saw %s",
           parser_type_name(parser, index->type));
}

// T.preflattened_buffer(A, [4, 8], data=A.data): the caller's buffer has these axes, and A is a
// view of it.
static void preflattened(Parser *parser, Sequence *sequence, const PyNode *node,
                         const PyNode *call) {
  bool has_name = call->count > 1 && call->items[1]->kind == PY_NAME;
  Buffer *view = has_name ? parse_buffer_name(parser, call->items[1]) : NULL;
  int index = -1;
  for (int i = 0; view && i < parser->matched.count; i++)
    if (parser->matched.items[i] == view) index = i;
  if (index < 0) {
    if (view || !has_name) REPORT(parser, call, "expected the buffer of a parameter");
    return;
  }
  PyNode *source = NULL;
  Buffer *whole = parse_buffer(parser, call, view->name, &source);
  if (!whole) return;
  whole->data = view->data;
  parser->matched.items[index] = whole;
  Stmt *s = stmt_declare(parser->context, view, NULL);
  sequence_open(parser, sequence, node, s, &s->as.declare.body);
}

static const StatementCall other_statements[] = {
    {"store", store},         {"preflattened_buffer", preflattened}, {"evaluate", evaluate},
    {"func_attr", func_attr}, {"buffer_store", buffer_store},        {NULL},
};

static const StatementCall *find_call(const StatementCall *table, Str member) {
  for (; table->name; table++)
    if (!strcmp(table->name, member)) return table;
  return NULL;
}

bool parse_statement_call(Parser *parser, Sequence *sequence, const PyNode *node, Str member) {
  const PyNode *call = node->items[0];
  const StatementCall *row = find_call(block_statements, member);
  if (!row) row = find_call(other_statements, member);
  const ScopeRule *scope = scope_rule(member);
  if (row) row->parse(parser, sequence, node, call);
  if (row || !scope) return row != NULL;
  Scope made = scope->make(parser, call, NULL);
  if (made.stmt) sequence_open(parser, sequence, node, made.stmt, made.hole);
  return true;
}

bool parse_assigned_call(Parser *parser, Sequence *sequence, const PyNode *node, Str member) {
  const PyNode *target = node->items[0], *call = node->items[1];
  const StatementCall *row = find_call(block_assignments, member);
  const ScopeRule *scope = scope_rule(member);
  bool in_heading = parser->block && !parser->statement_allocs;
  if (row && scope && !in_heading) row = NULL; // T.alloc_buffer outside of a block's heading
  if (row) row->parse(parser, sequence, node, call);
  if (row || !scope) return row != NULL;
  Scope made = scope->make(parser, call, target);
  if (made.stmt)
    sequence_open(parser, sequence, node, made.stmt, made.hole);
  else
    parser_bind_nothing(parser, target);
  return true;
}

// ---- with

static bool is_block_name(Str member) {
  return !strcmp(member, "block") || !strcmp(member, "sblock");
}

static void with_items(Parser *parser, Sequence *sequence, const PyNode *node, int at);

static Stmt *with_rest(Parser *parser, const PyNode *node, int at) {
  Sequence inner = {0};
  const PyNode *suite = node->items[node->count - 1];
  if (at + 1 == node->count) return parse_suite(parser, suite);
  with_items(parser, &inner, node, at);
  return stmt_seq(parser->context, inner.items.items, inner.items.count);
}

static void with_scope(Parser *parser, Sequence *sequence, const PyNode *node, int at,
                       const ScopeRule *rule) {
  int mark = parser_mark(parser);
  const PyNode *target = node->items[at + 1];
  Scope made = rule->make(parser, node->items[at], target);
  if (!made.stmt) parser_bind_nothing(parser, target);
  Stmt *body = with_rest(parser, node, at + 2);
  parser_reset(parser, mark);
  if (!made.stmt) return;
  *made.hole = body;
  sequence_add(parser, sequence, node, made.stmt);
}

// T.block and T.init give nothing that a name could stand for.
static void check_no_target(Parser *parser, Str member, const PyNode *call, const PyNode *target) {
  bool is_older = call->count > 1 && call->items[1]->kind == PY_LIST; // parse_block reports it
  if (!target || is_older) return;
  REPORT(parser, target,
         "T.%s gives nothing to name\n"
         "a block defines its variables by statements, vi = T.axis.spatial(EXTENT, BINDING)",
         member);
  parser_bind_nothing(parser, target);
}

static void with_items(Parser *parser, Sequence *sequence, const PyNode *node, int at) {
  const PyNode *call = node->items[at], *suite = node->items[node->count - 1];
  Str member = parser_called(parser, call, DIALECT_TIR);
  const ScopeRule *rule = member ? scope_rule(member) : NULL;
  bool is_last = at + 3 == node->count;
  if (member && is_last && parse_is_scope(member))
    check_no_target(parser, member, call, node->items[at + 1]);
  if (rule) {
    with_scope(parser, sequence, node, at, rule);
  } else if (member && is_last && is_block_name(member)) {
    parse_block(parser, sequence, node, call, suite);
  } else if (member && is_last && !strcmp(member, "init")) {
    parse_init(parser, node, suite);
  } else {
    static const char *const names[] = {"block",    "init",        "LetStmt",        "attr",
                                        "allocate", "decl_buffer", "allocate_const", "Assert"};
    REPORT(parser, call, "expected a scope such as T.block(\"name\")%s",
           member ? parser_suggestion(parser, member, names, COUNT_OF(names)) : "");
    parser_bind_nothing(parser, node->items[at + 1]);
    parse_suite(parser, suite);
  }
}

bool parse_is_scope(const char *member) {
  return is_block_name((Str)member) || !strcmp(member, "init");
}

void parse_with(Parser *parser, Sequence *sequence, const PyNode *node) {
  with_items(parser, sequence, node, 0);
}
