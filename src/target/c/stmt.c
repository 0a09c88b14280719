// SPDX-License-Identifier: Apache-2.0
// Statements in C.
#include "target/c/emit.h"

static void block(CEmit *emit, const Stmt *s) {
  emit->indent++;
  c_stmt(emit, s);
  emit->indent--;
  c_line(emit, "}");
}

static void for_loop(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  const char *type = c_type(emit->unit, s->as.loop.var->type);
  const char *min = c_index(emit, s->as.loop.min);
  const char *end = c_index(
      emit, expr_add(emit->context, s->as.loop.min, s->as.loop.extent));
  int64_t unroll = attrs_int(&s->as.loop.annotations, "pleat.unroll", 1);
  const char *name = c_name(emit, s->as.loop.var);
  c_forget(emit, mark);
  c_line(emit, "#pragma GCC unroll %d", (int)MAX_OF(unroll, 1));
  c_line(emit, "for (%s %s = %s; %s < %s; %s++) {", type, name, min, name, end, name);
  block(emit, s->as.loop.body);
}

static void store(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  c_store(emit, s);
  c_forget(emit, mark);
}

static void let(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  Expr *value = s->as.let.value;
  const char *text = c_expr(emit, value), *type = c_type(emit->unit, value->type);
  if (dtype_is_bool(value->type) && value->type.lanes > 1) {
    int bits = c_mask_bits(emit, value);
    map_put(&emit->mask_bits, s->as.let.var, (intptr_t)bits);
    type = c_mask_type(emit->unit, bits, value->type.lanes);
  }
  c_forget(emit, mark);
  c_line(emit, "const %s %s = %s;", type, c_name(emit, s->as.let.var), text);
  c_stmt(emit, s->as.let.body);
}

static void if_else(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  const char *condition = c_expr(emit, s->as.branch.condition);
  c_forget(emit, mark);
  c_line(emit, "if (%s) {", condition);
  block(emit, s->as.branch.then_body);
  if (!s->as.branch.else_body) return;
  c_line(emit, "else {");
  block(emit, s->as.branch.else_body);
}

static void while_loop(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  c_line(emit, "for (;;) {");
  emit->indent++;
  const char *condition = c_expr(emit, s->as.repeat.condition);
  c_forget(emit, mark);
  c_line(emit, "if (!%s) break;", condition);
  emit->indent--;
  block(emit, s->as.repeat.body);
}

static void assert_of(CEmit *emit, const Stmt *s) {
  if (s->as.check.body) c_stmt(emit, s->as.check.body);
}

static void evaluate(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  c_line(emit, "(void)%s;", c_expr(emit, s->as.evaluate));
  c_forget(emit, mark);
}

static void sequence(CEmit *emit, const Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) {
    bool scoped = s->as.seq.items[i]->kind == STMT_LET || s->as.seq.items[i]->kind == STMT_ALLOCATE;
    if (scoped) c_line(emit, "{");
    if (scoped) block(emit, s->as.seq.items[i]);
    else c_stmt(emit, s->as.seq.items[i]);
  }
}

static void allocate(CEmit *emit, const Stmt *s) {
  int64_t count = 1, extent = 0;
  for (int i = 0; i < s->as.allocate.rank; i++) {
    if (!expr_as_int(s->as.allocate.extents[i], &extent))
      bug(emit->context, "an allocation of variable size in lowered code");
    count *= extent;
  }
  const char *type = c_memory_type(emit->unit, s->as.allocate.type);
  const char *name = c_name(emit, s->as.allocate.var);
  if (count == 1) {
    map_put(&emit->registers, s->as.allocate.var, name);
    c_line(emit, "%s %s;", type, name);
  } else {
    c_line(emit, "%s %s[%lld] __attribute__((aligned(64)));", type, name, (long long)count);
  }
  c_stmt(emit, s->as.allocate.body);
}

// A table of bytes beside the functions.
static void allocate_const(CEmit *emit, const Stmt *s) {
  const ConstData *data = s->as.allocate_const.data;
  Text *text = &emit->unit->types;
  int number = emit->unit->next++;
  const uint8_t *bytes = data->data;
  text_printf(text, "static const uint8_t constant%d[%zu] __attribute__((aligned(64))) = {", number,
              data->bytes);
  for (size_t i = 0; i < data->bytes; i++)
    text_printf(text, "%s%d,", i % 24 ? "" : "\n  ", bytes[i]);
  text_puts(text, "\n};\n");
  const char *type = c_memory_type(emit->unit, dtype_lanes(data->type, 1));
  const char *name = c_name(emit, s->as.allocate_const.var);
  c_line(emit, "const %s *const %s = (const void *)constant%d;", type, name, number);
  c_stmt(emit, s->as.allocate_const.body);
}

static void declare(CEmit *emit, const Stmt *s) {
  c_stmt(emit, s->as.declare.body);
}

static void attribute(CEmit *emit, const Stmt *s) {
  c_stmt(emit, s->as.attr.body);
}

static void no_block(CEmit *emit, const Stmt *s) {
  bug(emit->context, "block %s in lowered code", s->as.block->name);
}

static void (*const emitters[])(CEmit *, const Stmt *) = {
    [STMT_FOR] = for_loop,
    [STMT_STORE] = store,
    [STMT_LET] = let,
    [STMT_IF] = if_else,
    [STMT_WHILE] = while_loop,
    [STMT_ASSERT] = assert_of,
    [STMT_EVALUATE] = evaluate,
    [STMT_SEQ] = sequence,
    [STMT_BLOCK] = no_block,
    [STMT_ALLOCATE] = allocate,
    [STMT_ALLOCATE_CONST] = allocate_const,
    [STMT_DECL_BUFFER] = declare,
    [STMT_ATTR] = attribute,
};

void c_stmt(CEmit *emit, const Stmt *s) {
  emitters[s->kind](emit, s);
}
