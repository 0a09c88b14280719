// SPDX-License-Identifier: Apache-2.0
// Implements pleat_script_format of pleat/tir.h.
#include "api/tir.h"

#include "script/format.h"

typedef struct FormatCall {
  ModuleCall call;
  const char *text;
  const PleatFormatOptions *given;
  char *formatted;
} FormatCall;

static void format(void *arg) {
  FormatCall *call = arg;
  Context *context = call->call.context;
  PleatFormatOptions given = {0};
  context->caller = CALLER_C;
  if (call->given && !struct_read(context, "PleatFormatOptions", call->given, &given, sizeof given))
    return;
  if (given.newer_names && !given.upgrade) {
    field_error(context, "newer_names", "is set without upgrade; only an upgrade changes names");
    return;
  }
  const char *name = given.file ? given.file : "script";
  SourceFile *file = source_file_copy(context, name, call->text, strlen(call->text));
  Text text = text_new(&context->arena);
  FormatOptions options = {.upgrade = given.upgrade != 0, .newer = given.newer_names != 0};
  if (!script_format(context, file, &options, &text)) return;
  call->formatted = module_owned_text(context, &text);
  call->call.done = call->formatted != NULL;
}

int pleat_script_format(const char *text, const PleatFormatOptions *options, char **formatted,
                        PleatMessages **messages) {
  if (!formatted)
    return messages_refuse("formatted", "is NULL, expected where to store it", messages);
  *formatted = NULL;
  if (!text) return messages_refuse("text", "is NULL, expected TVMScript", messages);
  FormatCall call = {.call = {.body = format}, .text = text, .given = options};
  PleatModule *none = NULL;
  int status = module_call_run_new(&call, &none, messages);
  *formatted = call.formatted;
  return status;
}
