// SPDX-License-Identifier: Apache-2.0
// Writes the values of some iterations of a loop operation by operation rather than one after the
// other. A value with polynomials (exp, GELU) is one long chain, 35 instructions that take 85
// cycles, and the queues of a processor hold few of such chains: GELU of a vector took 22 cycles
// where its operations need 9. Where six chains alternate it takes 12, and a coefficient is loaded
// once for all of them. At the end of a product's tile this is not done: the accumulators that wait
// fill the registers, and EfficientFormer's convolutions took a tenth longer [Zen 3].
#include "target/llvm/emit.h"

enum { MOST_COMPARED = 1000 };

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

// Whether two values differ in their leaves only. Shared operands are compared wherever they occur,
// so that `left` bounds the comparisons.
static bool have_one_form(const Expr *a, const Expr *b, int *left) {
  if (--*left < 0 || a->op != b->op || !dtype_equal(a->type, b->type) || a->count != b->count)
    return false;
  if (!is_elementwise(a)) return true;
  for (int i = 0; i < a->count; i++)
    if (!have_one_form(a->args[i], b->args[i], left)) return false;
  return true;
}

// Whether the value of a store is worth it, and reads nothing that is in `written`.
typedef struct ValueUses {
  const Map *written; // data variables
  int coefficients;   // of polynomials
  int widest;         // their bytes
  bool is_bound;      // to its place among other statements
} ValueUses;

static bool note_use(Visitor *visitor, Expr *e) {
  ValueUses *uses = visitor->env;
  if (e->op == EXPR_LOAD) uses->is_bound |= map_contains(uses->written, e->as.buffer->data);
  if (e->op == EXPR_CALL || e->op == EXPR_INTRINSIC || e->op == EXPR_PREFETCH)
    uses->is_bound = true;
  if (e->op != EXPR_FMA || !emit_is_coefficient(e->args[2])) return true;
  uses->coefficients++;
  uses->widest = MAX_OF(uses->widest, e->type.lanes * dtype_bytes(e->type));
  return true;
}

static bool may_be_early(Emit *emit, const Stmt *store, const Map *written) {
  ValueUses uses = {.written = written};
  Map once = map_new(emit->arena);
  Visitor visitor = {.env = &uses, .enter_expr = note_use, .once = &once};
  visit_expr(&visitor, store->as.store.value);
  return !uses.is_bound && uses.coefficients >= FEWEST_COEFFICIENTS &&
         uses.widest <= emit->module->machine->vector_bytes;
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

typedef struct VarClaim { // the variables that an expression binds
  Map *taken;             // by other expressions
  Map own;
  bool is_free; // of those
} VarClaim;

static bool note_binding(Visitor *visitor, Expr *e) {
  VarClaim *claim = visitor->env;
  if (e->op != EXPR_LET) return true;
  claim->is_free &= !map_contains(claim->taken, e->args[0]);
  map_put(&claim->own, e->args[0], e);
  return true;
}

// Whether no variable of `value` has another value in an expression before; takes them if so.
static bool claim_variables(Emit *emit, Expr *value, Map *taken) {
  VarClaim claim = {taken, map_new(emit->arena), true};
  Map once = map_new(emit->arena);
  Visitor visitor = {.env = &claim, .enter_expr = note_binding, .once = &once};
  visit_expr(&visitor, value);
  for (int i = 0; i < claim.own.count && claim.is_free; i++)
    map_set(taken, claim.own.entries[i].key, claim.own.entries[i].value);
  return claim.is_free;
}

// The stores of a row that have the form of the first, which was not written yet.
static PtrArray find_alike(Emit *emit, Stmt *const *stores, int count) {
  PtrArray found = {0};
  int left = MOST_COMPARED;
  Map taken = map_new(emit->arena);
  for (int i = 0; i < count; i++) {
    Expr *value = stores[i]->as.store.value;
    if (map_find(&emit->values, value)) continue;
    if (found.count && !have_one_form(found.items[0], value, &left)) continue;
    if (claim_variables(emit, value, &taken)) array_push(emit->arena, &found, (void *)value);
  }
  return found;
}

static void emit_values_together(Emit *emit, Stmt *const *stores, int count) {
  if (count < 2) return;
  Map written = map_new(emit->arena);
  for (int i = 0; i < count; i++) map_put(&written, stores[i]->as.store.buffer->data, stores[i]);
  PtrArray early = {0};
  for (int i = 0; i < count; i++)
    if (may_be_early(emit, stores[i], &written)) array_push(emit->arena, &early, stores[i]);
  for (int i = 0; i < early.count; i++) {
    PtrArray alike = find_alike(emit, (Stmt *const *)early.items + i, early.count - i);
    int groups = (alike.count + MOST_TOGETHER - 1) / MOST_TOGETHER;
    for (int g = 0, from = 0; g < groups; g++) {
      int to = alike.count * (g + 1) / groups;
      emit_together(emit, (Expr *const *)alike.items + from, to - from);
      from = to;
    }
  }
}

// keep_order names registers of processors with fused operations.
static bool may_alternate(const Emit *emit) {
  return emit->coefficients_in_memory && emit->module->machine->fma;
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

bool emit_is_long_chain(Emit *emit, Stmt *s) {
  Stmt *store = may_alternate(emit) ? store_of(emit, s) : NULL;
  if (!store) return false;
  Map written = map_new(emit->arena);
  map_put(&written, store->as.store.buffer->data, store);
  return may_be_early(emit, store, &written);
}

int emit_row_of_stores(Emit *emit, Stmt *const *items, int count, Stmt **row, int most) {
  int n = 0;
  if (!may_alternate(emit)) return 0;
  while (n < count && n < most && (row[n] = store_of(emit, items[n]))) n++;
  emit_values_together(emit, row, n);
  return n;
}
