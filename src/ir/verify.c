// SPDX-License-Identifier: Apache-2.0
// Verifies that a function meets the conditions of its level of lowering, which are tables of
// checks. One walk keeps the set of variables and buffers in scope; a variable may be bound again
// after its scope has ended, but not inside it.
#include "ir/intrinsic.h"
#include "runtime/runtime.h"

enum {
  MOST_ERRORS = 20,
  MOST_CHECKED = 512, // a power of two
  TENSOR = IR_LEVEL_TENSOR,
  FROM_FLAT = IR_LEVEL_FLAT | IR_LEVEL_VECTOR | IR_LEVEL_LOWERED
};
enum { BEFORE_VECTOR = IR_LEVEL_TENSOR | IR_LEVEL_LOOPS | IR_LEVEL_FLAT, ALL_STAGES = 31 };

typedef struct Verifier {
  Context *context;
  const PrimFunc *func;
  IrLevel level;
  Map variables, buffers; // those in scope map to a non-NULL value
  SourcePos pos;
  int errors;
  // Expressions that were checked, by their number. An expression need not be checked again while
  // no variable and no buffer has left its scope since.
  struct {
    const Expr *expr;
    uint32_t left;
  } checked[MOST_CHECKED];
  uint32_t left;    // how many variables and buffers have left their scope, plus 1
  const Stmt *loop; // the innermost loop, or NULL
} Verifier;

PRINTF_LIKE(2, 3) static void report(Verifier *verifier, const char *format, ...) {
  if (verifier->errors++ >= MOST_ERRORS) return;
  ArenaMark mark = arena_mark(&verifier->context->scratch);
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(&verifier->context->scratch, format, args);
  va_end(args);
  diag_error(verifier->context, verifier->pos, "%s: %s", verifier->func->name, message);
  arena_reset(&verifier->context->scratch, mark);
}

static const char *type_text(Verifier *verifier, const Expr *e) {
  return dtype_name(verifier->context, e->type);
}

// ---- What is defined

static void define(Verifier *verifier, const Expr *var) {
  if (map_find(&verifier->variables, var))
    report(verifier, "variable '%s' is bound again inside its scope", var->as.var->name);
  map_put(&verifier->variables, var, var);
}

static void undefine(Verifier *verifier, const Expr *var) {
  verifier->left++;
  map_put(&verifier->variables, var, (void *)NULL);
}

static void check_expr(Verifier *verifier, const Expr *e);

static void check_exprs(Verifier *verifier, Expr *const *items, int count) {
  for (int i = 0; i < count; i++)
    if (items[i]) check_expr(verifier, items[i]);
}

// The vectors of hardware and of C have 2^n lanes: an array of others would be padded.
static void check_lanes_of_elements(Verifier *verifier, const Buffer *buffer) {
  int lanes = buffer->type.lanes;
  SourcePos outer = verifier->pos;
  if (buffer->pos.file) verifier->pos = buffer->pos;
  if (dtype_is_scalable(buffer->type))
    report(verifier, "buffer '%s' holds elements of %s, whose size is a property of the machine",
           buffer->name, dtype_name(verifier->context, buffer->type));
  else if (lanes < 1 || lanes & (lanes - 1))
    report(verifier,
           "buffer '%s' holds elements of %s, whose %d lanes are not a power of two\n"
           "make the lanes an axis of the buffer",
           buffer->name, dtype_name(verifier->context, buffer->type), lanes);
  verifier->pos = outer;
}

// Whether offsets of all elements, in bytes, fit 64 bits; extents that are no numbers count as 1.
static bool has_addresses(const Buffer *buffer) {
  int64_t bytes = MAX_OF(dtype_bytes(buffer->type), 1), size = bytes, extent, stride, span;
  for (int i = 0; i < buffer->rank; i++) {
    if (!expr_as_int(buffer->shape[i], &extent)) continue;
    if (extent <= 0) return true;
    if (!mul_fits(size, extent, &size)) return false;
    bool strided = buffer->strides && expr_as_int(buffer->strides[i], &stride);
    if (strided && (!mul_fits(extent, stride, &span) || !mul_fits(span, bytes, &span)))
      return false;
  }
  return true;
}

static void check_buffer(Verifier *verifier, const Buffer *buffer) {
  check_lanes_of_elements(verifier, buffer);
  if (!map_find(&verifier->variables, buffer->data))
    report(verifier, "the data of buffer '%s' is not defined", buffer->name);
  check_exprs(verifier, buffer->shape, buffer->rank);
  if (!has_addresses(buffer))
    report(verifier, "the elements of buffer '%s' have no addresses of 64 bits: it is too large",
           buffer->name);
  if (buffer->strides) check_exprs(verifier, buffer->strides, buffer->rank);
  check_expr(verifier, buffer->offset);
  for (int i = 0; i < buffer->separator_count; i++) {
    int last = i ? buffer->separators[i - 1] : 0;
    if (buffer->separators[i] < last || buffer->separators[i] > buffer->rank)
      report(verifier, "the axis separators of buffer '%s' do not ascend within its axes",
             buffer->name);
  }
}

// A buffer of the caller: its tensor has extents of at least 0.
static void check_parameter(Verifier *verifier, const Buffer *buffer) {
  int64_t extent;
  for (int i = 0; i < buffer->rank; i++)
    if (expr_as_int(buffer->shape[i], &extent) && extent < 0)
      report(verifier, "extent %lld in axis %d of buffer '%s' is negative", (long long)extent, i,
             buffer->name);
  check_buffer(verifier, buffer);
}

static void define_buffer(Verifier *verifier, const Buffer *buffer) {
  if (map_find(&verifier->buffers, buffer))
    report(verifier, "buffer '%s' is declared again inside its scope", buffer->name);
  map_put(&verifier->buffers, buffer, buffer);
}

static void undefine_buffer(Verifier *verifier, const Buffer *buffer) {
  verifier->left++;
  map_put(&verifier->buffers, buffer, (void *)NULL);
}

static bool define_free_var(Visitor *visitor, Expr *e) {
  Verifier *verifier = visitor->env;
  if (e->op == EXPR_VAR && !map_find(&verifier->variables, e)) map_put(&verifier->variables, e, e);
  return true;
}

// Defines the variables in a buffer's shape, strides and offset; the caller's tensors bind them.
static void define_sizes(Verifier *verifier, const Buffer *buffer) {
  Visitor visitor = {.env = verifier, .enter_expr = define_free_var};
  for (int i = 0; i < buffer->rank; i++) {
    visit_expr(&visitor, buffer->shape[i]);
    if (buffer->strides) visit_expr(&visitor, buffer->strides[i]);
  }
  visit_expr(&visitor, buffer->offset);
}

// ---- Expressions

static void check_same_types(Verifier *verifier, const Expr *e) {
  for (int i = 1; i < e->count; i++)
    if (!dtype_equal(e->args[0]->type, e->args[i]->type))
      report(verifier, "operands of '%s' have the types %s and %s", op_table[e->op].spelling,
             type_text(verifier, e->args[0]), type_text(verifier, e->args[i]));
}

static void check_logic(Verifier *verifier, const Expr *e) {
  check_same_types(verifier, e);
  if (!dtype_is_bool(e->args[0]->type))
    report(verifier, "'%s' takes conditions, not %s", op_table[e->op].spelling,
           type_text(verifier, e->args[0]));
}

static void check_variable(Verifier *verifier, const Expr *e) {
  if (!map_find(&verifier->variables, e))
    report(verifier, "variable '%s' is used where it is not defined", e->as.var->name);
}

static void check_lanes(Verifier *verifier, const Expr *e) {
  if (e->type.lanes != e->args[0]->type.lanes)
    report(verifier, "a cast from %s to %s changes the lanes", type_text(verifier, e->args[0]),
           type_text(verifier, e));
}

static void check_reinterpret(Verifier *verifier, const Expr *e) {
  DType from = e->args[0]->type;
  if (from.bits * from.lanes != e->type.bits * e->type.lanes)
    report(verifier, "%s and %s differ in size", type_text(verifier, e->args[0]),
           type_text(verifier, e));
}

static void check_choice(Verifier *verifier, const Expr *e) {
  const Expr *condition = e->args[0];
  bool spread = condition->type.lanes == 1 || condition->type.lanes == e->type.lanes;
  if (!dtype_is_bool(condition->type) || !spread)
    report(verifier, "a choice of %s has a condition of %s", type_text(verifier, e),
           type_text(verifier, condition));
  if (!dtype_equal(e->args[1]->type, e->type) || !dtype_equal(e->args[2]->type, e->type))
    report(verifier, "a choice between %s and %s", type_text(verifier, e->args[1]),
           type_text(verifier, e->args[2]));
  bool wide = e->op == EXPR_IF_THEN_ELSE && condition->type.lanes > 1;
  if (wide && verifier->level == IR_LEVEL_LOWERED)
    report(verifier, "if_then_else has a condition of %s", type_text(verifier, condition));
}

static bool is_flat(const Buffer *buffer) {
  return buffer->rank <= buffer->separator_count + 1 && !buffer->strides &&
         expr_is_int(buffer->offset, 0);
}

static void check_access(Verifier *verifier, const Buffer *buffer, Expr *const *indices, int rank) {
  if (!map_find(&verifier->buffers, buffer))
    report(verifier, "buffer '%s' is used where it is not declared", buffer->name);
  if (rank != buffer->rank)
    report(verifier, "buffer '%s' of %d axes has %d indices", buffer->name, buffer->rank, rank);
  for (int i = 0; i < rank; i++) {
    DType type = indices[i]->type;
    if (!dtype_is_int(type) && !dtype_is_bool(type))
      report(verifier, "an index of buffer '%s' has the type %s", buffer->name,
             type_text(verifier, indices[i]));
    if (type.lanes > 1 && i + 1 < rank)
      report(verifier, "an index of buffer '%s' is a vector, but only the last index may be one",
             buffer->name);
  }
  if (rank && indices[rank - 1]->type.lanes > 1 && buffer->type.lanes > 1)
    report(verifier,
           "buffer '%s' holds %s and has a vector as its index, which has no meaning\n"
           "use a scalar index, or T.decl_buffer(..., data=%s.data) with scalar elements",
           buffer->name, dtype_name(verifier->context, buffer->type), buffer->name);
  if (verifier->level & FROM_FLAT && !is_flat(buffer))
    report(verifier, "buffer '%s' is not flat", buffer->name);
}

static DType element_type(const Buffer *buffer, Expr *const *indices, int rank) {
  int lanes = rank ? indices[rank - 1]->type.lanes : 1;
  return dtype_times(buffer->type, lanes);
}

static void check_load(Verifier *verifier, const Expr *e) {
  check_access(verifier, e->as.buffer, e->args, e->count);
  if (!dtype_equal(e->type, element_type(e->as.buffer, e->args, e->count)))
    report(verifier, "an element of '%s' is read as %s", e->as.buffer->name,
           type_text(verifier, e));
}

static void check_address(Verifier *verifier, const Expr *e) {
  if (e->args[0]->op != EXPR_LOAD) report(verifier, "the operand of address_of is not a load");
}

static void check_ramp(Verifier *verifier, const Expr *e) {
  check_same_types(verifier, e);
  if (e->args[0]->type.lanes != 1 || e->type.lanes < 2)
    report(verifier, "a ramp from %s to %s", type_text(verifier, e->args[0]),
           type_text(verifier, e));
}

static void check_broadcast(Verifier *verifier, const Expr *e) {
  if (e->args[0]->type.lanes != 1 || e->type.lanes < 2)
    report(verifier, "a broadcast of %s to %s", type_text(verifier, e->args[0]),
           type_text(verifier, e));
}

static void check_dot(Verifier *verifier, const Expr *e) {
  if (e->args[0]->type.bits != 32)
    report(verifier, "'%s' of %s, but its operands have 32 bits", op_table[e->op].spelling,
           type_text(verifier, e->args[0]));
}

static void check_shuffle(Verifier *verifier, const Expr *e) {
  if (e->args[0]->op != EXPR_TUPLE || e->args[1]->op != EXPR_TUPLE ||
      e->args[1]->count != e->type.lanes)
    report(verifier, "a shuffle to %s has another number of lane numbers", type_text(verifier, e));
}

static void check_return(Verifier *verifier, const Expr *e) {
  if (!dtype_equal(e->args[0]->type, verifier->func->result))
    report(verifier, "a value of type %s is returned, but the function's result is %s",
           type_text(verifier, e->args[0]), dtype_name(verifier->context, verifier->func->result));
}

// Iterations that run at once cannot be left one by one.
static void check_leave(Verifier *verifier, const Expr *e) {
  const Stmt *loop = verifier->loop;
  if (!loop || !loop_is_ordered(loop))
    report(verifier, "'%s' is %s", jump_text(expr_jump(e)),
           loop ? "in a loop whose iterations run at once" : "outside of a loop");
}

static void check_intrinsic(Verifier *verifier, const Expr *e) {
  const Intrinsic *row = intrinsic_find(e->as.s);
  if (!row)
    report(verifier, "there is no intrinsic '%s'", e->as.s);
  else if (e->count < row->least || (row->most >= 0 && e->count > row->most))
    report(verifier, "T.%s has %d operands", e->as.s, e->count);
  else if (((row->flags & INTRINSIC_PURE) != 0) != (e->op == EXPR_INTRINSIC_PURE))
    report(verifier, "the effects of T.%s are not those of its row", e->as.s);
  else if (expr_jump(e) == JUMP_RETURN)
    check_return(verifier, e);
  else if (expr_jump(e) != JUMP_NONE)
    check_leave(verifier, e);
}

// Checks the operands by the operation's class, then the conditions of the single operation.
static void check_class(Verifier *verifier, const Expr *e) {
  const OpInfo *info = &op_table[e->op];
  bool uniform = info->class == OP_ARITH || info->class == OP_COMPARE || info->class == OP_BIT ||
                 info->class == OP_MATH;
  if (info->arity >= 0 && e->count != info->arity) {
    report(verifier, "'%s' has %d operands", info->name, e->count);
    return;
  }
  if (info->class == OP_LOGIC) check_logic(verifier, e);
  if (uniform) check_same_types(verifier, e);
  if (!e->count) return;
  DType type = e->args[0]->type;
  if (info->flags & OP_FLOATS && !dtype_is_float(type))
    report(verifier, "'%s' does not take %s", info->spelling, type_text(verifier, e->args[0]));
  if (info->flags & OP_INTS && !dtype_is_int(type) && !dtype_is_bool(type))
    report(verifier, "'%s' does not take %s", info->spelling, type_text(verifier, e->args[0]));
  DType result = info->result == OP_BOOL ? dtype_lanes(DTYPE_BOOL, type.lanes) : type;
  if (info->result != OP_GIVEN && !dtype_equal(e->type, result))
    report(verifier, "'%s' of %s has the type %s", info->spelling, type_text(verifier, e->args[0]),
           type_text(verifier, e));
}

static void (*const op_checks[EXPR_OP_COUNT])(Verifier *, const Expr *) = {
    [EXPR_VAR] = check_variable,        [EXPR_CAST] = check_lanes,
    [EXPR_DOT_BYTES] = check_dot,       [EXPR_REINTERPRET] = check_reinterpret,
    [EXPR_SELECT] = check_choice,       [EXPR_IF_THEN_ELSE] = check_choice,
    [EXPR_LOAD] = check_load,           [EXPR_ADDRESS_OF] = check_address,
    [EXPR_INTRINSIC] = check_intrinsic, [EXPR_INTRINSIC_PURE] = check_intrinsic,
    [EXPR_RAMP] = check_ramp,           [EXPR_BROADCAST] = check_broadcast,
    [EXPR_SHUFFLE] = check_shuffle,
};

static void check_let(Verifier *verifier, const Expr *e) {
  check_expr(verifier, e->args[1]);
  if (!dtype_equal(e->args[0]->type, e->args[1]->type))
    report(verifier, "variable '%s' of type %s is bound to a value of type %s",
           e->args[0]->as.var->name, type_text(verifier, e->args[0]),
           type_text(verifier, e->args[1]));
  define(verifier, e->args[0]);
  check_expr(verifier, e->args[2]);
  undefine(verifier, e->args[0]);
}

static void check_lambda(Verifier *verifier, const Expr *e) {
  for (int i = 0; i + 1 < e->count; i++) define(verifier, e->args[i]);
  check_expr(verifier, e->args[e->count - 1]);
  for (int i = 0; i + 1 < e->count; i++) undefine(verifier, e->args[i]);
}

static bool was_checked(Verifier *verifier, const Expr *e) {
  uint32_t at = e->id & (MOST_CHECKED - 1);
  if (verifier->checked[at].expr == e && verifier->checked[at].left == verifier->left) return true;
  verifier->checked[at].expr = e;
  verifier->checked[at].left = verifier->left;
  return false;
}

static void check_expr(Verifier *verifier, const Expr *e) {
  if (was_checked(verifier, e)) return;
  if (e->op == EXPR_LAMBDA) {
    check_lambda(verifier, e);
    return;
  }
  if (e->op == EXPR_LET && e->count == 3) {
    check_let(verifier, e);
    return;
  }
  for (int i = 0; i < e->count; i++) check_expr(verifier, e->args[i]);
  check_class(verifier, e);
  if (op_checks[e->op]) op_checks[e->op](verifier, e);
}

// ---- Statements

static void check_stmt(Verifier *verifier, const Stmt *s);

static void check_body(Verifier *verifier, const Stmt *body, const char *of) {
  if (body)
    check_stmt(verifier, body);
  else
    report(verifier, "%s has no body", of);
}

static void check_loop_body(Verifier *verifier, const Stmt *loop, const Stmt *body,
                            const char *of) {
  const Stmt *outer = verifier->loop;
  verifier->loop = loop;
  check_body(verifier, body, of);
  verifier->left++; // what was checked may not be allowed outside of this loop
  verifier->loop = outer;
}

static void check_condition(Verifier *verifier, const Expr *condition) {
  check_expr(verifier, condition);
  if (!dtype_is_bool(condition->type) || condition->type.lanes != 1)
    report(verifier, "a condition has the type %s", type_text(verifier, condition));
}

static const struct {
  LoopKind kind;
  int levels;
  const char *name;
} loop_levels[] = {
    {LOOP_SERIAL, ALL_STAGES, "serial"},
    {LOOP_PARALLEL, ALL_STAGES, "parallel"},
    {LOOP_VECTORIZED, BEFORE_VECTOR, "vectorized"},
    {LOOP_UNROLLED, BEFORE_VECTOR, "unrolled"},
    {LOOP_THREAD, ALL_STAGES, "thread"},
};

static void check_for(Verifier *verifier, const Stmt *s) {
  const Expr *var = s->as.loop.var, *parts[] = {s->as.loop.min, s->as.loop.extent};
  if (!dtype_is_int(var->type) || var->type.lanes != 1)
    report(verifier, "loop variable '%s' has the type %s", var->as.var->name,
           type_text(verifier, var));
  for (int i = 0; i < 2; i++) {
    check_expr(verifier, parts[i]);
    if (!dtype_equal(parts[i]->type, var->type))
      report(verifier, "the %s of loop '%s' (%s) has the type %s", i ? "extent" : "start",
             var->as.var->name, type_text(verifier, var), type_text(verifier, parts[i]));
  }
  for (int i = 0; i < COUNT_OF(loop_levels); i++)
    if (loop_levels[i].kind == s->as.loop.kind && !(loop_levels[i].levels & verifier->level))
      report(verifier, "loop '%s' is %s, which is not allowed at this level of lowering",
             var->as.var->name, loop_levels[i].name);
  define(verifier, var);
  check_loop_body(verifier, s, s->as.loop.body, "a loop");
  undefine(verifier, var);
}

static void check_store(Verifier *verifier, const Stmt *s) {
  const Buffer *buffer = s->as.store.buffer;
  check_exprs(verifier, s->as.store.indices, s->as.store.rank);
  check_expr(verifier, s->as.store.value);
  check_access(verifier, buffer, s->as.store.indices, s->as.store.rank);
  DType expected = element_type(buffer, s->as.store.indices, s->as.store.rank);
  if (!dtype_equal(expected, s->as.store.value->type))
    report(verifier, "a value of type %s is stored in '%s', which holds %s",
           type_text(verifier, s->as.store.value), buffer->name,
           dtype_name(verifier->context, expected));
}

static void check_let_stmt(Verifier *verifier, const Stmt *s) {
  const Expr *var = s->as.let.var, *value = s->as.let.value;
  check_expr(verifier, value);
  if (!dtype_equal(var->type, value->type))
    report(verifier, "variable '%s' of type %s is bound to a value of type %s", var->as.var->name,
           type_text(verifier, var), type_text(verifier, value));
  define(verifier, var);
  check_body(verifier, s->as.let.body, "a let");
  undefine(verifier, var);
}

static void check_if(Verifier *verifier, const Stmt *s) {
  check_condition(verifier, s->as.branch.condition);
  check_body(verifier, s->as.branch.then_body, "an if");
  if (s->as.branch.else_body) check_stmt(verifier, s->as.branch.else_body);
}

static void check_while(Verifier *verifier, const Stmt *s) {
  check_condition(verifier, s->as.repeat.condition);
  check_loop_body(verifier, s, s->as.repeat.body, "a while");
}

static void check_assert(Verifier *verifier, const Stmt *s) {
  check_condition(verifier, s->as.check.condition);
  if (s->as.check.body) check_stmt(verifier, s->as.check.body);
}

static void check_evaluate(Verifier *verifier, const Stmt *s) {
  check_expr(verifier, s->as.evaluate);
}

static void check_seq(Verifier *verifier, const Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) check_stmt(verifier, s->as.seq.items[i]);
}

static void check_allocate(Verifier *verifier, const Stmt *s) {
  check_exprs(verifier, s->as.allocate.extents, s->as.allocate.rank);
  for (int i = 0; i < s->as.allocate.rank; i++)
    if (!dtype_is_int(s->as.allocate.extents[i]->type))
      report(verifier, "an extent of allocation '%s' has the type %s",
             s->as.allocate.var->as.var->name, type_text(verifier, s->as.allocate.extents[i]));
  define(verifier, s->as.allocate.var);
  check_body(verifier, s->as.allocate.body, "an allocation");
  undefine(verifier, s->as.allocate.var);
}

static void check_allocate_const(Verifier *verifier, const Stmt *s) {
  define(verifier, s->as.allocate_const.var);
  check_body(verifier, s->as.allocate_const.body, "a constant");
  undefine(verifier, s->as.allocate_const.var);
}

static void check_declare(Verifier *verifier, const Stmt *s) {
  const Buffer *buffer = s->as.declare.buffer;
  check_buffer(verifier, buffer);
  define_buffer(verifier, buffer);
  check_body(verifier, s->as.declare.body, "a declaration");
  undefine_buffer(verifier, buffer);
}

static void check_attr(Verifier *verifier, const Stmt *s) {
  Expr *var = expr_iter_var(s->as.attr.node);
  bool is_bound = var && !map_find(&verifier->variables, var);
  if (is_bound) define(verifier, var);
  if (s->as.attr.node) check_expr(verifier, s->as.attr.node);
  check_expr(verifier, s->as.attr.value);
  check_body(verifier, s->as.attr.body, "an attribute");
  if (is_bound) undefine(verifier, var);
}

// ---- Blocks

static void check_block_var(Verifier *verifier, const Block *block, const BlockVar *var) {
  const Expr *parts[] = {var->min, var->extent, var->binding};
  static const char *const names[] = {"start", "extent", "binding"};
  for (int i = 0; i < COUNT_OF(parts); i++) {
    if (!parts[i]) {
      report(verifier, "variable '%s' of block '%s' has no %s", var->var->as.var->name, block->name,
             names[i]);
      continue;
    }
    check_expr(verifier, parts[i]);
    if (!dtype_equal(parts[i]->type, var->var->type))
      report(verifier, "the %s of variable '%s' (%s) of block '%s' has the type %s", names[i],
             var->var->as.var->name, type_text(verifier, var->var), block->name,
             type_text(verifier, parts[i]));
  }
}

static void check_region(Verifier *verifier, const Region *region) {
  if (!map_find(&verifier->buffers, region->buffer))
    report(verifier, "buffer '%s' is used where it is not declared", region->buffer->name);
  check_exprs(verifier, region->min, region->buffer->rank);
  check_exprs(verifier, region->extent, region->buffer->rank);
  for (int i = 0; i < region->buffer->rank; i++) {
    int64_t extent;
    const Expr *parts[] = {region->min[i], region->extent[i]};
    for (int k = 0; k < 2; k++)
      if (!dtype_is_int(parts[k]->type))
        report(verifier, "the %s of a region of buffer '%s' has the type %s",
               k ? "extent" : "start", region->buffer->name, type_text(verifier, parts[k]));
    if (expr_as_int(region->extent[i], &extent) && extent < 0)
      report(verifier, "a region of buffer '%s' ends before it begins on axis %d",
             region->buffer->name, i);
  }
}

// The last extents of its region are those of a view.
static void check_view(Verifier *verifier, const MatchBuffer *match) {
  const Buffer *view = match->buffer;
  int before = match->source.buffer->rank - view->rank;
  SourcePos outer = verifier->pos;
  int64_t stated, extent;
  if (view->pos.file) verifier->pos = view->pos;
  check_region(verifier, &match->source);
  for (int i = 0; before >= 0 && i < view->rank; i++)
    if (expr_as_int(match->source.extent[before + i], &extent) &&
        expr_as_int(view->shape[i], &stated) && extent != stated)
      report(verifier, "axis %d of view '%s' has %lld elements, its region has %lld", i,
             view->name, (long long)stated, (long long)extent);
  verifier->pos = outer;
}

// Defines the buffers of allocations and views; a view also defines the sizes that it binds to its
// region.
static void define_block_buffers(Verifier *verifier, const Block *block) {
  for (int i = 0; i < block->alloc_count; i++) {
    define(verifier, block->allocs[i]->data);
    check_buffer(verifier, block->allocs[i]);
    define_buffer(verifier, block->allocs[i]);
  }
  for (int i = 0; i < block->match_count; i++) {
    const MatchBuffer *match = &block->matches[i];
    check_view(verifier, match);
    define_sizes(verifier, match->buffer);
    define_buffer(verifier, match->buffer);
  }
}

static void undefine_block(Verifier *verifier, const Block *block) {
  for (int i = 0; i < block->match_count; i++) undefine_buffer(verifier, block->matches[i].buffer);
  for (int i = 0; i < block->alloc_count; i++) {
    undefine_buffer(verifier, block->allocs[i]);
    undefine(verifier, block->allocs[i]->data);
  }
  for (int i = 0; i < block->var_count; i++) undefine(verifier, block->vars[i].var);
}

static void check_block(Verifier *verifier, const Stmt *s) {
  const Block *block = s->as.block;
  for (int i = 0; i < block->var_count; i++) check_block_var(verifier, block, &block->vars[i]);
  check_condition(verifier, block->predicate);
  for (int i = 0; i < block->var_count; i++) define(verifier, block->vars[i].var);
  define_block_buffers(verifier, block);
  for (int i = 0; i < block->read_count; i++) check_region(verifier, &block->reads[i]);
  for (int i = 0; i < block->write_count; i++) check_region(verifier, &block->writes[i]);
  if (block->init) check_stmt(verifier, block->init);
  check_body(verifier, block->body, "a block");
  undefine_block(verifier, block);
}

static const struct {
  void (*check)(Verifier *verifier, const Stmt *s);
  const char *name;
  int levels;
} stmt_rules[] = {
    [STMT_FOR] = {check_for, "a loop", ALL_STAGES},
    [STMT_STORE] = {check_store, "a store", ALL_STAGES},
    [STMT_LET] = {check_let_stmt, "a let", ALL_STAGES},
    [STMT_IF] = {check_if, "an if", ALL_STAGES},
    [STMT_WHILE] = {check_while, "a while", ALL_STAGES},
    [STMT_ASSERT] = {check_assert, "an assert", ALL_STAGES},
    [STMT_EVALUATE] = {check_evaluate, "an evaluation", ALL_STAGES},
    [STMT_SEQ] = {check_seq, "a sequence", ALL_STAGES},
    [STMT_BLOCK] = {check_block, "a block", TENSOR},
    [STMT_ALLOCATE] = {check_allocate, "an allocation", ALL_STAGES},
    [STMT_ALLOCATE_CONST] = {check_allocate_const, "a constant", ALL_STAGES},
    [STMT_DECL_BUFFER] = {check_declare, "a declaration", ALL_STAGES},
    [STMT_ATTR] = {check_attr, "an attribute", ALL_STAGES},
};

static void check_stmt(Verifier *verifier, const Stmt *s) {
  SourcePos outer = verifier->pos;
  if (s->pos.file) verifier->pos = s->pos;
  if (!(stmt_rules[s->kind].levels & verifier->level))
    report(verifier, "%s is not allowed at this level of lowering", stmt_rules[s->kind].name);
  stmt_rules[s->kind].check(verifier, s);
  verifier->pos = outer;
}

// ---- Functions

static void define_params(Verifier *verifier) {
  const PrimFunc *func = verifier->func;
  for (int i = 0; i < func->param_count; i++) {
    define(verifier, func->params[i]);
    const Buffer *buffer = func->buffers[i];
    if (!buffer) continue;
    if (buffer->data != func->params[i]) define(verifier, buffer->data);
    define_buffer(verifier, buffer);
  }
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i]) define_sizes(verifier, func->buffers[i]);
}

static bool verify(Context *context, const PrimFunc *func, IrLevel level) {
  ArenaMark mark = arena_mark(&context->scratch);
  Verifier verifier = {.context = context,
                       .func = func,
                       .level = level,
                       .variables = map_new(&context->scratch),
                       .buffers = map_new(&context->scratch),
                       .pos = func->pos,
                       .left = 1};
  define_params(&verifier);
  for (int i = 0; i < func->param_count; i++)
    if (func->buffers[i]) check_parameter(&verifier, func->buffers[i]);
  check_body(&verifier, func->body, "the function");
  arena_reset(&context->scratch, mark);
  return verifier.errors == 0;
}

bool verify_prim_func(Context *context, const PrimFunc *func, IrLevel level) {
  int64_t start = clock_now_ns();
  bool done = verify(context, func, level);
  context->verify_ns += clock_now_ns() - start;
  return done;
}
