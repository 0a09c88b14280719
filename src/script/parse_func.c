// SPDX-License-Identifier: Apache-2.0
// Reads tensor programs: functions under @T.prim_func.
#include "arith/arith.h"
#include "script/parse_stmt.h"

// ---- Parameters

static Expr *handle_param(Parser *parser, const PyNode *call, Str name) {
  PyNode *args[2];
  DType type;
  Str scope = "global";
  if (!py_arguments(parser->context, call, "dtype? storage_scope?", args, NULL)) return NULL;
  if (!args[0]) return expr_var(parser->context, name, DTYPE_HANDLE);
  if (!parse_dtype(parser, args[0], &type)) return NULL;
  if (args[1] && !(scope = parse_string(parser, args[1], "a scope"))) return NULL;
  return expr_data_var(parser->context, name, type, scope);
}

// The type of a scalar parameter, such as n: T.int32.
static bool is_scalar_annotation(Parser *parser, const PyNode *annotation, DType *type) {
  Str member = annotation && annotation->kind == PY_ATTRIBUTE
                   ? parser_member(parser, annotation, DIALECT_TIR)
                   : NULL;
  return member && dtype_parse(member, strlen(member), type) && dtype_is_int(*type);
}

void parser_bind_sizes(Parser *parser) {
  for (int i = 0, count = parser->bindings.count; i < count; i++) {
    Str name = parser->bindings.items[i].name;
    if (!parser->bindings.items[i].is_size || !parser_find(parser, name)->is_size) continue;
    parser_bind_expr(parser, name, expr_var(parser->context, name, DTYPE_INT64));
  }
}

// Makes the variables that extents in quotes may use before their definition: the sizes of the
// file, and integer parameters.
static void declare_sizes(Parser *parser, const PyNode *params) {
  parser_bind_sizes(parser);
  for (int i = 0; i < params->count; i++) {
    const PyNode *node = params->items[i];
    DType type;
    if (!is_scalar_annotation(parser, node->items[0], &type)) continue;
    Binding *binding = parser_bind(parser, node->text, BOUND_EXPR);
    binding->expr = expr_var(parser->context, node->text, type);
    binding->is_param = true;
  }
}

static Expr *scalar_param(Parser *parser, const PyNode *annotation, Str name) {
  DType type;
  Binding *known = parser_find(parser, name);
  if (!parse_dtype(parser, annotation, &type)) return NULL;
  bool is_declared = known && known->is_param && dtype_equal(known->expr->type, type);
  return is_declared ? known->expr : expr_var(parser->context, name, type);
}

static bool is_buffer_annotation(Parser *parser, const PyNode *annotation) {
  bool has_form = annotation->kind == PY_CALL || annotation->kind == PY_SUBSCRIPT;
  Str member = has_form ? parser_member(parser, annotation->items[0], DIALECT_TIR) : NULL;
  return member && (!strcmp(member, "Buffer") || !strcmp(member, "buffer"));
}

// T.Tensor(shape, type), or R.Tensor
static bool is_tensor_annotation(Parser *parser, const PyNode *call) {
  const char *name = py_dotted_name(parser->context, call->items[0]);
  const char *last = name ? strrchr(name, '.') : NULL;
  return last && !strcmp(last, ".Tensor");
}

static void add_param(Parser *parser, const PyNode *node, Expr *var, Buffer *buffer) {
  Binding *old = parser_find(parser, node->text);
  for (int i = 0; i < parser->params.count; i++)
    if (old && (old->expr == parser->params.items[i] ||
                (old->buffer && old->buffer == parser->matched.items[i])))
      REPORT(parser, node, "there are two parameters '%s'", node->text);
  array_push(parser->arena, &parser->params, var);
  array_push(parser->arena, &parser->matched, buffer);
  if (buffer)
    parser_bind_buffer(parser, node->text, buffer);
  else
    parser_bind_expr(parser, node->text, var);
}

static void param(Parser *parser, const PyNode *node) {
  parser_capture(parser, &node->items[0]);
  if (node->items[0]) parse_call_pointer(parser, node->items[0]);
  const PyNode *annotation = node->items[0];
  Expr *var = NULL;
  Buffer *buffer = NULL;
  if (node->items[1])
    diag_warning(parser->context, node->items[1]->pos,
                 "the default value of parameter '%s' has no effect", node->text);
  if (!annotation) {
    REPORT(parser, node, "parameter '%s' needs a type: T.Buffer(shape, type), T.handle, T.int32 …",
           node->text);
  } else if (is_buffer_annotation(parser, annotation)) {
    buffer = parse_param_buffer(parser, annotation, node->text);
    if (buffer) buffer->pos = node->pos;
    if (buffer)
      var =
          expr_var(parser->context, str_format(parser->context, "p_%s", node->text), DTYPE_HANDLE);
  } else if (annotation->kind == PY_CALL && is_tensor_annotation(parser, annotation)) {
    REPORT(parser, annotation, "expected T.Buffer(shape, type), saw %s",
           py_dotted_name(parser->context, annotation->items[0]));
  } else if (annotation->kind == PY_CALL) {
    var = handle_param(parser, annotation, node->text);
  } else {
    var = scalar_param(parser, annotation, node->text);
  }
  if (var)
    add_param(parser, node, var, buffer);
  else
    parser_bind(parser, node->text, BOUND_NOTHING);
}

// ---- Declarations of variables that precede the body and may be used by parameters: `n =
// T.int64()`

static bool is_declaration(Parser *parser, const PyNode *node) {
  if (node->kind != PY_ASSIGN) return false;
  const PyNode *target = node->items[0], *value = node->items[1];
  if (target->kind == PY_NAME) return parse_is_variable(parser, value);
  bool is_tuple = target->kind == PY_TUPLE && value->kind == PY_TUPLE;
  for (int i = 0; is_tuple && i < value->count; i++)
    if (!parse_is_variable(parser, value->items[i])) return false;
  return is_tuple;
}

// Returns the number of leading statements that are declarations.
static int declarations(Parser *parser, const PyNode *suite) {
  int count = 0;
  Sequence none = {0};
  for (; count < suite->count; count++) {
    const PyNode *node = suite->items[count];
    bool is_comment = node->kind == PY_EXPRESSION && node->items[0]->kind == PY_STRING;
    if (is_comment) continue;
    if (!is_declaration(parser, node)) break;
    parse_statement(parser, &none, node);
  }
  return count;
}

// ---- Body

static bool is_root(const Stmt *body) {
  return body->kind == STMT_BLOCK && body->as.block->var_count == 0 &&
         !strcmp(body->as.block->name, "root");
}

static bool mentions_pointer(const PyNode *node) {
  bool is_name = node->kind == PY_ATTRIBUTE && node->items[0]->kind == PY_NAME &&
                 (!strcmp(node->text, "load") || !strcmp(node->text, "store"));
  for (int i = 0; !is_name && i < node->count; i++)
    if (node->items[i] && mentions_pointer(node->items[i])) return true;
  return is_name;
}

// The buffers A of T.LetStmt(pointer, var=A.data) and of the older T.let(A.data, pointer).
static void find_let_data(const PyNode *node, Map *names) {
  bool is_var = node->kind == PY_KEYWORD && !strcmp(node->text, "var");
  bool is_let = node->kind == PY_CALL && node->count > 1 && node->items[0]->kind == PY_ATTRIBUTE &&
                !strcmp(node->items[0]->text, "let");
  const PyNode *data = is_var ? node->items[0] : is_let ? node->items[1] : NULL;
  if (data && data->kind == PY_ATTRIBUTE && !strcmp(data->text, "data") &&
      data->items[0]->kind == PY_NAME)
    map_put(names, data->items[0]->text, (intptr_t)1);
  for (int i = 0; i < node->count; i++)
    if (node->items[i]) find_let_data(node->items[i], names);
}

static Stmt *drop_repeated(Rewriter *rewriter, Stmt *s) {
  const Parser *parser = rewriter->env;
  bool is_repeated = map_find(&parser->let_declared, s) != NULL;
  return is_repeated ? rewrite_stmt(rewriter, s->as.declare.body) : NULL;
}

static void find_indexed(const PyNode *node, Map *names) {
  if (node->kind == PY_SUBSCRIPT && node->items[0]->kind == PY_NAME)
    map_put(names, node->items[0]->text, (intptr_t)1);
  for (int i = 0; i < node->count; i++)
    if (node->items[i]) find_indexed(node->items[i], names);
}

static Stmt *func_body(Parser *parser, const PyNode *suite) {
  BlockBuilder root = {.is_function = true};
  parser->block = &root;
  parser->has_blocks = false;
  Stmt *body = parse_body(parser, suite);
  parser->block = NULL;
  bool has_heading =
      root.allocs.count || root.states_reads || root.states_writes || root.annotations.count;
  bool needs_root = has_heading || (parser->has_blocks && !is_root(body));
  if (!needs_root) return body;
  return block_builder_finish(parser, &root, str_intern(parser->context, "root"), body);
}

static bool mentions_block(const PyNode *node) {
  bool is_name = node->kind == PY_ATTRIBUTE &&
                 (!strcmp(node->text, "block") || !strncmp(node->text, "sblock", strlen("sblock")));
  for (int i = 0; !is_name && i < node->count; i++)
    if (node->items[i] && mentions_block(node->items[i])) return true;
  return is_name;
}

static void decorator_attr(Parser *parser, const char *name) {
  parser->func_attrs =
      attrs_with(&parser->context->arena, parser->func_attrs, str_intern(parser->context, name),
                 expr_bool(parser->context, true));
}

static bool decorator_options(Parser *parser, const PyNode *def) {
  const PyNode *list = def->items[0];
  for (int i = 0; i < list->count; i++) {
    if (list->items[i]->kind != PY_CALL) continue;
    PyNode *args[3];
    if (!py_arguments(parser->context, list->items[i], "private? check_well_formed? s_tir?", args,
                      NULL))
      return false;
    if (args[0] && args[0]->kind == PY_BOOL && args[0]->i) decorator_attr(parser, "private");
    bool is_s_tir = args[2] && args[2]->kind == PY_BOOL && args[2]->i;
    parser->has_s_tir |= is_s_tir;
    if (is_s_tir && !mentions_block(def->items[3])) decorator_attr(parser, "s_tir");
  }
  return true;
}

// The alias of the decorator decides on the generation of a function.
static bool has_newer_alias(const Parser *parser, const PyNode *def) {
  const PyNode *list = def->items[0];
  for (int i = 0; i < list->count; i++) {
    const PyNode *node =
        list->items[i]->kind == PY_CALL ? list->items[i]->items[0] : list->items[i];
    bool is_member = node->kind == PY_ATTRIBUTE && node->items[0]->kind == PY_NAME;
    if (is_member && map_find(&parser->newer_aliases, node->items[0]->text)) return true;
  }
  return false;
}

// In the newer dialect, blocks allocate with T.sblock_alloc_buffer.
static bool has_newer_decorator(const PyNode *def) {
  const PyNode *list = def->items[0];
  for (int i = 0; i < list->count; i++)
    for (int k = 1; list->items[i]->kind == PY_CALL && k < list->items[i]->count; k++) {
      const PyNode *argument = list->items[i]->items[k];
      if (argument->kind == PY_KEYWORD && !strcmp(argument->text, "s_tir")) return true;
    }
  return false;
}

static bool find_returned(Visitor *visitor, Expr *e) {
  DType *type = visitor->env;
  if (e->op == EXPR_INTRINSIC && !strcmp(e->as.s, "ret") && e->count) *type = e->args[0]->type;
  return true;
}

// TVM lets a function return a value whose type is stated nowhere.
static void imply_result(PrimFunc *func) {
  visit_stmt(&(Visitor){.env = &func->result, .enter_expr = find_returned}, func->body);
  func->implies_result = func->result.code != TYPE_VOID;
}

PrimFunc *parse_prim_func(Parser *parser, const PyNode *def) {
  int errors = parser->context->error_count, mark = parser_mark(parser);
  parser->params.count = parser->matched.count = 0;
  parser->func_attrs = (Attrs){0};
  parser->is_newer = has_newer_alias(parser, def);
  parser->has_s_tir = false;
  decorator_options(parser, def);
  const PyNode *params = def->items[1];
  PyNode suite = *def->items[3];
  declare_sizes(parser, params);
  int taken = declarations(parser, &suite);
  for (int i = 0; i < params->count; i++) param(parser, params->items[i]);
  suite.items += taken;
  suite.count -= taken;
  parser->result = DTYPE_VOID;
  if (def->items[2] && def->items[2]->kind != PY_NONE)
    parse_dtype(parser, def->items[2], &parser->result);
  parser->uses_pointers = mentions_pointer(def->items[3]);
  parser->indexed = map_new(parser->arena);
  find_indexed(def->items[3], &parser->indexed);
  parser->let_data = map_new(parser->arena);
  parser->let_declared = map_new(parser->arena);
  find_let_data(def->items[3], &parser->let_data);
  parser->statement_allocs = has_newer_decorator(def) || !mentions_block(def->items[3]);
  parser->last = suite.count ? suite.items[suite.count - 1] : NULL;
  Stmt *body = func_body(parser, &suite);
  parser_reset(parser, mark);
  if (errors != parser->context->error_count) return NULL;
  Rewriter rewriter = {.context = parser->context, .env = parser, .enter_stmt = drop_repeated};
  if (parser->let_declared.count) body = rewrite_stmt(&rewriter, body);
  if (parser->has_blocks) body = blocks_find_regions(parser->context, body);
  PrimFunc *func = prim_func_new(parser->context, def->text, parser->params.items,
                                 parser->matched.items, parser->params.count, body);
  func->result = parser->result;
  if (!def->items[2]) imply_result(func);
  func->is_newer = parser->is_newer || parser->has_s_tir;
  func->attrs = parser->func_attrs;
  func->pos = def->pos;
  return func;
}
