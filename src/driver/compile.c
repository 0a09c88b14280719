// SPDX-License-Identifier: Apache-2.0
// Turns a program into a compiled program: makes its code, writes its weights, and describes its
// steps in the terms of the runtime, which knows nothing of plans and layouts.
#include "driver/driver.h"

typedef struct Compiling {
  Program *program;
  CompiledProgram *out;
  Arena *arena;        // of `out`
  int *constants;      // by slot: the number of its constant
  OpaqueCode **opaque; // by step: the code of a call; NULL for other steps, and once it is in `out`
  const char *error;   // when the parts cannot be described
} Compiling;

// ---- Code

bool compile_use_target(Context *context, const char *name, CompileOptions *options) {
  if (!target_named(context, name, &options->target)) return false;
  options->lower.device = options->target && target_is_device(options->target);
  if (options->lower.device) machine_use(&options->machine, "baseline");
  return true;
}

const TargetRow *compile_target(const CompileOptions *options) {
  return options->target ? options->target : target_for_running();
}

static void add_report(TargetReport *to, const TargetReport *from) {
  for (int i = 0; i < TARGET_COUNT_KINDS; i++) to->counts[i] += from->counts[i];
  to->seconds += from->seconds;
}

static CompiledCode *generate(Program *p, TargetReport *report) {
  if (p->loading) {
    CompiledCode *code = target_load_finish(p->loading);
    if (report) add_report(report, &p->target_report);
    return code;
  }
  TargetUnit unit = {p->name, p->kernels.items, p->kernels.count};
  TargetOptions options = {&p->options.machine, report, p->target_reports, p->options.quick,
                           p->options.cache};
  return target_load(p->context, compile_target(&p->options), &unit, &options);
}

// ---- Steps

static CompiledRegion region_of(Compiling *c, const LowerRegion *region) {
  CompiledRegion result = {.handle = code_region(c->out->code, region->name).handle};
  if (!result.handle) bug(c->program->context, "no code for '%s'", region->name);
  if (!expr_as_int(region->extent, &result.extent) || !expr_as_int(region->chunks, &result.chunks))
    c->error = region->name;
  return result;
}

static CompiledAddress address_of(const Compiling *c, int number) {
  const ProgramSlot *slot = &c->program->slots.items[number];
  switch (slot->kind) {
  case SLOT_INPUT: return (CompiledAddress){ADDRESS_INPUT, slot->number};
  case SLOT_OUTPUT: return (CompiledAddress){ADDRESS_OUTPUT, slot->number, slot->offset};
  case SLOT_CONSTANT: return (CompiledAddress){ADDRESS_CONSTANT, c->constants[number]};
  case SLOT_ARENA: break;
  }
  return (CompiledAddress){ADDRESS_ARENA, slot->offset};
}

typedef struct LoadCount {
  const Buffer *buffer;
  int loads; // of the buffer, in one iteration
} LoadCount;

static bool count_load(Visitor *visitor, Expr *e) {
  LoadCount *count = visitor->env;
  count->loads += e->op == EXPR_LOAD && e->as.buffer == count->buffer;
  return true;
}

// How many elements of the tensor the stage reads at most; negative: not known.
static double elements_read(const Stage *stage, const StageTensor *tensor) {
  double elements = 0;
  if (stage->te->program || stage->te->call) return -1;
  for (int i = 0; i < MAX_OF(stage->member_count, 1); i++) {
    const Stage *member = stage->member_count ? stage->members[i] : stage;
    LoadCount count = {tensor->buffer, 0};
    visit_expr(&(Visitor){.env = &count, .enter_expr = count_load}, member->te->value);
    double iterations = stage_iterations(member);
    if (count.loads && iterations < 0) return -1;
    elements += count.loads * iterations;
  }
  return elements;
}

// The bytes of a parameter that the kernel can access: a lookup reads few rows of its table.
static int64_t accessed_bytes(const PlanKernel *plan, const StageTensor *tensor, int64_t bytes) {
  double elements = 0;
  for (int i = 0; i < plan->stage_count; i++) {
    double read = elements_read(plan->stages[i], tensor);
    if (read < 0 || plan->stages[i]->output == tensor) return bytes;
    elements += read;
  }
  double accessed = elements * dtype_bytes(tensor->buffer->type);
  return elements > 0 ? (int64_t)MIN_OF(accessed, (double)bytes) : bytes;
}

// Describes what the step computes, for profiles.
static void set_figures(Compiling *c, const ProgramStep *from, CompiledStep *step) {
  const PlanKernel *plan = from->plan;
  step->name = str_intern(c->out->context, plan->name);
  step->slow = plan->choice.slow ? str_intern(c->out->context, plan->choice.slow) : NULL;
  step->kernel = from->kernel;
  for (int i = 0; i < plan->stage_count; i++) step->operations += stage_operations(plan->stages[i]);
  for (int i = 0; i < plan->params.count; i++)
    step->bytes +=
        accessed_bytes(plan, plan->params.items[i], c->program->slots.items[from->slots[i]].bytes);
}

// The address of a tensor of a call. An output that nothing reads is in the workspace, at
// *workspace, which is advanced; an absent input has no address that is used.
static CompiledAddress call_address(const Compiling *c, const ProgramStep *from, int tensor,
                                    const ArgumentSpec *specs, int64_t *workspace) {
  int param = from->plan->call->tensors[tensor] ? call_param(from->plan, tensor) : -1;
  if (param >= 0) return address_of(c, from->slots[param]);
  CompiledAddress address = {ADDRESS_ARENA, *workspace};
  if (specs[tensor].rank != OPAQUE_ABSENT)
    *workspace += call_unneeded_bytes(from->plan, specs, tensor);
  return address;
}

// The step of a call, whose code was bound before.
static CompiledStep call_of(Compiling *c, const ProgramStep *from, int number) {
  const OpaqueCall *call = from->plan->call;
  const ArgumentSpec *specs = call_specs(c->program->context, call, from->plan->way);
  CompiledStep step = {.arg_count = call->count, .opaque = c->opaque[number]};
  int64_t workspace = from->workspace;
  set_figures(c, from, &step);
  step.operations = 0;
  step.kernel = c->program->kernels.count + number;
  step.args = arena_array(c->arena, CompiledAddress, call->count);
  for (int i = 0; i < call->count; i++) step.args[i] = call_address(c, from, i, specs, &workspace);
  step.record = step.opaque->record;
  c->opaque[number] = NULL;
  return step;
}

// Devices hold conditions in memory of their own, so their steps always run.
static void set_conditions(const Compiling *c, const ProgramStep *from, CompiledStep *step) {
  const TargetRow *target = c->program->options.target;
  if (target && !target->level_flags) return;
  step->condition_count = from->condition_count;
  CompiledCondition *conditions = arena_array(c->arena, CompiledCondition, from->condition_count);
  for (int i = 0; i < from->condition_count; i++)
    conditions[i] =
        (CompiledCondition){address_of(c, from->conditions[i].slot), from->conditions[i].value};
  step->conditions = conditions;
}

// "kernel.py:7:13: A[idx[i], j]"
static const char *guard_access(Context *context, const AccessGuard *guard) {
  if (!guard->pos.file || !guard->pos.file->text) return str_intern(context, guard->access);
  DiagPlace place = diag_place(&(Diag){.pos = guard->pos});
  return str_format(context, "%s:%d:%d: %s", guard->pos.file->name, place.line, place.column,
                    guard->access);
}

void compiled_add_guards(CompiledProgram *out, const LowerKernel *kernel, int64_t workspace) {
  int count = kernel->guards ? kernel->guards->count : 0, first = out->guard_count;
  if (!count) return;
  CompiledGuard *guards = arena_array(&out->context->lasting, CompiledGuard, first + count);
  if (first) memcpy(guards, out->guards, sizeof *guards * (size_t)first);
  for (int i = 0; i < count; i++) {
    const AccessGuard *guard = &kernel->guards->items[i];
    guards[first + i] =
        (CompiledGuard){guard_access(out->context, guard), guard->axis,
                        workspace + kernel->guards_offset + i * (int64_t)sizeof(GuardNote)};
  }
  out->guards = guards;
  out->guard_count = first + count;
}

static CompiledStep step_of(Compiling *c, const ProgramStep *from, int number) {
  if (from->kernel < 0) return call_of(c, from, number);
  const LowerKernel *kernel = c->program->kernels.items[from->kernel];
  CompiledStep step = {.region_count = kernel->region_count, .arg_count = kernel->arg_count + 1};
  set_figures(c, from, &step);
  step.regions = arena_array(c->arena, CompiledRegion, step.region_count);
  step.args = arena_array(c->arena, CompiledAddress, step.arg_count);
  for (int i = 0; i < step.region_count; i++) step.regions[i] = region_of(c, &kernel->regions[i]);
  for (int i = 0; i < kernel->arg_count; i++) step.args[i] = address_of(c, from->slots[i]);
  step.args[kernel->arg_count] = (CompiledAddress){ADDRESS_ARENA, from->workspace};
  set_conditions(c, from, &step);
  compiled_add_guards(c->out, kernel, from->workspace);
  return step;
}

// ---- Constants and arguments

static void add_constants(Compiling *c) {
  const Program *p = c->program;
  CompiledProgram *out = c->out;
  out->constants = arena_array(c->arena, CompiledConstant, p->slots.count);
  c->constants = arena_array(c->arena, int, p->slots.count);
  for (int i = 0; i < p->slots.count; i++) {
    const ProgramSlot *slot = &p->slots.items[i];
    if (slot->kind != SLOT_CONSTANT) continue;
    c->constants[i] = out->constant_count;
    out->constants[out->constant_count++] =
        (CompiledConstant){(char *)out->weights + slot->offset, slot->bytes};
  }
}

static ArgumentSpec spec_of(Compiling *c, const Value *value, const Layout *layout) {
  Context *context = c->out->context;
  int64_t *shape = arena_array(c->arena, int64_t, PHYSICAL_MAX_RANK);
  ArgumentSpec spec = {
      .name = str_intern(context, value->name), .shape = shape, .any_strides = true};
  spec.rank = program_shape(value, layout, shape);
  element_type_parse(dtype_name(c->program->context, value->type), &spec.type);
  return spec;
}

static void add_arguments(Compiling *c) {
  const GraphFunc *graph = c->program->graph;
  const Plan *plan = c->program->plan;
  CompiledProgram *out = c->out;
  out->input_count = graph->param_count;
  out->output_count = graph->output_count;
  out->inputs = arena_array(c->arena, ArgumentSpec, out->input_count);
  out->outputs = arena_array(c->arena, ArgumentSpec, out->output_count);
  out->known = arena_array(c->arena, const void *, out->input_count);
  for (int i = 0; i < out->input_count; i++) {
    const ConstData *known = graph->params[i]->known;
    out->inputs[i] = spec_of(c, graph->params[i], plan_input_layout(plan, i));
    if (known && (int64_t)known->bytes == argument_bytes(&out->inputs[i]))
      out->known[i] = arena_copy(c->arena, known->data, known->bytes);
  }
  for (int i = 0; i < out->output_count; i++)
    out->outputs[i] = spec_of(c, graph->outputs[i], plan_output_layout(plan, i));
}

// ---- The whole program

static void describe(void *arg) {
  Compiling *c = arg;
  const Program *p = c->program;
  CompiledProgram *out = c->out;
  out->name = str_intern(out->context, p->graph->name);
  out->cpu = str_intern(out->context, p->options.machine.level_name);
  out->arena_bytes = p->arena_bytes;
  add_arguments(c);
  add_constants(c);
  out->steps = arena_array(c->arena, CompiledStep, p->steps.count);
  for (int i = 0; i < p->steps.count; i++)
    out->steps[out->step_count++] = step_of(c, &p->steps.items[i], i);
}

static bool fill_weights(const Program *p, CompiledProgram *out) {
  out->weight_bytes = p->weight_bytes;
  out->weights = memory_alloc((size_t)p->weight_bytes + TENSOR_ALIGNMENT);
  if (!out->weights)
    return diag_error_as(p->context, DIAG_MEMORY, p->graph->pos,
                         "not enough memory for the weights");
  out->release = memory_free;
  out->owner = out->weights;
  return program_fill_weights(p, out->weights);
}

static void release_calls(void *env) {
  const Compiling *c = env;
  for (int i = 0; i < c->program->steps.count; i++) opaque_code_release(c->opaque[i]);
}

// Makes the code of the calls of opaque operators, which is released with the context unless the
// compiled program takes it.
static bool bind_calls(Compiling *c) {
  Context *context = c->program->context;
  const Program *p = c->program;
  c->opaque = arena_array(&context->lasting, OpaqueCode *, p->steps.count);
  context_at_free(context, release_calls, arena_copy(&context->lasting, c, sizeof *c));
  for (int i = 0; i < p->steps.count; i++) {
    const PlanKernel *kernel = p->steps.items[i].plan;
    if (!kernel->call) continue;
    const ArgumentSpec *specs = call_specs(context, kernel->call, kernel->way);
    c->opaque[i] = kernel->call->function->bind(context, kernel->call, kernel->way, specs);
    if (!c->opaque[i]) return false;
  }
  return true;
}

// Makes the code first, because the memory that code generation takes is released before the
// weights are allocated.
static bool compile(Compiling *c, TargetReport *report) {
  Program *p = c->program;
  arena_free_spare(p->context);
  c->out->code = generate(p, report);
  if (!c->out->code || !bind_calls(c) || !fill_weights(p, c->out)) return false;
  if (!context_protect(c->out->context, describe, c))
    return diag_error(p->context, p->graph->pos, "not enough memory for the compiled program");
  return !c->error ||
         diag_error(p->context, p->graph->pos, "'%s' has a size that is not known", c->error);
}

static void release_held(void *held) {
  compiled_program_release(*(CompiledProgram **)held);
}

CompiledProgram **compiled_program_hold(Context *context) {
  CompiledProgram **held = arena_new(&context->lasting, CompiledProgram *);
  context_at_free(context, release_held, held);
  *held = compiled_program_new();
  if (!*held) diag_error_as(context, DIAG_MEMORY, (SourcePos){NULL}, "not enough memory");
  return held;
}

CompiledProgram *program_compile(Program *program, TargetReport *report) {
  CompiledProgram **held = compiled_program_hold(program->context);
  Compiling c = {.program = program, .out = *held};
  if (!c.out) return NULL;
  c.arena = &c.out->context->lasting;
  if (!compile(&c, report)) return NULL;
  *held = NULL;
  return c.out;
}

Executable *executable_new(Program *program, TargetReport *report) {
  CompiledProgram *compiled = program_compile(program, report);
  Executable *executable = compiled ? executable_of(program->context, compiled) : NULL;
  compiled_program_release(compiled);
  return executable;
}
