// SPDX-License-Identifier: Apache-2.0
// Models with free sizes: they keep their request, and a compiled variant for each of the sizes
// with which they were run last.
#include <stdatomic.h>
#include <stdlib.h>

#include "api/contents.h"
#include "api/load.h"
#include "api/messages.h"
#include "api/model.h"

enum { USUAL_MOST = 8 };

typedef struct Variant {
  PleatModel *model; // of which this is a reference
  int64_t last_use;
} Variant;

struct OpenModel {
  Context *context; // of the request
  PleatRequest request;
  pthread_mutex_t lock; // of all that follows; held while a variant is compiled
  Variant *variants;
  int count, room;
  int64_t clock;
};

// ---- Requests that are kept ---------------------------------------------------------------------

static void keep_texts(Arena *arena, const char *const **texts, size_t count) {
  const char **copies = arena_array(arena, const char *, count);
  for (size_t i = 0; i < count; i++) copies[i] = arena_text(arena, (*texts)[i]);
  *texts = copies;
}

// A compact copy of a tensor that is known to be compact.
static PleatTensor *kept_tensor(Arena *arena, const PleatTensor *tensor) {
  const Tensor *from = (const Tensor *)tensor;
  PleatTensor *copy = arena_copy(arena, tensor, sizeof *tensor);
  copy->data = arena_copy(arena, tensor_data(from), (size_t)tensor_bytes(from));
  copy->shape = arena_copy(arena, tensor->shape, sizeof(int64_t) * (size_t)tensor->rank);
  copy->strides = NULL;
  copy->byte_offset = 0;
  return copy;
}

static void keep_known(Arena *arena, PleatRequest *r) {
  PleatNamedTensor *known = arena_array(arena, PleatNamedTensor, r->known_count);
  for (size_t i = 0; i < r->known_count; i++)
    known[i] = (PleatNamedTensor){arena_text(arena, r->known[i].name),
                                  kept_tensor(arena, r->known[i].tensor)};
  r->known = known;
}

static void keep_operators(Arena *arena, PleatRequest *r) {
  const PleatOperator **operators = arena_array(arena, const PleatOperator *, r->operator_count);
  for (size_t i = 0; i < r->operator_count; i++) {
    PleatOperator *copy = arena_copy(arena, r->operators[i], r->operators[i]->size);
    copy->name = arena_text(arena, copy->name);
    operators[i] = copy;
  }
  r->operators = operators;
}

static void keep_contents(Context *context, PleatRequest *r) {
  Contents **kept = arena_array(&context->lasting, Contents *, r->content_count);
  for (size_t i = 0; i < r->content_count; i++) {
    kept[i] = (Contents *)r->contents[i];
    contents_hold(context, kept[i]);
  }
  r->contents = (PleatContents *const *)kept;
}

typedef struct KeepCall {
  OpenModel *open;
  const PleatRequest *given;
  bool done;
} KeepCall;

// Copies the request as the caller gave it; a file is mapped, so that all variants are of the same.
static void keep_request(void *arg) {
  KeepCall *call = arg;
  Context *context = call->open->context;
  Arena *arena = &context->lasting;
  PleatRequest *r = &call->open->request;
  if (!request_read(context, call->given, r)) return;
  r->size = sizeof *r;
  r->path = arena_text(arena, r->path);
  r->bytes = r->bytes ? arena_copy(arena, r->bytes, r->byte_count)
                      : file_map(context, r->path, (SourcePos){0}, &r->byte_count);
  if (!r->bytes) return;
  keep_texts(arena, &r->shapes, r->shape_count);
  keep_texts(arena, &r->output_layouts, r->output_layout_count);
  keep_texts(arena, &r->desired_layouts, r->desired_layout_count);
  keep_texts(arena, &r->keep_layouts, r->keep_layout_count);
  keep_known(arena, r);
  keep_operators(arena, r);
  keep_contents(context, r);
  r->cpu = arena_text(arena, r->cpu);
  r->func = arena_text(arena, r->func);
  r->offload = arena_text(arena, r->offload);
  r->tuning = arena_text(arena, r->tuning);
  r->target = arena_text(arena, r->target);
  r->policy = arena_text(arena, r->policy);
  r->accuracy = arena_text(arena, r->accuracy);
  r->language = arena_text(arena, r->language);
  r->log = NULL;
  r->progress = NULL;
  r->cancel = NULL;
  r->hook_env = NULL;
  call->done = true;
}

// ---- Making -----------------------------------------------------------------------------------

static OpenModel *open_new(Context *context, const PleatRequest *given) {
  OpenModel *open = calloc(1, sizeof *open);
  if (open) open->context = context_new();
  if (!open || !open->context || pthread_mutex_init(&open->lock, NULL) != 0) {
    if (open) context_free(open->context);
    free(open);
    diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for a model");
    return NULL;
  }
  KeepCall call = {open, given, false};
  bool finished = context_protect(open->context, keep_request, &call);
  if (finished && call.done) return open;
  open_model_free(open);
  diag_error_as(context, finished ? DIAG_FILE : DIAG_MEMORY, (SourcePos){0},
                "the model could not be kept for the sizes of further runs: %s",
                finished ? "its file cannot be mapped" : "not enough memory");
  return NULL;
}

typedef struct DescribeCall {
  CompiledProgram *program;
  const PleatRequest *request;
  const OnnxImport *import;
} DescribeCall;

static ArgumentSpec *specs_of(Context *context, const OnnxArguments *arguments) {
  Arena *arena = &context->lasting;
  ArgumentSpec *specs = arena_array(arena, ArgumentSpec, arguments->count);
  for (int i = 0; i < arguments->count; i++) {
    const OnnxArgument *from = &arguments->items[i];
    size_t axes = (size_t)MAX_OF(from->rank, 0);
    specs[i] = (ArgumentSpec){.name = str_intern(context, from->name),
                              .rank = from->rank,
                              .any_strides = true,
                              .is_sizes = from->is_sizes,
                              .shape = arena_copy(arena, from->shape, axes * sizeof(int64_t))};
    if (from->has_type) element_type_parse(dtype_name(context, from->type), &specs[i].type);
  }
  return specs;
}

// The physical shape of an output in a layout is known with the sizes.
static bool has_layout(const PleatRequest *request, const char *output) {
  size_t length = strlen(output);
  for (size_t i = 0; i < request->output_layout_count; i++)
    if (!strncmp(request->output_layouts[i], output, length) &&
        request->output_layouts[i][length] == '=')
      return true;
  return false;
}

static void describe(void *arg) {
  DescribeCall *call = arg;
  CompiledProgram *p = call->program;
  p->name = "main";
  p->inputs = specs_of(p->context, &call->import->open_inputs);
  p->outputs = specs_of(p->context, &call->import->open_outputs);
  p->input_count = call->import->open_inputs.count;
  p->output_count = call->import->open_outputs.count;
  for (int i = 0; i < p->output_count; i++)
    if (has_layout(call->request, p->outputs[i].name)) p->outputs[i].rank = ONNX_OPEN;
}

// A program that has only arguments.
static CompiledProgram *describing_program(const PleatRequest *request, const OnnxImport *import) {
  DescribeCall call = {compiled_program_new(), request, import};
  if (call.program && context_protect(call.program->context, describe, &call)) return call.program;
  compiled_program_release(call.program);
  return NULL;
}

PleatModel *open_model_new(Context *context, const PleatRequest *request, const OnnxImport *import,
                           const RunThreads *threads) {
  OpenModel *open = open_new(context, request);
  if (!open) return NULL;
  CompiledProgram *program = describing_program(&open->request, import);
  PleatModel *model = program ? model_of(program, threads) : NULL;
  compiled_program_release(program);
  if (model) return model->open = open, model;
  open_model_free(open);
  diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for a model");
  return NULL;
}

void open_model_free(OpenModel *open) {
  if (!open) return;
  for (int i = 0; i < open->count; i++) model_release(open->variants[i].model);
  free(open->variants);
  pthread_mutex_destroy(&open->lock);
  context_free(open->context);
  free(open);
}

int open_model_most(const OpenModel *open) {
  return open->request.most_variants ? open->request.most_variants : USUAL_MOST;
}

// ---- Variants -----------------------------------------------------------------------------------

const int64_t *model_sizes_in(const PleatModel *open, int input, const PleatTensor *given) {
  const Tensor *tensor = (const Tensor *)given;
  bool reads = open->program->inputs[input].is_sizes && tensor_is_compact(tensor);
  return reads ? tensor_data(tensor) : NULL;
}

// Was the variant compiled for the sizes that this input holds?
static bool has_sizes(const PleatModel *open, const PleatModel *variant, int input,
                      const PleatTensor *given) {
  const int64_t *sizes = model_sizes_in(open, input, given);
  const void *known = variant->program->known[input];
  return !sizes || !known || !memcmp(known, sizes, (size_t)tensor_bytes((const Tensor *)given));
}

bool model_is_for(const PleatModel *open, const PleatModel *variant, const PleatTensor *inputs) {
  for (int i = 0; i < variant->program->input_count; i++) {
    const PleatArgument *argument = &variant->inputs[i];
    if (argument->rank != inputs[i].rank) return false;
    for (int axis = 0; axis < argument->rank; axis++)
      if (argument->shape[axis] != inputs[i].shape[axis]) return false;
    if (!has_sizes(open, variant, i, &inputs[i])) return false;
  }
  return true;
}

static Variant *find(const PleatModel *model, const PleatTensor *inputs) {
  OpenModel *open = model->open;
  for (int i = 0; i < open->count; i++)
    if (model_is_for(model, open->variants[i].model, inputs)) return &open->variants[i];
  return NULL;
}

// The variant that was used least recently of those that no session has, or NULL.
static Variant *find_oldest(OpenModel *open) {
  Variant *oldest = NULL;
  for (int i = 0; i < open->count; i++) {
    Variant *v = &open->variants[i];
    if (atomic_load(&v->model->references) == 1 && (!oldest || v->last_use < oldest->last_use))
      oldest = v;
  }
  return oldest;
}

static void drop_oldest(OpenModel *open) {
  for (Variant *oldest; open->count > open_model_most(open) && (oldest = find_oldest(open));) {
    model_release(oldest->model);
    *oldest = open->variants[--open->count];
  }
}

static bool reserve(OpenModel *open) {
  if (open->count < open->room) return true;
  int room = 2 * open->room + 8;
  Variant *variants = realloc(open->variants, (size_t)room * sizeof *variants);
  if (!variants) return false;
  open->variants = variants;
  open->room = room;
  return true;
}

// Without memory for the lists, the variant keeps its own weights.
static void share_weights(const OpenModel *open, const PleatModel *variant) {
  CompiledProgram **others = calloc((size_t)open->count + 1, sizeof(CompiledProgram *));
  if (!others) return;
  for (int i = 0; i < open->count; i++) others[i] = open->variants[i].model->program;
  compiled_program_share(variant->program, others, open->count);
  free(others);
}

static bool has_arguments_of(const PleatModel *variant, const PleatModel *model) {
  const CompiledProgram *v = variant->program, *m = model->program;
  if (v->input_count != m->input_count || v->output_count != m->output_count) return false;
  for (int i = 0; i < m->input_count; i++)
    if (strcmp(v->inputs[i].name, m->inputs[i].name) != 0) return false;
  return true;
}

static int add_variant(PleatModel *model, const PleatTensor *inputs, PleatMessages **messages) {
  OpenModel *open = model->open;
  PleatModel *variant;
  if (!reserve(open)) return messages_no_memory(messages);
  int status = model_compile_for(&open->request, model, inputs, &variant, messages);
  if (status != PLEAT_OK) return status;
  if (!has_arguments_of(variant, model) || !model_is_for(model, variant, inputs)) {
    model_release(variant);
    if (messages) pleat_messages_free(*messages);
    return messages_refuse("free_sizes",
                           "the inputs or outputs depend on the sizes: give all sizes "
                           "in `shapes`",
                           messages);
  }
  share_weights(open, variant);
  open->variants[open->count++] = (Variant){variant, 0};
  return PLEAT_OK;
}

int open_model_variant(PleatModel *model, const PleatTensor *inputs, PleatModel **variant,
                       PleatMessages **messages) {
  OpenModel *open = model->open;
  pthread_mutex_lock(&open->lock);
  int status = find(model, inputs) ? PLEAT_OK : add_variant(model, inputs, messages);
  if (status == PLEAT_OK) {
    Variant *found = find(model, inputs);
    found->last_use = ++open->clock;
    *variant = found->model;
    atomic_fetch_add(&(*variant)->references, 1);
    drop_oldest(open);
  }
  pthread_mutex_unlock(&open->lock);
  return status;
}
