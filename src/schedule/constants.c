// SPDX-License-Identifier: Apache-2.0
// Changes the data of constants (T.allocate_const) where a step changes their layout: the reference
// interpreter runs a program that stores each element at its new index, or the content of padding.
//   for i, j: after[j, i] = before[i, j]
#include "interp/interp.h"
#include "schedule/internal.h"

typedef struct ConstSearch {
  const Expr *data;
  Stmt *found;
} ConstSearch;

static bool see_constant(Visitor *visitor, Stmt *s) {
  ConstSearch *search = visitor->env;
  if (s->kind == STMT_ALLOCATE_CONST && s->as.allocate_const.var == search->data) search->found = s;
  return true;
}

static Stmt *constant_of(const Schedule *schedule, const Buffer *buffer) {
  ConstSearch search = {buffer->data, NULL};
  visit_stmt(&(Visitor){.env = &search, .enter_stmt = see_constant}, schedule->func->body);
  return search.found;
}

bool buffer_is_constant(const Schedule *schedule, const Buffer *buffer) {
  return constant_of(schedule, buffer) != NULL;
}

// The extents and the bytes of a buffer of known size; false for others.
static bool known_size(const Buffer *buffer, int64_t *shape, int64_t *bytes) {
  *bytes = buffer_element_bytes(buffer);
  if (!buffer_static_shape(buffer, shape)) return false;
  for (int d = 0; d < buffer->rank; d++)
    if (!mul_fits(*bytes, shape[d], bytes)) return false;
  return true;
}

// True when the constant's data are the elements of the buffer.
static bool has_elements(const Schedule *schedule, const Buffer *buffer) {
  const Stmt *s = constant_of(schedule, buffer);
  const ConstData *data = s->as.allocate_const.data;
  int64_t *shape = arena_array(&schedule->context->arena, int64_t, buffer->rank + 1);
  int64_t bytes;
  return dtype_equal(buffer->type, data->type) && known_size(buffer, shape, &bytes) &&
         bytes == (int64_t)data->bytes;
}

// ---- The program that stores the new elements --------------------------------------------------

typedef struct NewConstant {
  Schedule *schedule;
  Buffer *from, *to; // in memory of their own
  const ConstData *data;
  ConstData *made;
} NewConstant;

static NewConstant new_constant(Schedule *schedule, const ConstData *data, const Buffer *from,
                                const Buffer *to) {
  Context *context = schedule->context;
  NewConstant n = {schedule,
                   buffer_new(context, "before", from->type, from->shape, from->rank, NULL),
                   buffer_new(context, "after", to->type, to->shape, to->rank, NULL), data,
                   arena_copy(&context->arena, data, sizeof *data)};
  n.made->rank = to->rank;
  n.made->shape = arena_array(&context->arena, int64_t, to->rank + 1);
  return n;
}

// Loops over the buffer around the store, whose indices are their variables.
static Stmt *loops_over(Context *context, const Buffer *buffer, Expr *const *vars, Stmt *store) {
  for (int d = buffer->rank - 1; d >= 0; d--)
    store = stmt_for(context, vars[d], expr_int(context, vars[d]->type, 0), buffer->shape[d],
                     LOOP_SERIAL, store);
  return store;
}

static Expr **loop_variables(Context *context, const Buffer *buffer) {
  Expr **vars = arena_array(&context->arena, Expr *, buffer->rank + 1);
  for (int d = 0; d < buffer->rank; d++) vars[d] = expr_var(context, "i", buffer->shape[d]->type);
  return vars;
}

// Runs the statement on zeros.
static bool make_constant(NewConstant *n, Stmt *body) {
  Context *context = n->schedule->context;
  Buffer *buffers[] = {n->from, n->to};
  Expr *params[] = {expr_var(context, "p_before", DTYPE_HANDLE),
                    expr_var(context, "p_after", DTYPE_HANDLE)};
  PrimFunc *func = prim_func_new(context, "constant", params, buffers, COUNT_OF(params), body);
  int64_t *shape = arena_array(&context->arena, int64_t, n->from->rank + 1);
  int64_t bytes;
  if (!buffer_static_shape(n->from, shape) || !known_size(n->to, n->made->shape, &bytes))
    return false;
  char *data = (char *)arena_array(&context->arena, int64_t, bytes / 8 + 1);
  InterpTensor args[] = {{n->from->type, n->from->rank, shape, NULL, (void *)n->data->data, 0},
                         {n->to->type, n->to->rank, n->made->shape, NULL, data, 0}};
  n->made->data = data;
  n->made->bytes = (size_t)bytes;
  return interp_run(context, NULL, func, args, COUNT_OF(args), NULL);
}

// ---- The new data in the function --------------------------------------------------------------

typedef struct Replacement {
  const Stmt *constant;
  ConstData *data;
} Replacement;

static Stmt *replace_data(Rewriter *rewriter, Stmt *s) {
  const Replacement *r = rewriter->env;
  if (s->kind != STMT_ALLOCATE_CONST ||
      s->as.allocate_const.var != r->constant->as.allocate_const.var)
    return s;
  Stmt *copy = stmt_copy(rewriter->context, s);
  copy->as.allocate_const.data = r->data;
  return copy;
}

static void set_constant(Schedule *schedule, const Stmt *constant, ConstData *data) {
  Replacement r = {constant, data};
  Rewriter rewriter = {.context = schedule->context, .env = &r, .stmt = replace_data};
  schedule_set_body(schedule, rewrite_stmt(&rewriter, schedule->func->body));
}

static bool refuse_elements(Schedule *schedule, SourcePos pos, const Buffer *buffer) {
  return schedule_refuse(schedule, pos,
                         "the layout of '%s' cannot change: its constant has elements of another "
                         "type or number",
                         buffer->name);
}

bool constant_relayout(Schedule *schedule, SourcePos pos, const Buffer *before, const Buffer *after,
                       const IndexMap *map) {
  Context *context = schedule->context;
  Stmt *constant = constant_of(schedule, before);
  if (!constant) return true;
  if (!has_elements(schedule, before)) return refuse_elements(schedule, pos, before);
  NewConstant n = new_constant(schedule, constant->as.allocate_const.data, before, after);
  Expr **vars = loop_variables(context, before);
  Expr **indices = arena_array(&context->arena, Expr *, after->rank + 1);
  Map symbols = schedule_size_symbols(schedule);
  if (!index_map_apply_exprs(context, map, vars, &symbols, indices)) return false;
  Expr *load = expr_load(context, n.from, vars, before->rank);
  Stmt *store = stmt_store(context, n.to, indices, after->rank, load);
  if (!make_constant(&n, loops_over(context, before, vars, store))) return false;
  set_constant(schedule, constant, n.made);
  return true;
}

bool constant_fill(Schedule *schedule, SourcePos pos, const Buffer *buffer,
                   Expr *(*content)(void *env, Expr *const *indices), void *env) {
  Context *context = schedule->context;
  Stmt *constant = constant_of(schedule, buffer);
  if (!has_elements(schedule, buffer)) return refuse_elements(schedule, pos, buffer);
  NewConstant n = new_constant(schedule, constant->as.allocate_const.data, buffer, buffer);
  Expr **vars = loop_variables(context, buffer);
  Expr *padding = padding_condition(schedule, buffer, vars);
  if (!padding) return true;
  Expr *load = expr_load(context, n.from, vars, buffer->rank);
  Expr *value = expr_if_then_else(context, padding, content(env, vars), load);
  Stmt *store = stmt_store(context, n.to, vars, buffer->rank, value);
  if (!make_constant(&n, loops_over(context, buffer, vars, store))) return false;
  set_constant(schedule, constant, n.made);
  return true;
}
