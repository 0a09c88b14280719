// SPDX-License-Identifier: Apache-2.0
// Takes the compiled program of a request from the user's cache, and keeps it there.
#include "api/load.h"

#include "base/digest.h"

static void add_list(Text *text, const char *name, const char *const *texts, size_t count) {
  kept_options(text, name, texts, (int)count);
}

// The contents of known inputs are part of a compiled program, which refuses others in a run.
static void add_known(Text *text, const PleatNamedTensor *known) {
  const Tensor *tensor = (const Tensor *)known->tensor;
  char digest[DIGEST_TEXT_SIZE];
  digest_print(digest_of(tensor_data(tensor), (size_t)tensor_bytes(tensor)), digest);
  kept_option(text, "known", known->name);
  text_printf(text, "%s %d %d ", digest, tensor->type.code, tensor->type.bits);
  for (int i = 0; i < tensor->rank; i++) text_printf(text, "%lld ", (long long)tensor->shape[i]);
}

static const char *options_text(const RequestCall *call) {
  const PleatRequest *r = &call->request;
  Text text = text_new(&call->context->arena);
  kept_option(&text, "for", "library");
  add_list(&text, "shape", r->shapes, r->shape_count);
  add_list(&text, "desired-layout", r->desired_layouts, r->desired_layout_count);
  add_list(&text, "keep-layout", r->keep_layouts, r->keep_layout_count);
  add_list(&text, "input-layout", r->input_layouts, r->input_layout_count);
  add_list(&text, "output-layout", r->output_layouts, r->output_layout_count);
  kept_option(&text, "policy", r->policy ? r->policy : "");
  kept_option(&text, "accuracy", r->accuracy ? r->accuracy : "");
  kept_option(&text, "quick", r->quick ? "yes" : "no");
  for (size_t i = 0; i < r->known_count; i++) add_known(&text, &r->known[i]);
  for (int i = 0; i < call->array_count; i++) kept_array(&text, &call->arrays[i]);
  return text_string(&text);
}

// The import reports a known tensor that cannot be used.
static bool knows_compact_tensors(const PleatRequest *request) {
  for (size_t i = 0; i < request->known_count; i++) {
    const Tensor *tensor = (const Tensor *)request->known[i].tensor;
    if (!request->known[i].name || !tensor || !tensor->data || !tensor_is_compact(tensor))
      return false;
  }
  return true;
}

bool request_find(RequestCall *call) {
  PleatRequest *request = &call->request;
  Text more;
  if (!call->wants_program || call->functions || request->offload || request->target ||
      request->tuning || !knows_compact_tensors(request))
    return false;
  call->kept = kept_model_begin(call->context, call->options.cache, request->path, request->bytes,
                                request->byte_count, &call->options.machine, options_text(call));
  if (!call->kept.cache) return false;
  request->bytes = call->kept.bytes;
  request->byte_count = call->kept.byte_count;
  call->found = kept_model_find(&call->kept, NULL, 0, &more);
  return call->found != NULL;
}

void request_keep(const RequestCall *call, const CompiledProgram *program) {
  kept_model_keep(&call->kept, NULL, NULL, 0, program, "", 0);
}
