// SPDX-License-Identifier: Apache-2.0
// Prints the headings of blocks and of functions, and tensor programs.
#include "script/printer.h"

// ---- Axes

// The loop that binds the variable one to one, or NULL.
static const Stmt *trivial_loop(const Printer *printer, const BlockVar *var) {
  const Stmt *loop = map_find(&printer->loops, var->binding);
  bool same = loop && loop->as.loop.min == var->min && loop->as.loop.extent == var->extent &&
              !iter_is_ordered(var->kind) && printer_knows(printer, var->binding);
  return same ? loop : NULL;
}

static void print_remap(Printer *printer, const BlockVar *vars, int count) {
  Text *out = printer->out;
  for (int i = 0; i < count; i++) {
    if (i) text_puts(out, ", ");
    text_puts(out, printer_define(printer, vars[i].var, vars[i].var->as.var->name));
  }
  text_puts(out, " = T.axis.remap(\"");
  for (int i = 0; i < count; i++) text_puts(out, vars[i].kind == ITER_REDUCTION ? "R" : "S");
  text_puts(out, "\", [");
  for (int i = 0; i < count; i++) {
    if (i) text_puts(out, ", ");
    print_expr(printer, vars[i].binding);
  }
  text_puts(out, "])");
}

static void print_axis(Printer *printer, const BlockVar *var) {
  static const char *const kinds[] = {[ITER_SPATIAL] = "spatial",
                                      [ITER_REDUCTION] = "reduce",
                                      [ITER_SCAN] = "scan",
                                      [ITER_OPAQUE] = "opaque"};
  Text *out = printer->out;
  text_printf(out, "%s = T.axis.%s(", printer_define(printer, var->var, var->var->as.var->name),
              kinds[var->kind]);
  bool from_zero = expr_is_int(var->min, 0);
  if (!from_zero) {
    text_puts(out, "(");
    print_expr(printer, var->min);
    text_puts(out, ", ");
    print_stop(printer, var->min, var->extent);
    text_puts(out, ")");
  } else {
    print_expr(printer, var->extent);
  }
  text_puts(out, ", ");
  print_expr(printer, var->binding);
  text_puts(out, ")");
}

static void print_axes(Printer *printer, const Block *block) {
  for (int i = 0; i < block->var_count;) {
    int count = 0;
    while (i + count < block->var_count && trivial_loop(printer, &block->vars[i + count])) count++;
    // A single remap reads worse than T.axis.spatial.
    if (count == 1 && block->var_count > 1) count = 0;
    printer_line(printer);
    if (count)
      print_remap(printer, &block->vars[i], count);
    else
      print_axis(printer, &block->vars[i]);
    i += MAX_OF(count, 1);
  }
}

// ---- Regions and the rest

void print_region(Printer *printer, const Region *region, bool slices_last) {
  const Buffer *buffer = region->buffer;
  text_printf(printer->out, "%s%s[", printer_name(printer, buffer, buffer->name),
              printer_is_variable(printer, buffer) ? ".source" : "");
  if (!buffer->rank) text_puts(printer->out, "()");
  for (int i = 0; i < buffer->rank; i++) {
    if (i) text_puts(printer->out, ", ");
    print_expr(printer, region->min[i]);
    bool is_slice = slices_last && i + 1 == buffer->rank;
    if (expr_is_int(region->extent[i], 1) && !is_slice) continue;
    text_puts(printer->out, ":");
    print_sum(printer, region->min[i], region->extent[i]);
  }
  text_puts(printer->out, "]");
}

static void print_regions(Printer *printer, const char *name, const Region *regions, int count) {
  printer_line(printer);
  text_printf(printer->out, "T.%s(", name);
  for (int i = 0; i < count; i++) {
    if (i) text_puts(printer->out, ", ");
    print_region(printer, &regions[i], false);
  }
  text_puts(printer->out, ")");
}

static void print_allocations(Printer *printer, const Block *block) {
  for (int i = 0; i < block->alloc_count; i++) {
    printer_note_place(printer, block->allocs[i]->pos);
    printer_line(printer);
    Str name = printer_define_buffer(printer, block->allocs[i]);
    text_printf(printer->out, "%s = T.%salloc_buffer(", name,
                printer->options.newer ? "sblock_" : "");
    print_buffer_arguments(printer, block->allocs[i], NULL);
    text_puts(printer->out, ")");
  }
}

static void print_matches(Printer *printer, const Block *block) {
  for (int i = 0; i < block->match_count; i++) {
    const MatchBuffer *match = &block->matches[i];
    print_free_vars(printer, match->buffer);
    printer_note_place(printer, match->buffer->pos);
    printer_line(printer);
    text_printf(printer->out, "%s = T.match_buffer(",
                printer_define_buffer(printer, match->buffer));
    print_region(printer, &match->source, false);
    text_puts(printer->out, ", ");
    print_buffer_arguments(printer, match->buffer, NULL);
    bool says_zero = match->buffer->holds_offset && expr_is_int(match->buffer->offset, 0);
    text_puts(printer->out, says_zero ? ", elem_offset=0)" : ")");
  }
}

typedef struct UnknownNames {
  const Printer *printer;
  bool found;
} UnknownNames;

static bool note_unknown(Visitor *visitor, Expr *e) {
  UnknownNames *unknown = visitor->env;
  const void *named = e->op == EXPR_VAR ? e : e->op == EXPR_LOAD ? (void *)e->as.buffer : NULL;
  unknown->found |= named && !printer_knows(unknown->printer, named);
  return !unknown->found;
}

// Whether attributes name a variable or buffer whose definition is not printed yet.
static bool has_unknown_names(const Printer *printer, const Attrs *attrs) {
  UnknownNames unknown = {printer};
  Visitor visitor = {.env = &unknown, .enter_expr = note_unknown};
  for (int i = 0; i < attrs->count; i++) visit_expr(&visitor, attrs->items[i].value);
  return unknown.found;
}

static void print_block_attrs(Printer *printer, const Block *block) {
  if (!block->annotations.count) return;
  printer_line(printer);
  text_puts(printer->out, printer->options.newer ? "T.sblock_attr(" : "T.block_attr(");
  print_attributes(printer, &block->annotations);
  text_puts(printer->out, ")");
}

void print_block_heading(Printer *printer, const Block *block) {
  print_axes(printer, block);
  if (block->predicate && !expr_is_true(block->predicate)) {
    printer_line(printer);
    text_puts(printer->out, "T.where(");
    print_expr(printer, block->predicate);
    text_puts(printer->out, ")");
  }
  bool is_root = !block->var_count && !strcmp(block->name, "root") && !block->states_regions;
  if (!is_root) print_regions(printer, "reads", block->reads, block->read_count);
  if (!is_root) print_regions(printer, "writes", block->writes, block->write_count);
  bool names_inner = has_unknown_names(printer, &block->annotations);
  if (!names_inner) print_block_attrs(printer, block);
  print_allocations(printer, block);
  print_matches(printer, block);
  if (names_inner) print_block_attrs(printer, block);
  if (!block->init) return;
  printer_line(printer);
  text_puts(printer->out, "with T.init():");
  print_body(printer, block->init);
}

// ---- Variables in the description of a buffer

typedef struct FreeVars {
  Printer *printer;
  Array(Expr *) vars;
} FreeVars;

static bool collect_var(Visitor *visitor, Expr *e) {
  FreeVars *free_vars = visitor->env;
  if (e->op != EXPR_VAR || printer_knows(free_vars->printer, e)) return true;
  if (map_find(&free_vars->printer->offsets, e)) return true; // printed as A.elem_offset
  for (int i = 0; i < free_vars->vars.count; i++)
    if (free_vars->vars.items[i] == e) return true;
  array_push(free_vars->printer->arena, &free_vars->vars, e);
  return true;
}

static FreeVars free_vars_of(Printer *printer, const Buffer *buffer) {
  FreeVars free_vars = {printer, {0}};
  Visitor visitor = {.env = &free_vars, .enter_expr = collect_var};
  for (int i = 0; i < buffer->rank; i++) {
    visit_expr(&visitor, buffer->shape[i]);
    if (buffer->strides) visit_expr(&visitor, buffer->strides[i]);
  }
  if (!printer_offset_is_open(printer, buffer)) visit_expr(&visitor, buffer->offset);
  return free_vars;
}

void print_free_vars(Printer *printer, const Buffer *buffer) {
  FreeVars free_vars = free_vars_of(printer, buffer);
  for (int i = 0; i < free_vars.vars.count; i++) {
    Expr *var = free_vars.vars.items[i];
    printer_line(printer);
    text_printf(printer->out, "%s = T.%s()", printer_define(printer, var, var->as.var->name),
                dtype_name(printer->context, var->type));
  }
}

// ---- Tensor programs

static bool note_handle(Visitor *visitor, Expr *e) {
  Printer *printer = visitor->env;
  if (e->op == EXPR_VAR && e->type.code == TYPE_HANDLE) map_put(&printer->handles, e, e);
  return true;
}

// Finds the handles that the body and the attributes name.
static void find_handles(Printer *printer, const PrimFunc *func) {
  printer->handles = map_new(printer->arena);
  Visitor visitor = {.env = printer, .enter_expr = note_handle};
  for (int i = 0; i < func->attrs.count; i++) visit_expr(&visitor, func->attrs.items[i].value);
  visit_stmt(&visitor, func->body);
}

static void print_param(Printer *printer, const PrimFunc *func, int i) {
  const Expr *var = func->params[i];
  const Buffer *buffer = func->buffers[i];
  Text *out = printer->out;
  bool is_named = buffer && buffer->data != var && map_find(&printer->handles, var);
  if (buffer && !is_named && !free_vars_of(printer, buffer).vars.count) {
    text_printf(out, "%s: T.Buffer(", printer_define_buffer(printer, buffer));
    print_buffer_arguments(printer, buffer, NULL);
    text_puts(out, ")");
  } else if (var->type.code == TYPE_HANDLE && var->as.var->scope && !buffer) {
    text_printf(out, "%s: T.handle(\"%s\", \"%s\")",
                printer_define(printer, var, var->as.var->name),
                dtype_name(printer->context, var->as.var->pointee), var->as.var->scope);
  } else {
    text_printf(out, "%s: T.%s", printer_define(printer, var, var->as.var->name),
                dtype_name(printer->context, var->type));
  }
}

static void print_matched_params(Printer *printer, const PrimFunc *func) {
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *buffer = func->buffers[i];
    if (!buffer || printer_knows(printer, buffer)) continue;
    print_free_vars(printer, buffer);
    printer_note_place(printer, buffer->pos);
    printer_line(printer);
    text_printf(printer->out, "%s = T.match_buffer(%s, ", printer_define_buffer(printer, buffer),
                printer_name(printer, func->params[i], func->params[i]->as.var->name));
    print_buffer_arguments(printer, buffer, NULL);
    text_puts(printer->out, ")");
  }
}

static bool found_block(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= s->kind == STMT_BLOCK;
  return true;
}

static bool has_block(Stmt *s) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_stmt = found_block}, s);
  return found;
}

// The root block, if it may be omitted because the parser adds it again; otherwise NULL.
static const Block *implicit_root(const Stmt *body) {
  if (body->kind != STMT_BLOCK) return NULL;
  const Block *root = body->as.block;
  bool plain = !root->var_count && !strcmp(root->name, "root") && !root->init &&
               !root->states_regions && !root->match_count && !root->annotations.count &&
               (!root->predicate || expr_is_true(root->predicate));
  bool has_inner = has_block(root->body);
  bool inner_root = root->body->kind == STMT_BLOCK && !root->body->as.block->var_count &&
                    !strcmp(root->body->as.block->name, "root");
  return plain && !inner_root && has_inner ? root : NULL;
}

static void print_decorator(Printer *printer, const PrimFunc *func) {
  bool is_private = attrs_int(&func->attrs, "private", 0);
  bool is_s_tir =
      attrs_int(&func->attrs, "s_tir", 0) || (printer->options.newer && has_block(func->body));
  text_puts(printer->out, "@T.prim_func");
  if (is_private || is_s_tir)
    text_printf(printer->out, "(%s%s%s)", is_private ? "private=True" : "",
                is_private && is_s_tir ? ", " : "", is_s_tir ? "s_tir=True" : "");
}

static void print_func_attrs(Printer *printer, const PrimFunc *func) {
  Attrs attrs = attrs_without(printer->arena, func->attrs, "private"); // options of the decorator
  attrs = attrs_without(printer->arena, attrs, "s_tir");
  if (!attrs.count) return;
  printer_line(printer);
  text_puts(printer->out, "T.func_attr(");
  print_attributes(printer, &attrs);
  text_puts(printer->out, ")");
}

void print_prim_func(Printer *printer, const PrimFunc *func) {
  int mark = printer_mark(printer);
  printer->buffers = map_new(printer->arena);
  printer->pointers = map_new(printer->arena);
  Text *out = printer->out;
  find_handles(printer, func);
  print_decorator(printer, func);
  printer_note_place(printer, func->pos);
  printer_line(printer);
  text_printf(out, "def %s(", printer_valid_name(printer, func->name));
  int column = printer_column(printer);
  for (int i = 0; i < func->param_count; i++) {
    Text param = text_new(printer->arena);
    printer->out = &param;
    print_param(printer, func, i);
    printer->out = out;
    print_parameter(printer, column, i == 0, text_string(&param));
  }
  text_puts(out, ")");
  if (func->result.code != TYPE_VOID && !func->implies_result)
    text_printf(out, " -> T.%s", dtype_name(printer->context, func->result));
  text_puts(out, ":");
  printer->indent++;
  bool names_matched = has_unknown_names(printer, &func->attrs);
  if (!names_matched) print_func_attrs(printer, func);
  print_matched_params(printer, func);
  if (names_matched) print_func_attrs(printer, func);
  const Block *root = implicit_root(func->body);
  if (root) print_allocations(printer, root);
  printer->indent--;
  print_body(printer, root ? root->body : func->body);
  printer_reset(printer, mark);
}
