// SPDX-License-Identifier: Apache-2.0
// Declares modules as the files of the library see them. The modules that were made from one
// another share a store: a context, which one call uses at a time.
#ifndef PLEAT_API_TIR_H
#define PLEAT_API_TIR_H

#include "api/contents.h"
#include "api/messages.h"
#include "api/request.h"
#include "ir/graph.h"
#include "pleat/tir.h"

typedef struct ModuleStore ModuleStore;

// Never changes once it is made.
struct PleatModule {
  ModuleStore *store; // with one reference
  Module *module;
};

// A call on a module, as the first member of what the call works on.
typedef struct ModuleCall {
  const PleatModule *on;
  Context *context; // of its store
  void (*body)(void *call);
  Module *result; // a module to return; NULL: the call returns none, or failed
  bool done;
} ModuleCall;

// Runs call->body(call) in the store of call->on, and returns the status of a call that succeeded
// if call->done is true afterwards. A module in call->result is then returned in *result.
int module_call_run(void *call, PleatModule **result, PleatMessages **messages);
// Likewise for a call that returns a module: refuses NULL for `module` or `result`.
int module_call_transform(void *call, PleatModule **result, PleatMessages **messages);
// Likewise, and no other call uses the store of `other` meanwhile.
int module_call_run_both(void *call, const PleatModule *other, PleatMessages **messages);
// Likewise in a new store.
int module_call_run_new(void *call, PleatModule **result, PleatMessages **messages);
// The same module once more, to be freed too. NULL when memory is exhausted.
PleatModule *module_keep(const PleatModule *module);
// PLEAT_REFUSED for a call without a module.
int module_refuse_null(PleatMessages **messages);

// Owned text with the contents of `text`. Jumps to the API edge when memory is exhausted.
char *module_owned_text(Context *context, Text *text);
// Constants with more elements are printed by the names of their contents where both sides of a
// text have these.
enum { MOST_PRINTED = 256 };

// The module printed without options, in the context's arena.
Text module_text(Context *context, const Module *module);
// The same with the names of the contents of large constants, which are added to the list, and the
// module of such a text.
Text module_text_with(Context *context, const Module *module, ContentsList *contents);
Module *module_read(Context *context, const char *text, size_t size, ContentsList *contents);
// The module with the same name and attributes, and the same functions or none.
Module *module_copy(Context *context, const Module *module, bool with_functions);
void module_put(Module *module, const ModuleFunc *func);
// The tensor program of that name, or the only one for NULL. NULL with a diagnostic.
PrimFunc *module_prim(Context *context, const Module *module, const char *name);
// The module with `func` in the place of `old`, whose name may differ.
Module *module_with_prim(Context *context, const Module *module, const PrimFunc *old,
                         PrimFunc *func);
// Reports that the module has no such function. Returns false.
bool module_lacks(Context *context, const Module *module, const char *name);

#endif
