// SPDX-License-Identifier: Apache-2.0
// Holds the table of operations, hash-conses expressions, and constructs them without folding. The
// constructors that fold are in fold.c.
#include "ir/ir.h"

#include <stdlib.h>

#define LEAF OP_LEAF
#define ARITH OP_ARITH
#define COMPARE OP_COMPARE
#define LOGIC OP_LOGIC
#define BIT OP_BIT
#define MATH OP_MATH
#define CHOICE OP_CHOICE
#define MEMORY OP_MEMORY
#define VECTOR OP_VECTOR
#define OTHER OP_OTHER
#define SAME OP_SAME
#define BOOL OP_BOOL
#define GIVEN OP_GIVEN
#define COMMUTES OP_COMMUTES
#define INFIX OP_INFIX
#define FLOATS OP_FLOATS
#define INTS OP_INTS
#define EFFECT OP_EFFECT

const OpInfo op_table[EXPR_OP_COUNT] = {
#define OP(NAME, spelling, arity, class, result, precedence, flags)                                \
  [EXPR_##NAME] = {#NAME, spelling, arity, class, result, precedence, flags},
#include "ir/ops.def"
#undef OP
};

// The hash stands beside the expression, so that one that differs is not read.
typedef struct ExprSlot {
  uint64_t hash;
  Expr *expr; // NULL: free
} ExprSlot;

struct ExprTable {
  ExprSlot *slots;
  size_t count, capacity; // a power of two
  uint32_t first_id;      // of the expressions that were made in this arena scope
  // The table of the context outside the arena scope: searched, never changed.
  const struct ExprTable *below;
};

// True for operations whose payload is a name.
static bool is_named(uint16_t op) {
  static const bool named[EXPR_OP_COUNT] = {
      [EXPR_STRING] = true,      [EXPR_CALL] = true,      [EXPR_CALL_PURE] = true,
      [EXPR_CALL_MODULE] = true, [EXPR_INTRINSIC] = true, [EXPR_INTRINSIC_PURE] = true,
      [EXPR_OBJECT] = true};
  return named[op];
}

static uint64_t payload_bits(uint16_t op, const Expr *e) {
  (void)op;
  uint64_t bits;
  memcpy(&bits, &e->as, sizeof bits);
  return bits;
}

static uint64_t hash_of(const Expr *e, Expr *const *args) {
  uint64_t h = hash_mix(e->op, ((uint64_t)e->type.code << 32) | ((uint64_t)e->type.bits << 16) |
                                   e->type.lanes);
  if (e->op == EXPR_LOAD)
    h = hash_mix(h, e->as.buffer->id);
  else if (is_named(e->op))
    h = hash_mix(h, hash_bytes(e->as.s, strlen(e->as.s)));
  else
    h = hash_mix(h, payload_bits(e->op, e));
  for (int i = 0; i < e->count; i++) h = hash_mix(h, args[i]->hash);
  return h;
}

static bool same_node(const Expr *a, const Expr *b, Expr *const *args) {
  return a->op == b->op && a->count == b->count && dtype_equal(a->type, b->type) &&
         payload_bits(a->op, a) == payload_bits(b->op, b) &&
         (a->count == 0 || memcmp(a->args, args, sizeof(Expr *) * a->count) == 0);
}

static ExprSlot *slot_of(const struct ExprTable *table, const Expr *like, Expr *const *args) {
  size_t i = like->hash & (table->capacity - 1);
  while (table->slots[i].expr &&
         (table->slots[i].hash != like->hash || !same_node(table->slots[i].expr, like, args)))
    i = (i + 1) & (table->capacity - 1);
  return &table->slots[i];
}

static void table_grow(Context *context, struct ExprTable *table) {
  struct ExprTable old = *table;
  table->capacity = old.capacity ? old.capacity * 2 : 4096;
  table->slots = arena_array(&context->arena, ExprSlot, table->capacity);
  for (size_t i = 0; i < old.capacity; i++) {
    if (!old.slots[i].expr) continue;
    size_t at = old.slots[i].hash & (table->capacity - 1);
    while (table->slots[at].expr) at = (at + 1) & (table->capacity - 1);
    table->slots[at] = old.slots[i];
  }
}

static Expr *node_copy(Context *context, const Expr *like, Expr *const *args) {
  size_t operands = sizeof(Expr *) * like->count, origin = like->op == EXPR_LOAD;
  Expr *e = arena_take(&context->arena, sizeof *e + operands + origin * sizeof(Expr *));
  memcpy(e, like, sizeof *e);
  if (origin) e->args[like->count] = NULL;
  if (operands) memcpy(e->args, args, operands);
  for (int i = 0; i < like->count; i++) e->uses |= args[i]->uses;
  if (like->op == EXPR_LOAD) e->uses |= EXPR_USES_BUFFER;
  e->id = context_next_id(context);
  return e;
}

static struct ExprTable *table_new(Context *context) {
  context->exprs = arena_new(&context->arena, struct ExprTable);
  context->exprs->below = context->exprs_below;
  context->exprs->first_id = context_next_id(context);
  return context->exprs;
}

// No expression outside of the scope has an operand that was made in it.
static Expr *find_below(const struct ExprTable *table, const Expr *like, Expr *const *args) {
  Expr *found = NULL;
  for (int i = 0; i < like->count; i++)
    if (args[i]->id >= table->first_id) return NULL;
  for (table = table->below; table && !found; table = table->below)
    found = slot_of(table, like, args)->expr;
  return found;
}

static Expr *cons(Context *context, Expr *like, Expr *const *args) {
  struct ExprTable *table = context->exprs ? context->exprs : table_new(context);
  if (table->count * 2 >= table->capacity) table_grow(context, table);
  like->hash = hash_of(like, args);
  ExprSlot *slot = slot_of(table, like, args);
  if (slot->expr) return slot->expr;
  Expr *e = find_below(table, like, args);
  table->count++;
  *slot = (ExprSlot){like->hash, e ? e : node_copy(context, like, args)};
  return slot->expr;
}

// The origin of a load stands behind its operands.
Expr *expr_origin(const Expr *load) {
  return load->op == EXPR_LOAD ? load->args[load->count] : NULL;
}

// A node from outside of the arena scope must not point into the scope.
void expr_set_origin(Context *context, Expr *load, Expr *origin) {
  if (load->op != EXPR_LOAD || !origin || load->args[load->count]) return;
  if (load->id >= context->exprs->first_id) load->args[load->count] = origin;
}

Expr *expr_load_like(Context *context, const Expr *like, Buffer *buffer, Expr *const *indices,
                     int rank) {
  Expr *load = expr_load(context, buffer, indices, rank);
  expr_set_origin(context, load, expr_origin(like));
  return load;
}

static const void *payload_of(const Expr *e) {
  return is_named(e->op) || e->op == EXPR_LOAD ? (const void *)e->as.s : &e->as;
}

Expr *expr_raw(Context *context, ExprOp op, DType type, const void *payload, Expr *const *args,
               int count) {
  Expr like = {.op = (uint16_t)op, .count = (uint16_t)count, .type = type};
  if (op == EXPR_INT)
    like.as.i = *(const int64_t *)payload;
  else if (op == EXPR_FLOAT)
    like.as.f = *(const double *)payload;
  else
    like.as.s = is_named((uint16_t)op) || op == EXPR_LOAD ? payload : NULL;
  if (count > UINT16_MAX) bug(context, "%d operands", count);
  return cons(context, &like, args);
}

static int64_t wrap_int(DType type, int64_t value) {
  if (type.code == TYPE_BOOL) return value != 0;
  if (type.bits >= 64) return value;
  uint64_t bits = (uint64_t)value & (((uint64_t)1 << type.bits) - 1);
  bool negative = type.code == TYPE_INT && bits >> (type.bits - 1);
  return (int64_t)(negative ? bits | ~(uint64_t)0 << type.bits : bits);
}

Expr *expr_int(Context *context, DType type, int64_t value) {
  DType scalar = dtype_lanes(type, 1);
  value = wrap_int(scalar, value);
  Expr *e = expr_raw(context, EXPR_INT, scalar, &value, NULL, 0);
  return expr_broadcast(context, e, type.lanes);
}

Expr *expr_float(Context *context, DType type, double value) {
  if (type.code == TYPE_FLOAT && type.bits == 32) value = (float)value;
  Expr *e = expr_raw(context, EXPR_FLOAT, dtype_lanes(type, 1), &value, NULL, 0);
  return expr_broadcast(context, e, type.lanes);
}

Expr *expr_const(Context *context, DType type, double value) {
  return dtype_is_float(type) ? expr_float(context, type, value)
                              : expr_int(context, type, (int64_t)value);
}

Expr *expr_bool(Context *context, bool value) {
  return expr_int(context, DTYPE_BOOL, value);
}

Expr *expr_index(Context *context, int64_t value) {
  bool small = value >= INT32_MIN && value <= INT32_MAX;
  return expr_int(context, small ? DTYPE_INT32 : DTYPE_INT64, value);
}

Expr *expr_string(Context *context, const char *s) {
  return expr_raw(context, EXPR_STRING, DTYPE_STRING, str_intern(context, s), NULL, 0);
}

Expr *expr_named_string(Context *context, const char *name) {
  Expr *text = expr_string(context, name);
  return expr_raw(context, EXPR_OBJECT, DTYPE_STRING, str_intern(context, "metadata"), &text, 1);
}

const char *expr_text(const Expr *e) {
  if (e->op == EXPR_STRING) return e->as.s;
  bool is_named = e->op == EXPR_OBJECT && !strcmp(e->as.s, "metadata");
  return is_named ? e->args[0]->as.s : NULL;
}

Expr *expr_tuple(Context *context, Expr *const *items, int count) {
  return expr_raw(context, EXPR_TUPLE, DTYPE_VOID, NULL, items, count);
}

// Variables are not in the table, because each is equal only to itself.
static Expr *new_var(Context *context, DType type, Var var) {
  Expr like = {.op = EXPR_VAR, .type = type};
  like.as.var = arena_copy(&context->arena, &var, sizeof var);
  Expr *e = node_copy(context, &like, NULL);
  e->hash = hash_mix(EXPR_VAR, e->id);
  e->uses = expr_use_bit(e);
  return e;
}

uint64_t expr_use_bit(const Expr *var) {
  return (uint64_t)1 << var->id % 63;
}

Expr *expr_var(Context *context, const char *name, DType type) {
  return new_var(context, type, (Var){.name = str_intern(context, name)});
}

Expr *expr_data_var(Context *context, const char *name, DType pointee, const char *scope) {
  Var var = {str_intern(context, name), pointee, str_intern(context, scope ? scope : "global")};
  return new_var(context, DTYPE_HANDLE, var);
}

Expr *expr_load(Context *context, Buffer *buffer, Expr *const *indices, int rank) {
  int lanes = rank ? indices[rank - 1]->type.lanes : 1;
  DType type = dtype_times(buffer->type, lanes);
  return expr_raw(context, EXPR_LOAD, type, buffer, indices, rank);
}

Expr *expr_lanes(Context *context, DType type, DType vector) {
  if (!dtype_is_scalable(vector)) return expr_int(context, type, vector.lanes);
  Expr *scale =
      expr_raw(context, EXPR_INTRINSIC_PURE, DTYPE_INT32, str_intern(context, "vscale"), NULL, 0);
  Expr *factor = expr_int(context, DTYPE_INT32, vector.lanes & ~DTYPE_SCALABLE);
  Expr *lanes = expr_raw(context, EXPR_MUL, DTYPE_INT32, NULL, (Expr *[]){scale, factor}, 2);
  return expr_cast(context, type, lanes);
}

static const Expr *unwidened(const Expr *e) {
  bool widens = e->op == EXPR_CAST && dtype_equal(e->type, DTYPE_INT64) &&
                dtype_equal(e->args[0]->type, DTYPE_INT32);
  return widens ? e->args[0] : e;
}

static bool is_vscale(const Expr *e) {
  e = unwidened(e);
  return e->op == EXPR_INTRINSIC_PURE && !strcmp(e->as.s, "vscale");
}

bool expr_scalable_lanes(const Expr *e, int *lanes) {
  int64_t factor = 1;
  e = unwidened(e);
  bool is_left = e->op == EXPR_MUL && is_vscale(e->args[0]);
  bool is_right = e->op == EXPR_MUL && is_vscale(e->args[1]);
  if (!is_left && !is_right && !is_vscale(e)) return false;
  if ((is_left || is_right) && !expr_as_int(e->args[is_left], &factor)) return false;
  *lanes = (int)factor | DTYPE_SCALABLE;
  return factor >= 1 && factor < DTYPE_SCALABLE;
}

Expr *expr_let(Context *context, Expr *var, Expr *value, Expr *body) {
  return expr_raw(context, EXPR_LET, body->type, NULL, (Expr *[]){var, value, body}, 3);
}

Expr *expr_call(Context *context, DType type, const char *callee, Expr *const *args, int count) {
  return expr_raw(context, EXPR_CALL, type, str_intern(context, callee), args, count);
}

Expr *expr_with_args(Context *context, const Expr *like, Expr *const *args) {
  const OpInfo *info = &op_table[like->op];
  switch (info->arity) {
  case 1:
    if (info->result != OP_GIVEN) return expr_unary(context, like->op, args[0]);
    break;
  case 2:
    if (info->result != OP_GIVEN) return expr_binary(context, like->op, args[0], args[1]);
    break;
  }
  DType type = like->type;
  switch ((ExprOp)like->op) {
  case EXPR_SELECT: return expr_select(context, args[0], args[1], args[2]);
  case EXPR_IF_THEN_ELSE: return expr_if_then_else(context, args[0], args[1], args[2]);
  case EXPR_CAST: return expr_cast(context, dtype_lanes(type, args[0]->type.lanes), args[0]);
  case EXPR_LOAD: return expr_load_like(context, like, like->as.buffer, args, like->count);
  case EXPR_RAMP: return expr_ramp(context, args[0], args[1], type.lanes);
  case EXPR_BROADCAST: return expr_broadcast(context, args[0], type.lanes);
  case EXPR_LET: return expr_let(context, args[0], args[1], args[2]);
  case EXPR_REINTERPRET: // its lanes may be parts of those of its operand, or the other way round
    type = dtype_lanes(type, type.lanes * args[0]->type.lanes / like->args[0]->type.lanes);
    break;
  case EXPR_FMA: type = dtype_lanes(type, args[0]->type.lanes); break;
  default: break;
  }
  return expr_raw(context, like->op, type, payload_of(like), args, like->count);
}

// ---- Questions

bool expr_as_int(const Expr *e, int64_t *value) {
  if (e->op != EXPR_INT) return false;
  *value = e->as.i;
  return true;
}

bool expr_is_int(const Expr *e, int64_t value) {
  if (e->op == EXPR_BROADCAST) e = e->args[0];
  return e->op == EXPR_INT && e->as.i == value;
}

bool expr_is_true(const Expr *e) {
  return dtype_is_bool(e->type) && expr_is_int(e, 1);
}

Expr *expr_iter_var(const Expr *e) {
  bool is_iter = e && e->op == EXPR_OBJECT && !strcmp(e->as.s, "iter_var") && e->count;
  return is_iter && e->args[0]->op == EXPR_VAR ? e->args[0] : NULL;
}

bool expr_divides_integers(const Expr *e) {
  switch (e->op) {
  case EXPR_DIV:
  case EXPR_FLOOR_DIV:
  case EXPR_FLOOR_MOD:
  case EXPR_TRUNC_DIV:
  case EXPR_TRUNC_MOD: return !dtype_is_float(e->type);
  default: return false;
  }
}

bool expr_may_divide_by_zero(const Expr *e) {
  if (!expr_divides_integers(e)) return false;
  const Expr *divisor = e->args[1]->op == EXPR_BROADCAST ? e->args[1]->args[0] : e->args[1];
  return divisor->op != EXPR_INT || divisor->as.i == 0;
}

bool expr_is_call(const Expr *e) {
  return e->op == EXPR_CALL || e->op == EXPR_CALL_PURE || e->op == EXPR_CALL_MODULE ||
         e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE;
}

typedef struct VariableSearch {
  const Expr *wanted;
  bool found;
} VariableSearch;

static bool search_enter(Visitor *visitor, Expr *e) {
  VariableSearch *search = visitor->env;
  search->found |= e == search->wanted;
  return !search->found;
}

bool expr_is_undefined(const Expr *e) {
  return (e->op == EXPR_INTRINSIC || e->op == EXPR_INTRINSIC_PURE) && !strcmp(e->as.s, "undef");
}

void expr_conjuncts(Context *context, Expr *condition, ExprArray *out) {
  if (condition->op == EXPR_LIKELY) condition = condition->args[0];
  if (condition->op == EXPR_AND) {
    expr_conjuncts(context, condition->args[0], out);
    expr_conjuncts(context, condition->args[1], out);
    return;
  }
  if (expr_is_true(condition)) return;
  for (int i = 0; i < out->count; i++)
    if (out->items[i] == condition) return;
  array_push(&context->arena, out, condition);
}

Expr *expr_conjunction(Context *context, const ExprArray *conjuncts) {
  Expr *result = expr_bool(context, true);
  for (int i = 0; i < conjuncts->count; i++)
    result = expr_and(context, result, conjuncts->items[i]);
  return result;
}

bool expr_uses(const Expr *e, const Expr *var) {
  if (!e || !(e->uses & expr_use_bit(var))) return false;
  VariableSearch search = {var, false};
  Visitor visitor = {.env = &search, .enter_expr = search_enter};
  visit_expr(&visitor, (Expr *)e);
  return search.found;
}

typedef struct LoadSearch {
  const Buffer *buffer;
  bool found;
} LoadSearch;

static bool see_load(Visitor *visitor, Expr *e) {
  LoadSearch *find = visitor->env;
  if (e->op == EXPR_LOAD && buffers_alias(e->as.buffer, find->buffer)) find->found = true;
  if (e == find->buffer->data) find->found = true;
  return true;
}

bool expr_reads(Expr *e, const Buffer *buffer) {
  LoadSearch find = {buffer};
  Visitor visitor = {.env = &find, .enter_expr = see_load};
  visit_expr(&visitor, e);
  return find.found;
}

int expr_tree_size(const Expr *e, const Buffer *buffer, int inside, int most) {
  int size = e->op == EXPR_LOAD && e->as.buffer == buffer ? inside : 1;
  for (int i = 0; i < e->count && size < most; i++)
    size += expr_tree_size(e->args[i], buffer, inside, most - size);
  return MIN_OF(size, most);
}

static bool effect_enter(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= (op_table[e->op].flags & OP_EFFECT) != 0;
  return true;
}

bool expr_is_pure(const Expr *e) {
  bool effect = false;
  Visitor visitor = {.env = &effect, .enter_expr = effect_enter};
  visit_expr(&visitor, (Expr *)e);
  return !effect;
}

int expr_compare(const void *a, const void *b) {
  uint32_t x = (*(Expr *const *)a)->id, y = (*(Expr *const *)b)->id;
  return (x > y) - (x < y);
}

// The order of two nodes whose operands are equal.
static int payload_compare(const Expr *a, const Expr *b) {
  if (is_named(a->op)) return strcmp(a->as.s, b->as.s);
  if (a->op == EXPR_LOAD && a->as.buffer != b->as.buffer)
    return a->as.buffer->id < b->as.buffer->id ? -1 : 1;
  if (a->op == EXPR_INT && a->as.i != b->as.i) return a->as.i < b->as.i ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

// Loads come between variables and all others.
static int operation_rank(uint16_t op) {
  return op == EXPR_LOAD ? 2 * EXPR_VAR + 1 : 2 * op;
}

int expr_structure_compare(const void *a, const void *b) {
  const Expr *x = *(Expr *const *)a, *y = *(Expr *const *)b;
  while (x != y) {
    if (x->op != y->op) return operation_rank(x->op) < operation_rank(y->op) ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    int i = 0;
    while (i < x->count && x->args[i] == y->args[i]) i++;
    if (i == x->count) return payload_compare(x, y);
    const Expr *next = x->args[i];
    y = y->args[i];
    x = next;
  }
  return 0;
}
