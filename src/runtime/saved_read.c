// SPDX-License-Identifier: Apache-2.0
// Reads saved programs (runtime/saved.h). First the header says whether this library and processor
// can use the file, then the digests of all sections are verified, and then the description is
// read. Each number of it is checked, because a digest does not show that the writer was right.
#include "runtime/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pleat/pleat.h"

typedef struct Loading {
  Context *context;
  SourcePos pos;
  const char *data;
  size_t size;
  const SavedHeader *header;
  const char *at, *end; // the rest of the description
  const char *why;      // what is wrong with the description; NULL: nothing so far
  const char *absent;   // a function that the code calls and this process lacks; NULL: none so far
  const char *code, *weights;
  const Digest *chunks; // of the weights
  CompiledProgram *out;
} Loading;

static bool refuse(const Loading *l, const char *format, ...) PRINTF_LIKE(2, 3);
static bool refuse(const Loading *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(&l->context->lasting, format, args);
  va_end(args);
  return diag_error_as(l->context, DIAG_FILE, l->pos, "%s", text);
}

static bool damaged(const Loading *l, const char *part) {
  return refuse(l, "is damaged: its %s; copy it again, or compile the model again", part);
}

// ---- The header

bool saved_is(const void *data, size_t size) {
  size_t length = sizeof SAVED_MAGIC - 1;
  return size >= length && memcmp(data, SAVED_MAGIC, length) == 0;
}

static bool is_plain(const char *text, size_t size) {
  for (size_t i = 0; i < size && text[i]; i++)
    if (text[i] < ' ' || text[i] > '~') return false;
  return true;
}

static bool check_version(const Loading *l) {
  const SavedHeader *h = l->header;
  if (l->size < offsetof(SavedHeader, cpu))
    return refuse(l, "is truncated: it has only %zu bytes; copy it again", l->size);
  if (h->format == SAVED_FORMAT && !strncmp(h->library, PLEAT_VERSION, sizeof h->library))
    return true;
  if (!is_plain(h->library, sizeof h->library))
    return refuse(l,
                  "is damaged: its version is no text; copy it again, or compile the model again");
  return refuse(l,
                "was saved by version %.*s of Pleat (format %u), and this is version %s (format "
                "%d); compile the model again",
                (int)strnlen(h->library, sizeof h->library), h->library, h->format, PLEAT_VERSION,
                SAVED_FORMAT);
}

static bool check_processor(const Loading *l) {
  HostMachine machine = machine_probe();
  const char *here = machine.level_name;
  return machine_limit(&machine, l->header->cpu) ||
         refuse(l,
                "was compiled for processors with %s, and this one has %s; compile the model again "
                "for '%s'",
                l->header->cpu, here, here);
}

static bool check_header(Loading *l) {
  const SavedHeader *h = l->header = (const SavedHeader *)l->data;
  if (!saved_is(l->data, l->size))
    return refuse(l, "is not a saved model; 'pleat compile MODEL -o FILE.pleat' makes one");
  if (!check_version(l)) return false;
  if (l->size < sizeof *h)
    return refuse(l, "is truncated: it has only %zu bytes; copy it again", l->size);
  if (!digest_equal(h->header, digest_of(h, offsetof(SavedHeader, header))))
    return damaged(l, "header differs from its digest");
  if (!memchr(h->cpu, 0, sizeof h->cpu)) return damaged(l, "header has no processor");
  return check_processor(l);
}

static bool check_sizes(Loading *l) {
  const SavedHeader *h = l->header;
  uint64_t rest = l->size - sizeof *h, needed = 0;
  const uint64_t parts[] = {h->description_bytes, h->code_bytes, h->weight_bytes};
  for (int i = 0; i < COUNT_OF(parts); i++) {
    if (parts[i] % SAVED_PAGE || parts[i] > INT64_MAX / 4) return damaged(l, "sizes are wrong");
    needed += parts[i];
  }
  if (needed > rest)
    return refuse(l, "is truncated: it has %zu bytes of %llu; copy it again", l->size,
                  (unsigned long long)(needed + sizeof *h));
  if (needed < rest) return damaged(l, "end is followed by other bytes");
  l->at = l->data + sizeof *h;
  l->end = l->code = l->at + h->description_bytes;
  l->weights = l->code + h->code_bytes;
  return digest_equal(h->description, digest_of(l->at, h->description_bytes)) ||
         damaged(l, "description differs from its digest");
}

// ---- The description

static void wrong(Loading *l, const char *what) {
  if (!l->why) l->why = what;
  l->at = l->end;
}

static const void *take(Loading *l, uint64_t size) {
  const char *data = l->at;
  if (size > (uint64_t)(l->end - l->at)) {
    wrong(l, "description ends early");
    return NULL;
  }
  l->at += size;
  return data;
}

// A number from `least` to `most`.
static int64_t take_int(Loading *l, int64_t least, int64_t most, const char *what) {
  int64_t value = least;
  const void *data = take(l, sizeof value);
  if (data) memcpy(&value, data, sizeof value);
  if (value >= least && value <= most) return value;
  wrong(l, what);
  return least;
}

// The number of items that follow, each of at least `bytes` bytes.
static int take_count(Loading *l, int bytes, const char *what) {
  int64_t most = (l->end - l->at) / bytes;
  return (int)take_int(l, 0, MIN_OF(most, INT32_MAX), what);
}

static const char *take_text(Loading *l) {
  int size = take_count(l, 1, "texts are too long");
  const char *text = take(l, (uint64_t)size);
  return str_intern_n(l->out->context, text ? text : "", text ? (size_t)size : 0);
}

static Digest take_digest(Loading *l) {
  Digest digest = {{0}};
  const void *data = take(l, sizeof digest);
  if (data) memcpy(&digest, data, sizeof digest);
  return digest;
}

static void read_code(Loading *l) {
  Arena *arena = &l->out->context->lasting;
  Digest digest = take_digest(l);
  int count = take_count(l, 8, "functions of the C library are too many");
  const char **imports = arena_array(arena, const char *, count);
  for (int i = 0; i < count; i++) {
    imports[i] = take_text(l);
    if (!l->why && !code_function_address(imports[i])) l->absent = imports[i];
  }
  if (l->why) return;
  if (!digest_equal(digest, digest_of(l->code, l->header->code_bytes)))
    return wrong(l, "code differs from its digest");
  if (l->absent) {
    wrong(l, "code calls a function that is absent");
    return;
  }
  CodeContents contents = {l->code, l->header->code_bytes, imports, count};
  l->out->code = code_image_load(l->context, &contents);
  if (!l->out->code) wrong(l, "code cannot be used");
}

static void read_constant(Loading *l, CompiledConstant *constant) {
  CompiledProgram *p = l->out;
  int64_t offset = take_int(l, 0, p->weight_bytes, "constants are outside the weights");
  if (offset % TENSOR_ALIGNMENT) wrong(l, "constants are not aligned");
  constant->bytes = take_int(l, 0, p->weight_bytes - offset, "constants are outside the weights");
  constant->data = l->weights + offset;
}

static void read_weights(Loading *l) {
  CompiledProgram *p = l->out;
  uint64_t whole = l->header->weight_bytes;
  p->weight_bytes = take_int(l, 0, (int64_t)whole, "weights are outside the file");
  p->weights = (void *)l->weights;
  uint64_t chunks = (whole + SAVED_CHUNK - 1) / SAVED_CHUNK;
  l->chunks = take(l, chunks * sizeof(Digest));
  p->constant_count = take_count(l, 16, "constants are too many");
  p->constants = arena_array(&p->context->lasting, CompiledConstant, p->constant_count);
  for (int i = 0; i < p->constant_count; i++) read_constant(l, &p->constants[i]);
}

// The strides and offset of an argument, which code with any_strides does not have.
static void read_strides(Loading *l, ArgumentSpec *spec) {
  int64_t *strides = arena_array(&l->out->context->lasting, int64_t, spec->rank + 1);
  spec->any_strides = take_int(l, 0, 1, "arguments have unknown strides");
  spec->offset = take_int(l, 0, INT32_MAX, "arguments have a wrong offset");
  spec->alignment = take_int(l, 0, INT32_MAX, "arguments have a wrong alignment");
  for (int i = 0; i < spec->rank && !spec->any_strides; i++)
    strides[i] = take_int(l, INT64_MIN, INT64_MAX, "arguments have unknown strides");
  if (!spec->any_strides) spec->strides = strides;
}

static ArgumentSpec read_argument(Loading *l) {
  ArgumentSpec spec = {.name = take_text(l)};
  spec.type.code = (uint8_t)take_int(l, 0, UINT8_MAX, "element types are unknown");
  spec.type.bits = (uint8_t)take_int(l, 1, 64, "element types are unknown");
  spec.type.lanes = (uint16_t)take_int(l, 1, UINT16_MAX, "element types are unknown");
  spec.is_read = take_int(l, 0, 1, "arguments are used in unknown ways");
  spec.rank = (int)take_int(l, 0, SAVED_MOST_RANK, "arguments have too many axes");
  int64_t *shape = arena_array(&l->out->context->lasting, int64_t, spec.rank);
  for (int i = 0; i < spec.rank; i++)
    shape[i] = take_int(l, 0, INT64_MAX, "arguments have a negative size");
  spec.shape = shape;
  read_strides(l, &spec);
  if (!strcmp(element_type_name(spec.type), "unknown")) wrong(l, "element types are unknown");
  if (argument_bytes(&spec) < 0) wrong(l, "arguments are too large");
  return spec;
}

static const void *read_known(Loading *l, const ArgumentSpec *spec) {
  int size = take_count(l, 1, "known values are too long");
  const void *data = take(l, (uint64_t)size);
  if (!data || !size) return NULL;
  if (size != argument_bytes(spec)) wrong(l, "known values have another size than their input");
  return arena_copy(&l->out->context->lasting, data, (size_t)size);
}

static void read_arguments(Loading *l) {
  enum { LEAST_BYTES = 32 };
  CompiledProgram *p = l->out;
  Arena *arena = &p->context->lasting;
  p->input_count = take_count(l, LEAST_BYTES, "inputs are too many");
  p->inputs = arena_array(arena, ArgumentSpec, p->input_count);
  p->known = arena_array(arena, const void *, p->input_count);
  for (int i = 0; i < p->input_count; i++) {
    p->inputs[i] = read_argument(l);
    p->known[i] = read_known(l, &p->inputs[i]);
  }
  p->output_count = take_count(l, LEAST_BYTES, "outputs are too many");
  p->outputs = arena_array(arena, ArgumentSpec, p->output_count);
  for (int i = 0; i < p->output_count; i++) p->outputs[i] = read_argument(l);
}

static CompiledRegion read_region(Loading *l) {
  int64_t last = (int64_t)l->header->code_bytes - 1;
  int64_t offset = take_int(l, 0, last, "steps refer to code outside the file");
  CompiledRegion region = {.extent = take_int(l, 0, INT64_MAX, "steps have a negative size")};
  region.chunks = take_int(l, 1, MAX_OF(region.extent, 1), "steps have a wrong number of chunks");
  if (!l->why) region.handle = code_image_handle(l->out->code, offset);
  return region;
}

static CompiledAddress read_address(Loading *l) {
  const CompiledProgram *p = l->out;
  const int64_t most[] = {
      [ADDRESS_INPUT] = p->input_count - 1,
      [ADDRESS_OUTPUT] = p->output_count - 1,
      [ADDRESS_CONSTANT] = p->constant_count - 1,
      [ADDRESS_ARENA] = p->arena_bytes,
  };
  AddressKind kind = (AddressKind)take_int(l, 0, ADDRESS_ARENA, "steps have unknown arguments");
  int64_t number = take_int(l, 0, most[kind], "steps refer to absent arguments");
  bool in_output = kind == ADDRESS_OUTPUT && !l->why;
  int64_t bytes = in_output ? argument_bytes(&p->outputs[number]) : 0;
  return (CompiledAddress){kind, number, take_int(l, 0, bytes, "steps write outside an output")};
}

static PleatArgument *read_call_tensor(Loading *l, int access, const char **layout) {
  Arena *arena = &l->out->context->lasting;
  PleatArgument *tensor = arena_new(arena, PleatArgument);
  tensor->name = take_text(l);
  tensor->access = access;
  tensor->element.code = (uint8_t)take_int(l, 0, UINT8_MAX, "element types are unknown");
  tensor->element.bits = (uint8_t)take_int(l, 0, 64, "element types are unknown");
  tensor->element.lanes = (uint16_t)take_int(l, 0, UINT16_MAX, "element types are unknown");
  ElementType type = {tensor->element.code, tensor->element.bits, tensor->element.lanes};
  tensor->type = element_type_name(type);
  tensor->rank = (int32_t)take_int(l, OPAQUE_ABSENT, SAVED_MOST_RANK, "calls have too many axes");
  int64_t *shape = arena_array(arena, int64_t, MAX_OF(tensor->rank, 0));
  for (int i = 0; i < tensor->rank; i++)
    shape[i] = take_int(l, 0, INT64_MAX, "calls have a negative size");
  tensor->shape = shape;
  const char *text = take_text(l);
  *layout = *text ? text : NULL;
  return tensor;
}

static void read_numbers(Loading *l, PleatAttribute *attribute) {
  Arena *arena = &l->out->context->lasting;
  attribute->is_list = (int)take_int(l, 0, 1, "attributes of calls are unknown");
  bool integers = take_int(l, 0, 1, "attributes of calls are unknown");
  int bytes = take_count(l, 1, "attributes of calls are too long");
  const void *data = take(l, (uint64_t)bytes);
  if (bytes % sizeof(int64_t)) wrong(l, "attributes of calls have parts of numbers");
  if (!data || l->why) return;
  int count = attribute->count = bytes / (int)sizeof(int64_t);
  double *numbers = arena_array(arena, double, count + 1);
  int64_t *whole = arena_array(arena, int64_t, count + 1);
  attribute->numbers = numbers;
  if (bytes) memcpy(integers ? (void *)whole : (void *)numbers, data, (size_t)bytes);
  if (!integers) return;
  attribute->integers = whole;
  for (int i = 0; i < count; i++) numbers[i] = (double)whole[i];
}

static PleatAttribute *read_attribute(Loading *l) {
  PleatAttribute *attribute = arena_new(&l->out->context->lasting, PleatAttribute);
  attribute->name = take_text(l);
  if (take_int(l, 0, 1, "attributes of calls are unknown"))
    attribute->text = take_text(l);
  else
    read_numbers(l, attribute);
  return attribute;
}

// The call of a function that the file does not hold.
static const OpaqueRecord *read_call(Loading *l) {
  enum { LEAST_BYTES = 48 };
  Arena *arena = &l->out->context->lasting;
  OpaqueRecord *record = arena_new(arena, OpaqueRecord);
  PleatCall *call = arena_new(arena, PleatCall);
  call->function = take_text(l);
  call->node = take_text(l);
  record->way = (int)take_int(l, 0, INT32_MAX, "calls have unknown ways");
  int inputs = call->input_count = take_count(l, LEAST_BYTES, "calls have too many inputs");
  int outputs = call->output_count = take_count(l, LEAST_BYTES, "calls have too many outputs");
  const PleatArgument **tensors = arena_array(arena, const PleatArgument *, inputs + outputs + 1);
  const char **layouts = arena_array(arena, const char *, inputs + outputs + 1);
  for (int i = 0; i < inputs + outputs; i++)
    tensors[i] = read_call_tensor(l, i < inputs ? PLEAT_READ : PLEAT_WRITTEN, &layouts[i]);
  call->attribute_count = take_count(l, 24, "calls have too many attributes");
  const PleatAttribute **attributes =
      arena_array(arena, const PleatAttribute *, call->attribute_count + 1);
  for (int i = 0; i < call->attribute_count; i++) attributes[i] = read_attribute(l);
  call->inputs = tensors;
  call->outputs = tensors + inputs;
  call->attributes = attributes;
  record->call = call;
  record->layouts = layouts;
  return record;
}

static void read_conditions(Loading *l, CompiledStep *step) {
  step->condition_count = take_count(l, 32, "conditions of steps are too many");
  CompiledCondition *conditions =
      arena_array(&l->out->context->lasting, CompiledCondition, step->condition_count);
  for (int i = 0; i < step->condition_count; i++) {
    conditions[i].address = read_address(l);
    conditions[i].value = take_int(l, 0, 1, "conditions of steps are unknown");
  }
  step->conditions = conditions;
}

static void read_step(Loading *l, CompiledStep *step) {
  Arena *arena = &l->out->context->lasting;
  step->name = take_text(l);
  const char *slow = take_text(l);
  step->slow = *slow ? slow : NULL;
  step->kernel = (int)take_int(l, 0, INT32_MAX, "kernels have wrong numbers");
  const void *operations = take(l, sizeof step->operations);
  if (operations) memcpy(&step->operations, operations, sizeof step->operations);
  step->bytes = take_int(l, 0, INT64_MAX, "steps have a negative size");
  step->region_count = take_count(l, 24, "regions are too many");
  step->regions = arena_array(arena, CompiledRegion, step->region_count);
  for (int i = 0; i < step->region_count; i++) step->regions[i] = read_region(l);
  step->arg_count = take_count(l, 16, "arguments of steps are too many");
  step->args = arena_array(arena, CompiledAddress, step->arg_count);
  for (int i = 0; i < step->arg_count; i++) step->args[i] = read_address(l);
  read_conditions(l, step);
  if (!take_int(l, 0, 1, "steps are of an unknown kind")) return;
  step->record = read_call(l);
  const PleatCall *call = step->record->call;
  if (step->arg_count != call->input_count + call->output_count)
    wrong(l, "calls have another number of arguments than tensors");
}

static void read_steps(Loading *l) {
  CompiledProgram *p = l->out;
  p->step_count = take_count(l, 72, "steps are too many");
  p->steps = arena_array(&p->context->lasting, CompiledStep, p->step_count);
  for (int i = 0; i < p->step_count; i++) read_step(l, &p->steps[i]);
}

static void read_guards(Loading *l) {
  CompiledProgram *p = l->out;
  p->guard_count = take_count(l, 24, "guards are too many");
  int64_t most = p->arena_bytes - (int64_t)sizeof(GuardNote);
  p->guards = arena_array(&p->context->lasting, CompiledGuard, p->guard_count);
  for (int i = 0; i < p->guard_count; i++) {
    p->guards[i].access = take_text(l);
    p->guards[i].axis = (int)take_int(l, GUARD_ASSERT, SAVED_MOST_RANK, "guards have unknown axes");
    p->guards[i].offset = take_int(l, 0, most, "guards are outside of the arena");
  }
}

static bool padding_is_zero(const Loading *l) {
  for (const char *at = l->at; at < l->end; at++)
    if (*at) return false;
  return l->end - l->at < SAVED_PAGE;
}

static void read_description(void *arg) {
  enum { MOST_ARENA_BITS = 46 };
  Loading *l = arg;
  CompiledProgram *p = l->out;
  p->name = take_text(l);
  p->cpu = str_intern(p->context, l->header->cpu);
  p->arena_bytes = take_int(l, 0, (int64_t)1 << MOST_ARENA_BITS, "arena is too large");
  read_code(l);
  read_weights(l);
  read_arguments(l);
  read_steps(l);
  read_guards(l);
  if (!l->why && !padding_is_zero(l)) wrong(l, "description is too long");
}

// ---- The weights

typedef struct Verifying {
  const Loading *loading;
  atomic_llong next; // the first chunk that no thread has taken
  atomic_bool differs;
} Verifying;

static void *verify_chunks(void *arg) {
  Verifying *v = arg;
  const Loading *l = v->loading;
  uint64_t whole = l->header->weight_bytes;
  for (uint64_t at; (at = (uint64_t)atomic_fetch_add(&v->next, 1) * SAVED_CHUNK) < whole;) {
    Digest expected;
    uint64_t bytes = MIN_OF(SAVED_CHUNK, whole - at);
    memcpy(&expected, &l->chunks[at / SAVED_CHUNK], sizeof expected);
    madvise((void *)((uintptr_t)(l->weights + at) / SAVED_PAGE * SAVED_PAGE), bytes,
            MADV_POPULATE_READ);
    if (!digest_equal(expected, digest_of(l->weights + at, bytes))) v->differs = true;
  }
  return NULL;
}

static bool verify_weights(const Loading *l) {
  enum { MOST_THREADS = 8, CHUNKS_A_THREAD = 8 };
  Verifying v = {.loading = l};
  pthread_t threads[MOST_THREADS];
  int64_t wanted = (int64_t)(l->header->weight_bytes / SAVED_CHUNK / CHUNKS_A_THREAD);
  int count = (int)MIN_OF(MIN_OF(machine_probe().cores, MOST_THREADS) - 1, wanted), started = 0;
  while (started < count && !pthread_create(&threads[started], NULL, verify_chunks, &v)) started++;
  verify_chunks(&v);
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  return !v.differs || damaged(l, "weights differ from their digest");
}

// ---- The whole file

static bool read_program(Loading *l) {
  if (!check_header(l) || !check_sizes(l)) return false;
  if (!(l->out = compiled_program_new()) || !context_protect(l->out->context, read_description, l))
    return refuse(l, "cannot be read: not enough memory");
  if (l->absent)
    return refuse(l,
                  "calls '%s', which is not a function of this process: load the library that "
                  "has it first",
                  l->absent);
  return l->why ? damaged(l, l->why) : verify_weights(l);
}

CompiledProgram *saved_adopt(Context *context, const char *name, const void *data, size_t size,
                             void (*release)(void *owner), void *owner) {
  Loading l = {.context = context, .data = data, .size = size};
  l.pos.file = source_file_new(context, name, NULL, 0);
  if ((uintptr_t)data % TENSOR_ALIGNMENT) bug(context, "a saved program is not aligned");
  if (read_program(&l)) {
    l.out->release = release;
    l.out->owner = owner;
    return l.out;
  }
  compiled_program_release(l.out);
  return NULL;
}

CompiledProgram *saved_parse(Context *context, const char *name, const void *data, size_t size) {
  void *copy = memory_alloc(size);
  if (!copy) {
    diag_error_as(context, DIAG_MEMORY, (SourcePos){NULL}, "%s: not enough memory", name);
    return NULL;
  }
  memcpy(copy, data, size);
  CompiledProgram *program = saved_adopt(context, name, copy, size, memory_free, copy);
  if (!program) memory_free(copy);
  return program;
}

// ---- Files

typedef struct Mapped {
  void *data;
  size_t size;
} Mapped;

static void unmap(void *owner) {
  Mapped *mapped = owner;
  munmap(mapped->data, mapped->size);
  free(mapped);
}

static CompiledProgram *read_stream(Context *context, const char *path) {
  size_t size;
  ArenaMark mark = arena_mark(&context->scratch);
  const char *data = file_read(context, &context->scratch, path, &size);
  CompiledProgram *program = data ? saved_parse(context, path, data, size) : NULL;
  arena_reset(&context->scratch, mark);
  return program;
}

static CompiledProgram *read_mapped(Context *context, const char *path, int descriptor,
                                    size_t size) {
  Mapped *mapped = calloc(1, sizeof *mapped);
  void *data = mapped ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
  if (data == MAP_FAILED) {
    free(mapped);
    return read_stream(context, path);
  }
  *mapped = (Mapped){data, size};
  CompiledProgram *program = saved_adopt(context, path, data, size, unmap, mapped);
  if (program)
    compiled_program_set_mapped(program);
  else
    unmap(mapped);
  return program;
}

// A file that is no regular one, is empty or cannot be mapped is read instead.
CompiledProgram *saved_read(Context *context, const char *path) {
  struct stat info;
  int descriptor = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  bool regular =
      descriptor >= 0 && fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_size;
  CompiledProgram *program = regular ? read_mapped(context, path, descriptor, (size_t)info.st_size)
                                     : read_stream(context, path);
  if (descriptor >= 0) close(descriptor);
  return program;
}
