// SPDX-License-Identifier: Apache-2.0
// Writes the header of a program: its tensors and their sizes, the arena, and the functions.
#include "target/header.h"

#include "runtime/guards.h"
#include "script/script.h"

#include <ctype.h>
#include <unistd.h>

static const char *target_upper(Arena *arena, const char *name) {
  char *text = arena_printf(arena, "%s", name);
  for (char *c = text; *c; c++) *c = (char)toupper((unsigned char)*c);
  return text;
}

// The elements from where the pointer to a tensor counts to its last one; -1 where they are not
// constant, or stand before the first one.
static int64_t tensor_span(const TargetTensor *tensor) {
  int64_t count = 1, reach = 0, offset = 0, extent, stride = 0;
  for (int i = 0; i < tensor->rank; i++) {
    if (!expr_as_int(tensor->shape[i], &extent)) return -1;
    if (tensor->strides && (!expr_as_int(tensor->strides[i], &stride) || stride < 0)) return -1;
    count *= extent;
    reach += stride * (extent - 1);
  }
  if (tensor->offset && !expr_as_int(tensor->offset, &offset)) return -1;
  if (!count) return 0;
  return offset + (tensor->strides ? reach + 1 : count);
}

static int64_t tensor_bytes(const TargetTensor *tensor) {
  int64_t span = tensor_span(tensor);
  return span * (span < 0 ? 1 : dtype_bytes(tensor->type) * MAX_OF(tensor->type.lanes, 1));
}

static void print_extent(Context *context, const Expr *extent, Text *out) {
  int64_t known;
  if (expr_as_int(extent, &known))
    text_printf(out, "%lld", (long long)known);
  else
    text_puts(out, script_expr_text(context, extent));
}

static void describe(Context *context, const char *upper, const char *kind,
                     const TargetTensor *tensors, int count, Text *out) {
  for (int i = 0; i < count; i++) {
    const TargetTensor *t = &tensors[i];
    int64_t bytes = tensor_bytes(t);
    text_printf(out, "// %ss[%d] '%s': %s [", kind, i, t->name, dtype_name(context, t->type));
    for (int k = 0; k < t->rank; k++) {
      text_puts(out, k ? ", " : "");
      print_extent(context, t->shape[k], out);
    }
    text_printf(out, "], %s\n", t->layout ? t->layout : "row-major");
    if (t->is_known)
      text_puts(out, "// It must hold the contents with which the model was compiled.\n");
    if (bytes >= 0)
      text_printf(out, "#define %s_%s_%d_BYTES %lld\n", upper,
                  target_upper(&context->scratch, kind), i, (long long)bytes);
  }
}

static void describe_sizes(const TargetProgram *p, Text *out) {
  for (int i = 0; i < p->size_count; i++) {
    const TargetSize *size = &p->sizes[i];
    bool is_input = size->argument < p->input_count;
    text_printf(out, "// sizes[%d] '%s': ", i, size->var->as.var->name);
    if (size->from == LOWER_FROM_OFFSET)
      text_puts(out, "the element offset");
    else
      text_printf(out, "the %s of axis %d", size->from == LOWER_FROM_SHAPE ? "extent" : "stride",
                  size->axis);
    text_printf(out, " of %s[%d]\n", is_input ? "inputs" : "outputs",
                size->argument - (is_input ? 0 : p->input_count));
  }
}

static const char *weights_parameter(const ProgramHeader *header) {
  return header->weights_file ? "const void *weights, " : "";
}

static const char *sizes_parameter(const TargetProgram *program) {
  return program->size_count ? "const int64_t sizes[], " : "";
}

const char *target_program_name(const ProgramHeader *header, const TargetProgram *program) {
  return program->function ? arena_printf(header->arena, "%s_%s", header->name, program->function)
                           : header->name;
}

void target_header_run(const ProgramHeader *header, const TargetProgram *program, Text *out) {
  text_printf(out, "int %s_run(%sconst void *const inputs[], void *const outputs[], %svoid *arena)",
              target_program_name(header, program), weights_parameter(header),
              sizes_parameter(program));
}

void target_header_call(const ProgramHeader *header, const TargetProgram *program, Text *out) {
  text_printf(out,
              "int %1$s_call(%2$sconst %3$s_tensor *const tensors[], int count, void *arena,\n"
              "    %3$s_fault *fault)",
              target_program_name(header, program), weights_parameter(header), header->name);
}

void target_header_host(const TargetProgram *program, Text *out) {
  text_printf(out, "int32_t %s(void *self_handle, void *args, int32_t num_args,\n    void *result)",
              program->host->symbol);
}

bool target_has_host(const TargetProgram *programs, int count) {
  for (int i = 0; i < count; i++)
    if (programs[i].host) return true;
  return false;
}

void target_header_arena(const ProgramHeader *header, const TargetProgram *program, Text *out) {
  text_printf(out, "int64_t %s_arena_bytes(const int64_t sizes[])",
              target_program_name(header, program));
}

static const char call[] =
    "\n// The same for tensors that are checked first: inputs, then outputs. Returns 3 when one "
    "does\n"
    "// not fit: *fault, unless it is NULL, then says what was wrong. The struct is DLPack's\n"
    "// DLTensor. Device, rank, element type, shape, strides (those that are stated for a tensor,\n"
    "// otherwise rows without gaps), elements before the first one where they are stated, and\n"
    "// alignment must be those that the code was made for.\n";

// The structs are DLPack's DLTensor, and what was wrong with an argument.
static const char call_types[] =
    "typedef struct %1$s_tensor {\n"
    "  void *data;\n  int32_t device_type, device_id, rank;\n  uint8_t code, bits;\n"
    "  uint16_t lanes;\n  int64_t *shape, *strides; // strides may be NULL\n"
    "  uint64_t byte_offset;\n} %1$s_tensor;\n"
    "typedef struct %1$s_fault {\n"
    "  const char *what; // \"argument 0 'x': extent of axis 1\"\n"
    "  int64_t expected, got;\n} %1$s_fault;\n";

static const char host[] =
    "\n// The same for an array of TVM's tagged arguments, which are checked first. Returns 0, or "
    "-1\n"
    "// when one does not fit; the message then goes to TVM's runtime if that is in the process.\n";

static const char manual[] =
    "// Runs the model. `arena` is memory for intermediate results, aligned to 64 bytes; it need\n"
    "// not be cleared and holds nothing between runs, so threads may run at once with an arena\n"
    "// each. Inputs, outputs and the arena do not overlap.\n"
    "// ";

static const char parallel[] =
    "\n// The same with threads: `parallel` runs body(env, begin, end) over 0 <= begin < end <=\n"
    "// count, in any pieces on any threads, and returns when all are done.\n";
static const char parallel_types[] =
    "typedef void (*%1$s_body)(void *env, int64_t begin, int64_t end);\n"
    "typedef void (*%1$s_parallel)(void *pool, %1$s_body body, void *env, int64_t count);\n";

static void print_parallel(const ProgramHeader *header, const TargetProgram *program, bool first,
                           Text *out) {
  text_puts(out, parallel);
  if (first) text_printf(out, parallel_types, header->name);
  text_printf(out,
              "int %s_run_parallel(%sconst void *const inputs[], void *const outputs[], "
              "%svoid *arena,\n    %s_parallel parallel, void *pool);\n",
              target_program_name(header, program), weights_parameter(header),
              sizes_parameter(program), header->name);
}

// The first line of a header, by which it is known again.
static const char mark[] = "// Written by pleat: the interface of ";

static const char weights_line[] = "// `weights` holds the bytes of ";

static void describe_guard(const AccessGuard *guard, Text *out) {
  text_printf(out, "//   %s, ", guard->access);
  if (guard->axis == GUARD_DIVISION)
    text_puts(out, "a division\n");
  else if (guard->axis == GUARD_ASSERT)
    text_puts(out, "an assertion\n");
  else if (guard->axis == GUARD_MEMORY)
    text_puts(out, "its memory\n");
  else
    text_printf(out, "axis %d\n", guard->axis);
}

// Says what the result 2 means, and where the notes of the guards are.
static void describe_guards(const TargetProgram *program, Text *out) {
  for (int i = 0; i < program->step_count; i++) {
    const LowerKernel *kernel = program->unit.kernels[program->steps[i].kernel];
    const AccessGuards *guards = kernel->guards;
    if (!guards) continue;
    text_printf(out,
                "// Returns 2 when an access was out of bounds or a divisor was 0; it was skipped, "
                "and the\n"
                "// outputs are not complete. From byte %lld of the arena there are then two int64 "
                "for each\n"
                "// of these: an index out of bounds, and the extent + 1 or, where all were in "
                "bounds, 0.\n",
                (long long)(program->steps[i].workspace + kernel->guards_offset));
    for (int k = 0; k < guards->count; k++) describe_guard(&guards->items[k], out);
  }
}

static void print_arena(const ProgramHeader *header, const TargetProgram *program,
                        const char *upper, Text *out) {
  int64_t bytes;
  if (expr_as_int(program->arena_bytes, &bytes)) {
    text_printf(out, "#define %s_ARENA_BYTES %lld\n", upper, (long long)bytes);
    return;
  }
  text_puts(out, "// The bytes of `arena`; -1 when they do not fit 64 bits.\n");
  target_header_arena(header, program, out);
  text_puts(out, ";\n");
}

static void print_call(const ProgramHeader *header, const TargetProgram *program, bool first,
                       Text *out) {
  text_puts(out, call);
  if (first) text_printf(out, call_types, header->name);
  target_header_call(header, program, out);
  text_puts(out, ";\n");
}

static void print_host(const TargetProgram *program, Text *out) {
  text_puts(out, host);
  target_header_host(program, out);
  text_puts(out, ";\n");
}

static void print_program(Context *context, const TargetProgram *program,
                          const ProgramHeader *header, bool first, bool first_call, Text *out) {
  const char *upper = target_upper(&context->scratch, target_program_name(header, program));
  describe(context, upper, "input", program->inputs, program->input_count, out);
  describe(context, upper, "output", program->outputs, program->output_count, out);
  describe_sizes(program, out);
  print_arena(header, program, upper, out);
  text_printf(out, "#define %s_WEIGHT_BYTES %lld\n\n", upper, (long long)program->weight_bytes);
  if (header->weights_file)
    text_printf(out, "%s%s, aligned to 64 bytes.\n", weights_line, header->weights_file);
  text_printf(out, "%s%s\n", manual, header->returns);
  describe_guards(program, out);
  target_header_run(header, program, out);
  text_puts(out, ";\n");
  if (program->host)
    print_host(program, out);
  else
    print_call(header, program, first_call, out);
  if (header->threads) print_parallel(header, program, first, out);
}

static void print_header(Context *context, const TargetProgram *programs, int count,
                         const ProgramHeader *header, Text *out) {
  const char *upper = target_upper(&context->scratch, header->name);
  text_printf(out, "%s%s.\n%s#ifndef %s_H\n#define %s_H\n\n", mark, header->code, header->title,
              upper, upper);
  text_puts(out, "#include <stdint.h>\n\n");
  text_puts(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  for (int i = 0; i < count; i++) {
    if (i) text_printf(out, "\n// ---- %s\n\n", programs[i].function);
    bool called = false;
    for (int k = 0; k < i; k++) called |= !programs[k].host;
    print_program(context, &programs[i], header, i == 0, !called, out);
  }
  if (target_has_host(programs, count))
    text_printf(out,
                "\n// The message of the thread's last failure of such a function.\n"
                "const char *%s_error(void);\n",
                header->name);
  text_puts(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

// ---- Headers that are there already ------------------------------------------------------------

static const char *declarations(const char *text) {
  const char *found = strstr(text, "#ifndef");
  return found ? found : text;
}

// Are two headers equal but for the name of the file of weights, which each file of code has?
static bool declare_same(const char *a, const char *b) {
  size_t skipped = sizeof weights_line - 1;
  for (a = declarations(a), b = declarations(b); *a && *a == *b; a++, b++) {
    if (strncmp(a, weights_line, skipped) || strncmp(b, weights_line, skipped)) continue;
    a = strchrnul(a, '\n');
    b = strchrnul(b, '\n');
    if (!*a || !*b) break;
  }
  return *a == *b;
}

// Compares an older header with the new one.
static bool may_replace(Context *context, const char *path, const char *old, const char *code,
                        const char *text) {
  SourcePos pos = {.file = source_file_new(context, path, NULL, 0)};
  size_t known = sizeof mark - 1;
  if (strncmp(old, mark, known))
    return diag_error(context, pos,
                      "is not a header that pleat wrote, and the header of '%s' would replace it\n"
                      "give -o another name, or remove the file",
                      code);
  const char *before =
      arena_printf(&context->scratch, "%.*s", (int)strcspn(old + known, "\n"), old + known);
  size_t length = strlen(before);
  if (length && before[length - 1] == '.') length--;
  bool other = strlen(code) != length || strncmp(before, code, length);
  if (other && !declare_same(old, text))
    diag_warning(context, pos,
                 "declared '%.*s', whose interface differs, and now declares '%s'\n"
                 "give -o another name to keep both headers",
                 (int)length, before, code);
  return true;
}

bool target_header_write(Context *context, FileSet *files, const TargetProgram *programs, int count,
                         const ProgramHeader *header, const char *path) {
  Arena *arena = &context->scratch;
  const char *ending = strrchr(path, '.');
  const char *name = arena_printf(arena, "%.*s.h", (int)(ending - path), path);
  Text text = text_new(arena);
  print_header(context, programs, count, header, &text);
  size_t size;
  const char *old = access(name, F_OK) == 0 ? file_read(context, arena, name, &size) : "";
  if (!old) return false;
  return (!*old || may_replace(context, name, old, header->code, text_string(&text))) &&
         file_set_write(files, name, text.data, text.size);
}
