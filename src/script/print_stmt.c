// SPDX-License-Identifier: Apache-2.0
// Prints statements. A statement with a scope is printed without `with` when its scope is the rest
// of the surrounding lines.
#include "ir/intrinsic.h"
#include "script/printer.h"

static void body_lines(Printer *printer, const Stmt *s) {
  if (s->kind != STMT_SEQ) {
    print_stmt(printer, s, true);
    return;
  }
  for (int i = 0; i < s->as.seq.count; i++)
    print_stmt(printer, s->as.seq.items[i], i + 1 == s->as.seq.count);
}

void print_body(Printer *printer, const Stmt *s) {
  int mark = printer_mark(printer);
  printer->indent++;
  size_t before = printer->out->size;
  body_lines(printer, s);
  if (printer->out->size == before) {
    printer_line(printer);
    text_puts(printer->out, "pass");
  }
  printer->indent--;
  printer_reset(printer, mark);
}

// ---- Scopes: the rest of the lines, or an indented suite

// Prints the body after the scope's text: as the rest of these lines, or as an indented suite.
static void scope_body(Printer *printer, const Stmt *body, bool is_bare) {
  if (is_bare) {
    body_lines(printer, body);
    return;
  }
  text_puts(printer->out, ":");
  print_body(printer, body);
}

// `name = call` or `with call as name`; the text of the call is printed already, with earlier
// names.
static void named_scope(Printer *printer, Text *call, Str name, const Stmt *body, bool is_last) {
  if (is_last)
    text_printf(printer->out, "%s = %s", name, text_string(call));
  else
    text_printf(printer->out, "with %s as %s", text_string(call), name);
  scope_body(printer, body, is_last);
}

// ---- Loops

static const char *loop_spelling(const Stmt *s) {
  static const char *const names[] = {[LOOP_SERIAL] = "T.serial",
                                      [LOOP_PARALLEL] = "T.parallel",
                                      [LOOP_VECTORIZED] = "T.vectorized",
                                      [LOOP_UNROLLED] = "T.unroll",
                                      [LOOP_THREAD] = "T.thread_binding"};
  bool is_plain = s->as.loop.kind == LOOP_SERIAL && !s->as.loop.annotations.count &&
                  expr_is_int(s->as.loop.min, 0);
  return is_plain ? "range" : names[s->as.loop.kind];
}

static bool is_plain_loop(const Stmt *s) {
  return s->kind == STMT_FOR && s->as.loop.kind == LOOP_SERIAL && !s->as.loop.annotations.count &&
         expr_is_int(s->as.loop.min, 0);
}

// The number of plain, directly nested loops from `s` on whose extents do not depend on one
// another.
static int grid_depth(const Stmt *s) {
  int depth = 0;
  for (const Stmt *inner = s; is_plain_loop(inner); inner = inner->as.loop.body, depth++)
    for (const Stmt *outer = s; outer != inner; outer = outer->as.loop.body)
      if (expr_uses(inner->as.loop.extent, outer->as.loop.var)) return depth;
  return depth;
}

static void define_loop(Printer *printer, const Stmt *s) {
  Str name = printer_define(printer, s->as.loop.var, s->as.loop.var->as.var->name);
  map_put(&printer->loops, s->as.loop.var, s);
  text_puts(printer->out, name);
}

static void print_grid(Printer *printer, const Stmt *s, int depth) {
  const Stmt *loop = s;
  text_puts(printer->out, "for ");
  for (int i = 0; i < depth; i++, loop = loop->as.loop.body) {
    if (i) text_puts(printer->out, ", ");
    define_loop(printer, loop);
  }
  text_puts(printer->out, " in T.grid(");
  loop = s;
  for (int i = 0; i < depth; i++, loop = loop->as.loop.body) {
    if (i) text_puts(printer->out, ", ");
    print_expr(printer, loop->as.loop.extent);
  }
  text_puts(printer->out, "):");
  print_body(printer, loop);
}

static void print_single_loop(Printer *printer, const Stmt *s) {
  Text *out = printer->out;
  text_puts(out, "for ");
  define_loop(printer, s);
  text_printf(out, " in %s(", loop_spelling(s));
  if (!expr_is_int(s->as.loop.min, 0)) {
    print_expr(printer, s->as.loop.min);
    text_puts(out, ", ");
    print_stop(printer, s->as.loop.min, s->as.loop.extent);
  } else {
    print_expr(printer, s->as.loop.extent);
  }
  if (s->as.loop.kind == LOOP_THREAD) {
    text_puts(out, ", thread=");
    print_string(printer, s->as.loop.thread ? s->as.loop.thread : "");
  }
  if (s->as.loop.annotations.count) {
    text_puts(out, ", annotations=");
    print_attributes(printer, &s->as.loop.annotations);
  }
  text_puts(out, "):");
  print_body(printer, s->as.loop.body);
}

// tx = T.launch_thread("threadIdx.x", 128), for the rest of these lines or `with` an own suite.
static void print_launch(Printer *printer, const Stmt *s, bool is_last) {
  int mark = printer_mark(printer);
  Text call = text_new(printer->arena), *out = printer->out;
  printer->out = &call;
  text_puts(&call, "T.launch_thread(");
  print_string(printer, s->as.loop.thread);
  text_puts(&call, ", ");
  print_expr(printer, s->as.loop.extent);
  text_puts(&call, ")");
  printer->out = out;
  map_put(&printer->loops, s->as.loop.var, s);
  named_scope(printer, &call, printer_define(printer, s->as.loop.var, s->as.loop.var->as.var->name),
              s->as.loop.body, is_last);
  if (!is_last) printer_reset(printer, mark);
}

static void print_for(Printer *printer, const Stmt *s, bool is_last) {
  if (s->as.loop.is_launch) {
    print_launch(printer, s, is_last);
    return;
  }
  int mark = printer_mark(printer), depth = grid_depth(s);
  if (depth > 1)
    print_grid(printer, s, depth);
  else
    print_single_loop(printer, s);
  printer_reset(printer, mark);
}

// ---- Plain statements

static void print_store(Printer *printer, const Stmt *s, bool is_last) {
  (void)is_last;
  print_target(printer, s);
  text_puts(printer->out, " = ");
  print_expr(printer, s->as.store.value);
}

static void print_branch(Printer *printer, const Stmt *s, const char *keyword) {
  text_printf(printer->out, "%s ", keyword);
  print_condition(printer, s->as.branch.condition);
  text_puts(printer->out, ":");
  print_body(printer, s->as.branch.then_body);
  const Stmt *other = s->as.branch.else_body;
  if (!other) return;
  printer_line(printer);
  if (other->kind == STMT_IF) {
    print_branch(printer, other, "elif");
  } else {
    text_puts(printer->out, "else:");
    print_body(printer, other);
  }
}

static void print_if(Printer *printer, const Stmt *s, bool is_last) {
  (void)is_last;
  print_branch(printer, s, "if");
}

static void print_while(Printer *printer, const Stmt *s, bool is_last) {
  (void)is_last;
  text_puts(printer->out, "while ");
  print_condition(printer, s->as.repeat.condition);
  text_puts(printer->out, ":");
  print_body(printer, s->as.repeat.body);
}

// `return x`, and in the classic dialect also `break` and `continue`.
static bool print_leave(Printer *printer, const Expr *e) {
  Jump jump = expr_jump(e);
  if (jump == JUMP_NONE || (printer->options.newer && jump != JUMP_RETURN)) return false;
  text_puts(printer->out, jump_text(jump));
  if (jump != JUMP_RETURN) return true;
  text_puts(printer->out, " ");
  print_expr(printer, e->args[0]);
  return true;
}

static void print_evaluate(Printer *printer, const Stmt *s, bool is_last) {
  (void)is_last;
  const Expr *e = s->as.evaluate;
  if (print_leave(printer, e)) return;
  bool bare =
      op_table[e->op].flags & OP_EFFECT || e->op == EXPR_CALL_PURE || e->op == EXPR_INTRINSIC_PURE;
  if (!bare) text_puts(printer->out, "T.evaluate(");
  print_expr(printer, e);
  if (!bare) text_puts(printer->out, ")");
}

// ---- Scopes

// In the newer dialect, a variable that is declared without T.let may be assigned again.
static void print_let_type(Printer *printer, const Expr *var) {
  const char *type = dtype_name(printer->context, var->type);
  const Var *v = var->as.var;
  if (var->type.code == TYPE_HANDLE && v->scope && printer->options.newer)
    type = str_format(printer->context, "handle(\"%s\", \"%s\")",
                      dtype_name(printer->context, v->pointee), v->scope);
  if (printer->options.newer)
    text_printf(printer->out, ": T.let[T.%s]", type);
  else if (var->type.code != TYPE_HANDLE)
    text_printf(printer->out, ": T.%s", type);
}

static bool names_value(const Expr *e) {
  return e->op == EXPR_INTRINSIC && intrinsic_find(e->as.s)->flags & INTRINSIC_NAMES;
}

// The axis of a number among several: T.cta_id([2, 3], 1); -1 where there is one extent only.
static int axis_of_number(const Expr *e) {
  bool is_one = e->count < 2 || e->args[0]->op != EXPR_TUPLE || e->args[1]->op != EXPR_INT;
  return is_one ? -1 : (int)e->args[1]->as.i;
}

// The number of nested definitions, from `s` on, that `x, y = T.cta_id([2, 3])` makes; 0 for none.
static int numbers_at(const Stmt *s) {
  const Expr *first = s->as.let.value;
  int count = first->count ? first->args[0]->count : 0;
  if (axis_of_number(first) != 0) return 0;
  for (int i = 1; i < count; i++) {
    s = s->as.let.body;
    const Expr *e = s->kind == STMT_LET ? s->as.let.value : NULL;
    bool fits = e && names_value(e) && e->as.s == first->as.s && e->count == first->count &&
                e->args[0] == first->args[0] && axis_of_number(e) == i &&
                (e->count < 3 || e->args[2] == first->args[2]);
    if (!fits) return 0;
  }
  return count;
}

// x = T.thread_id([32]), or x, y = T.cta_id([2, 3])
static void print_numbers(Printer *printer, const Stmt *s) {
  int count = numbers_at(s);
  Expr *value = s->as.let.value, *parts[4] = {NULL};
  Text text = text_new(printer->arena), *out = printer->out;
  for (int i = 0, at = 0; i < value->count; i++)
    if (!count || i != 1) parts[at++] = value->args[i];
  printer->out = &text;
  print_expr(printer, expr_raw(printer->context, value->op, value->type, value->as.s, parts,
                               value->count - (count > 0)));
  printer->out = out;
  for (int i = 0; i == 0 || i < count; i++) {
    const Expr *var = s->as.let.var;
    text_printf(out, i ? ", %s" : "%s", printer_define(printer, var, var->as.var->name));
    if (i + 1 < count) s = s->as.let.body;
  }
  text_printf(out, " = %s", text_string(&text));
  scope_body(printer, s->as.let.body, true);
}

static void print_let(Printer *printer, const Stmt *s, bool is_last) {
  if (is_last && names_value(s->as.let.value)) {
    print_numbers(printer, s);
    return;
  }
  int mark = printer_mark(printer);
  Expr *var = s->as.let.var, *value = s->as.let.value;
  Text *out = printer->out;
  if (!is_last) {
    text_puts(out, "with T.LetStmt(");
    print_expr(printer, value);
    text_printf(out, ") as %s", printer_define(printer, var, var->as.var->name));
  } else {
    // The value uses the names before the definition, but its text comes after the new name.
    Text text = text_new(printer->arena);
    printer->out = &text;
    print_expr(printer, value);
    printer->out = out;
    text_puts(out, printer_define(printer, var, var->as.var->name));
    print_let_type(printer, var);
    text_printf(out, " = %s", text_string(&text));
  }
  scope_body(printer, s->as.let.body, is_last);
  if (!is_last) printer_reset(printer, mark);
}

// A kind of error and its parts: ("TypeError", ["expected ", "1"]).
static void print_message(Printer *printer, const Expr *e) {
  bool is_pair = e->op == EXPR_TUPLE && e->count == 2;
  if (!is_pair) {
    print_expr(printer, e);
    return;
  }
  text_puts(printer->out, "(");
  print_expr(printer, e->args[0]);
  text_puts(printer->out, ", ");
  print_expr(printer, e->args[1]);
  text_puts(printer->out, ")");
}

static void print_assert(Printer *printer, const Stmt *s, bool is_last) {
  const Stmt *body = s->as.check.body;
  text_puts(printer->out, body && !is_last ? "with T.Assert(" : body ? "T.Assert(" : "assert ");
  print_condition(printer, s->as.check.condition);
  text_puts(printer->out, ", ");
  print_message(printer, s->as.check.message);
  if (!body) return;
  text_puts(printer->out, ")");
  scope_body(printer, body, is_last);
}

static bool is_name(const char *text) {
  bool ok = char_is_letter(*text) || *text == '_';
  for (; ok && *text; text++)
    ok = char_is_letter(*text) || *text == '_' || (*text >= '0' && *text <= '9');
  return ok;
}

// T.hint("message", key=value), where it can be written so.
static bool is_hint(const Stmt *s) {
  const Expr *hints = s->as.attr.node;
  if (strcmp(s->as.attr.key, "tirx_hint") != 0 || !hints || hints->op != EXPR_DICT) return false;
  if (!expr_is_int(s->as.attr.value, 1)) return false;
  for (int i = 0; i < hints->count; i += 2) {
    const char *key = hints->args[i]->as.s;
    bool is_message = !strcmp(key, "message");
    if (is_message && hints->args[i + 1]->op != EXPR_STRING) return false;
    if (!is_message && !is_name(key)) return false;
  }
  return true;
}

static void print_hint(Printer *printer, const Expr *hints) {
  const char *before = "";
  text_puts(printer->out, "T.hint(");
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < hints->count; i += 2) {
      const char *key = hints->args[i]->as.s;
      if (!strcmp(key, "message") != (pass == 0)) continue;
      text_puts(printer->out, before);
      if (pass) text_printf(printer->out, "%s=", key);
      print_attribute_value(printer, hints->args[i + 1]);
      before = ", ";
    }
  text_puts(printer->out, ")");
}

static bool is_realize(const Stmt *s) {
  const Expr *region = s->as.attr.node;
  return !strcmp(s->as.attr.key, "realize_scope") && region && region->op == EXPR_OBJECT &&
         !strcmp(region->as.s, "region") && s->as.attr.value->op == EXPR_STRING;
}

static void print_realize(Printer *printer, const Stmt *s) {
  text_puts(printer->out, "T.realize(");
  print_attribute_value(printer, s->as.attr.node);
  text_puts(printer->out, ", ");
  print_attribute_value(printer, s->as.attr.value);
  text_puts(printer->out, ")");
}

static void print_attr(Printer *printer, const Stmt *s, bool is_last) {
  Text *out = printer->out;
  const Expr *var = expr_iter_var(s->as.attr.node);
  printer_line(printer);
  if (is_hint(s) || is_realize(s)) {
    if (!is_last) text_puts(out, "with ");
    if (is_hint(s))
      print_hint(printer, s->as.attr.node);
    else
      print_realize(printer, s);
    scope_body(printer, s->as.attr.body, is_last);
    return;
  }
  if (var && !printer_knows(printer, var)) {
    text_printf(out, "%s = T.%s()", printer_define(printer, var, var->as.var->name),
                dtype_name(printer->context, var->type));
    printer_line(printer);
  }
  text_puts(out, is_last ? "T.attr(" : "with T.attr(");
  if (!s->as.attr.node && printer->options.newer) {
    print_attributes(printer, &(Attrs){&(Attr){s->as.attr.key, s->as.attr.value}, 1});
    text_puts(out, ")");
    scope_body(printer, s->as.attr.body, is_last);
    return;
  }
  if (s->as.attr.node)
    print_attribute_value(printer, s->as.attr.node);
  else
    text_puts(out, "None");
  text_puts(out, ", ");
  print_string(printer, s->as.attr.key);
  text_puts(out, ", ");
  print_attribute_value(printer, s->as.attr.value);
  text_puts(out, ")");
  scope_body(printer, s->as.attr.body, is_last);
}

static void print_declare(Printer *printer, const Stmt *s, bool is_last) {
  int mark = printer_mark(printer);
  const Buffer *buffer = s->as.declare.buffer;
  Text call = text_new(printer->arena), *out = printer->out;
  print_free_vars(printer, buffer);
  printer_line(printer);
  printer->out = &call;
  text_puts(&call, "T.decl_buffer(");
  print_buffer_arguments(printer, buffer, buffer->data);
  text_puts(&call, ")");
  printer->out = out;
  Str name = printer_define_buffer(printer, buffer);
  named_scope(printer, &call, name, s->as.declare.body, is_last);
  if (!is_last) printer_reset(printer, mark);
}

// True for an allocation whose body declares one buffer of exactly its size.
static bool is_simple_allocation(const Stmt *s) {
  const Stmt *body = s->as.allocate.body;
  if (body->kind != STMT_DECL_BUFFER) return false;
  const Buffer *buffer = body->as.declare.buffer;
  bool same = buffer->data == s->as.allocate.var && buffer->rank == s->as.allocate.rank &&
              dtype_equal(buffer->type, s->as.allocate.type) && buffer->data->as.var->scope &&
              !strcmp(buffer->data->as.var->scope, buffer->scope);
  for (int i = 0; same && i < buffer->rank; i++)
    same = buffer->shape[i] == s->as.allocate.extents[i];
  return same;
}

static void print_extents(Printer *printer, const Stmt *s) {
  text_puts(printer->out, "[");
  for (int i = 0; i < s->as.allocate.rank; i++) {
    if (i) text_puts(printer->out, ", ");
    print_expr(printer, s->as.allocate.extents[i]);
  }
  text_puts(printer->out, "]");
}

// x: T.int32, the variable of the newer dialect that a simple allocation stands for.
static void print_variable(Printer *printer, const Stmt *s) {
  const Buffer *buffer = s->as.allocate.body->as.declare.buffer;
  Str name = printer_define_buffer(printer, buffer);
  text_printf(printer->out, "%s: T.%s", name, dtype_name(printer->context, buffer->type));
  scope_body(printer, s->as.allocate.body->as.declare.body, true);
}

static void print_allocate(Printer *printer, const Stmt *s, bool is_last) {
  int mark = printer_mark(printer);
  bool has_annotations = s->as.allocate.annotations.count;
  bool simple = is_simple_allocation(s) && (printer->options.newer || !has_annotations);
  const Stmt *body = simple ? s->as.allocate.body->as.declare.body : s->as.allocate.body;
  const Expr *var = s->as.allocate.var;
  Text call = text_new(printer->arena), *out = printer->out;
  bool is_variable = simple && is_last && !has_annotations &&
                     printer_is_variable(printer, s->as.allocate.body->as.declare.buffer);
  if (is_variable) {
    print_variable(printer, s);
    return;
  }
  printer->out = &call;
  const char *declaration = printer->options.newer ? "T.alloc_buffer(" : "T.decl_buffer(";
  text_puts(&call, simple ? declaration : "T.allocate(");
  if (simple) {
    print_buffer_arguments(printer, s->as.allocate.body->as.declare.buffer, NULL);
  } else {
    print_extents(printer, s);
    text_printf(&call, ", \"%s\", \"%s\"", dtype_name(printer->context, s->as.allocate.type),
                var->as.var->scope ? var->as.var->scope : "global");
  }
  if (has_annotations) {
    text_puts(&call, ", annotations=");
    print_attributes(printer, &s->as.allocate.annotations);
  }
  text_puts(&call, ")");
  printer->out = out;
  Str name = simple ? printer_define_buffer(printer, s->as.allocate.body->as.declare.buffer)
                    : printer_define_pointer(printer, var);
  named_scope(printer, &call, name, body, is_last);
  if (!is_last) printer_reset(printer, mark);
}

static void print_allocate_const(Printer *printer, const Stmt *s, bool is_last) {
  int mark = printer_mark(printer);
  const ConstData *data = s->as.allocate_const.data;
  Text call = text_new(printer->arena), *out = printer->out;
  printer->out = &call;
  text_puts(&call, "T.allocate_const(");
  const char *name = print_contents(printer, s->as.allocate_const.data);
  if (name)
    print_string(printer, name);
  else
    print_const_data(printer, data);
  text_printf(&call, ", \"%s\", [", dtype_name(printer->context, data->type));
  for (int i = 0; i < data->rank; i++)
    text_printf(&call, "%s%lld", i ? ", " : "", (long long)data->shape[i]);
  text_puts(&call, "])");
  printer->out = out;
  const Expr *var = s->as.allocate_const.var;
  named_scope(printer, &call, printer_define(printer, var, var->as.var->name),
              s->as.allocate_const.body, is_last);
  if (!is_last) printer_reset(printer, mark);
}

// ---- Blocks

static void print_block(Printer *printer, const Stmt *s, bool is_last) {
  (void)is_last;
  const Block *block = s->as.block;
  int mark = printer_mark(printer);
  text_puts(printer->out, printer->options.newer ? "with T.sblock(" : "with T.block(");
  print_string(printer, block->name);
  text_puts(printer->out, "):");
  printer->indent++;
  size_t before = printer->out->size;
  print_block_heading(printer, block);
  body_lines(printer, block->body);
  if (printer->out->size == before) {
    printer_line(printer);
    text_puts(printer->out, "pass");
  }
  printer->indent--;
  printer_reset(printer, mark);
}

void print_stmt(Printer *printer, const Stmt *s, bool is_last) {
  static void (*const forms[])(Printer *, const Stmt *, bool) = {
      [STMT_FOR] = print_for,
      [STMT_STORE] = print_store,
      [STMT_LET] = print_let,
      [STMT_IF] = print_if,
      [STMT_WHILE] = print_while,
      [STMT_ASSERT] = print_assert,
      [STMT_EVALUATE] = print_evaluate,
      [STMT_BLOCK] = print_block,
      [STMT_ALLOCATE] = print_allocate,
      [STMT_ALLOCATE_CONST] = print_allocate_const,
      [STMT_DECL_BUFFER] = print_declare,
      [STMT_ATTR] = print_attr,
  };
  if (s->kind == STMT_SEQ) {
    body_lines(printer, s);
    return;
  }
  if (printer->options.annotate) print_logical(printer, s);
  printer_note_place(printer, s->pos);
  if (s->kind != STMT_DECL_BUFFER && s->kind != STMT_ATTR) printer_line(printer);
  forms[s->kind](printer, s, is_last);
}
