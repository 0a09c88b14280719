// SPDX-License-Identifier: Apache-2.0
// Calls functions of the caller as opaque functions: describes nodes in the terms of pleat.h, and
// passes on what the functions answer.
#include "driver/operators.h"

#include "base/caller.h"
#include "base/fields.h"
#include "driver/driver.h"
#include "runtime/opaque.h"

// ---- Calls as pleat.h has them -----------------------------------------------------------------

static int64_t number_count(const Expr *value) {
  return value->op == EXPR_TUPLE ? value->count : 1;
}

static double number_of(const Expr *e, bool *integer) {
  int64_t number;
  if (expr_as_int(e, &number)) return (double)number;
  *integer = false;
  return e->op == EXPR_FLOAT ? e->as.f : 0;
}

static PleatAttribute *attribute_of(Arena *arena, const char *name, const Expr *value) {
  PleatAttribute *a = arena_new(arena, PleatAttribute);
  *a = (PleatAttribute){.name = arena_text(arena, name), .is_list = value->op == EXPR_TUPLE};
  if (value->op == EXPR_STRING) a->text = arena_text(arena, value->as.s);
  if (a->text) return a;
  a->count = (int)number_count(value);
  double *numbers = arena_array(arena, double, a->count + 1);
  int64_t *integers = arena_array(arena, int64_t, a->count + 1);
  bool all = true;
  for (int i = 0; i < a->count; i++) {
    const Expr *item = a->is_list ? value->args[i] : value;
    numbers[i] = number_of(item, &all);
    expr_as_int(item, &integers[i]);
  }
  a->numbers = numbers;
  a->integers = all ? integers : NULL;
  return a;
}

static PleatArgument *argument_of(Context *context, Arena *arena, const Value *value, int access) {
  PleatArgument *a = arena_new(arena, PleatArgument);
  *a = (PleatArgument){.name = "", .type = "unknown", .rank = OPAQUE_ABSENT, .access = access};
  if (!value) return a;
  a->name = arena_text(arena, value->name);
  if (value->rank < 0) return a;
  ElementType type = {0};
  element_type_parse(dtype_name(context, value->type), &type);
  int64_t *shape = arena_array(arena, int64_t, value->rank + 1);
  value_static_shape(value, shape);
  a->type = element_type_name(type);
  a->element = (PleatElement){type.code, type.bits, type.lanes};
  a->rank = value->rank;
  a->shape = shape;
  return a;
}

static PleatCall *call_of(Context *context, Arena *arena, const char *function, const Node *node) {
  PleatCall *call = arena_new(arena, PleatCall);
  *call = (PleatCall){arena_text(arena, function), arena_text(arena, node->name), node->input_count,
                      node->output_count, .attribute_count = node->attrs.count};
  const PleatArgument **inputs = arena_array(arena, const PleatArgument *, node->input_count + 1);
  const PleatArgument **outputs = arena_array(arena, const PleatArgument *, node->output_count + 1);
  const PleatAttribute **attributes =
      arena_array(arena, const PleatAttribute *, node->attrs.count + 1);
  for (int i = 0; i < node->input_count; i++)
    inputs[i] = argument_of(context, arena, node->inputs[i], PLEAT_READ);
  for (int i = 0; i < node->output_count; i++)
    outputs[i] = argument_of(context, arena, node->outputs[i], PLEAT_WRITTEN);
  for (int i = 0; i < node->attrs.count; i++)
    attributes[i] = attribute_of(arena, node->attrs.items[i].key, node->attrs.items[i].value);
  call->inputs = inputs;
  call->outputs = outputs;
  call->attributes = attributes;
  return call;
}

// ---- While compiling ---------------------------------------------------------------------------

static bool refuse(Context *context, const Node *node, const char *format, ...) PRINTF_LIKE(3, 4);
static bool refuse(Context *context, const Node *node, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&context->arena, format, args);
  va_end(args);
  return diag_error_as(context, DIAG_OPERATOR, node_pos(node), "the function '%s' %s",
                       node->function->name, text);
}

static bool ended(Context *context, const Node *node, int status, const char *what,
                  const char *message) {
  if (status == PLEAT_CANCELLED) context_cancel(context);
  return status == PLEAT_OK || refuse(context, node, "%s%s%s", what, *message ? ": " : "", message);
}

static bool set_type(Context *context, const Node *node, int output, const PleatTensorType *type) {
  Value *value = node->outputs[output];
  ElementType element = {type->element.code, type->element.bits, type->element.lanes};
  const char *name = element_type_name(element);
  if (!dtype_parse(name, strlen(name), &value->type) || type->rank < 0 ||
      type->rank > COUNT_OF(type->shape))
    return refuse(context, node, "infers no type for output %d", output);
  value->rank = type->rank;
  value->shape = arena_array(&context->arena, Expr *, type->rank + 1);
  for (int d = 0; d < type->rank; d++) {
    if (type->shape[d] < 0)
      return refuse(context, node, "infers a negative extent for output %d", output);
    value->shape[d] = expr_index(context, type->shape[d]);
  }
  return true;
}

static bool infer(Context *context, const OpaqueFunction *function, Node *node) {
  const PleatOperator *op = function->env;
  char message[PLEAT_CALL_MESSAGE] = "";
  PleatTensorType *types = arena_array(&context->arena, PleatTensorType, node->output_count + 1);
  for (int i = 0; i < node->output_count; i++) types[i].rank = OPAQUE_ABSENT;
  const PleatCall *call = call_of(context, &context->arena, function->name, node);
  int status = op->infer(op->env, call, types, message);
  if (!ended(context, node, status, "refuses its inputs", message)) return false;
  for (int i = 0; i < node->output_count; i++)
    if (!set_type(context, node, i, &types[i])) return false;
  return true;
}

static bool add_way(Context *context, OpaqueCall *call, const PleatWay *way) {
  const char **texts = arena_array(&context->arena, const char *, call->count + 1);
  if (!(way->cycles >= 0 && way->cycles < 1e15))
    return refuse(context, call->node, "gives way %d a price of %g cycles, expected 0 or more",
                  call->ways.count, way->cycles);
  for (int i = 0; i < call->count; i++) {
    const char *const *list = i < call->input_count ? way->inputs : way->outputs;
    if (list) texts[i] = list[i < call->input_count ? i : i - call->input_count];
  }
  return opaque_add_way(context, call, texts, way->cycles > 0 ? way->cycles : -1);
}

static bool find_ways(Context *context, OpaqueCall *call) {
  enum { MOST_WAYS = 64 };
  const PleatOperator *op = call->function->env;
  const PleatCall *described = call_of(context, &context->arena, call->function->name, call->node);
  for (int i = 0; i < MOST_WAYS; i++) {
    char message[PLEAT_CALL_MESSAGE] = "";
    PleatWay way = {0};
    int found = op->way(op->env, described, i, &way, message);
    if (!found) return true;
    if (found < 0)
      return ended(context, call->node, PLEAT_REFUSED, "failed to state its ways", message);
    if (!add_way(context, call, &way)) return false;
  }
  return refuse(context, call->node, "has more than %d ways", MOST_WAYS);
}

// ---- In runs -----------------------------------------------------------------------------------

typedef struct OperatorCode {
  OpaqueCode code;
  Context *context; // in which it is
  PleatOperator op;
  const PleatCall *call;
  int way;
} OperatorCode;

static OpaqueStatus run(const OpaqueCode *code, Tensor *tensors, char *message) {
  const OperatorCode *own = (const OperatorCode *)code;
  PleatTensor *all = (PleatTensor *)tensors;
  int status = own->op.run(own->op.env, own->call, own->way, all, all + code->input_count, message);
  return status == PLEAT_OK          ? OPAQUE_DONE
         : status == PLEAT_CANCELLED ? OPAQUE_CANCELLED
                                     : OPAQUE_FAILED;
}

static void free_code(OpaqueCode *code) {
  context_free(((OperatorCode *)code)->context);
}

typedef struct CodeMaking {
  Context *from, *to;
  const OpaqueCall *call;
  const ArgumentSpec *specs;
  int way;
  OperatorCode *made;
} CodeMaking;

static ArgumentSpec *copy_specs(Arena *arena, const ArgumentSpec *specs, int count) {
  ArgumentSpec *copy = arena_copy(arena, specs, sizeof *specs * (size_t)count);
  for (int i = 0; i < count; i++) {
    copy[i].name = NULL;
    if (specs[i].rank > 0)
      copy[i].shape = arena_copy(arena, specs[i].shape, sizeof(int64_t) * (size_t)specs[i].rank);
  }
  return copy;
}

// The parts of the call that a saved model holds, in the arena of the code.
static const OpaqueRecord *record_of(const CodeMaking *b, const PleatCall *call) {
  Arena *arena = &b->to->lasting;
  OpaqueRecord *record = arena_new(arena, OpaqueRecord);
  const char **layouts = arena_array(arena, const char *, b->call->count + 1);
  const Layout *const *given = b->call->ways.items[b->way].layouts;
  for (int i = 0; i < b->call->count; i++)
    if (given[i]) layouts[i] = arena_text(arena, layout_text(b->from, given[i]));
  *record = (OpaqueRecord){call, b->way, layouts};
  return record;
}

static void make_code(void *env) {
  CodeMaking *b = env;
  Arena *arena = &b->to->lasting;
  const OpaqueFunction *function = b->call->function;
  OperatorCode *made = arena_new(arena, OperatorCode);
  made->context = b->to;
  made->op = *(const PleatOperator *)function->env;
  made->call = call_of(b->from, arena, function->name, b->call->node);
  made->way = b->way;
  made->code = (OpaqueCode){.references = 1,
                            .function = made->call->function,
                            .node = made->call->node,
                            .input_count = b->call->input_count,
                            .count = b->call->count,
                            .specs = copy_specs(arena, b->specs, b->call->count),
                            .record = record_of(b, made->call),
                            .run = run,
                            .free = free_code};
  b->made = made;
}

static OpaqueCode *bind(Context *context, const OpaqueCall *call, int way,
                        const ArgumentSpec *specs) {
  CodeMaking b = {context, context_new(), call, specs, way, NULL};
  if (b.to && context_protect(b.to, make_code, &b)) return &b.made->code;
  context_free(b.to);
  diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for the call of '%s'",
                call->function->name);
  return NULL;
}

// ---- Saved calls -------------------------------------------------------------------------------

static Expr *attribute_value(Context *context, const PleatAttribute *attribute) {
  if (attribute->text) return expr_string(context, attribute->text);
  Expr **items = arena_array(&context->arena, Expr *, attribute->count + 1);
  for (int i = 0; i < attribute->count; i++)
    items[i] = attribute->integers ? expr_index(context, attribute->integers[i])
                                   : expr_float(context, DTYPE_FLOAT64, attribute->numbers[i]);
  return attribute->is_list ? expr_tuple(context, items, attribute->count) : items[0];
}

static Value *value_of(Context *context, const PleatArgument *argument) {
  if (argument->rank < 0) return NULL;
  DType type = DTYPE_VOID;
  dtype_parse(argument->type, strlen(argument->type), &type);
  Expr **shape = arena_array(&context->arena, Expr *, argument->rank + 1);
  for (int d = 0; d < argument->rank; d++) shape[d] = expr_index(context, argument->shape[d]);
  return value_new(context, argument->name, type, shape, argument->rank);
}

// The node whose call this is.
static Node *node_of(Context *context, const PleatCall *call, const OpaqueFunction *function) {
  Value **inputs = arena_array(&context->arena, Value *, call->input_count + 1);
  for (int i = 0; i < call->input_count; i++) inputs[i] = value_of(context, call->inputs[i]);
  Node *node = node_new(context, NODE_OPAQUE, call->function, call->node, inputs, call->input_count,
                        call->output_count);
  for (int i = 0; i < call->output_count; i++)
    node->outputs[i] = value_of(context, call->outputs[i]);
  for (int i = 0; i < call->attribute_count; i++)
    node->attrs = attrs_with(&context->arena, node->attrs, call->attributes[i]->name,
                             attribute_value(context, call->attributes[i]));
  node->function = function;
  return node;
}

// Does the function still call the way of the record with the tensors in the same layouts?
static bool check_way(Context *context, OpaqueCall *call, const OpaqueRecord *record) {
  int ways = call->ways.count, tensor;
  if (record->way >= ways)
    return refuse(context, call->node,
                  "has %d ways, and the model was saved with way %d; compile the model again", ways,
                  record->way);
  if (!opaque_add_way(context, call, record->layouts, -1)) return false;
  tensor = opaque_differing_tensor(call, record->way, ways);
  return tensor < 0 ||
         refuse(context, call->node,
                "takes %s in another layout in way %d than when the model was saved, which was %s; "
                "compile the model again",
                opaque_tensor_text(context, call, tensor), record->way,
                record->layouts[tensor] ? record->layouts[tensor] : "row-major");
}

static bool bind_record(Context *context, CompiledStep *step, const OpaqueFunctions *functions) {
  const PleatCall *saved = step->record->call;
  const OpaqueFunction *function = opaque_find(functions, saved->function);
  if (!function)
    return diag_error_as(
        context, DIAG_OPERATOR, (SourcePos){.node = str_intern(context, saved->node)},
        "the saved model calls the function '%s', which is not given; give it with %s",
        saved->function, caller_option(context, CALLER_OPERATORS));
  OpaqueCall *call = opaque_call_of(context, node_of(context, saved, function), NULL);
  if (!call || !check_way(context, call, step->record)) return false;
  const ArgumentSpec *specs = call_specs(context, call, step->record->way);
  step->opaque = bind(context, call, step->record->way, specs);
  return step->opaque != NULL;
}

bool operators_bind(Context *context, CompiledProgram *program, const OpaqueFunctions *functions) {
  for (int i = 0; i < program->step_count; i++) {
    CompiledStep *step = &program->steps[i];
    if (step->record && !step->opaque && !bind_record(context, step, functions)) return false;
  }
  return true;
}

// ---- Functions ---------------------------------------------------------------------------------

static const OpaqueFunctions *functions_of(Context *context, const PleatOperator *operators,
                                           int count) {
  Arena *arena = &context->arena;
  const OpaqueFunction **items = arena_array(arena, const OpaqueFunction *, count + 1);
  for (int i = 0; i < count; i++) {
    OpaqueFunction *function = arena_new(arena, OpaqueFunction);
    *function = (OpaqueFunction){str_intern(context, operators[i].name), NULL, NULL, bind,
                                 arena_copy(arena, &operators[i], sizeof operators[i])};
    if (operators[i].infer) function->infer = infer;
    if (operators[i].way) function->find_ways = find_ways;
    items[i] = function;
  }
  OpaqueFunctions *functions = arena_new(arena, OpaqueFunctions);
  *functions = (OpaqueFunctions){items, count};
  return count ? functions : NULL;
}

static bool read_operator(Context *context, const PleatOperator *const *given, size_t number,
                          PleatOperator *operators) {
  PleatOperator *one = &operators[number];
  if (!struct_read(context, "PleatOperator", given[number], one, sizeof *one)) return false;
  if (!one->name) return field_error(context, "operators", "entry %zu has no name", number);
  if (!one->run) return field_error(context, "operators", "'%s' has no function run", one->name);
  for (size_t i = 0; i < number; i++)
    if (!strcmp(operators[i].name, one->name))
      return field_error(context, "operators", "there are two functions '%s'", one->name);
  return true;
}

bool operators_read(Context *context, const PleatOperator *const *given, size_t count,
                    const OpaqueFunctions **functions) {
  if (!field_array_check(context, "operators", given, count)) return false;
  PleatOperator *operators = arena_array(&context->arena, PleatOperator, (int)count);
  for (size_t i = 0; i < count; i++)
    if (!read_operator(context, given, i, operators)) return false;
  *functions = functions_of(context, operators, (int)count);
  return true;
}
