// SPDX-License-Identifier: Apache-2.0
// A unit as one C file. As in the LLVM target, each task is a function that takes `args` apart and
// another whose pointers are `restrict`.
#include "target/c/emit.h"

#include "target/c/rows.h"

typedef struct Parameters {
  Text definition, call;
} Parameters;

static CEmit emit_new(CUnit *unit) {
  CEmit emit = {.unit = unit, .context = unit->context, .arena = unit->arena, .indent = 1};
  emit.body = text_new(unit->arena);
  emit.texts = map_new(unit->arena);
  emit.names = map_new(unit->arena);
  emit.taken = map_new(unit->arena);
  emit.mask_bits = map_new(unit->arena);
  emit.registers = map_new(unit->arena);
  static const char *const reserved[] = {"args",   "begin",    "end",   "int",   "float",  "double",
                                         "char",   "long",     "short", "bool",  "for",    "if",
                                         "else",   "while",    "do",    "break", "return", "const",
                                         "static", "restrict", "inline", "void", "goto",   "case",
                                         "switch", "default",  "sizeof", "auto", "register",
                                         "signed", "unsigned", "struct", "union", "enum",
                                         "typedef", "extern", "volatile", "continue", "true",
                                         "false"};
  for (int i = 0; i < COUNT_OF(reserved); i++)
    map_put(&emit.taken, str_intern(unit->context, reserved[i]), "");
  return emit;
}

static void add_pointer(CEmit *emit, Parameters *parameters, const Expr *data, DType element,
                        const char *pointer) {
  const char *type = c_memory_type(emit->unit, element);
  text_printf(&parameters->definition, "%s *restrict %s, ", type, c_name(emit, data));
  text_printf(&parameters->call, "%s, ", pointer);
}

static void add_scalar(CEmit *emit, Parameters *parameters, const LowerArg *arg, int i) {
  DType type = arg->var->type;
  text_printf(&parameters->definition, "%s %s, ", c_type(emit->unit, type),
              c_name(emit, arg->var));
  const char *value = c_text(emit, "*(const %s *)args[%d]", c_memory_type(emit->unit, type), i);
  text_printf(&parameters->call, "%s, ", value);
}

// Offsets are over scalar parameters, which the wrapper has as locals of their names.
static void add_slots(CEmit *emit, CEmit *wrapper, Parameters *parameters,
                      const LowerKernel *kernel) {
  for (int i = 0; i < kernel->slot_count; i++) {
    const LowerSlot *slot = &kernel->slots[i];
    const char *offset = c_index(wrapper, slot->offset);
    const char *pointer = c_text(emit, "(void *)((char *)args[%d] + %s)", kernel->arg_count, offset);
    add_pointer(emit, parameters, slot->data, slot->data->as.var->pointee, pointer);
  }
}

static void bind_scalars(CEmit *wrapper, const LowerKernel *kernel) {
  for (int i = 0; kernel->slot_count && i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    if (arg->kind == LOWER_ARG_TENSOR) continue;
    const char *name = c_name(wrapper, arg->var), *type = c_type(wrapper->unit, arg->var->type);
    const char *memory = c_memory_type(wrapper->unit, arg->var->type);
    c_line(wrapper, "const %s %s = *(const %s *)args[%d];", type, name, memory, i);
    c_line(wrapper, "(void)%s;", name);
  }
}

static Parameters parameters_of(CEmit *emit, CEmit *wrapper, const LowerKernel *kernel) {
  Parameters parameters = {text_new(emit->arena), text_new(emit->arena)};
  bind_scalars(wrapper, kernel);
  for (int i = 0; i < kernel->arg_count; i++) {
    const LowerArg *arg = &kernel->args[i];
    if (arg->kind != LOWER_ARG_TENSOR) add_scalar(emit, &parameters, arg, i);
    else
      add_pointer(emit, &parameters, arg->buffer->data, arg->buffer->type,
                  c_text(emit, "args[%d]", i));
  }
  add_slots(emit, wrapper, &parameters, kernel);
  return parameters;
}

static void add_task(CUnit *unit, const LowerKernel *kernel, const LowerTask *task) {
  CEmit emit = emit_new(unit), wrapper = emit_new(unit);
  map_put(&emit.names, task->begin, "begin");
  map_put(&emit.names, task->end, "end");
  Parameters parameters = parameters_of(&emit, &wrapper, kernel);
  c_stmt(&emit, target_legalize(unit->context, task->body, &unit->features, unit->report));
  text_printf(&unit->functions,
              "\nstatic __attribute__((noinline)) void %s_body(%sint64_t begin, int64_t end) {\n"
              "%s}\n",
              task->name, text_string(&parameters.definition), text_string(&emit.body));
  text_printf(&unit->functions,
              "\nvoid %s(void *const *args, int64_t begin, int64_t end) {\n%s"
              "  %s_body(%sbegin, end);\n}\n",
              task->name, text_string(&wrapper.body), task->name, text_string(&parameters.call));
}

static const char head[] =
    "#include <stdbool.h>\n#include <stdint.h>\n\n"
    "#if defined(__clang__)\n"
    "#pragma clang fp contract(fast)\n"
    "#pragma clang diagnostic ignored \"-Wunknown-pragmas\"\n"
    "#elif defined(__GNUC__)\n"
    "#pragma GCC diagnostic ignored \"-Wpsabi\"\n"
    "#pragma GCC optimize(\"no-math-errno\", \"no-trapping-math\")\n"
    "#endif\n\n";

static const char *unit_text(Context *context, const TargetUnit *unit,
                             const TargetOptions *options) {
  Arena *arena = &context->scratch;
  CUnit c = {.context = context, .arena = arena, .declared = map_new(arena)};
  c.types = text_new(arena);
  c.helpers = text_new(arena);
  c.functions = text_new(arena);
  c.features = target_features(options->machine);
  c.features.half_conversion = c.features.rounding = false; // C has no vector form of either
  c.report = options->report ? options->report : arena_new(arena, TargetReport);
  for (int k = 0; k < unit->kernel_count; k++)
    for (int t = 0; t < unit->kernels[k]->task_count; t++)
      add_task(&c, unit->kernels[k], &unit->kernels[k]->tasks[t]);
  const char *march = options->machine && options->machine->march[0] ? options->machine->march : "";
  return arena_printf(arena, "// %s: compile with -O2 -Wno-psabi %s\n%s%s\n%s%s", unit->name, march, head,
                      text_string(&c.types), text_string(&c.helpers), text_string(&c.functions));
}

bool c_target_emit(Context *context, const TargetUnit *unit, const TargetOptions *options,
            const char *ending, Text *out) {
  text_puts(out, unit_text(context, unit, options));
  return true;
}

