// SPDX-License-Identifier: Apache-2.0
// Answers questions about statements and conditions, and makes small changes to them, for several
// passes.
#include "lower/pass.h"

// ---- Statements with one body

static Stmt **body_place(Stmt *s) {
  switch (s->kind) {
  case STMT_FOR: return &s->as.loop.body;
  case STMT_LET: return &s->as.let.body;
  case STMT_ALLOCATE: return &s->as.allocate.body;
  case STMT_ALLOCATE_CONST: return &s->as.allocate_const.body;
  case STMT_DECL_BUFFER: return &s->as.declare.body;
  case STMT_ATTR: return &s->as.attr.body;
  case STMT_STORE:
  case STMT_IF:
  case STMT_WHILE:
  case STMT_ASSERT:
  case STMT_EVALUATE:
  case STMT_SEQ:
  case STMT_BLOCK: break;
  }
  return NULL;
}

Stmt *lower_body(const Stmt *s) {
  Stmt **place = body_place((Stmt *)s);
  return place ? *place : NULL;
}

bool lower_is_plain_if(const Stmt *s) {
  return s->kind == STMT_IF && !s->as.branch.else_body;
}

Stmt *lower_with_body(Context *context, const Stmt *s, Stmt *body) {
  Stmt *next = stmt_copy(context, s);
  *body_place(next) = body;
  return next;
}

void lower_visit_sizes(Visitor *visitor, const Buffer *buffer) {
  for (int i = 0; i < buffer->rank; i++) {
    visit_expr(visitor, buffer->shape[i]);
    if (buffer->strides) visit_expr(visitor, buffer->strides[i]);
  }
  visit_expr(visitor, buffer->offset);
}

Stmt *lower_substitute(Context *context, Stmt *s, Expr *var, Expr *value) {
  Map vars = map_new(&context->arena);
  map_put(&vars, var, value);
  return substitute_stmt(context, s, &vars, NULL);
}

bool lower_is_region_loop(const Stmt *s) {
  return s->kind == STMT_FOR &&
         (s->as.loop.kind == LOOP_PARALLEL || s->as.loop.kind == LOOP_THREAD);
}

bool lower_is_regions(const Stmt *s) {
  return s->kind == STMT_ATTR && strcmp(s->as.attr.key, LOWER_REGIONS_ATTR) == 0;
}

Stmt *lower_map_regions(Rewriter *rewriter, Stmt *s,
                        Stmt *(*map)(Rewriter *rewriter, Stmt *region)) {
  Context *context = rewriter->context;
  Stmt *body = s->as.attr.body;
  if (body->kind != STMT_SEQ) return lower_with_body(context, s, map(rewriter, body));
  Stmt **items = arena_array(&context->arena, Stmt *, body->as.seq.count);
  bool changed = false;
  for (int i = 0; i < body->as.seq.count; i++) {
    items[i] = map(rewriter, body->as.seq.items[i]);
    changed |= items[i] != body->as.seq.items[i];
  }
  return changed ? lower_with_body(context, s, stmt_seq(context, items, body->as.seq.count)) : s;
}

bool lower_loop_ends(const Stmt *loop) {
  const Stmt *body = loop->as.loop.body;
  return loop->as.loop.kind == LOOP_SERIAL && body->kind == STMT_IF && !body->as.branch.else_body &&
         expr_reads_memory(body->as.branch.condition) && expr_is_pure(body->as.branch.condition) &&
         !expr_uses(body->as.branch.condition, loop->as.loop.var);
}

Buffer *lower_keep_buffer(Rewriter *rewriter, Buffer *b) {
  (void)rewriter;
  return b;
}

PrimFunc *lower_rewrite(LowerState *state, PrimFunc *func, Rewriter *rewriter) {
  Context *context = rewriter->context = state->context;
  int errors = context->error_count;
  Stmt *body = rewrite_stmt(rewriter, func->body);
  if (context->error_count > errors) return NULL;
  return body == func->body ? func : prim_func_with_body(context, func, body);
}

Stmt *lower_rewrite_under(Rewriter *rewriter, Analyzer *analyzer, Expr *condition, Stmt *body) {
  if (!body) return NULL;
  int mark = analyzer_mark(analyzer);
  if (!expr_reads_memory(condition)) analyzer_assume(analyzer, condition);
  body = rewrite_stmt(rewriter, body);
  analyzer_reset(analyzer, mark);
  return body;
}

// ---- Parts of several passes

bool lower_is_packed(const PrimFunc *func) {
  return attrs_int(&func->attrs, "calling_conv", 0) == 1;
}

typedef struct NameSearch {
  const Buffer *buffer;
  const Expr *var;
  bool found;
} NameSearch;

static bool note_name(Visitor *visitor, Expr *e) {
  NameSearch *search = visitor->env;
  const Buffer *b = search->buffer;
  search->found |=
      e == search->var || (b && e->op == EXPR_LOAD && e->as.buffer == b) || (b && e == b->data);
  return !search->found;
}

Attrs lower_attrs_without(Context *context, Attrs attrs, const Buffer *buffer, const Expr *var) {
  Attrs rest = attrs;
  for (int i = 0; i < attrs.count; i++) {
    NameSearch search = {buffer, var};
    visit_expr(&(Visitor){.env = &search, .enter_expr = note_name}, attrs.items[i].value);
    if (search.found) rest = attrs_without(&context->arena, rest, attrs.items[i].key);
  }
  return rest;
}

Expr *lower_shuffle(Context *context, Expr *const *vectors, int count, const int *lanes, int n) {
  Expr *numbers[LOWER_MAX_LANES];
  for (int i = 0; i < n; i++) numbers[i] = expr_int(context, DTYPE_INT32, lanes[i]);
  Expr *args[] = {expr_tuple(context, vectors, count), expr_tuple(context, numbers, n)};
  return expr_raw(context, EXPR_SHUFFLE, dtype_lanes(vectors[0]->type, n), NULL, args, 2);
}

// ---- Size

typedef struct SizeCount {
  int64_t size, times, limit;
} SizeCount;

static bool count_statement(Visitor *visitor, Stmt *s) {
  SizeCount *count = visitor->env;
  if (count->size >= count->limit) return false;
  bool value = s->kind == STMT_LET && !dtype_is_int(s->as.let.value->type);
  if (s->kind == STMT_STORE || s->kind == STMT_EVALUATE || value) count->size += count->times;
  int64_t extent;
  if (s->kind != STMT_FOR || s->as.loop.kind != LOOP_UNROLLED ||
      !expr_as_int(s->as.loop.extent, &extent) || extent < 1)
    return true;
  int64_t outer = count->times;
  count->times = MIN_OF(outer, count->limit) * MIN_OF(extent, count->limit);
  visit_stmt(visitor, s->as.loop.body);
  count->times = outer;
  return false;
}

int64_t lower_size(Stmt *s, int64_t limit) {
  SizeCount count = {0, 1, limit};
  Visitor visitor = {.env = &count, .enter_stmt = count_statement};
  visit_stmt(&visitor, s);
  return MIN_OF(count.size, limit);
}

// ---- Conditions

// A form that is at least 0 where `a` is less than `b`, or, with `slack` 0, at most `b`.
static Expr *least_form(Context *context, Expr *a, Expr *b, int64_t slack) {
  Expr *form = expr_sub(context, expr_sub(context, b, a), expr_int(context, a->type, slack));
  QuotientForm q;
  int64_t offset;
  bool is_unit = quotient_form(context, form, &q) && (q.factor == 1 || q.factor == -1);
  if (!is_unit || !mul_fits(q.rest, q.divisor, &offset) ||
      (q.factor < 0 && !add_fits(offset, q.divisor - 1, &offset)) ||
      !dtype_holds(form->type, offset))
    return form;
  Expr *rest = expr_int(context, form->type, offset);
  return q.factor > 0 ? expr_add(context, q.dividend, rest) : expr_sub(context, rest, q.dividend);
}

bool lower_condition_form(Context *context, Expr *condition, ConditionKind *kind, Expr **form) {
  if (condition->count != 2 || !dtype_is_int(condition->args[0]->type)) return false;
  Expr *a = condition->args[0], *b = condition->args[1];
  *kind = CONDITION_LEAST;
  switch ((ExprOp)condition->op) {
  case EXPR_LT: *form = least_form(context, a, b, 1); return true;
  case EXPR_LE: *form = least_form(context, a, b, 0); return true;
  case EXPR_GT: *form = least_form(context, b, a, 1); return true;
  case EXPR_GE: *form = least_form(context, b, a, 0); return true;
  case EXPR_EQ: *kind = CONDITION_EQUAL; break;
  case EXPR_NE: *kind = CONDITION_DIFFERENT; break;
  default: return false;
  }
  *form = expr_sub(context, a, b);
  return true;
}

// ---- The parts of a function

typedef struct PartChange {
  LowerState *state;
  const PrimFunc *func;
  LowerPartChange *change;
} PartChange;

static Stmt *change_region(Rewriter *rewriter, Stmt *region) {
  const PartChange *env = rewriter->env;
  bool parallel = region->kind == STMT_FOR && region->as.loop.kind == LOOP_PARALLEL;
  if (!parallel) return env->change(env->state, env->func, region);
  Stmt *body = env->change(env->state, env->func, region->as.loop.body);
  return body == region->as.loop.body ? region : lower_with_body(rewriter->context, region, body);
}

static Stmt *enter_regions(Rewriter *rewriter, Stmt *s) {
  return lower_is_regions(s) ? lower_map_regions(rewriter, s, change_region) : NULL;
}

static bool find_regions(Visitor *visitor, Stmt *s) {
  *(bool *)visitor->env |= lower_is_regions(s);
  return !*(bool *)visitor->env;
}

PrimFunc *lower_in_regions(LowerState *state, PrimFunc *func, LowerPartChange *change) {
  bool has_regions = false;
  visit_stmt(&(Visitor){.env = &has_regions, .enter_stmt = find_regions}, func->body);
  if (has_regions) {
    PartChange env = {state, func, change};
    Rewriter rewriter = {.env = &env, .enter_stmt = enter_regions, .buffer = lower_keep_buffer};
    return lower_rewrite(state, func, &rewriter);
  }
  Stmt *body = change(state, func, func->body);
  return body == func->body ? func : prim_func_with_body(state->context, func, body);
}
