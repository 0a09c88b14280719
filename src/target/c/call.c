// SPDX-License-Identifier: Apache-2.0
// Writes NAME_call as C: the checks of its arguments, one by one, and the call of NAME_run.
#include "target/c/emit.h"
#include "target/checks.h"
#include "target/header.h"

static const char *value_of(Arena *arena, const TargetCheck *check) {
  static const char *const fields[] = {
      [TARGET_CHECK_DEVICE] = "device_type", [TARGET_CHECK_RANK] = "rank",
      [TARGET_CHECK_CODE] = "code",          [TARGET_CHECK_BITS] = "bits",
      [TARGET_CHECK_LANES] = "lanes",
  };
  const char *t = arena_printf(arena, "tensors[%d]", check->argument);
  switch (check->value) {
  case TARGET_CHECK_DEVICE:
  case TARGET_CHECK_RANK:
  case TARGET_CHECK_CODE:
  case TARGET_CHECK_BITS:
  case TARGET_CHECK_LANES: break;
  case TARGET_CHECK_EXTENT: return arena_printf(arena, "%s->shape[%d]", t, check->axis);
  case TARGET_CHECK_STRIDE:
    return arena_printf(arena, "%s->strides ? %s->strides[%d] : %lld", t, t, check->axis,
                        (long long)check->expected);
  case TARGET_CHECK_NULL: return arena_printf(arena, "!%s->data", t);
  case TARGET_CHECK_ALIGN:
    return arena_printf(arena, "((uintptr_t)%s->data + %s->byte_offset) %% %lld", t, t,
                        (long long)check->unit);
  }
  return arena_printf(arena, "%s->%s", t, fields[check->value]);
}

static void write_checks(Context *context, CEmit *emit, const TargetProgram *p, const char *wrong) {
  Arena *arena = &context->scratch;
  TargetChecks checks = target_checks(context, p);
  int count = p->input_count + p->output_count;
  c_line(emit, "if (count != %d)", count);
  c_line(emit, "  return %s(fault, \"" TARGET_CHECK_COUNT_TEXT "\", %d, count);", wrong, count);
  for (int i = 0; i < count; i++) {
    c_line(emit, "if (!tensors[%d])", i);
    c_line(emit, "  return %s(fault, \"%s\", 0, 1);", wrong, target_check_absent(context, p, i));
  }
  for (int i = 0; i < checks.count; i++) {
    const TargetCheck *check = &checks.items[i];
    c_line(emit, "got = %s;", value_of(arena, check));
    c_line(emit, "if (got != %lld)", (long long)check->expected);
    c_line(emit, "  return %s(fault, \"%s\", %lld, got);", wrong, check->what,
           (long long)check->expected);
  }
}

// The pointers of NAME_run, which are not NULL; the memory of a tensor without elements may be.
static void write_pointers(CEmit *emit, const char *array, const char *type, int first, int count) {
  c_line(emit, "%s%s[%d];", type, array, MAX_OF(count, 1));
  c_line(emit, "for (int i = 0; i < %d; i++)", count);
  c_line(emit, "  %s[i] = tensors[%d + i]->data", array, first);
  c_line(emit, "    ? (char *)tensors[%d + i]->data + tensors[%d + i]->byte_offset : (char *)&got;",
         first, first);
}

void c_write_call(Context *context, CModule *module, const TargetProgram *program,
                  const ProgramHeader *header, Text *out) {
  CEmit emit = c_emit_new(module);
  const char *wrong = c_global_name(module, "wrong");
  c_line(&emit, "int64_t got = 0;");
  write_checks(context, &emit, program, wrong);
  write_pointers(&emit, "inputs", "const void *", 0, program->input_count);
  write_pointers(&emit, "outputs", "void *", program->input_count, program->output_count);
  c_line(&emit, "return %s_run(%sinputs, outputs, arena);", header->name,
         header->weights_file ? "weights, " : "");
  text_printf(out,
              "\nstatic int %s(%s_fault *fault, const char *what, int64_t expected, "
              "int64_t got) {\n"
              "  if (fault) *fault = (%s_fault){what, expected, got};\n  return 3;\n}\n\n",
              wrong, header->name, header->name);
  target_header_call(header, out);
  text_printf(out, " {\n%s}\n", text_string(&emit.body));
}
