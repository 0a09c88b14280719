// SPDX-License-Identifier: Apache-2.0
// Names options as the caller writes them.
#include "base/caller.h"

const char *caller_option(const Context *context, CallerOption option) {
  static const char *const names[][3] = {
      [CALLER_KEEP_LAYOUT] = {"--keep-layout", "keep_layouts", "keep_layouts="},
      [CALLER_INPUT_LAYOUT] = {"--input-layout", "input_layouts", "input_layouts="},
      [CALLER_KNOWN] = {"--input, or known= in Python", "known", "known="},
      [CALLER_TARGET] = {"--target", "target", "target="},
      [CALLER_WEIGHTS] = {"--emit-weights", "weights", "weights="},
      [CALLER_OPENMP] = {"--openmp", "openmp", "openmp="},
      [CALLER_LOWERED] = {"--lowered", "lowered", "lowered="},
      [CALLER_ANNOTATE] = {"--annotate", "annotate", "annotate="},
      [CALLER_OPERATORS] = {"--operators", "operators", "operators="},
      [CALLER_OFFLOAD] = {"--offload", "offload", "offload="},
  };
  return names[option][context->caller];
}

// A shape as Python writes it: (1, 3), (4,), () or "empty".
static const char *python_shape(Arena *arena, const char *shape) {
  bool is_word = *shape && strspn(shape, "0123456789x") != strlen(shape);
  if (is_word) return arena_printf(arena, "\"%s\"", shape);
  Text text = text_new(arena);
  int count = 0;
  for (const char *p = shape; *p; count++) {
    size_t n = strcspn(p, "x");
    text_printf(&text, "%s%.*s", count ? ", " : "", (int)n, p);
    p += n + (p[n] == 'x');
  }
  return arena_printf(arena, "(%s%s)", text_string(&text), count == 1 ? "," : "");
}

const char *caller_shape(Context *context, const char *name, const char *shape) {
  Arena *arena = &context->arena;
  switch (context->caller) {
  case CALLER_COMMAND: return arena_printf(arena, "--input-shape %s=%s", name, shape);
  case CALLER_C: return arena_printf(arena, "\"%s=%s\" in shapes", name, shape);
  case CALLER_PYTHON: break;
  }
  return arena_printf(arena, "shapes={\"%s\": %s}", name, python_shape(arena, shape));
}

const char *caller_size(Context *context, const char *name, int64_t size) {
  Text text = text_new(&context->arena);
  switch (context->caller) {
  case CALLER_COMMAND: text_printf(&text, "--dim %s=%lld", name, (long long)size); break;
  case CALLER_C: text_printf(&text, "\"%s=%lld\" in shapes", name, (long long)size); break;
  case CALLER_PYTHON: text_printf(&text, "shapes={\"%s\": %lld}", name, (long long)size); break;
  }
  return text_string(&text);
}
