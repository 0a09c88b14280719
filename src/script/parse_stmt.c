// SPDX-License-Identifier: Apache-2.0
// Reads statements. A suite becomes a sequence. A statement whose scope is the rest of its suite
// (`x = …`, T.attr(…), T.decl_buffer(…)) stays open until the suite ends.
#include "arith/arith.h"
#include "script/parse_stmt.h"

#include <math.h>

enum { MOST_DEPTH = 1000 };

// ---- Sequences

void sequence_add(Parser *parser, Sequence *sequence, const PyNode *node, Stmt *s) {
  if (!s) return;
  s->pos = node->pos;
  array_push(parser->arena, &sequence->items, s);
}

void sequence_open(Parser *parser, Sequence *sequence, const PyNode *node, Stmt *s, Stmt **hole) {
  s->pos = node->pos;
  OpenStmt open = {s, hole, sequence->items.count};
  array_push(parser->arena, &sequence->open, open);
  if (++parser->depth == MOST_DEPTH) REPORT(parser, node, "statements nest too deep here");
}

static Stmt *sequence_close(Parser *parser, Sequence *sequence) {
  for (int i = sequence->open.count - 1; i >= 0; i--) {
    OpenStmt *open = &sequence->open.items[i];
    int count = sequence->items.count - open->first;
    *open->hole = stmt_seq(parser->context, sequence->items.items + open->first, count);
    sequence->items.count = open->first;
    array_push(parser->arena, &sequence->items, open->stmt);
  }
  parser->depth -= sequence->open.count;
  return stmt_seq(parser->context, sequence->items.items, sequence->items.count);
}

Stmt *parse_body(Parser *parser, const PyNode *suite) {
  Sequence sequence = {0};
  for (int i = 0; i < suite->count && parser->depth < MOST_DEPTH; i++)
    parse_statement(parser, &sequence, suite->items[i]);
  return sequence_close(parser, &sequence);
}

Stmt *parse_suite(Parser *parser, const PyNode *suite) {
  int mark = parser_mark(parser);
  BlockBuilder *block = parser->block;
  parser->block = NULL;
  if (++parser->depth == MOST_DEPTH) REPORT(parser, suite, "statements nest too deep here");
  Stmt *body = parse_body(parser, suite);
  parser->depth--;
  parser->block = block;
  parser_reset(parser, mark);
  return body;
}

// ---- Loops

typedef struct LoopSyntax {
  const char *name;
  LoopKind kind;
  bool is_thread, is_grid;
} LoopSyntax;

static const LoopSyntax loop_forms[] = {
    {"serial", LOOP_SERIAL},
    {"parallel", LOOP_PARALLEL},
    {"vectorized", LOOP_VECTORIZED},
    {"unroll", LOOP_UNROLLED},
    {"thread_binding", LOOP_THREAD, .is_thread = true},
    {"grid", LOOP_SERIAL, .is_grid = true},
};

static const LoopSyntax *loop_form(Parser *parser, const PyNode *iterator) {
  static const LoopSyntax range = {NULL, LOOP_SERIAL};
  if (iterator->kind == PY_CALL && iterator->items[0]->kind == PY_NAME &&
      !strcmp(iterator->items[0]->text, "range"))
    return &range;
  Str member = parser_called(parser, iterator, DIALECT_TIR);
  for (int i = 0; member && i < COUNT_OF(loop_forms); i++)
    if (!strcmp(loop_forms[i].name, member)) return &loop_forms[i];
  const char *names[COUNT_OF(loop_forms)];
  for (int i = 0; i < COUNT_OF(loop_forms); i++) names[i] = loop_forms[i].name;
  bool is_bare = iterator->kind == PY_CALL && iterator->items[0]->kind == PY_NAME;
  const char *word = is_bare ? iterator->items[0]->text : member;
  REPORT(parser, iterator,
         "expected a loop: range, T.serial, T.parallel, T.vectorized, T.unroll, "
         "T.thread_binding or T.grid%s",
         word ? parser_suggestion(parser, word, names, COUNT_OF(names)) : "");
  return NULL;
}

static Stmt *loop_new(Parser *parser, const PyNode *target, Expr *min, Expr *extent,
                      LoopKind kind) {
  if (target->kind != PY_NAME) {
    REPORT(parser, target, "expected the name of a loop variable%s",
           target->kind == PY_TUPLE ? "\nT.grid makes several loops" : "");
    return NULL;
  }
  Expr *var = expr_var(parser->context, target->text, extent->type);
  Binding *binding = parser_bind(parser, target->text, BOUND_EXPR);
  binding->expr = var;
  binding->min = min;
  binding->extent = extent;
  Stmt *loop = stmt_for(parser->context, var, min, extent, kind, NULL);
  loop->pos = target->pos;
  return loop;
}

static Expr *loop_extent(Parser *parser, const PyNode *node, Operand extent) {
  if (!extent.e) return NULL;
  bool is_number = extent.is_literal && extent.e->op == EXPR_INT;
  Expr *e = is_number ? extent.e : operand_as(parser, node, extent, DTYPE_INT32);
  if (!e || (dtype_is_int(e->type) && e->type.lanes == 1)) return e;
  REPORT(parser, node, "the extent of a loop must be an integer, saw %s",
         parser_type_name(parser, e->type));
  return NULL;
}

// (stop) or (start, stop)
static bool loop_bounds(Parser *parser, const PyNode *first, const PyNode *second, Expr **min,
                        Expr **extent) {
  if (!second) {
    *extent = loop_extent(parser, first, parse_operand(parser, first));
    *min = *extent ? expr_int(parser->context, (*extent)->type, 0) : NULL;
    return *extent != NULL;
  }
  Operand start = parse_operand(parser, first), stop = parse_operand(parser, second);
  if (!parse_same_type(parser, first, &start, &stop)) return false;
  *min = start.e;
  *extent =
      loop_extent(parser, second, (Operand){parse_difference(parser, start.e, stop.e), false});
  return *extent != NULL;
}

// Makes a loop over the values of range(min, min + extent, step), and binds its name to a value.
static Stmt *stepped_loop(Parser *parser, const PyNode *node, const PyNode *step_node, Expr *min,
                          Expr *extent, LoopKind kind) {
  int64_t step;
  Context *context = parser->context;
  if (!parse_int(parser, step_node, "the step of a loop", &step)) return NULL;
  if (step < 1 || step > INT32_MAX) {
    REPORT(parser, step_node, "expected a step above 0, saw %lld", (long long)step);
    return NULL;
  }
  Expr *by = expr_int(context, extent->type, step);
  Expr *above = expr_add(context, extent, expr_int(context, extent->type, step - 1));
  Expr *count = expr_floor_div(context, above, by);
  Expr *zero = expr_int(context, extent->type, 0);
  Stmt *loop = loop_new(parser, node->items[0], zero, count, kind);
  if (!loop) return NULL;
  Binding *binding = parser_find(parser, node->items[0]->text);
  binding->expr = expr_add(context, min, expr_mul(context, loop->as.loop.var, by));
  binding->min = binding->extent = NULL;
  return loop;
}

// range has a step before its annotations.
static const char *loop_signature(const LoopSyntax *form) {
  return !form->name       ? "start stop? step? annotations?"
         : form->is_thread ? "start stop? thread? annotations?"
                           : "start stop? annotations? step? unroll?";
}

// unroll=False, unroll=True or unroll=4: what a C compiler is asked for.
static bool unroll_annotation(Parser *parser, const PyNode *node, Attrs *annotations) {
  Context *context = parser->context;
  if (node->kind != PY_BOOL && node->kind != PY_INT)
    return REPORT(parser, node, "expected True, False or a number, saw %s",
                  py_kind_name(node->kind));
  bool is_off = node->kind == PY_BOOL && !node->i;
  Expr *value = node->kind == PY_INT ? expr_index(context, node->i) : expr_bool(context, true);
  const char *key = is_off ? "disable_unroll" : "pragma_unroll";
  *annotations = attrs_with(&context->arena, *annotations, str_intern(context, key), value);
  return true;
}

static Stmt *single_loop(Parser *parser, const PyNode *node, const LoopSyntax *form) {
  const PyNode *iterator = node->items[1];
  PyNode *args[5] = {NULL};
  if (!py_arguments(parser->context, iterator, loop_signature(form), args, NULL)) return NULL;
  PyNode *thread = form->is_thread ? args[2] : NULL;
  PyNode *step = !form->name ? args[2] : form->is_thread ? NULL : args[3], *unroll = args[4];
  PyNode *annotations = args[!form->name || form->is_thread ? 3 : 2];
  if (form->is_thread && !thread && args[1] && args[1]->kind == PY_STRING) {
    thread = args[1]; // T.thread_binding(4, "threadIdx.x")
    args[1] = NULL;
  }
  Expr *min, *extent;
  Stmt *loop;
  if (!loop_bounds(parser, args[0], args[1], &min, &extent)) return NULL;
  if (step && !(step->kind == PY_INT && step->i == 1))
    loop = stepped_loop(parser, node, step, min, extent, form->kind);
  else
    loop = loop_new(parser, node->items[0], min, extent, form->kind);
  if (!loop) return NULL;
  if (annotations && !parse_attributes(parser, annotations, &loop->as.loop.annotations))
    return NULL;
  if (unroll && !unroll_annotation(parser, unroll, &loop->as.loop.annotations)) return NULL;
  if (!form->is_thread) return loop;
  if (thread)
    loop->as.loop.thread = parse_thread_axis(parser, thread);
  else
    REPORT(parser, iterator, "argument 'thread' is missing, such as \"threadIdx.x\"");
  return loop->as.loop.thread ? loop : NULL;
}

const PyNode *const *parse_split_name(Parser *parser, const PyNode *target, int count) {
  PyNode **names = arena_array(parser->arena, PyNode *, count);
  for (int i = 0; i < count; i++) {
    names[i] = arena_new(parser->arena, PyNode);
    *names[i] = (PyNode){.kind = PY_NAME, .pos = target->pos};
    names[i]->text = str_format(parser->context, "%s_%d", target->text, i);
  }
  PyNode *tuple = arena_new(parser->arena, PyNode);
  *tuple = (PyNode){.kind = PY_TUPLE, .pos = target->pos, .items = names, .count = count};
  tuple->text = target->text;
  parser_bind(parser, target->text, BOUND_NODE)->node = tuple;
  return (const PyNode *const *)names;
}

// The names of `count` loops: those of a tuple, in which *x stands for the names that are left, or
// those that one name stands for.
static const PyNode *const *loop_names(Parser *parser, const PyNode *target, int count,
                                       int *name_count) {
  *name_count = count;
  if (target->kind == PY_NAME) return parse_split_name(parser, target, count);
  Array(const PyNode *) names = {0};
  bool has_star = false;
  for (int i = 0; i < target->count; i++) {
    const PyNode *item = target->items[i];
    int rest = count - target->count + 1;
    bool is_star = item->kind == PY_STAR && item->count && rest >= 0 && !has_star;
    const PyNode *star = is_star ? item->items[0] : NULL;
    has_star |= is_star;
    const PyNode *const *split =
        star && star->kind == PY_NAME ? parse_split_name(parser, star, rest) : NULL;
    if (!split) array_push(parser->arena, &names, item);
    for (int k = 0; split && k < rest; k++) array_push(parser->arena, &names, split[k]);
  }
  *name_count = names.count;
  return names.items;
}

// Reports two loops of one name, except for _, which a program does not use.
static bool check_loop_names(Parser *parser, const PyNode *const *names, int count) {
  for (int i = 1; i < count; i++)
    for (int k = 0; k < i; k++) {
      bool are_names = names[i]->kind == PY_NAME && names[k]->kind == PY_NAME;
      if (are_names && names[i]->text == names[k]->text && strcmp(names[i]->text, "_"))
        return REPORT(parser, names[i], "there are two loop variables '%s'", names[i]->text);
    }
  return true;
}

// Makes the loops of `for i, j in T.grid(30, 64)`; returns the innermost, and the outermost in
// *outer.
static Stmt *grid_loops(Parser *parser, const PyNode *node, Stmt **outer) {
  const PyNode *target = node->items[0], *iterator = node->items[1];
  int count = iterator->count - 1;
  const PyNode *const *names = &target;
  int name_count = 1;
  if (py_is_list(target) || (target->kind == PY_NAME && count > 1))
    names = loop_names(parser, target, count, &name_count);
  if (name_count != count || !count) {
    REPORT(parser, node->items[0], "%d loop variable%s for %d extent%s", name_count,
           name_count == 1 ? "" : "s", count, count == 1 ? "" : "s");
    return NULL;
  }
  if (!check_loop_names(parser, names, count)) return NULL;
  Stmt *inner = NULL;
  for (int i = 0; i < count; i++) {
    Expr *min, *extent;
    const PyNode *extent_node = iterator->items[i + 1];
    bool is_range = extent_node->kind == PY_TUPLE && extent_node->count == 2;
    if (!loop_bounds(parser, is_range ? extent_node->items[0] : extent_node,
                     is_range ? extent_node->items[1] : NULL, &min, &extent))
      return NULL;
    Stmt *loop = loop_new(parser, names[i], min, extent, LOOP_SERIAL);
    if (!loop) return NULL;
    if (inner)
      inner->as.loop.body = loop;
    else
      *outer = loop;
    inner = loop;
  }
  return inner;
}

static void for_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  int mark = parser_mark(parser);
  const LoopSyntax *form = loop_form(parser, node->items[1]);
  Stmt *outer = NULL, *inner = NULL;
  if (form && form->is_grid)
    inner = grid_loops(parser, node, &outer);
  else if (form)
    inner = outer = single_loop(parser, node, form);
  if (!inner) parser_bind_nothing(parser, node->items[0]);
  Stmt *body = parse_suite(parser, node->items[2]);
  parser_reset(parser, mark);
  if (!inner) return;
  inner->as.loop.body = body;
  sequence_add(parser, sequence, node, outer);
}

// ---- Control

// The statement of a loop's body that gives another value to a name in the loop's condition; NULL:
// there is none.
static const PyNode *renewal(const PyNode *s, const PyNode *condition) {
  const PyNode *target = s->kind == PY_ASSIGN ? s->items[0] : NULL, *found = NULL;
  if (target && target->kind == PY_NAME && py_mentions(condition, target->text)) return target;
  if (s->kind == PY_SUITE)
    for (int i = 0; i < s->count && !found; i++) found = renewal(s->items[i], condition);
  return found;
}

// Reports `while i < 4:` over `i = i + 1`, where each of the two names another value.
static bool check_renewal(Parser *parser, const PyNode *node, Expr *condition) {
  const PyNode *renewed = renewal(node->items[1], node->items[0]);
  if (!renewed || expr_reads_memory(condition)) return true;
  return REPORT(parser, renewed,
                "this is another '%s' than that of the condition, whose value stays\n"
                "use a buffer of one element: %s = T.decl_buffer((1,), \"int32\"), %s[0] = …",
                renewed->text, renewed->text, renewed->text);
}

static void while_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  Expr *condition = parse_condition(parser, node->items[0]);
  Stmt *body = parse_suite(parser, node->items[1]);
  if (!condition || !check_renewal(parser, node, condition)) return;
  Stmt *s = arena_new(&parser->context->arena, Stmt);
  s->kind = STMT_WHILE;
  s->as.repeat.condition = condition;
  s->as.repeat.body = body;
  sequence_add(parser, sequence, node, s);
}

// A condition that Python knows chooses the statements that are read.
static void known_if(Parser *parser, Sequence *sequence, const PyNode *node) {
  const PyNode *suite = node->items[node->items[0]->i ? 1 : 2];
  for (int i = 0; suite && i < suite->count; i++)
    parse_statement(parser, sequence, suite->items[i]);
}

static void if_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  PyKind kind = node->items[0]->kind;
  if (kind == PY_BOOL || kind == PY_INT) {
    known_if(parser, sequence, node);
    return;
  }
  Expr *condition = parse_condition(parser, node->items[0]);
  Stmt *then_body = parse_suite(parser, node->items[1]);
  Stmt *else_body = node->items[2] ? parse_suite(parser, node->items[2]) : NULL;
  if (condition)
    sequence_add(parser, sequence, node, stmt_if(parser->context, condition, then_body, else_body));
}

static void assert_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  Expr *condition = parse_condition(parser, node->items[0]);
  Expr *message = node->items[1] ? parse_call_operand(parser, node->items[1])
                                 : expr_string(parser->context, "assertion failed");
  if (condition && message)
    sequence_add(parser, sequence, node, stmt_assert(parser, condition, message, NULL));
}

// ---- Stores

static ExprOp augmented_op(const char *text) {
  static const struct {
    const char *text;
    ExprOp op;
  } table[] = {{"+=", EXPR_ADD},     {"-=", EXPR_SUB},        {"*=", EXPR_MUL},
               {"/=", EXPR_DIV},     {"//=", EXPR_FLOOR_DIV}, {"%=", EXPR_FLOOR_MOD},
               {"&=", EXPR_BIT_AND}, {"|=", EXPR_BIT_OR},     {"^=", EXPR_BIT_XOR}};
  for (int i = 0; i < COUNT_OF(table); i++)
    if (!strcmp(table[i].text, text)) return table[i].op;
  return EXPR_OP_COUNT;
}

static bool is_number(DType type) {
  return dtype_is_int(type) || dtype_is_float(type) || dtype_is_bool(type);
}

// TVM casts a number that is stored among numbers of another type. A constant with a fraction is
// not cast to an integer here, since its fraction would be lost; nor is any number that is assigned
// to a variable of integers, whose type its first value states.
static bool is_cast_in_store(const Expr *e, const Buffer *buffer, DType to) {
  const Expr *value = e->op == EXPR_BROADCAST ? e->args[0] : e;
  bool has_fraction = value->op == EXPR_FLOAT && !(value->as.f - floor(value->as.f) == 0);
  bool may_round = !buffer->is_variable && !has_fraction;
  return is_number(e->type) && is_number(to) && e->type.lanes == to.lanes &&
         !dtype_equal(e->type, to) && (dtype_is_float(to) || may_round);
}

Stmt *parse_store(Parser *parser, const PyNode *node, Buffer *buffer, Expr **indices,
                  Operand value) {
  Expr *place = expr_load(parser->context, buffer, indices, buffer->rank);
  Expr *e = operand_as(parser, node, value, buffer->type);
  if (!e) return NULL;
  if (e->type.lanes == 1) e = expr_broadcast(parser->context, e, place->type.lanes);
  if (is_cast_in_store(e, buffer, place->type)) {
    diag_warning(parser->context, node->pos,
                 "a value of type %s is cast to %s, the type of the elements of %s",
                 parser_type_name(parser, e->type), parser_type_name(parser, place->type),
                 buffer->name);
    e = expr_cast(parser->context, place->type, e);
  }
  if (dtype_equal(e->type, place->type))
    return stmt_store(parser->context, buffer, indices, buffer->rank, e);
  REPORT(parser, node, "a value of type %s is stored in %s, which holds %s; cast it",
         parser_type_name(parser, e->type), buffer->name, parser_type_name(parser, place->type));
  return NULL;
}

static void store_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  const PyNode *target = node->items[0];
  Buffer *buffer = parse_buffer_name(parser, target->items[0]);
  Expr **indices = buffer ? parse_indices(parser, target, buffer) : NULL;
  Operand value = parse_operand(parser, node->items[1]);
  if (!indices || !value.e) return;
  if (strcmp(node->text, "=")) {
    ExprOp op = augmented_op(node->text);
    if (op == EXPR_OP_COUNT) {
      REPORT(parser, node, "'%s' is not supported", node->text);
      return;
    }
    Operand old = {expr_load(parser->context, buffer, indices, buffer->rank), false};
    value = parse_binary(parser, node->items[1], op, old, value);
    if (!value.e) return;
  }
  sequence_add(parser, sequence, node, parse_store(parser, node->items[1], buffer, indices, value));
}

// ---- Assignments

static void let_statement(Parser *parser, Sequence *sequence, const PyNode *node,
                          const PyNode *target, Expr *value) {
  if (!value) {
    parser_bind_nothing(parser, target);
    return;
  }
  Expr *var = expr_var(parser->context, target->text, value->type);
  if (value->type.code == TYPE_HANDLE && value->op == EXPR_VAR) *var->as.var = *value->as.var;
  var->as.var->name = target->text;
  parser_bind_expr(parser, target->text, var);
  Stmt *s = stmt_let(parser->context, var, value, NULL);
  sequence_open(parser, sequence, node, s, &s->as.let.body);
}

bool parse_is_variable(Parser *parser, const PyNode *value) {
  Str member = parser_called(parser, value, DIALECT_TIR);
  DType type;
  if (!member) return false;
  static const char *const names[] = {"var",    "dyn", "SizeVar",     "Var",
                                      "handle", "Ptr", "captured_var"};
  for (int i = 0; i < COUNT_OF(names); i++)
    if (!strcmp(member, names[i])) return true;
  const PyNode *only = value->count == 2 ? value->items[1] : NULL;
  bool is_size = only && only->kind == PY_KEYWORD && !strcmp(only->text, "is_size_var");
  return (value->count == 1 || is_size) && dtype_parse(member, strlen(member), &type);
}

// ---- Variables of the newer dialect: buffers of one element, which are written without [0]

// The buffer of one element that a name stands for, or NULL.
static Buffer *variable_of(Parser *parser, const PyNode *name) {
  const Binding *binding = parser_find(parser, name->text);
  if (!binding || !parser->is_newer) return NULL;
  if (binding->kind == BOUND_BUFFER)
    return parse_only_element(parser, binding->buffer) ? binding->buffer : NULL;
  bool is_load = binding->kind == BOUND_EXPR && binding->expr->op == EXPR_LOAD;
  return is_load && binding->expr->as.buffer->is_variable ? binding->expr->as.buffer : NULL;
}

// x: T.int32
static Buffer *define_variable(Parser *parser, Sequence *sequence, const PyNode *node,
                               const PyNode *target, DType type) {
  Context *context = parser->context;
  Expr *one = expr_int(context, DTYPE_INT32, 1), *zero = expr_int(context, DTYPE_INT32, 0);
  Buffer *buffer = buffer_new(context, target->text, type, &one, 1, "local");
  buffer->pos = target->pos;
  buffer->is_variable = true;
  parser_bind_expr(parser, target->text, expr_load(context, buffer, &zero, 1));
  Stmt *s = stmt_allocate(context, buffer, NULL);
  s->as.allocate.body->pos = node->pos;
  sequence_open(parser, sequence, node, s, &s->as.allocate.body->as.declare.body);
  return buffer;
}

static void set_variable(Parser *parser, Sequence *sequence, const PyNode *node, Buffer *buffer,
                         Operand value) {
  Expr *zero = expr_int(parser->context, DTYPE_INT32, 0), **index;
  index = arena_copy(&parser->context->arena, &zero, sizeof zero);
  if (value.e)
    sequence_add(parser, sequence, node, parse_store(parser, node, buffer, index, value));
}

// x += 1
static bool augment_variable(Parser *parser, Sequence *sequence, const PyNode *node) {
  const PyNode *target = node->items[0];
  Buffer *buffer = target->kind == PY_NAME ? variable_of(parser, target) : NULL;
  ExprOp op = augmented_op(node->text);
  if (!buffer || op == EXPR_OP_COUNT) return false;
  Operand old = {parse_only_element(parser, buffer), false};
  Operand value = parse_operand(parser, node->items[1]);
  if (value.e)
    set_variable(parser, sequence, node, buffer,
                 parse_binary(parser, node->items[1], op, old, value));
  return true;
}

// x = value: sets the variable x, or defines it.
static void assign_variable(Parser *parser, Sequence *sequence, const PyNode *node, Expr *value) {
  const PyNode *target = node->items[0];
  Buffer *buffer = variable_of(parser, target);
  if (!buffer) buffer = define_variable(parser, sequence, node, target, value->type);
  set_variable(parser, sequence, node, buffer, (Operand){value, false});
}

static bool is_variable_type(const Parser *parser, DType type) {
  return parser->is_newer && type.code != TYPE_HANDLE && type.code != TYPE_VOID && type.lanes == 1;
}

// B = A.view(64)
static bool assign_view(Parser *parser, Sequence *sequence, const PyNode *node) {
  const PyNode *value = node->items[1];
  const PyNode *callee = value->kind == PY_CALL ? value->items[0] : NULL;
  bool is_view = callee && callee->kind == PY_ATTRIBUTE && !strcmp(callee->text, "view") &&
                 callee->items[0]->kind == PY_NAME;
  Binding *binding = is_view ? parser_find(parser, callee->items[0]->text) : NULL;
  if (!binding || binding->kind != BOUND_BUFFER) return false;
  Buffer *view = parse_view(parser, value, binding->buffer, node->items[0]->text);
  if (!view) {
    parser_bind_nothing(parser, node->items[0]);
    return true;
  }
  parser_bind_buffer(parser, view->name, view);
  Stmt *s = stmt_declare(parser->context, view, NULL);
  sequence_open(parser, sequence, node, s, &s->as.declare.body);
  return true;
}

// tx = T.env_thread("threadIdx.x")
static bool assign_thread(Parser *parser, const PyNode *node, Str member) {
  PyNode *args[2];
  if (!member || strcmp(member, "env_thread")) return false;
  Str name = node->items[0]->text, thread = NULL;
  DType type = DTYPE_INT32;
  if (py_arguments(parser->context, node->items[1], "thread_tag dtype?", args, NULL) &&
      (!args[1] || parse_dtype(parser, args[1], &type)))
    thread = parse_thread_axis(parser, args[0]);
  Binding *binding = parser_bind(parser, name, thread ? BOUND_EXPR : BOUND_NOTHING);
  if (thread) binding->expr = expr_var(parser->context, name, type);
  binding->thread = thread;
  return true;
}

// k = T.meta_var(5): the name stands for the value, and takes the other operand's type where the
// value is a literal.
static void bind_meta(Parser *parser, const PyNode *target, const PyNode *value) {
  Operand operand = parse_operand(parser, value);
  if (!operand.e) {
    parser_bind_nothing(parser, target);
    return;
  }
  Binding *binding = parser_bind(parser, target->text, BOUND_EXPR);
  binding->expr = operand.e;
  binding->is_literal = operand.is_literal;
}

static void assign_name(Parser *parser, Sequence *sequence, const PyNode *node) {
  const PyNode *target = node->items[0], *value = node->items[1];
  Str member = parser_called(parser, value, DIALECT_TIR);
  if (member && parse_assigned_call(parser, sequence, node, member)) return;
  if (assign_view(parser, sequence, node) || assign_thread(parser, node, member)) return;
  if (parse_is_variable(parser, value)) {
    Expr *var = parse_value(parser, value);
    if (var) var->as.var->name = target->text;
    if (var) parser_bind_expr(parser, target->text, var);
    return;
  }
  if (member && !strcmp(member, "meta_var")) {
    bind_meta(parser, target, value);
    return;
  }
  const Intrinsic *row = member ? intrinsic_find(member) : NULL;
  bool is_named = row && row->flags & INTRINSIC_NAMES;
  Buffer *variable = variable_of(parser, target);
  Expr *e = variable ? parse_value_as(parser, value, variable->type) : parse_value(parser, value);
  if (e && !is_named && is_variable_type(parser, e->type))
    assign_variable(parser, sequence, node, e);
  else
    let_statement(parser, sequence, node, target, e);
}

// Computes the value before the targets are set. Returns a name for it that no script can write.
static PyNode *hold_value(Parser *parser, Sequence *sequence, const PyNode *node,
                          const PyNode *target, const PyNode *value, bool is_meta) {
  Str shown = target->kind == PY_NAME ? target->text : str_intern(parser->context, "value");
  PyNode *held = arena_new(parser->arena, PyNode);
  *held = (PyNode){.kind = PY_NAME, .pos = value->pos};
  held->text = str_format(parser->context, "value of %s at %d", shown, value->pos.begin);
  Operand operand = parse_operand(parser, value);
  if (!operand.e) {
    parser_bind_nothing(parser, held);
    return held;
  }
  Expr *e = operand.e;
  if (!is_meta) {
    e = expr_var(parser->context, shown, operand.e->type);
    Stmt *s = stmt_let(parser->context, e, operand.e, NULL);
    sequence_open(parser, sequence, node, s, &s->as.let.body);
  }
  Binding *binding = parser_bind(parser, held->text, BOUND_EXPR);
  binding->expr = e;
  binding->is_literal = is_meta && operand.is_literal;
  return held;
}

// Lets the name stand for a value that was computed before; false where there is none.
static bool bind_held(Parser *parser, Str name, const PyNode *held) {
  const Binding *known = parser_find(parser, held->text);
  if (!known || known->kind != BOUND_EXPR) return false;
  Expr *e = known->expr;
  bool is_literal = known->is_literal;
  Binding *binding = parser_bind(parser, name, BOUND_EXPR);
  binding->expr = e;
  binding->is_literal = is_literal;
  return true;
}

// n, m = T.int32(), T.int32(): one assignment for each name. T.meta_var of a tuple is a tuple. All
// values are computed first where one of them reads what an earlier assignment sets.
static bool assign_tuple(Parser *parser, Sequence *sequence, const PyNode *node) {
  const PyNode *target = node->items[0], *value = node->items[1], *meta = value;
  Str member = parser_called(parser, value, DIALECT_TIR);
  bool is_meta = member && !strcmp(member, "meta_var") && value->count == 2;
  if (is_meta) value = value->items[1];
  if (!py_is_list(target) || !py_is_list(value)) return false;
  if (target->count != value->count) {
    REPORT(parser, value, "expected %d values for these names, saw %d", target->count,
           value->count);
    parser_bind_nothing(parser, target);
    return true;
  }
  PyNode **values = value->items;
  bool held = py_reads_earlier_target(target, value);
  if (held) values = arena_array(parser->arena, PyNode *, value->count);
  for (int i = 0; held && i < value->count; i++)
    values[i] = hold_value(parser, sequence, node, target->items[i], value->items[i], is_meta);
  for (int i = 0; i < target->count; i++) {
    PyNode single = *node, call = *meta;
    bool is_name = target->items[i]->kind == PY_NAME && !parser->is_newer;
    if (held && is_name && bind_held(parser, target->items[i]->text, values[i])) continue;
    call.items = (PyNode *[]){meta->items[0], values[i]};
    single.items = (PyNode *[]){target->items[i], is_meta ? &call : values[i]};
    parse_statement(parser, sequence, &single);
  }
  return true;
}

// x, y = T.cta_id([2, 3]): each name stands for the call with the number of its axis.
static bool assign_numbers(Parser *parser, Sequence *sequence, const PyNode *node, Str member) {
  const PyNode *target = node->items[0], *call = node->items[1];
  const Intrinsic *row = member ? intrinsic_find(member) : NULL;
  bool is_tuple = py_is_list(target);
  if (!row || !(row->flags & INTRINSIC_NAMES) || !is_tuple) return false;
  Expr *whole = parse_value(parser, call);
  bool fits = whole && whole->count && whole->args[0]->op == EXPR_TUPLE &&
              whole->args[0]->count == target->count && target->count > 1;
  bool are_names = true;
  for (int i = 0; i < target->count; i++) are_names &= target->items[i]->kind == PY_NAME;
  if (!are_names)
    REPORT(parser, target, "expected a name for each axis");
  else if (whole && !fits)
    REPORT(parser, call, "expected a list of %d extents for these names", target->count);
  fits &= are_names;
  if (!fits) {
    parser_bind_nothing(parser, target);
    return true;
  }
  for (int i = 0; i < target->count; i++) {
    Expr *parts[4] = {whole->args[0], expr_int(parser->context, DTYPE_INT32, i)};
    for (int k = 1; k < whole->count; k++) parts[k + 1] = whole->args[k];
    Expr *number = expr_raw(parser->context, EXPR_INTRINSIC, whole->type, whole->as.s, parts,
                            whole->count + 1);
    let_statement(parser, sequence, node, target->items[i], number);
  }
  return true;
}

static void assign_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  const PyNode *target = node->items[0], *value = node->items[1];
  if (target->kind == PY_SUBSCRIPT) {
    store_statement(parser, sequence, node);
    return;
  }
  bool is_plain = !strcmp(node->text, "=");
  Str member = parser_called(parser, value, DIALECT_TIR);
  if (target->kind == PY_NAME && is_plain) {
    assign_name(parser, sequence, node);
  } else if (is_plain && member && !strcmp(member, "axis.remap")) {
    parse_assigned_call(parser, sequence, node, member);
  } else if (is_plain && assign_numbers(parser, sequence, node, member)) {
    return;
  } else if (!is_plain && augment_variable(parser, sequence, node)) {
    return;
  } else if (!is_plain || !assign_tuple(parser, sequence, node)) {
    REPORT(parser, target, "expected a name or an element of a buffer before '%s'", node->text);
    parser_bind_nothing(parser, target);
  }
}

Expr *parse_stated_value(Parser *parser, const PyNode *node, DType type) {
  Expr *e = type.bits ? parse_value_as(parser, node, type) : parse_value(parser, node);
  if (!e || !type.bits || dtype_equal(e->type, type)) return e;
  REPORT(parser, node, "a value of type %s, declared %s", parser_type_name(parser, e->type),
         parser_type_name(parser, type));
  return NULL;
}

void parse_call_pointer(Parser *parser, PyNode *annotation) {
  Str member = annotation->kind == PY_SUBSCRIPT
                   ? parser_member(parser, annotation->items[0], DIALECT_TIR)
                   : NULL;
  if (member && !strcmp(member, "Ptr")) annotation->kind = PY_CALL;
}

// T.let, or T.let[T.int32]
static bool is_let_type(Parser *parser, const PyNode *annotation) {
  const PyNode *node = annotation->kind == PY_SUBSCRIPT ? annotation->items[0] : annotation;
  Str member = parser_member(parser, node, DIALECT_TIR);
  return member && !strcmp(member, "let");
}

static void define_name(Parser *parser, Sequence *sequence, const PyNode *node, DType type,
                        bool is_let) {
  const PyNode *target = node->items[0], *value = node->items[2];
  bool is_variable = !is_let && is_variable_type(parser, type);
  Expr *e = value ? parse_stated_value(parser, value, type) : NULL;
  if (is_variable && (e || !value)) {
    Buffer *buffer = define_variable(parser, sequence, node, target, type);
    set_variable(parser, sequence, node, buffer, (Operand){e, false});
  } else if (value) {
    let_statement(parser, sequence, node, target, e);
  } else {
    parser_bind_expr(parser, target->text, expr_var(parser->context, target->text, type));
  }
}

// x: T.int32 = value, x: T.let = value, x: T.int32
static void annotated_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  const PyNode *target = node->items[0], *annotation = node->items[1];
  Str kind = parser_member(parser, annotation, DIALECT_TIR);
  if (kind && node->items[2] && !strcmp(kind, "Buffer")) { // A: T.Buffer = T.decl_buffer(…)
    PyNode assign = {.kind = PY_ASSIGN, .pos = node->pos, .text = "=", .count = 2};
    assign.items = (PyNode *[]){node->items[0], node->items[2]};
    parse_statement(parser, sequence, &assign);
    return;
  }
  parse_call_pointer(parser, node->items[1]);
  bool is_let = is_let_type(parser, annotation), is_subscript = annotation->kind == PY_SUBSCRIPT;
  if (is_subscript) annotation = annotation->items[annotation->count - 1];
  bool states_type = annotation->kind != PY_CALL && (!is_let || is_subscript);
  DType type = DTYPE_VOID;
  if (target->kind != PY_NAME)
    REPORT(parser, target, "expected a name");
  else if (states_type && !parse_dtype(parser, annotation, &type))
    parser_bind_nothing(parser, target);
  else
    define_name(parser, sequence, node, type, is_let);
}

// ---- Expressions as statements

static void expression_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  if (node->items[0]->kind == PY_STRING) return; // a string alone is a comment
  Captured captured = parser_capture_call(parser, &node->items[0]);
  const PyNode *value = node->items[0];
  if (captured.kind == CAPTURED_MACRO) {
    parse_macro(parser, sequence, value, &captured);
    return;
  }
  Str member = parser_called(parser, value, DIALECT_TIR);
  if (member && parse_statement_call(parser, sequence, node, member)) return;
  Stmt *made;
  if (parse_method_statement(parser, value, &made)) {
    if (made) sequence_add(parser, sequence, node, made);
    return;
  }
  Expr *e = parse_value(parser, value);
  if (e) sequence_add(parser, sequence, node, stmt_evaluate(parser->context, e));
}

static void pass_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  (void)parser, (void)sequence, (void)node;
}

static void add_intrinsic(Parser *parser, Sequence *sequence, const PyNode *node, const char *name,
                          Expr *value) {
  Context *context = parser->context;
  Expr *e = expr_raw(context, EXPR_INTRINSIC, value ? value->type : DTYPE_VOID,
                     str_intern(context, name), &value, value != NULL);
  sequence_add(parser, sequence, node, stmt_evaluate(context, e));
}

// A `return` without a value at the end of a function is a comment.
static void return_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  if (!node->items[0]) {
    if (node != parser->last)
      REPORT(parser, node,
             "'return' without a value stands only at the end of a tensor program\n"
             "put the statements that it skips under a condition");
    return;
  }
  bool has_type = parser->result.code != TYPE_VOID;
  Expr *value = has_type ? parse_value_as(parser, node->items[0], parser->result)
                         : parse_value(parser, node->items[0]);
  if (value) add_intrinsic(parser, sequence, node, "ret", value);
}

static void leave_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  bool is_break = !strcmp(node->text, "break");
  add_intrinsic(parser, sequence, node, is_break ? "break_loop" : "continue_loop", NULL);
}

void parse_statement(Parser *parser, Sequence *sequence, const PyNode *node) {
  static void (*const rules[PY_KIND_COUNT])(Parser *, Sequence *, const PyNode *) = {
      [PY_EXPRESSION] = expression_statement,
      [PY_ASSIGN] = assign_statement,
      [PY_ANNOTATED] = annotated_statement,
      [PY_FOR] = for_statement,
      [PY_WHILE] = while_statement,
      [PY_IF] = if_statement,
      [PY_WITH] = parse_with,
      [PY_ASSERT] = assert_statement,
      [PY_PASS] = pass_statement,
      [PY_LEAVE] = leave_statement,
      [PY_RETURN] = return_statement,
  };
  parser_capture_statement(parser, node);
  if (rules[node->kind])
    rules[node->kind](parser, sequence, node);
  else
    REPORT(parser, node, "this statement is not supported in a tensor program%s",
           node->kind == PY_DEF
               ? "\ndefine the function outside of it, or write a T.macro of its statements"
               : "");
}
