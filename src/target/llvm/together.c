// SPDX-License-Identifier: Apache-2.0
// Writes the values of some iterations of a loop operation by operation rather than one after the
// other. A value with polynomials (exp, GELU) is one long chain, 35 instructions that take 85
// cycles, and the queues of a processor hold few of such chains: GELU of a vector took 22 cycles
// where its operations need 9. Where six chains alternate it takes 12, and a coefficient is loaded
// once for all of them. A body may have several such stores. At the end of a product's tile this is
// done where a loop reads the tile from memory, and at least two iterations run: accumulators that
// wait fill the registers, and EfficientFormer's convolutions took a tenth longer [Zen 3].
#include "target/llvm/emit.h"

enum { MOST_LETS = 32 };

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
  const Map *arrays;       // of the function's frame
  bool reads_arrays;
} ValueUses;

static bool note_use(Visitor *visitor, Expr *e) {
  ValueUses *uses = visitor->env;
  if (e->op == EXPR_LOAD) {
    uses->is_bound |= e->as.buffer->data == uses->written;
    uses->reads_arrays |= map_contains(uses->arrays, e->as.buffer->data);
  }
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

// A store, and the lets around it, the outermost first. Those of addresses are bound before the
// value of any copy is written.
typedef struct StoredChain {
  Stmt *store, *lets[MOST_LETS];
  bool is_address[MOST_LETS];
  int let_count;
} StoredChain;

// False when `s` is no store in lets.
static bool find_chain(Stmt *s, StoredChain *out) {
  *out = (StoredChain){0};
  for (; s->kind == STMT_LET && out->let_count < MOST_LETS; s = s->as.let.body)
    out->lets[out->let_count++] = s;
  if (s->kind != STMT_STORE) return false;
  out->store = s;
  for (int i = out->let_count - 1; i >= 0; i--) {
    Expr *var = out->lets[i]->as.let.var;
    for (int k = 0; k < s->as.store.rank; k++)
      out->is_address[i] |= expr_uses(s->as.store.indices[k], var);
    for (int k = i + 1; k < out->let_count; k++)
      out->is_address[i] |= out->is_address[k] && expr_uses(out->lets[k]->as.let.value, var);
  }
  return true;
}

// The value that is stored, with the lets that are not of addresses.
static Expr *value_of(Emit *emit, const StoredChain *chain) {
  Expr *value = chain->store->as.store.value;
  for (int i = chain->let_count - 1; i >= 0; i--) {
    const Stmt *let = chain->lets[i];
    if (!chain->is_address[i])
      value = expr_let(emit->context, let->as.let.var, let->as.let.value, value);
  }
  return value;
}

static void bind(Emit *emit, const Stmt *let) {
  emit_bind(emit, expr_let(emit->context, let->as.let.var, let->as.let.value, let->as.let.var));
}

// Does `b` differ from `a` in leaves only, so that emit_together can write both?
static bool is_alike(Map *seen, const Expr *a, const Expr *b) {
  if (a == b || map_find(seen, a) == b) return true;
  if (a->op != b->op || a->count != b->count || !dtype_equal(a->type, b->type)) return false;
  bool alike = true;
  for (int i = a->op == EXPR_LET; i < a->count && alike && is_elementwise(a); i++)
    alike = (a->op == EXPR_FMA && emit_is_coefficient(a->args[i]))
                ? a->args[i] == b->args[i]
                : is_alike(seen, a->args[i], b->args[i]);
  if (alike) map_put(seen, a, (void *)b);
  return alike;
}

// The statements of a loop's body: one, or a sequence in lets, which are bound first.
typedef struct ChainBody {
  Stmt *first, **items; // `first` has the lets around the sequence
  int count;
} ChainBody;

static ChainBody body_of(Stmt **s) {
  Stmt *inside = *s;
  while (inside->kind == STMT_LET) inside = inside->as.let.body;
  if (inside->kind != STMT_SEQ) return (ChainBody){NULL, s, 1};
  return (ChainBody){*s, inside->as.seq.items, inside->as.seq.count};
}

// keep_order names registers of processors with fused operations.
static bool is_long_chain(Emit *emit, const ChainBody *body, const StoredChain *chain,
                          bool *reads_arrays) {
  const HostMachine *machine = emit->module->machine;
  if (!emit->coefficients_in_memory || !machine->fma) return false;
  ValueUses uses = {.written = chain->store->as.store.buffer->data, .arrays = &emit->arrays};
  Map once = map_new(emit->arena);
  Visitor visitor = {.env = &uses, .enter_expr = note_use, .once = &once};
  visit_expr(&visitor, chain->store->as.store.value);
  for (int i = 0; i < chain->let_count; i++) visit_expr(&visitor, chain->lets[i]->as.let.value);
  for (const Stmt *s = body->first; s && s->kind == STMT_LET; s = s->as.let.body)
    visit_expr(&visitor, s->as.let.value);
  *reads_arrays |= uses.reads_arrays;
  return !uses.is_bound && uses.coefficients >= FEWEST_COEFFICIENTS &&
         uses.widest <= machine->vector_bytes;
}

LongChains emit_long_chains(Emit *emit, Stmt *s) {
  StoredChain first, other;
  ChainBody body = body_of(&s);
  LongChains chains = {body.count, false}, none = {0, false};
  if (!body.count || body.count > MOST_TOGETHER || !find_chain(body.items[0], &first)) return none;
  if (!is_long_chain(emit, &body, &first, &chains.reads_arrays)) return none;
  for (int i = 1; i < body.count; i++) {
    Map seen = map_new(emit->arena);
    if (!find_chain(body.items[i], &other) ||
        !is_long_chain(emit, &body, &other, &chains.reads_arrays))
      return none;
    if (other.store->as.store.buffer->data != first.store->as.store.buffer->data ||
        !is_alike(&seen, value_of(emit, &first), value_of(emit, &other)))
      return none;
  }
  return chains;
}

void emit_chains(Emit *emit, Stmt *const *copies, int count) {
  Stmt *stores[MOST_TOGETHER] = {0};
  Expr *values[MOST_TOGETHER] = {0};
  int n = 0;
  for (int k = 0; k < count; k++) {
    Stmt *copy = copies[k];
    ChainBody body = body_of(&copy);
    for (const Stmt *s = body.first; s && s->kind == STMT_LET; s = s->as.let.body) bind(emit, s);
    for (int i = 0; i < body.count; i++, n++) {
      StoredChain chain;
      find_chain(body.items[i], &chain);
      for (int l = 0; l < chain.let_count; l++)
        if (chain.is_address[l]) bind(emit, chain.lets[l]);
      stores[n] = stmt_copy(emit->context, chain.store);
      stores[n]->as.store.value = values[n] = value_of(emit, &chain);
    }
  }
  emit_together(emit, values, n);
  for (int k = 0; k < n; k++) emit_stmt(emit, stores[k]);
}
