// SPDX-License-Identifier: Apache-2.0
// Takes the compiled model of a session from the user's cache, and keeps it there, together with
// what `run` and `bench` print of it.
#include "cli/session.h"

static void add_arrays(Text *text, const OnnxOptions *import) {
  for (int i = 0; i < import->array_count; i++) kept_array(text, &import->arrays[i]);
  for (int i = 0; i < import->value_count; i++) {
    kept_option(text, "value", import->values[i].name);
    text_printf(text, "%d %d ", import->values[i].data->type.code,
                import->values[i].data->type.bits);
  }
}

static void add_list(Text *text, const char *name, const StringList *list) {
  kept_options(text, name, list->items, list->count);
}

static const char *options_text(const Session *s) {
  const ModelOptions *o = s->model;
  Text text = text_new(&s->cli->context->arena);
  kept_option(&text, "for", "command");
  add_list(&text, "input-shape", &o->input_shapes);
  add_list(&text, "dim", &o->dims);
  add_list(&text, "desired-layout", &o->desired);
  add_list(&text, "keep-layout", &o->keep);
  add_list(&text, "input-layout", &o->input_layouts);
  add_list(&text, "output-layout", &o->output_layouts);
  kept_option(&text, "policy", o->policy ? o->policy : "");
  kept_option(&text, "accuracy", o->accuracy ? o->accuracy : "");
  add_arrays(&text, &s->import);
  return text_string(&text);
}

static bool use_found(Session *s, const Text *more, const InputContents *contents) {
  Context *context = s->cli->context;
  s->summary = model_summary_unpack(&context->arena, more->data, more->size);
  if (!s->summary || !session_compiled_tensors(s, contents)) return false;
  s->executable = executable_of(context, s->compiled);
  return s->executable && session_ready(s);
}

bool session_find(Session *s, const char *path, const InputContents *contents) {
  Context *context = s->cli->context;
  const OnnxOptions *import = &s->import;
  Text more;
  if (!cli_machine(s->cli, &s->machine) || !model_import_options(s->cli, s->model, &s->import))
    return false;
  s->import.used = arena_array(&context->arena, bool, import->value_count + 1);
  bool bypass = s->keep_kernels || s->model->runner_up || s->model->print_after ||
                s->model->verify_each || s->model->offload || s->model->operators.count ||
                s->model->target || s->model->tuning;
  s->kept = kept_model_begin(context, bypass ? NULL : cli_cache(s->cli), path, NULL, 0, &s->machine,
                             options_text(s));
  s->import.bytes = s->kept.bytes;
  s->import.byte_count = s->kept.byte_count;
  s->compiled = kept_model_find(&s->kept, import->values, import->value_count, &more);
  return s->compiled && use_found(s, &more, contents);
}

void session_keep(Session *s) {
  if (!s->program || !s->kept.cache) return;
  const char *more = model_summary_pack(&s->cli->context->arena, s->summary);
  kept_model_keep(&s->kept, s->import.values, s->import.used, s->import.value_count, s->compiled,
                  more, strlen(more));
}
