// SPDX-License-Identifier: Apache-2.0
// Matches the arguments of a call to a signature, as Python does.
#include "script/python.h"

typedef struct Parameter {
  char name[48];
  bool is_optional, is_rest;
} Parameter;

static int read_signature(const char *signature, Parameter *out) {
  int count = 0;
  for (const char *p = signature; *p;) {
    size_t length = strcspn(p, " ");
    Parameter *parameter = &out[count++];
    *parameter = (Parameter){.is_rest = *p == '*', .is_optional = p[length - 1] == '?'};
    size_t skip = parameter->is_rest, n = length - skip - parameter->is_optional;
    memcpy(parameter->name, p + skip, n);
    parameter->name[n] = 0;
    p += length + (p[length] == ' ');
  }
  return count;
}

static const char *suggestion(Context *context, const char *word, const Parameter *parameters,
                              int count) {
  const char *names[PY_MOST_ARGUMENTS];
  for (int i = 0; i < count; i++) names[i] = parameters[i].name;
  return suggestion_of(&context->arena, word, names, count);
}

static bool take_keyword(Context *context, const PyNode *argument, const Parameter *parameters,
                         int count, PyNode **out) {
  for (int i = 0; i < count; i++) {
    if (parameters[i].is_rest || strcmp(parameters[i].name, argument->text)) continue;
    if (out[i])
      return diag_error(context, argument->pos, "argument '%s' is given twice", argument->text);
    out[i] = argument->items[0];
    return true;
  }
  return diag_error(context, argument->pos, "there is no argument '%s'%s", argument->text,
                    suggestion(context, argument->text, parameters, count));
}

static bool take_positional(Context *context, const PyNode *call, int i, bool has_rest, int fixed,
                            PyNode **out) {
  PyNode *argument = call->items[i];
  if (argument->kind == PY_STAR)
    return diag_error(context, argument->pos, "'*' arguments are not supported");
  if (i - 1 < fixed) {
    out[i - 1] = argument;
    return true;
  }
  if (has_rest) return true;
  return diag_error(context, argument->pos, "expected at most %d arguments, saw another", fixed);
}

static bool all_present(Context *context, const PyNode *call, const Parameter *parameters,
                        int fixed, PyNode **out) {
  for (int i = 0; i < fixed; i++) {
    if (out[i] && out[i]->kind == PY_NONE && parameters[i].is_optional) out[i] = NULL;
    if (!out[i] && !parameters[i].is_optional)
      return diag_error(context, call->pos, "argument '%s' is missing", parameters[i].name);
  }
  return true;
}

bool py_arguments(Context *context, const PyNode *call, const char *signature, PyNode **out,
                  int *rest) {
  Parameter parameters[PY_MOST_ARGUMENTS];
  int count = read_signature(signature, parameters);
  bool has_rest = count && parameters[count - 1].is_rest;
  int fixed = count - has_rest;
  memset(out, 0, sizeof *out * (size_t)fixed);
  if (rest) *rest = fixed + 1;
  for (int i = 1; i < call->count; i++) {
    const PyNode *argument = call->items[i];
    bool ok = argument->kind == PY_KEYWORD
                  ? take_keyword(context, argument, parameters, count, out)
                  : take_positional(context, call, i, has_rest, fixed, out);
    if (!ok) return false;
  }
  return all_present(context, call, parameters, fixed, out);
}
