// SPDX-License-Identifier: Apache-2.0
// Writes the values of some iterations of a loop operation by operation rather than one after the
// other. A value with polynomials (exp, GELU) is one long chain, 35 instructions that take 85
// cycles, and the queues of a processor hold few of such chains: GELU of a vector took 22 cycles
// where its operations need 9. Where six chains alternate it takes 12, and a coefficient is loaded
// once for all of them. At the end of a product's tile this is not done: the accumulators that wait
// fill the registers, and EfficientFormer's convolutions took a tenth longer [Zen 3].
#include "target/llvm/emit.h"

// Whether an operation of a vector is written after its operands, without blocks of its own.
static bool is_elementwise(const Expr *e) {
  switch (e->op) {
  case EXPR_ADD:
  case EXPR_SUB:
  case EXPR_MUL:
  case EXPR_DIV:
  case EXPR_MIN:
  case EXPR_MAX:
  case EXPR_EQ:
  case EXPR_NE:
  case EXPR_LT:
  case EXPR_LE:
  case EXPR_GT:
  case EXPR_GE:
  case EXPR_SHIFT_LEFT:
  case EXPR_SHIFT_RIGHT:
  case EXPR_BIT_AND:
  case EXPR_BIT_OR:
  case EXPR_BIT_XOR:
  case EXPR_SELECT:
  case EXPR_LET:
  case EXPR_REINTERPRET:
  case EXPR_FMA:
  case EXPR_ABS:
  case EXPR_SQRT: return e->type.lanes > 1;
  default: return false;
  }
}

typedef struct ValueUses { // of the value of a store
  const Expr *written;     // the store's data variable
  int coefficients;        // of polynomials
  int widest;              // their bytes
  bool is_bound;           // to its place among other statements
} ValueUses;

static bool note_use(Visitor *visitor, Expr *e) {
  ValueUses *uses = visitor->env;
  if (e->op == EXPR_LOAD) uses->is_bound |= e->as.buffer->data == uses->written;
  if (e->op == EXPR_CALL || e->op == EXPR_INTRINSIC || e->op == EXPR_PREFETCH)
    uses->is_bound = true;
  if (e->op != EXPR_FMA || !emit_is_coefficient(e->args[2])) return true;
  uses->coefficients++;
  uses->widest = MAX_OF(uses->widest, e->type.lanes * dtype_bytes(e->type));
  return true;
}

// LLVM's scheduler would write chain by chain again. Volatile loads keep their order, and an empty
// assembly statement between them that takes the sums so far keeps theirs.
static void keep_order(Emit *emit, Expr *const *values, int count) {
  Text given = text_new(emit->arena), registers = text_new(emit->arena);
  for (int k = 0; k < count; k++) {
    text_printf(&registers, "%sx", k ? "," : "");
    text_printf(&given, "%s%s %s", k ? ", " : "", llvm_type(emit, values[k]->type),
                emit_expr(emit, values[k]));
  }
  emit_line(emit, "call void asm sideeffect \"\", \"%s\"(%s)", text_string(&registers),
            text_string(&given));
}

// The values differ in their leaves only.
static void emit_together(Emit *emit, Expr *const *values, int count) {
  Expr *args[MOST_TOGETHER], *first = values[0];
  bool is_let = first->op == EXPR_LET;
  bool is_whole = !is_elementwise(first) || map_find(&emit->values, first);
  for (int i = is_let; i < first->count && !is_whole; i++) {
    if (first->op == EXPR_FMA && emit_is_coefficient(first->args[i])) continue;
    for (int k = 0; k < count; k++) args[k] = values[k]->args[i];
    emit_together(emit, args, count);
    if (is_let && i == 1)
      for (int k = 0; k < count; k++) emit_bind(emit, values[k]);
  }
  for (int k = 0; k < count; k++) emit_expr(emit, values[k]);
  if (first->op == EXPR_FMA && emit_is_coefficient(first->args[2])) keep_order(emit, values, count);
}

// A store whose value has the lets around it, or NULL.
static Stmt *store_of(Emit *emit, Stmt *s) {
  if (s->kind == STMT_STORE) return s;
  if (s->kind != STMT_LET) return NULL;
  Stmt *inner = store_of(emit, s->as.let.body);
  if (!inner) return NULL;
  Expr *var = s->as.let.var, *value = inner->as.store.value;
  for (int i = 0; i < inner->as.store.rank; i++)
    if (expr_uses(inner->as.store.indices[i], var)) return NULL;
  Stmt *store = stmt_copy(emit->context, inner);
  store->as.store.value = expr_let(emit->context, var, s->as.let.value, value);
  return store;
}

// keep_order names registers of processors with fused operations.
bool emit_is_long_chain(Emit *emit, Stmt *s) {
  const HostMachine *machine = emit->module->machine;
  Stmt *store = emit->coefficients_in_memory && machine->fma ? store_of(emit, s) : NULL;
  if (!store) return false;
  ValueUses uses = {.written = store->as.store.buffer->data};
  Map once = map_new(emit->arena);
  Visitor visitor = {.env = &uses, .enter_expr = note_use, .once = &once};
  visit_expr(&visitor, store->as.store.value);
  return !uses.is_bound && uses.coefficients >= FEWEST_COEFFICIENTS &&
         uses.widest <= machine->vector_bytes;
}

void emit_chains(Emit *emit, Stmt *const *copies, int count) {
  Stmt *stores[MOST_TOGETHER] = {0};
  Expr *values[MOST_TOGETHER] = {0};
  for (int k = 0; k < count; k++) {
    stores[k] = store_of(emit, copies[k]);
    values[k] = stores[k]->as.store.value;
  }
  emit_together(emit, values, count);
  for (int k = 0; k < count; k++) emit_stmt(emit, stores[k]);
}
