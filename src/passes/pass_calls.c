// SPDX-License-Identifier: Apache-2.0
// Reads lists of passes: `LegalizeOps,FlowLayoutRewrites("forward")`.
#include "passes/passes.h"

static bool take_pass(Context *context, const PyNode *node, PassCalls *calls) {
  bool has_arguments = node->kind == PY_CALL;
  Str name = py_dotted_name(context, has_arguments ? node->items[0] : node);
  if (!name)
    return diag_error(context, node->pos, "expected the name of a pass, saw %s",
                      py_kind_name(node->kind));
  const char *dot = strrchr(name, '.'); // relax.transform.ConvertLayout
  PassCall call = {str_intern(context, dot ? dot + 1 : name), has_arguments ? node : NULL,
                   node->pos};
  array_push(&context->arena, calls, call);
  return true;
}

bool pass_calls_read(Context *context, const char *text, PassCalls *calls) {
  size_t size = strlen(text);
  while (size && strchr(", ", text[size - 1])) size--;
  while (size && strchr(", ", *text)) text++, size--;
  if (!size) return true;
  const char *list = arena_printf(&context->arena, "[%.*s]", (int)size, text);
  const SourceFile *file = source_file_copy(context, "passes", list, size + 2);
  const PyNode *node = py_parse_expression(context, &context->arena, file);
  for (int i = 0; node && i < node->count; i++)
    if (!take_pass(context, node->items[i], calls)) return false;
  return node != NULL;
}

bool pass_call_is_plain(Context *context, const PassCall *call) {
  return !call->call || call->call->count == 1 ||
         diag_error(context, call->pos, "%s takes no arguments", call->name);
}
