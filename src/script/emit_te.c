// SPDX-License-Identifier: Apache-2.0
// Reads R.emit_te(f, x, …) in graph functions. The program around the script calls f with tensors
// of the types that the arguments have, and answers with a call of the tensor program that this
// makes, whose text stands where the program's name will:
//   y = R.emit_te(topi.add, x, x)
//     =>  y = R.call_tir("@T.prim_func …", (x, x), out_sinfo=R.Tensor((10, 20), "float32"))
//     =>  y = R.call_tir(add, (x, x), out_sinfo=R.Tensor((10, 20), "float32"))
#include "script/parser.h"

// ---- The question -------------------------------------------------------------------------------

static void print_tensor_type(Parser *parser, const Value *value, Text *text) {
  text_printf(text, "(\"%s\", (", dtype_name(parser->context, value->type));
  for (int i = 0; i < value->rank; i++)
    text_printf(text, "\"%s\", ", script_expr_text(parser->context, value->shape[i]));
  text_printf(text, "))");
}

// The type of a name: the element type and extents of a tensor, the element type and None of a
// number or a size.
static bool print_type(Parser *parser, const PyNode *node, const Binding *binding, Text *text) {
  const ScriptCapture *capture = parser->capture;
  if (binding->kind == BOUND_EXPR && binding->expr->op == EXPR_VAR) {
    text_printf(text, "(\"%s\", None)", dtype_name(parser->context, binding->expr->type));
    return true;
  }
  Value *value = binding->kind == BOUND_VALUE ? binding->value : NULL;
  DType number;
  if (value && value->info && term_number_type(value->info, &number)) {
    text_printf(text, "(\"%s\", None)", dtype_name(parser->context, number));
    return true;
  }
  bool is_tensor = value && !value->info && !value->term;
  if (is_tensor && value->rank < 0 && capture->infer) capture->infer(parser->context, value);
  if (!is_tensor || value->rank < 0)
    return REPORT(parser, node, "R.emit_te: the type of '%s' is not known here", node->text);
  print_tensor_type(parser, value, text);
  return true;
}

// The names that the script defines in an expression, with their types.
typedef struct EmittedNames {
  Parser *parser;
  Text *types;
  Array(Str) names;
  bool typed; // have all names types?
} EmittedNames;

static void add_name(EmittedNames *a, const PyNode *node) {
  Parser *parser = a->parser;
  const Binding *binding = parser_find(parser, node->text);
  bool is_dialect = parser_is_alias(parser, node->text);
  for (int i = 0; i < a->names.count; i++)
    if (a->names.items[i] == node->text) return;
  if (!binding && !is_dialect) return; // it is captured
  array_push(parser->arena, &a->names, node->text);
  if (!binding || binding->kind == BOUND_NOTHING) return;
  text_printf(a->types, "\"%s\": ", node->text);
  a->typed &= print_type(parser, node, binding, a->types);
  text_printf(a->types, ", ");
}

static void find_names(EmittedNames *a, const PyNode *node) {
  if (!node) return;
  if (node->kind == PY_NAME) add_name(a, node);
  for (int i = 0; i < node->count; i++) find_names(a, node->items[i]);
}

// _pleat_emit_te({"x": ("float32", ("10", "20", ))}, topi.add, x, x)
static Captured question(Parser *parser, const PyNode *call) {
  Text types = text_new(parser->arena), text = text_new(parser->arena);
  EmittedNames a = {.parser = parser, .types = &types, .typed = true};
  for (int i = 1; i < call->count; i++) find_names(&a, call->items[i]);
  if (!a.typed) return (Captured){0};
  text_printf(&text, "_pleat_emit_te({%s}", text_string(&types));
  for (int i = 1; i < call->count; i++) {
    text_printf(&text, ", ");
    if (!py_print(call->items[i], &text)) return (Captured){0};
  }
  text_printf(&text, ")");
  return parser->capture->find(parser->capture->env, parser->context, parser->scope,
                               text_string(&text), a.names.items, NULL, a.names.count);
}

// ---- The answer ---------------------------------------------------------------------------------

static bool is_taken(const Parser *parser, const char *name) {
  if (module_find(parser->module, name)) return true;
  for (int i = 0; parser->functions && i < parser->functions->count; i++) {
    const PyNode *item = parser->functions->items[i];
    if (item->kind == PY_DEF && !strcmp(item->text, name)) return true;
  }
  return false;
}

// Adds the tensor program to the module, under its name or one like it.
static PrimFunc *add_program(Parser *parser, const PyNode *call, const char *script) {
  Context *context = parser->context;
  SourceFile *file = source_file_copy(context, "R.emit_te", script, strlen(script));
  Module *made = script_parse(context, file);
  if (!made || made->funcs.count != 1 || !made->funcs.items[0].prim) return NULL;
  PrimFunc *func = arena_copy(&context->arena, made->funcs.items[0].prim, sizeof *func);
  Str name = func->name;
  for (int i = 1; is_taken(parser, func->name); i++)
    func->name = str_format(context, "%s%d", name, i);
  func->pos = call->pos;
  module_add_prim(parser->module, func);
  return func;
}

static PyNode *call_of(Parser *parser, const PyNode *call, const char *answer) {
  SourceFile *file =
      source_file_copy(parser->context, "the answer to R.emit_te", answer, strlen(answer));
  PyNode *made = py_parse_expression(parser->context, parser->arena, file);
  bool fits = made && made->kind == PY_CALL && made->count > 1 && made->items[1]->kind == PY_STRING;
  if (!fits) return NULL;
  PrimFunc *func = add_program(parser, call, made->items[1]->text);
  if (!func) return NULL;
  *made->items[1] = (PyNode){.kind = PY_NAME, .text = func->name};
  return made;
}

bool parser_is_emit_te(Parser *parser, const PyNode *node) {
  Str member = parser_called(parser, node, DIALECT_GRAPH);
  return member && !strcmp(member, "emit_te");
}

PyNode *parser_emit_te(Parser *parser, const PyNode *call) {
  int errors = parser->context->error_count;
  Captured answer = question(parser, call);
  PyNode *made = answer.kind == CAPTURED_VALUE ? call_of(parser, call, answer.text) : NULL;
  if (answer.kind == CAPTURED_REFUSED)
    REPORT(parser, call, "%s", answer.text);
  else if (!made && parser->context->error_count == errors)
    REPORT(parser, call, "R.emit_te cannot make a tensor program of this");
  return made;
}
