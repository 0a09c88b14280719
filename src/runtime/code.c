// SPDX-License-Identifier: Apache-2.0
// Calls regions of code, of whatever kind the code is.
#include "runtime/code.h"

CodeRegion code_region(CompiledCode *code, const char *name) {
  return (CodeRegion){code, code->find(code, name)};
}

const char *code_region_run(const CodeRegion *region, void *const *args, int64_t begin,
                            int64_t end) {
  CompiledCode *code = region->code;
  union { // a data pointer as a function pointer, as POSIX allows
    void *data;
    CodeFunction call;
  } function = {region->handle};
  if (code->run) return code->run(code, region->handle, args, begin, end);
  function.call(args, begin, end);
  return NULL;
}

bool code_region_is_whole(const CodeRegion *region) {
  return region->code->whole;
}

void code_free(CompiledCode *code) {
  if (code) code->free(code);
}
