// SPDX-License-Identifier: Apache-2.0
// Makes and frees compiled programs.
#include "runtime/compiled.h"

#include <stdatomic.h>

static void make(void *arg) {
  CompiledProgram **program = arg;
  Context *context = (*program)->context;
  *program = arena_copy(&context->lasting, *program, sizeof **program);
}

CompiledProgram *compiled_program_new(void) {
  CompiledProgram empty = {.context = context_new(), .references = 1}, *program = &empty;
  if (!empty.context) return NULL;
  if (context_protect(empty.context, make, &program)) return program;
  context_free(empty.context);
  return NULL;
}

void compiled_program_set_mapped(CompiledProgram *program) {
  program->pages = weight_pages_new(program->weights, (size_t)program->weight_bytes);
}

typedef struct KnownContents {
  CompiledProgram *program;
  int input;
  const void *contents;
} KnownContents;

static void set_known(void *arg) {
  const KnownContents *known = arg;
  CompiledProgram *p = known->program;
  size_t bytes = (size_t)argument_bytes(&p->inputs[known->input]);
  p->known[known->input] = arena_copy(&p->context->lasting, known->contents, bytes);
}

bool compiled_program_set_known(CompiledProgram *program, int input, const void *contents) {
  KnownContents known = {program, input, contents};
  return context_protect(program->context, set_known, &known);
}

Tensor *compiled_input_new(const CompiledProgram *program, int input, const uint64_t *seed) {
  const ArgumentSpec *spec = &program->inputs[input];
  Tensor *tensor = tensor_new(spec->type, spec->shape, spec->rank);
  if (!tensor) return NULL;
  if (program->known[input])
    memcpy(tensor->data, program->known[input], (size_t)tensor_bytes(tensor));
  else if (seed)
    tensor_fill_random(tensor, *seed);
  else
    memset(tensor->data, 0, (size_t)tensor_bytes(tensor));
  return tensor;
}

CompiledProgram *compiled_program_keep(CompiledProgram *program) {
  atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
  return program;
}

void compiled_program_release(CompiledProgram *program) {
  if (!program || atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) > 1)
    return;
  for (int i = 0; i < program->step_count; i++) opaque_code_release(program->steps[i].opaque);
  code_free(program->code);
  weight_pages_free(program->pages);
  if (program->release) program->release(program->owner);
  context_free(program->context);
}
