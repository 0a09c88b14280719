// SPDX-License-Identifier: Apache-2.0
// Prints graph functions. Constants are printed with all their contents; a constant whose contents
// are outside of the script is printed by its name.
#include "script/const_data.h"
#include "script/printer.h"

// ---- Types and constants

// Sizes of variables are text in a type; other expressions may be written as they are.
static bool has_variable(const Expr *e) {
  bool found = e->op == EXPR_VAR;
  for (int i = 0; i < e->count && !found; i++) found = has_variable(e->args[i]);
  return found;
}

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
  const char *name = print_contents(printer, value->data);
  text_puts(out, "R.const(");
  if (name || !data->data) {
    print_string(printer, name ? name : data->name ? data->name : value->name);
    text_puts(out, ", ");
    print_tensor_type(printer, value, false);
  } else if (const_data_nests(data)) {
    print_nested_data(printer, data);
    text_printf(out, ", \"%s\"", dtype_name(printer->context, data->type));
  } else {
    print_const_data(printer, data);
    text_puts(out, ", ");
    print_tensor_type(printer, value, false);
  }
  text_puts(out, ")");
}

// ---- Terms and values

static void print_value(Printer *printer, const Value *value);

static void print_term_items(Printer *printer, const GraphTerm *term, bool quoted);

// An index map is a string in the node, and a lambda in the text.
static bool is_lambda(const Expr *e) {
  return e->op == EXPR_STRING && !strncmp(e->as.s, "lambda ", strlen("lambda "));
}

// `quoted`: in the type of a parameter, whose extents are strings.
static void print_term(Printer *printer, const GraphTerm *term, bool quoted) {
  Text *out = printer->out;
  switch (term->kind) {
  case TERM_NONE: text_puts(out, "None"); break;
  case TERM_VALUE: print_value(printer, term->value); break;
  case TERM_NAME: text_puts(out, term->text); break;
  case TERM_FUNC:
    text_printf(out, "%s%s", printer->in_class ? "cls." : "",
                printer_valid_name(printer, term->text));
    break;
  case TERM_EXPR:
    if (quoted && has_variable(term->e))
      print_extent(printer, term->e, true);
    else if (term->plain && is_lambda(term->e))
      text_puts(out, term->e->as.s);
    else if (term->plain)
      print_plain_value(printer, term->e);
    else
      print_expr(printer, term->e);
    break;
  case TERM_LIST:
    text_puts(out, "[");
    print_term_items(printer, term, quoted);
    text_puts(out, "]");
    break;
  case TERM_TUPLE:
    text_puts(out, term->count ? "(" : "R.tuple(");
    print_term_items(printer, term, quoted);
    text_puts(out, term->count == 1 ? ",)" : ")");
    break;
  case TERM_DICT:
    text_puts(out, "{");
    print_term_items(printer, term, quoted);
    text_puts(out, "}");
    break;
  case TERM_CALL:
    text_printf(out, "%s(", term->text);
    print_term_items(printer, term, quoted);
    text_puts(out, ")");
    break;
  }
}

static void print_term_items(Printer *printer, const GraphTerm *term, bool quoted) {
  for (int i = 0; i < term->count; i++) {
    if (i) text_puts(printer->out, ", ");
    Str key = term->keys ? term->keys[i] : NULL;
    const GraphTerm *item = term->items[i];
    bool purity = term->kind == TERM_CALL && !strcmp(term->text, "R.Callable") && item->e &&
                  item->e->op == EXPR_INT && dtype_is_bool(item->e->type);
    bool no_axes = term->kind == TERM_CALL && item->kind == TERM_TUPLE && !item->count;
    if (key && term->kind == TERM_DICT) print_string(printer, key);
    if (key) text_puts(printer->out, term->kind == TERM_DICT ? ": " : key);
    if (key && term->kind != TERM_DICT) text_puts(printer->out, "=");
    if (no_axes)
      text_puts(printer->out, "()");
    else if (purity)
      text_puts(printer->out, item->e->as.i ? "True" : "False");
    else
      print_term(printer, item, quoted);
  }
}

static void print_value(Printer *printer, const Value *value) {
  if (!value)
    text_puts(printer->out, "None");
  else if (value->data)
    print_constant(printer, value);
  else if (value->term)
    print_term(printer, value->term, false);
  else
    text_puts(printer->out, printer_name(printer, value, value->name));
}

static void print_values(Printer *printer, Value *const *values, int count) {
  for (int i = 0; i < count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_value(printer, values[i]);
  }
}

static void print_type(Printer *printer, const Value *value, bool quoted) {
  if (value->info)
    print_term(printer, value->info, quoted);
  else
    print_tensor_type(printer, value, quoted);
}

// ---- Nodes

// The sizes that are given to a tensor program.
static bool is_sizes(const Node *node, const Attr *attr) {
  return node->kind == NODE_CALL_TIR && !strcmp(attr->key, "tir_vars");
}

static void print_arguments(Printer *printer, const Node *node, bool comma) {
  Text *out = printer->out;
  for (int i = 0; i < node->attrs.count; i++) {
    const Attr *attr = &node->attrs.items[i];
    bool sizes = is_sizes(node, attr);
    if (comma || i) text_puts(out, ", ");
    text_printf(out, sizes ? "%s=R.shape(" : "%s=", attr->key);
    if (is_lambda(attr->value))
      text_puts(out, attr->value->as.s);
    else
      print_attribute_value(printer, attr->value);
    if (sizes) text_puts(out, ")");
  }
  for (int i = 0; node->keywords && i < node->keywords->count; i++) {
    if (comma || i || node->attrs.count) text_puts(out, ", ");
    text_printf(out, "%s=", node->keywords->keys[i]);
    print_term(printer, node->keywords->items[i], false);
  }
  text_puts(out, ")");
}

static void print_call_tir(Printer *printer, const Node *node) {
  Text *out = printer->out;
  text_printf(out, "R.call_tir(%s%s, (", printer->in_class ? "cls." : "",
              printer_valid_name(printer, node->callee->name));
  print_values(printer, node->inputs, node->input_count);
  text_puts(out, node->input_count == 1 ? ",), " : "), ");
  text_puts(out, printer->options.newer ? "out_ty=" : "out_sinfo=");
  if (node->output_count != 1) text_puts(out, "[");
  for (int i = 0; i < node->output_count; i++) {
    if (i) text_puts(out, ", ");
    print_type(printer, node->outputs[i], false);
  }
  if (node->output_count != 1) text_puts(out, "]");
  print_arguments(printer, node, true);
}

// Prints the name for all outputs, and below it the outputs' own names.
static Str print_targets(Printer *printer, const Node *node) {
  Text *out = printer->out;
  if (node->output_count == 1) {
    const Value *value = node->outputs[0];
    Str name = printer_define(printer, value, value->name);
    text_puts(out, name);
    if (value->info || (node->kind != NODE_CALL_TIR && value->rank >= 0)) {
      text_puts(out, ": ");
      print_type(printer, value, false);
    }
    return name;
  }
  Str name = printer_define(printer, node, "tuple");
  text_printf(out, "%s: R.Tuple(", name);
  for (int i = 0; i < node->output_count; i++) {
    if (i) text_puts(out, ", ");
    print_type(printer, node->outputs[i], false);
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

// True for operators that take their inputs as one tuple, unless their only input is a tuple, or
// may be one, because its type is not known yet.
static bool takes_tuple(const Node *node) {
  const Value *only = node->input_count == 1 ? node->inputs[0] : NULL;
  bool has_tuple = only && (only->term || only->info || only->rank < 0);
  return !strcmp(node->op, "concat") && !has_tuple;
}

// Is the node a cast of a tensor whose shape is not known? The cast is what names its sizes then.
static bool is_cast(const Node *node) {
  return node->user_op && !strcmp(node->user_op, "match_cast") && node->input_count == 1 &&
         node->inputs[0]->rank < 0;
}

static void print_cast(Printer *printer, const Node *node) {
  text_puts(printer->out, "R.match_cast(");
  print_values(printer, node->inputs, 1);
  text_puts(printer->out, ", ");
  print_tensor_type(printer, node->outputs[0], false);
  text_puts(printer->out, ")");
}

static void print_operator(Printer *printer, const Node *node) {
  if (is_cast(node)) {
    print_cast(printer, node);
    return;
  }
  bool tuple = takes_tuple(node);
  text_printf(printer->out, tuple ? "R.%s((" : "R.%s(", node->op);
  print_values(printer, node->inputs, node->input_count);
  if (tuple) text_puts(printer->out, node->input_count == 1 ? ",)" : ")");
  print_arguments(printer, node, tuple || node->input_count > 0);
}

static void print_call(Printer *printer, const Node *node) {
  print_value(printer, node->inputs[0]);
  text_puts(printer->out, "(");
  print_values(printer, node->inputs + 1, node->input_count - 1);
  print_arguments(printer, node, node->input_count > 1);
}

static void print_item(Printer *printer, const Node *node) {
  print_value(printer, node->inputs[0]);
  text_printf(printer->out, "[%d]", node->item);
}

static void print_branch(Printer *printer, const GraphFunc *func, Str result);

static void print_if(Printer *printer, const Node *node) {
  Text *out = printer->out;
  const char *name = node->outputs[0]->name;
  printer_line(printer);
  text_puts(out, "if ");
  print_value(printer, node->inputs[0]);
  text_puts(out, ":");
  for (int i = 0; i < 2; i++) {
    int mark = printer_mark(printer);
    if (i) printer_line(printer);
    if (i) text_puts(out, "else:");
    printer->indent++;
    print_branch(printer, node->bodies[i], name);
    printer->indent--;
    printer_reset(printer, mark);
  }
  printer_define(printer, node->outputs[0], name);
}

static void print_call_of(Printer *printer, const Node *node) {
  if (node->kind == NODE_CALL_TIR) print_call_tir(printer, node);
  if (node->kind == NODE_OP) print_operator(printer, node);
  if (node->kind == NODE_CALL) print_call(printer, node);
  if (node->kind == NODE_ITEM) print_item(printer, node);
}

static void print_node(Printer *printer, const Node *node) {
  if (node->kind == NODE_IF) {
    print_if(printer, node);
    return;
  }
  printer_line(printer);
  if (node->kind == NODE_FUNC) {
    printer_define(printer, node->outputs[0], node->outputs[0]->name);
    print_graph_func(printer, node->bodies[0], NULL);
    return;
  }
  Text call = text_new(printer->arena), *out = printer->out;
  printer->out = &call; // uses the names before this node
  print_call_of(printer, node);
  printer->out = out;
  if (node->alone) {
    text_puts(out, text_string(&call));
    return;
  }
  Str name = print_targets(printer, node);
  text_printf(out, " = %s", text_string(&call));
  if (node->output_count != 1) print_items(printer, node, name);
}

// ---- Bodies

static bool is_returned(const GraphFunc *func, const Value *value) {
  for (int i = 0; i < func->output_count; i++)
    if (func->outputs[i] == value) return true;
  return false;
}

static void print_block_outputs(Printer *printer, const GraphFunc *func, int block) {
  printer_line(printer);
  text_puts(printer->out, "R.output(");
  bool first = true;
  for (int i = 0; i < func->nodes.count; i++) {
    const Node *node = func->nodes.items[i];
    for (int k = 0; node->block == block && k < node->output_count; k++) {
      const Value *value = node->outputs[k];
      if (!value->is_named && !is_returned(func, value)) continue;
      if (!first) text_puts(printer->out, ", ");
      first = false;
      print_value(printer, value);
    }
  }
  text_puts(printer->out, ")");
}

static void print_nodes(Printer *printer, const GraphFunc *func) {
  for (int i = 0; i < func->nodes.count; i++) {
    int block = func->nodes.items[i]->block;
    if (!block) {
      print_node(printer, func->nodes.items[i]);
      continue;
    }
    printer_line(printer);
    text_puts(printer->out, "with R.dataflow():");
    printer->indent++;
    for (; i < func->nodes.count && func->nodes.items[i]->block == block; i++)
      print_node(printer, func->nodes.items[i]);
    print_block_outputs(printer, func, block);
    printer->indent--;
    i--;
  }
}

static void print_result(Printer *printer, const GraphFunc *func) {
  bool single = func->output_count == 1;
  if (func->result) {
    print_value(printer, func->result);
    return;
  }
  if (!single) text_puts(printer->out, "(");
  print_values(printer, func->outputs, func->output_count);
  if (!single) text_puts(printer->out, ")");
}

// Does the last statement of a branch define its result, by this name?
static bool assigns_result(Printer *printer, const GraphFunc *func, Str result) {
  const Node *last = func->nodes.count ? array_last(&func->nodes) : NULL;
  return last && last->output_count == 1 && !func->result && func->output_count == 1 &&
         func->outputs[0] == last->outputs[0] && !last->block && !last->alone &&
         last->kind != NODE_FUNC && !strcmp(printer_name(printer, last->outputs[0], ""), result);
}

// The statements of a branch, whose last one assigns its result.
static void print_branch(Printer *printer, const GraphFunc *func, Str result) {
  print_nodes(printer, func);
  const Node *last = func->nodes.count ? array_last(&func->nodes) : NULL;
  bool is_empty = last && last->alone && func->result && !func->output_count;
  if (is_empty || assigns_result(printer, func, result)) return;
  printer_line(printer);
  text_printf(printer->out, "%s = ", printer_valid_name(printer, result));
  print_result(printer, func);
}

// ---- Functions

static bool define_var(Visitor *visitor, Expr *e) {
  Printer *printer = visitor->env;
  if (e->op == EXPR_VAR && !printer_knows(printer, e)) printer_define(printer, e, e->as.var->name);
  return true;
}

// Prints definitions of the variables in shapes and arguments. Extents that are a single variable
// come first, because compound extents need their variables when the text is read.
static void define_term_vars(Printer *printer, const GraphTerm *term) {
  Visitor visitor = {.env = printer, .enter_expr = define_var};
  if (!term) return;
  if (term->e) visit_expr(&visitor, term->e);
  for (int i = 0; i < term->count; i++) define_term_vars(printer, term->items[i]);
}

static void define_value_vars(Printer *printer, const Value *value) {
  Visitor visitor = {.env = printer, .enter_expr = define_var};
  if (!value) return;
  for (int i = 0; i < value->rank; i++) visit_expr(&visitor, value->shape[i]);
  define_term_vars(printer, value->info);
  define_term_vars(printer, value->term);
}

static void define_body_vars(Printer *printer, const GraphFunc *func) {
  for (int i = 0; i < func->param_count; i++) define_value_vars(printer, func->params[i]);
  for (int i = 0; i < func->nodes.count; i++) {
    const Node *node = func->nodes.items[i];
    for (int k = 0; k < node->input_count; k++) define_value_vars(printer, node->inputs[k]);
    for (int k = 0; k < node->output_count; k++) define_value_vars(printer, node->outputs[k]);
    define_term_vars(printer, node->keywords);
    for (int k = 0; k < 2; k++)
      if (node->bodies[k]) define_body_vars(printer, node->bodies[k]);
  }
  for (int i = 0; i < func->output_count; i++) define_value_vars(printer, func->outputs[i]);
  define_term_vars(printer, func->info);
}

static void print_shape_vars(Printer *printer, int from, int to) {
  for (int i = from; i < to; i++) {
    const Expr *var = printer->visible.items[i].object;
    printer_line(printer);
    text_printf(printer->out, "%s = T.%s()", printer->visible.items[i].name,
                dtype_name(printer->context, var->type));
  }
}

static bool is_module_call(const GraphTerm *term) {
  if (!term) return false;
  for (int i = 0; i < term->count; i++)
    if (is_module_call(term->items[i])) return true;
  return term->kind == TERM_FUNC;
}

// Does the function name functions of its module?
static bool calls_module(const GraphFunc *func) {
  bool calls = func->result && is_module_call(func->result->term);
  for (int i = 0; !calls && i < func->nodes.count; i++) {
    const Node *node = func->nodes.items[i];
    calls |= node->kind == NODE_CALL_TIR || is_module_call(node->keywords);
    for (int k = 0; k < node->input_count; k++)
      calls |= node->inputs[k] && is_module_call(node->inputs[k]->term);
    for (int k = 0; k < 2; k++) calls |= node->bodies[k] && calls_module(node->bodies[k]);
  }
  return calls;
}

static void print_options(Printer *printer, const GraphFunc *func) {
  text_puts(printer->out, "@R.function");
  for (int i = 0; i < func->options.count; i++) {
    text_printf(printer->out, "%s%s=", i ? ", " : "(", func->options.items[i].key);
    print_attribute_value(printer, func->options.items[i].value);
  }
  if (func->options.count) text_puts(printer->out, ")");
}

static bool term_reads(const GraphTerm *term, const Value *value) {
  if (!term) return false;
  bool reads = term->value == value;
  for (int i = 0; i < term->count; i++) reads |= term_reads(term->items[i], value);
  return reads;
}

static bool value_reads(const Value *from, const Value *value) {
  return from && (from == value || term_reads(from->term, value));
}

static bool func_reads(const GraphFunc *func, const Value *value) {
  bool reads = value_reads(func->result, value);
  for (int i = 0; i < func->output_count; i++) reads |= value_reads(func->outputs[i], value);
  for (int i = 0; i < func->nodes.count; i++) {
    const Node *node = func->nodes.items[i];
    for (int k = 0; k < node->input_count; k++) reads |= value_reads(node->inputs[k], value);
    for (int k = 0; k < 2; k++) reads |= node->bodies[k] && func_reads(node->bodies[k], value);
    reads |= term_reads(node->keywords, value);
  }
  return reads;
}

// A parameter that is a size keeps its name where it is that of the size too, which hides the
// parameter in the body.
static Str define_param(Printer *printer, const GraphFunc *func, const Value *value) {
  const Expr *size = value_size(value);
  bool same = size && !strcmp(size->as.var->name, value->name);
  if (!same || func_reads(func, value)) return printer_define(printer, value, value->name);
  return printer_name(printer, size, value->name);
}

static void print_signature(Printer *printer, const GraphFunc *func) {
  Text *out = printer->out;
  text_printf(out, "def %s(", printer_valid_name(printer, func->name));
  int column = printer_column(printer);
  for (int i = 0; i < func->param_count; i++) {
    Value *value = func->params[i];
    Text param = text_new(printer->arena);
    printer->out = &param;
    text_printf(&param, "%s: ", define_param(printer, func, value));
    print_type(printer, value, true);
    printer->out = out;
    print_parameter(printer, column, i == 0, text_string(&param));
  }
  text_puts(out, ")");
  if (func->info) {
    text_puts(out, " -> ");
    print_term(printer, func->info, true);
  }
  text_puts(out, ":");
}

// A local function (`module` NULL) uses the name of the module of the function around it.
void print_graph_func(Printer *printer, const GraphFunc *func, const Module *module) {
  int mark = printer_mark(printer);
  Text *out = printer->out;
  bool in_class = printer->in_class;
  if (module) printer->in_class = module->name && *module->name;
  define_body_vars(printer, func);
  int vars = printer_mark(printer);
  print_options(printer, func);
  printer_line(printer);
  print_signature(printer, func);
  printer->indent++;
  if (func->attrs.count) {
    printer_line(printer);
    text_puts(out, "R.func_attr(");
    print_attributes(printer, &func->attrs);
    text_puts(out, ")");
  }
  print_shape_vars(printer, mark, vars);
  if (module && printer->in_class && calls_module(func)) {
    printer_line(printer);
    text_printf(out, "cls = %s", printer_valid_name(printer, module->name));
  }
  print_nodes(printer, func);
  printer_line(printer);
  text_puts(out, "return ");
  print_result(printer, func);
  printer->indent--;
  printer_reset(printer, mark);
  printer->in_class = in_class;
}

void print_global_infos(Printer *printer, const GraphTerm *infos) {
  printer_line(printer);
  text_puts(printer->out, "I.module_global_infos(");
  print_term(printer, infos, false);
  text_puts(printer->out, ")");
}
