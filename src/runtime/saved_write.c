// SPDX-License-Identifier: Apache-2.0
// Writes saved programs (runtime/saved.h): describes the program, and puts the sections together in
// memory or in a file.
#include "runtime/saved.h"

#include <errno.h>
#include <stdlib.h>

#include "pleat/pleat.h"

static const char zeros[SAVED_PAGE];

typedef struct Saving {
  Context *context;
  const CompiledProgram *program;
  CodeContents code;
  const char *weights;
  void *gathered;        // the weights, when they are in several places
  int64_t *offsets;      // by constant: in the weights
  uint64_t weight_bytes; // without the padding
  Text description;
  SavedHeader *header;
} Saving;

// ---- The description

static void put_int(Saving *s, int64_t value) {
  text_append(&s->description, (const char *)&value, sizeof value);
}

static void put_bytes(Saving *s, const void *data, size_t size) {
  put_int(s, (int64_t)size);
  text_append(&s->description, data, size);
}

static void put_text(Saving *s, const char *text) {
  put_bytes(s, text, strlen(text));
}

// The digest of a section with its padding up to `whole` bytes.
static Digest padded_digest(Saving *s, const char *data, size_t size, size_t whole) {
  if (size == whole) return digest_of(data, size);
  ArenaMark mark = arena_mark(&s->context->scratch);
  char *copy = arena_alloc(&s->context->scratch, whole);
  memcpy(copy, data, size);
  Digest digest = digest_of(copy, whole);
  arena_reset(&s->context->scratch, mark);
  return digest;
}

static void put_digest(Saving *s, Digest digest) {
  text_append(&s->description, (const char *)&digest, sizeof digest);
}

static void describe_code(Saving *s) {
  put_digest(s, padded_digest(s, s->code.data, s->code.size, s->header->code_bytes));
  put_int(s, s->code.import_count);
  for (int i = 0; i < s->code.import_count; i++) put_text(s, s->code.imports[i]);
}

static void describe_weights(Saving *s) {
  const CompiledProgram *p = s->program;
  uint64_t whole = s->header->weight_bytes;
  put_int(s, (int64_t)s->weight_bytes);
  for (uint64_t at = 0; at < whole; at += SAVED_CHUNK) {
    uint64_t bytes = MIN_OF(SAVED_CHUNK, whole - at);
    uint64_t used = MIN_OF(bytes, s->weight_bytes - at);
    put_digest(s, padded_digest(s, s->weights + at, used, bytes));
  }
  put_int(s, p->constant_count);
  for (int i = 0; i < p->constant_count; i++) {
    put_int(s, s->offsets[i]);
    put_int(s, p->constants[i].bytes);
  }
}

static void put_argument(Saving *s, const ArgumentSpec *spec) {
  put_text(s, spec->name);
  put_int(s, spec->type.code);
  put_int(s, spec->type.bits);
  put_int(s, spec->type.lanes);
  put_int(s, spec->is_read);
  put_int(s, spec->rank);
  for (int i = 0; i < spec->rank; i++) put_int(s, spec->shape[i]);
  put_int(s, spec->any_strides);
  put_int(s, spec->offset);
  put_int(s, spec->alignment);
  for (int i = 0; i < spec->rank && !spec->any_strides; i++) put_int(s, spec->strides[i]);
}

static void describe_arguments(Saving *s) {
  const CompiledProgram *p = s->program;
  put_int(s, p->input_count);
  for (int i = 0; i < p->input_count; i++) {
    put_argument(s, &p->inputs[i]);
    put_bytes(s, p->known[i] ? p->known[i] : "",
              p->known[i] ? (size_t)argument_bytes(&p->inputs[i]) : 0);
  }
  put_int(s, p->output_count);
  for (int i = 0; i < p->output_count; i++) put_argument(s, &p->outputs[i]);
}

static void put_call_tensor(Saving *s, const PleatArgument *tensor, const char *layout) {
  put_text(s, tensor->name);
  put_int(s, tensor->element.code);
  put_int(s, tensor->element.bits);
  put_int(s, tensor->element.lanes);
  put_int(s, tensor->rank);
  for (int i = 0; i < tensor->rank; i++) put_int(s, tensor->shape[i]);
  put_text(s, layout ? layout : "");
}

static void put_attribute(Saving *s, const PleatAttribute *attribute) {
  put_text(s, attribute->name);
  put_int(s, attribute->text != NULL);
  if (attribute->text) return put_text(s, attribute->text);
  put_int(s, attribute->is_list);
  put_int(s, attribute->integers != NULL);
  const void *numbers =
      attribute->integers ? (const void *)attribute->integers : (const void *)attribute->numbers;
  put_bytes(s, numbers, sizeof(int64_t) * (size_t)attribute->count);
}

static void put_call(Saving *s, const OpaqueRecord *record) {
  const PleatCall *call = record->call;
  int inputs = call->input_count;
  put_text(s, call->function);
  put_text(s, call->node);
  put_int(s, record->way);
  put_int(s, inputs);
  put_int(s, call->output_count);
  for (int i = 0; i < inputs + call->output_count; i++)
    put_call_tensor(s, i < inputs ? call->inputs[i] : call->outputs[i - inputs],
                    record->layouts[i]);
  put_int(s, call->attribute_count);
  for (int i = 0; i < call->attribute_count; i++) put_attribute(s, call->attributes[i]);
}

static void put_address(Saving *s, CompiledAddress address) {
  put_int(s, address.kind);
  put_int(s, address.number);
  put_int(s, address.offset);
}

static void describe_steps(Saving *s) {
  const CompiledProgram *p = s->program;
  put_int(s, p->step_count);
  for (int i = 0; i < p->step_count; i++) {
    const CompiledStep *step = &p->steps[i];
    put_text(s, step->name);
    put_text(s, step->slow ? step->slow : "");
    put_int(s, step->kernel);
    text_append(&s->description, (const char *)&step->operations, sizeof step->operations);
    put_int(s, step->bytes);
    put_int(s, step->region_count);
    for (int k = 0; k < step->region_count; k++) {
      put_int(s, code_image_offset(p->code, step->regions[k].handle));
      put_int(s, step->regions[k].extent);
      put_int(s, step->regions[k].chunks);
    }
    put_int(s, step->arg_count);
    for (int k = 0; k < step->arg_count; k++) {
      put_address(s, step->args[k]);
    }
    put_int(s, step->condition_count);
    for (int k = 0; k < step->condition_count; k++) {
      put_address(s, step->conditions[k].address);
      put_int(s, step->conditions[k].value);
    }
    put_int(s, step->record != NULL);
    if (step->record) put_call(s, step->record);
  }
}

static void describe_guards(Saving *s) {
  const CompiledProgram *p = s->program;
  put_int(s, p->guard_count);
  for (int i = 0; i < p->guard_count; i++) {
    put_text(s, p->guards[i].access);
    put_int(s, p->guards[i].axis);
    put_int(s, p->guards[i].offset);
  }
}

static void describe(Saving *s) {
  s->description = text_new(&s->context->scratch);
  put_text(s, s->program->name);
  put_int(s, s->program->arena_bytes);
  describe_code(s);
  describe_weights(s);
  describe_arguments(s);
  describe_steps(s);
  describe_guards(s);
}

// ---- Weights

// Constants that are not at multiples of the alignment in one block are copied to one.
static bool gather_weights(Saving *s) {
  const CompiledProgram *p = s->program;
  s->offsets = arena_array(&s->context->scratch, int64_t, p->constant_count);
  int64_t bytes = 0;
  for (int i = 0; i < p->constant_count; i++) {
    s->offsets[i] =
        p->weights ? (const char *)p->constants[i].data - (const char *)p->weights : bytes;
    bytes += ceil_div(p->constants[i].bytes, TENSOR_ALIGNMENT) * TENSOR_ALIGNMENT;
  }
  s->weight_bytes = (uint64_t)(p->weights ? p->weight_bytes : bytes);
  s->weights = p->weights;
  if (p->weights) return true;
  s->weights = s->gathered = memory_alloc((size_t)bytes);
  if (!s->gathered) return diag_error(s->context, (SourcePos){NULL}, "not enough memory");
  memset(s->gathered, 0, (size_t)bytes);
  for (int i = 0; i < p->constant_count; i++)
    memcpy((char *)s->gathered + s->offsets[i], p->constants[i].data,
           (size_t)p->constants[i].bytes);
  return true;
}

// ---- The sections

static void fill_header(Saving *s) {
  SavedHeader *header = s->header = arena_new(&s->context->scratch, SavedHeader);
  memcpy(header->magic, SAVED_MAGIC, sizeof header->magic);
  header->format = SAVED_FORMAT;
  snprintf(header->library, sizeof header->library, "%s", PLEAT_VERSION);
  snprintf(header->cpu, sizeof header->cpu, "%s", s->program->cpu);
  header->code_bytes = saved_padded(s->code.size);
  header->weight_bytes = saved_padded(s->weight_bytes);
  describe(s);
  header->description_bytes = saved_padded(s->description.size);
  header->description =
      padded_digest(s, s->description.data, s->description.size, header->description_bytes);
  header->header = digest_of(header, offsetof(SavedHeader, header));
}

static bool prepare(Saving *s) {
  for (int i = 0; i < s->program->step_count; i++)
    if (s->program->steps[i].opaque && !s->program->steps[i].record)
      return diag_error_as(s->context, DIAG_UNSUPPORTED,
                           (SourcePos){.node = s->program->steps[i].opaque->node},
                           "a saved model cannot hold the library's function '%s'; compile the "
                           "model in the process that runs it",
                           s->program->steps[i].opaque->function);
  if (!code_image_contents(s->program->code, &s->code))
    return diag_error_as(s->context, DIAG_UNSUPPORTED, (SourcePos){NULL},
                         "only code of the target 'llvm' can be saved; compile the model with it");
  if (!gather_weights(s)) return false;
  fill_header(s);
  return true;
}

// Receives the sections one after the other; false with errno set when it fails.
typedef bool (*Sink)(void *env, const void *data, size_t size);

static bool put_section(Sink sink, void *env, const void *data, uint64_t size, uint64_t whole) {
  return sink(env, data, size) && sink(env, zeros, whole - size);
}

static bool put_sections(const Saving *s, Sink sink, void *env) {
  const SavedHeader *h = s->header;
  return sink(env, h, sizeof *h) &&
         put_section(sink, env, s->description.data, s->description.size, h->description_bytes) &&
         put_section(sink, env, s->code.data, s->code.size, h->code_bytes) &&
         put_section(sink, env, s->weights, s->weight_bytes, h->weight_bytes);
}

static bool to_stream(void *env, const void *data, size_t size) {
  return !size || fwrite(data, 1, size, env) == size;
}

static bool to_memory(void *env, const void *data, size_t size) {
  char **next = env;
  if (size) memcpy(*next, data, size);
  *next += size;
  return true;
}

// ---- Writing

// Returns 0, or why the file could not be written.
static int write_stream(const Saving *s, const char *path) {
  FILE *stream = fopen(path, "wb");
  if (!stream) return errno;
  int reason = put_sections(s, to_stream, stream) ? 0 : errno;
  if (fclose(stream) != 0 && !reason) reason = errno;
  return reason;
}

static bool write_file(const Saving *s, const char *path) {
  FileSet *set = file_set_new(s->context);
  const char *temporary = file_set_begin(set, path);
  int reason = temporary ? write_stream(s, temporary) : 0;
  bool written = temporary && (!reason || file_set_fail(set, path, reason));
  return file_set_end(set, written) && written;
}

bool saved_write(Context *context, const CompiledProgram *program, const char *path) {
  Saving s = {.context = context, .program = program};
  ArenaMark mark = arena_mark(&context->scratch);
  bool done = prepare(&s) && write_file(&s, path);
  memory_free(s.gathered);
  arena_reset(&context->scratch, mark);
  return done;
}

bool saved_stream(Context *context, const CompiledProgram *program, FILE *stream) {
  Saving s = {.context = context, .program = program};
  ArenaMark mark = arena_mark(&context->scratch);
  bool done = prepare(&s) && put_sections(&s, to_stream, stream);
  memory_free(s.gathered);
  arena_reset(&context->scratch, mark);
  return done;
}

void *saved_print(Context *context, const CompiledProgram *program, size_t *size) {
  Saving s = {.context = context, .program = program};
  ArenaMark mark = arena_mark(&context->scratch);
  char *data = NULL;
  if (prepare(&s)) {
    const SavedHeader *h = s.header;
    *size = sizeof *h + h->description_bytes + h->code_bytes + h->weight_bytes;
    char *next = data = memory_alloc(*size);
    if (!data)
      diag_error_as(context, DIAG_MEMORY, (SourcePos){NULL},
                    "not enough memory for the saved model");
    if (data) put_sections(&s, to_memory, &next);
  }
  memory_free(s.gathered);
  arena_reset(&context->scratch, mark);
  return data;
}
