// SPDX-License-Identifier: Apache-2.0
// Makes one flow of operators and calls of tensor programs of a graph function as it was read:
//   tuples and their items            => the tensors in them
//   R.shape, R.dtype, numbers as arguments => attributes, by the names in the operator's row
//   calls of graph functions          => their operators, with the arguments in place of parameters
//   if                                => both branches and R.where, or the branch that is known
//   R.match_cast(x, R.Tensor(…))      => R.identity(x), which is stated to have this type
// The function may be flat already. Requires nothing; afterwards all nodes are NODE_OP,
// NODE_CALL_TIR and NODE_OPAQUE, and all their inputs are tensors.
#include "base/caller.h"
#include "graph/flatten.h"
#include "graph/opaque.h"

enum { MOST_DEPTH = 64, MOST_NODES = 1 << 20 };

static bool flatten_nodes(GraphFlattening *f, const GraphFunc *func);
static void take_type(Context *context, Value *value, const GraphTerm *info);

bool flatten_refuse(GraphFlattening *f, const Node *node, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&f->context->arena, format, args);
  va_end(args);
  return diag_error_as(f->context, DIAG_UNSUPPORTED, node->pos, "%s", text);
}

// ---- Terms -----------------------------------------------------------------------------------

bool term_is_list(const GraphTerm *term) {
  return term->kind == TERM_TUPLE || term->kind == TERM_LIST;
}

// The term with all values replaced by what they are.
static GraphTerm *resolved(GraphFlattening *f, GraphTerm *term) {
  if (term->kind == TERM_VALUE) {
    GraphTerm *known = map_find(&f->values, term->value);
    return known ? known : term;
  }
  if (!term->count) return term;
  GraphTerm *copy =
      term_of_items(f->context, term->kind, term->text, term->items, term->keys, term->count);
  for (int i = 0; i < term->count; i++) copy->items[i] = resolved(f, term->items[i]);
  return copy;
}

GraphTerm *flatten_resolved(GraphFlattening *f, Value *value) {
  return resolved(f, term_of_value(f->context, value));
}

Value *term_tensor(const GraphTerm *term) {
  return term->kind == TERM_VALUE ? term->value : NULL;
}

static bool is_call_of(const GraphTerm *term, const char *name) {
  return term_is(term, name) && term->count >= 1;
}

// The value of an attribute that is written as a term; NULL when it is none.
Expr *flatten_attribute(GraphFlattening *f, const GraphTerm *term) {
  static const char *const wrappers[] = {"R.shape", "R.prim_value", "R.dtype", "R.str"};
  Context *context = f->context;
  for (int i = 0; i < COUNT_OF(wrappers); i++)
    if (is_call_of(term, wrappers[i])) return flatten_attribute(f, term->items[0]);
  if (term->kind == TERM_EXPR) return substitute_expr(context, term->e, &f->sizes);
  if (term->kind == TERM_VALUE && term->value->data) return NULL;
  if (!term_is_list(term)) return NULL;
  Expr **items = arena_array(&context->arena, Expr *, term->count);
  for (int i = 0; i < term->count; i++)
    if (!(items[i] = flatten_attribute(f, term->items[i]))) return NULL;
  return expr_tuple(context, items, term->count);
}

// A value of the type R.Any, which operators do not read and a run does not return.
static bool is_object(const GraphTerm *term) {
  return term->kind == TERM_NAME && !strcmp(term->text, "R.Any");
}

// ---- Operators -------------------------------------------------------------------------------

// Operators that return their first input as it is.
static bool keeps_value(const Node *node) {
  static const char *const names[] = {
      "match_cast",   "builtin.stop_lift_params", "hint_on_device",      "to_vdevice",
      "grad.no_grad", "grad.start_checkpoint",    "grad.end_checkpoint", "dist.annotate_sharding",
      "identity"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(names[i], node->op)) return strcmp(node->op, "identity") != 0 || node->keywords;
  return false;
}

// The name of positional attribute `number` of an operator, up to a space; "" when it has no such
// attribute.
static const char *positional_name(const OpRow *row, int number) {
  const char *p = row && row->positional ? row->positional : "";
  for (; *p && number; number--) {
    p += strcspn(p, " ");
    p += *p == ' ';
  }
  return p;
}

typedef struct Arguments {
  PtrArray tensors;
  Attrs attrs;
  int positional; // number of attributes given by position
} Arguments;

static bool add_argument(GraphFlattening *f, const Node *node, const GraphTerm *term,
                         Arguments *to) {
  Arena *arena = &f->context->arena;
  bool is_null = term->kind == TERM_NONE || (term->kind == TERM_VALUE && !term->value);
  if (is_null || term->kind == TERM_VALUE) {
    array_push(arena, &to->tensors, is_null ? NULL : term->value);
    return true;
  }
  if (is_object(term))
    return flatten_refuse(f, node, "%s: reads an object, which is no tensor", node_op_name(node));
  Expr *value = flatten_attribute(f, term);
  const OpRow *row = op_find(node->op);
  Expr *number = row ? flatten_number_of(f, term) : NULL;
  const char *next = positional_name(row, to->positional);
  bool is_tensor = number && (to->tensors.count < row->min_inputs || !*next ||
                              !strncmp(next, "dtype", strlen("dtype")));
  if (is_tensor) return array_push(arena, &to->tensors, flatten_number(f, node, number)), true;
  if (!value && term_is_list(term)) {
    for (int i = 0; i < term->count; i++)
      if (!add_argument(f, node, term->items[i], to)) return false;
    return true;
  }
  if (!row) return flatten_refuse(f, node, "%s: no such operator", node_op_name(node));
  const char *name = positional_name(row, to->positional++);
  if (!value || !*name)
    return flatten_refuse(f, node, "%s: takes tensors by position; pass attributes by their names",
                          node_op_name(node));
  Str key = str_intern_n(f->context, name, strcspn(name, " "));
  to->attrs = attrs_with(arena, to->attrs, key, value);
  return true;
}

static bool add_keywords(GraphFlattening *f, const Node *node, Arguments *to) {
  static const char *const ignored[] = {"ty_args", "sinfo_args"};
  for (int i = 0; node->keywords && i < node->keywords->count; i++) {
    bool skip = false;
    for (int k = 0; k < COUNT_OF(ignored); k++)
      skip |= !strcmp(ignored[k], node->keywords->keys[i]);
    if (skip) continue;
    Expr *value = flatten_attribute(f, resolved(f, node->keywords->items[i]));
    if (!value)
      return flatten_refuse(f, node, "%s: '%s' is not an attribute", node_op_name(node),
                            node->keywords->keys[i]);
    to->attrs = attrs_with(&f->context->arena, to->attrs, node->keywords->keys[i], value);
  }
  return true;
}

// The new value of an output of `node`: the old one, or a copy when the node is in an inlined
// function. Its stated shape stays only where it has no sizes of that function.
static Value *output_of(GraphFlattening *f, Node *made, Value *old, int number) {
  bool copies = f->depth || f->sizes.count;
  Value *value = f->depth ? arena_copy(&f->context->arena, old, sizeof *old) : old;
  value->producer = made;
  value->output = number;
  value->info = NULL;
  for (int d = 0; copies && d < value->rank; d++) {
    if (d == 0)
      value->shape =
          arena_copy(&f->context->arena, old->shape, sizeof *old->shape * (size_t)old->rank);
    value->shape[d] = substitute_expr(f->context, old->shape[d], &f->sizes);
  }
  GraphTerm *term = term_new(f->context, TERM_VALUE, NULL);
  term->value = value;
  if (f->depth) map_put(&f->values, old, term);
  return value;
}

Node *flatten_add_node(GraphFlattening *f, const Node *like, Value *const *inputs, int count) {
  Node *made =
      node_new(f->context, like->kind, like->op, like->name, inputs, count, like->output_count);
  made->user_op = like->user_op;
  made->callee = like->callee;
  made->function = like->function;
  made->pos = like->pos;
  for (int i = 0; i < like->output_count; i++)
    made->outputs[i] = output_of(f, made, like->outputs[i], i);
  array_push(&f->context->arena, &f->nodes, made);
  return made;
}

Value *flatten_output(GraphFlattening *f, Node *node, int number) {
  if (number >= node->output_count) {
    Value **outputs = arena_array(&f->context->arena, Value *, number + 1);
    for (int i = 0; i <= number; i++) {
      outputs[i] = i < node->output_count ? node->outputs[i]
                                          : value_new(f->context, node->name, DTYPE_VOID, NULL, -1);
      outputs[i]->producer = node;
      outputs[i]->output = i;
      if (i >= node->output_count) outputs[i]->pos = node->pos;
    }
    node->outputs = outputs;
    node->output_count = number + 1;
  }
  return node->outputs[number];
}

// R.topk(x, ret_type="values"), R.median(x)
static bool has_one_result(const OpRow *row, const Attrs *attrs) {
  const Expr *type = attrs_get(attrs, "ret_type");
  const Expr *needed = row->one_without ? attrs_get(attrs, row->one_without) : NULL;
  if (row->one_without && (!needed || needed->op == EXPR_NONE)) return true;
  return type && type->op == EXPR_STRING && strcmp(type->as.s, "both") != 0;
}

// How many tensors an operator returns, as its type or its attributes say; 1 where they do not.
static int result_count(const Node *node, const Attrs *attrs, int inputs) {
  const GraphTerm *info = node->output_count == 1 ? node->outputs[0]->info : NULL;
  bool is_tuple = info && info->kind == TERM_CALL && !strcmp(info->text, "R.Tuple");
  Expr *sections = attrs_get(attrs, "indices_or_sections");
  bool splits = sections && node->output_count == 1;
  bool lists = is_tuple && info->count == 1 && term_is_list(info->items[0]); // R.Tuple([…])
  if (is_tuple) return lists ? info->items[0]->count : info->count;
  const OpRow *row = node->output_count == 1 ? op_find(node->op) : NULL;
  if (row && row->results == OP_RESULT_EACH) return MAX_OF(inputs, 1);
  if (row && row->results) return has_one_result(row, attrs) ? 1 : row->results;
  if (splits && sections->op == EXPR_TUPLE) return sections->count + 1;
  return splits ? (int)MIN_OF(MAX_OF(sections->as.i, (int64_t)1), 1024) : 1;
}

// Makes the result of `old` the tuple of the outputs of `made`.
void flatten_give_tuple(GraphFlattening *f, const Node *old, Node *made, int count) {
  GraphTerm **items = arena_array(&f->context->arena, GraphTerm *, count);
  for (int i = 0; i < count; i++) items[i] = term_of_value(f->context, flatten_output(f, made, i));
  map_put(&f->values, old->outputs[0],
          term_of_items(f->context, TERM_TUPLE, NULL, items, NULL, count));
}

// ---- Functions outside of the file -------------------------------------------------------------

static bool is_one_of(const char *word, const char *const *words, int count) {
  for (int i = 0; i < count; i++)
    if (!strcmp(words[i], word)) return true;
  return false;
}

static Str function_name(const GraphTerm *term) {
  bool wrapped = is_call_of(term, "R.ExternFunc") || is_call_of(term, "R.str");
  if (wrapped) return function_name(term->items[0]);
  return term->kind == TERM_EXPR && term->e->op == EXPR_STRING ? term->e->as.s : NULL;
}

static const OpaqueFunction *function_outside(GraphFlattening *f, const Node *node) {
  Str name = node->input_count ? function_name(flatten_resolved(f, node->inputs[0])) : NULL;
  const OpaqueFunction *found = name ? opaque_find(f->graph->functions, name) : NULL;
  if (!name)
    flatten_refuse(f, node, "expected R.%s(\"name\", …), with the name of a function", node->op);
  else if (!found)
    flatten_refuse(
        f, node,
        "%s calls '%s', a function outside of the file, which is not given\ngive it with %s, or "
        "replace the call by operators or a tensor program",
        node->op, name, caller_option(f->context, CALLER_OPERATORS));
  return found;
}

// The types of the results as the call states them; NULL when it does not.
GraphTerm *flatten_stated_types(GraphFlattening *f, const Node *node) {
  static const char *const names[] = {"out_sinfo", "out_ty", "sinfo_args", "ty_args"};
  for (int i = 0; node->keywords && i < node->keywords->count; i++) {
    if (!is_one_of(node->keywords->keys[i], names, COUNT_OF(names))) continue;
    GraphTerm *term = resolved(f, node->keywords->items[i]);
    bool list = strstr(node->keywords->keys[i], "_args") && term_is_list(term) && term->count == 1;
    return list ? term->items[0] : term;
  }
  return NULL;
}

// Adds the arguments: tensors are inputs, and others are attributes by their number, such as
// "arg2".
static bool add_packed_arguments(GraphFlattening *f, const Node *node, const GraphTerm *term,
                                 Arguments *to) {
  Arena *arena = &f->context->arena;
  if (term->kind == TERM_VALUE) {
    array_push(arena, &to->tensors, term->value);
    return true;
  }
  Expr *value = flatten_attribute(f, term);
  if (value) {
    Str name = str_format(f->context, "arg%d", to->tensors.count + to->positional++);
    to->attrs = attrs_with(arena, to->attrs, name, value);
    return true;
  }
  if (!term_is_list(term))
    return flatten_refuse(f, node, "%s takes tensors, numbers, shapes and texts", node->op);
  for (int i = 0; i < term->count; i++)
    if (!add_packed_arguments(f, node, term->items[i], to)) return false;
  return true;
}

// Gives the value a stated type, whose sizes may be variables of the function.
static void state_type(GraphFlattening *f, Value *value, const GraphTerm *type) {
  take_type(f->context, value, type);
  for (int d = 0; d < value->rank; d++)
    value->shape[d] = substitute_expr(f->context, value->shape[d], &f->sizes);
}

void flatten_state_types(GraphFlattening *f, Node *made, const GraphTerm *types, bool many) {
  for (int i = 0; types && i < made->output_count; i++) {
    made->outputs[i]->type = DTYPE_FLOAT32;
    state_type(f, made->outputs[i], many ? types->items[i] : types);
  }
}

// R.call_dps_packed("f", (x, y), out_sinfo=R.Tensor(…)), R.call_pure_packed("f", x, y,
// sinfo_args=(R.Tensor(…),))
static bool flatten_packed(GraphFlattening *f, const Node *node) {
  Arguments to = {.attrs = node->attrs};
  const OpaqueFunction *function = function_outside(f, node);
  if (!function) return false;
  for (int i = 1; i < node->input_count; i++)
    if (!add_packed_arguments(f, node, flatten_resolved(f, node->inputs[i]), &to)) return false;
  const GraphTerm *types = flatten_stated_types(f, node);
  bool tuple = types && term_is(types, "R.Tuple");
  bool many = types && (term_is_list(types) || tuple);
  int count = many ? types->count : 1;
  if (!count) return flatten_refuse(f, node, "'%s' gives no tensor", function->name);
  Node *made = flatten_add_node(f, node, (Value **)to.tensors.items, to.tensors.count);
  made->kind = NODE_OPAQUE;
  made->function = function;
  made->user_op = function->name;
  made->attrs = to.attrs;
  flatten_output(f, made, count - 1);
  flatten_state_types(f, made, types, many);
  if (many) flatten_give_tuple(f, node, made, count);
  return true;
}

// ---- Casts -------------------------------------------------------------------------------------

// A node of one result, whose type is not known yet.
Node *flatten_add_new_node(GraphFlattening *f, const Node *like, const char *op,
                           Value *const *inputs, int count) {
  Node *made = node_new(f->context, NODE_OP, op, like->name, inputs, count, 1);
  made->pos = like->pos;
  made->outputs[0] = value_new(f->context, like->name, DTYPE_VOID, NULL, -1);
  made->outputs[0]->producer = made;
  made->outputs[0]->pos = like->pos;
  array_push(&f->context->arena, &f->nodes, made);
  return made;
}

// The shape of a slice whose bounds only a run knows is the one to which it is cast.
static void state_slice(GraphFlattening *f, const Value *slice, const Value *cast) {
  Node *node = slice->producer;
  if (cast->rank < 0 || !node || node->kind != NODE_OP || strcmp(node->op, "dynamic_strided_slice"))
    return;
  node->attrs = attrs_with(&f->context->arena, node->attrs, str_intern(f->context, "shape"),
                           expr_tuple(f->context, cast->shape, cast->rank));
}

// The value with the type to which it is cast. Inference compares that with the type that it has.
static GraphTerm *cast_to(GraphFlattening *f, const Node *node, GraphTerm *value,
                          const GraphTerm *type) {
  Arena *arena = &f->context->arena;
  Value *tensor = term_tensor(value);
  if (term_is(type, "R.Tuple") && term_is_list(value) && type->count == value->count) {
    GraphTerm **items = arena_array(arena, GraphTerm *, type->count);
    for (int i = 0; i < type->count; i++)
      items[i] = cast_to(f, node, value->items[i], type->items[i]);
    return term_of_items(f->context, TERM_TUPLE, NULL, items, NULL, type->count);
  }
  if (term_is(type, "R.Shape")) flatten_name_sizes(f, value, type);
  if (!tensor || !term_is(type, "R.Tensor")) return value;
  Node *made = flatten_add_new_node(f, node, "identity", &tensor, 1);
  Value *result = made->outputs[0];
  made->user_op = "match_cast";
  state_type(f, result, type);
  state_slice(f, tensor, result);
  return term_of_value(f->context, result);
}

// The branch that a constant condition selects; -1 when it is not constant.
static int known_branch(const GraphTerm *condition) {
  const GraphTerm *term = condition;
  while (term->kind == TERM_CALL && term->count == 1) term = term->items[0];
  int64_t number;
  if (term->kind == TERM_EXPR && expr_as_int(term->e, &number)) return number == 0;
  const ConstData *data = term->kind == TERM_VALUE ? term->value->data : NULL;
  return data && data->bytes >= 1 && data->data ? !*(const char *)data->data : -1;
}

// ---- Effects -----------------------------------------------------------------------------------

static bool warn_of_effect(GraphFlattening *f, const Node *node) {
  return diag_warning(f->context, node->pos,
                      strcmp(node->op, "print") ? "this assertion is not checked by a run"
                                                : "a run does not print this"),
         true;
}

// R.print and R.assert_op have no result, and what runs leaves them out. A condition on sizes is
// checked when the sizes are known.
static bool flatten_effect(GraphFlattening *f, const Node *node) {
  bool asserts = node->input_count && !strcmp(node->op, "assert_op");
  const GraphTerm *condition = asserts ? flatten_resolved(f, node->inputs[0]) : NULL;
  int known = condition && condition->kind != TERM_NONE ? known_branch(condition) : -1;
  Expr *number = condition ? flatten_number_of(f, condition) : NULL;
  map_put(&f->values, node->outputs[0], term_new(f->context, TERM_TUPLE, NULL));
  if (known == 1) return flatten_refuse(f, node, "this assertion does not hold");
  if (known == 0) return true;
  if (!number || f->branches) return warn_of_effect(f, node);
  array_push(&f->context->arena, &f->graph->assertions, ((GraphAssertion){number, node->pos}));
  return true;
}

// The attributes with the values of the sizes of an inlined function, which may be flat already.
static Attrs attributes_of(const GraphFlattening *f, const Node *node) {
  Attrs attrs = {0};
  if (!f->sizes.count) return node->attrs;
  for (int i = 0; i < node->attrs.count; i++)
    attrs = attrs_with(&f->context->arena, attrs, node->attrs.items[i].key,
                       substitute_expr(f->context, node->attrs.items[i].value, &f->sizes));
  return attrs;
}

// ---- Operators of the table --------------------------------------------------------------------

static bool flatten_operator(GraphFlattening *f, const Node *node) {
  Arguments to = {.attrs = attributes_of(f, node)};
  if (is_one_of(node->op,
                (const char *const[]){"call_packed", "call_pure_packed", "call_dps_packed"}, 3))
    return flatten_packed(f, node);
  if (is_one_of(node->op, (const char *const[]){"call_inplace_packed", "call_builtin_with_ctx"}, 2))
    return flatten_refuse(
        f, node,
        "%s calls a function outside of the file that may change its arguments\nuse "
        "R.call_dps_packed, which has results of its own",
        node->op);
  if (is_program_call(node)) return flatten_program_call(f, node);
  bool done;
  if (!flatten_memory(f, node, &done) || done) return done;
  if (is_one_of(node->op, (const char *const[]){"print", "assert_op"}, 2))
    return flatten_effect(f, node);
  if (!strcmp(node->op, "null_value")) {
    map_put(&f->values, node->outputs[0], term_new(f->context, TERM_NAME, "R.Any"));
    return true;
  }
  GraphTerm *shape = NULL;
  if (!flatten_shape(f, node, &shape)) return false;
  if (shape) return map_put(&f->values, node->outputs[0], shape), true;
  if (keeps_value(node) && node->input_count) {
    GraphTerm *value = flatten_resolved(f, node->inputs[0]);
    bool casts = !strcmp(node->op, "match_cast") && node->input_count == 2;
    if (casts) value = cast_to(f, node, value, flatten_resolved(f, node->inputs[1]));
    map_put(&f->values, node->outputs[0], value);
    return true;
  }
  for (int i = 0; i < node->input_count; i++)
    if (!add_argument(f, node, flatten_resolved(f, node->inputs[i]), &to)) return false;
  if (!add_keywords(f, node, &to)) return false;
  int count = result_count(node, &to.attrs, to.tensors.count);
  Node *made = flatten_add_node(f, node, (Value **)to.tensors.items, to.tensors.count);
  made->attrs = to.attrs;
  if (count > 1) flatten_give_tuple(f, node, made, count);
  return true;
}

static bool flatten_opaque(GraphFlattening *f, const Node *node) {
  Value **tensors = arena_array(&f->context->arena, Value *, node->input_count);
  for (int i = 0; i < node->input_count; i++)
    tensors[i] = term_tensor(flatten_resolved(f, node->inputs[i]));
  flatten_add_node(f, node, tensors, node->input_count)->attrs = attributes_of(f, node);
  return true;
}

// ---- Items -----------------------------------------------------------------------------------

static bool flatten_item(GraphFlattening *f, const Node *node) {
  GraphTerm *tuple = flatten_resolved(f, node->inputs[0]);
  Value *value = term_tensor(tuple);
  GraphTerm *item = NULL;
  if (term_is_list(tuple) && node->item < tuple->count) item = tuple->items[node->item];
  if (value && value->producer && value->producer->kind == NODE_OP)
    item = term_of_value(f->context, flatten_output(f, value->producer, node->item));
  if (!item) return flatten_refuse(f, node, "this value is not a tuple with item %d", node->item);
  map_put(&f->values, node->outputs[0], item);
  if (item->kind == TERM_VALUE && item->value->producer && item->value->output)
    item->value->name = node->outputs[0]->name;
  return true;
}

// ---- Calls of graph functions ----------------------------------------------------------------

static const GraphFunc *function_called(GraphFlattening *f, const Node *node) {
  GraphTerm *callee = term_of_value(f->context, node->inputs[0]);
  const GraphFunc *local = callee->kind == TERM_VALUE ? map_find(&f->locals, callee->value) : NULL;
  ModuleFunc *found = callee->kind == TERM_FUNC && f->graph->module
                          ? module_find(f->graph->module, callee->text)
                          : NULL;
  return local ? local : found ? found->graph : NULL;
}

static bool names_program(GraphFlattening *f, const Node *node) {
  const GraphTerm *callee = term_of_value(f->context, node->inputs[0]);
  const Module *module = callee->kind == TERM_FUNC ? f->graph->module : NULL;
  const ModuleFunc *found = module ? module_find(module, callee->text) : NULL;
  return found && found->prim;
}

static void bind_sizes(GraphFlattening *f, const Value *param, const Value *given) {
  for (int d = 0; given && d < param->rank && param->rank == given->rank; d++)
    if (param->shape[d]->op == EXPR_VAR && param->shape[d] != given->shape[d])
      map_put(&f->sizes, param->shape[d],
              expr_cast(f->context, param->shape[d]->type, given->shape[d]));
}

static GraphTerm *result_of(GraphFlattening *f, const GraphFunc *func) {
  if (func->result) return flatten_resolved(f, func->result);
  if (func->output_count == 1) return flatten_resolved(f, func->outputs[0]);
  GraphTerm **items = arena_array(&f->context->arena, GraphTerm *, func->output_count);
  for (int i = 0; i < func->output_count; i++) items[i] = flatten_resolved(f, func->outputs[i]);
  return term_of_items(f->context, TERM_TUPLE, NULL, items, NULL, func->output_count);
}

// A result that the call computes has the name that the caller gives it.
static void name_result(const GraphFlattening *f, const Node *node, int first,
                        const GraphTerm *result) {
  Value *value = term_tensor(result);
  Str name = node->outputs[0]->name;
  bool is_named = strcmp(name, "lv") != 0;
  for (int i = first; value && is_named && i < f->nodes.count; i++)
    if (value->producer == f->nodes.items[i]) value->name = name;
}

static bool flatten_call(GraphFlattening *f, const Node *node) {
  const GraphFunc *func = function_called(f, node);
  if (!func && names_program(f, node)) return flatten_writing_call(f, node);
  if (!func) return flatten_refuse(f, node, "only functions of this module can be called here");
  if (f->too_deep) return false;
  f->too_deep =
      f->depth == MOST_DEPTH || f->nodes.count > MOST_NODES || map_find(&f->called, func) != NULL;
  if (f->too_deep)
    return flatten_refuse(f, node, "'%s' calls itself, or its calls are nested too deeply",
                          func->name);
  if (func->param_count != node->input_count - 1)
    return flatten_refuse(f, node, "'%s' takes %d arguments, saw %d", func->name, func->param_count,
                          node->input_count - 1);
  for (int i = 0; i < func->param_count; i++) {
    GraphTerm *given = flatten_resolved(f, node->inputs[i + 1]);
    map_put(&f->values, func->params[i], given);
    bind_sizes(f, func->params[i], term_tensor(given));
    flatten_bind_size_param(f, func->params[i], given);
  }
  int first = f->nodes.count;
  f->depth++;
  map_put(&f->called, func, node);
  bool done = flatten_nodes(f, func);
  map_put(&f->called, func, NULL);
  f->depth--;
  if (!done) return false;
  GraphTerm *result = result_of(f, func);
  name_result(f, node, first, result);
  map_put(&f->values, node->outputs[0], result);
  return true;
}

// ---- If --------------------------------------------------------------------------------------

// A tensor, a number as a tensor, or NULL.
static Value *tensor_or_number(GraphFlattening *f, const Node *node, const GraphTerm *term) {
  Expr *number = flatten_number_of(f, term);
  return number ? flatten_number(f, node, number) : term_tensor(term);
}

static GraphTerm *chosen(GraphFlattening *f, const Node *node, Value *condition, const GraphTerm *a,
                         const GraphTerm *b) {
  if (term_is_list(a) && term_is_list(b) && a->count == b->count) {
    GraphTerm **items = arena_array(&f->context->arena, GraphTerm *, a->count);
    for (int i = 0; i < a->count; i++)
      if (!(items[i] = chosen(f, node, condition, a->items[i], b->items[i]))) return NULL;
    return term_of_items(f->context, TERM_TUPLE, NULL, items, NULL, a->count);
  }
  Value *inputs[] = {condition, tensor_or_number(f, node, a), tensor_or_number(f, node, b)};
  if (!inputs[1] || !inputs[2]) {
    flatten_refuse(f, node, "the branches have results of different kinds");
    return NULL;
  }
  Node *made = flatten_add_new_node(f, node, "where", inputs, 3);
  made->user_op = "if";
  array_push(&f->context->arena, &f->graph->choices,
             ((GraphChoice){inputs[0], {inputs[1], inputs[2]}}));
  return term_of_value(f->context, made->outputs[0]);
}

// Operators have no effects, so that both branches may run. Runs leave one out where it is worth it
// (driver/branches.c).
static bool flatten_if(GraphFlattening *f, const Node *node) {
  GraphTerm *condition = flatten_resolved(f, node->inputs[0]), *results[2] = {NULL, NULL};
  int known = known_branch(condition);
  for (int i = 0; i < 2; i++) {
    if (known == 1 - i) continue;
    f->branches += known < 0;
    bool ok = flatten_nodes(f, node->bodies[i]);
    f->branches -= known < 0;
    if (!ok) return false;
    results[i] = result_of(f, node->bodies[i]);
  }
  Value *tensor = known < 0 ? tensor_or_number(f, node, condition) : NULL;
  if (known < 0 && !tensor) return flatten_refuse(f, node, "the condition is no tensor");
  GraphTerm *result = known >= 0 ? results[known] : chosen(f, node, tensor, results[0], results[1]);
  if (result) map_put(&f->values, node->outputs[0], result);
  return result != NULL;
}

// ---- The function ----------------------------------------------------------------------------

static bool flatten_node(GraphFlattening *f, const Node *node) {
  switch (node->kind) {
  case NODE_OP: return flatten_operator(f, node);
  case NODE_CALL_TIR: return flatten_program_call(f, node);
  case NODE_OPAQUE: return flatten_opaque(f, node);
  case NODE_CALL: return flatten_call(f, node);
  case NODE_ITEM: return flatten_item(f, node);
  case NODE_IF: return flatten_if(f, node);
  case NODE_FUNC: map_put(&f->locals, node->outputs[0], node->bodies[0]); return true;
  }
  return false;
}

static bool flatten_nodes(GraphFlattening *f, const GraphFunc *func) {
  bool ok = true;
  for (int i = 0; i < func->nodes.count; i++) ok &= flatten_node(f, func->nodes.items[i]);
  return ok;
}

// Sets the shape and element type from R.Tensor((…), "float32").
static void take_type(Context *context, Value *value, const GraphTerm *info) {
  for (int i = 0; info->kind == TERM_CALL && i < info->count; i++) {
    const GraphTerm *item = info->items[i];
    bool is_type = item->kind == TERM_EXPR && item->e->op == EXPR_STRING;
    if (is_type) dtype_parse(item->e->as.s, strlen(item->e->as.s), &value->type);
    if (!term_is_list(item) && !is_call_of(item, "R.shape")) continue;
    if (is_call_of(item, "R.shape")) item = item->items[0];
    value->rank = item->count;
    value->shape = arena_array(&context->arena, Expr *, item->count);
    for (int d = 0; d < item->count; d++) value->shape[d] = item->items[d]->e;
  }
}

// Is the type that of an object, which holds no tensor, such as the effect of a layer?
static bool is_object_type(const GraphTerm *info) {
  static const char *const names[] = {"R.Any", "R.Object"};
  return info->kind == TERM_NAME && is_one_of(info->text, names, COUNT_OF(names));
}

// A parameter that is a tuple becomes a parameter for each of its tensors, and an object none.
static GraphTerm *param_term(GraphFlattening *f, Value *param, const GraphTerm *info,
                             PtrArray *params) {
  bool is_tuple = info && term_is(info, "R.Tuple");
  if (info && is_object_type(info)) return term_new(f->context, TERM_NAME, "R.Any");
  GraphTerm *sizes = flatten_size_param(f, param, info);
  if (sizes) return array_push(&f->context->arena, params, param), sizes;
  if (info && term_number_type(info, &param->type)) param->rank = 0; // a tensor without axes
  if (info && param->rank < 0) flatten_name_extents(f, param, info);
  if (!is_tuple) {
    array_push(&f->context->arena, params, param);
    return term_of_value(f->context, param);
  }
  GraphTerm **items = arena_array(&f->context->arena, GraphTerm *, info->count);
  for (int i = 0; i < info->count; i++) {
    Value *item = value_new(f->context, str_format(f->context, "%s_%d", param->name, i), DTYPE_VOID,
                            NULL, -1);
    item->pos = param->pos;
    const GraphTerm *type = info->items[i];
    item->type = DTYPE_FLOAT32;
    take_type(f->context, item, type);
    items[i] = param_term(f, item, type, params);
  }
  return term_of_items(f->context, TERM_TUPLE, NULL, items, NULL, info->count);
}

static bool check_params(GraphFlattening *f, const PtrArray *params) {
  for (int i = 0; i < params->count; i++) {
    const Value *param = params->items[i];
    if (param->rank < 0 && dtype_equal(param->type, DTYPE_VOID))
      return diag_error_as(f->context, DIAG_UNSUPPORTED, param->pos,
                           "parameter '%s' is no tensor; a function that runs takes tensors",
                           param->name);
  }
  return true;
}

static bool flatten_params(GraphFlattening *f) {
  GraphFunc *graph = f->graph;
  PtrArray params = {0};
  for (int i = 0; i < graph->param_count; i++) {
    Value *param = graph->params[i];
    GraphTerm *term = param_term(f, param, param->info, &params);
    if (term->kind != TERM_VALUE) map_put(&f->values, param, term);
  }
  graph->params = (Value **)params.items;
  graph->param_count = params.count;
  return check_params(f, &params);
}

static bool add_results(GraphFlattening *f, const GraphTerm *term, PtrArray *outputs) {
  if (is_object(term)) return true;
  if (term_is_list(term)) {
    for (int i = 0; i < term->count; i++)
      if (!add_results(f, term->items[i], outputs)) return false;
    return true;
  }
  Value *value = term_tensor(term) ? term->value : flatten_as_tensor(f, term);
  if (!value)
    return diag_error_as(f->context, DIAG_UNSUPPORTED, f->graph->pos,
                         "'%s' returns something that is no tensor", f->graph->name);
  array_push(&f->context->arena, outputs, value);
  return true;
}

// Is it an operator of the table whose results are the outputs of the node?
static bool is_flat_operator(const Node *node) {
  return op_find(node->op) && !keeps_value(node) &&
         result_count(node, &node->attrs, node->input_count) <= node->output_count;
}

static bool is_flat(const GraphFunc *graph) {
  bool flat = !graph->result;
  for (int i = 0; i < graph->param_count; i++) flat &= !graph->params[i]->info;
  for (int i = 0; flat && i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    flat = node->kind <= NODE_OPAQUE && !node->keywords;
    if (node->kind == NODE_OP) flat &= is_flat_operator(node);
    for (int k = 0; k < node->input_count; k++)
      flat &= !node->inputs[k] || (!node->inputs[k]->term && !node->inputs[k]->info);
  }
  for (int i = 0; i < graph->output_count; i++)
    flat &= graph->outputs[i] && !graph->outputs[i]->term && !graph->outputs[i]->info;
  return flat;
}

bool graph_flatten(Context *context, GraphFunc *graph) {
  if (!graph->is_written || is_flat(graph)) return true;
  Arena *arena = &context->arena;
  GraphFlattening f = {.context = context,
                       .graph = graph,
                       .values = map_new(arena),
                       .locals = map_new(arena),
                       .called = map_new(arena),
                       .sizes = map_new(arena)};
  DiagCode code = diag_code_set(context, DIAG_MODEL);
  PtrArray outputs = {0};
  map_put(&f.called, graph, graph);
  bool ok = flatten_params(&f) && flatten_nodes(&f, graph) &&
            add_results(&f, result_of(&f, graph), &outputs);
  diag_code_set(context, code);
  if (!ok) return false;
  graph->nodes.count = 0;
  for (int i = 0; i < f.nodes.count; i++) array_push(arena, &graph->nodes, f.nodes.items[i]);
  graph->outputs = (Value **)outputs.items;
  graph->output_count = outputs.count;
  graph->result = NULL;
  graph->is_written = false;
  return true;
}
