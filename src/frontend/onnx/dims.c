// SPDX-License-Identifier: Apache-2.0
// Finds the shapes of inputs. Free dimensions have names, or are expressions of names (sizes.c).
// One without a name gets that of its axis: "x.0". Their sizes come from --dim, from the shape that
// the user gave for an input, and from the arrays that are given for inputs; all must agree.
#include "base/caller.h"
#include "frontend/onnx/import.h"

#include "graph/graph.h"

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

// The i-th name for which an option or an array gives a shape, as text that may continue; NULL
// after the last.
static const char *given_name(const Importer *importer, int i) {
  const OnnxOptions *options = importer->options;
  if (i < options->shape_count) return options->shapes[i];
  i -= options->shape_count;
  return i < options->array_count ? options->arrays[i].name : NULL;
}

bool importer_was_given(const Importer *importer, Str name) {
  size_t n = strlen(name);
  const char *given;
  for (int i = 0; (given = given_name(importer, i)); i++)
    if (strncmp(given, name, n) == 0 && (!given[n] || given[n] == '=' || given[n] == '['))
      return true;
  return false;
}

int importer_held_count(const Importer *importer, Str name) {
  size_t n = strlen(name);
  int most = 0;
  const char *given;
  for (int i = 0; (given = given_name(importer, i)); i++) {
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
  if (!word && !given_extents_read(importer->context, value, &shape)) return false;
  for (int i = 0; i < inputs->count; i++) {
    const OnnxType *type = inputs->items[i].type;
    if (type && !type->tensor_type && is_of_list(&inputs->items[i], name, value)) return true;
  }
  return false;
}

// ---- Names of free dimensions -------------------------------------------------------------------

// Exporters write "?", "-1" or nothing for axes whose sizes have nothing to do with each other.
static bool has_name(const OnnxDim *dim) {
  return dim->dim_param && *dim->dim_param && strcmp(dim->dim_param, "?") != 0 &&
         strcmp(dim->dim_param, "-1") != 0;
}

// Gives every free dimension without a name the name of its axis.
static void name_axes(Importer *importer, const OnnxValue *input) {
  const OnnxDims *dims = declared_dims(input);
  for (int i = 0; dims && i < dims->count; i++) {
    OnnxDim *dim = &dims->items[i];
    if (!onnx_dim_is_free(dim)) continue;
    dim->has_dim_value = false;
    if (has_name(dim)) continue;
    dim->dim_param = str_format(importer->context, "%s.%d", input->name, i);
    map_put(&importer->axis_names, dim->dim_param, importer);
  }
}

typedef struct DimNames {
  OnnxNames inputs, dims, outputs; // `outputs`: dimensions of outputs
} DimNames;

static void collect_dim(Importer *importer, const OnnxDim *dim, OnnxNames *names) {
  int64_t value;
  Str missing;
  OnnxNames parts = {0};
  if (!onnx_dim_is_free(dim) || !has_name(dim)) return;
  array_push(&importer->context->arena, names, dim->dim_param);
  if (dim_evaluate(importer, dim->dim_param, &value, &missing, &parts))
    for (int i = 0; i < parts.count; i++)
      array_push(&importer->context->arena, names, parts.items[i]);
}

static void collect_dims(Importer *importer, const OnnxValue *value, OnnxNames *names) {
  OnnxDims *dims = declared_dims(value);
  for (int i = 0; dims && i < dims->count; i++) collect_dim(importer, &dims->items[i], names);
}

static DimNames names_of(Importer *importer) {
  DimNames names = {0};
  const OnnxGraph *graph = importer->model->graph;
  for (int i = 0; i < graph->input.count; i++) {
    array_push(&importer->context->arena, &names.inputs, graph->input.items[i].name);
    collect_dims(importer, &graph->input.items[i], &names.dims);
  }
  for (int i = 0; i < graph->output.count; i++)
    collect_dims(importer, &graph->output.items[i], &names.outputs);
  return names;
}

static bool is_among(const OnnxNames *names, Str name) {
  for (int i = 0; i < names->count; i++)
    if (names->items[i] == name) return true;
  return false;
}

static void refuse_unknown(Importer *importer, const char *what, const char *of, Str name,
                           const OnnxNames *names) {
  diag_error(importer->context, importer_pos(importer, NULL),
             "%s is given for '%s', but there is no such %s%s", what, name, of,
             suggestion_or_names(&importer->context->arena, name, names->items, names->count));
}

// ---- Sizes from the options ---------------------------------------------------------------------

static void refuse_size(Importer *importer, Str name, const DimNames *names) {
  if (is_among(&names->outputs, name))
    diag_error(importer->context, importer_pos(importer, NULL),
               "a size is given for '%s', which is a dimension of outputs alone: it follows from "
               "the sizes of the inputs",
               name);
  else
    refuse_unknown(importer, "a size", "free dimension", name, &names->dims);
}

static void refuse_shape(Importer *importer, Str name, const DimNames *names) {
  OnnxNames all = {0};
  for (int i = 0; i < names->inputs.count; i++)
    array_push(&importer->context->arena, &all, names->inputs.items[i]);
  for (int i = 0; i < names->dims.count; i++)
    array_push(&importer->context->arena, &all, names->dims.items[i]);
  refuse_unknown(importer, "a shape", "input or free dimension", name, &all);
}

// Takes a size that an option gives; an earlier option must have given the same.
static void take_size(Importer *importer, Str name, int64_t value, const char *given) {
  const DimSize *known = dim_size(importer, name);
  const char *from = arena_printf(&importer->context->arena, "'%s'", given);
  if (known && known->value != value)
    diag_error(importer->context, importer_pos(importer, NULL),
               "dimension '%s' has two sizes: %lld from %s, and %lld from %s", name,
               (long long)known->value, known->from, (long long)value, from);
  if (!known) dim_set_size(importer, name, value, from);
}

// Takes one "name=…" of --input-shape (is_shape) or --dim.
static void take_given(Importer *importer, const char *given, const DimNames *names,
                       bool is_shape) {
  Context *context = importer->context;
  const char *equals = strrchr(given, '=');
  Str name = str_intern_n(context, given, equals ? (size_t)(equals - given) : strlen(given));
  IntArray size;
  if (is_shape && equals && is_list_given(importer, name, equals + 1)) return;
  bool valid = equals && given_extents_read(context, equals + 1, &size) &&
               (is_shape || (size.count == 1 && size.items[0] != GIVEN_OPEN));
  if (!valid && is_shape)
    diag_error(context, importer_pos(importer, NULL), "'%s' is not a shape: write NAME=1x3x224x224",
               given);
  else if (!valid)
    diag_error(context, importer_pos(importer, NULL), "'%s' is not a size: write NAME=4", given);
  else if (is_among(&names->dims, name) && size.count == 1 && size.items[0] != GIVEN_OPEN)
    take_size(importer, name, size.items[0], given);
  else if (!is_shape)
    refuse_size(importer, name, names);
  else if (!is_among(&names->inputs, name))
    refuse_shape(importer, name, names);
}

// ---- Sizes from shapes --------------------------------------------------------------------------

// A shape that an option or an array gives for an input.
typedef struct StatedShape {
  IntArray dims;    // GIVEN_OPEN for axes that it leaves open
  const char *from; // "'x=3x4'", "'x.npy', given for 'x'"
} StatedShape;
enum { MOST_STATED = 2 };

static StatedShape shape_of_array(Importer *importer, const OnnxArray *array) {
  Arena *arena = &importer->context->arena;
  StatedShape stated = {
      .from = array->source
                  ? arena_printf(arena, "'%s', given for '%s'", array->source, array->name)
                  : arena_printf(arena, "the array given for '%s'", array->name)};
  for (int i = 0; i < array->rank; i++) array_push(arena, &stated.dims, array->shape[i]);
  return stated;
}

// The shapes given for an input, at most MOST_STATED; returns their number.
static int stated_shapes(Importer *importer, Str name, StatedShape *stated) {
  const char *given = given_shape(importer, name);
  int count = 0;
  if (given && given_extents_read(importer->context, given, &stated[count].dims))
    stated[count++].from = arena_printf(&importer->context->arena, "'%s=%s'", name, given);
  for (int i = 0; i < importer->options->array_count; i++)
    if (strcmp(importer->options->arrays[i].name, name) == 0) {
      stated[count++] = shape_of_array(importer, &importer->options->arrays[i]);
      break;
    }
  return count;
}

// A size that a stated shape gives to a free dimension.
typedef struct StatedSize {
  Str dim;
  int64_t value;
  const char *from; // "axis 1 of 'x=3x4'"
} StatedSize;
typedef Array(StatedSize) StatedSizes;

static void collect_sizes(Importer *importer, const OnnxDims *dims, const StatedShape *stated,
                          StatedSizes *sizes) {
  Arena *arena = &importer->context->arena;
  for (int i = 0; stated->dims.count == dims->count && i < dims->count; i++)
    if (onnx_dim_is_free(&dims->items[i]) && stated->dims.items[i] != GIVEN_OPEN)
      array_push(arena, sizes,
                 ((StatedSize){dims->items[i].dim_param, stated->dims.items[i],
                               arena_printf(arena, "axis %d of %s", i, stated->from)}));
}

static StatedSizes sizes_of_shapes(Importer *importer) {
  StatedSizes sizes = {0};
  OnnxValues *inputs = &importer->model->graph->input;
  for (int i = 0; i < inputs->count; i++) {
    StatedShape stated[MOST_STATED];
    OnnxDims *dims = declared_dims(&inputs->items[i]);
    int count = dims ? stated_shapes(importer, inputs->items[i].name, stated) : 0;
    for (int k = 0; k < count; k++) collect_sizes(importer, dims, &stated[k], &sizes);
  }
  return sizes;
}

// Finds the size of the only name without one in a dimension; false when nothing new follows.
static bool learn_size(Importer *importer, const StatedSize *stated) {
  int64_t value, size = stated->value;
  Str missing;
  bool valid = dim_evaluate(importer, stated->dim, &value, &missing, NULL);
  if (!valid || !missing) return false;
  if (missing != stated->dim && !dim_solve(importer, stated->dim, missing, stated->value, &size))
    return false;
  dim_set_size(importer, missing, size, stated->from);
  return true;
}

// Reports a size that is not that of its dimension. A dimension that could not be solved for its
// names has the stated size as a whole.
static void check_size(Importer *importer, const StatedSize *stated) {
  int64_t value;
  Str missing;
  bool valid = dim_evaluate(importer, stated->dim, &value, &missing, NULL);
  const DimSize *known = dim_size(importer, stated->dim);
  if (!valid || missing)
    dim_set_size(importer, stated->dim, stated->value, stated->from);
  else if (value != stated->value)
    diag_error(importer->context, importer_pos(importer, NULL),
               "dimension '%s' has two sizes: %lld from %s, and %lld from %s", stated->dim,
               (long long)value, known ? known->from : "the sizes of its names",
               (long long)stated->value, stated->from);
}

static void take_shapes(Importer *importer) {
  StatedSizes sizes = sizes_of_shapes(importer);
  for (bool learned = true; learned;) {
    learned = false;
    for (int i = 0; i < sizes.count; i++) learned |= learn_size(importer, &sizes.items[i]);
  }
  for (int i = 0; i < sizes.count; i++) check_size(importer, &sizes.items[i]);
}

// Reports a name for which the caller gives an array, and which is not that of an input.
static void check_input_name(Importer *importer, const char *what, const char *given,
                             const OnnxNames *inputs) {
  Str name = str_intern(importer->context, given);
  if (!is_among(inputs, name) && !is_list_given(importer, name, "1"))
    refuse_unknown(importer, what, "input", name, inputs);
}

static bool has_array(const OnnxOptions *options, const char *name) {
  for (int i = 0; i < options->array_count; i++)
    if (strcmp(options->arrays[i].name, name) == 0) return true;
  return false;
}

static void check_arrays(Importer *importer, const DimNames *names) {
  const OnnxOptions *options = importer->options;
  for (int i = 0; i < options->array_count; i++)
    check_input_name(importer, "an array", options->arrays[i].name, &names->inputs);
  for (int i = 0; i < options->value_count; i++)
    if (!has_array(options, options->values[i].name))
      check_input_name(importer, "a known value", options->values[i].name, &names->inputs);
}

void importer_dims(Importer *importer) {
  const OnnxOptions *options = importer->options;
  OnnxValues *inputs = &importer->model->graph->input;
  for (int i = 0; i < inputs->count; i++) name_axes(importer, &inputs->items[i]);
  DimNames names = names_of(importer);
  DiagCode code = diag_code_set(importer->context, DIAG_OPTION);
  for (int i = 0; i < options->dim_count; i++)
    take_given(importer, options->dims[i], &names, false);
  for (int i = 0; i < options->shape_count; i++)
    take_given(importer, options->shapes[i], &names, true);
  check_arrays(importer, &names);
  diag_code_set(importer->context, code);
  take_shapes(importer);
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

// An example of what the user can type for an input, "x=1x3x224x224", with 1 for free dimensions.
static const char *example_shape(Context *context, const OnnxValue *input, const OnnxDims *dims) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < dims->count; i++)
    text_printf(&text, "%s%lld", i ? "x" : "",
                onnx_dim_is_free(&dims->items[i]) ? 1 : (long long)dims->items[i].dim_value);
  return caller_shape(context, input->name, text_string(&text));
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
                        const IntArray *axes, const OnnxNames *names) {
  Context *context = importer->context;
  importer->result->lacks_sizes = true;
  if (importer_may_be_open(importer)) return false;
  if (was_asked(importer, names)) return false;
  Text where = text_new(&context->arena), what = text_new(&context->arena);
  for (int i = 0; i < axes->count; i++)
    text_printf(&where, "%s%lld", i ? ", " : "", (long long)axes->items[i]);
  for (int i = 0; i < names->count; i++)
    text_printf(&what, "%s ", caller_size(context, names->items[i], 1));
  return diag_error_as(
      context, DIAG_OPTION, importer_pos(importer, NULL),
      "input '%s' %s: dimension%s %s free; give %s with %sor %s%s", input->name,
      onnx_dims_text(context, dims), axes->count == 1 ? "" : "s",
      arena_printf(&context->arena, "%s %s", text_string(&where), axes->count == 1 ? "is" : "are"),
      axes->count == 1 ? "it" : "them", text_string(&what), example_shape(context, input, dims),
      importer_why_closed(importer));
}

// Resolves a dimension, or sets *missing to a name without a size, which may be the whole
// dimension. False with a diagnostic when the dimension is invalid.
static bool resolve_dim(Importer *importer, const OnnxValue *input, const OnnxDims *dims, int axis,
                        int64_t *value, Str *missing) {
  Context *context = importer->context;
  const OnnxDim *dim = &dims->items[axis];
  bool stated = !onnx_dim_is_free(dim);
  *missing = NULL;
  *value = dim->dim_value;
  if (!stated && !dim_evaluate(importer, dim->dim_param, value, missing, NULL))
    *missing = dim->dim_param;
  return *missing || *value >= 0 ||
         diag_error(context, importer_pos(importer, NULL), "input '%s' %s: dimension %d %s %lld",
                    input->name, onnx_dims_text(context, dims), axis,
                    stated ? "is negative:" : "would be", (long long)*value);
}

// Gives the free names of an input the sizes to assume, as if the user had given them.
static bool assume_names(Importer *importer, const OnnxValue *input, const OnnxDims *dims) {
  for (int i = 0; i < dims->count; i++) {
    int64_t value, assumed = i ? importer->options->assumed_size : 1;
    Str missing;
    if (!resolve_dim(importer, input, dims, i, &value, &missing)) return false;
    if (!missing) continue;
    dim_set_size(importer, missing, assumed, "an assumption");
    text_printf(&importer->assumed, "%s--dim %s=%lld", importer->assumed.size ? " " : "", missing,
                (long long)assumed);
    i--; // again: an expression may have several free names
  }
  return true;
}

static bool resolve_dims(Importer *importer, const OnnxValue *input, const OnnxDims *dims,
                         IntArray *shape) {
  Arena *arena = &importer->context->arena;
  IntArray axes = {0};
  OnnxNames names = {0};
  if (importer->options->assumed_size > 0 && !assume_names(importer, input, dims)) return false;
  for (int i = 0; i < dims->count; i++) {
    int64_t value;
    Str missing;
    if (!resolve_dim(importer, input, dims, i, &value, &missing)) return false;
    array_push(arena, shape, value);
    if (missing) array_push(arena, &axes, i);
    if (missing && !is_among(&names, missing)) array_push(arena, &names, missing);
  }
  return !axes.count || refuse_free(importer, input, dims, &axes, &names);
}

static bool agrees_with(const OnnxDims *dims, const StatedShape *stated) {
  bool agrees = dims->count == stated->dims.count;
  for (int i = 0; agrees && i < dims->count; i++)
    agrees = onnx_dim_is_free(&dims->items[i]) || stated->dims.items[i] == GIVEN_OPEN ||
             dims->items[i].dim_value == stated->dims.items[i];
  return agrees;
}

static const char *stated_text(Context *context, const StatedShape *stated) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < stated->dims.count; i++)
    text_printf(&text, stated->dims.items[i] == GIVEN_OPEN ? "%s?" : "%s%lld", i ? ", " : "",
                (long long)stated->dims.items[i]);
  return arena_printf(&context->arena, "[%s]", text_string(&text));
}

static bool check_stated(Importer *importer, const OnnxValue *input, const OnnxDims *dims,
                         const StatedShape *stated) {
  Context *context = importer->context;
  return agrees_with(dims, stated) ||
         diag_error(context, importer_pos(importer, NULL),
                    "input '%s' %s does not fit the shape %s of %s", input->name,
                    onnx_dims_text(context, dims), stated_text(context, stated), stated->from);
}

static bool is_complete(const StatedShape *stated) {
  for (int i = 0; i < stated->dims.count; i++)
    if (stated->dims.items[i] == GIVEN_OPEN) return false;
  return true;
}

// Compares the shapes given for an input for which the model declares none.
static bool check_undeclared(Importer *importer, const OnnxValue *input, const StatedShape *stated,
                             int count) {
  Context *context = importer->context;
  bool same = count < 2 || stated[0].dims.count == stated[1].dims.count;
  for (int i = 0; same && count == 2 && i < stated[0].dims.count; i++)
    same =
        stated[0].dims.items[i] == GIVEN_OPEN || stated[0].dims.items[i] == stated[1].dims.items[i];
  return same || diag_error(context, importer_pos(importer, NULL),
                            "input '%s' has two shapes: %s from %s, and %s from %s", input->name,
                            stated_text(context, &stated[0]), stated[0].from,
                            stated_text(context, &stated[1]), stated[1].from);
}

bool importer_shape(Importer *importer, const OnnxValue *input, IntArray *shape) {
  StatedShape stated[MOST_STATED];
  OnnxDims *dims = declared_dims(input);
  int count = stated_shapes(importer, input->name, stated);
  for (int i = 0; dims && i < count; i++)
    if (!check_stated(importer, input, dims, &stated[i])) return false;
  if (!dims && !check_undeclared(importer, input, stated, count)) return false;
  for (int i = 0; i < count; i++)
    if (is_complete(&stated[i])) return *shape = stated[i].dims, true;
  *shape = (IntArray){0};
  if (dims) return resolve_dims(importer, input, dims, shape);
  return diag_error(importer->context, importer_pos(importer, NULL),
                    "input '%s' has no shape; give it with %s", input->name,
                    caller_shape(importer->context, input->name, "1x3x224x224"));
}
