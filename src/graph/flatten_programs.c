// SPDX-License-Identifier: Apache-2.0
// Makes calls of programs that take tensors alone of calls with other forms:
//   R.call_tir(f, (x, n, s), …), where n is a size and s a tensor without axes, for a program with
//     the parameters x, n, s and y      => a call of f_1 with the parameters x, s and y, in which
//                                          the element of s is in the place of the number s, and
//                                          tir_vars=[n] for the parameter n, which is its last
//   R.call_tir_inplace(f, (x,), [0], …) => a call of f_1, which copies x to its result and goes on
//                                          with the result in the place of x
//   R.call_tir_with_grad(f, (x,), …)    => R.call_tir(f, (x,), …)
//   y = R.builtin.alloc_tensor(…); f(x, y) => y = R.call_tir(f, (x,), …)
//     and R.memory.alloc_tensor, R.vm.alloc_tensor
// The new programs are added to the module.
#include "graph/flatten.h"

bool is_program_call(const Node *node) {
  static const char *const names[] = {"call_tir", "call_tir_inplace", "call_tir_with_grad"};
  for (int i = 0; node->kind == NODE_OP && i < COUNT_OF(names); i++)
    if (!strcmp(names[i], node->op)) return true;
  return false;
}

// ---- The parts of a call -----------------------------------------------------------------------

typedef struct ProgramCall {
  GraphFlattening *f;
  const Node *node;
  PrimFunc *func;
  int input_count, output_count; // that the call has
  GraphTerm **inputs;
  const GraphTerm *types;   // NULL: the node has outputs with types
  bool many;                // the types are a list
  const GraphTerm *numbers; // of the last parameters; NULL: none
  const GraphTerm *inplace; // for each result the number of an input, or -1; NULL: no input
} ProgramCall;

static GraphTerm *keyword(GraphFlattening *f, const Node *node, const char *name) {
  for (int i = 0; node->keywords && i < node->keywords->count; i++)
    if (!strcmp(node->keywords->keys[i], name)) {
      Value *value = value_of_term(f->context, node->keywords->items[i]);
      return value ? flatten_resolved(f, value) : NULL;
    }
  return NULL;
}

// An attribute as a term of numbers.
static GraphTerm *attribute_term(GraphFlattening *f, const Node *node, const char *name) {
  const Expr *value = attrs_get(&node->attrs, name);
  if (!value) return NULL;
  int count = value->op == EXPR_TUPLE ? value->count : 1;
  GraphTerm **items = arena_array(&f->context->arena, GraphTerm *, count);
  for (int i = 0; i < count; i++) {
    items[i] = term_new(f->context, TERM_EXPR, NULL);
    items[i]->e = value->op == EXPR_TUPLE ? value->args[i] : (Expr *)(uintptr_t)value;
  }
  return term_of_items(f->context, TERM_LIST, NULL, items, NULL, count);
}

// The positional argument, or the keyword, or the attribute; NULL when it is not given.
static GraphTerm *argument(GraphFlattening *f, const Node *node, int position, const char *name) {
  if (position < node->input_count && node->inputs[position])
    return flatten_resolved(f, node->inputs[position]);
  GraphTerm *term = keyword(f, node, name);
  return term ? term : attribute_term(f, node, name);
}

static bool find_program(ProgramCall *c, const GraphTerm *callee) {
  const Module *module = c->f->graph->module;
  const ModuleFunc *found =
      callee && callee->kind == TERM_FUNC && module ? module_find(module, callee->text) : NULL;
  c->func = found ? found->prim : NULL;
  return c->func || flatten_refuse(c->f, c->node, "expected a tensor program of this module");
}

static void take_inputs(ProgramCall *c, GraphTerm *term) {
  if (term_is_list(term)) {
    c->inputs = term->items;
    c->input_count = term->count;
    return;
  }
  c->inputs = arena_copy(&c->f->context->arena, &term, sizeof term);
  c->input_count = 1;
}

// ---- Calls that write tensors which were allocated before

static const char allocation[] = "R.builtin.alloc_tensor"; // the term of such a tensor

// The extents of R.shape([n, 4]) as a list of numbers; NULL: the term is no shape.
static GraphTerm *extents_of(GraphFlattening *f, const GraphTerm *shape) {
  const Expr *extents = shape ? flatten_attribute(f, shape) : NULL;
  if (!extents || extents->op != EXPR_TUPLE) return NULL;
  GraphTerm **items = arena_array(&f->context->arena, GraphTerm *, extents->count);
  for (int i = 0; i < extents->count; i++) {
    if (!dtype_is_int(extents->args[i]->type)) return NULL;
    items[i] = term_new(f->context, TERM_EXPR, NULL);
    items[i]->e = extents->args[i];
  }
  return term_of_items(f->context, TERM_LIST, NULL, items, NULL, extents->count);
}

// The shape is argument number `at`, and the element type the next one.
static bool flatten_allocation(GraphFlattening *f, const Node *node, int at) {
  Expr *dtype = attrs_get(&node->attrs, "dtype");
  const GraphTerm *type = dtype ? NULL : argument(f, node, at + 1, "dtype");
  if (type) dtype = flatten_attribute(f, type);
  GraphTerm *parts[] = {extents_of(f, argument(f, node, at, "shape")),
                        term_new(f->context, TERM_EXPR, NULL)};
  if (!parts[0] || !dtype || dtype->op != EXPR_STRING)
    return flatten_refuse(f, node, "%s needs a shape and an element type", node->op);
  parts[1]->e = dtype;
  map_put(&f->values, node->outputs[0],
          term_of_items(f->context, TERM_CALL, allocation, parts, NULL, COUNT_OF(parts)));
  return true;
}

static const char storage[] = "R.memory.alloc_storage", killed[] = "R.memory.kill_tensor";

static GraphTerm *term_named(GraphFlattening *f, const char *name) {
  return term_of_items(f->context, TERM_CALL, name, NULL, NULL, 0);
}

// A tensor at the start of a storage. The one that was there before, which `values` has for the
// term of the storage, can be read no more.
static bool flatten_placed(GraphFlattening *f, const Node *node) {
  GraphTerm *in = argument(f, node, 0, "storage"), *offset = argument(f, node, 1, "offset");
  Expr *start = offset ? flatten_number_of(f, offset) : NULL;
  if (!in || !term_is(in, storage)) return flatten_refuse(f, node, "%s needs a storage", node->op);
  if (start && !expr_is_int(start, 0))
    return flatten_refuse(f, node, "%s at an offset other than 0 is not supported", node->op);
  const Value *before = map_find(&f->values, in);
  if (before) map_put(&f->values, before, term_named(f, killed));
  map_put(&f->values, in, node->outputs[0]);
  return flatten_allocation(f, node, 2);
}

bool flatten_memory(GraphFlattening *f, const Node *node, bool *done) {
  static const char *const memory[] = {"memory.", "vm."};
  const char *op = node->op;
  *done = !strcmp(op, "builtin.alloc_tensor");
  if (*done) return flatten_allocation(f, node, 0);
  for (int i = 0; i < COUNT_OF(memory) && op == node->op; i++)
    if (!strncmp(op, memory[i], strlen(memory[i]))) op += strlen(memory[i]);
  bool kills = !strncmp(op, "kill_", 5) && node->input_count;
  *done = op != node->op && (kills || !strncmp(op, "alloc_", 6));
  if (!*done) return true;
  if (!strcmp(op, "alloc_tensor")) return flatten_placed(f, node);
  if (kills) map_put(&f->values, node->inputs[0], term_named(f, killed));
  map_put(&f->values, node->outputs[0],
          kills ? term_new(f->context, TERM_TUPLE, NULL) : term_named(f, storage));
  return true;
}

// f(x, y, n): the tensors before the allocated ones are read, and numbers stand behind these.
static bool read_writing_call(ProgramCall *c) {
  GraphFlattening *f = c->f;
  const Node *node = c->node;
  int count = node->input_count - 1, first = 0;
  GraphTerm **terms = arena_array(&f->context->arena, GraphTerm *, count);
  for (int i = 0; i < count; i++) terms[i] = flatten_resolved(f, node->inputs[i + 1]);
  while (first < count && !term_is(terms[first], allocation)) first++;
  int end = first;
  while (end < count && term_is(terms[end], allocation)) end++;
  c->inputs = terms;
  c->input_count = first;
  c->output_count = end - first;
  c->types = term_of_items(f->context, TERM_LIST, NULL, terms + first, NULL, end - first);
  c->many = true;
  if (end < count)
    c->numbers = term_of_items(f->context, TERM_LIST, NULL, terms + end, NULL, count - end);
  if (!c->output_count)
    return flatten_refuse(
        f, node, "the program writes no tensor that was allocated, as by R.builtin.alloc_tensor");
  return find_program(c, term_of_value(f->context, node->inputs[0]));
}

bool flatten_writing_call(GraphFlattening *f, const Node *node) {
  ProgramCall call = {.f = f, .node = node};
  if (!read_writing_call(&call) || !flatten_program_call(f, node)) return false;
  GraphTerm *results = map_find(&f->values, node->outputs[0]);
  for (int i = 0; i < call.output_count; i++) {
    const Value *written = node->inputs[1 + call.input_count + i];
    results->items[i]->value->name = written->name;
    map_put(&f->values, written, results->items[i]);
  }
  return true;
}

// A node that was read as a call of tensors has its parts; another one has them as arguments.
static bool read_call(ProgramCall *c) {
  GraphFlattening *f = c->f;
  const Node *node = c->node;
  if (node->kind == NODE_CALL) return read_writing_call(c);
  if (node->kind == NODE_CALL_TIR) {
    c->func = node->callee;
    c->inputs = arena_array(&f->context->arena, GraphTerm *, node->input_count);
    for (int i = 0; i < node->input_count; i++) c->inputs[i] = flatten_resolved(f, node->inputs[i]);
    c->input_count = node->input_count;
    c->output_count = node->output_count;
    c->numbers = attribute_term(f, node, "tir_vars");
    return true;
  }
  bool inplace = !strcmp(node->op, "call_tir_inplace");
  GraphTerm *inputs = argument(f, node, 1, "args");
  if (!node->input_count || !inputs)
    return flatten_refuse(f, node, "%s needs a program and its arguments", node->op);
  if (!find_program(c, flatten_resolved(f, node->inputs[0]))) return false;
  take_inputs(c, inputs);
  c->types = flatten_stated_types(f, node);
  if (!c->types) c->types = argument(f, node, 2 + inplace, "out_sinfo");
  if (inplace) c->inplace = argument(f, node, 2, "inplace_indices");
  c->numbers = argument(f, node, 3 + inplace, "tir_vars");
  if (!c->types) return flatten_refuse(f, node, "%s does not state its results", node->op);
  bool tuple = c->types->kind == TERM_CALL && !strcmp(c->types->text, "R.Tuple");
  c->many = term_is_list(c->types) || tuple;
  c->output_count = c->many ? c->types->count : 1;
  return true;
}

// ---- The program -------------------------------------------------------------------------------

typedef struct ProgramMaking {
  ProgramCall *call;
  Array(Expr *) params;
  Array(Buffer *) buffers;
  PtrArray tensors;      // that are given for the first of them
  Map vars, replaced;    // parameters and buffers of the program, with what takes their place
  Array(Expr *) numbers; // sizes for the last parameters
  PtrArray number_params;
  PtrArray copies; // from a parameter to the result that it becomes, each two buffers
  bool is_new;     // the program differs from that of the call
} ProgramMaking;

static void add_param(ProgramMaking *m, Expr *param, Buffer *buffer) {
  Arena *arena = &m->call->f->context->arena;
  array_push(arena, &m->params, param);
  array_push(arena, &m->buffers, buffer);
}

// A parameter that is a number: it is read from a tensor without axes, is a constant, or follows
// from sizes.
static bool take_number(ProgramMaking *m, Expr *param, const GraphTerm *given, int at) {
  ProgramCall *c = m->call;
  Context *context = c->f->context;
  Value *tensor = term_tensor(given);
  Expr *number = tensor ? NULL : flatten_number_of(c->f, given);
  if (!tensor && !number)
    return flatten_refuse(c->f, c->node, "argument %d of '%s' is no number", at + 1, c->func->name);
  if (tensor) {
    m->is_new = true;
    Buffer *buffer = buffer_new(context, param->as.var->name, param->type, NULL, 0, "global");
    map_put(&m->vars, param, expr_load(context, buffer, NULL, 0));
    add_param(m, expr_var(context, param->as.var->name, DTYPE_HANDLE), buffer);
    array_push(&context->arena, &m->tensors, tensor);
    return true;
  }
  m->is_new |= at < c->input_count;
  array_push(&context->arena, &m->number_params, param);
  array_push(&context->arena, &m->numbers, expr_cast(context, param->type, number));
  return true;
}

static bool take_input(ProgramMaking *m, int i) {
  ProgramCall *c = m->call;
  Value *tensor = term_tensor(c->inputs[i]);
  Buffer *buffer = c->func->buffers[i];
  if (!buffer) return take_number(m, c->func->params[i], c->inputs[i], i);
  Expr *number = tensor ? NULL : flatten_number_of(c->f, c->inputs[i]);
  if (number && buffer->rank == 0) tensor = flatten_number(c->f, c->node, number);
  if (!tensor)
    return flatten_refuse(c->f, c->node, "argument %d of '%s' is no tensor", i + 1, c->func->name);
  add_param(m, c->func->params[i], buffer);
  array_push(&c->f->context->arena, &m->tensors, tensor);
  return true;
}

// The number of the input that result `i` takes the place of; -1: none.
static int64_t place_of(const ProgramCall *c, int i) {
  int64_t place = -1;
  if (c->inplace && i < c->inplace->count && c->inplace->items[i]->kind == TERM_EXPR)
    expr_as_int(c->inplace->items[i]->e, &place);
  return place;
}

static bool take_output(ProgramMaking *m, int i, int *param) {
  ProgramCall *c = m->call;
  Context *context = c->f->context;
  int64_t place = place_of(c, i);
  if (place < 0) {
    int at = (*param)++;
    if (at >= c->func->param_count || !c->func->buffers[at])
      return flatten_refuse(c->f, c->node, "'%s' has no parameter for result %d", c->func->name,
                            i + 1);
    add_param(m, c->func->params[at], c->func->buffers[at]);
    return true;
  }
  Buffer *from = place < c->input_count ? c->func->buffers[place] : NULL;
  if (!from || map_find(&m->replaced, from))
    return flatten_refuse(c->f, c->node, "result %d cannot take the place of argument %lld", i + 1,
                          (long long)place);
  Buffer *to = buffer_copy(context, from);
  to->name = str_format(context, "%s_out", from->name);
  to->data = expr_var(context, to->name, from->data->type);
  map_put(&m->replaced, from, to);
  map_put(&m->vars, from->data, to->data);
  array_push(&context->arena, &m->copies, from);
  array_push(&context->arena, &m->copies, to);
  add_param(m, expr_var(context, to->name, DTYPE_HANDLE), to);
  m->is_new = true;
  return true;
}

// for …: to[…] = from[…]
static Stmt *copy_of(Context *context, Buffer *from, Buffer *to) {
  Te *te = te_new(context);
  Buffer *input = te_input(te, from->name, from->type, from->shape, from->rank);
  TeAxes axes = te_axes(te, from->shape, from->rank);
  Buffer *output = te_compute(te, to->name, to->type, to->shape, &axes, te_at(te, input, axes.at));
  array_push(&context->arena, &te->outputs, output);
  Map vars = map_new(&context->arena), buffers = map_new(&context->arena);
  map_put(&buffers, input, from);
  map_put(&buffers, output, to);
  Stmt *body = te_prim_func(te, "copy")->body;
  return substitute_stmt(context, body->as.block->body, &vars, &buffers);
}

static Stmt *with_copies(ProgramMaking *m, Stmt *body) {
  Context *context = m->call->f->context;
  bool has_root = body->kind == STMT_BLOCK && !body->as.block->var_count && !body->as.block->init;
  Stmt **items = arena_array(&context->arena, Stmt *, m->copies.count / 2 + 1);
  int count = 0;
  for (int i = 0; i < m->copies.count; i += 2)
    items[count++] = copy_of(context, m->copies.items[i], m->copies.items[i + 1]);
  items[count++] = has_root ? body->as.block->body : body;
  Stmt *all = stmt_seq(context, items, count);
  if (!has_root || count == 1) return count == 1 ? body : all;
  Block *root = block_copy(context, body->as.block);
  root->body = all;
  return stmt_block(context, root);
}

static Str free_name(GraphFlattening *f, const char *name) {
  for (int i = 1;; i++) {
    Str other = str_format(f->context, "%s_%d", name, i);
    if (!f->graph->module || !module_find(f->graph->module, other)) return other;
  }
}

static PrimFunc *make_program(ProgramMaking *m) {
  GraphFlattening *f = m->call->f;
  if (!m->is_new) return m->call->func;
  PrimFunc *func = prim_func_copy(f->context, m->call->func);
  for (int i = 0; i < m->number_params.count; i++) add_param(m, m->number_params.items[i], NULL);
  func->name = free_name(f, func->name);
  func->param_count = m->params.count;
  func->params = m->params.items;
  func->buffers = m->buffers.items;
  func->body = with_copies(m, substitute_stmt(f->context, func->body, &m->vars, &m->replaced));
  func->body = blocks_find_regions(f->context, func->body);
  func->body = stmt_renew(f->context, func->body);
  if (f->graph->module) module_add_prim(f->graph->module, func);
  return func;
}

// ---- The call ----------------------------------------------------------------------------------

static bool take_parameters(ProgramMaking *m) {
  ProgramCall *c = m->call;
  int param = c->input_count, given = c->numbers ? c->numbers->count : 0;
  int first_number = c->func->param_count - given, results = 0;
  for (int i = 0; i < c->output_count; i++) results += place_of(c, i) < 0;
  if (c->input_count + results != first_number)
    return flatten_refuse(c->f, c->node, "'%s' takes %d arguments, saw %d", c->func->name,
                          c->func->param_count, c->input_count + results + given);
  for (int i = 0; i < c->input_count; i++)
    if (!take_input(m, i)) return false;
  for (int i = first_number; i < c->func->param_count; i++)
    if (c->func->buffers[i] ||
        !take_number(m, c->func->params[i], c->numbers->items[i - first_number], i))
      return false;
  for (int i = 0; i < c->output_count; i++)
    if (!take_output(m, i, &param)) return false;
  return true;
}

bool flatten_program_call(GraphFlattening *f, const Node *node) {
  Context *context = f->context;
  ProgramCall call = {.f = f, .node = node};
  if (!read_call(&call)) return false;
  bool shape = call.numbers && call.numbers->kind == TERM_CALL && call.numbers->count == 1;
  if (shape) call.numbers = call.numbers->items[0]; // R.shape([n, m])
  ProgramMaking m = {
      .call = &call, .vars = map_new(&context->arena), .replaced = map_new(&context->arena)};
  if (!take_parameters(&m)) return false;
  Node *made = flatten_add_node(f, node, (Value **)m.tensors.items, m.tensors.count);
  made->kind = NODE_CALL_TIR;
  made->op = NULL;
  made->callee = make_program(&m);
  if (m.numbers.count)
    made->attrs = attrs_with(&context->arena, made->attrs, str_intern(context, "tir_vars"),
                             expr_tuple(context, m.numbers.items, m.numbers.count));
  if (!call.types) return true;
  flatten_output(f, made, call.output_count - 1);
  flatten_state_types(f, made, call.types, call.many);
  if (call.many) flatten_give_tuple(f, node, made, call.output_count);
  return true;
}
