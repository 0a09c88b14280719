// SPDX-License-Identifier: Apache-2.0
// Writes expressions as LLVM instructions, by a table with a row for each operation; a row has a
// function where one instruction is not enough. Equal expressions in a statement are computed once.
#include "ir/intrinsic.h"
#include "target/llvm/emit.h"

typedef struct InstructionRow {
  const char *ints, *uints,
      *floats; // by the type of the first operand; uints NULL: the same as ints
  const char *(*emit)(Emit *emit, Expr *e); // in place of an instruction
} InstructionRow;

// ---- What was computed -------------------------------------------------------------------------

int emit_mark(const Emit *emit) {
  return emit->computed.count;
}

void emit_forget(Emit *emit, int mark) {
  for (int i = mark; i < emit->computed.count; i++)
    map_put(&emit->values, emit->computed.items[i], NULL);
  emit->computed.count = mark;
}

static void remember(Emit *emit, Expr *e, const char *value) {
  map_put(&emit->values, e, value);
  array_push(emit->arena, &emit->computed, (void *)e);
}

// Whether `e` reads no memory, calls no function and cannot trap.
bool emit_is_cheap(const Expr *e) {
  switch (e->op) {
  case EXPR_LOAD:
  case EXPR_CALL:
  case EXPR_CALL_PURE:
  case EXPR_TRUNC_DIV:
  case EXPR_TRUNC_MOD:
  case EXPR_INTRINSIC:
  case EXPR_PREFETCH: return false;
  default: break;
  }
  for (int i = 0; i < e->count; i++)
    if (!emit_is_cheap(e->args[i])) return false;
  return true;
}

// ---- Leaves ------------------------------------------------------------------------------------

static const char *emit_constant(Emit *emit, Expr *e) {
  return llvm_constant(emit, e->type, e);
}

static const char *emit_var(Emit *emit, Expr *e) {
  const char *value = map_find(&emit->vars, e);
  if (!value) value = map_find(&emit->data, e);
  if (!value) bug(emit->context, "%s has no value in lowered code", e->as.var->name);
  return value;
}

const char *emit_spread(Emit *emit, const char *value, DType type) {
  if (type.lanes == 1) return value;
  const char *scalar = llvm_type(emit, dtype_lanes(type, 1)), *vector = llvm_type(emit, type);
  const char *first =
      emit_value(emit, "insertelement %s poison, %s %s, i64 0", vector, scalar, value);
  return emit_value(emit, "shufflevector %s %s, %s poison, <%d x i32> zeroinitializer", vector,
                    first, vector, type.lanes);
}

static const char *emit_broadcast(Emit *emit, Expr *e) {
  Expr *value = e->args[0];
  if (value->op == EXPR_INT || value->op == EXPR_FLOAT) return llvm_splat(emit, value);
  if (value->type.lanes > 1) bug(emit->context, "a broadcast of a vector was not legalized");
  return emit_spread(emit, emit_expr(emit, value), e->type);
}

// ---- Casts -------------------------------------------------------------------------------------

static const char *cast_instruction(DType from, DType to) {
  bool is_signed = from.code == TYPE_INT;
  if (dtype_is_float(from) && dtype_is_float(to)) return from.bits < to.bits ? "fpext" : "fptrunc";
  if (dtype_is_float(from)) return to.code == TYPE_INT ? "fptosi" : "fptoui";
  if (dtype_is_float(to)) return is_signed ? "sitofp" : "uitofp";
  int wide = dtype_is_bool(from) ? 1 : from.bits;
  return to.bits < wide ? "trunc" : to.bits == wide ? NULL : is_signed ? "sext" : "zext";
}

static const char *suffix(Emit *emit, DType type) {
  const char *scalar = type.bits == 64 ? "f64" : type.bits == 32 ? "f32" : "f16";
  return type.lanes == 1 ? scalar : arena_printf(emit->arena, "v%d%s", type.lanes, scalar);
}

// LLVM would compare a number that was widened from float16 in float16 again, lane by lane if the
// processor has no such comparison. The fence hides where the number comes from.
static const char *emit_fence(Emit *emit, DType type, const char *value) {
  const char *name = llvm_type(emit, type);
  const char *function = arena_printf(emit->arena, "llvm.arithmetic.fence.%s", suffix(emit, type));
  emit_declare(emit, function, "%s @%s(%s)", name, function, name);
  return emit_value(emit, "call %s @%s(%s %s)", name, function, name, value);
}

// Converts float16 from and to float32; everywhere else a float16 is an i16 with its bits.
static const char *emit_half_cast(Emit *emit, Expr *e, bool widens) {
  const char *value = emit_expr(emit, e->args[0]), *single, *half, *bits;
  single = llvm_type(emit, widens ? e->type : e->args[0]->type);
  bits = llvm_type(emit, widens ? e->args[0]->type : e->type);
  half = e->type.lanes == 1 ? "half" : arena_printf(emit->arena, "<%d x half>", e->type.lanes);
  if (!widens) value = emit_value(emit, "fptrunc %s %s to %s", single, value, half);
  value =
      emit_value(emit, "bitcast %s %s to %s", widens ? bits : half, value, widens ? half : bits);
  if (!widens) return value;
  return emit_fence(emit, e->type, emit_value(emit, "fpext %s %s to %s", half, value, single));
}

static bool is_half(DType type) {
  return type.code == TYPE_FLOAT && type.bits == 16;
}

static const char *emit_cast(Emit *emit, Expr *e) {
  DType from = e->args[0]->type, to = e->type;
  if (is_half(from) != is_half(to)) return emit_half_cast(emit, e, is_half(from));
  if (to.code == TYPE_INT && to.bits == 64 && map_contains(&emit->wide, e->args[0]))
    return emit_index(emit, e->args[0]);
  const char *value = emit_expr(emit, e->args[0]), *source = llvm_type(emit, from);
  if (from.code == to.code && from.bits == to.bits) return value;
  if (dtype_is_bool(to))
    return emit_value(emit, "%s %s %s, %s", dtype_is_float(from) ? "fcmp une" : "icmp ne", source,
                      value, llvm_zero(from));
  const char *instruction = cast_instruction(from, to);
  if (!instruction) return value;
  return emit_value(emit, "%s %s %s to %s", instruction, source, value, llvm_type(emit, to));
}

static const char *emit_reinterpret(Emit *emit, Expr *e) {
  const char *value = emit_expr(emit, e->args[0]);
  const char *from = llvm_type(emit, e->args[0]->type), *to = llvm_type(emit, e->type);
  if (e->args[0]->type.code == TYPE_HANDLE)
    return emit_value(emit, "ptrtoint ptr %s to %s", value, to);
  return strcmp(from, to) ? emit_value(emit, "bitcast %s %s to %s", from, value, to) : value;
}

// ---- Arithmetic --------------------------------------------------------------------------------

// The second operand where it is less (more), otherwise the first, so that a NaN of the first is
// kept. One instruction of x86 does this.
static const char *emit_extreme(Emit *emit, Expr *e) {
  bool least = e->op == EXPR_MIN;
  const char *a = emit_expr(emit, e->args[0]), *b = emit_expr(emit, e->args[1]);
  const char *type = llvm_type(emit, e->type);
  const char *test = dtype_is_float(e->type)    ? (least ? "fcmp olt" : "fcmp ogt")
                     : e->type.code != TYPE_INT ? (least ? "icmp ult" : "icmp ugt")
                                                : (least ? "icmp slt" : "icmp sgt");
  const char *condition = emit_value(emit, "%s %s %s, %s", test, type, b, a);
  const char *flags = llvm_type(emit, dtype_lanes(DTYPE_BOOL, e->type.lanes));
  return emit_value(emit, "select %s %s, %s %s, %s %s", flags, condition, type, b, type, a);
}

static const char *emit_intrinsic(Emit *emit, Expr *e, const char *name) {
  const char *args[3], *type = llvm_type(emit, e->type);
  const char *function = arena_printf(emit->arena, "llvm.%s.%s", name, suffix(emit, e->type));
  Text given = text_new(emit->arena), wanted = text_new(emit->arena);
  for (int i = 0; i < e->count; i++)
    args[i] = i < 2 ? emit_expr(emit, e->args[i]) : emit_addend(emit, e->args[i]);
  for (int i = 0; i < e->count; i++) {
    text_printf(&given, "%s%s %s", i ? ", " : "", type, args[i]);
    text_printf(&wanted, "%s%s", i ? ", " : "", type);
  }
  emit_declare(emit, function, "%s @%s(%s)", type, function, text_string(&wanted));
  return emit_value(emit, "call %s @%s(%s)", type, function, text_string(&given));
}

static const char *emit_fma(Emit *emit, Expr *e) {
  bool fused = emit->module->features.fma;
  if (!fused) emit->module->report->counts[TARGET_UNFUSED_FMA]++;
  return emit_intrinsic(emit, e, fused ? "fma" : "fmuladd");
}

static const char *emit_sqrt(Emit *emit, Expr *e) {
  return emit_intrinsic(emit, e, "sqrt");
}

static const char *emit_abs(Emit *emit, Expr *e) {
  return emit_intrinsic(emit, e, "fabs");
}

static const char *emit_floor(Emit *emit, Expr *e) {
  return emit_intrinsic(emit, e, "floor");
}

static const char *emit_ceil(Emit *emit, Expr *e) {
  return emit_intrinsic(emit, e, "ceil");
}

static const char *emit_trunc(Emit *emit, Expr *e) {
  return emit_intrinsic(emit, e, "trunc");
}

static const char *emit_round(Emit *emit, Expr *e) {
  return emit_intrinsic(emit, e, "nearbyint");
}

static const char *dot_onto(Emit *emit, Expr *e, const char *sum) {
  return e->op == EXPR_DOT_BYTES ? emit_dot_bytes(emit, e, sum) : emit_dot_words(emit, e, sum);
}

static const char *emit_dot(Emit *emit, Expr *e) {
  return dot_onto(emit, e, NULL);
}

static const char *emit_add(Emit *emit, Expr *e) {
  for (int i = 0; i < 2; i++)
    if (e->args[i]->op == EXPR_DOT_BYTES || e->args[i]->op == EXPR_DOT_WORDS)
      return dot_onto(emit, e->args[i], emit_expr(emit, e->args[1 - i]));
  const char *name = dtype_is_float(e->type) ? "fadd contract" : "add";
  const char *a = emit_expr(emit, e->args[0]), *b = emit_expr(emit, e->args[1]);
  return emit_value(emit, "%s %s %s, %s", name, llvm_type(emit, e->type), a, b);
}

static const char *emit_not(Emit *emit, Expr *e) {
  const char *value = emit_expr(emit, e->args[0]), *type = llvm_type(emit, e->type);
  const char *ones = e->type.lanes > 1 ? arena_printf(emit->arena, "splat (%s -1)",
                                                      llvm_type(emit, dtype_lanes(e->type, 1)))
                                       : "-1";
  return emit_value(emit, "xor %s %s, %s", type, value, ones);
}

// ---- Choice ------------------------------------------------------------------------------------

static const char *emit_select(Emit *emit, Expr *e) {
  const char *condition = emit_expr(emit, e->args[0]);
  const char *a = emit_expr(emit, e->args[1]), *b = emit_expr(emit, e->args[2]);
  const char *type = llvm_type(emit, e->type);
  return emit_value(emit, "select %s %s, %s %s, %s %s", llvm_type(emit, e->args[0]->type),
                    condition, type, a, type, b);
}

// `then_value` where the condition holds and otherwise `else_value`, each computed in a block of
// its own. With else_value NULL the constant `otherwise` takes its place.
static const char *emit_branches(Emit *emit, Expr *e, const char *condition, Expr *then_value,
                                 Expr *else_value, const char *otherwise) {
  int number = emit_label_number(emit), mark = emit_mark(emit);
  const char *type = llvm_type(emit, e->type), *before = emit->block;
  emit_line(emit, "br i1 %s, label %%then%d, label %%%s%d", condition, number,
            else_value ? "else" : "join", number);
  emit_label(emit, "then", number);
  const char *a = emit_expr(emit, then_value), *a_block = emit->block;
  emit_line(emit, "br label %%join%d", number);
  emit_forget(emit, mark);
  if (else_value) {
    emit_label(emit, "else", number);
    otherwise = emit_expr(emit, else_value);
    before = emit->block;
    emit_line(emit, "br label %%join%d", number);
    emit_forget(emit, mark);
  }
  emit_label(emit, "join", number);
  return emit_value(emit, "phi %s [ %s, %s ], [ %s, %s ]", type, a, a_block, otherwise, before);
}

static const char *emit_if_then_else(Emit *emit, Expr *e) {
  bool cheap = emit_is_cheap(e->args[1]) && emit_is_cheap(e->args[2]);
  if (cheap || e->args[0]->type.lanes > 1) return emit_select(emit, e);
  const char *condition = emit_expr(emit, e->args[0]);
  return emit_branches(emit, e, condition, e->args[1], e->args[2], NULL);
}

static const char *emit_logic(Emit *emit, Expr *e) {
  bool is_and = e->op == EXPR_AND;
  const char *a = emit_expr(emit, e->args[0]);
  if (e->type.lanes > 1 || emit_is_cheap(e->args[1]))
    return emit_value(emit, "%s %s %s, %s", is_and ? "and" : "or", llvm_type(emit, e->type), a,
                      emit_expr(emit, e->args[1]));
  if (is_and) return emit_branches(emit, e, a, e->args[1], NULL, "false");
  const char *negated = emit_value(emit, "xor i1 %s, true", a);
  return emit_branches(emit, e, negated, e->args[1], NULL, "true");
}

void emit_bind(Emit *emit, Expr *let) {
  map_put(&emit->vars, let->args[0], emit_expr(emit, let->args[1]));
  map_put(&emit->depths, let->args[0], (intptr_t)emit->depth + 1);
}

static const char *emit_let(Emit *emit, Expr *e) {
  emit_bind(emit, e);
  return emit_expr(emit, e->args[2]);
}

// ---- Calls and memory --------------------------------------------------------------------------

static const char *emit_address(Emit *emit, Expr *e) {
  const Expr *load = e->args[0];
  return emit_pointer(emit, load->as.buffer, load->args, load->count);
}

static const char *emit_prefetch(Emit *emit, Expr *e) {
  int64_t write = 0, level = 1;
  expr_as_int(e->args[1], &write);
  expr_as_int(e->args[2], &level);
  emit_declare(emit, "llvm.prefetch.p0", "void @llvm.prefetch.p0(ptr, i32, i32, i32)");
  emit_line(emit, "call void @llvm.prefetch.p0(ptr %s, i32 %d, i32 %d, i32 1)",
            emit_expr(emit, e->args[0]), write != 0, 4 - (int)level);
  return "0";
}

static const char *emit_string(Emit *emit, Expr *e) {
  const char *name = arena_printf(emit->arena, "@string.%d", emit->module->next++);
  llvm_add_bytes(&emit->module->globals, name + 1, e->as.s, strlen(e->as.s) + 1);
  return name;
}

static const char *emit_call(Emit *emit, Expr *e) {
  Text given = text_new(emit->arena), wanted = text_new(emit->arena);
  const char **args = arena_array(emit->arena, const char *, e->count);
  for (int i = 0; i < e->count; i++) args[i] = emit_expr(emit, e->args[i]);
  for (int i = 0; i < e->count; i++) {
    bool is_string = e->args[i]->op == EXPR_STRING;
    const char *type = is_string ? "ptr" : llvm_type(emit, e->args[i]->type);
    text_printf(&given, "%s%s %s", i ? ", " : "", type, args[i]);
    text_printf(&wanted, "%s%s", i ? ", " : "", type);
  }
  const char *result = llvm_type(emit, e->type);
  const char *pure = e->op == EXPR_CALL_PURE ? " nounwind willreturn memory(none)" : " nounwind";
  emit_declare(emit, e->as.s, "%s @%s(%s)%s", result, e->as.s, text_string(&wanted), pure);
  if (e->type.code != TYPE_VOID)
    return emit_value(emit, "call %s @%s(%s)", result, e->as.s, text_string(&given));
  emit_line(emit, "call void @%s(%s)", e->as.s, text_string(&given));
  return "0";
}

// A field of an argument in TVM's calling convention, and tests of such pointers.
static const char *emit_field(Emit *emit, Expr *e) {
  int64_t offset;
  const char *base = e->count ? emit_expr(emit, e->args[0]) : "";
  if (expr_is_null_test(e)) return emit_value(emit, "icmp eq ptr %s, null", base);
  if (expr_is_moved_pointer(e))
    return emit_value(emit, "getelementptr i8, ptr %s, i64 %s", base, emit_index(emit, e->args[1]));
  if (!expr_field_offset(e, &offset))
    bug(emit->context, "the intrinsic '%s' was not legalized", e->as.s);
  const char *place = llvm_offset_from(emit, base, offset);
  return emit_value(emit, "load %s, ptr %s, align %d", llvm_type(emit, e->type), place,
                    dtype_bytes(e->type));
}

// ---- The table ---------------------------------------------------------------------------------

#define FUNCTION(f)                                                                                \
  { NULL, NULL, NULL, f }

static const InstructionRow rows[EXPR_OP_COUNT] = {
    [EXPR_INT] = FUNCTION(emit_constant),
    [EXPR_FLOAT] = FUNCTION(emit_constant),
    [EXPR_VAR] = FUNCTION(emit_var),
    [EXPR_CAST] = FUNCTION(emit_cast),
    [EXPR_REINTERPRET] = FUNCTION(emit_reinterpret),
    [EXPR_ADD] = FUNCTION(emit_add),
    [EXPR_SUB] = {"sub", NULL, "fsub contract"},
    [EXPR_MUL] = {"mul", NULL, "fmul contract"},
    [EXPR_DIV] = {NULL, NULL, "fdiv"},
    [EXPR_TRUNC_DIV] = {"sdiv", "udiv", NULL},
    [EXPR_TRUNC_MOD] = {"srem", "urem", NULL},
    [EXPR_MIN] = FUNCTION(emit_extreme),
    [EXPR_MAX] = FUNCTION(emit_extreme),
    [EXPR_EQ] = {"icmp eq", NULL, "fcmp oeq"},
    [EXPR_NE] = {"icmp ne", NULL, "fcmp une"},
    [EXPR_LT] = {"icmp slt", "icmp ult", "fcmp olt"},
    [EXPR_LE] = {"icmp sle", "icmp ule", "fcmp ole"},
    [EXPR_GT] = {"icmp sgt", "icmp ugt", "fcmp ogt"},
    [EXPR_GE] = {"icmp sge", "icmp uge", "fcmp oge"},
    [EXPR_AND] = FUNCTION(emit_logic),
    [EXPR_OR] = FUNCTION(emit_logic),
    [EXPR_NOT] = FUNCTION(emit_not),
    [EXPR_BIT_AND] = {"and"},
    [EXPR_BIT_OR] = {"or"},
    [EXPR_BIT_XOR] = {"xor"},
    [EXPR_BIT_NOT] = FUNCTION(emit_not),
    [EXPR_DOT_BYTES] = FUNCTION(emit_dot),
    [EXPR_DOT_WORDS] = FUNCTION(emit_dot),
    [EXPR_SHIFT_LEFT] = {"shl"},
    [EXPR_SHIFT_RIGHT] = {"ashr", "lshr"},
    [EXPR_SELECT] = FUNCTION(emit_select),
    [EXPR_IF_THEN_ELSE] = FUNCTION(emit_if_then_else),
    [EXPR_LET] = FUNCTION(emit_let),
    [EXPR_LOAD] = FUNCTION(emit_load),
    [EXPR_ADDRESS_OF] = FUNCTION(emit_address),
    [EXPR_RAMP] = FUNCTION(emit_ramp),
    [EXPR_BROADCAST] = FUNCTION(emit_broadcast),
    [EXPR_SHUFFLE] = FUNCTION(emit_shuffle),
    [EXPR_VECTOR_SUM] = FUNCTION(emit_reduction),
    [EXPR_VECTOR_MIN] = FUNCTION(emit_reduction),
    [EXPR_VECTOR_MAX] = FUNCTION(emit_reduction),
    [EXPR_STRING] = FUNCTION(emit_string),
    [EXPR_CALL] = FUNCTION(emit_call),
    [EXPR_CALL_PURE] = FUNCTION(emit_call),
    [EXPR_PREFETCH] = FUNCTION(emit_prefetch),
    [EXPR_INTRINSIC] = FUNCTION(emit_field),
    [EXPR_INTRINSIC_PURE] = FUNCTION(emit_field),
    [EXPR_FMA] = FUNCTION(emit_fma),
    [EXPR_ABS] = FUNCTION(emit_abs),
    [EXPR_SQRT] = FUNCTION(emit_sqrt),
    [EXPR_FLOOR] = FUNCTION(emit_floor),
    [EXPR_CEIL] = FUNCTION(emit_ceil),
    [EXPR_TRUNC] = FUNCTION(emit_trunc),
    [EXPR_ROUND] = FUNCTION(emit_round),
};

static const char *instruction(Emit *emit, const Expr *e) {
  const InstructionRow *row = &rows[e->op];
  DType type = e->count ? e->args[0]->type : e->type;
  const char *name = dtype_is_float(type)                  ? row->floats
                     : type.code != TYPE_INT && row->uints ? row->uints
                                                           : row->ints;
  if (!name)
    bug(emit->context, "%s of %s was not legalized", op_table[e->op].name,
        dtype_name(emit->context, type));
  return name;
}

static const char *emit_new(Emit *emit, Expr *e) {
  if (rows[e->op].emit) return rows[e->op].emit(emit, e);
  const char *name = instruction(emit, e);
  const char *a = emit_expr(emit, e->args[0]), *b = emit_expr(emit, e->args[1]);
  return emit_value(emit, "%s %s %s, %s", name, llvm_type(emit, e->args[0]->type), a, b);
}

const char *emit_expr(Emit *emit, Expr *e) {
  const char *value = e->count ? map_find(&emit->values, e) : NULL;
  if (value) return value;
  value = emit_new(emit, e);
  if (e->count) remember(emit, e, value);
  return value;
}
