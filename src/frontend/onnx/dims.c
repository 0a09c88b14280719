// SPDX-License-Identifier: Apache-2.0
// Finds the shapes of inputs. Free dimensions have names, or are expressions of names ("2*batch",
// "length + 1"). Their sizes come from --dim, or from the shape that the user gave for an input.
#include "frontend/onnx/import.h"

#include <ctype.h>
#include <stdlib.h>

// ---- Shapes that the user gave ----------------------------------------------------------------

// The text after "=" of "name=value" in the options; NULL when there is none for this name.
static const char *given_in(const char *const *list, int count, Str name) {
  size_t n = strlen(name);
  for (int i = 0; n && i < count; i++)
    if (strncmp(list[i], name, n) == 0 && list[i][n] == '=' && !strchr(list[i] + n + 1, '='))
      return list[i] + n + 1;
  return NULL;
}

static const char *given_shape(const Importer *importer, Str name) {
  return given_in(importer->options->shapes, importer->options->shape_count, name);
}

bool importer_was_given(const Importer *importer, Str name) {
  size_t n = strlen(name);
  for (int i = 0; i < importer->options->shape_count; i++) {
    const char *given = importer->options->shapes[i];
    if (strncmp(given, name, n) == 0 && (given[n] == '=' || given[n] == '[')) return true;
  }
  return false;
}

int importer_held_count(const Importer *importer, Str name) {
  size_t n = strlen(name);
  int most = 0;
  for (int i = 0; i < importer->options->shape_count; i++) {
    const char *given = importer->options->shapes[i];
    if (strncmp(given, name, n) != 0 || given[n] != '[') continue;
    long last = strtol(given + n + 1, NULL, 10);
    most = MAX_OF(most, (int)MIN_OF(last, INT32_MAX - 1) + 1);
  }
  return most;
}

bool importer_was_said(const Importer *importer, Str name, const char *word) {
  const char *given = given_shape(importer, name);
  return given && strcmp(given, word) == 0;
}

// Parses "1x3x224x224" or "1,3,224,224"; false for other text.
static bool parse_shape(Context *context, const char *s, IntArray *shape) {
  *shape = (IntArray){0};
  while (*s) {
    char *end;
    long long dim = strtoll(s, &end, 10);
    if (end == s || dim < 0 || (*end && (!strchr("x,", *end) || !end[1]))) return false;
    array_push(&context->arena, shape, dim);
    s = *end ? end + 1 : end;
  }
  return true;
}

// The declared dimensions; for an optional value those of its element. NULL when there are none.
static OnnxDims *declared_dims(const OnnxValue *value) {
  const OnnxType *type = value->type;
  if (type && type->optional_type) type = type->optional_type->elem_type;
  if (!type || !type->tensor_type || !type->tensor_type->shape) return NULL;
  return &type->tensor_type->shape->dim;
}

// True when `name` may be part of the input with this `value`: "x[0]=2x3", "x=empty" for a
// sequence, "x=none" for an optional value.
static bool is_of_list(const OnnxValue *input, Str name, const char *value) {
  const OnnxType *type = input->type;
  size_t n = strlen(input->name);
  bool word = strcmp(value, "none") == 0 || strcmp(value, "empty") == 0;
  if (strncmp(name, input->name, n) != 0 || !type) return false;
  bool optional = type->optional_type != NULL;
  if (optional && !name[n] && strcmp(value, "none") == 0) return true;
  if (optional) type = type->optional_type->elem_type;
  for (name += n; type && type->sequence_type; type = type->sequence_type->elem_type) {
    if (!*name) return strcmp(value, "empty") == 0;
    if (*name != '[') return false;
    name += 1 + strspn(name + 1, "0123456789");
    if (*name++ != ']') return false;
  }
  return !*name && !word;
}

static bool is_list_given(const Importer *importer, Str name, const char *value) {
  const OnnxValues *inputs = &importer->model->graph->input;
  IntArray shape;
  bool word = strcmp(value, "none") == 0 || strcmp(value, "empty") == 0;
  if (!word && !parse_shape(importer->context, value, &shape)) return false;
  for (int i = 0; i < inputs->count; i++) {
    const OnnxType *type = inputs->items[i].type;
    if (type && !type->tensor_type && is_of_list(&inputs->items[i], name, value)) return true;
  }
  return false;
}

// ---- Expressions ------------------------------------------------------------------------------
//
//   sum:     product (("+" | "-") product)*
//   product: factor (("*" | "//" | "/" | "%") factor)*      divisions round down
//   factor:  number | name | "-" factor | "(" sum ")"

enum { MOST_NESTED = 50 };

typedef struct Reader {
  const Importer *importer;
  const char *at;
  int depth;
  bool failed;
  Str missing;      // the first name that has no size
  OnnxNames *names; // collects all names; may be NULL
} Reader;

static int64_t read_sum(Reader *r);

static bool take(Reader *r, const char *token) {
  while (*r->at == ' ') r->at++;
  size_t n = strlen(token);
  if (strncmp(r->at, token, n) != 0) return false;
  r->at += n;
  return true;
}

static int64_t fail(Reader *r) {
  r->failed = true;
  return 1;
}

static bool is_name_part(char c) {
  return c && (isalnum((unsigned char)c) || strchr("_.:", c));
}

static int64_t read_name(Reader *r) {
  Context *context = r->importer->context;
  size_t n = 0;
  while (is_name_part(r->at[n])) n++;
  Str name = str_intern_n(context, r->at, n);
  const int64_t *size = map_find(&r->importer->dims, name);
  r->at += n;
  if (!n) return fail(r);
  if (r->names) array_push(&context->arena, r->names, name);
  if (!size && !r->missing) r->missing = name;
  return size ? *size : 1;
}

static int64_t read_factor(Reader *r) {
  int64_t value;
  if (r->depth >= MOST_NESTED) return fail(r);
  r->depth++;
  if (take(r, "(")) {
    value = read_sum(r);
    if (!take(r, ")")) fail(r);
  } else if (take(r, "-")) {
    value = read_factor(r);
    value = value == INT64_MIN ? fail(r) : -value;
  } else if (isdigit((unsigned char)*r->at)) {
    char *end;
    value = strtoll(r->at, &end, 10);
    r->at = end;
  } else {
    value = read_name(r);
  }
  r->depth--;
  return value;
}

static int64_t divided(Reader *r, int64_t a, int64_t b, bool rest) {
  if (b <= 0) return r->missing ? 1 : fail(r);
  return rest ? a - floor_div(a, b) * b : floor_div(a, b);
}

static int64_t read_product(Reader *r) {
  int64_t value = read_factor(r);
  while (!r->failed) {
    if (take(r, "*")) {
      if (!mul_fits(value, read_factor(r), &value)) fail(r);
    } else if (take(r, "//") || take(r, "/")) {
      value = divided(r, value, read_factor(r), false);
    } else if (take(r, "%")) {
      value = divided(r, value, read_factor(r), true);
    } else {
      break;
    }
  }
  return value;
}

static int64_t read_sum(Reader *r) {
  int64_t value = read_product(r);
  while (!r->failed) {
    bool minus = take(r, "-");
    if (!minus && !take(r, "+")) break;
    int64_t next = read_product(r);
    if (next == INT64_MIN || !add_fits(value, minus ? -next : next, &value)) fail(r);
  }
  return value;
}

// Evaluates the text; false when it is not an expression. *missing is a name without a size, or
// NULL.
static bool evaluate(const Importer *importer, const char *text, int64_t *value, Str *missing,
                     OnnxNames *names) {
  Reader reader = {.importer = importer, .at = text, .names = names};
  *value = read_sum(&reader);
  while (*reader.at == ' ') reader.at++;
  *missing = reader.missing;
  return !reader.failed && !*reader.at;
}

// ---- Shapes and sizes from the options --------------------------------------------------------

typedef struct DimNames {
  OnnxNames inputs, dims;
} DimNames;

static void collect_dim(Importer *importer, Str dim, DimNames *names) {
  int64_t value;
  Str missing;
  OnnxNames parts = {0};
  if (!*dim) return;
  array_push(&importer->context->arena, &names->dims, dim);
  if (evaluate(importer, dim, &value, &missing, &parts))
    for (int i = 0; i < parts.count; i++)
      array_push(&importer->context->arena, &names->dims, parts.items[i]);
}

static DimNames names_of(Importer *importer) {
  DimNames names = {0};
  OnnxValues *inputs = &importer->model->graph->input;
  for (int i = 0; i < inputs->count; i++) {
    OnnxDims *dims = declared_dims(&inputs->items[i]);
    array_push(&importer->context->arena, &names.inputs, inputs->items[i].name);
    for (int k = 0; dims && k < dims->count; k++)
      collect_dim(importer, dims->items[k].dim_param, &names);
  }
  return names;
}

static bool is_among(const OnnxNames *names, Str name) {
  for (int i = 0; i < names->count; i++)
    if (names->items[i] == name) return true;
  return false;
}

static void refuse_unknown(Importer *importer, const char *what, const char *of, Str name,
                           const OnnxNames *names) {
  const char *near = nearest_name(name, names->items, names->count);
  diag_error(importer->context, importer_pos(importer, NULL),
             "%s is given for '%s', but there is no such %s%s%s%s", what, name, of,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void set_size(Importer *importer, Str name, int64_t size) {
  int64_t *place = arena_new(&importer->context->arena, int64_t);
  *place = size;
  map_put(&importer->dims, name, place);
}

// Takes one "name=…" of --input-shape (is_shape) or --dim.
static void take_given(Importer *importer, const char *given, const DimNames *names,
                       bool is_shape) {
  Context *context = importer->context;
  const char *equals = strrchr(given, '=');
  Str name = str_intern_n(context, given, equals ? (size_t)(equals - given) : strlen(given));
  IntArray size;
  if (is_shape && equals && is_list_given(importer, name, equals + 1)) return;
  bool valid = equals && parse_shape(context, equals + 1, &size) && (is_shape || size.count == 1);
  if (!valid && is_shape)
    diag_error(context, importer_pos(importer, NULL), "'%s' is not a shape: write NAME=1x3x224x224",
               given);
  else if (!valid)
    diag_error(context, importer_pos(importer, NULL), "'%s' is not a size: write NAME=4", given);
  else if (is_among(&names->dims, name) && size.count == 1)
    set_size(importer, name, size.items[0]);
  else if (!is_shape)
    refuse_unknown(importer, "a size", "free dimension", name, &names->dims);
  else if (!is_among(&names->inputs, name)) {
    OnnxNames all = {0};
    for (int i = 0; i < names->inputs.count; i++)
      array_push(&context->arena, &all, names->inputs.items[i]);
    for (int i = 0; i < names->dims.count; i++)
      array_push(&context->arena, &all, names->dims.items[i]);
    refuse_unknown(importer, "a shape", "input or free dimension", name, &all);
  }
}

// Sets the free dimensions of an input from the shape that the user gave for it.
static void take_from_input(Importer *importer, const OnnxValue *input) {
  Context *context = importer->context;
  const char *given = given_shape(importer, input->name);
  OnnxDims *dims = declared_dims(input);
  IntArray shape;
  if (!given || !dims || !parse_shape(context, given, &shape) || shape.count != dims->count) return;
  for (int i = 0; i < dims->count; i++) {
    Str name = dims->items[i].dim_param;
    const int64_t *known = *name ? map_find(&importer->dims, name) : NULL;
    if (known && *known != shape.items[i])
      diag_error(context, importer_pos(importer, NULL),
                 "dimension '%s' is %lld in the shape given for '%s', but %lld elsewhere", name,
                 (long long)shape.items[i], input->name, (long long)*known);
    if (*name && !known) set_size(importer, name, shape.items[i]);
  }
}

void importer_dims(Importer *importer) {
  const OnnxOptions *options = importer->options;
  OnnxValues *inputs = &importer->model->graph->input;
  DimNames names = names_of(importer);
  for (int i = 0; i < options->dim_count; i++)
    take_given(importer, options->dims[i], &names, false);
  for (int i = 0; i < options->shape_count; i++)
    take_given(importer, options->shapes[i], &names, true);
  for (int i = 0; i < inputs->count; i++) take_from_input(importer, &inputs->items[i]);
}

// ---- The shape of an input --------------------------------------------------------------------

bool onnx_dim_is_free(const OnnxDim *dim) {
  return !dim->has_dim_value || dim->dim_value == -1;
}

const char *onnx_dims_text(Context *context, const OnnxDims *dims) {
  Text text = text_new(&context->arena);
  text_puts(&text, "[");
  for (int i = 0; i < dims->count; i++) {
    const OnnxDim *dim = &dims->items[i];
    text_puts(&text, i ? ", " : "");
    if (!onnx_dim_is_free(dim))
      text_printf(&text, "%lld", (long long)dim->dim_value);
    else
      text_puts(&text, dim->dim_param && *dim->dim_param ? dim->dim_param : "?");
  }
  text_puts(&text, "]");
  return text_string(&text);
}

// An example of what the user can type for an input, "x=1x3x224x224", with free dimensions as 1.
static const char *example_shape(Context *context, const OnnxValue *input, const OnnxDims *dims) {
  Text text = text_new(&context->arena);
  text_printf(&text, "%s=", input->name);
  for (int i = 0; i < dims->count; i++)
    text_printf(&text, "%s%lld", i ? "x" : "",
                dims->items[i].has_dim_value ? (long long)dims->items[i].dim_value : 1);
  return text_string(&text);
}

// True when earlier messages have asked for all of these names; marks them as asked for.
static bool was_asked(Importer *importer, const OnnxNames *names) {
  bool asked = true;
  for (int i = 0; i < names->count; i++) {
    asked &= map_contains(&importer->asked, names->items[i]);
    map_put(&importer->asked, names->items[i], importer);
  }
  return asked;
}

// Reports the free dimensions of an input and the options that set them, unless the message of
// another input has asked for the same names.
static bool refuse_free(Importer *importer, const OnnxValue *input, const OnnxDims *dims,
                        const IntArray *axes, const OnnxNames *names, bool all_named) {
  Context *context = importer->context;
  importer->result->lacks_sizes = true;
  if (all_named && was_asked(importer, names)) return false;
  Text where = text_new(&context->arena), what = text_new(&context->arena);
  for (int i = 0; i < axes->count; i++)
    text_printf(&where, "%s%lld", i ? ", " : "", (long long)axes->items[i]);
  for (int i = 0; i < names->count && all_named; i++)
    text_printf(&what, "--dim %s=1 ", names->items[i]);
  return diag_error(
      context, importer_pos(importer, NULL),
      "input '%s' %s: dimension%s %s free; give %s with %s%s--input-shape %s", input->name,
      onnx_dims_text(context, dims), axes->count == 1 ? "" : "s",
      arena_printf(&context->arena, "%s %s", text_string(&where), axes->count == 1 ? "is" : "are"),
      axes->count == 1 ? "it" : "them", text_string(&what), all_named ? "or " : "",
      example_shape(context, input, dims));
}

// Resolves a dimension, or sets *is_free and the first name without a size. False with a diagnostic
// when the dimension is invalid.
static bool resolve_dim(Importer *importer, const OnnxValue *input, const OnnxDims *dims, int axis,
                        int64_t *value, bool *is_free, Str *missing) {
  Context *context = importer->context;
  const OnnxDim *dim = &dims->items[axis];
  const int64_t *size = map_find(&importer->dims, dim->dim_param);
  bool stated = dim->has_dim_value || size;
  *missing = NULL;
  *value = dim->has_dim_value ? dim->dim_value : size ? *size : 0;
  if (!stated) {
    bool known = *dim->dim_param && evaluate(importer, dim->dim_param, value, missing, NULL);
    *is_free = !known || *missing;
    if (!known && *dim->dim_param) *missing = dim->dim_param;
  }
  return *is_free || *value >= 0 ||
         diag_error(context, importer_pos(importer, NULL), "input '%s' %s: dimension %d %s %lld",
                    input->name, onnx_dims_text(context, dims), axis,
                    stated ? "is negative:" : "would be", (long long)*value);
}

// Gives the free names of an input the sizes to assume, as if the user had given them.
static bool assume_names(Importer *importer, const OnnxValue *input, const OnnxDims *dims) {
  for (int i = 0; i < dims->count; i++) {
    int64_t value, assumed = i ? importer->options->assumed_size : 1;
    bool is_free = false;
    Str missing;
    if (!resolve_dim(importer, input, dims, i, &value, &is_free, &missing)) return false;
    if (!is_free || !missing) continue;
    set_size(importer, missing, assumed);
    text_printf(&importer->assumed, "%s--dim %s=%lld", importer->assumed.size ? " " : "", missing,
                (long long)assumed);
    i--; // again: an expression may have several free names
  }
  return true;
}

// Gives free axes without a name the sizes to assume.
static void assume_axes(Importer *importer, const OnnxValue *input, const IntArray *axes,
                        IntArray *shape) {
  for (int i = 0; i < axes->count; i++)
    shape->items[axes->items[i]] = axes->items[i] ? importer->options->assumed_size : 1;
  text_printf(&importer->assumed, "%s--input-shape %s=", importer->assumed.size ? " " : "",
              input->name);
  for (int i = 0; i < shape->count; i++)
    text_printf(&importer->assumed, "%s%lld", i ? "x" : "", (long long)shape->items[i]);
}

static bool resolve_dims(Importer *importer, const OnnxValue *input, const OnnxDims *dims,
                         IntArray *shape) {
  Arena *arena = &importer->context->arena;
  IntArray axes = {0};
  OnnxNames names = {0};
  bool all_named = true, assumes = importer->options->assumed_size > 0;
  if (assumes && !assume_names(importer, input, dims)) return false;
  for (int i = 0; i < dims->count; i++) {
    int64_t value;
    bool is_free = false;
    Str missing;
    if (!resolve_dim(importer, input, dims, i, &value, &is_free, &missing)) return false;
    array_push(arena, shape, value);
    if (is_free) array_push(arena, &axes, i);
    all_named &= !is_free || missing;
    if (missing && !is_among(&names, missing)) array_push(arena, &names, missing);
  }
  if (!axes.count) return true;
  if (!assumes) return refuse_free(importer, input, dims, &axes, &names, all_named);
  assume_axes(importer, input, &axes, shape);
  return true;
}

static bool given_agrees(Importer *importer, const OnnxValue *input, const OnnxDims *dims,
                         const IntArray *given, const char *text) {
  bool agrees = !dims || dims->count == given->count;
  for (int i = 0; agrees && dims && i < dims->count; i++)
    agrees = !dims->items[i].has_dim_value || dims->items[i].dim_value == given->items[i];
  return agrees ||
         diag_error(importer->context, importer_pos(importer, NULL),
                    "input '%s' %s: the shape '%s' given for it does not agree with the model",
                    input->name, onnx_dims_text(importer->context, dims), text);
}

bool importer_shape(Importer *importer, const OnnxValue *input, IntArray *shape) {
  Context *context = importer->context;
  OnnxDims *dims = declared_dims(input);
  const char *given = given_shape(importer, input->name);
  *shape = (IntArray){0};
  if (given && parse_shape(context, given, shape))
    return given_agrees(importer, input, dims, shape, given);
  *shape = (IntArray){0}; // of a text that was refused, its beginning
  if (!dims)
    return diag_error(context, importer_pos(importer, NULL),
                      "input '%s' has no shape; give it with --input-shape %s=1x3x224x224",
                      input->name, input->name);
  return resolve_dims(importer, input, dims, shape);
}
