// SPDX-License-Identifier: Apache-2.0
// Reads the attributes of a node. They are checked against the node's row once, so that the
// functions that read them need no checks.
#include "frontend/onnx/import.h"

typedef struct KindRow {
  const char *name, *spoken;
  int32_t type; // AttributeProto.AttributeType
} KindRow;

static const KindRow kinds[] = {
    {"float", "a number", onnx_AttributeProto_AttributeType_FLOAT},
    {"int", "an integer", onnx_AttributeProto_AttributeType_INT},
    {"string", "text", onnx_AttributeProto_AttributeType_STRING},
    {"tensor", "a tensor", onnx_AttributeProto_AttributeType_TENSOR},
    {"sparse", "a sparse tensor", onnx_AttributeProto_AttributeType_SPARSE_TENSOR},
    {"type", "a type", onnx_AttributeProto_AttributeType_TYPE_PROTO},
    {"graph", "a graph", onnx_AttributeProto_AttributeType_GRAPH},
    {"floats", "numbers", onnx_AttributeProto_AttributeType_FLOATS},
    {"ints", "integers", onnx_AttributeProto_AttributeType_INTS},
    {"strings", "texts", onnx_AttributeProto_AttributeType_STRINGS},
};

const OnnxAttribute *import_attribute(const Import *import, const char *name) {
  for (int i = 0; i < import->node->attribute.count; i++)
    if (strcmp(import->node->attribute.items[i].name, name) == 0)
      return &import->node->attribute.items[i];
  return NULL;
}

// The position of "name:" in the row's list; NULL when the list lacks it.
static const char *find_declared(const char *declared, const char *name) {
  size_t n = strlen(name);
  for (const char *p = declared; p && *p; p = strchr(p, ' '), p = p ? p + 1 : NULL)
    if (n && strncmp(p, name, n) == 0 && p[n] == ':') return p + n + 1;
  return NULL;
}

bool import_declares(const OnnxRow *row, const char *attribute) {
  return find_declared(row->attributes, attribute) != NULL;
}

static const KindRow *kind_named(const char *declared) {
  size_t n = strcspn(declared, " ");
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (strlen(kinds[i].name) == n && strncmp(kinds[i].name, declared, n) == 0) return &kinds[i];
  return NULL;
}

static const char *kind_spoken(int32_t type) {
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (kinds[i].type == type) return kinds[i].spoken;
  return "something else";
}

static bool check_attribute(Import *import, const OnnxAttribute *attribute) {
  const char *declared = find_declared(import->row->attributes, attribute->name);
  if (!declared) return import_refuse(import, "attribute '%s' is not supported", attribute->name);
  const KindRow *kind = kind_named(declared);
  if (!kind) bug(import->context, "row %s: bad attribute list", import->row->name);
  if (attribute->type == kind->type && !*attribute->ref_attr_name) return true;
  return import_refuse(import, "attribute '%s' is %s, expected %s", attribute->name,
                       kind_spoken(attribute->type), kind->spoken);
}

bool import_check_attributes(Import *import) {
  bool ok = true;
  for (int i = 0; i < import->node->attribute.count; i++)
    ok &= check_attribute(import, &import->node->attribute.items[i]);
  return ok;
}

bool import_has(const Import *import, const char *attribute) {
  return import_attribute(import, attribute) != NULL;
}

int64_t import_int(const Import *import, const char *attribute, int64_t otherwise) {
  const OnnxAttribute *found = import_attribute(import, attribute);
  return found ? found->i : otherwise;
}

double import_float(const Import *import, const char *attribute, double otherwise) {
  const OnnxAttribute *found = import_attribute(import, attribute);
  return found ? (double)found->f : otherwise;
}

const char *import_text(const Import *import, const char *attribute, const char *otherwise) {
  const OnnxAttribute *found = import_attribute(import, attribute);
  if (!found) return otherwise;
  return str_intern_n(import->context, found->s.size ? (const char *)found->s.data : "",
                      found->s.size);
}

IntArray import_ints(const Import *import, const char *attribute) {
  const OnnxAttribute *found = import_attribute(import, attribute);
  return found ? found->ints : (IntArray){0};
}

OnnxFloats import_floats(const Import *import, const char *attribute) {
  const OnnxAttribute *found = import_attribute(import, attribute);
  return found ? found->floats : (OnnxFloats){0};
}
