// SPDX-License-Identifier: Apache-2.0
// Runs code outside of a compiled program.
#include "runtime/opaque.h"

#include <stdatomic.h>

OpaqueCode *opaque_code_keep(OpaqueCode *code) {
  atomic_fetch_add_explicit(&code->references, 1, memory_order_relaxed);
  return code;
}

void opaque_code_release(OpaqueCode *code) {
  if (code && atomic_fetch_sub_explicit(&code->references, 1, memory_order_acq_rel) == 1)
    code->free(code);
}

static bool fail(Context *context, const OpaqueCode *code, const char *message) {
  return diag_error_as(context, DIAG_ARGUMENT, (SourcePos){.node = code->node},
                       "the function '%s' failed%s%s", code->function, *message ? ": " : "",
                       message);
}

static OpaqueStatus run(Context *context, const OpaqueCode *code, void *const *data,
                        char *message) {
  ArenaMark mark = arena_mark(&context->scratch);
  Tensor *tensors = arena_array(&context->scratch, Tensor, code->count);
  for (int i = 0; i < code->count; i++) {
    const ArgumentSpec *spec = &code->specs[i];
    if (spec->rank != OPAQUE_ABSENT)
      tensors[i] = tensor_over(data[i], spec->type, (int64_t *)spec->shape, spec->rank);
  }
  OpaqueStatus status = code->run(code, tensors, message);
  arena_reset(&context->scratch, mark);
  return status;
}

bool opaque_code_run(Context *context, const OpaqueCode *code, void *const *data) {
  char message[OPAQUE_MESSAGE_SIZE] = "";
  OpaqueStatus status = run(context, code, data, message);
  if (status == OPAQUE_CANCELLED) context_cancel(context);
  return status == OPAQUE_DONE || fail(context, code, message);
}
