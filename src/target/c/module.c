// SPDX-License-Identifier: Apache-2.0
// Writes kernels as C functions. The function of a region takes the arguments that it uses as plain
// parameters, which do not overlap. In a file that other code calls through pointers, an entry
// takes them from `args`:
//     static void f_task(float *restrict C, const float *restrict A, int64_t begin, int64_t end)
//     void f(void *const *args, int64_t begin, int64_t end)
#include "target/c/rows.h"

#include "script/script.h"
#include "target/c/emit.h"

static const char prelude[] =
    "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
    "// How often a loop is unrolled; 1 keeps it as it is.\n"
    "#define PRAGMA(x) _Pragma(#x)\n"
    "#if defined(__clang__)\n#define UNROLL(n) PRAGMA(clang loop unroll_count(n))\n"
    "#else\n#define UNROLL(n) PRAGMA(GCC unroll n)\n#endif\n"
    "#if defined(__clang__)\n#pragma STDC FP_CONTRACT ON\n"
    "#else\n#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n#endif\n";

static const CSpelling plain = {0};

CModule c_module_new(Context *context, const TargetOptions *options) {
  Arena *arena = &context->scratch;
  CModule module = {
      .context = context, .arena = arena, .features = target_features(options->machine)};
  module.spelling = &plain;
  module.report = options->report ? options->report : arena_new(arena, TargetReport);
  // C has no vector form of these.
  module.features.half_conversion = module.features.rounding = false;
  module.types = text_new(arena);
  module.macros = text_new(arena);
  module.constants = text_new(arena);
  module.declarations = text_new(arena);
  module.functions = text_new(arena);
  module.defined = map_new(arena);
  module.names = map_new(arena);
  module.comments = true;
  return module;
}

typedef struct Calls {
  CModule *module;
  Map *seen;
} Calls;

static bool reserve_call(Visitor *visitor, Expr *e) {
  Calls *calls = visitor->env;
  bool is_call = e->op == EXPR_CALL || e->op == EXPR_CALL_PURE;
  if (!is_call || map_contains(calls->seen, e->as.s)) return true;
  map_put(calls->seen, e->as.s, (intptr_t)1);
  c_global_name(calls->module, e->as.s);
  return true;
}

void c_reserve_calls(CModule *module, const TargetUnit *unit, Map *seen) {
  Map once = map_new(module->arena);
  Calls calls = {module, seen};
  for (int k = 0; k < unit->kernel_count; k++)
    for (int t = 0; t < unit->kernels[k]->region_count; t++)
      visit_stmt(&(Visitor){.env = &calls, .enter_expr = reserve_call, .once = &once},
                 unit->kernels[k]->regions[t].body);
}

CEmit c_emit_new(CModule *module) {
  CEmit emit = {.module = module, .context = module->context, .arena = module->arena};
  emit.body = text_new(emit.arena);
  emit.depth = 1;
  emit.names = map_new(emit.arena);
  emit.vars = map_new(emit.arena);
  emit.pointees = map_new(emit.arena);
  emit.spaces = map_new(emit.arena);
  emit.registers = map_new(emit.arena);
  emit.uses = map_new(emit.arena);
  emit.values = map_new(emit.arena);
  for (int i = 0; i < module->names.count; i++) // a local name hides none of the file's
    map_set(&emit.names, module->names.entries[i].key, (void *)1);
  return emit;
}

// ---- What a region uses -------------------------------------------------------------------------

typedef struct Use { // data variables and scalars of a region
  Map used, written;
} Use;

static bool note_stmt(Visitor *visitor, Stmt *s) {
  Use *use = visitor->env;
  if (s->kind != STMT_STORE) return true;
  map_put(&use->used, s->as.store.buffer->data, (intptr_t)1);
  map_put(&use->written, s->as.store.buffer->data, (intptr_t)1);
  return true;
}

// A called function may write to memory whose address it gets.
static bool note_expr(Visitor *visitor, Expr *e) {
  Use *use = visitor->env;
  if (e->op == EXPR_VAR) map_put(&use->used, e, (intptr_t)1);
  if (e->op == EXPR_LOAD) map_put(&use->used, e->as.buffer->data, (intptr_t)1);
  bool call = e->op == EXPR_CALL || e->op == EXPR_CALL_PURE;
  for (int i = 0; i < e->count && call; i++)
    if (e->args[i]->op == EXPR_ADDRESS_OF)
      map_put(&use->written, e->args[i]->args[0]->as.buffer->data, (intptr_t)1);
  return true;
}

static Use use_of(CModule *module, Stmt *body) {
  Use use = {map_new(module->arena), map_new(module->arena)};
  Map once = map_new(module->arena);
  Visitor visitor = {.env = &use, .enter_stmt = note_stmt, .enter_expr = note_expr, .once = &once};
  visit_stmt(&visitor, body);
  return use;
}

bool c_uses(CModule *module, Stmt *body, Expr *var) {
  Use use = use_of(module, body);
  return map_contains(&use.used, var);
}

// ---- Parameters --------------------------------------------------------------------------------

static Expr *var_of(const LowerArg *arg) {
  return arg->kind == LOWER_ARG_TENSOR ? arg->buffer->data : arg->var;
}

static const char *argument_type(CModule *module, const CFunction *function, const Expr *data) {
  const char *element = c_memory_type(module, data->as.var->pointee);
  bool written = map_contains(&function->written, data);
  return arena_printf(module->arena, "%s%s *", written ? "" : "const ", element);
}

static void define_pointer(CEmit *emit, Text *text, const CFunction *function, Expr *data,
                           const char *preferred) {
  const char *name = c_name(emit, preferred);
  text_printf(text, "%srestrict %s, ", argument_type(emit->module, function, data), name);
  map_put(&emit->vars, data, name);
  map_put(&emit->pointees, data, c_memory_type(emit->module, data->as.var->pointee));
}

static void define_scalar(CEmit *emit, Text *text, const LowerArg *arg) {
  const char *name = c_name(emit, arg->name);
  text_printf(text, "%s %s, ", c_type(emit->module, arg->var->type), name);
  map_put(&emit->vars, arg->var, name);
}

static const char *definition_of(CEmit *emit, const CFunction *function) {
  Text text = text_new(emit->arena);
  const LowerKernel *kernel = function->kernel;
  for (int i = 0; i < function->param_count; i++) {
    int number = function->params[i], slot = number - kernel->arg_count;
    const LowerArg *arg = &kernel->args[number < kernel->arg_count ? number : 0];
    if (slot >= 0) {
      Expr *data = kernel->slots[slot].data;
      define_pointer(emit, &text, function, data, data->as.var->name);
    } else if (arg->kind == LOWER_ARG_TENSOR) {
      define_pointer(emit, &text, function, arg->buffer->data, arg->name);
    } else {
      define_scalar(emit, &text, arg);
    }
  }
  return text_string(&text);
}

CFunction c_function_of(CModule *module, const LowerKernel *kernel, const LowerRegion *region,
                        Stmt *body) {
  Use use = use_of(module, body);
  CFunction function = {.kernel = kernel, .region = region, .written = use.written};
  function.params = arena_array(module->arena, int, kernel->arg_count + kernel->slot_count);
  for (int i = 0; i < kernel->arg_count; i++)
    if (map_contains(&use.used, var_of(&kernel->args[i])))
      function.params[function.param_count++] = i;
  for (int i = 0; i < kernel->slot_count; i++)
    if (map_contains(&use.used, kernel->slots[i].data))
      function.params[function.param_count++] = kernel->arg_count + i;
  function.uses_range =
      map_contains(&use.used, region->begin) || map_contains(&use.used, region->end);
  return function;
}

// The arguments of a call: "(const float *)FROM, …". from[i] is the address of argument i as text;
// the last one is that of the workspace.
const char *c_arguments(CEmit *emit, const CFunction *function, const char *const *from) {
  Text text = text_new(emit->arena);
  const LowerKernel *kernel = function->kernel;
  for (int i = 0; i < function->param_count; i++) {
    int number = function->params[i], slot = number - kernel->arg_count;
    const LowerArg *arg = &kernel->args[number < kernel->arg_count ? number : 0];
    Expr *data = slot >= 0 ? kernel->slots[slot].data : var_of(arg);
    if (slot >= 0)
      text_printf(&text, "(%s)(%s + %s), ", argument_type(emit->module, function, data),
                  from[kernel->arg_count], c_index(emit, kernel->slots[slot].offset).text);
    else if (arg->kind == LOWER_ARG_TENSOR)
      text_printf(&text, "(%s)%s, ", argument_type(emit->module, function, data), from[number]);
    else
      text_printf(&text, "*(const %s *)%s, ", c_type(emit->module, arg->var->type), from[number]);
  }
  return text_string(&text);
}

// ---- Functions ---------------------------------------------------------------------------------

// An offset in the workspace may depend on scalars, which the entry reads from `args`.
static void name_scalars_by_place(CEmit *emit, const LowerKernel *kernel) {
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    if (arg->kind == LOWER_ARG_TENSOR) continue;
    const char *type = c_type(emit->module, arg->var->type);
    map_put(&emit->vars, arg->var, arena_printf(emit->arena, "(*(const %s *)args[%d])", type, i));
  }
}

static void add_entry(CModule *module, const CFunction *function) {
  const LowerKernel *kernel = function->kernel;
  CEmit entry = c_emit_new(module);
  name_scalars_by_place(&entry, kernel);
  const char **from = arena_array(module->arena, const char *, kernel->arg_count + 1);
  for (int i = 0; i < kernel->arg_count; i++) from[i] = arena_printf(module->arena, "args[%d]", i);
  from[kernel->arg_count] = arena_printf(module->arena, "(char *)args[%d]", kernel->arg_count);
  text_printf(&module->functions,
              "void %s(void *const *args, int64_t begin, int64_t end) {\n"
              "  %s%s(%sbegin, end);\n}\n\n",
              function->region->name, function->param_count ? "" : "(void)args;\n  ",
              function->name, c_arguments(&entry, function, from));
}

void c_comment_buffers(CModule *module, const CFunction *function) {
  const LowerKernel *kernel = function->kernel;
  for (int i = 0; i < function->param_count && module->comments; i++) {
    int number = function->params[i];
    const Buffer *buffer = number < kernel->arg_count ? kernel->args[number].buffer : NULL;
    if (!buffer) continue;
    text_printf(&module->functions, "// %s: %s [", buffer->name,
                dtype_name(module->context, buffer->type));
    for (int k = 0; k < buffer->rank; k++)
      text_printf(&module->functions, "%s%s", k ? ", " : "",
                  script_expr_text(module->context, buffer->shape[k]));
    text_puts(&module->functions, "]\n");
  }
}

static CFunction add_region(CModule *module, const LowerKernel *kernel, const LowerRegion *region,
                            const char *preferred) {
  if (module->with_entries) preferred = arena_printf(module->arena, "%s_task", preferred);
  Stmt *body = target_legalize(module->context, region->body, &module->features, module->report);
  CFunction function = c_function_of(module, kernel, region, body);
  function.name = c_global_name(module, preferred);
  CEmit emit = c_emit_new(module);
  const char *definition = definition_of(&emit, &function);
  map_put(&emit.vars, region->begin, "begin");
  map_put(&emit.vars, region->end, "end");
  if (!function.uses_range) c_line(&emit, "(void)begin, (void)end;");
  c_stmt(&emit, body);
  definition = arena_printf(module->arena, "%sint64_t begin, int64_t end", definition);
  int column = (int)strlen(function.name) + 13; // after "static void NAME("
  c_comment_buffers(module, &function);
  text_printf(&module->functions, "static void %s(%s) {\n%s}\n\n", function.name,
              c_broken(module->arena, definition, column, 4), text_string(&emit.body));
  if (module->with_entries) add_entry(module, &function);
  return function;
}

void c_module_add(CModule *module, const LowerKernel *kernel, const char *preferred,
                  CFunction *functions) {
  for (int i = 0; i < kernel->region_count; i++) {
    const LowerRegion *region = &kernel->regions[i];
    functions[i] = add_region(module, kernel, region, preferred ? preferred : region->name);
  }
}

void c_module_text(CModule *module, Text *out) {
  const Text *parts[] = {&module->types, &module->macros, &module->declarations, &module->constants,
                         &module->functions};
  text_puts(out, prelude);
  // Without this, Clang cuts vectors of 64 bytes in two on processors where it prefers 32 bytes.
  bool wide = module->features.vector_bytes > 32;
  if (wide)
    text_puts(out, "\n#if defined(__clang__) && defined(__x86_64__)\n"
                   "#pragma clang attribute push(__attribute__((min_vector_width(512))), "
                   "apply_to = function)\n#endif\n");
  for (int i = 0; i < COUNT_OF(parts); i++)
    if (parts[i]->size) text_printf(out, "\n%s", parts[i]->data);
  if (wide)
    text_puts(out, "#if defined(__clang__) && defined(__x86_64__)\n"
                   "#pragma clang attribute pop\n#endif\n\n");
}

bool c_target_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
                   const char *ending, Text *out) {
  CModule module = c_module_new(context, options);
  (void)ending;
  module.with_entries = true;
  for (int k = 0; k < unit->kernel_count; k++)
    for (int t = 0; t < unit->kernels[k]->region_count; t++)
      c_global_name(&module, unit->kernels[k]->regions[t].name);
  for (int k = 0; k < unit->kernel_count; k++) {
    const LowerKernel *kernel = unit->kernels[k];
    TargetReport before = *module.report;
    c_module_add(&module, kernel, NULL, arena_array(module.arena, CFunction, kernel->region_count));
    target_report_kernel(options, k, &before, module.report);
  }
  text_printf(out,
              "// %s: %d kernel%s, each void NAME(void *const *args, int64_t begin, int64_t end)\n",
              unit->name, unit->kernel_count, unit->kernel_count == 1 ? "" : "s");
  c_module_text(&module, out);
  return true;
}
