// SPDX-License-Identifier: Apache-2.0
// Implements the comparison of modules of pleat/tir.h. The first difference is looked for once more
// in the printed modules, so that it has a position in a text that the caller can show.
#include "api/tir.h"

#include <stdlib.h>

#include "script/script.h"

typedef struct EqualCall {
  ModuleCall call;
  const Module *other;
  bool wants_difference, equal;
  PleatDifference *difference;
} EqualCall;

// ---- The difference in the printed texts --------------------------------------------------------

typedef struct PrintedCall {
  Context *context;
  const char *a, *b;
  IrDifference difference;
  bool found;
} PrintedCall;

static Module *read_back(Context *context, const char *text) {
  return script_parse(context, source_file_new(context, "script", text, strlen(text)));
}

static void find_printed(void *arg) {
  PrintedCall *call = arg;
  const Module *a = read_back(call->context, call->a), *b = read_back(call->context, call->b);
  call->found = a && b && !module_equal_but_names(call->context, a, b, &call->difference);
}

static void set_position(SourcePos pos, int *line, int *column, int *width) {
  DiagPlace place = diag_place(&(Diag){.pos = pos});
  *line = place.line;
  *column = place.column;
  *width = place.width;
}

static PleatDifference *owned_difference(const IrDifference *difference, bool has_positions) {
  const char *what = difference->what ? difference->what : "they differ";
  size_t size = strlen(what) + 1;
  PleatDifference *owned = calloc(1, sizeof *owned + size);
  if (!owned) return NULL;
  char *text = (char *)(owned + 1);
  memcpy(text, what, size);
  owned->text = text;
  if (!has_positions) return owned;
  set_position(difference->a, &owned->a_line, &owned->a_column, &owned->a_width);
  set_position(difference->b, &owned->b_line, &owned->b_column, &owned->b_width);
  return owned;
}

static PleatDifference *describe(Context *context, const EqualCall *call,
                                 const IrDifference *difference) {
  Text a = module_text(context, call->call.on->module), b = module_text(context, call->other);
  PrintedCall printed = {.context = context_new(), .a = text_string(&a), .b = text_string(&b)};
  if (printed.context) context_protect(printed.context, find_printed, &printed);
  PleatDifference *owned =
      owned_difference(printed.found ? &printed.difference : difference, printed.found);
  context_free(printed.context);
  return owned;
}

static void find_difference(void *arg) {
  EqualCall *call = arg;
  Context *context = call->call.context;
  IrDifference difference;
  call->equal = module_equal_but_names(context, call->call.on->module, call->other, &difference);
  call->call.done = true;
  if (call->equal || !call->wants_difference) return;
  call->difference = describe(context, call, &difference);
  if (!call->difference)
    diag_error_as(context, DIAG_MEMORY, (SourcePos){0}, "not enough memory for the difference");
}

int pleat_module_equal(const PleatModule *a, const PleatModule *b, int *equal,
                       PleatDifference **difference, PleatMessages **messages) {
  if (difference) *difference = NULL;
  if (!equal) return messages_refuse("equal", "is NULL, expected where to store it", messages);
  *equal = 0;
  if (!a || !b) return module_refuse_null(messages);
  EqualCall call = {.call = {.on = a, .body = find_difference},
                    .other = b->module,
                    .wants_difference = difference != NULL};
  int status = module_call_run_both(&call, b, messages);
  *equal = call.equal;
  if (difference) *difference = call.difference;
  return status;
}

// ---- Hashes -------------------------------------------------------------------------------------

typedef struct HashCall {
  ModuleCall call;
  uint64_t hash;
} HashCall;

static void hash(void *arg) {
  HashCall *call = arg;
  const Module *module = call->call.on->module;
  const PrimFunc *func = module_only_program(module);
  call->hash =
      func ? prim_func_hash(call->call.context, func) : module_hash(call->call.context, module);
  call->call.done = true;
}

uint64_t pleat_module_hash(const PleatModule *module) {
  HashCall call = {.call = {.on = module, .body = hash}};
  if (module) module_call_run(&call, NULL, NULL);
  return call.hash;
}
