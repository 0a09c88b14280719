// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of passes, which are Python expressions of constants.
#include "passes/arguments.h"

bool pass_is_dict(Context *context, const PyNode *node) {
  bool is_dict = node->kind == PY_DICT;
  for (int i = 0; is_dict && i < node->count; i += 2) is_dict = node->items[i]->kind == PY_STRING;
  return is_dict || diag_error(context, node->pos, "expected a dictionary with strings as keys");
}

const PyNode *pass_dict_find(const PyNode *dict, const char *key) {
  for (int i = 0; i < dict->count; i += 2)
    if (strcmp(dict->items[i]->text, key) == 0) return dict->items[i + 1];
  return NULL;
}

const IndexMap *pass_index_map(Context *context, const PyNode *node, int rank) {
  LayoutSource source = py_layout_source(node, rank);
  if (source.text) return index_map_parse(context, &source);
  diag_error(context, node->pos, "an index map is a lambda or a layout's spelling in quotes");
  return NULL;
}

PrimFunc *pass_program(const PassRun *run, const PyNode *node) {
  Str name = node->kind == PY_STRING ? node->text : py_dotted_name(run->context, node);
  const char *dot = name ? strrchr(name, '.') : NULL;
  const ModuleFunc *func = name ? module_find(run->module, dot ? dot + 1 : name) : NULL;
  if (func && func->prim) return func->prim;
  diag_error(run->context, node->pos, "the module has no tensor program of this name");
  return NULL;
}

bool pass_names_op(const char *text, const char *op) {
  static const char *const heads[] = {"relax.", "R.", ""};
  for (int i = 0; i < COUNT_OF(heads); i++) {
    size_t length = strlen(heads[i]);
    if (strncmp(text, heads[i], length) == 0 && strcmp(text + length, op) == 0) return true;
  }
  return false;
}
