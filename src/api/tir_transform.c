// SPDX-License-Identifier: Apache-2.0
// Implements the functions of pleat/tir.h that make a module from another, its parts, attributes
// and passes, and those that count and verify.
#include "api/tir.h"

#include <stdlib.h>

#include "driver/driver.h"
#include "lower/lower.h"
#include "report/report.h"
#include "script/script.h"

// ---- Functions of a module ----------------------------------------------------------------------

typedef struct PartCall {
  ModuleCall call;
  const char *function, *name;
} PartCall;

static const ModuleFunc *function_named(const PartCall *call) {
  const Module *module = call->call.on->module;
  const char *name = call->function;
  const ModuleFunc *func = name ? module_find(module, name) : NULL;
  if (!func && name) module_lacks(call->call.context, module, name);
  if (!name) field_error(call->call.context, "function", "is NULL, expected a name");
  return func;
}

static void finish(ModuleCall *call, Module *result) {
  call->result = result;
  call->done = result != NULL;
}

static void select_function(void *arg) {
  PartCall *call = arg;
  const ModuleFunc *func = function_named(call);
  if (!func) return;
  Module *result = module_new(call->call.context, "");
  module_put(result, func);
  finish(&call->call, result);
}

int pleat_module_select(const PleatModule *module, const char *function, PleatModule **result,
                        PleatMessages **messages) {
  PartCall call = {.call = {.on = module, .body = select_function}, .function = function};
  return module_call_transform(&call, result, messages);
}

static void remove_function(void *arg) {
  PartCall *call = arg;
  const Module *module = call->call.on->module;
  const ModuleFunc *removed = function_named(call);
  if (!removed) return;
  Module *result = module_copy(call->call.context, module, false);
  for (int i = 0; i < module->funcs.count; i++)
    if (&module->funcs.items[i] != removed) module_put(result, &module->funcs.items[i]);
  finish(&call->call, result);
}

int pleat_module_remove(const PleatModule *module, const char *function, PleatModule **result,
                        PleatMessages **messages) {
  PartCall call = {.call = {.on = module, .body = remove_function}, .function = function};
  return module_call_transform(&call, result, messages);
}

static bool is_name(const char *s) {
  if (!*s || char_is_digit(*s)) return false;
  for (; *s; s++)
    if (!char_is_letter(*s) && *s != '_' && !char_is_digit(*s)) return false;
  return true;
}

Module *module_with_prim(Context *context, const Module *module, const PrimFunc *old,
                         PrimFunc *func) {
  Module *result = module_copy(context, module, false);
  for (int i = 0; i < module->funcs.count; i++) {
    const ModuleFunc *other = &module->funcs.items[i];
    module_put(result,
               other->prim == old ? &(ModuleFunc){.name = func->name, .prim = func} : other);
  }
  return result;
}

// The function that is named, or the only one; a tensor program beside graph functions.
static const ModuleFunc *function_chosen(const PartCall *call) {
  const Module *module = call->call.on->module;
  if (call->function) return function_named(call);
  if (module->funcs.count == 1) return &module->funcs.items[0];
  const PrimFunc *func = module_prim(call->call.context, module, NULL);
  return func ? module_find(module, func->name) : NULL;
}

static ModuleFunc with_name(Context *context, const ModuleFunc *func, Str name) {
  ModuleFunc renamed = {.name = name};
  if (func->prim) {
    renamed.prim = prim_func_copy(context, func->prim);
    renamed.prim->name = name;
  } else {
    renamed.graph = arena_copy(&context->arena, func->graph, sizeof *func->graph);
    renamed.graph->name = name;
  }
  return renamed;
}

static void rename_function(void *arg) {
  PartCall *call = arg;
  Context *context = call->call.context;
  const Module *module = call->call.on->module;
  const ModuleFunc *func = function_chosen(call);
  if (!func) return;
  if (!call->name || !is_name(call->name)) {
    field_error(context, "name", "'%s' is not a name of a function", call->name ? call->name : "");
    return;
  }
  if (strcmp(call->name, func->name) != 0 && module_find(module, call->name)) {
    field_error(context, "name", "the module has another function '%s'", call->name);
    return;
  }
  ModuleFunc renamed = with_name(context, func, str_intern(context, call->name));
  Module *result = module_copy(context, module, false);
  for (int i = 0; i < module->funcs.count; i++) {
    const ModuleFunc *other = &module->funcs.items[i];
    module_put(result, other == func ? &renamed : other);
  }
  finish(&call->call, result);
}

int pleat_module_rename(const PleatModule *module, const char *function, const char *name,
                        PleatModule **result, PleatMessages **messages) {
  PartCall call = {
      .call = {.on = module, .body = rename_function}, .function = function, .name = name};
  return module_call_transform(&call, result, messages);
}

// ---- Functions of another module ----------------------------------------------------------------

typedef struct GivenContents {
  PleatContents **items;
  size_t count, room;
  bool failed;
} GivenContents;

static void take_contents(void *env, PleatContents *contents) {
  GivenContents *given = env;
  if (given->count == given->room) {
    size_t room = 2 * given->room + 8;
    PleatContents **items = realloc(given->items, room * sizeof *items);
    if (!items) given->failed = true;
    if (!items) return;
    given->items = items;
    given->room = room;
  }
  given->items[given->count++] = contents;
}

typedef struct UpdateCall {
  ModuleCall call;
  const Module *other;     // in the same store; otherwise NULL
  const PleatModule *from; // the other module; in take_functions, that which takes its functions
  const char *text;        // of the other module,
  GivenContents *given;    // and the contents of its large constants
} UpdateCall;

static bool has_function(const PleatModule *module, Str name) {
  for (int i = 0; i < pleat_module_function_count(module); i++)
    if (!strcmp(pleat_module_function_name(module, i), name)) return true;
  return false;
}

// The functions of a text, which may call those of the module that they do not replace: functions
// outside of a class name them.
static Module *read_among(const UpdateCall *call) {
  Context *context = call->call.context;
  const Module *module = call->call.on->module;
  Text text = text_new(&context->arena);
  Module *others = module_copy(context, module, false);
  ContentsList contents = {.arena = &context->arena};
  for (size_t i = 0; i < call->given->count; i++)
    contents_list_add(&contents, (Contents *)call->given->items[i]);
  others->name = NULL;
  for (int i = 0; i < module->funcs.count; i++)
    if (!has_function(call->from, module->funcs.items[i].name))
      module_put(others, &module->funcs.items[i]);
  if (others->funcs.count && !*pleat_module_name(call->from))
    text = module_text_with(context, others, &contents);
  text_puts(&text, call->text);
  Module *all = module_read(context, text.data, text.size, &contents);
  if (!all) return NULL;
  Module *result = module_copy(context, all, false);
  for (int i = 0; i < all->funcs.count; i++)
    if (has_function(call->from, all->funcs.items[i].name))
      module_put(result, &all->funcs.items[i]);
  return result;
}

static void update(void *arg) {
  UpdateCall *call = arg;
  Context *context = call->call.context;
  const Module *other = call->other;
  if (!other) other = read_among(call);
  if (!other) return;
  Module *result = module_copy(context, call->call.on->module, true);
  for (int i = 0; i < other->funcs.count; i++) module_put(result, &other->funcs.items[i]);
  finish(&call->call, result);
}

// A module without contents takes the functions as they are, in their store, with their positions.
static void take_functions(void *arg) {
  UpdateCall *call = arg;
  Context *context = call->call.context;
  Module *result = module_copy(context, call->call.on->module, true);
  result->name = str_intern(context, pleat_module_name(call->from));
  result->attrs = (Attrs){0};
  result->infos = NULL;
  finish(&call->call, result);
}

static bool has_contents(const Module *module) {
  return module->funcs.count || module->attrs.count || module->infos;
}

// Modules of different stores share no memory, so the other one is printed and read.
int pleat_module_update(const PleatModule *module, const PleatModule *other, PleatModule **result,
                        PleatMessages **messages) {
  if (result) *result = NULL;
  if (!module || !other) return module_refuse_null(messages);
  UpdateCall call = {.call = {.on = module, .body = update}, .from = other};
  if (!has_contents(module->module)) {
    call = (UpdateCall){.call = {.on = other, .body = take_functions}, .from = module};
    return module_call_transform(&call, result, messages);
  }
  char *text = NULL;
  GivenContents given = {0};
  int status = PLEAT_OK;
  if (other->store == module->store) {
    call.other = other->module;
  } else {
    PleatPrintOptions options = {.size = sizeof options,
                                 .most_elements = MOST_PRINTED,
                                 .contents = take_contents,
                                 .contents_env = &given};
    status = pleat_module_print(other, &options, &text, messages);
    if (status == PLEAT_OK && given.failed) status = messages_no_memory(messages);
    call.text = text;
    call.given = &given;
  }
  if (status == PLEAT_OK) status = module_call_transform(&call, result, messages);
  free(given.items);
  free(text);
  return status;
}

// ---- Attributes ---------------------------------------------------------------------------------

typedef struct AttributeCall {
  ModuleCall call;
  const char *function, *key, *value;
} AttributeCall;

// The value of an attribute that is written as Python: that of a script with this attribute.
static Expr *attribute_value(Context *context, const char *value) {
  static const char form[] = "@T.prim_func\ndef f():\n    T.func_attr({\"value\": (%s)})\n    "
                             "T.evaluate(0)\n";
  const char *text = arena_printf(&context->arena, form, value);
  int errors = context->error_count, diags = context->diags.count;
  const Module *module =
      script_parse(context, source_file_copy(context, "value", text, strlen(text)));
  const PrimFunc *func = module && module->funcs.count == 1 ? module->funcs.items[0].prim : NULL;
  Expr *result = func ? attrs_get(&func->attrs, "value") : NULL;
  if (result) return result;
  diag_forget(context, diags, errors);
  field_error(context, "value", "'%s' is not a constant, a string or a list of them", value);
  return NULL;
}

// Stores in *changed the attributes with the one of the call set or removed; false with an error.
static bool change_attrs(const AttributeCall *call, Attrs attrs, Attrs *changed) {
  Context *context = call->call.context;
  Arena *arena = &context->arena;
  if (!call->key) return field_error(context, "key", "is NULL, expected the name of an attribute");
  Expr *value = call->value ? attribute_value(context, call->value) : NULL;
  if (call->value && !value) return false;
  *changed = value ? attrs_with(arena, attrs, str_intern(context, call->key), value)
                   : attrs_without(arena, attrs, call->key);
  return true;
}

static void set_module_attribute(AttributeCall *call) {
  const Module *module = call->call.on->module;
  Module *result = module_copy(call->call.context, module, true);
  // Only a class is printed with attributes.
  if (!result->name || !*result->name) result->name = str_intern(call->call.context, "Module");
  if (change_attrs(call, module->attrs, &result->attrs)) finish(&call->call, result);
}

// The graph function of the call, which is named or the only function; NULL for a tensor program.
static const ModuleFunc *graph_function(const AttributeCall *call) {
  const Module *module = call->call.on->module;
  const ModuleFunc *func = call->function             ? module_find(module, call->function)
                           : module->funcs.count == 1 ? &module->funcs.items[0]
                                                      : NULL;
  return func && func->graph ? func : NULL;
}

// `private` and `pure` are arguments of its decorator.
static void set_graph_attribute(AttributeCall *call, const ModuleFunc *func) {
  Context *context = call->call.context;
  GraphFunc *changed = arena_copy(&context->arena, func->graph, sizeof *func->graph);
  bool is_option = call->key && (!strcmp(call->key, "private") || !strcmp(call->key, "pure"));
  Attrs *attrs = is_option ? &changed->options : &changed->attrs;
  if (!change_attrs(call, *attrs, attrs)) return;
  Module *result = module_copy(context, call->call.on->module, true);
  module_find(result, func->name)->graph = changed;
  finish(&call->call, result);
}

static void set_attribute(void *arg) {
  AttributeCall *call = arg;
  Context *context = call->call.context;
  const Module *module = call->call.on->module;
  if (call->function && !*call->function) {
    set_module_attribute(call);
    return;
  }
  const ModuleFunc *graph = graph_function(call);
  if (graph) {
    set_graph_attribute(call, graph);
    return;
  }
  const PrimFunc *func = module_prim(context, module, call->function);
  if (!func) return;
  PrimFunc *changed = prim_func_copy(context, func);
  if (change_attrs(call, func->attrs, &changed->attrs))
    finish(&call->call, module_with_prim(context, module, func, changed));
}

int pleat_module_set_attribute(const PleatModule *module, const char *function, const char *key,
                               const char *value, PleatModule **result, PleatMessages **messages) {
  AttributeCall call = {.call = {.on = module, .body = set_attribute},
                        .function = function,
                        .key = key,
                        .value = value};
  return module_call_transform(&call, result, messages);
}

// ---- Specialization -----------------------------------------------------------------------------

typedef struct SpecializeCall {
  ModuleCall call;
  const char *function;
  const char *const *values;
  size_t value_count;
} SpecializeCall;

typedef struct Sizes {
  Context *context;
  const char *name;
  Expr *found;
} Sizes;

static bool find_variable(Visitor *visitor, Expr *e) {
  Sizes *sizes = visitor->env;
  bool is_found = e->op == EXPR_VAR && strcmp(e->as.var->name, sizes->name) == 0;
  if (is_found) sizes->found = e;
  return !sizes->found;
}

static Expr *variable_named(Context *context, const PrimFunc *func, const char *name) {
  Sizes sizes = {context, name, NULL};
  Visitor visitor = {.env = &sizes, .enter_expr = find_variable};
  for (int i = 0; i < func->param_count && !sizes.found; i++) {
    const Buffer *buffer = func->buffers[i];
    if (!buffer) visit_expr(&visitor, func->params[i]);
    for (int d = 0; buffer && d < buffer->rank; d++) {
      visit_expr(&visitor, buffer->shape[d]);
      if (buffer->strides) visit_expr(&visitor, buffer->strides[d]);
    }
    if (buffer) visit_expr(&visitor, buffer->offset);
  }
  return sizes.found;
}

// A name that is given a value is no variable: says what it is, or what the variables are.
static bool refuse_name(Context *context, const PrimFunc *func, Str name) {
  Text known = text_new(&context->arena);
  Map listed = map_new(&context->arena);
  for (int i = 0; i < func->param_count; i++) {
    const Buffer *buffer = func->buffers[i];
    const char *param = func->params[i]->as.var->name;
    if (buffer && (!strcmp(param, name) || !strcmp(buffer->name, name)))
      return field_error(context, "values",
                         "'%s' is the buffer '%s' of '%s'; give another buffer, or the values of "
                         "the variables in its shape",
                         name, buffer->name, func->name);
    for (int d = 0; d < (buffer ? buffer->rank : 1); d++) {
      const Expr *e = buffer ? buffer->shape[d] : func->params[i];
      if (e->op != EXPR_VAR || map_contains(&listed, e)) continue;
      text_printf(&known, "%s%s", listed.count ? ", " : "; it has ", e->as.var->name);
      map_put(&listed, e, e);
    }
  }
  return field_error(context, "values", "'%s' has no size '%s'%s", func->name, name,
                     text_string(&known));
}

static bool read_value(Context *context, const PrimFunc *func, const char *text, Map *vars) {
  const char *equals = text ? strchr(text, '=') : NULL;
  if (!equals) return field_error(context, "values", "'%s' is not of the form n=16", text);
  Str name = str_intern_n(context, text, (size_t)(equals - text));
  Expr *var = variable_named(context, func, name), *value;
  if (!var) return refuse_name(context, func, name);
  if (!(value = attribute_value(context, equals + 1))) return false;
  int64_t number;
  bool is_int =
      expr_as_int(value, &number) && (dtype_is_int(var->type) || dtype_is_bool(var->type));
  bool is_real = value->op == EXPR_FLOAT && dtype_is_float(var->type);
  if (!is_int && !is_real)
    return field_error(context, "values", "%s is not a value of type %s", equals + 1,
                       dtype_name(context, var->type));
  Expr *given =
      is_int ? expr_int(context, var->type, number) : expr_float(context, var->type, value->as.f);
  if (is_int && given->as.i != number)
    return field_error(context, "values", "%lld is no value of '%s', which has the type %s",
                       (long long)number, name, dtype_name(context, var->type));
  map_put(vars, var, given);
  return true;
}

static void specialize(void *arg) {
  SpecializeCall *call = arg;
  Context *context = call->call.context;
  const Module *module = call->call.on->module;
  const PrimFunc *func = module_prim(context, module, call->function);
  Map vars = map_new(&context->arena);
  bool ok = func != NULL;
  for (size_t i = 0; ok && i < call->value_count; i++)
    ok = read_value(context, func, call->values[i], &vars);
  if (!ok) return;
  PrimFunc *result = prim_func_specialize(context, func, &vars);
  if (verify_prim_func(context, result, IR_LEVEL_TENSOR))
    finish(&call->call, module_with_prim(context, module, func, result));
}

int pleat_module_specialize(const PleatModule *module, const char *function,
                            const char *const *values, size_t value_count, PleatModule **result,
                            PleatMessages **messages) {
  if (value_count && !values) {
    if (result) *result = NULL;
    return messages_refuse("values", "is NULL, expected values such as n=16", messages);
  }
  SpecializeCall call = {.call = {.on = module, .body = specialize},
                         .function = function,
                         .values = values,
                         .value_count = value_count};
  return module_call_transform(&call, result, messages);
}

// ---- Operations ---------------------------------------------------------------------------------

typedef struct OperationsCall {
  ModuleCall call;
  const char *function;
  double operations;
} OperationsCall;

static void count_operations(void *arg) {
  OperationsCall *call = arg;
  const PrimFunc *func = module_prim(call->call.context, call->call.on->module, call->function);
  if (!func) return;
  call->operations = prim_func_operations(func);
  call->call.done = true;
}

int pleat_module_operations(const PleatModule *module, const char *function, double *operations,
                            PleatMessages **messages) {
  if (!operations)
    return messages_refuse("operations", "is NULL, expected where to store it", messages);
  *operations = 0;
  if (!module) return module_refuse_null(messages);
  OperationsCall call = {.call = {.on = module, .body = count_operations}, .function = function};
  int status = module_call_run(&call, NULL, messages);
  *operations = call.operations;
  return status;
}

// ---- Reports ------------------------------------------------------------------------------------

typedef struct ReportCall {
  ModuleCall call;
  const char *function;
  json_t *(*report)(Context *context, const Module *module, PrimFunc *func);
  char *json;
} ReportCall;

static void make_report(void *arg) {
  ReportCall *call = arg;
  Context *context = call->call.context;
  PrimFunc *func = module_prim(context, call->call.on->module, call->function);
  json_t *report = func ? call->report(context, call->call.on->module, func) : NULL;
  if (!report) return;
  call->json = report_text(report);
  call->call.done = call->json != NULL;
}

static int report_function(ReportCall call, char **json, PleatMessages **messages) {
  if (!json) return messages_refuse("json", "is NULL, expected where to store it", messages);
  *json = NULL;
  if (!call.call.on) return module_refuse_null(messages);
  call.call.body = make_report;
  int status = module_call_run(&call.call, NULL, messages);
  *json = call.json;
  return status;
}

static json_t *aliases_of(Context *context, const Module *module, PrimFunc *func) {
  (void)module;
  return report_aliases(context, func);
}

int pleat_module_aliases(const PleatModule *module, const char *function, char **json,
                         PleatMessages **messages) {
  ReportCall call = {.call.on = module, .function = function, .report = aliases_of};
  return report_function(call, json, messages);
}

int pleat_module_accesses(const PleatModule *module, const char *function, char **json,
                          PleatMessages **messages) {
  ReportCall call = {.call.on = module, .function = function, .report = report_accesses};
  return report_function(call, json, messages);
}

// ---- Verification -------------------------------------------------------------------------------

static void verify(void *arg) {
  ModuleCall *call = arg;
  const Module *module = call->on->module;
  call->done = true;
  for (int i = 0; i < module->funcs.count; i++)
    if (module->funcs.items[i].prim)
      call->done &= verify_prim_func(call->context, module->funcs.items[i].prim, IR_LEVEL_TENSOR);
}

int pleat_module_verify(const PleatModule *module, PleatMessages **messages) {
  ModuleCall call = {.on = module, .body = verify};
  return module ? module_call_run(&call, NULL, messages) : module_refuse_null(messages);
}
