// SPDX-License-Identifier: Apache-2.0
// Kernels as C functions. A task takes what it uses as plain parameters that do not overlap; in a
// file that other code calls through pointers, an entry takes them from `args`:
//     static void f_task(float *restrict C, const float *restrict A, int64_t begin, int64_t end)
//     void f(void *const *args, int64_t begin, int64_t end)
#include "target/c/rows.h"

#include "target/c/emit.h"

static const char prelude[] =
    "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
    "// How often a loop is unrolled; 1 keeps it as it is.\n"
    "#define PRAGMA(x) _Pragma(#x)\n"
    "#if defined(__clang__)\n#define UNROLL(n) PRAGMA(clang loop unroll_count(n))\n"
    "#else\n#define UNROLL(n) PRAGMA(GCC unroll n)\n#endif\n"
    "#if defined(__clang__)\n#pragma STDC FP_CONTRACT ON\n#endif\n";

CModule c_module_new(Context *context, const TargetOptions *options) {
  Arena *arena = &context->scratch;
  CModule module = {.context = context, .arena = arena, .features = target_features(options->machine)};
  module.report = options->report ? options->report : arena_new(arena, TargetReport);
  module.features.half_conversion = module.features.rounding = false; // no vector form in C
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

static CEmit emit_new(CModule *module, const PrimFunc *func) {
  CEmit emit = {.module = module, .context = module->context, .arena = module->arena};
  emit.func = func;
  emit.body = text_new(emit.arena);
  emit.depth = 1;
  emit.names = map_new(emit.arena);
  emit.vars = map_new(emit.arena);
  emit.pointees = map_new(emit.arena);
  emit.registers = map_new(emit.arena);
  emit.uses = map_new(emit.arena);
  emit.values = map_new(emit.arena);
  for (int i = 0; i < module->names.count; i++) // no local name hides one of the file
    map_set(&emit.names, module->names.entries[i].key, (void *)1);
  return emit;
}

// ---- What is written to ------------------------------------------------------------------------

static bool note_store(Visitor *visitor, Stmt *s) {
  if (s->kind == STMT_STORE)
    map_put((Map *)visitor->env, s->as.store.buffer->data, (intptr_t)1);
  return true;
}

// What a called function gets the address of may be written.
static bool note_call(Visitor *visitor, Expr *e) {
  if (e->op != EXPR_CALL && e->op != EXPR_CALL_PURE) return true;
  for (int i = 0; i < e->count; i++)
    if (e->args[i]->op == EXPR_ADDRESS_OF)
      map_put((Map *)visitor->env, e->args[i]->args[0]->as.buffer->data, (intptr_t)1);
  return true;
}

static Map written_data(CModule *module, Stmt *body) {
  Map written = map_new(module->arena);
  Visitor visitor = {.env = &written, .enter_stmt = note_store, .enter_expr = note_call};
  visit_stmt(&visitor, body);
  return written;
}

// ---- Parameters --------------------------------------------------------------------------------

typedef struct Parameters {
  Text definition, unpacking; // of the task; arguments of the entry's call
} Parameters;

static void add_pointer(CEmit *emit, Parameters *p, const Map *written, Expr *data, const char *wish,
                        const char *from) {
  const char *name = c_name(emit, wish);
  const char *element = c_memory_type(emit->module, data->as.var->pointee);
  const char *constant = map_find(written, data) ? "" : "const ";
  text_printf(&p->definition, "%s%s *restrict %s, ", constant, element, name);
  text_printf(&p->unpacking, "(%s%s *)%s, ", constant, element, from);
  map_put(&emit->vars, data, name);
  map_put(&emit->pointees, data, element);
}

static void add_scalar(CEmit *emit, Parameters *p, const LowerArg *arg, int i) {
  const char *name = c_name(emit, arg->name), *type = c_type(emit->module, arg->var->type);
  text_printf(&p->definition, "%s %s, ", type, name);
  text_printf(&p->unpacking, "*(const %s *)args[%d], ", type, i);
  map_put(&emit->vars, arg->var, name);
}

static Parameters parameters_of(CEmit *emit, const LowerKernel *kernel, const LowerTask *task) {
  Parameters p = {text_new(emit->arena), text_new(emit->arena)};
  Map written = written_data(emit->module, task->body);
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    const char *from = arena_printf(emit->arena, "args[%d]", i);
    if (arg->kind == LOWER_ARG_TENSOR)
      add_pointer(emit, &p, &written, arg->buffer->data, arg->name, from);
    else
      add_scalar(emit, &p, arg, i);
  }
  for (int i = 0; i < kernel->slot_count; i++) {
    const LowerSlot *slot = &kernel->slots[i];
    const char *offset = c_index(emit, slot->offset).text;
    const char *from = arena_printf(emit->arena, "((char *)args[%d] + %s)", kernel->arg_count,
                                    offset);
    add_pointer(emit, &p, &written, slot->data, slot->data->as.var->name, from);
  }
  return p;
}

// ---- Functions ---------------------------------------------------------------------------------

// An offset of the workspace may depend on scalars, which the entry knows by their places.
static void name_scalars_by_place(CEmit *emit, const LowerKernel *kernel) {
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    if (arg->kind == LOWER_ARG_TENSOR) continue;
    const char *type = c_type(emit->module, arg->var->type);
    map_put(&emit->vars, arg->var,
            arena_printf(emit->arena, "(*(const %s *)args[%d])", type, i));
  }
}

static void add_entry(CModule *module, const LowerKernel *kernel, const LowerTask *task, Str name) {
  CEmit entry = emit_new(module, kernel->func);
  name_scalars_by_place(&entry, kernel);
  Parameters p = parameters_of(&entry, kernel, task);
  text_printf(&module->functions,
              "void %s(void *const *args, int64_t begin, int64_t end) {\n"
              "  %s(%sbegin, end);\n}\n\n",
              task->name, name, text_string(&p.unpacking));
}

static void mark_used(CEmit *emit) {
  c_line(emit, "(void)begin, (void)end;");
}

static Str add_task(CModule *module, const LowerKernel *kernel, const LowerTask *task) {
  const char *wish = task->name;
  if (module->with_entries) wish = arena_printf(module->arena, "%s_task", wish);
  Str name = c_global_name(module, wish);
  CEmit emit = emit_new(module, kernel->func);
  Parameters p = parameters_of(&emit, kernel, task);
  map_put(&emit.vars, task->begin, "begin");
  map_put(&emit.vars, task->end, "end");
  mark_used(&emit);
  Stmt *body = target_legalize(module->context, task->body, &module->features, module->report);
  c_stmt(&emit, body);
  text_printf(&module->functions, "static void %s(%sint64_t begin, int64_t end) {\n%s}\n\n", name,
              text_string(&p.definition), text_string(&emit.body));
  if (module->with_entries) add_entry(module, kernel, task, name);
  return name;
}

void c_module_add(CModule *module, const LowerKernel *kernel, CFunction *functions) {
  for (int i = 0; i < kernel->task_count; i++)
    functions[i] = (CFunction){add_task(module, kernel, &kernel->tasks[i]), &kernel->tasks[i]};
}

void c_module_text(CModule *module, Text *out) {
  const Text *parts[] = {&module->types, &module->macros, &module->declarations,
                         &module->constants, &module->functions};
  text_puts(out, prelude);
  for (int i = 0; i < COUNT_OF(parts); i++)
    if (parts[i]->size) text_printf(out, "\n%s", parts[i]->data);
}

bool c_target_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
            const char *ending, Text *out) {
  CModule module = c_module_new(context, options);
  (void)ending;
  module.with_entries = true;
  for (int k = 0; k < unit->kernel_count; k++)
    for (int t = 0; t < unit->kernels[k]->task_count; t++)
      c_global_name(&module, unit->kernels[k]->tasks[t].name);
  for (int k = 0; k < unit->kernel_count; k++) {
    const LowerKernel *kernel = unit->kernels[k];
    c_module_add(&module, kernel, arena_array(module.arena, CFunction, kernel->task_count));
  }
  text_printf(out, "// %s: %d kernel%s, each void NAME(void *const *args, int64_t begin, int64_t end)\n",
              unit->name, unit->kernel_count, unit->kernel_count == 1 ? "" : "s");
  c_module_text(&module, out);
  return true;
}
