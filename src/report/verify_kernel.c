// SPDX-License-Identifier: Apache-2.0
// Verifies tensor programs: as compiled and scheduled, against the interpreter's run of the program
// as it is written.
#include "report/verify.h"

static InterpTensor *copy_arguments(Context *context, const InterpTensor *args, int count) {
  InterpTensor *copies = arena_copy(&context->arena, args, sizeof *args * (size_t)count);
  for (int i = 0; i < count; i++) {
    size_t bytes = (size_t)interp_tensor_bytes(&args[i]);
    copies[i].data = memcpy(arena_alloc(&context->arena, bytes + 64), args[i].data, bytes);
  }
  return copies;
}

// The parameter as it is compared. One with gaps is a row of all elements of its memory.
static PleatVerifiedTensor parameter_of(const Kernel *kernel, int number, int param,
                                        const InterpTensor *arg, int64_t *count) {
  const PrimFunc *func = kernel->func;
  const Buffer *buffer = func->buffers[param];
  bool plain = buffer && !arg->strides && !arg->offset && buffer->type.lanes == 1;
  return (PleatVerifiedTensor){.name = buffer ? buffer->name : func->params[param]->as.var->name,
                               .function = func->name,
                               .kernel = number,
                               .is_output = (kernel->access[param] & PARAM_WRITTEN) != 0,
                               .rank = plain ? arg->rank : 1,
                               .shape = plain ? arg->shape : count};
}

static bool compare(VerifyTask *v, const Kernel *kernel, int number, const InterpTensor *expected,
                    const InterpTensor *actual) {
  bool agree = true;
  for (int i = 0; i < kernel->func->param_count && (agree || v->whole); i++) {
    DType type = dtype_lanes(expected[i].type, 1);
    int64_t count = interp_tensor_bytes(&expected[i]) / dtype_bytes(type);
    const Expected wanted = {.value = expected[i].data};
    const PleatVerifiedTensor about = parameter_of(kernel, number, i, &expected[i], &count);
    Difference d;
    agree &= values_agree(type, &wanted, actual[i].data, count, &v->tolerance, &d);
    verify_note(v, &about, &d);
  }
  return agree;
}

bool verify_kernel(VerifyTask *v, const Module *module, const Kernel *kernel, KernelCode *code,
                   int number, InterpTensor *args) {
  int count = kernel->func->param_count;
  InterpTensor *expected = copy_arguments(v->context, args, count);
  v->data.reference = "the interpreter";
  v->data.kernel_count++;
  return interp_run(v->context, module, kernel->host ? kernel->func : kernel->written, expected,
                    count, NULL) &&
         kernel_code_run(code, number, v->pool, args) && compare(v, kernel, number, expected, args);
}
