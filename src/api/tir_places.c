// SPDX-License-Identifier: Apache-2.0
// Finds where the statements and buffers in the lines of a printed module came from.
#include "api/tir.h"

#include <stdlib.h>

#include "script/script.h"

typedef struct PlaceCall {
  ModuleCall call;
  int line;
  PleatPlace *place;
} PlaceCall;

static const char *end_of_line(Text *text, int line) {
  const char *at = text_string(text);
  for (int i = 0; at && i < line; i++) {
    at = strchr(at, '\n');
    if (at) at++;
  }
  return at ? at : text_string(text) + text->size;
}

// The last function, buffer or statement that begins in the line or before it.
static const ScriptPlace *place_before(const ScriptPlaces *places, size_t end) {
  const ScriptPlace *found = NULL;
  for (int i = 0; i < places->count && places->items[i].offset < end; i++)
    found = &places->items[i];
  return found;
}

static PleatPlace *owned_place(SourcePos pos) {
  DiagPlace place = diag_place(&(Diag){.pos = pos});
  if (!place.source) return NULL;
  size_t name_size = strlen(pos.file->name) + 1, source_size = (size_t)place.source_size;
  PleatPlace *owned = calloc(1, sizeof *owned + name_size + source_size + 1);
  if (!owned) return NULL;
  char *file = (char *)(owned + 1), *source = file + name_size;
  memcpy(file, pos.file->name, name_size);
  memcpy(source, place.source, source_size);
  *owned = (PleatPlace){file, place.line, place.column, place.width, source};
  return owned;
}

static void find_place(void *arg) {
  PlaceCall *call = arg;
  Context *context = call->call.context;
  ScriptPlaces places = {0};
  Text text = text_new(&context->scratch);
  script_print_module(context, call->call.on->module, &text, &(ScriptOptions){.places = &places});
  const char *end = end_of_line(&text, call->line);
  const ScriptPlace *found = place_before(&places, (size_t)(end - text_string(&text)));
  if (found) call->place = owned_place(found->pos);
  call->call.done = true;
}

int pleat_module_place(const PleatModule *module, int line, PleatPlace **place,
                       PleatMessages **messages) {
  if (!place) return messages_refuse("place", "is NULL, expected where to store it", messages);
  *place = NULL;
  if (!module) return module_refuse_null(messages);
  PlaceCall call = {.call = {.on = module, .body = find_place}, .line = line};
  int status = module_call_run(&call, NULL, messages);
  *place = call.place;
  return status;
}
