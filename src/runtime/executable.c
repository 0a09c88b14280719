// SPDX-License-Identifier: Apache-2.0
// Runs compiled programs: allocates the arena, sets the pointers of every step, checks the
// arguments of a run and copies those with gaps, and starts the regions in their order.
#include "runtime/compiled.h"

#include <stdlib.h>

// A pointer of a step that each run sets.
typedef struct BoundPointer {
  void **pointer;
  CompiledAddress address; // of an input or an output
} BoundPointer;

struct Executable {
  Context *context;
  CompiledProgram *program;
  char *arena;
  void ***args;      // by step: one pointer for each argument
  BoundPointer *bound;
  int bound_count;
  Tensor **compact;  // by input, then by output: memory for one with gaps, made when it is needed
  const void **data; // likewise: the first element, in the current run
};

// ---- Making

static void *fixed_address(const Executable *e, CompiledAddress address) {
  switch (address.kind) {
  case ADDRESS_CONSTANT: return (void *)e->program->constants[address.number].data;
  case ADDRESS_ARENA: return e->arena + address.number;
  case ADDRESS_INPUT:
  case ADDRESS_OUTPUT: break; // set at each run
  }
  return NULL;
}

static void set_pointer(Executable *e, void **pointer, CompiledAddress address) {
  *pointer = fixed_address(e, address);
  if (address.kind == ADDRESS_INPUT || address.kind == ADDRESS_OUTPUT)
    e->bound[e->bound_count++] = (BoundPointer){pointer, address};
}

// The pointers of all steps are one block, which begins with a pointer to those of each step.
static bool make_args(Executable *e) {
  const CompiledProgram *p = e->program;
  size_t count = 0;
  for (int i = 0; i < p->step_count; i++) count += (size_t)p->steps[i].arg_count;
  e->args = calloc((size_t)p->step_count + count + 1, sizeof(void *));
  e->bound = calloc(count + 1, sizeof *e->bound);
  if (!e->args || !e->bound) return false;
  void **next = (void **)(e->args + p->step_count);
  for (int i = 0; i < p->step_count; i++) {
    const CompiledStep *step = &p->steps[i];
    e->args[i] = next;
    for (int k = 0; k < step->arg_count; k++) set_pointer(e, next++, step->args[k]);
  }
  return true;
}

static int argument_count(const Executable *e) {
  return e->program->input_count + e->program->output_count;
}

static bool make_copies(Executable *e) {
  e->compact = calloc((size_t)argument_count(e) + 1, sizeof *e->compact);
  e->data = calloc((size_t)argument_count(e) + 1, sizeof *e->data);
  return e->compact && e->data;
}

// Has each call its function? A program that was read gets them afterwards.
static void check_calls(Context *context, const CompiledProgram *program) {
  for (int i = 0; i < program->step_count; i++)
    if (program->steps[i].record && !program->steps[i].opaque)
      bug(context, "the function of the call '%s' is not bound", program->steps[i].name);
}

Executable *executable_of(Context *context, CompiledProgram *program) {
  check_calls(context, program);
  Executable *e = calloc(1, sizeof *e);
  if (e) {
    *e = (Executable){.context = context, .program = compiled_program_keep(program)};
    e->arena = memory_alloc((size_t)program->arena_bytes + TENSOR_ALIGNMENT);
    if (e->arena && make_args(e) && make_copies(e)) return e;
  }
  executable_free(e);
  diag_error(context, (SourcePos){NULL}, "not enough memory for the intermediate tensors");
  return NULL;
}

void executable_report_to(Executable *e, Context *context) {
  e->context = context;
}

void executable_free(Executable *e) {
  if (!e) return;
  for (int i = 0; e->compact && i < argument_count(e); i++) tensor_free(e->compact[i]);
  free(e->compact);
  free(e->data);
  compiled_program_release(e->program);
  memory_free(e->arena);
  free(e->args);
  free(e->bound);
  free(e);
}

// ---- Running

static bool check_arguments(Executable *e, Tensor *const *inputs, Tensor *const *outputs) {
  const CompiledProgram *p = e->program;
  char message[512];
  return (arguments_check(p->name, p->inputs, p->input_count, inputs, p->input_count, message,
                          sizeof message) &&
          outputs_check(p->name, p->outputs, p->output_count, outputs, p->output_count, message,
                        sizeof message)) ||
         diag_error(e->context, (SourcePos){NULL}, "%s", message);
}

static const ArgumentSpec *argument_spec(const Executable *e, int number) {
  const CompiledProgram *p = e->program;
  return number < p->input_count ? &p->inputs[number] : &p->outputs[number - p->input_count];
}

// Does the code access the elements in a copy, without gaps and aligned?
static bool needs_copy(const Executable *e, int number, const Tensor *tensor) {
  const ArgumentSpec *spec = argument_spec(e, number);
  return spec->any_strides &&
         !(tensor_is_compact(tensor) && argument_is_aligned(spec, tensor_data(tensor)));
}

// Finds the memory of argument `number`: its own, or that of a copy when it has gaps. Code that is
// made for strides or an offset gets the start of the memory.
static bool find_data(Executable *e, int number, const Tensor *tensor, bool is_input) {
  Tensor **copy = &e->compact[number];
  e->data[number] = argument_spec(e, number)->any_strides ? tensor_data(tensor) : tensor->data;
  if (!needs_copy(e, number, tensor)) return true;
  if (!*copy) *copy = tensor_new(tensor->type, tensor->shape, tensor->rank);
  if (!*copy)
    return diag_error_as(e->context, DIAG_MEMORY, (SourcePos){NULL},
                         "not enough memory for a copy of a tensor whose elements have gaps");
  e->data[number] = (*copy)->data;
  if (is_input) tensor_copy(*copy, tensor);
  return true;
}

static bool check_known(const Executable *e, int input) {
  const CompiledProgram *p = e->program;
  const ArgumentSpec *spec = &p->inputs[input];
  return !p->known[input] ||
         memcmp(p->known[input], e->data[input], (size_t)argument_bytes(spec)) == 0 ||
         diag_error(e->context, (SourcePos){NULL},
                    "input '%s' holds other values than those that the model was compiled for",
                    spec->name);
}

static void bind_arguments(Executable *e) {
  const void **outputs = e->data + e->program->input_count;
  for (int i = 0; i < e->bound_count; i++) {
    CompiledAddress address = e->bound[i].address;
    const void **data = address.kind == ADDRESS_INPUT ? e->data : outputs;
    *e->bound[i].pointer = (char *)data[address.number] + address.offset;
  }
}

static void poison(Executable *e) {
  const CompiledProgram *p = e->program;
  if (!memory_poisons()) return;
  memory_poison(e->arena, p->arena_bytes);
  for (int i = 0; i < p->output_count; i++)
    if (!p->outputs[i].is_read)
      memory_poison((void *)e->data[p->input_count + i], argument_bytes(&p->outputs[i]));
}

static bool begin_run(Executable *e, Tensor *const *inputs, Tensor *const *outputs) {
  const CompiledProgram *p = e->program;
  if (!check_arguments(e, inputs, outputs)) return false;
  weight_pages_note_run(p->pages);
  for (int i = 0; i < p->input_count; i++)
    if (!find_data(e, i, inputs[i], true) || !check_known(e, i)) return false;
  for (int i = 0; i < p->output_count; i++)
    if (!find_data(e, p->input_count + i, outputs[i], p->outputs[i].is_read)) return false;
  poison(e);
  bind_arguments(e);
  for (int i = 0; i < p->guard_count; i++) guards_clear(e->arena + p->guards[i].offset, 1);
  return true;
}

// Reports an access that was out of bounds. The outputs are then not complete.
static bool check_guards(Executable *e) {
  const CompiledProgram *p = e->program;
  int found = 0;
  while (found < p->guard_count && guards_find(e->arena + p->guards[found].offset, 1) < 0) found++;
  if (found == p->guard_count) return true;
  ArenaMark mark = arena_mark(&e->context->scratch);
  const CompiledGuard *guard = &p->guards[found];
  const char *note = e->arena + guard->offset;
  diag_error_as(e->context, DIAG_ARGUMENT, (SourcePos){NULL}, "%s",
                guard_text(&e->context->scratch, guard->access, guard->axis, note, 0));
  arena_reset(&e->context->scratch, mark);
  return false;
}

static bool end_run(Executable *e, Tensor *const *outputs) {
  int first = e->program->input_count;
  for (int i = 0; i < e->program->output_count; i++)
    if (needs_copy(e, first + i, outputs[i])) tensor_copy(outputs[i], e->compact[first + i]);
  return check_guards(e);
}

// Runs opaque code in the thread of the caller, which is one chunk.
static bool run_opaque(const Executable *e, int number, OnSpan on_span, void *env) {
  ChunkSpan span = {.step = number, .end = 1, .start_ns = clock_now_ns()};
  bool done = opaque_code_run(e->context, e->program->steps[number].opaque, e->args[number]);
  span.end_ns = clock_now_ns();
  if (on_span) on_span(env, &span);
  return done;
}

static bool run_region(const Executable *e, int number, int region, ThreadPool *pool,
                       OnSpan on_span, void *env) {
  const CompiledStep *step = &e->program->steps[number];
  CodeRegion code = {e->program->code, step->regions[region].handle};
  int64_t extent = step->regions[region].extent, chunks = step->regions[region].chunks;
  RegionRun run = {.code = code,
                   .extent = extent,
                   .chunks = chunks,
                   .args = e->args[number],
                   .step = number,
                   .region = region,
                   .on_span = on_span,
                   .env = env};
  // The kernels of a small model are as short as a call through a pool.
  const char *failure = chunks == 1 && !on_span ? code_region_run(&code, run.args, 0, extent)
                                                : region_run(&run, pool);
  return !failure || diag_error(e->context, (SourcePos){NULL}, "'%s': %s", step->name, failure);
}

static bool run_step(const Executable *e, int number, ThreadPool *pool, OnSpan on_span, void *env) {
  const CompiledStep *step = &e->program->steps[number];
  if (step->opaque) return run_opaque(e, number, on_span, env);
  for (int i = 0; i < step->region_count; i++)
    if (!run_region(e, number, i, pool, on_span, env)) return false;
  return true;
}

// Do all conditions of the step hold? One that is not known yet comes after one that does not hold.
static bool is_needed(const Executable *e, int number) {
  const CompiledStep *step = &e->program->steps[number];
  for (int i = 0; i < step->condition_count; i++) {
    CompiledAddress at = step->conditions[i].address;
    const bool *held = at.kind == ADDRESS_INPUT ? e->data[at.number] : fixed_address(e, at);
    if (*held != step->conditions[i].value) return false;
  }
  return true;
}

bool executable_spans(Executable *e, ThreadPool *pool, Tensor *const *inputs,
                      Tensor *const *outputs, OnSpan on_span, void *env) {
  if (!begin_run(e, inputs, outputs)) return false;
  for (int i = 0; i < e->program->step_count; i++)
    if (is_needed(e, i) && !run_step(e, i, pool, on_span, env)) return false;
  return end_run(e, outputs);
}

bool executable_run(Executable *e, ThreadPool *pool, Tensor *const *inputs,
                    Tensor *const *outputs) {
  return executable_spans(e, pool, inputs, outputs, NULL, NULL);
}

bool executable_profile(Executable *e, ThreadPool *pool, Tensor *const *inputs,
                        Tensor *const *outputs, int64_t *ns) {
  if (!begin_run(e, inputs, outputs)) return false;
  int64_t before = clock_now_ns();
  for (int i = 0; i < e->program->step_count; i++) {
    if (!is_needed(e, i)) continue;
    if (!run_step(e, i, pool, NULL, NULL)) return false;
    int64_t now = clock_now_ns();
    ns[i] += now - before;
    before = now;
  }
  return end_run(e, outputs);
}

bool executable_trace(Executable *e, ThreadPool *pool, Tensor *const *inputs,
                      Tensor *const *outputs, AfterStep after, void *env) {
  if (!begin_run(e, inputs, outputs)) return false;
  for (int i = 0; i < e->program->step_count; i++) {
    if (!run_step(e, i, pool, NULL, NULL) || !after(env, i)) return false;
  }
  return end_run(e, outputs);
}

const void *executable_argument(const Executable *e, int step, int arg) {
  return e->args[step][arg];
}
