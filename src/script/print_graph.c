// SPDX-License-Identifier: Apache-2.0
// Prints graph functions. Constants are printed with all their contents; a constant whose contents
// are outside of the script is printed by its name.
#include "script/const_data.h"
#include "script/printer.h"

// ---- Types and constants

static void print_extent(Printer *printer, const Expr *e, bool quoted) {
  if (!quoted || e->op == EXPR_INT) {
    print_expr(printer, e);
    return;
  }
  text_puts(printer->out, "\"");
  print_expr(printer, e);
  text_puts(printer->out, "\"");
}

static void print_tensor_type(Printer *printer, const Value *value, bool quoted) {
  Text *out = printer->out;
  text_puts(out, "R.Tensor(");
  if (value->rank >= 0) text_puts(out, "(");
  for (int i = 0; i < value->rank; i++) {
    if (i) text_puts(out, ", ");
    print_extent(printer, value->shape[i], quoted);
  }
  if (value->rank >= 0) text_puts(out, value->rank == 1 ? ",), " : "), ");
  text_printf(out, "dtype=\"%s\")", dtype_name(printer->context, value->type));
}

static void print_constant(Printer *printer, const Value *value) {
  Text *out = printer->out;
  const ConstData *data = value->data;
  text_puts(out, "R.const(");
  if (!data->data) {
    print_string(printer, data->name ? data->name : value->name);
    text_puts(out, ", ");
    print_tensor_type(printer, value, false);
  } else if (!data->rank) {
    print_attribute_value(printer, const_data_load(printer->context, data, 0));
    text_printf(out, ", \"%s\"", dtype_name(printer->context, data->type));
  } else {
    print_const_data(printer, data);
    text_puts(out, ", ");
    print_tensor_type(printer, value, false);
  }
  text_puts(out, ")");
}

static void print_value(Printer *printer, const Value *value) {
  if (!value)
    text_puts(printer->out, "None");
  else if (value->data)
    print_constant(printer, value);
  else
    text_puts(printer->out, printer_name(printer, value, value->name));
}

static void print_values(Printer *printer, Value *const *values, int count) {
  for (int i = 0; i < count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_value(printer, values[i]);
  }
}

// ---- Nodes

static void print_node_attrs(Printer *printer, const Node *node, bool comma) {
  for (int i = 0; i < node->attrs.count; i++) {
    if (comma || i) text_puts(printer->out, ", ");
    text_printf(printer->out, "%s=", node->attrs.items[i].key);
    print_attribute_value(printer, node->attrs.items[i].value);
  }
  text_puts(printer->out, ")");
}

static void print_call_tir(Printer *printer, const Node *node, const Module *module) {
  Text *out = printer->out;
  bool is_class = module && module->name && *module->name;
  text_printf(out, "R.call_tir(%s%s, (", is_class ? "cls." : "",
              printer_valid_name(printer, node->callee->name));
  print_values(printer, node->inputs, node->input_count);
  text_puts(out, node->input_count == 1 ? ",), " : "), ");
  text_puts(out, printer->options.newer ? "out_ty=" : "out_sinfo=");
  if (node->output_count != 1) text_puts(out, "[");
  for (int i = 0; i < node->output_count; i++) {
    if (i) text_puts(out, ", ");
    print_tensor_type(printer, node->outputs[i], false);
  }
  if (node->output_count != 1) text_puts(out, "]");
  print_node_attrs(printer, node, true);
}

// Prints the name for all outputs, and below it the outputs' own names.
static Str print_targets(Printer *printer, const Node *node) {
  Text *out = printer->out;
  if (node->output_count == 1) {
    Str name = printer_define(printer, node->outputs[0], node->outputs[0]->name);
    text_puts(out, name);
    if (node->kind == NODE_OP && node->outputs[0]->rank >= 0) {
      text_puts(out, ": ");
      print_tensor_type(printer, node->outputs[0], false);
    }
    return name;
  }
  Str name = printer_define(printer, node, "tuple");
  text_printf(out, "%s: R.Tuple(", name);
  for (int i = 0; i < node->output_count; i++) {
    if (i) text_puts(out, ", ");
    print_tensor_type(printer, node->outputs[i], false);
  }
  text_puts(out, ")");
  return name;
}

static void print_items(Printer *printer, const Node *node, Str tuple) {
  for (int i = 0; i < node->output_count; i++) {
    printer_line(printer);
    Str name = printer_define(printer, node->outputs[i], node->outputs[i]->name);
    text_printf(printer->out, "%s = %s[%d]", name, tuple, i);
  }
}

// True for operators that take their inputs as one tuple.
static bool takes_tuple(const Node *node) {
  return !strcmp(node->op, "concat");
}

static void print_operator(Printer *printer, const Node *node) {
  bool tuple = takes_tuple(node);
  text_printf(printer->out, tuple ? "R.%s((" : "R.%s(", node->op);
  print_values(printer, node->inputs, node->input_count);
  if (tuple) text_puts(printer->out, node->input_count == 1 ? ",)" : ")");
  print_node_attrs(printer, node, tuple || node->input_count > 0);
}

static void print_node(Printer *printer, const Node *node, const Module *module) {
  printer_line(printer);
  Text call = text_new(printer->arena), *out = printer->out;
  printer->out = &call; // uses the names before this node
  if (node->kind == NODE_CALL_TIR)
    print_call_tir(printer, node, module);
  else
    print_operator(printer, node);
  printer->out = out;
  Str name = print_targets(printer, node);
  text_printf(out, " = %s", text_string(&call));
  if (node->output_count != 1) print_items(printer, node, name);
}

// ---- Functions

static bool define_var(Visitor *visitor, Expr *e) {
  Printer *printer = visitor->env;
  if (e->op == EXPR_VAR && !printer_knows(printer, e)) printer_define(printer, e, e->as.var->name);
  return true;
}

// Prints definitions of the variables in a parameter's shape. Extents that are a single variable
// come first, because compound extents need their variables when the text is read.
static void define_shape_vars(Printer *printer, const Value *value) {
  Visitor visitor = {.env = printer, .enter_expr = define_var};
  for (int i = 0; i < value->rank; i++) visit_expr(&visitor, value->shape[i]);
}

static void print_shape_vars(Printer *printer, int from, int to) {
  for (int i = from; i < to; i++) {
    const Expr *var = printer->visible.items[i].object;
    printer_line(printer);
    text_printf(printer->out, "%s = T.%s()", printer->visible.items[i].name,
                dtype_name(printer->context, var->type));
  }
}

static void print_returned(Printer *printer, const GraphFunc *func) {
  bool single = func->output_count == 1;
  printer_line(printer);
  text_puts(printer->out, single ? "return " : "return (");
  print_values(printer, func->outputs, func->output_count);
  text_puts(printer->out, single ? "" : ")");
}

static bool calls_programs(const GraphFunc *func) {
  for (int i = 0; i < func->nodes.count; i++)
    if (func->nodes.items[i]->kind == NODE_CALL_TIR) return true;
  return false;
}

static void print_dataflow(Printer *printer, const GraphFunc *func, const Module *module) {
  if (!func->nodes.count) return;
  if (module && *module->name && calls_programs(func)) {
    printer_line(printer);
    text_printf(printer->out, "cls = %s", printer_valid_name(printer, module->name));
  }
  printer_line(printer);
  text_puts(printer->out, "with R.dataflow():");
  printer->indent++;
  for (int i = 0; i < func->nodes.count; i++) print_node(printer, func->nodes.items[i], module);
  printer_line(printer);
  text_puts(printer->out, "R.output(");
  bool first = true;
  for (int i = 0; i < func->output_count; i++) {
    if (!func->outputs[i]->producer) continue;
    if (!first) text_puts(printer->out, ", ");
    first = false;
    print_value(printer, func->outputs[i]);
  }
  text_puts(printer->out, ")");
  printer->indent--;
}

static void print_signature(Printer *printer, const GraphFunc *func) {
  Text *out = printer->out;
  text_printf(out, "def %s(", printer_valid_name(printer, func->name));
  int column = printer_column(printer);
  for (int i = 0; i < func->param_count; i++) {
    Value *value = func->params[i];
    Text param = text_new(printer->arena);
    printer->out = &param;
    text_printf(&param, "%s: ", printer_define(printer, value, value->name));
    print_tensor_type(printer, value, true);
    printer->out = out;
    print_parameter(printer, column, i == 0, text_string(&param));
  }
  text_puts(out, "):");
}

void print_graph_func(Printer *printer, const GraphFunc *func, const Module *module) {
  int mark = printer_mark(printer);
  Text *out = printer->out;
  for (int i = 0; i < func->param_count; i++) define_shape_vars(printer, func->params[i]);
  int vars = printer_mark(printer);
  text_puts(out, "@R.function");
  printer_line(printer);
  print_signature(printer, func);
  printer->indent++;
  if (func->attrs.count) {
    printer_line(printer);
    text_puts(out, "R.func_attr(");
    print_attributes(printer, &func->attrs, NULL);
    text_puts(out, ")");
  }
  print_shape_vars(printer, mark, vars);
  print_dataflow(printer, func, module);
  print_returned(printer, func);
  printer->indent--;
  printer_reset(printer, mark);
}
