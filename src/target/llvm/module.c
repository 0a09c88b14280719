// SPDX-License-Identifier: Apache-2.0
// Writes a unit as one module of LLVM. Each region becomes two functions: the one that callers know
// loads pointers and scalars from `args` and goes on to the other one, whose pointer parameters say
// that they do not overlap.
//     define void @f(ptr %args, i64 %begin, i64 %end)       { … tail call @f.body(…) }
//     define internal void @f.body(ptr noalias %p0, float %p1, …, i64 %begin, i64 %end)
#include "target/llvm/emit.h"

typedef struct Parameters {
  Text call, definition; // "ptr %a0, ", and the same as a definition
} Parameters;

static const char *attributes(const LlvmModule *module) {
  const HostMachine *machine = module->machine;
  const TargetRow *row = target_find("llvm");
  int width = module->features.vector_bytes * 8;
  return arena_printf(module->arena,
                      "attributes #0 = { nounwind \"target-cpu\"=\"x86-64\" \"tune-cpu\"=\"%s\" "
                      "\"target-features\"=\"%s\" \"prefer-vector-width\"=\"%d\" "
                      "\"min-legal-vector-width\"=\"%d\" \"no-trapping-math\"=\"true\" }\n",
                      target_level_tuning(row, machine), target_level_flags(row, machine), width,
                      width);
}

Emit llvm_emit_new(LlvmModule *module) {
  Emit emit = {.module = module, .context = module->context, .arena = module->arena};
  emit.entry = text_new(module->arena);
  emit.body = text_new(module->arena);
  emit.block = "%entry";
  emit.access = "";
  emit.values = map_new(module->arena);
  emit.vars = map_new(module->arena);
  emit.wide = map_new(module->arena);
  emit.shifts = map_new(module->arena);
  emit.depths = map_new(module->arena);
  emit.data = map_new(module->arena);
  emit.arrays = map_new(module->arena);
  return emit;
}

// Passes a tensor or a piece of the workspace, parameter number `i`, from the wrapper to the body.
static void pass_pointer(Emit *wrapper, Emit *body, Parameters *parameters, const Expr *data,
                         const char *pointer, int i) {
  const char *name = arena_printf(body->arena, "%%p%d", i);
  text_printf(&parameters->call, "ptr %s, ", pointer);
  text_printf(&parameters->definition, "ptr noalias nocapture %s, ", name);
  map_put(&body->data, data, name);
  (void)wrapper;
}

static const char *load_argument(Emit *wrapper, int i) {
  const char *place = emit_value(wrapper, "getelementptr inbounds ptr, ptr %%args, i64 %d", i);
  return emit_value(wrapper, "load ptr, ptr %s, align 8", place);
}

static void pass_scalar(Emit *wrapper, Emit *body, Parameters *parameters, const LowerArg *arg,
                        const char *pointer, int i) {
  DType type = arg->var->type;
  const char *name = arena_printf(body->arena, "%%p%d", i), *text = llvm_type(body, type);
  const char *memory = llvm_memory_type(body, type);
  const char *value =
      emit_value(wrapper, "load %s, ptr %s, align %d", memory, pointer, dtype_bytes(type));
  if (dtype_is_bool(type))
    value = emit_value(wrapper, "icmp ne i8 %s, 0", value);
  else if (type.bits < 8)
    value = emit_value(wrapper, "trunc i8 %s to %s", value, text);
  text_printf(&parameters->call, "%s %s, ", text, value);
  text_printf(&parameters->definition, "%s %s, ", text, name);
  map_put(&body->vars, arg->var, name);
  map_put(&wrapper->vars, arg->var, value);
}

static void pass_workspace(Emit *wrapper, Emit *body, Parameters *parameters,
                           const LowerKernel *kernel) {
  if (!kernel->slot_count) return;
  const char *base = load_argument(wrapper, kernel->arg_count);
  for (int i = 0; i < kernel->slot_count; i++) {
    const char *offset = emit_index(wrapper, kernel->slots[i].offset);
    const char *pointer =
        emit_value(wrapper, "getelementptr inbounds i8, ptr %s, i64 %s", base, offset);
    pass_pointer(wrapper, body, parameters, kernel->slots[i].data, pointer, kernel->arg_count + i);
  }
}

static Parameters pass_arguments(Emit *wrapper, Emit *body, const LowerKernel *kernel) {
  Parameters parameters = {text_new(wrapper->arena), text_new(wrapper->arena)};
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    const char *pointer = load_argument(wrapper, i);
    if (arg->kind == LOWER_ARG_TENSOR)
      pass_pointer(wrapper, body, &parameters, arg->buffer->data, pointer, i);
    else
      pass_scalar(wrapper, body, &parameters, arg, pointer, i);
  }
  pass_workspace(wrapper, body, &parameters, kernel);
  return parameters;
}

static void bind_range(Emit *body, const LowerRegion *region) {
  map_put(&body->vars, region->begin, "%begin");
  map_put(&body->wide, region->begin, "%begin");
  map_put(&body->vars, region->end, "%end");
  map_put(&body->wide, region->end, "%end");
}

static void module_add_region(LlvmModule *module, const LowerKernel *kernel,
                              const LowerRegion *region) {
  Emit wrapper = llvm_emit_new(module), body = llvm_emit_new(module);
  Parameters parameters = pass_arguments(&wrapper, &body, kernel);
  bind_range(&body, region);
  Stmt *legal = target_legalize(module->context, region->body, &module->features, module->report);
  const char *body_position = llvm_function_position(module, region->name);
  emit_place_coefficients(&body, legal);
  emit_stmt(&body, legal);
  const char *position = llvm_function_position(module, region->name);
  text_printf(&module->functions,
              "define %svoid @%s(ptr %%args, i64 %%begin, i64 %%end) #0 %s{\nentry:\n%s"
              "  tail call void @%s.body(%si64 %%begin, i64 %%end)%s\n  ret void\n}\n",
              module->local ? "internal " : "", region->name, position, text_string(&wrapper.body),
              region->name, text_string(&parameters.call), llvm_call_position(module));
  text_printf(&module->functions,
              "define internal void @%s.body(%si64 %%begin, i64 %%end) #0 %s{\nentry:\n%s%s"
              "  ret void\n}\n",
              region->name, text_string(&parameters.definition), body_position,
              text_string(&body.entry), text_string(&body.body));
}

static void add_programs(LlvmModule *module, const LlvmPrograms *whole) {
  llvm_add_weights(module, whole);
  llvm_add_fault(module);
  llvm_add_host_support(module, whole);
  for (int i = 0; i < whole->count; i++) {
    Emit entry = llvm_emit_new(module), call = llvm_emit_new(module);
    llvm_add_program(&entry, whole, &whole->programs[i]);
    if (whole->programs[i].host)
      llvm_add_host(&call, whole, &whole->programs[i]);
    else
      llvm_add_call(&call, whole, &whole->programs[i]);
  }
}

// Gives regions other names than functions outside that the module calls. False where all have such
// names already.
static bool rename_called(const LlvmModule *module, const TargetUnit *unit) {
  Map taken = map_new(module->arena);
  bool renamed = false;
  for (int k = 0; k < unit->kernel_count; k++)
    for (int t = 0; t < unit->kernels[k]->region_count; t++)
      map_put(&taken, unit->kernels[k]->regions[t].name, (intptr_t)1);
  for (int k = 0; k < unit->kernel_count; k++)
    for (int t = 0; t < unit->kernels[k]->region_count; t++) {
      Str *name = &unit->kernels[k]->regions[t].name;
      if (!map_contains(&module->declared, *name)) continue;
      while (map_contains(&module->declared, *name) || map_contains(&taken, *name))
        *name = str_format(module->context, "%s_", *name);
      map_put(&taken, *name, (intptr_t)1);
      renamed = true;
    }
  return renamed;
}

const char *llvm_module_text(Context *context, const TargetUnit *unit, const TargetOptions *options,
                             const LlvmPrograms *whole, LlvmOutput output) {
  Arena *arena = &context->scratch;
  LlvmModule module = {.context = context, .arena = arena, .machine = options->machine};
  module.features = target_features(options->machine);
  module.features.dot_vector_bytes = module.features.vector_bytes;
  module.report = options->report ? options->report : arena_new(arena, TargetReport);
  TargetReport as_given = *module.report;
  module.globals = text_new(arena);
  module.functions = text_new(arena);
  module.declarations = text_new(arena);
  module.metadata = text_new(arena);
  module.declared = map_new(arena);
  module.coefficients = map_new(arena);
  module.local = whole != NULL;
  module.annotate = options->annotate;
  module.positions = options->annotate && output == LLVM_OUTPUT_ASSEMBLY;
  for (int k = 0; k < unit->kernel_count; k++) {
    TargetReport before = *module.report;
    for (int t = 0; t < unit->kernels[k]->region_count; t++)
      module_add_region(&module, unit->kernels[k], &unit->kernels[k]->regions[t]);
    target_report_kernel(options, k, &before, module.report);
  }
  if (whole) add_programs(&module, whole);
  TargetReport with_all = *module.report;
  *module.report = as_given;
  if (rename_called(&module, unit)) return llvm_module_text(context, unit, options, whole, output);
  *module.report = with_all;
  Text text = text_new(arena);
  text_printf(&text, "source_filename = \"%s\"\ntarget triple = \"x86_64-unknown-linux-gnu\"\n",
              unit->name);
  text_printf(&text, "%s%s%s%s%s", text_string(&module.globals), text_string(&module.functions),
              text_string(&module.declarations), attributes(&module),
              text_string(&module.metadata));
  return text_string(&text);
}
