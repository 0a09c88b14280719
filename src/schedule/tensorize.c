// SPDX-License-Identifier: Apache-2.0
// Implements tensorize, which replaces the body of a block by that of an intrinsic. An intrinsic
// has a name and two functions: `desc` says what it computes, as loops, and `impl` how. The block
// must be `desc` on regions of its buffers; the region of each buffer becomes a view, on which
// `impl` works.
//   C_o: for i, j, k in 4, 4, 4: C[io*4 + i, …] += A[…] * B[…]
//   =>  C_o: a = match_buffer(A[io*4:io*4 + 4, …]) …;  T.call_extern("mma", …, a.data, …)
#include "interp/interp.h"
#include "schedule/internal.h"
#include "script/script.h"

// ---- Intrinsics ------------------------------------------------------------------------------

typedef struct TensorIntrinsic {
  PrimFunc *desc, *impl;
} TensorIntrinsic;

static bool note_call(Visitor *visitor, Expr *e) {
  *(bool *)visitor->env |= expr_is_call(e) || !expr_is_pure(e);
  return true;
}

// True when the function calls others, so that the interpreter cannot compare it with its
// description.
static bool is_opaque(const PrimFunc *func) {
  bool found = false;
  Visitor visitor = {.env = &found, .enter_expr = note_call};
  visit_stmt(&visitor, func->body);
  return found;
}

static bool same_parameters(const PrimFunc *a, const PrimFunc *b) {
  bool same = a->param_count == b->param_count;
  for (int i = 0; i < a->param_count && same; i++) {
    const Buffer *x = a->buffers[i], *y = b->buffers[i];
    int64_t shape[16];
    same = x && y && x->rank <= COUNT_OF(shape) && buffer_static_shape(x, shape) &&
           buffer_same_shape(x, y) && dtype_equal(x->type, y->type);
  }
  return same && a->body->kind == STMT_BLOCK && b->body->kind == STMT_BLOCK;
}

bool schedule_add_intrinsic(Schedule *schedule, const char *name, PrimFunc *desc, PrimFunc *impl) {
  Context *context = schedule->context;
  if (!same_parameters(desc, impl))
    return diag_error(
        context, impl->pos,
        "the functions of intrinsic '%s' have no equal parameters: buffers of constant "
        "shape, in one order",
        name);
  InterpCompare compare = {.seed = 11,
                           .fill = INTERP_FILL_EIGHTHS,
                           .rtol = 1e-5,
                           .atol = 1e-5,
                           .options = {.poison = true}};
  InterpDifference difference;
  int errors = context->error_count;
  if (!is_opaque(impl) && !interp_compare(context, desc, impl, &compare, &difference)) {
    if (context->error_count > errors) return false;
    return diag_error(context, impl->pos, "intrinsic '%s' does not compute what it describes\n%s",
                      name, interp_difference_text(&context->arena, desc, &difference));
  }
  TensorIntrinsic *intrinsic = arena_new(&context->arena, TensorIntrinsic);
  *intrinsic = (TensorIntrinsic){desc, impl};
  if (!schedule->intrinsics.arena) schedule->intrinsics = map_new(&context->arena);
  map_put(&schedule->intrinsics, str_intern(context, name), intrinsic);
  return true;
}

// ---- Matching ---------------------------------------------------------------------------------

// Where a buffer of the description is: the element at `base` of `buffer` is its first one. Axes of
// `buffer` that it lacks come first.
typedef struct IntrinsicBuffer {
  const Buffer *desc;
  Buffer *buffer;
  Expr **base;
} IntrinsicBuffer;

typedef struct IntrinsicMatch {
  Schedule *schedule;
  Context *context;
  Analyzer *analyzer;
  Map vars;        // of the description, to those of the block
  ExprArray inner; // the latter
  Array(IntrinsicBuffer) placed;
  const char *why; // the first difference
} IntrinsicMatch;

PRINTF_LIKE(2, 3) static bool mismatch(IntrinsicMatch *m, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!m->why) m->why = arena_vprintf(&m->context->arena, format, args);
  va_end(args);
  return false;
}

static void map_variable(IntrinsicMatch *m, Expr *desc, Expr *ours) {
  map_put(&m->vars, desc, ours);
  array_push(&m->context->arena, &m->inner, ours);
}

static Expr *in_our_terms(IntrinsicMatch *m, Expr *desc) {
  return substitute_expr(m->context, desc, &m->vars);
}

static bool equal_values(IntrinsicMatch *m, Expr *ours, Expr *desc) {
  return analyzer_prove_equal(m->analyzer, ours, in_our_terms(m, desc));
}

static IntrinsicBuffer *find_placed(IntrinsicMatch *m, const Buffer *desc) {
  for (int i = 0; i < m->placed.count; i++)
    if (m->placed.items[i].desc == desc) return &m->placed.items[i];
  return NULL;
}

static Expr **base_of(IntrinsicMatch *m, const Buffer *ours, Expr *const *indices,
                      const Buffer *desc, Expr *const *desc_indices) {
  Expr **base = arena_array(&m->context->arena, Expr *, ours->rank + 1);
  int extra = ours->rank - desc->rank;
  for (int i = 0; i < ours->rank; i++) {
    base[i] = indices[i];
    if (i >= extra)
      base[i] = expr_sub(m->context, indices[i], in_our_terms(m, desc_indices[i - extra]));
    base[i] = analyzer_simplify(m->analyzer, base[i]);
    for (int k = 0; k < m->inner.count; k++)
      if (expr_uses(base[i], m->inner.items[k])) return NULL;
  }
  return base;
}

static bool match_access(IntrinsicMatch *m, Buffer *ours, Expr *const *indices, const Buffer *desc,
                         Expr *const *desc_indices) {
  if (!dtype_equal(ours->type, desc->type) || ours->rank < desc->rank)
    return mismatch(m, "'%s' and '%s' differ in type or rank", ours->name, desc->name);
  if (strcmp(ours->scope, desc->scope) != 0)
    return mismatch(m, "'%s' is in %s memory and '%s' in %s", ours->name, ours->scope, desc->name,
                    desc->scope);
  Expr **base = base_of(m, ours, indices, desc, desc_indices);
  if (!base)
    return mismatch(m, "an index of '%s' is not that of '%s' and a constant part", ours->name,
                    desc->name);
  IntrinsicBuffer *known = find_placed(m, desc);
  if (!known) {
    array_push(&m->context->arena, &m->placed, ((IntrinsicBuffer){desc, ours, base}));
    return true;
  }
  bool same = known->buffer == ours;
  for (int i = 0; i < ours->rank && same; i++) same = known->base[i] == base[i];
  return same || mismatch(m, "'%s' stands for '%s' and for '%s', or for two regions", desc->name,
                          known->buffer->name, ours->name);
}

static bool match_expr(IntrinsicMatch *m, Expr *ours, Expr *desc) {
  if (ours->op == EXPR_LOAD && desc->op == EXPR_LOAD)
    return match_access(m, ours->as.buffer, ours->args, desc->as.buffer, desc->args);
  bool index = dtype_is_int(ours->type) && dtype_equal(ours->type, desc->type) &&
               !expr_reads_memory(ours) && !expr_reads_memory(desc);
  if (index && equal_values(m, ours, desc)) return true;
  if (ours->op != desc->op || !dtype_equal(ours->type, desc->type) || ours->count != desc->count) {
    bool ints = dtype_is_int(ours->type) && dtype_is_int(desc->type) && !expr_reads_memory(desc);
    return (ints && equal_values(m, ours, desc)) ||
           mismatch(m, "an operation %s where the description has %s", op_table[ours->op].name,
                    op_table[desc->op].name);
  }
  if (!ours->count)
    return ours == in_our_terms(m, desc) || equal_values(m, ours, desc) ||
           mismatch(m, "another constant or variable");
  if (ours->op == EXPR_CALL && ours->as.s != desc->as.s) return mismatch(m, "another function");
  for (int i = 0; i < ours->count; i++)
    if (!match_expr(m, ours->args[i], desc->args[i])) return false;
  return true;
}

static bool match_stmt(IntrinsicMatch *m, const Stmt *ours, const Stmt *desc);

static bool match_loop(IntrinsicMatch *m, const Stmt *ours, const Stmt *desc) {
  if (ours->as.loop.kind != desc->as.loop.kind)
    return mismatch(m, "loop '%s' is of another kind", loop_name(ours));
  if (!equal_values(m, ours->as.loop.min, desc->as.loop.min) ||
      !equal_values(m, ours->as.loop.extent, desc->as.loop.extent))
    return mismatch(m, "loop '%s' has another extent than loop '%s'", loop_name(ours),
                    loop_name(desc));
  map_variable(m, desc->as.loop.var, ours->as.loop.var);
  analyzer_bind(m->analyzer, ours->as.loop.var, ours->as.loop.min, ours->as.loop.extent);
  return match_stmt(m, ours->as.loop.body, desc->as.loop.body);
}

static bool match_block(IntrinsicMatch *m, const Block *ours, const Block *desc) {
  if (ours->var_count != desc->var_count || !ours->init != !desc->init)
    return mismatch(m, "block '%s' has other variables, or another init, than block '%s'",
                    ours->name, desc->name);
  if (!expr_is_true(ours->predicate))
    return mismatch(
        m,
        "block '%s' runs where %s only, so that a tile may be cut off\ncut a loop with "
        "a rest by loop_partition before it is split, so that the tiles of one part "
        "are whole, or pad the buffers by transform_layout and use drop_padding_predicate",
        ours->name, script_expr_text(m->context, ours->predicate));
  if (!expr_is_true(desc->predicate) || ours->alloc_count || ours->match_count ||
      desc->alloc_count || desc->match_count)
    return mismatch(m, "block '%s' or '%s' has a predicate, views or allocations", ours->name,
                    desc->name);
  for (int i = 0; i < ours->var_count; i++) {
    const BlockVar *a = &ours->vars[i], *b = &desc->vars[i];
    if (a->kind != b->kind || !equal_values(m, a->min, b->min) ||
        !equal_values(m, a->extent, b->extent) || !equal_values(m, a->binding, b->binding))
      return mismatch(m, "variable '%s' differs from '%s'", a->var->as.var->name,
                      b->var->as.var->name);
  }
  for (int i = 0; i < ours->var_count; i++) map_variable(m, desc->vars[i].var, ours->vars[i].var);
  block_bind_domain(m->analyzer, ours);
  return (!ours->init || match_stmt(m, ours->init, desc->init)) &&
         match_stmt(m, ours->body, desc->body);
}

static bool match_store(IntrinsicMatch *m, const Stmt *ours, const Stmt *desc) {
  return match_access(m, ours->as.store.buffer, ours->as.store.indices, desc->as.store.buffer,
                      desc->as.store.indices) &&
         match_expr(m, ours->as.store.value, desc->as.store.value);
}

static bool match_stmt(IntrinsicMatch *m, const Stmt *ours, const Stmt *desc) {
  if (ours->kind != desc->kind) return mismatch(m, "statements of different kinds");
  switch (ours->kind) {
  case STMT_FOR: return match_loop(m, ours, desc);
  case STMT_BLOCK: return match_block(m, ours->as.block, desc->as.block);
  case STMT_STORE: return match_store(m, ours, desc);
  case STMT_SEQ:
    if (ours->as.seq.count != desc->as.seq.count)
      return mismatch(m, "another number of statements");
    for (int i = 0; i < ours->as.seq.count; i++)
      if (!match_stmt(m, ours->as.seq.items[i], desc->as.seq.items[i])) return false;
    return true;
  default: return mismatch(m, "a statement that is no loop, block or store");
  }
}

// ---- Views -----------------------------------------------------------------------------------

// True when each buffer of the description was met, has its whole shape inside of the buffer it
// stands for, and shares no memory that is written with another one.
static bool check_placed(IntrinsicMatch *m, const Block *block, const PrimFunc *desc) {
  for (int i = 0; i < desc->param_count; i++) {
    const IntrinsicBuffer *p = find_placed(m, desc->buffers[i]);
    if (!p) return mismatch(m, "'%s' is not used", desc->buffers[i]->name);
    int extra = p->buffer->rank - p->desc->rank;
    for (int k = 0; k < p->buffer->rank; k++) {
      Expr *size = k < extra ? expr_index(m->context, 1) : p->desc->shape[k - extra];
      Expr *end = expr_add(m->context, expr_sub(m->context, p->buffer->shape[k], size),
                           expr_index(m->context, 1));
      if (!analyzer_prove_within(m->analyzer, p->base[k], expr_index(m->context, 0), end))
        return mismatch(m, "the region of '%s' is not proved to be inside of it", p->buffer->name);
    }
    for (int k = 0; k < m->placed.count; k++) {
      const IntrinsicBuffer *other = &m->placed.items[k];
      if (other != p && buffers_alias(p->buffer, other->buffer) &&
          block_touches(block, p->buffer, true))
        return mismatch(m, "'%s' and '%s' share memory that is written", p->desc->name,
                        other->desc->name);
    }
  }
  return true;
}

static Expr *fresh_if_var(Context *context, Expr *e, Map *vars) {
  if (!e || e->op != EXPR_VAR) return e;
  Expr *known = map_find(vars, e);
  if (known) return known;
  Expr *fresh = expr_var(context, e->as.var->name, e->type);
  map_put(vars, e, fresh);
  return fresh;
}

// A copy of the parameter that is a view of the memory `data`; its strides and offset are new
// variables.
static Buffer *view_buffer(Context *context, const Buffer *parameter, Expr *data, Map *vars) {
  Buffer *view = buffer_copy(context, parameter);
  view->data = data;
  map_put(vars, parameter->data, view->data);
  view->offset = fresh_if_var(context, view->offset, vars);
  if (!view->strides) return view;
  view->strides = arena_array(&context->arena, Expr *, view->rank);
  for (int i = 0; i < view->rank; i++)
    view->strides[i] = fresh_if_var(context, parameter->strides[i], vars);
  return view;
}

static Region region_of(const IntrinsicMatch *m, const IntrinsicBuffer *p) {
  Context *context = m->context;
  int rank = p->buffer->rank, extra = rank - p->desc->rank;
  Region region = {p->buffer, p->base, arena_array(&context->arena, Expr *, rank)};
  for (int i = 0; i < rank; i++)
    region.extent[i] = i < extra ? expr_int(context, p->base[i]->type, 1)
                                 : expr_cast(context, p->base[i]->type, p->desc->shape[i - extra]);
  return region;
}

// The block with the body of `impl`.
static Block *with_implementation(IntrinsicMatch *m, const Block *block,
                                  const TensorIntrinsic *in) {
  Context *context = m->context;
  const PrimFunc *impl = in->impl;
  Map vars = map_new(&context->arena), buffers = map_new(&context->arena);
  Block *copy = block_copy(context, block);
  copy->matches = arena_array(&context->arena, MatchBuffer, impl->param_count);
  copy->match_count = impl->param_count;
  for (int i = 0; i < impl->param_count; i++) {
    const IntrinsicBuffer *placed = find_placed(m, in->desc->buffers[i]);
    Buffer *view = view_buffer(context, impl->buffers[i], placed->buffer->data, &vars);
    map_put(&buffers, impl->buffers[i], view);
    copy->matches[i] = (MatchBuffer){view, region_of(m, placed)};
  }
  Stmt *root = substitute_stmt(context, stmt_renew(context, impl->body), &vars, &buffers);
  copy->body = root->as.block->body;
  copy->allocs = root->as.block->allocs;
  copy->alloc_count = root->as.block->alloc_count;
  const Attrs *notes = &root->as.block->annotations;
  for (int i = 0; i < notes->count; i++)
    if (!attrs_get(&copy->annotations, notes->items[i].key))
      copy->annotations = attrs_with(&context->arena, copy->annotations, notes->items[i].key,
                                     notes->items[i].value);
  return copy;
}

// ---- The step --------------------------------------------------------------------------------

static PrimFunc *module_function(const Schedule *schedule, Str name, const char *ending) {
  const char *whole = arena_printf(&schedule->context->arena, "%s_%s", name, ending);
  const ModuleFunc *found = schedule->module ? module_find(schedule->module, whole) : NULL;
  return found ? found->prim : NULL;
}

void schedule_use_module(Schedule *schedule, const Module *module) {
  schedule->module = module;
}

static bool refuse_unknown(Schedule *schedule, Str name) {
  PtrArray names = {0};
  for (int i = 0; i < schedule->intrinsics.count; i++)
    array_push(&schedule->context->arena, &names, (void *)schedule->intrinsics.entries[i].key);
  const char *near =
      suggestion_of(&schedule->context->arena, name, (const char *const *)names.items, names.count);
  return schedule_refuse(
      schedule, schedule->func->pos,
      "there is no tensor intrinsic '%s'%s\nregister it, or put its functions '%s_desc' and "
      "'%s_impl' into the module",
      name, near, name, name);
}

// NULL after a refusal.
static const TensorIntrinsic *find_intrinsic(Schedule *schedule, Str name) {
  bool known = schedule->intrinsics.arena && map_find(&schedule->intrinsics, name);
  if (!known) {
    PrimFunc *desc = module_function(schedule, name, "desc");
    PrimFunc *impl = module_function(schedule, name, "impl");
    known = desc && impl ? schedule_add_intrinsic(schedule, name, desc, impl)
                         : refuse_unknown(schedule, name);
  }
  return known ? map_find(&schedule->intrinsics, name) : NULL;
}

bool step_tensorize(Schedule *schedule, StepCall *call) {
  Context *context = schedule->context;
  const StepValue *target = &call->args[0];
  const TensorIntrinsic *intrinsic = find_intrinsic(schedule, call->args[1].as.s);
  BlockRef name = target->kind == VALUE_BLOCK ? target->as.block : NULL;
  Path path;
  if (!intrinsic) return false;
  if (target->kind != VALUE_BLOCK &&
      !schedule_blockize_target(schedule, target, value_is_true(&call->args[2]), &name))
    return false;
  if (!schedule_find_block(schedule, name, &path)) return false;
  const Block *block = path_end(&path)->as.block;
  IntrinsicMatch m = {schedule, context, path_analyzer(schedule, &path, path.count),
                      map_new(&context->arena)};
  const Block *desc = intrinsic->desc->body->as.block;
  bool plain = !block->match_count && !block->alloc_count && !desc->alloc_count;
  if ((!plain && !mismatch(&m, "views or allocations of its own")) ||
      !match_stmt(&m, block->body, desc->body) || !check_placed(&m, block, intrinsic->desc))
    return schedule_refuse(schedule, path_end(&path)->pos,
                           "block '%s' is not what intrinsic '%s' describes: %s", block->name,
                           call->args[1].as.s, m.why);
  path_replace_block(schedule, &path, with_implementation(&m, block, intrinsic));
  return true;
}
