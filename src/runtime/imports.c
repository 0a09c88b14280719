// SPDX-License-Identifier: Apache-2.0
// Holds the functions of the C library that compiled code may call: mathematical functions that the
// code generators do not expand, and those to which a code generator turns loops and operations.
#include "runtime/code.h"

#include <dlfcn.h>
#include <math.h>

typedef struct ImportedFunction {
  const char *name;
  void *address;
} ImportedFunction;

#define ONE(name)                                                                                  \
  { #name, (void *)name }
// A function of doubles, and the same of floats.
#define BOTH(name) ONE(name), ONE(name##f)

static const ImportedFunction imports[] = {
    BOTH(acos),   BOTH(acosh), BOTH(asin),  BOTH(asinh),     BOTH(atan),      BOTH(atan2),
    BOTH(atanh),  BOTH(cbrt),  BOTH(ceil),  BOTH(cos),       BOTH(cosh),      BOTH(erf),
    BOTH(erfc),   BOTH(exp),   BOTH(exp2),  BOTH(expm1),     BOTH(fabs),      BOTH(floor),
    BOTH(fma),    BOTH(fmax),  BOTH(fmin),  BOTH(fmod),      BOTH(hypot),     BOTH(ldexp),
    BOTH(log),    BOTH(log10), BOTH(log1p), BOTH(log2),      BOTH(nearbyint), BOTH(nextafter),
    BOTH(pow),    BOTH(rint),  BOTH(round), BOTH(roundeven), BOTH(sin),       BOTH(sinh),
    BOTH(sqrt),   BOTH(tan),   BOTH(tanh),  BOTH(tgamma),    BOTH(trunc),     ONE(memcpy),
    ONE(memmove), ONE(memset),
};

void *code_function_address(const char *name) {
  for (int i = 0; i < COUNT_OF(imports); i++)
    if (!strcmp(imports[i].name, name)) return imports[i].address;
  return dlsym(RTLD_DEFAULT, name);
}
