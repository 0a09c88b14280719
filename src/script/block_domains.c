// SPDX-License-Identifier: Apache-2.0
// Proves that the bindings of block variables stay inside the domains of the variables. The body of
// a block and its lowered loops rely on the domains, so that a binding which leaves its domain
// would make native code access memory outside of its buffers.
//   for jo, ji in T.grid(4, 16):
//     with T.block("b"):
//       vj = T.axis.spatial(64, jo * 16 + ji)   inside: 0 to 63
//       vj = T.axis.spatial(64, jo * 32 + ji)   refused: 0 to 111
//       T.where(jo * 32 + ji < 64)              guards the second binding, which is then inside
// Likewise proves what T.match_buffer states of its region: extents, strides and an offset.
// Accesses of the view become accesses of the region's buffer, which would ignore a wrong
// statement.
#include "arith/arith.h"
#include "script/parser.h"

typedef struct DomainProof {
  Context *context;
  Analyzer *analyzer;
  Map defined;    // variables of parameters, loops, blocks and lets
  Map loops;      // variable -> its loop, for those around
  PtrArray empty; // variables of loops around that have no iterations
  bool views;     // views are proved, not bindings
  bool ok;
} DomainProof;

static void prove_stmt(DomainProof *proof, Stmt *s);

// ---- One binding

static const char *domain_text(DomainProof *proof, const BlockVar *v) {
  Context *context = proof->context;
  Expr *end = expr_add(context, v->min, v->extent);
  Expr *last = expr_sub(context, end, expr_int(context, end->type, 1));
  last = analyzer_simplify(proof->analyzer, last);
  return arena_printf(&context->arena, "its domain is from %s to %s",
                      script_expr_text(context, v->min), script_expr_text(context, last));
}

static const char *binding_text(DomainProof *proof, const BlockVar *v) {
  int64_t low, high;
  if (!analyzer_const_bounds(proof->analyzer, v->binding, &low, &high)) return "";
  return arena_printf(&proof->context->arena, "the binding is from %lld to %lld, ", (long long)low,
                      (long long)high);
}

static void refuse_binding(DomainProof *proof, const Block *block, const BlockVar *v) {
  Context *context = proof->context;
  diag_error(context, v->pos.file ? v->pos : block->body->pos,
             "%s is not proved to stay in the domain of '%s'\n"
             "%s%s; correct one of them, or guard the block with T.where(...)",
             script_expr_text(context, v->binding), v->var->as.var->name, binding_text(proof, v),
             domain_text(proof, v));
  proof->ok = false;
}

// Whether the variable takes the values of a loop, as T.axis.remap states. What becomes known below
// the loop may simplify the domain, but not the range of the loop's variable.
static bool is_loop(const DomainProof *proof, const BlockVar *v) {
  const Stmt *s = map_find(&proof->loops, v->binding);
  return s && s->as.loop.min == v->min && s->as.loop.extent == v->extent &&
         !expr_reads_memory(v->extent);
}

static bool stays_inside(DomainProof *proof, const BlockVar *v) {
  Context *context = proof->context;
  if (is_loop(proof, v)) return true;
  Expr *end = expr_add(context, v->min, v->extent);
  return analyzer_prove_within(proof->analyzer, v->binding, v->min, end);
}

// Tries again with the predicate's conditions in the other order, since the analyzer may conclude
// more from one of them after it has the others.
static bool stays_inside_reversed(DomainProof *proof, const Block *block, const BlockVar *v) {
  ExprArray conjuncts = {0};
  int mark = analyzer_mark(proof->analyzer);
  expr_conjuncts(proof->context, block->predicate, &conjuncts);
  if (conjuncts.count < 2) return false;
  for (int i = conjuncts.count; i-- > 0;) analyzer_assume(proof->analyzer, conjuncts.items[i]);
  bool inside = stays_inside(proof, v);
  analyzer_reset(proof->analyzer, mark);
  return inside;
}

// Where only loops of the reduction have no iterations, the init runs.
static bool runs(const DomainProof *proof, const Block *block) {
  bool used = false;
  for (int i = 0; i < proof->empty.count; i++)
    for (int k = 0; k < block->var_count; k++)
      used |= block->vars[k].kind == ITER_SPATIAL &&
              expr_uses(block->vars[k].binding, proof->empty.items[i]);
  return !proof->empty.count || (block->init && !used);
}

typedef struct ReducedSearch {
  const Block *block;
  bool reduces; // a variable occurs in the binding of a variable of the reduction
} ReducedSearch;

static bool find_reduced(Visitor *visitor, Expr *e) {
  ReducedSearch *search = visitor->env;
  for (int i = 0; e->op == EXPR_VAR && i < search->block->var_count; i++)
    search->reduces |=
        search->block->vars[i].kind != ITER_SPATIAL && expr_uses(search->block->vars[i].binding, e);
  return true;
}

// Whether a part of the predicate never holds, so that neither the body nor the init runs.
static bool never_holds(DomainProof *proof, const Block *block) {
  Context *context = proof->context;
  ExprArray conjuncts = {0};
  expr_conjuncts(context, block->predicate, &conjuncts);
  for (int i = 0; i < conjuncts.count; i++) {
    ReducedSearch search = {block, false};
    visit_expr(&(Visitor){.env = &search, .enter_expr = find_reduced}, conjuncts.items[i]);
    if (block->init && search.reduces) continue;
    if (analyzer_prove(proof->analyzer, expr_unary(context, EXPR_NOT, conjuncts.items[i])))
      return true;
  }
  return false;
}

// The predicate holds when the bindings are evaluated. In the body, it may hold no longer where it
// reads memory.
static void prove_bindings(DomainProof *proof, const Block *block) {
  if (never_holds(proof, block)) return;
  int mark = analyzer_mark(proof->analyzer);
  Array(const BlockVar *) unproved = {0};
  analyzer_assume(proof->analyzer, block->predicate);
  for (int i = 0; i < block->var_count && runs(proof, block); i++) {
    const BlockVar *v = &block->vars[i];
    bool is_proved = proof->empty.count && v->kind != ITER_SPATIAL;
    if (!is_proved && !stays_inside(proof, v)) array_push(&proof->context->arena, &unproved, v);
  }
  analyzer_reset(proof->analyzer, mark);
  for (int i = 0; i < unproved.count; i++) {
    if (stays_inside_reversed(proof, block, unproved.items[i])) continue;
    analyzer_assume(proof->analyzer, block->predicate);
    refuse_binding(proof, block, unproved.items[i]);
    analyzer_reset(proof->analyzer, mark);
  }
}

// ---- Views

// A variable that nothing defines gets the value; another expression must be proved to have it.
static void prove_field(DomainProof *proof, const Buffer *view, const char *field, Expr *stated,
                        Expr *value) {
  Context *context = proof->context;
  bool is_new = stated->op == EXPR_VAR && !map_contains(&proof->defined, stated);
  if (is_new) {
    map_put(&proof->defined, stated, stated);
    if (dtype_equal(stated->type, value->type)) analyzer_bind_value(proof->analyzer, stated, value);
    return;
  }
  Expr *a = expr_cast(context, DTYPE_INT64, stated), *b = expr_cast(context, DTYPE_INT64, value);
  if (analyzer_prove_equal(proof->analyzer, a, b)) return;
  Expr *simple = analyzer_simplify(proof->analyzer, value);
  diag_error(context, view->pos, "%s of view '%s' is not proved to be %s, as in its region\nsaw %s",
             field, view->name, script_expr_text(context, simple),
             script_expr_text(context, stated));
  proof->ok = false;
}

typedef struct PointerUse {
  const Buffer *view;
  bool found;
} PointerUse;

static bool find_pointer(Visitor *visitor, Expr *e) {
  PointerUse *use = visitor->env;
  use->found |= e == use->view->data;
  return !use->found;
}

static bool find_alias(Visitor *visitor, Stmt *s) {
  PointerUse *use = visitor->env;
  use->found |= s->kind == STMT_DECL_BUFFER && s->as.declare.buffer->data == use->view->data;
  return !use->found;
}

// Whether the block passes on the view's pointer, or declares another buffer over it.
static bool passes_pointer(const Block *block, const Buffer *view) {
  PointerUse use = {view, false};
  Visitor visitor = {.env = &use, .enter_expr = find_pointer, .enter_stmt = find_alias};
  if (block->init) visit_stmt(&visitor, block->init);
  visit_stmt(&visitor, block->body);
  return use.found;
}

// The pointer of a view is that of its source, and is the same variable. Without an elem_offset,
// who gets it takes it for the first element of the region.
static void prove_pointer(DomainProof *proof, const Block *block, const MatchBuffer *match,
                          Expr *offset) {
  Context *context = proof->context;
  const Buffer *view = match->buffer, *source = match->source.buffer;
  Expr *zero = expr_int(context, offset->type, 0);
  if (!view->reads_data || !passes_pointer(block, view)) return;
  if (analyzer_prove_equal(proof->analyzer, offset, zero)) return;
  diag_error(context, view->pos,
             "the data of view '%s' is passed on, which points to the first element of '%s' and "
             "not of its region\nthe region begins at element %s: state offset_factor=1, and pass "
             "%s.elem_offset too",
             view->name, source->name,
             script_expr_text(context, analyzer_simplify(proof->analyzer, offset)), view->name);
  proof->ok = false;
}

static void prove_view(DomainProof *proof, const Block *block, const MatchBuffer *match) {
  Context *context = proof->context;
  const Buffer *view = match->buffer, *source = match->source.buffer;
  int extra = source->rank - view->rank;
  bool is_same = dtype_equal(view->type, source->type);
  if (extra < 0 || !is_same) return; // reported where views are resolved
  Expr **strides = arena_array(&context->arena, Expr *, source->rank);
  buffer_stride_exprs(context, source, strides);
  for (int i = 0; i < view->rank; i++) {
    const char *axis = arena_printf(&context->arena, "axis %d", i);
    prove_field(proof, view, axis, view->shape[i], match->source.extent[i + extra]);
    axis = arena_printf(&context->arena, "stride %d", i);
    if (view->strides) prove_field(proof, view, axis, view->strides[i], strides[i + extra]);
  }
  Expr *offset = buffer_element_offset(context, source, match->source.min);
  if (expr_is_int(view->offset, 0) && !view->holds_offset)
    prove_pointer(proof, block, match, offset);
  else
    prove_field(proof, view, "the elem_offset", view->offset, offset);
}

// ---- Facts of the statements around blocks

static void prove_under(DomainProof *proof, Stmt *s, Expr *condition) {
  int mark = analyzer_mark(proof->analyzer);
  if (!expr_reads_memory(condition)) analyzer_assume(proof->analyzer, condition);
  prove_stmt(proof, s);
  analyzer_reset(proof->analyzer, mark);
}

static bool enter_block(DomainProof *proof, Stmt *s) {
  const Block *block = s->as.block;
  if (!proof->views) prove_bindings(proof, block);
  if (!expr_reads_memory(block->predicate)) analyzer_assume(proof->analyzer, block->predicate);
  for (int i = 0; i < block->var_count; i++)
    analyzer_bind_kept(proof->analyzer, block->vars[i].var, block->vars[i].min,
                       block->vars[i].extent);
  for (int i = 0; proof->views && i < block->match_count; i++)
    prove_view(proof, block, &block->matches[i]);
  if (block->init) prove_stmt(proof, block->init);
  prove_stmt(proof, block->body);
  return false;
}

static bool enter_branch(DomainProof *proof, Stmt *s) {
  Expr *condition = s->as.branch.condition;
  prove_under(proof, s->as.branch.then_body, condition);
  if (s->as.branch.else_body)
    prove_under(proof, s->as.branch.else_body, expr_unary(proof->context, EXPR_NOT, condition));
  return false;
}

// A condition that is asserted holds in the statements after it.
static bool enter_sequence(DomainProof *proof, Stmt *s) {
  for (int i = 0; i < s->as.seq.count; i++) {
    Stmt *item = s->as.seq.items[i];
    prove_stmt(proof, item);
    bool asserts = item->kind == STMT_ASSERT && !item->as.check.body;
    if (asserts && !expr_reads_memory(item->as.check.condition))
      analyzer_assume(proof->analyzer, item->as.check.condition);
  }
  return false;
}

static bool enter_loop(DomainProof *proof, Stmt *s) {
  int64_t extent;
  if (expr_as_int(s->as.loop.extent, &extent) && extent <= 0) {
    array_push(&proof->context->arena, &proof->empty, s->as.loop.var);
    prove_stmt(proof, s->as.loop.body);
    proof->empty.count--;
    return false;
  }
  map_put(&proof->loops, s->as.loop.var, s);
  analyzer_assume_runs(proof->analyzer, s->as.loop.extent);
  analyzer_bind_kept(proof->analyzer, s->as.loop.var, s->as.loop.min, s->as.loop.extent);
  return true;
}

static bool enter_let(DomainProof *proof, Stmt *s) {
  if (dtype_is_int(s->as.let.var->type) && !expr_reads_memory(s->as.let.value))
    analyzer_bind_value(proof->analyzer, s->as.let.var, s->as.let.value);
  return true;
}

static bool enter_check(DomainProof *proof, Stmt *s) {
  if (s->as.check.body && !expr_reads_memory(s->as.check.condition))
    analyzer_assume(proof->analyzer, s->as.check.condition);
  return true;
}

// Adds the facts of a statement; false when the statements below it are done or do not run.
static bool (*const enters[])(DomainProof *, Stmt *) = {
    [STMT_FOR] = enter_loop,     [STMT_LET] = enter_let,      [STMT_IF] = enter_branch,
    [STMT_ASSERT] = enter_check, [STMT_SEQ] = enter_sequence, [STMT_BLOCK] = enter_block,
    [STMT_ATTR] = NULL, // the last kind
};

static bool enter(Visitor *visitor, Stmt *s) {
  return !enters[s->kind] || enters[s->kind](visitor->env, s);
}

// Drops the facts of `s` and of the statements below it.
static void prove_stmt(DomainProof *proof, Stmt *s) {
  int mark = analyzer_mark(proof->analyzer);
  Visitor visitor = {.env = proof, .enter_stmt = enter};
  visit_stmt(&visitor, s);
  analyzer_reset(proof->analyzer, mark);
}

// ---- The function

static bool define_by(Visitor *visitor, Stmt *s) {
  Map *defined = visitor->env;
  if (s->kind == STMT_FOR) map_put(defined, s->as.loop.var, s);
  if (s->kind == STMT_LET) map_put(defined, s->as.let.var, s);
  for (int i = 0; s->kind == STMT_BLOCK && i < s->as.block->var_count; i++)
    map_put(defined, s->as.block->vars[i].var, s);
  return true;
}

static bool define_var(Visitor *visitor, Expr *e) {
  if (e->op == EXPR_VAR) map_put((Map *)visitor->env, e, e);
  return true;
}

static void define_vars(Map *defined, const PrimFunc *func) {
  Visitor visitor = {.env = defined, .enter_expr = define_var};
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *buffer = func->buffers[i];
    visit_expr(&visitor, func->params[i]);
    for (int d = 0; buffer && d < buffer->rank; d++) {
      visit_expr(&visitor, buffer->shape[d]);
      if (buffer->strides) visit_expr(&visitor, buffer->strides[d]);
    }
    if (buffer) visit_expr(&visitor, buffer->offset);
  }
  visit_stmt(&(Visitor){.env = defined, .enter_stmt = define_by}, func->body);
}

static bool prove(Context *context, const PrimFunc *func, bool views) {
  DomainProof proof = {.context = context,
                       .analyzer = analyzer_new(context),
                       .defined = map_new(&context->arena),
                       .loops = map_new(&context->arena),
                       .views = views,
                       .ok = true};
  if (views) define_vars(&proof.defined, func);
  analyzer_assume_sizes(proof.analyzer, func);
  prove_stmt(&proof, func->body);
  return proof.ok;
}

bool prim_func_check_domains(Context *context, const PrimFunc *func) {
  return prove(context, func, false);
}

bool prim_func_check_views(Context *context, const PrimFunc *func) {
  return prove(context, func, true);
}
