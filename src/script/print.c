// SPDX-License-Identifier: Apache-2.0
// Prints modules, functions and expressions as TVMScript: the entry points for other folders.
#include "script/printer.h"

static void finish_line(Printer *printer) {
  text_puts(printer->out, "\n");
}

void script_print_prim_func(Context *context, const PrimFunc *func, Text *out,
                            const ScriptOptions *options) {
  Printer printer = printer_new(context, out, options);
  print_prim_func(&printer, func);
  finish_line(&printer);
}

void script_print_graph_func(Context *context, const GraphFunc *func, Text *out,
                             const ScriptOptions *options) {
  Printer printer = printer_new(context, out, options);
  print_graph_func(&printer, func, NULL);
  finish_line(&printer);
}

void script_print_stmt(Context *context, const Stmt *s, Text *out, const ScriptOptions *options) {
  Text text = text_new(out->arena);
  Printer printer = printer_new(context, &text, options);
  print_stmt(&printer, s, true);
  text_puts(out, text.size ? text_string(&text) + 1 : "pass"); // without the newline at the start
  text_puts(out, "\n");
}

static void script_print_expr(Context *context, const Expr *e, Text *out) {
  Printer printer = printer_new(context, out, NULL);
  print_expr(&printer, e);
}

const char *script_expr_text(Context *context, const Expr *e) {
  ArenaMark mark = arena_mark(&context->scratch);
  Text text = text_new(&context->scratch);
  script_print_expr(context, e, &text);
  Str result = str_intern(context, text_string(&text));
  arena_reset(&context->scratch, mark);
  return result;
}

const char *script_buffer_text(Context *context, const Buffer *buffer) {
  ArenaMark mark = arena_mark(&context->scratch);
  Text text = text_new(&context->scratch);
  Printer printer = printer_new(context, &text, NULL);
  text_printf(&text, "%s: T.Buffer(", buffer->name);
  print_buffer_arguments(&printer, buffer, NULL);
  text_puts(&text, ")");
  Str result = str_intern(context, text_string(&text));
  arena_reset(&context->scratch, mark);
  return result;
}

// Prints the imports of the dialects as comments, as TVM does; TVM reads no other imports.
static void print_imports(const Module *module, Text *out, bool newer) {
  bool has_graph = false, is_class = module->name && *module->name;
  for (int i = 0; i < module->funcs.count; i++) has_graph |= module->funcs.items[i].graph != NULL;
  text_puts(out, newer ? "# from tvm.script import " : "from pleat.script import ");
  if (is_class) text_puts(out, "ir as I, ");
  if (has_graph) text_puts(out, "relax as R, ");
  text_puts(out, newer ? "tirx as T\n\n" : "tir as T\n\n");
}

static void print_function(Printer *printer, const Module *module, const ModuleFunc *func) {
  if (func->prim)
    print_prim_func(printer, func->prim);
  else
    print_graph_func(printer, func->graph, module);
}

static void print_class_heading(Printer *printer, const Module *module) {
  text_printf(printer->out, "@I.ir_module\nclass %s:", printer_valid_name(printer, module->name));
  printer->indent = 1;
  if (module->attrs.count) {
    printer_line(printer);
    text_puts(printer->out, "I.module_attrs(");
    print_attributes(printer, &module->attrs);
    text_puts(printer->out, ")");
  }
  if (module->infos) print_global_infos(printer, module->infos);
  text_puts(printer->out, module->funcs.count ? "\n" : "\n    pass\n");
}

void script_print_module(Context *context, const Module *module, Text *out,
                         const ScriptOptions *options) {
  Printer printer = printer_new(context, out, options);
  if (!printer.options.no_imports) print_imports(module, out, printer.options.newer);
  bool is_class = module->name && *module->name;
  if (is_class) printer.class_name = printer_valid_name(&printer, module->name);
  if (is_class) print_class_heading(&printer, module);
  for (int i = 0; i < module->funcs.count; i++) {
    if (i && !is_class) text_puts(out, "\n\n");
    if (is_class && (i || module->attrs.count || module->infos)) text_puts(out, "\n");
    printer.indent = is_class;
    if (is_class) text_pad(out, ' ', 4);
    print_function(&printer, module, &module->funcs.items[i]);
    text_puts(out, "\n");
  }
}
