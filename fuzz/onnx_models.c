// SPDX-License-Identifier: Apache-2.0
// Runs damaged model files through import, planning, lowering, code generation, and, when that is
// little work, a run. Each model has a process of its own, with limits of ten seconds and 2 GB.
//   onnx_models FOLDER COUNT [SEED [KEEP]]   the models of a folder, then COUNT mutants of them;
//                                            what fails is written into the folder KEEP
//   onnx_models FILE                         one model, in this process
// A mutant changes the tree of fields, so that protobuf still reads it, or lacks some bytes of the
// file.
#include "driver/driver.h"
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/onnx_proto.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { LIMIT_ADDRESSES = 0 }; // a sanitizer's shadow memory takes terabytes
#else
enum { LIMIT_ADDRESSES = 1 };
#endif

enum { MOST_FILES = 4096, MOST_FILE_BYTES = 64 << 10, SECONDS = 10, EXIT_FAULT = 3 };
static const size_t MEMORY = (size_t)2 << 30;
static const double FEW_OPERATIONS = 1e7;
static const int64_t FEW_BYTES = 64 << 20;

// ---- One model --------------------------------------------------------------------------------

typedef struct Trial {
  Context *context;
  const char *path;
} Trial;

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
    operations += prim_func_operations(kernel->func);
    for (int k = 0; k < kernel->params.count; k++)
      operations += (double)plan_bytes(kernel->params.items[k], NULL);
  }
  return operations;
}

static void try_model(void *arg) {
  Trial *trial = arg;
  OnnxImport *import = onnx_import(trial->context, trial->path, NULL);
  if (!import->graph) return;
  CompileOptions options = {.machine = machine_probe(), .target = target_for_running()};
  Program *program = program_build(trial->context, import->graph, &options);
  if (!program || operations_of(program) > FEW_OPERATIONS) return;
  if (program->weight_bytes < FEW_BYTES && program->arena_bytes < FEW_BYTES) run_program(program);
}

// True when the model caused no fault: it was compiled, or rejected with a diagnostic.
static bool model_is_handled(const char *path) {
  Trial trial = {context_new(), path};
  trial.context->memory_limit = MEMORY;
  bool ok = context_protect(trial.context, try_model, &trial);
  if (!ok) fprintf(stderr, "%s\n", trial.context->failure_message);
  context_free(trial.context);
  return ok;
}

static bool run_apart(const char *path) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit memory = {MEMORY, MEMORY}, core = {0, 0};
    if (LIMIT_ADDRESSES) setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS, SECONDS});
    alarm(20 * SECONDS); // of real time, on a busy machine
    _exit(model_is_handled(path) ? 0 : EXIT_FAULT);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (WIFSIGNALED(status))
    fprintf(stderr, "signal %d: %s\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return false;
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

typedef struct Mutator {
  Arena *arena;
  uint64_t seed;
  PtrArray all; // all fields of the tree: Field *
} Mutator;

static size_t below(Mutator *m, size_t n) {
  m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
  return n ? (size_t)(m->seed >> 33) % n : 0;
}

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

static void collect(Mutator *m, Fields *fields) {
  for (int i = 0; i < fields->count; i++) {
    array_push(m->arena, &m->all, &fields->items[i]);
    if (fields->items[i].is_message) collect(m, &fields->items[i].parts);
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
  set_number(m, field, (uint64_t)values[below(m, COUNT_OF(values))]);
}

static void change_bytes(Mutator *m, Field *field) {
  size_t size = field->payload.size;
  uint8_t *bytes = arena_alloc(m->arena, size + 8);
  if (size) memcpy(bytes, field->payload.data, size);
  switch (below(m, 4)) {
  case 0: size = below(m, size + 1); break;
  case 1: size += below(m, 8); break;
  default:
    for (size_t n = 0; n <= below(m, 3) && size; n++)
      bytes[below(m, size)] = (uint8_t)below(m, 256);
  }
  field->payload = (OnnxBytes){bytes, size};
}

// Replaces the field by another of the same number and kind, such as another name, node or
// attribute.
static void take_other(Mutator *m, Field *field) {
  for (int tries = 0; tries < 20; tries++) {
    const Field *other = m->all.items[below(m, (size_t)m->all.count)];
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
  size_t at = below(m, (size_t)parts->count);
  Field moved = parts->items[at];
  Fields changed = {0};
  bool twice = below(m, 2);
  for (size_t i = 0; i < (size_t)parts->count; i++) {
    if (i != at || twice) array_push(m->arena, &changed, parts->items[i]);
    if (i == at && twice) array_push(m->arena, &changed, moved);
  }
  *parts = changed;
}

static void mutate(Mutator *m, Fields *tree) {
  m->all = (PtrArray){0};
  collect(m, tree);
  if (!m->all.count) return;
  Field *field = m->all.items[below(m, (size_t)m->all.count)];
  if (below(m, 3) == 0)
    take_other(m, field);
  else if (field->is_message)
    change_list(m, field);
  else if (field->wire == 0)
    change_number(m, field);
  else
    change_bytes(m, field);
}

static Text mutant_of(Mutator *m, OnnxBytes model) {
  Text out = text_new(m->arena);
  Fields tree;
  if (below(m, 10) == 0 || !read_fields(m->arena, model, 0, &tree)) {
    Field whole = {.payload = model};
    change_bytes(m, &whole);
    text_append(&out, (const char *)whole.payload.data, whole.payload.size);
    return out;
  }
  for (size_t n = 0, count = 1 + below(m, 4); n < count; n++) mutate(m, &tree);
  put_fields(m->arena, &out, &tree);
  return out;
}

// ---- Folders ----------------------------------------------------------------------------------

typedef struct Corpus {
  Context *context;
  OnnxBytes files[MOST_FILES];
  int count;
} Corpus;

static void add_file(Corpus *corpus, const char *path) {
  struct stat info;
  size_t size;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > MOST_FILE_BYTES) return;
  if (corpus->count == MOST_FILES) return;
  char *data = file_read(corpus->context, &corpus->context->arena, path, &size);
  if (data) corpus->files[corpus->count++] = (OnnxBytes){(uint8_t *)data, size};
}

// Adds the folder's files, and the model.onnx of its folders, in the order of their names.
static void add_folder(Corpus *corpus, const char *folder) {
  struct dirent **entries;
  Arena *arena = &corpus->context->arena;
  int count = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    const char *name = entries[i]->d_name;
    if (*name != '.') {
      add_file(corpus, arena_printf(arena, "%s/%s", folder, name));
      add_file(corpus, arena_printf(arena, "%s/%s/model.onnx", folder, name));
    }
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

static bool try_bytes(Context *context, const char *path, const char *data, size_t size,
                      const char *kept) {
  bool ok = file_write(context, path, data, size) && run_apart(path);
  if (!ok && kept) file_write(context, kept, data, size);
  if (!ok) fprintf(stderr, "failed: %s\n", kept ? kept : path);
  return ok;
}

static int fuzz(const char *folder, long count, uint64_t seed, const char *keep) {
  static Corpus corpus;
  char place[] = "/tmp/pleat-fuzz-XXXXXX";
  corpus.context = context_new();
  add_folder(&corpus, folder);
  if (!corpus.count || !mkdtemp(place)) return fprintf(stderr, "no models in %s\n", folder), 2;
  const char *path = arena_printf(&corpus.context->arena, "%s/m.onnx", place);
  int failed = 0;
  for (long i = 0; i < corpus.count + count; i++) {
    Context *context = context_new();
    Mutator mutator = {&context->arena, seed * 1000003 + (uint64_t)i, {0}};
    below(&mutator, 2);
    OnnxBytes model =
        corpus.files[i < corpus.count ? (size_t)i : below(&mutator, (size_t)corpus.count)];
    Text mutant = {.data = (char *)model.data, .size = model.size};
    if (i >= corpus.count) mutant = mutant_of(&mutator, model);
    const char *kept =
        keep ? arena_printf(&context->arena, "%s/%llu-%ld.onnx", keep, (unsigned long long)seed, i)
             : NULL;
    failed += !try_bytes(context, path, mutant.data ? mutant.data : "", mutant.size, kept);
    context_free(context);
  }
  printf("%d models, %ld mutants, %d failed\n", corpus.count, count, failed);
  unlink(path);
  rmdir(place);
  context_free(corpus.context);
  return failed ? 1 : 0;
}

int main(int argc, char **argv) {
  if (argc == 2) return model_is_handled(argv[1]) ? 0 : 1;
  if (argc < 3) return fprintf(stderr, "onnx_models FOLDER COUNT [SEED [KEEP]] | FILE\n"), 2;
  return fuzz(argv[1], atol(argv[2]), argc > 3 ? strtoull(argv[3], NULL, 10) : 1,
              argc > 4 ? argv[4] : NULL);
}
