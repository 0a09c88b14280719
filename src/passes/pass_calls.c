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

// The names of a signature, as a list for messages.
static const char *names_of(Context *context, const char *signature) {
  Text text = text_new(&context->arena);
  for (const char *p = signature; *p; p++) {
    if (*p == ' ')
      text_printf(&text, ", ");
    else if (*p != '?')
      text_printf(&text, "%c", *p);
  }
  return text_string(&text);
}

static bool check_names(Context *context, const PassCall *call, const char *signature) {
  if (call->call->count > 1 && !*signature)
    return diag_error(context, call->pos, "%s takes no arguments", call->name);
  for (int i = 1; i < call->call->count; i++) {
    const PyNode *argument = call->call->items[i];
    if (argument->kind == PY_KEYWORD && text_word_index(signature, argument->text) < 0)
      return diag_error(context, argument->pos, "%s has no argument '%s'; it has: %s", call->name,
                        argument->text, names_of(context, signature));
  }
  return true;
}

bool pass_call_arguments(Context *context, const PassCall *call, const char *signature,
                         PyNode **out) {
  if (call->call)
    return check_names(context, call, signature) &&
           py_arguments(context, call->call, signature, out, NULL);
  bool needs = *signature && signature[strcspn(signature, " ") - 1] != '?';
  return !needs ||
         diag_error(context, call->pos, "%s needs its arguments: %s", call->name, signature);
}
