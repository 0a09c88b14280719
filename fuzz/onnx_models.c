// SPDX-License-Identifier: Apache-2.0
// Runs damaged model files through import, planning, lowering, code generation, and, when that is
// little work, a run. A mutant changes the tree of fields, so that protobuf still reads it, or
// lacks some bytes of the file.
#include "driver/driver.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx_proto.h"

#include "files.h"

const char *const fuzz_ending = ".onnx";

static const double FEW_OPERATIONS = 1e7;
static const int64_t FEW_BYTES = 64 << 20;

// ---- One model --------------------------------------------------------------------------------

static Tensor *tensor_of(const Value *value, Context *context) {
  int64_t shape[TENSOR_MAX_RANK];
  ElementType type;
  bool known = value->rank <= TENSOR_MAX_RANK && value_static_shape(value, shape) &&
               value_static_bytes(value) < FEW_BYTES &&
               element_type_parse(dtype_name(context, value->type), &type);
  return known ? tensor_new(type, shape, value->rank) : NULL;
}

static void run_program(Program *program) {
  const GraphFunc *graph = program->graph;
  Context *context = program->context;
  Tensor **inputs = arena_array(&context->arena, Tensor *, graph->param_count);
  Tensor **outputs = arena_array(&context->arena, Tensor *, graph->output_count);
  bool ok = true;
  for (int i = 0; i < graph->param_count; i++)
    ok &= (inputs[i] = tensor_of(graph->params[i], context)) != NULL;
  for (int i = 0; i < graph->output_count; i++)
    ok &= (outputs[i] = tensor_of(graph->outputs[i], context)) != NULL;
  Executable *executable = ok ? executable_new(program, NULL) : NULL;
  if (executable) executable_run(executable, NULL, inputs, outputs);
  executable_free(executable);
  for (int i = 0; i < graph->param_count; i++) tensor_free(inputs[i]);
  for (int i = 0; i < graph->output_count; i++) tensor_free(outputs[i]);
}

static double operations_of(const Program *program) {
  double operations = 0;
  for (int i = 0; i < program->plan->kernels.count; i++) {
    const PlanKernel *kernel = program->plan->kernels.items[i];
    operations += prim_func_operations(plan_kernel_func(program->plan, i));
    for (int k = 0; k < kernel->params.count; k++)
      operations += (double)plan_bytes(kernel->params.items[k], NULL);
  }
  return operations;
}

void fuzz_try(Context *context, const char *path) {
  OnnxImport *import = onnx_import(context, path, NULL);
  if (!import->graph) return;
  CompileOptions options = {.machine = machine_probe(), .target = target_for_running()};
  Program *program = program_build(context, import->graph, &options);
  if (!program || operations_of(program) > FEW_OPERATIONS) return;
  if (program->weight_bytes < FEW_BYTES && program->arena_bytes < FEW_BYTES) run_program(program);
}

// ---- Trees of fields --------------------------------------------------------------------------

typedef struct Field Field;
typedef Array(Field) Fields;
struct Field {
  uint32_t number;
  int wire;
  OnnxBytes payload; // of a number: its encoding
  bool is_message;
  Fields parts;
};

// Treats bytes that parse as fields as a message. Text that happens to parse only makes worse
// mutants.
static bool read_fields(Arena *arena, OnnxBytes bytes, int depth, Fields *fields) {
  *fields = (Fields){0};
  while (bytes.size) {
    OnnxField found;
    if (onnx_next_field(&bytes, &found)) return false;
    Field field = {.number = found.number, .wire = found.wire, .payload = found.payload};
    field.is_message = found.wire == 2 && found.payload.size && depth < 40 &&
                       read_fields(arena, found.payload, depth + 1, &field.parts);
    array_push(arena, fields, field);
  }
  return true;
}

static void put_number(Text *out, uint64_t value) {
  for (; value >= 128; value >>= 7) text_append(out, (char[]){(char)(value | 128)}, 1);
  text_append(out, (char[]){(char)value}, 1);
}

static void put_fields(Arena *arena, Text *out, const Fields *fields) {
  for (int i = 0; i < fields->count; i++) {
    const Field *field = &fields->items[i];
    Text inner = text_new(arena);
    OnnxBytes payload = field->payload;
    if (field->is_message) {
      put_fields(arena, &inner, &field->parts);
      payload = (OnnxBytes){(const uint8_t *)inner.data, inner.size};
    }
    put_number(out, (uint64_t)field->number << 3 | (uint64_t)field->wire);
    if (field->wire == 2) put_number(out, payload.size);
    if (payload.size) text_append(out, (const char *)payload.data, payload.size);
  }
}

// Adds all fields of the tree.
static void collect(Arena *arena, Fields *fields, PtrArray *all) {
  for (int i = 0; i < fields->count; i++) {
    array_push(arena, all, &fields->items[i]);
    if (fields->items[i].is_message) collect(arena, &fields->items[i].parts, all);
  }
}

// ---- Mutations --------------------------------------------------------------------------------

static void set_number(Mutator *m, Field *field, uint64_t value) {
  Text text = text_new(m->arena);
  put_number(&text, value);
  field->payload = (OnnxBytes){(const uint8_t *)text.data, text.size};
}

static void change_number(Mutator *m, Field *field) {
  static const int64_t values[] = {0,       1,         2,          3,         5,         7,
                                   8,       16,        -1,         -2,        255,       65536,
                                   1 << 20, 1LL << 31, 1LL << 32,  1LL << 40, 1LL << 62, INT64_MAX,
                                   -4,      INT64_MIN, 4294967295, 100,       1000,      1000000};
  set_number(m, field, (uint64_t)values[fuzz_below(m, COUNT_OF(values))]);
}

static void change_bytes(Mutator *m, Field *field) {
  size_t size = field->payload.size;
  uint8_t *bytes = arena_alloc(m->arena, size + 8);
  if (size) memcpy(bytes, field->payload.data, size);
  switch (fuzz_below(m, 4)) {
  case 0: size = fuzz_below(m, size + 1); break;
  case 1: size += fuzz_below(m, 8); break;
  default:
    for (size_t n = 0; n <= fuzz_below(m, 3) && size; n++)
      bytes[fuzz_below(m, size)] = (uint8_t)fuzz_below(m, 256);
  }
  field->payload = (OnnxBytes){bytes, size};
}

// Replaces the field by another of the same number and kind, such as another name, node or
// attribute.
static void take_other(Mutator *m, const PtrArray *all, Field *field) {
  for (int tries = 0; tries < 20; tries++) {
    const Field *other = all->items[fuzz_below(m, (size_t)all->count)];
    if (other == field || other->wire != field->wire || other->is_message != field->is_message)
      continue;
    if (other->number != field->number && tries < 15) continue;
    if (other->is_message) { // as bytes, since a field must not contain itself
      Text text = text_new(m->arena);
      put_fields(m->arena, &text, &other->parts);
      field->payload = (OnnxBytes){(const uint8_t *)text.data, text.size};
      field->is_message = false;
    } else {
      field->payload = other->payload;
    }
    return;
  }
}

static void change_list(Mutator *m, Field *field) {
  Fields *parts = &field->parts;
  if (!parts->count) return;
  size_t at = fuzz_below(m, (size_t)parts->count);
  Field moved = parts->items[at];
  Fields changed = {0};
  bool twice = fuzz_below(m, 2);
  for (size_t i = 0; i < (size_t)parts->count; i++) {
    if (i != at || twice) array_push(m->arena, &changed, parts->items[i]);
    if (i == at && twice) array_push(m->arena, &changed, moved);
  }
  *parts = changed;
}

static void mutate(Mutator *m, Fields *tree) {
  PtrArray all = {0};
  collect(m->arena, tree, &all);
  if (!all.count) return;
  Field *field = all.items[fuzz_below(m, (size_t)all.count)];
  if (fuzz_below(m, 3) == 0)
    take_other(m, &all, field);
  else if (field->is_message)
    change_list(m, field);
  else if (field->wire == 0)
    change_number(m, field);
  else
    change_bytes(m, field);
}

Text fuzz_mutant(Mutator *m, FuzzFile file) {
  OnnxBytes model = {(const uint8_t *)file.data, file.size};
  Text out = text_new(m->arena);
  Fields tree;
  if (fuzz_below(m, 10) == 0 || !read_fields(m->arena, model, 0, &tree)) {
    Field whole = {.payload = model};
    change_bytes(m, &whole);
    text_append(&out, (const char *)whole.payload.data, whole.payload.size);
    return out;
  }
  for (size_t n = 0, count = 1 + fuzz_below(m, 4); n < count; n++) mutate(m, &tree);
  put_fields(m->arena, &out, &tree);
  return out;
}
