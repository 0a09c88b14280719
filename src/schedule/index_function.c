// SPDX-License-Identifier: Apache-2.0
// Functions of indices that give an expression, as values of steps: lambda i: T.Cast("float32", i).
// The expression is read as one of a program whose parameters are the sizes of the schedule's
// function.
#include "schedule/internal.h"
#include "script/script.h"

static const char KEY[] = "pleat.function";

// @T.prim_func
// def pad_value(n: T.int64):
//     T.func_attr({"pleat.function": lambda i, j: …})
static Module *parse_text(Context *context, const char *lambda, const Map *sizes) {
  Text text = text_new(&context->arena);
  text_puts(&text, "from pleat.script import tir as T\n@T.prim_func\ndef function(");
  for (int i = 0; i < sizes->count; i++) {
    const Expr *var = sizes->entries[i].value;
    text_printf(&text, "%s%s: T.%s", i ? ", " : "", (const char *)sizes->entries[i].key,
                dtype_name(context, var->type));
  }
  text_printf(&text, "):\n    T.func_attr({\"%s\": %s})\n    T.evaluate(0)\n", KEY, lambda);
  return script_parse(context,
                      source_file_new(context, "pad_value", text_string(&text), text.size));
}

const Expr *index_function_parse(Schedule *schedule, const char *lambda) {
  Context *context = schedule->context;
  Map sizes = schedule_size_symbols(schedule), vars = map_new(&context->arena);
  Module *module = parse_text(context, lambda, &sizes);
  if (!module) return NULL;
  const PrimFunc *func = module->funcs.items[0].prim;
  const Expr *function = attrs_get(&func->attrs, KEY);
  if (!expr_is_pure(function->args[function->count - 1])) {
    diag_error(context, func->pos, "a function of indices has no effects, and calls no program");
    return NULL;
  }
  for (int i = 0; i < sizes.count; i++) map_put(&vars, func->params[i], sizes.entries[i].value);
  return substitute_expr(context, (Expr *)function, &vars);
}

Expr *index_function_at(Context *context, const Expr *function, Expr *const *indices) {
  Map vars = map_new(&context->arena);
  int count = function->count - 1;
  for (int i = 0; i < count; i++)
    map_put(&vars, function->args[i], expr_cast(context, function->args[i]->type, indices[i]));
  return substitute_expr(context, function->args[count], &vars);
}
