// SPDX-License-Identifier: Apache-2.0
// Puts the bodies of functions of the module in the place of their calls, so that bounds, races and
// all targets see one function.
//
//   def first(A, k) -> T.int32:             for k in T.parallel(6):
//     for j in range(7):                      first = allocate(1)
//       if A[k, j] > 0: return j              first[0] = 0
//     return 7                         →      left = …
//                                             for j in range(7):
//   for k in T.parallel(6):                     if left[0] == 0:
//     C[k] = first(A.data, k) + 1                 if A[k, j] > 0: first[0] = j; left[0] = 1
//                                             if left[0] == 0: first[0] = 7
//                                             C[k] = first[0] + 1
//
// A callee has no blocks any more, and a value that it returns is stored in one more parameter, a
// buffer of one element. Its parameters become the caller's buffers where they have the same form,
// otherwise declarations over the caller's memory. A call in an expression stands before the
// statement, under the conditions under which it is evaluated; what the expression reads before the
// call is kept in a buffer of one element. Recursion is refused.
#include "ir/call.h"
#include "ir/intrinsic.h"
#include "ir/view.h"
#include "lower/pass.h"

enum { MAX_INLINED_CALLS = 10000 };

typedef struct CallNest { // the functions that are being inlined, from the inside out
  const PrimFunc *func;
  const struct CallNest *outer;
} CallNest;

typedef struct Inliner {
  Context *context;
  const Module *module;
  Map callables; // from PrimFunc* to the form that is put in the place of calls
  int calls;
} Inliner;

typedef struct CallSite {
  Inliner *inliner;
  Context *context;
  const CallNest *nest;
  CallScope scope;
  Analyzer *analyzer; // knows the loops and blocks around the visited statement
  SourcePos pos;
  PtrArray before; // statements that run before the visited one
  PtrArray locals; // buffers that are allocated around both
  bool ok;
} CallSite;

static PrimFunc *inlined(Inliner *inliner, PrimFunc *func, const CallNest *outer);
static Expr *hoisted(CallSite *c, Expr *e);

// ---- Calls in expressions and statements -------------------------------------------------------

static bool see_call(Visitor *visitor, Expr *e) {
  bool *found = visitor->env;
  *found |= e->op == EXPR_CALL_MODULE;
  return !*found;
}

static bool has_call(Expr *e) {
  bool found = false;
  visit_expr(&(Visitor){.env = &found, .enter_expr = see_call}, e);
  return found;
}

static bool calls_itself(Stmt *s) { // not the statements below it
  bool found = false;
  visit_stmt_exprs(&(Visitor){.env = &found, .enter_expr = see_call}, s);
  return found;
}

static bool has_call_below(Stmt *s) {
  bool found = false;
  visit_stmt(&(Visitor){.env = &found, .enter_expr = see_call}, s);
  return found;
}

static Expr *zero_index(Context *context) {
  return expr_int(context, DTYPE_INT32, 0);
}

static Buffer *new_local(CallSite *c, const char *name, DType type) {
  int64_t one = 1;
  Buffer *local = buffer_static(c->context, name, type, &one, 1, "local");
  array_push(&c->context->arena, &c->locals, local);
  return local;
}

static Expr *load_local(Context *context, Buffer *local) {
  Expr *zero = zero_index(context);
  return expr_load(context, local, &zero, 1);
}

static void add_before(CallSite *c, Stmt *s) {
  if (!s->pos.file) s->pos = c->pos;
  array_push(&c->context->arena, &c->before, s);
}

static void store_local(CallSite *c, Buffer *local, Expr *value) {
  Expr *zero = zero_index(c->context);
  add_before(c, stmt_store(c->context, local, &zero, 1, value));
}

// ---- A callee ----------------------------------------------------------------------------------

// The function without blocks and jumps. When it returns a value, it has one more parameter, which
// gets the value.
static PrimFunc *callable_form(Context *context, const PrimFunc *func) {
  static const char *const passes[] = {"convert_blocks"};
  int64_t one = 1;
  Buffer *result = func->result.code == TYPE_VOID
                       ? NULL
                       : buffer_static(context, func->name, func->result, &one, 1, "local");
  PrimFunc *next = lower_with_result(context, func, result, result ? result->data : NULL);
  return lower_run_passes(context, next, passes, 1, &(LowerOptions){.drop_result = true});
}

static bool recursion_error(const CallSite *c, const PrimFunc *callee) {
  const char *chain = callee->name;
  for (const CallNest *nest = c->nest; nest; nest = nest->outer) {
    chain = arena_printf(&c->context->arena, "%s -> %s", nest->func->name, chain);
    if (nest->func == callee) break;
  }
  return diag_error_as(c->context, DIAG_UNSUPPORTED, c->pos,
                       "%s calls itself (%s), and compiled code has no recursion\n"
                       "write it as a loop",
                       callee->name, chain);
}

static bool is_being_inlined(const CallSite *c, const PrimFunc *callee) {
  for (const CallNest *nest = c->nest; nest; nest = nest->outer)
    if (nest->func == callee) return true;
  return false;
}

static PrimFunc *callable(CallSite *c, const Expr *call) {
  Inliner *in = c->inliner;
  const ModuleFunc *found = in->module ? module_find(in->module, call->as.s) : NULL;
  PrimFunc *callee = found ? found->prim : NULL;
  if (!callee || callee->param_count != call->count) {
    diag_error_as(c->context, DIAG_UNSUPPORTED, c->pos,
                  callee ? "%s is called with another number of arguments than it has parameters"
                         : "the module has no tensor program '%s'",
                  call->as.s);
    return NULL;
  }
  PrimFunc *known = map_find(&in->callables, callee);
  if (known) return known;
  if (is_being_inlined(c, callee)) {
    recursion_error(c, callee);
    return NULL;
  }
  PrimFunc *whole = inlined(in, callee, c->nest);
  if (whole) known = callable_form(c->context, whole);
  if (known) map_put(&in->callables, callee, known);
  return known;
}

// ---- The arguments of a call -------------------------------------------------------------------

typedef struct Bound {
  Map vars, buffers; // of the callee, to those of the caller
  PtrArray declared; // Buffer*: other descriptions of the caller's memory
  PtrArray rows;     // MatchBuffer*: rows of the caller's buffers
  PtrArray lets;     // Expr* by twos: variables and their values
} Bound;

static Expr *named_value(CallSite *c, Bound *b, const char *name, Expr *value) {
  if (!value->count) return value; // a constant or a variable
  Expr *var = expr_var(c->context, name, value->type);
  array_push(&c->context->arena, &b->lets, var);
  array_push(&c->context->arena, &b->lets, value);
  return var;
}

static bool pointer_error(CallSite *c, const PrimFunc *callee, int i, const char *why) {
  const Buffer *buffer = i < callee->param_count ? callee->buffers[i] : NULL;
  c->ok = diag_error_as(c->context, DIAG_UNSUPPORTED, c->pos, "argument %d of %s, which is %s, %s",
                        i + 1, callee->name,
                        buffer ? buffer->name : callee->params[i]->as.var->name, why);
  return false;
}

static Expr **substituted(CallSite *c, Expr *const *items, int count, const Map *vars) {
  if (!items) return NULL;
  Expr **result = arena_array(&c->context->arena, Expr *, count);
  for (int i = 0; i < count; i++) result[i] = substitute_expr(c->context, items[i], vars);
  return result;
}

static bool same_exprs(Expr *const *a, Expr *const *b, int count) {
  if (!a != !b) return false;
  for (int i = 0; a && i < count; i++)
    if (a[i] != b[i] && !(a[i]->op == EXPR_INT && expr_is_int(b[i], a[i]->as.i))) return false;
  return true;
}

// Both describe the same elements in the same way, so that one stands for the other.
static bool same_form(const Buffer *a, const Buffer *b) {
  if (a->rank != b->rank || !dtype_equal(a->type, b->type) || a->layout || b->layout) return false;
  if (a->separator_count != b->separator_count || strcmp(a->scope, b->scope)) return false;
  for (int i = 0; i < a->separator_count; i++)
    if (a->separators[i] != b->separators[i]) return false;
  return same_exprs(a->shape, b->shape, a->rank) && same_exprs(a->strides, b->strides, a->rank) &&
         same_exprs(&a->offset, &b->offset, 1);
}

// ---- Rows of the caller's buffers

typedef struct DataUses {
  const Buffer *buffer;
  bool other; // the data is used in another way than by accesses of the buffer
} DataUses;

static bool use_of_data(Visitor *visitor, Expr *e) {
  DataUses *uses = visitor->env;
  bool own = e->op == EXPR_LOAD && e->as.buffer == uses->buffer;
  uses->other |= e == uses->buffer->data ||
                 (e->op == EXPR_LOAD && !own && e->as.buffer->data == uses->buffer->data);
  return !uses->other;
}

static bool use_in_stmt(Visitor *visitor, Stmt *s) {
  DataUses *uses = visitor->env;
  const Buffer *declared = s->kind == STMT_DECL_BUFFER ? s->as.declare.buffer : NULL;
  uses->other |= declared && declared->data == uses->buffer->data;
  return !uses->other;
}

static bool is_used_alone(const PrimFunc *callee, const Buffer *param) {
  DataUses uses = {param, false};
  Visitor visitor = {.env = &uses, .enter_expr = use_of_data, .enter_stmt = use_in_stmt};
  visit_stmt(&visitor, callee->body);
  return !uses.other;
}

// Are the elements of `buffer`, a row-major buffer that begins at the pointer, those of the last
// axes of the pointer's buffer from the pointer's indices on? The indices of all axes but the first
// must be 0, and the extents of all but the first the same.
static bool has_rows(CallSite *c, const CallPointer *pointer, const Buffer *buffer) {
  const Buffer *source = pointer->buffer;
  int extra = source ? source->rank - buffer->rank : -1;
  if (extra < 0 || !buffer->rank || source->strides || buffer->strides) return false;
  if (!dtype_equal(source->type, buffer->type) || !expr_is_int(buffer->offset, 0)) return false;
  for (int d = 1; d < buffer->rank; d++)
    if (!expr_is_int(pointer->indices[extra + d], 0) ||
        !same_exprs(&buffer->shape[d], &source->shape[extra + d], 1))
      return false;
  Expr *last = expr_add(c->context, pointer->indices[extra], buffer->shape[0]);
  return same_exprs(&last, &source->shape[extra], 1) ||
         analyzer_prove(c->analyzer, expr_binary(c->context, EXPR_LE, last, source->shape[extra]));
}

// The callee's buffer as a view of rows.
static void bind_rows(CallSite *c, Bound *b, const Buffer *param, const CallPointer *pointer,
                      Buffer *buffer) {
  Context *context = c->context;
  MatchBuffer *match = arena_new(&context->arena, MatchBuffer);
  int rank = pointer->buffer->rank;
  Region source = {(Buffer *)pointer->buffer, arena_array(&context->arena, Expr *, rank),
                   arena_array(&context->arena, Expr *, rank)};
  for (int d = 0; d < rank; d++) {
    int axis = d - (rank - buffer->rank);
    source.min[d] = named_value(c, b, "row", pointer->indices[d]);
    source.extent[d] = axis < 0 ? expr_int(context, source.min[d]->type, 1) : buffer->shape[axis];
  }
  *match = (MatchBuffer){buffer, source};
  array_push(&context->arena, &b->rows, match);
  map_put(&b->buffers, param, buffer);
}

// The buffer of the caller that stands for a parameter of the callee.
static void bind_pointer(CallSite *c, Bound *b, const PrimFunc *callee, int i, Expr *arg) {
  Context *context = c->context;
  const Buffer *param = callee->buffers[i];
  int64_t extent;
  CallPointer pointer = call_pointer(&c->scope, arg);
  if (!pointer.data) {
    pointer_error(c, callee, i, "is no data of a buffer and no address of an element");
    return;
  }
  bool moves = !expr_is_int(pointer.offset, 0);
  if (moves && buffer_element_bytes(pointer.buffer) != buffer_element_bytes(param)) {
    pointer_error(c, callee, i, "points to an element of another size");
    return;
  }
  if (moves && !is_used_alone(callee, param)) {
    pointer_error(c, callee, i, "points into a buffer, and the function has other uses of it");
    return;
  }
  Buffer *buffer = buffer_copy(context, param);
  buffer->data = pointer.data;
  buffer->scope = pointer.data->as.var->scope ? pointer.data->as.var->scope : param->scope;
  buffer->shape = substituted(c, param->shape, param->rank, &b->vars);
  for (int d = 0; d < buffer->rank; d++)
    if (expr_as_int(buffer->shape[d], &extent) && extent < 0) {
      pointer_error(
          c, callee, i,
          str_format(context, "gets the negative extent %lld in axis %d", (long long)extent, d));
      return;
    }
  buffer->strides = substituted(c, param->strides, param->rank, &b->vars);
  buffer->offset = substitute_expr(context, param->offset, &b->vars);
  buffer->layout = NULL;
  buffer->logical = NULL;
  map_put(&b->vars, callee->params[i], pointer.data);
  map_put(&b->vars, param->data, pointer.data);
  if (has_rows(c, &pointer, buffer) && is_used_alone(callee, param)) {
    bind_rows(c, b, param, &pointer, buffer);
    return;
  }
  Expr *start = moves ? named_value(c, b, "start", pointer.offset) : zero_index(context);
  buffer->offset = expr_add(context, buffer->offset, start);
  Buffer *owner = arg->op == EXPR_VAR && !moves ? map_find(&c->scope.owners, arg) : NULL;
  if (owner && owner->data == pointer.data && same_form(owner, buffer))
    buffer = owner;
  else
    array_push(&context->arena, &b->declared, buffer);
  map_put(&b->buffers, param, buffer);
}

static void bind_scalar(CallSite *c, Bound *b, const PrimFunc *callee, int i, Expr *arg) {
  Expr *param = callee->params[i];
  if (param->type.code == TYPE_HANDLE) {
    CallPointer pointer = call_pointer(&c->scope, arg);
    if (!pointer.data || !expr_is_int(pointer.offset, 0)) {
      pointer_error(c, callee, i, "points into a buffer, and the parameter has no buffer");
      return;
    }
    map_put(&b->vars, param, pointer.data);
  } else {
    map_put(&b->vars, param, named_value(c, b, param->as.var->name, arg));
  }
}

// Scalars come first, because shapes may have them.
static void bind_arguments(CallSite *c, Bound *b, const PrimFunc *callee, const Expr *call) {
  CallSizes sizes = {0};
  PrimFunc original = *callee; // without the parameter of the result
  original.param_count = call->count;
  c->ok = call_sizes(&c->scope, c->pos, &original, call, &sizes);
  for (int i = 0; c->ok && i < call->count; i++)
    if (!callee->buffers[i]) bind_scalar(c, b, callee, i, call->args[i]);
  for (int i = 0; i < sizes.count; i++) {
    const CallSize *size = &sizes.items[i];
    Expr *value = expr_cast(c->context, size->var->type, size->value);
    map_put(&b->vars, size->var, named_value(c, b, size->var->as.var->name, value));
  }
  for (int i = 0; c->ok && i < call->count; i++)
    if (callee->buffers[i]) bind_pointer(c, b, callee, i, call->args[i]);
}

static Stmt *with_bound(CallSite *c, const Bound *b, Stmt *body) {
  for (int i = 0; i < b->rows.count; i++)
    body = stmt_resolve_view(c->context, b->rows.items[i], body);
  for (int i = b->declared.count - 1; i >= 0; i--)
    body = stmt_declare(c->context, b->declared.items[i], body);
  for (int i = b->lets.count - 2; i >= 0; i -= 2)
    body = stmt_let(c->context, b->lets.items[i], b->lets.items[i + 1], body);
  return body;
}

// ---- A call ------------------------------------------------------------------------------------

// The value that the callee returns when it does nothing else.
static Expr *returned_value(const PrimFunc *callee, const Buffer *result) {
  const Stmt *body = callee->body;
  bool is_value = result && body->kind == STMT_STORE && body->as.store.buffer == result &&
                  expr_is_pure(body->as.store.value);
  return is_value ? body->as.store.value : NULL;
}

static bool count_call(CallSite *c) {
  if (++c->inliner->calls <= MAX_INLINED_CALLS) return true;
  return diag_error_as(c->context, DIAG_UNSUPPORTED, c->pos,
                       "more than %d calls of functions of the module are put in place\n"
                       "call them in a loop",
                       MAX_INLINED_CALLS);
}

static Expr *bound_value(CallSite *c, const Bound *b, Expr *value) {
  Expr *bound = substitute_expr(c->context, value, &b->vars);
  for (int i = b->lets.count - 2; i >= 0; i -= 2)
    bound = expr_let(c->context, b->lets.items[i], b->lets.items[i + 1], bound);
  return bound;
}

static bool reads_buffer(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= e->op == EXPR_LOAD || e->op == EXPR_LET;
  return true;
}

// A value of scalars alone stays an expression.
static bool is_plain_value(Expr *value) {
  bool reads = false;
  visit_expr(&(Visitor){.env = &reads, .enter_expr = reads_buffer}, value);
  return !reads;
}

static Expr *call_in_place(CallSite *c, const Expr *call) {
  Context *context = c->context;
  PrimFunc *callee = callable(c, call);
  Bound bound = {.vars = map_new(&context->arena), .buffers = map_new(&context->arena)};
  Expr *nothing = zero_index(context);
  if (!callee || !count_call(c)) return c->ok = false, nothing;
  Buffer *result = callee->param_count > call->count ? callee->buffers[call->count] : NULL;
  bind_arguments(c, &bound, callee, call);
  if (!c->ok) return nothing;
  Expr *value = returned_value(callee, result);
  if (value && is_plain_value(value)) return bound_value(c, &bound, value);
  Buffer *local = NULL;
  if (result) {
    local = new_local(c, call->as.s, result->type);
    store_local(c, local, expr_const(context, result->type, 0));
    map_put(&bound.buffers, result, local);
    map_put(&bound.vars, result->data, local->data);
  }
  Stmt *body = stmt_renew(context, callee->body);
  body = substitute_stmt(context, body, &bound.vars, &bound.buffers);
  add_before(c, with_bound(c, &bound, body));
  return local ? load_local(context, local) : nothing;
}

// ---- Expressions -------------------------------------------------------------------------------

static bool is_local(const CallSite *c, const Expr *e) {
  for (int i = 0; e->op == EXPR_LOAD && i < c->locals.count; i++)
    if (c->locals.items[i] == e->as.buffer) return true;
  return false;
}

// The value of the expression at this place, whatever is stored after it.
static Expr *settled(CallSite *c, Expr *e) {
  if (e->op == EXPR_ADDRESS_OF) {
    Expr *load = e->args[0];
    Expr **indices = arena_array(&c->context->arena, Expr *, load->count);
    for (int i = 0; i < load->count; i++) indices[i] = settled(c, load->args[i]);
    Expr *at = expr_raw(c->context, EXPR_LOAD, load->type, load->as.buffer, indices, load->count);
    return expr_with_args(c->context, e, &at);
  }
  if (!expr_reads_memory(e) || is_local(c, e) || e->type.code == TYPE_HANDLE) return e;
  Buffer *local = new_local(c, "value", e->type);
  store_local(c, local, e);
  return load_local(c->context, local);
}

// An operand that is evaluated under a condition only.
static Expr *hoisted_under(CallSite *c, Expr *e, Expr *condition) {
  if (!has_call(e)) return e;
  PtrArray outer = c->before;
  c->before = (PtrArray){0};
  Expr *next = hoisted(c, e);
  Stmt *inside = stmt_seq(c->context, (Stmt *const *)c->before.items, c->before.count);
  c->before = outer;
  if (!stmt_is_nothing(inside)) add_before(c, stmt_if(c->context, condition, inside, NULL));
  return next;
}

static Expr *hoisted_choice(CallSite *c, Expr *e) {
  Context *context = c->context;
  Expr *args[3], *first = settled(c, hoisted(c, e->args[0]));
  if (first->type.lanes > 1) {
    c->ok = diag_error_as(context, DIAG_UNSUPPORTED, c->pos,
                          "a function is called under a condition of several lanes");
    return e;
  }
  Expr *otherwise = expr_unary(context, EXPR_NOT, first);
  args[0] = first;
  args[1] = hoisted_under(c, e->args[1], e->op == EXPR_OR ? otherwise : first);
  if (e->count > 2) args[2] = hoisted_under(c, e->args[2], otherwise);
  return expr_with_args(context, e, args);
}

static Expr *hoisted_let(CallSite *c, Expr *e) {
  Expr *value = hoisted(c, e->args[1]);
  Map vars = map_new(&c->context->arena);
  Buffer *local = new_local(c, e->args[0]->as.var->name, value->type);
  store_local(c, local, value);
  map_put(&vars, e->args[0], load_local(c->context, local));
  return hoisted(c, substitute_expr(c->context, e->args[2], &vars));
}

// The operands are evaluated from the left to the right.
static Expr *hoisted(CallSite *c, Expr *e) {
  if (!c->ok || !has_call(e)) return e;
  if (e->op == EXPR_AND || e->op == EXPR_OR || e->op == EXPR_IF_THEN_ELSE)
    return hoisted_choice(c, e);
  if (e->op == EXPR_LET) return hoisted_let(c, e);
  Expr **args = arena_array(&c->context->arena, Expr *, e->count);
  for (int i = 0; i < e->count; i++) {
    bool calls = has_call(e->args[i]);
    for (int k = 0; calls && k < i; k++) args[k] = settled(c, args[k]);
    args[i] = hoisted(c, e->args[i]);
  }
  Expr *next = expr_with_args(c->context, e, args);
  return e->op == EXPR_CALL_MODULE && c->ok ? call_in_place(c, next) : next;
}

// ---- Statements --------------------------------------------------------------------------------

// The loop that evaluates its condition in its body.
static Stmt *hoisted_while(CallSite *c, Stmt *s) {
  Context *context = c->context;
  Expr *condition = hoisted(c, s->as.repeat.condition);
  Expr *leave =
      expr_raw(context, EXPR_INTRINSIC, DTYPE_VOID, str_intern(context, "break_loop"), NULL, 0);
  add_before(c, stmt_if(context, expr_unary(context, EXPR_NOT, condition),
                        stmt_evaluate(context, leave), NULL));
  add_before(c, s->as.repeat.body);
  Stmt *next = stmt_copy(context, s);
  next->as.repeat.condition = expr_bool(context, true);
  next->as.repeat.body = stmt_seq(context, (Stmt *const *)c->before.items, c->before.count);
  c->before.count = 0;
  for (int i = c->locals.count - 1; i >= 0; i--)
    next->as.repeat.body = stmt_allocate(context, c->locals.items[i], next->as.repeat.body);
  c->locals.count = 0;
  return next;
}

static Stmt *hoisted_store(CallSite *c, Stmt *s, Stmt *next) {
  Expr **indices = arena_array(&c->context->arena, Expr *, s->as.store.rank);
  bool calls = false;
  next->as.store.value = hoisted(c, s->as.store.value);
  for (int i = 0; i < s->as.store.rank; i++) calls |= has_call(s->as.store.indices[i]);
  if (calls) next->as.store.value = settled(c, next->as.store.value);
  for (int i = 0; i < s->as.store.rank; i++) {
    for (int k = 0; calls && k < i; k++) indices[k] = settled(c, indices[k]);
    indices[i] = hoisted(c, s->as.store.indices[i]);
  }
  next->as.store.indices = indices;
  return next;
}

static Stmt *hoisted_evaluate(CallSite *c, Stmt *s, Stmt *next) {
  Expr *value = hoisted(c, s->as.evaluate);
  if (stmt_jump(s) == JUMP_NONE && expr_is_pure(value)) return stmt_nothing(c->context);
  next->as.evaluate = value;
  return next;
}

static Stmt *hoisted_block(CallSite *c, Stmt *next) {
  Block *block = block_copy(c->context, next->as.block);
  next->as.block = block;
  block->vars =
      arena_copy(&c->context->arena, block->vars, sizeof *block->vars * (size_t)block->var_count);
  for (int i = 0; i < block->var_count; i++)
    block->vars[i].binding = hoisted(c, block->vars[i].binding);
  block->predicate = hoisted(c, block->predicate);
  return next;
}

static Stmt *hoisted_stmt(CallSite *c, Stmt *s) {
  Stmt *next = stmt_copy(c->context, s);
  switch (s->kind) {
  case STMT_WHILE: return hoisted_while(c, s);
  case STMT_STORE: return hoisted_store(c, s, next);
  case STMT_EVALUATE: return hoisted_evaluate(c, s, next);
  case STMT_BLOCK: return hoisted_block(c, next);
  case STMT_FOR:
    next->as.loop.min = hoisted(c, s->as.loop.min);
    if (has_call(s->as.loop.extent)) next->as.loop.min = settled(c, next->as.loop.min);
    next->as.loop.extent = hoisted(c, s->as.loop.extent);
    break;
  case STMT_LET: next->as.let.value = hoisted(c, s->as.let.value); break;
  case STMT_IF: next->as.branch.condition = hoisted(c, s->as.branch.condition); break;
  case STMT_ASSERT: next->as.check.condition = hoisted(c, s->as.check.condition); break;
  case STMT_ALLOCATE:
  case STMT_ALLOCATE_CONST:
  case STMT_DECL_BUFFER:
  case STMT_ATTR:
  case STMT_SEQ: break;
  }
  return next;
}

static Stmt *with_prelude(CallSite *c, Stmt *s) {
  Context *context = c->context;
  if (!stmt_is_nothing(s)) array_push(&context->arena, &c->before, s);
  Stmt *whole = stmt_seq(context, (Stmt *const *)c->before.items, c->before.count);
  for (int i = c->locals.count - 1; i >= 0; i--)
    whole = stmt_allocate(context, c->locals.items[i], whole);
  return whole;
}

// ---- Regions of blocks -------------------------------------------------------------------------

static bool see_declared(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_DECL_BUFFER) map_put(visitor->env, s->as.declare.buffer, s);
  return true;
}

static void add_region(Context *context, RegionArray *list, Region region) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i].buffer == region.buffer) {
      list->items[i] = region;
      return;
    }
  array_push(&context->arena, list, region);
}

// A buffer that is declared inside of the block stands for the whole buffer whose memory it has.
static RegionArray regions_outside(CallSite *c, const Map *declared, const RegionArray *found) {
  RegionArray result = {0};
  for (int i = 0; i < found->count; i++)
    if (!map_contains(declared, found->items[i].buffer))
      array_push(&c->context->arena, &result, found->items[i]);
  for (int i = 0; i < found->count; i++) {
    Buffer *buffer = found->items[i].buffer, *owner = map_find(&c->scope.owners, buffer->data);
    if (map_contains(declared, buffer) && owner && !map_contains(declared, owner))
      add_region(c->context, &result, region_whole(c->context, owner));
  }
  return result;
}

// The regions of a block are those of its body, which has the accesses of the callees now.
static Stmt *with_regions(CallSite *c, Stmt *s) {
  Context *context = c->context;
  RegionArray reads = {0}, writes = {0};
  Block *block = block_copy(context, s->as.block);
  Map declared = map_new(&context->arena);
  visit_stmt(&(Visitor){.env = &declared, .enter_stmt = see_declared}, block->body);
  if (block->init)
    visit_stmt(&(Visitor){.env = &declared, .enter_stmt = see_declared}, block->init);
  block_regions(analyzer_new(context), block, &reads, &writes);
  reads = regions_outside(c, &declared, &reads);
  writes = regions_outside(c, &declared, &writes);
  block->reads = reads.items;
  block->writes = writes.items;
  block->read_count = reads.count;
  block->write_count = writes.count;
  Stmt *next = stmt_copy(context, s);
  next->as.block = block;
  return next;
}

static void assume_ranges(CallSite *c, const Stmt *s) {
  VarRange range;
  if (s->kind == STMT_FOR) {
    range = loop_range(s);
    analyzer_bind_kept(c->analyzer, range.var, range.min, range.extent);
  }
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->var_count; i++) {
    const BlockVar *var = &s->as.block->vars[i];
    analyzer_bind_kept(c->analyzer, var->var, var->min, var->extent);
  }
}

static Stmt *replaced_children(CallSite *c, Rewriter *rewriter, Stmt *s) {
  int mark = analyzer_mark(c->analyzer);
  assume_ranges(c, s);
  Stmt *next = rewrite_stmt_children(rewriter, s);
  analyzer_reset(c->analyzer, mark);
  bool has_regions = next->kind == STMT_BLOCK && !block_is_root(next->as.block);
  return c->ok && next != s && has_regions ? with_regions(c, next) : next;
}

static Stmt *replaced_own(CallSite *c, Rewriter *rewriter, Stmt *s) {
  CallSite here = *c;
  here.before = here.locals = (PtrArray){0};
  Stmt *next = hoisted_stmt(&here, s);
  c->ok = here.ok;
  if (!c->ok) return s;
  if (calls_itself(next)) {
    c->ok = diag_error_as(c->context, DIAG_UNSUPPORTED, c->pos,
                          "a function is called where its value cannot be computed before\n"
                          "bind the value to a variable first");
    return s;
  }
  return with_prelude(&here, replaced_children(c, rewriter, next));
}

static Stmt *replaced(Rewriter *rewriter, Stmt *s) {
  CallSite *c = rewriter->env;
  SourcePos outer = c->pos;
  if (s->pos.file) c->pos = s->pos;
  Stmt *next = !c->ok || !has_call_below(s) ? s
               : calls_itself(s)            ? replaced_own(c, rewriter, s)
                                            : replaced_children(c, rewriter, s);
  c->pos = outer;
  return next;
}

static PrimFunc *inlined(Inliner *inliner, PrimFunc *func, const CallNest *outer) {
  Context *context = inliner->context;
  if (!has_call_below(func->body)) return func;
  CallNest nest = {func, outer};
  CallSite c = {.inliner = inliner,
                .context = context,
                .nest = &nest,
                .scope = call_scope(context, func),
                .analyzer = analyzer_new(context),
                .pos = func->pos,
                .ok = true};
  Rewriter rewriter = {
      .context = context, .env = &c, .enter_stmt = replaced, .buffer = lower_keep_buffer};
  Stmt *body = rewrite_stmt(&rewriter, func->body);
  return c.ok ? prim_func_with_body(context, func, body) : NULL;
}

PrimFunc *lower_with_callees(Context *context, const Module *module, PrimFunc *func) {
  Inliner inliner = {context, module, map_new(&context->arena), 0};
  return inlined(&inliner, func, NULL);
}

PrimFunc *lower_inline_calls(LowerState *state, PrimFunc *func) {
  return lower_with_callees(state->context, state->options->module, func);
}

// ---- Calls after passes that change parameters --------------------------------------------------

typedef struct UnfitCall {
  const Module *module;
  const PrimFunc *callee; // of the first call that does not fit
  int given;
} UnfitCall;

static bool check_call(Visitor *visitor, Expr *e) {
  UnfitCall *check = visitor->env;
  const ModuleFunc *found = e->op == EXPR_CALL_MODULE ? module_find(check->module, e->as.s) : NULL;
  const PrimFunc *callee = found ? found->prim : NULL;
  if (!callee || check->callee || callee->param_count == e->count) return true;
  check->callee = callee;
  check->given = e->count;
  return true;
}

bool lower_check_calls(Context *context, const Module *module) {
  bool ok = true;
  for (int i = 0; i < module->funcs.count; i++) {
    const PrimFunc *func = module->funcs.items[i].prim;
    UnfitCall check = {.module = module};
    if (func) visit_stmt(&(Visitor){.env = &check, .enter_expr = check_call}, func->body);
    if (!check.callee) continue;
    ok = diag_error(context, func->pos,
                    "'%s' calls '%s' with %d argument%s, which takes %d after these passes\n"
                    "run InlinePrivateFunctions before MakePackedAPI",
                    func->name, check.callee->name, check.given, check.given == 1 ? "" : "s",
                    check.callee->param_count);
  }
  return ok;
}
