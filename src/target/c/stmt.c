// SPDX-License-Identifier: Apache-2.0
// Writes statements as C. Registers become variables, and above a statement stand the logical
// accesses that it came from:
//     // C[n, k, h, w] <- A[n, c, h, w]
#include "target/c/emit.h"

#include "script/script.h"

enum { COMMENT_WIDTH = 96 };

static void begin_statement(CEmit *emit) {
  emit->uses = map_new(emit->arena);
}

// ---- Comments ----------------------------------------------------------------------------------

// The length of the part of a list of accesses that goes into one line, which ends behind a comma
// where it is not the last one.
static int line_length(const char *accesses, int width) {
  int length = (int)strlen(accesses), cut = 0;
  if (length <= width) return length;
  for (int i = 2; i < length && (i <= width || !cut); i++)
    if (!strncmp(accesses + i - 2, "], ", 3)) cut = i;
  return cut ? cut : length;
}

static void comment_accesses(CEmit *emit, const Stmt *s) {
  if (!emit->module->comments || s->kind == STMT_ASSERT) return;
  const char *accesses = script_logical_text(emit->context, s);
  int width = MAX_OF(COMMENT_WIDTH - 3 - 2 * emit->depth, 20);
  for (const char *indent = ""; *accesses; indent = "  ") {
    int length = line_length(accesses, width - (int)strlen(indent));
    c_line(emit, "// %s%.*s", indent, length, accesses);
    accesses += length + (accesses[length] == ' ');
  }
}

// ---- Loops -------------------------------------------------------------------------------------

static const char *loop_hint(CEmit *emit, const Stmt *s) {
  int64_t count = attrs_int(&s->as.loop.annotations, "pleat.unroll", 1);
  return arena_printf(emit->arena, "UNROLL(%d)", (int)MAX_OF(count, 1));
}

static void break_unless(CEmit *emit, Expr *condition) {
  int mark = c_mark(emit);
  begin_statement(emit);
  c_count_uses(emit, condition);
  CValue value = c_expr(emit, condition);
  c_line(emit, "if (!%s) break;", c_operand(emit, value, C_NAME));
  c_forget(emit, mark);
}

static void emit_for(CEmit *emit, const Stmt *s) {
  begin_statement(emit);
  Expr *var = s->as.loop.var;
  int64_t extent = 0;
  int mark = c_mark(emit);
  bool constant = expr_as_int(s->as.loop.extent, &extent);
  if (constant && extent <= 0) return;
  const char *type = c_type(emit->module, var->type), *name = c_name(emit, var->as.var->name);
  const char *min = c_index(emit, s->as.loop.min).text;
  map_put(&emit->vars, var, name);
  if (constant && extent == 1) {
    c_line(emit, "{");
    c_line(emit, "  const %s %s = %s;", type, name, min);
  } else {
    Expr *end = expr_add(emit->context, s->as.loop.min, s->as.loop.extent);
    const char *last = c_hold(emit, c_index(emit, end), var->type);
    c_line(emit, "%s", loop_hint(emit, s));
    c_line(emit, "for (%s %s = %s; %s < %s; %s++) {", type, name, min, name, last, name);
  }
  c_forget(emit, mark);
  emit->depth++;
  bool ends = lower_loop_ends(s) && !(constant && extent == 1);
  if (ends) comment_accesses(emit, s->as.loop.body);
  if (ends) break_unless(emit, s->as.loop.body->as.branch.condition);
  c_stmt(emit, ends ? s->as.loop.body->as.branch.then_body : s->as.loop.body);
  if (constant && extent == 1 && !c_uses(emit->module, s->as.loop.body, var))
    c_line(emit, "(void)%s;", name);
  emit->depth--;
  c_line(emit, "}");
}

static void emit_while(CEmit *emit, const Stmt *s) {
  c_line(emit, "for (;;) {");
  emit->depth++;
  break_unless(emit, s->as.repeat.condition);
  c_stmt(emit, s->as.repeat.body);
  emit->depth--;
  c_line(emit, "}");
}

// ---- Others ------------------------------------------------------------------------------------

static void emit_if(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  begin_statement(emit);
  c_count_uses(emit, s->as.branch.condition);
  const char *condition = c_text(emit, s->as.branch.condition);
  c_forget(emit, mark);
  c_line(emit, "if (%s) {", condition);
  emit->depth++;
  c_stmt(emit, s->as.branch.then_body);
  emit->depth--;
  if (s->as.branch.else_body) {
    c_line(emit, "} else {");
    emit->depth++;
    c_stmt(emit, s->as.branch.else_body);
    emit->depth--;
  }
  c_line(emit, "}");
}

typedef struct Wanted { // whether `var` is needed as a value, and not only in indices and bounds
  Arena *arena;
  Expr *var;
  bool as_value;
} Wanted;

static bool only_index(Arena *arena, Stmt *body, Expr *var);

static bool wanted_expr(Visitor *visitor, Expr *e) {
  Wanted *wanted = visitor->env;
  if (e == wanted->var) wanted->as_value = true;
  return e->op != EXPR_LOAD;
}

static bool wanted_stmt(Visitor *visitor, Stmt *s) {
  Wanted *wanted = visitor->env;
  Expr *next = s->kind == STMT_LET ? s->as.let.var : NULL;
  if (wanted->as_value) return false;
  switch (s->kind) {
  case STMT_STORE: visit_expr(visitor, s->as.store.value); return false;
  case STMT_FOR: visit_stmt(visitor, s->as.loop.body); return false;
  case STMT_LET:
    if (expr_uses(s->as.let.value, wanted->var) &&
        !(dtype_is_int(next->type) && only_index(wanted->arena, s->as.let.body, next)))
      visit_expr(visitor, s->as.let.value);
    visit_stmt(visitor, s->as.let.body);
    return false;
  case STMT_IF:
  case STMT_WHILE:
  case STMT_ASSERT:
  case STMT_EVALUATE:
  case STMT_SEQ:
  case STMT_BLOCK:
  case STMT_ALLOCATE:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR: break;
  }
  return true;
}

// Arithmetic for indices stays inside its type, so it need not wrap.
static bool only_index(Arena *arena, Stmt *body, Expr *var) {
  ArenaMark mark = arena_mark(arena);
  Wanted wanted = {.arena = arena, .var = var};
  Map once = map_new(arena);
  Visitor visitor = {
      .env = &wanted, .enter_expr = wanted_expr, .enter_stmt = wanted_stmt, .once = &once};
  visit_stmt(&visitor, body);
  arena_reset(arena, mark);
  return !wanted.as_value;
}

static void emit_let(CEmit *emit, const Stmt *s) {
  Expr *var = s->as.let.var;
  int mark = c_mark(emit);
  begin_statement(emit);
  c_count_uses(emit, s->as.let.value);
  bool index = dtype_is_int(var->type) && only_index(emit->arena, s->as.let.body, var);
  const char *value = index ? c_index(emit, s->as.let.value).text : c_text(emit, s->as.let.value);
  const char *name = c_name(emit, var->as.var->name);
  c_forget(emit, mark);
  c_line(emit, "const %s %s = %s;", c_type(emit->module, var->type), name, value);
  if (!c_uses(emit->module, s->as.let.body, var)) c_line(emit, "(void)%s;", name);
  map_put(&emit->vars, var, name);
  c_stmt(emit, s->as.let.body);
}

static void emit_store(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  begin_statement(emit);
  for (int i = 0; i < s->as.store.rank; i++) c_count_uses(emit, s->as.store.indices[i]);
  c_count_uses(emit, s->as.store.value);
  c_store(emit, s);
  c_forget(emit, mark);
}

static void emit_evaluate(CEmit *emit, const Stmt *s) {
  int mark = c_mark(emit);
  if (!s->as.evaluate->count) return;
  begin_statement(emit);
  c_count_uses(emit, s->as.evaluate);
  bool effect = s->as.evaluate->op == EXPR_CALL || s->as.evaluate->op == EXPR_PREFETCH;
  c_line(emit, "%s%s;", effect ? "" : "(void)",
         c_operand(emit, c_expr(emit, s->as.evaluate), C_UNARY));
  c_forget(emit, mark);
}

static void emit_seq(CEmit *emit, const Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) c_stmt(emit, s->as.seq.items[i]);
}

static bool is_register(const Stmt *s, int64_t count) {
  return count == 1 && !strcmp(s->as.allocate.var->as.var->scope, "local");
}

// How the first access below a statement uses a register.
typedef enum FirstUse { USED_NOT, USED_STORED, USED_OTHERWISE } FirstUse;

static FirstUse first_use(Context *context, Stmt *s, const Expr *var);

static FirstUse first_after(Context *context, Expr *value, Stmt *s, const Expr *var) {
  if (stmt_uses(stmt_evaluate(context, value), var)) return USED_OTHERWISE;
  return s ? first_use(context, s, var) : USED_NOT;
}

static FirstUse first_of_branches(Context *context, const Stmt *s, const Expr *var) {
  FirstUse then_use = first_after(context, s->as.branch.condition, s->as.branch.then_body, var);
  Stmt *other = s->as.branch.else_body;
  FirstUse else_use = other ? first_use(context, other, var) : USED_NOT;
  return then_use == else_use ? then_use : USED_OTHERWISE;
}

static FirstUse first_in_loop(Context *context, const Stmt *s, const Expr *var) {
  int64_t extent;
  FirstUse use = first_after(context, s->as.loop.extent, s->as.loop.body, var);
  bool runs = expr_as_int(s->as.loop.extent, &extent) && extent > 0;
  return runs || use == USED_NOT ? use : USED_OTHERWISE;
}

// USED_STORED only where the store sets the whole register, whatever it held before.
static FirstUse first_use(Context *context, Stmt *s, const Expr *var) {
  FirstUse use = USED_NOT;
  switch (s->kind) {
  case STMT_STORE:
    use = first_after(context, s->as.store.value, NULL, var);
    return use == USED_NOT && s->as.store.buffer->data == var ? USED_STORED : use;
  case STMT_SEQ:
    for (int i = 0; i < s->as.seq.count && use == USED_NOT; i++)
      use = first_use(context, s->as.seq.items[i], var);
    return use;
  case STMT_FOR: return first_in_loop(context, s, var);
  case STMT_LET: return first_after(context, s->as.let.value, s->as.let.body, var);
  case STMT_ALLOCATE: return first_use(context, s->as.allocate.body, var);
  case STMT_DECL_BUFFER: return first_use(context, s->as.declare.body, var);
  case STMT_IF: return first_of_branches(context, s, var);
  default: return stmt_uses(s, var) ? USED_OTHERWISE : USED_NOT;
  }
}

// A vector that is read before all of it is stored begins as 0. The lanes that nothing stores are
// never used, but C leaves open what a program does that reads a variable without a value, and
// compilers of OpenCL take it that no function gets such an argument.
static const char *first_value(CEmit *emit, const Stmt *s) {
  DType type = s->as.allocate.type;
  const char *zeros[LOWER_MAX_LANES], *name = c_memory_type(emit->module, type);
  if (type.lanes == 1 ||
      first_use(emit->context, s->as.allocate.body, s->as.allocate.var) != USED_OTHERWISE)
    return "";
  for (int i = 0; i < type.lanes; i++) zeros[i] = "0";
  return arena_printf(emit->arena, " = %s", c_list_of_lanes(emit, name, zeros, type.lanes).text);
}

typedef struct VectorLoads {
  const Expr *var;
  bool found;
} VectorLoads;

static bool find_vector_load(Visitor *visitor, Expr *e) {
  VectorLoads *loads = visitor->env;
  loads->found |= e->op == EXPR_LOAD && e->as.buffer->data == loads->var && e->type.lanes > 1;
  return !loads->found;
}

// Vectors that are loaded from an array may have lanes that nothing stored.
static bool array_is_cleared(const CEmit *emit, const Stmt *s) {
  VectorLoads loads = {s->as.allocate.var, false};
  Visitor visitor = {.env = &loads, .enter_expr = find_vector_load};
  if (emit->module->spelling->needs_contents) visit_stmt(&visitor, s->as.allocate.body);
  return loads.found;
}

static void emit_allocate(CEmit *emit, const Stmt *s) {
  int64_t count = 1, extent = 0;
  Expr *var = s->as.allocate.var;
  for (int i = 0; i < s->as.allocate.rank; i++) {
    if (!expr_as_int(s->as.allocate.extents[i], &extent))
      bug(emit->context, "an allocation of variable size in lowered code");
    count *= extent;
  }
  const char *name = c_name(emit, var->as.var->name);
  DType type = s->as.allocate.type;
  if (is_register(s, count)) {
    c_line(emit, "%s %s%s;", c_memory_type(emit->module, type), name, first_value(emit, s));
    map_put(&emit->registers, var, name);
  } else {
    c_line(emit, "_Alignas(%d) %s %s[%lld]%s;", TENSOR_ALIGNMENT, c_memory_type(emit->module, type),
           name, (long long)count, array_is_cleared(emit, s) ? " = {0}" : "");
    map_put(&emit->vars, var, name);
    map_put(&emit->pointees, var, c_memory_type(emit->module, type));
  }
  c_stmt(emit, s->as.allocate.body);
}

static void emit_allocate_const(CEmit *emit, const Stmt *s) {
  const ConstData *data = s->as.allocate_const.data;
  CModule *module = emit->module;
  const char *name = c_global_name(module, data->name ? data->name : "constant");
  const char *element = c_memory_type(module, data->type);
  if (module->spelling->constant) {
    module->spelling->constant(emit, s, name, element);
    c_stmt(emit, s->as.allocate_const.body);
    return;
  }
  Text *text = &module->constants;
  text_printf(text,
              "static const union {\n  uint8_t bytes[%zu];\n  %s values[%zu];\n} %s "
              "__attribute__((aligned(%d))) = {{",
              data->bytes, element,
              data->bytes / (size_t)(dtype_bytes(data->type) * data->type.lanes), name,
              TENSOR_ALIGNMENT);
  text_printf(text, "%s\n}};\n", c_byte_list(emit->arena, data));
  map_put(&emit->vars, s->as.allocate_const.var, arena_printf(emit->arena, "%s.values", name));
  map_put(&emit->pointees, s->as.allocate_const.var, element);
  c_stmt(emit, s->as.allocate_const.body);
}

static void emit_assert(CEmit *emit, const Stmt *s) {
  if (s->as.check.body) c_stmt(emit, s->as.check.body);
}

static void emit_declare(CEmit *emit, const Stmt *s) {
  c_stmt(emit, s->as.declare.body);
}

static void emit_attr(CEmit *emit, const Stmt *s) {
  c_stmt(emit, s->as.attr.body);
}

static void emit_block(CEmit *emit, const Stmt *s) {
  bug(emit->context, "block %s in lowered code", s->as.block->name);
}

static void (*const emitters[])(CEmit *, const Stmt *) = {
    [STMT_FOR] = emit_for,
    [STMT_STORE] = emit_store,
    [STMT_LET] = emit_let,
    [STMT_IF] = emit_if,
    [STMT_WHILE] = emit_while,
    [STMT_ASSERT] = emit_assert,
    [STMT_EVALUATE] = emit_evaluate,
    [STMT_SEQ] = emit_seq,
    [STMT_BLOCK] = emit_block,
    [STMT_ALLOCATE] = emit_allocate,
    [STMT_ALLOCATE_CONST] = emit_allocate_const,
    [STMT_DECL_BUFFER] = emit_declare,
    [STMT_ATTR] = emit_attr,
};

void c_stmt(CEmit *emit, const Stmt *s) {
  comment_accesses(emit, s);
  if (!emit->module->spelling->stmt || !emit->module->spelling->stmt(emit, s))
    emitters[s->kind](emit, s);
}
