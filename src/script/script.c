// SPDX-License-Identifier: Apache-2.0
// Reads a file into a module: imports, numbers that functions capture, and the class or the
// functions outside of a class.
#include "script/parser.h"

#include <ctype.h>

// ---- Imports

static void take_import(Parser *parser, const PyNode *node) {
  for (int i = 0; i < node->count; i++) {
    const PyNode *alias = node->items[i];
    if (alias->kind != PY_KEYWORD || !strstr(alias->items[0]->text, "script")) continue;
    Str source = alias->items[0]->text, last = strrchr(source, '.');
    if (last && !strcmp(last, ".script") && strcmp(alias->text, source))
      map_put(&parser->script_names, alias->text, alias->text);
    Dialect dialect = parser_dialect(source);
    // Another import of a name that is an alias takes it.
    if (dialect || map_contains(&parser->dialects, alias->text))
      map_put(&parser->dialects, alias->text, (uintptr_t)dialect);
  }
}

// Notes the aliases of the newer dialect. Comments count too, since TVM prints its imports as
// comments: # from tvm.script import ir as I, tirx as T
static void take_newer_aliases(Parser *parser, const SourceFile *file) {
  static const char words[] = "tirx as ", import[] = "import ";
  const char *end = file->text + file->size;
  for (const char *at = file->text; (at = memmem(at, (size_t)(end - at), words, strlen(words)));) {
    const char *line = at;
    while (line > file->text && line[-1] != '\n') line--;
    bool imported = memmem(line, (size_t)(at - line), import, strlen(import));
    at += strlen(words);
    int size = 0;
    while (at + size < end && (isalnum((unsigned char)at[size]) || at[size] == '_')) size++;
    Str alias = str_format(parser->context, "%.*s", size, at);
    if (imported) map_put(&parser->newer_aliases, alias, alias);
  }
}

// ---- Numbers that functions capture from the file: `N = 64`

static bool is_constant(Parser *parser, const PyNode *node) {
  if (node->kind == PY_NAME) return parser_find(parser, node->text) != NULL;
  bool is_operator = node->kind == PY_UNARY || node->kind == PY_BINARY;
  for (int i = 0; is_operator && i < node->count; i++)
    if (!is_constant(parser, node->items[i])) return false;
  return is_operator || node->kind == PY_INT || node->kind == PY_FLOAT || node->kind == PY_BOOL ||
         node->kind == PY_STRING;
}

// n = TypeVar("n"): a size, which is another variable in each function.
static bool take_size(Parser *parser, const PyNode *node) {
  const PyNode *value = node->items[1];
  bool is_size = node->items[0]->kind == PY_NAME && value->kind == PY_CALL &&
                 value->items[0]->kind == PY_NAME && !strcmp(value->items[0]->text, "TypeVar");
  if (is_size) parser_bind(parser, node->items[0]->text, BOUND_NOTHING)->is_size = true;
  return is_size;
}

static void take_assignment(Parser *parser, const PyNode *node) {
  if (take_size(parser, node)) return;
  bool is_number = node->items[0]->kind == PY_NAME && !strcmp(node->text, "=") &&
                   is_constant(parser, node->items[1]);
  if (!is_number) return;
  Operand value = parse_operand(parser, node->items[1]);
  if (!value.e) return;
  Binding *binding = parser_bind(parser, node->items[0]->text, BOUND_EXPR);
  binding->expr = value.e;
  binding->is_literal = value.is_literal;
}

// ---- Definitions

static bool is_script_member(const char *dotted) {
  static const char *const prefixes[] = {"tvm.script.", "pleat.script.", "script."};
  for (int i = 0; i < COUNT_OF(prefixes); i++)
    if (!strncmp(dotted, prefixes[i], strlen(prefixes[i]))) return true;
  return false;
}

static bool is_decorated(Parser *parser, const PyNode *definition, Dialect dialect,
                         const char *name) {
  const PyNode *list = definition->items[0];
  for (int i = 0; i < list->count; i++) {
    const PyNode *node =
        list->items[i]->kind == PY_CALL ? list->items[i]->items[0] : list->items[i];
    Str member = parser_member(parser, node, dialect),
        dotted = py_dotted_name(parser->context, node);
    if (!member && node->kind == PY_NAME) member = node->text;
    if (!member && dotted && is_script_member(dotted)) member = strrchr(dotted, '.') + 1;
    if (member && !strcmp(member, name)) return true;
  }
  return false;
}

static bool has_oldest_decorator(Parser *parser, const PyNode *definition) {
  const PyNode *list = definition->items[0];
  for (int i = 0; i < list->count; i++)
    if (py_is_oldest_decorator(parser->context, list->items[i])) return true;
  return false;
}

static bool name_is_free(Parser *parser, const PyNode *def) {
  if (module_find(parser->module, def->text))
    return REPORT(parser, def, "there are two functions '%s'", def->text);
  return !script_is_reserved(def->text) ||
         REPORT(parser, def,
                "a function cannot have the name '%s', which stands for a dialect here", def->text);
}

static void take_function(Parser *parser, const PyNode *def) {
  if (!name_is_free(parser, def)) return;
  parser->captured_vars = map_new(parser->arena);
  if (is_decorated(parser, def, DIALECT_TIR, "prim_func")) {
    PrimFunc *func = parse_prim_func(parser, def);
    if (func && verify_prim_func(parser->context, func, IR_LEVEL_TENSOR) &&
        prim_func_check_domains(parser->context, func))
      module_add_prim(parser->module, func);
  } else if (is_decorated(parser, def, DIALECT_GRAPH, "function")) {
    GraphFunc *func = parse_graph_func(parser, def);
    if (func) module_add_graph(parser->module, func);
  } else if (has_oldest_decorator(parser, def)) {
    REPORT(parser, def,
           "@tvm.script.tir is the decorator of TVM before 0.9; `pleat fmt --upgrade` "
           "rewrites it");
  } else {
    REPORT(parser, def, "expected @T.prim_func or @R.function (import their aliases, or use T, R)");
  }
}

static void take_module_call(Parser *parser, const PyNode *node) {
  Str member = parser_called(parser, node->items[0], DIALECT_MODULE);
  bool is_infos = member && !strcmp(member, "module_global_infos");
  PyNode *args[1];
  if (!is_infos && (!member || strcmp(member, "module_attrs"))) return;
  if (!py_arguments(parser->context, node->items[0], is_infos ? "infos" : "attrs", args, NULL))
    return;
  if (is_infos)
    parser->module->infos = parse_global_infos(parser, args[0]);
  else
    parse_attributes(parser, args[0], &parser->module->attrs);
}

static void take_items(Parser *parser, const PyNode *suite, PyKind kind) {
  for (int i = 0; i < suite->count; i++) {
    const PyNode *node = suite->items[i];
    if (node->kind == PY_DEF && kind == PY_DEF) take_function(parser, node);
    if (node->kind == PY_ASSIGN && kind == PY_ASSIGN) take_assignment(parser, node);
    if (node->kind == PY_IMPORT && kind == PY_IMPORT) take_import(parser, node);
    if (node->kind == PY_EXPRESSION && kind == PY_EXPRESSION) take_module_call(parser, node);
  }
}

// Reads tensor programs first, because graph functions may call programs that come later in the
// file.
static void take_functions(Parser *parser, const PyNode *suite) {
  parser->functions = suite;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < suite->count; i++) {
      const PyNode *node = suite->items[i];
      if (node->kind != PY_DEF) continue;
      bool is_graph = is_decorated(parser, node, DIALECT_GRAPH, "function");
      if (is_graph == pass) take_function(parser, node);
    }
}

// ---- Calls among functions

typedef struct CallCheck {
  Parser *parser;
  SourcePos pos;
} CallCheck;

static bool check_call(Visitor *visitor, Expr *e) {
  CallCheck *check = visitor->env;
  Context *context = check->parser->context;
  if (e->op != EXPR_CALL_MODULE) return true;
  const ModuleFunc *callee = module_find(check->parser->module, e->as.s);
  const PrimFunc *func = callee ? callee->prim : NULL;
  if (!func) return diag_error(context, check->pos, "%s is not a tensor program", e->as.s);
  for (int i = 0; i < func->param_count; i++)
    if (!dtype_equal(func->params[i]->type, e->args[i]->type))
      diag_error(context, check->pos, "argument %d of %s has the type %s, expected %s", i + 1,
                 e->as.s, parser_type_name(check->parser, e->args[i]->type),
                 parser_type_name(check->parser, func->params[i]->type));
  return true;
}

static bool enter_caller(Visitor *visitor, Stmt *s) {
  CallCheck *check = visitor->env;
  if (s->pos.file) check->pos = s->pos;
  return true;
}

// The functions are complete only when all have been read.
static void check_calls(Parser *parser) {
  if (parser->context->error_count != parser->errors_before) return;
  for (int i = 0; i < parser->module->funcs.count; i++) {
    const PrimFunc *func = parser->module->funcs.items[i].prim;
    CallCheck check = {.parser = parser};
    Visitor visitor = {.env = &check, .enter_expr = check_call, .enter_stmt = enter_caller};
    if (func) visit_stmt(&visitor, func->body);
  }
}

static void take_class(Parser *parser, const PyNode *node) {
  if (!is_decorated(parser, node, DIALECT_MODULE, "ir_module")) {
    REPORT(parser, node, "expected @I.ir_module on this class");
    return;
  }
  if (parser->class_name) {
    REPORT(parser, node,
           "there are two modules in this file, '%s' and '%s'\nname one for the command, as in "
           "FILE.py:%s, or run the file by Python, where each class is an IRModule",
           parser->class_name, node->text, node->text);
    return;
  }
  parser->class_name = node->text;
  parser->module->name = node->text;
  take_items(parser, node->items[2], PY_EXPRESSION);
  take_functions(parser, node->items[2]);
}

static void parser_init(Parser *parser, Context *context) {
  *parser = (Parser){.context = context, .arena = &context->scratch};
  parser->errors_before = context->error_count;
  parser->dialects = map_new(parser->arena);
  parser->names = map_new(parser->arena);
  parser->ended = map_new(parser->arena);
  parser->newer_aliases = map_new(parser->arena);
  parser->script_names = map_new(parser->arena);
  parser->captured_vars = map_new(parser->arena);
  Str newer = str_intern(context, "tirx");
  map_put(&parser->newer_aliases, newer, newer);
  parser->module = module_new(context, "");
  static const struct {
    const char *name;
    Dialect dialect;
  } usual[] = {{"T", DIALECT_TIR},   {"tir", DIALECT_TIR},     {"tirx", DIALECT_TIR},
               {"R", DIALECT_GRAPH}, {"relax", DIALECT_GRAPH}, {"I", DIALECT_MODULE}};
  for (int i = 0; i < COUNT_OF(usual); i++)
    map_put(&parser->dialects, str_intern(context, usual[i].name), (uintptr_t)usual[i].dialect);
}

static void take_imports(Parser *parser, const SourceFile *file) {
  PyNode *suite = file ? py_parse_file(parser->context, parser->arena, file, PY_DEFINITIONS) : NULL;
  if (suite) take_items(parser, suite, PY_IMPORT);
}

static void take_file(Parser *parser, PyNode *suite) {
  parser_take_metadata(parser, suite);
  const SourceFile *imports = parser->capture ? parser->capture->imports : NULL;
  if (imports) take_imports(parser, imports);
  if (imports) take_newer_aliases(parser, imports);
  take_newer_aliases(parser, suite->pos.file);
  take_items(parser, suite, PY_IMPORT);
  parser_name_dialects(parser, suite);
  take_items(parser, suite, PY_ASSIGN);
  Str module = suite->pos.file->module;
  for (int i = 0; i < suite->count; i++)
    if (suite->items[i]->kind == PY_CLASS && (!module || module == suite->items[i]->text))
      take_class(parser, suite->items[i]);
  if (!module || !*module) take_functions(parser, suite);
  check_calls(parser);
}

int script_module_names(Context *context, const SourceFile *file, const Str **names) {
  int errors = context->error_count, first = context->diags.count;
  ArenaMark mark = arena_mark(&context->scratch);
  PyNode *suite = py_parse_file(context, &context->scratch, file, PY_DEFINITIONS);
  Parser parser;
  parser_init(&parser, context);
  Array(Str) list = {0};
  bool has_functions = false;
  if (suite) take_items(&parser, suite, PY_IMPORT);
  for (int i = 0; suite && i < suite->count; i++) {
    const PyNode *node = suite->items[i];
    if (node->kind == PY_CLASS && is_decorated(&parser, node, DIALECT_MODULE, "ir_module"))
      array_push(&context->arena, &list, node->text);
    has_functions |=
        node->kind == PY_DEF && (is_decorated(&parser, node, DIALECT_TIR, "prim_func") ||
                                 is_decorated(&parser, node, DIALECT_GRAPH, "function"));
  }
  arena_reset(&context->scratch, mark);
  diag_forget(context, first, errors);
  if (has_functions && list.count > 1) array_push(&context->arena, &list, str_intern(context, ""));
  *names = list.items;
  return list.count;
}

// Restores the functions' order in the file, since tensor programs were read first.
static void restore_order(Module *module) {
  for (int i = 1; i < module->funcs.count; i++)
    for (int k = i; k > 0; k--) {
      ModuleFunc *a = &module->funcs.items[k - 1], *b = a + 1, held = *a;
      int32_t at_a = a->prim ? a->prim->pos.begin : a->graph->pos.begin;
      int32_t at_b = b->prim ? b->prim->pos.begin : b->graph->pos.begin;
      if (at_a <= at_b) break;
      *a = *b;
      *b = held;
    }
}

// Sorts the diagnostics from `first` on by their position in the text.
static void sort_messages(Context *context, int first) {
  Diag *diags = context->diags.items;
  for (int i = first + 1; i < context->diags.count; i++)
    for (int k = i; k > first && diags[k - 1].pos.begin > diags[k].pos.begin; k--) {
      Diag held = diags[k];
      diags[k] = diags[k - 1];
      diags[k - 1] = held;
    }
}

static void report_empty(Context *context, const SourceFile *file) {
  SourcePos pos = {file, 0, 0, NULL};
  if (file->module && *file->module)
    diag_error(context, pos, "there is no class %s marked @I.ir_module in this file", file->module);
  else
    diag_error(context, pos,
               "there is no function marked @T.prim_func or @R.function in this file");
}

Module *script_parse(Context *context, const SourceFile *file) {
  return script_parse_captured(context, file, NULL);
}

Module *script_parse_captured(Context *context, const SourceFile *file,
                              const ScriptCapture *capture) {
  int errors = context->error_count, first = context->diags.count;
  DiagCode code = diag_code_set(context, DIAG_SYNTAX);
  ArenaMark mark = arena_mark(&context->scratch);
  PyNode *suite = py_parse_file(context, &context->scratch, file, PY_DEFINITIONS);
  Parser parser;
  parser_init(&parser, context);
  parser.capture = capture;
  if (suite) take_file(&parser, suite);
  Module *module = parser.module;
  restore_order(module);
  if (errors == context->error_count && !module->funcs.count && !parser.class_name)
    report_empty(context, file);
  arena_reset(&context->scratch, mark);
  sort_messages(context, first);
  diag_code_set(context, code);
  return errors == context->error_count ? module : NULL;
}
