// SPDX-License-Identifier: Apache-2.0
// Implements the functions of pleat/tir.h that make, print and save modules.
#include "api/tir.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <jansson.h>

#include "api/contents.h"
#include "graph/graph.h"
#include "script/script.h"

struct ModuleStore {
  _Atomic int references;
  Context *context;
  pthread_mutex_t lock;
};

// ---- Stores -------------------------------------------------------------------------------------

static ModuleStore *store_new(void) {
  ModuleStore *store = calloc(1, sizeof *store);
  if (!store) return NULL;
  store->references = 1;
  store->context = context_new();
  if (store->context && pthread_mutex_init(&store->lock, NULL) == 0) return store;
  context_free(store->context);
  free(store);
  return NULL;
}

static void store_release(ModuleStore *store) {
  if (atomic_fetch_sub(&store->references, 1) > 1) return;
  pthread_mutex_destroy(&store->lock);
  context_free(store->context);
  free(store);
}

static PleatModule *module_of(ModuleStore *store, Module *module) {
  PleatModule *result = malloc(sizeof *result);
  if (!result) return NULL;
  *result = (PleatModule){store, module};
  atomic_fetch_add(&store->references, 1);
  return result;
}

PleatModule *module_keep(const PleatModule *module) {
  return module_of(module->store, module->module);
}

void pleat_module_free(PleatModule *module) {
  if (!module) return;
  store_release(module->store);
  free(module);
}

// ---- Calls --------------------------------------------------------------------------------------

// Requires that the caller holds the lock of the store.
static int run_in(ModuleStore *store, ModuleCall *call, PleatModule **result,
                  PleatMessages **messages) {
  Context *context = call->context = store->context;
  ArenaMark mark = arena_mark(&context->scratch);
  bool finished = context_protect(context, call->body, call);
  int status = messages_take(context, finished && call->done, messages);
  arena_reset(&context->scratch, mark);
  if (status != PLEAT_OK || !result || !call->result) return status;
  *result = module_of(store, call->result);
  if (*result) return status;
  if (messages) pleat_messages_free(*messages);
  return messages_no_memory(messages);
}

int module_call_run(void *given, PleatModule **result, PleatMessages **messages) {
  ModuleCall *call = given;
  ModuleStore *store = call->on->store;
  pthread_mutex_lock(&store->lock);
  int status = run_in(store, call, result, messages);
  pthread_mutex_unlock(&store->lock);
  return status;
}

static void lock_both(ModuleStore *a, ModuleStore *b, int (*act)(pthread_mutex_t *)) {
  act(a < b ? &a->lock : &b->lock);
  if (a != b) act(a < b ? &b->lock : &a->lock);
}

int module_call_run_both(void *given, const PleatModule *other, PleatMessages **messages) {
  ModuleCall *call = given;
  lock_both(call->on->store, other->store, pthread_mutex_lock);
  int status = run_in(call->on->store, call, NULL, messages);
  lock_both(call->on->store, other->store, pthread_mutex_unlock);
  return status;
}

int module_refuse_null(PleatMessages **messages) {
  return messages_refuse("module", "is NULL, expected a module", messages);
}

int module_call_transform(void *given, PleatModule **result, PleatMessages **messages) {
  ModuleCall *call = given;
  if (!result) return messages_refuse("result", "is NULL, expected where to store it", messages);
  *result = NULL;
  return call->on ? module_call_run(call, result, messages) : module_refuse_null(messages);
}

int module_call_run_new(void *call, PleatModule **result, PleatMessages **messages) {
  if (!result) return messages_refuse("module", "is NULL, expected where to store it", messages);
  *result = NULL;
  ModuleStore *store = store_new();
  if (!store) return messages_no_memory(messages);
  int status = run_in(store, call, result, messages);
  store_release(store);
  return status;
}

char *module_owned_text(Context *context, Text *text) {
  char *owned = malloc(text->size + 1);
  if (!owned) {
    diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for the text");
    return NULL;
  }
  memcpy(owned, text_string(text), text->size + 1);
  return owned;
}

// ---- Reading ------------------------------------------------------------------------------------

typedef struct ParseCall {
  ModuleCall call;
  const PleatScript *given;
  PleatScript script;
} ParseCall;

static const SourceFile *macro_file(Context *context, const PleatCaptured *captured) {
  SourceFile *file = source_file_copy(context, captured->file ? captured->file : "macro",
                                      captured->text, strlen(captured->text));
  file->lines_before = captured->first_line > 0 ? captured->first_line - 1 : 0;
  return file;
}

static Captured ask(void *env, Context *context, int scope, const char *expression,
                    const char *const *names, const char *const *types, int name_count) {
  const PleatScript *script = env;
  PleatCapture capture = {expression, names, (size_t)name_count, scope, types};
  PleatCaptured captured = {0};
  int kind = script->capture(script->capture_env, &capture, &captured);
  Captured result = {.kind = CAPTURED_UNKNOWN};
  if (kind == PLEAT_CAPTURE_UNKNOWN || !captured.text) return result;
  result.text = str_intern(context, captured.text);
  result.kind = kind == PLEAT_CAPTURE_VALUE   ? CAPTURED_VALUE
                : kind == PLEAT_CAPTURE_MACRO ? CAPTURED_MACRO
                                              : CAPTURED_REFUSED;
  if (kind != PLEAT_CAPTURE_MACRO) return result;
  result.file = macro_file(context, &captured);
  result.scope = captured.scope;
  result.sees_names = captured.sees_names != 0;
  return result;
}

static Contents *contents_of(void *env, const char *name) {
  const PleatScript *script = env;
  return (Contents *)script->contents(script->contents_env, name);
}

static void parse(void *arg) {
  ParseCall *call = arg;
  Context *context = call->call.context;
  PleatScript *script = &call->script;
  context->caller = CALLER_C;
  if (!struct_read(context, "PleatScript", call->given, script, sizeof *script)) return;
  if (!script->text) {
    field_error(context, "text", "is NULL, expected TVMScript");
    return;
  }
  SourceFile *file = source_file_copy(context, script->file ? script->file : "script", script->text,
                                      strlen(script->text));
  file->lines_before = script->first_line > 0 ? script->first_line - 1 : 0;
  ScriptCapture capture = {.find = script->capture ? ask : NULL,
                           .infer = graph_infer_value,
                           .env = script,
                           .contents = script->contents ? contents_of : NULL,
                           .contents_env = script};
  if (script->imports)
    capture.imports =
        source_file_copy(context, "imports", script->imports, strlen(script->imports));
  call->call.result = script_parse_captured(context, file, &capture);
  call->call.done = call->call.result != NULL;
}

int pleat_module_parse(const PleatScript *script, PleatModule **module, PleatMessages **messages) {
  ParseCall call = {.call = {.body = parse}, .given = script};
  return module_call_run_new(&call, module, messages);
}

// ---- Parts --------------------------------------------------------------------------------------

static const ModuleFunc *function_at(const PleatModule *module, int i) {
  bool is_there = i >= 0 && i < pleat_module_function_count(module);
  return is_there ? &module->module->funcs.items[i] : NULL;
}

const char *pleat_module_name(const PleatModule *module) {
  return module && module->module->name ? module->module->name : "";
}

int pleat_module_function_count(const PleatModule *module) {
  return module ? module->module->funcs.count : 0;
}

const char *pleat_module_function_name(const PleatModule *module, int i) {
  const ModuleFunc *func = function_at(module, i);
  return func ? func->name : NULL;
}

int pleat_module_function_is_tensor_program(const PleatModule *module, int i) {
  const ModuleFunc *func = function_at(module, i);
  return func ? func->prim != NULL : -1;
}

Module *module_copy(Context *context, const Module *module, bool with_functions) {
  Module *copy = module_new(context, module->name ? module->name : "");
  copy->attrs = module->attrs;
  copy->infos = module->infos;
  for (int i = 0; with_functions && i < module->funcs.count; i++)
    module_put(copy, &module->funcs.items[i]);
  return copy;
}

void module_put(Module *module, const ModuleFunc *func) {
  if (func->prim)
    module_add_prim(module, func->prim);
  else
    module_add_graph(module, func->graph);
}

bool module_lacks(Context *context, const Module *module, const char *name) {
  const char **names = arena_array(&context->scratch, const char *, module->funcs.count);
  for (int i = 0; i < module->funcs.count; i++) names[i] = module->funcs.items[i].name;
  const char *near = suggestion_of(&context->arena, name, names, module->funcs.count);
  return field_error(context, "function", "the module has no tensor program '%s'%s", name, near);
}

PrimFunc *module_prim(Context *context, const Module *module, const char *name) {
  PrimFunc *only = NULL;
  int count = 0;
  for (int i = 0; i < module->funcs.count; i++) {
    PrimFunc *func = module->funcs.items[i].prim;
    if (!func || (name && strcmp(func->name, name) != 0)) continue;
    only = func;
    count++;
  }
  if (count == 1) return only;
  if (name)
    module_lacks(context, module, name);
  else
    field_error(context, "function", "the module has %d tensor programs; say which by its name",
                count);
  return NULL;
}

// ---- Printing -----------------------------------------------------------------------------------

typedef struct PrintCall {
  ModuleCall call;
  const PleatPrintOptions *given;
  char *text;
} PrintCall;

Text module_text(Context *context, const Module *module) {
  Text text = text_new(&context->arena);
  script_print_module(context, module, &text, NULL);
  return text;
}

Text module_text_with(Context *context, const Module *module, ContentsList *contents) {
  Text text = text_new(&context->arena);
  script_print_module(context, module, &text,
                      &(ScriptOptions){.most_elements = MOST_PRINTED,
                                       .contents = contents_list_add,
                                       .contents_env = contents});
  return text;
}

Module *module_read(Context *context, const char *text, size_t size, ContentsList *contents) {
  SourceFile *file = source_file_copy(context, "script of the module", text, size);
  return script_parse_captured(
      context, file, &(ScriptCapture){.contents = contents_list_find, .contents_env = contents});
}

static const Module *only_function(Context *context, const Module *module, const char *name) {
  const ModuleFunc *func = module_find(module, name);
  if (!func) return module_lacks(context, module, name), NULL;
  Module *only = module_new(context, "");
  module_put(only, func);
  return only;
}

static void hand_out(void *env, Contents *contents) {
  const PleatPrintOptions *options = env;
  if (options->contents) options->contents(options->contents_env, (PleatContents *)contents);
}

static void print(void *arg) {
  PrintCall *call = arg;
  Context *context = call->call.context;
  PleatPrintOptions options = {0};
  if (call->given &&
      !struct_read(context, "PleatPrintOptions", call->given, &options, sizeof options))
    return;
  const Module *module = call->call.on->module;
  if (options.function) module = only_function(context, module, options.function);
  if (!module) return;
  Text text = text_new(&context->scratch);
  script_print_module(context, module, &text,
                      &(ScriptOptions){.newer = options.newer_names,
                                       .no_imports = options.no_imports,
                                       .annotate = options.annotate,
                                       .most_elements = MAX_OF(options.most_elements, 0),
                                       .contents = hand_out,
                                       .contents_env = &options});
  call->text = module_owned_text(context, &text);
  call->call.done = call->text != NULL;
}

int pleat_module_print(const PleatModule *module, const PleatPrintOptions *options, char **text,
                       PleatMessages **messages) {
  if (!text) return messages_refuse("text", "is NULL, expected where to store it", messages);
  *text = NULL;
  if (!module) return module_refuse_null(messages);
  PrintCall call = {.call = {.on = module, .body = print}, .given = options};
  int status = module_call_run(&call, NULL, messages);
  *text = call.text;
  return status;
}

// ---- Saving -------------------------------------------------------------------------------------

static const char format_name[] = "pleat.module";

// Does the text read back as an equal module? It is read in a context of its own.
typedef struct CheckBack {
  Context *context;
  const Text *text;
  ContentsList *contents;
  const Module *module;
  bool equal;
  const char *why;
} CheckBack;

static void check_back(void *arg) {
  CheckBack *c = arg;
  const Module *read = module_read(c->context, c->text->data, c->text->size, c->contents);
  IrDifference difference;
  c->equal = read && module_equal(c->context, c->module, read, &difference);
  c->why = !read ? "it is not read again" : c->equal ? NULL : difference.what;
}

static bool reads_back(Context *context, const Module *module, const Text *text,
                       ContentsList *contents) {
  CheckBack check = {context_new(), text, contents, module, false, "memory is exhausted"};
  if (check.context) context_protect(check.context, check_back, &check);
  if (!check.equal)
    diag_error_as(context, DIAG_UNSUPPORTED, (SourcePos){0},
                  "the module cannot be saved as a script: %s", check.why);
  context_free(check.context);
  return check.equal;
}

static json_t *saved_contents(Context *context, const ContentsList *contents) {
  json_t *object = json_object();
  for (int i = 0; i < contents->items.count; i++) {
    const Contents *one = contents->items.items[i];
    ArenaMark mark = arena_mark(&context->scratch);
    json_object_set_new(object, one->name,
                        json_string(base64_text(&context->scratch, one->data, one->bytes)));
    arena_reset(&context->scratch, mark);
  }
  return object;
}

typedef struct ModuleSaveCall {
  ModuleCall call;
  char *json;
} ModuleSaveCall;

static void save(void *arg) {
  ModuleSaveCall *call = arg;
  Context *context = call->call.context;
  const Module *module = call->call.on->module;
  ContentsList contents = {.arena = &context->scratch};
  Text text = module_text_with(context, module, &contents);
  if (!reads_back(context, module, &text, &contents)) return;
  json_t *object = json_pack("{s:s, s:s, s:s%, s:o}", "format", format_name, "version",
                             pleat_version_text(), "script", text_string(&text), text.size,
                             "constants", saved_contents(context, &contents));
  if (object) call->json = json_dumps(object, JSON_INDENT(2));
  json_decref(object);
  call->call.done = call->json != NULL || diag_error_as(context, DIAG_MEMORY, (SourcePos){0},
                                                        "not enough memory for the text");
}

int pleat_module_save(const PleatModule *module, char **json, PleatMessages **messages) {
  if (!json) return messages_refuse("json", "is NULL, expected where to store it", messages);
  *json = NULL;
  if (!module) return module_refuse_null(messages);
  ModuleSaveCall call = {.call = {.on = module, .body = save}};
  int status = module_call_run(&call, NULL, messages);
  *json = call.json;
  return status;
}

typedef struct ModuleLoadCall {
  ModuleCall call;
  const char *json;
  json_t *object;
} ModuleLoadCall;

// False with a diagnostic for contents that are damaged. A file of an earlier version has none.
static bool load_contents(Context *context, json_t *constants, ContentsList *list) {
  const char *name;
  json_t *value;
  json_object_foreach(constants, name, value) {
    Contents *contents = NULL;
    bool is_text = json_is_string(value) && base64_contents(context, json_string_value(value),
                                                            json_string_length(value), &contents);
    if (!is_text || strcmp(contents->name, name) != 0)
      return field_error(context, "json", "the contents of '%s' are damaged", name);
    contents_list_add(list, contents);
  }
  return true;
}

static void load(void *arg) {
  ModuleLoadCall *call = arg;
  Context *context = call->call.context;
  json_error_t error;
  call->object = json_loads(call->json, 0, &error);
  if (!call->object) {
    field_error(context, "json", "line %d: %s", error.line, error.text);
    return;
  }
  const char *format = json_string_value(json_object_get(call->object, "format"));
  const char *script = json_string_value(json_object_get(call->object, "script"));
  if (!format || strcmp(format, format_name) != 0 || !script) {
    field_error(context, "json", "is not a module that pleat_module_save made");
    return;
  }
  ContentsList contents = {.arena = &context->arena};
  if (!load_contents(context, json_object_get(call->object, "constants"), &contents)) return;
  SourceFile *file = source_file_copy(context, "module.json", script, strlen(script));
  call->call.result = script_parse_captured(
      context, file, &(ScriptCapture){.contents = contents_list_find, .contents_env = &contents});
  call->call.done = call->call.result != NULL;
}

int pleat_module_load(const char *json, PleatModule **module, PleatMessages **messages) {
  if (module) *module = NULL;
  if (!json) return messages_refuse("json", "is NULL, expected a saved module", messages);
  ModuleLoadCall call = {.call = {.body = load}, .json = json};
  int status = module_call_run_new(&call, module, messages);
  json_decref(call.object);
  return status;
}
