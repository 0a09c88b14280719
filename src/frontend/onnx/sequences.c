// SPDX-License-Identifier: Apache-2.0
// Imports operators on sequences and optional values, which are known at import: a sequence is a
// list of values, which may be sequences, and an optional value is present or absent. After the
// import there are only tensors: the graph's inputs and outputs are the tensors of the list, named
// "name[0]", "name[1]" and so on. A list is represented by a Value without rank or elements; its
// contents are in importer->lists.
#include "frontend/onnx/import.h"

#include "graph/graph.h"

typedef struct List {
  bool is_nothing; // an absent optional value
  PtrArray items;  // Value *
} List;

enum { MOST_PARTS = 1024 };

// ---- Lists ------------------------------------------------------------------------------------

bool value_is_list(const Value *value) {
  return value->rank < 0;
}

static Value *list_value(Importer *importer, Str name, SourcePos pos, List *list) {
  Value *value = value_new(importer->context, name, DTYPE_VOID, NULL, -1);
  value->pos = pos;
  map_put(&importer->lists, value, list);
  return value;
}

Value *importer_list(Importer *importer, Str name, const PtrArray *items) {
  List *list = arena_new(&importer->context->arena, List);
  list->is_nothing = !items;
  if (items) list->items = *items;
  return list_value(importer, name, importer_pos(importer, NULL), list);
}

Value *import_list_of(Import *import, Value *const *items, int count) {
  List *list = arena_new(&import->context->arena, List);
  for (int i = 0; i < count; i++) array_push(&import->context->arena, &list->items, items[i]);
  return list_value(import->importer, import->name, import->pos, list);
}

const PtrArray *importer_items(const Importer *importer, const Value *value) {
  const List *list = map_find(&importer->lists, value);
  return list->is_nothing ? NULL : &list->items;
}

static const List *list_of(const Import *import, const Value *value) {
  return value_is_list(value) ? map_find(&import->importer->lists, value) : NULL;
}

const PtrArray *import_sequence(Import *import, int i) {
  const Value *value = import_input(import, i);
  const List *list = list_of(import, value);
  if (list && !list->is_nothing) return &list->items;
  import_refuse(import, "its input '%s' is not a sequence", value->name);
  return NULL;
}

// A tensor input; NULL with a diagnostic for a list.
static Value *tensor_input(Import *import, int i) {
  Value *value = import_input(import, i);
  if (!value_is_list(value)) return value;
  import_refuse(import, "its input '%s' is a sequence, expected a tensor", value->name);
  return NULL;
}

// Reads the position in input `i`, from -count to count (excluded unless `end`); `count` when the
// input is absent.
static bool read_position(Import *import, int i, int count, bool end, int *position) {
  *position = count;
  if (!import_input(import, i)) return true;
  ConstData *known = import_constant(import, i);
  if (!known) return false;
  int64_t at =
      const_count(known) == 1 && dtype_is_int(known->type) ? const_int(known, 0) : INT64_MAX;
  if (at < -count || at > count - !end)
    return import_refuse(import, "its position is not one within %d values", count);
  *position = (int)(at < 0 ? at + count : at);
  return true;
}

// ---- Sequences --------------------------------------------------------------------------------

static void import_construct(Import *import) {
  import_result(import, 0, import_list_of(import, import->inputs, import->input_count));
}

static void import_insert(Import *import) {
  const PtrArray *from = import_sequence(import, 0);
  int at;
  if (!from || !read_position(import, 2, from->count, true, &at)) return;
  Value **items = arena_array(&import->context->arena, Value *, from->count + 1);
  for (int i = 0; i < from->count; i++) items[i < at ? i : i + 1] = from->items[i];
  items[at] = import_input(import, 1);
  import_result(import, 0, import_list_of(import, items, from->count + 1));
}

static void import_erase(Import *import) {
  const PtrArray *from = import_sequence(import, 0);
  int at;
  if (!from || !read_position(import, 1, from->count, false, &at)) return;
  if (!import_input(import, 1)) at = from->count - 1; // by default the last one
  if (!from->count) {
    import_refuse(import, "its sequence is empty");
    return;
  }
  Value **items = arena_array(&import->context->arena, Value *, from->count);
  for (int i = 0; i < from->count; i++)
    if (i != at) items[i < at ? i : i - 1] = from->items[i];
  import_result(import, 0, import_list_of(import, items, from->count - 1));
}

static void import_at(Import *import) {
  const PtrArray *from = import_sequence(import, 0);
  int at;
  if (from && read_position(import, 1, from->count, false, &at))
    import_result(import, 0, from->items[at]);
}

static void import_length(Import *import) {
  const PtrArray *from = import_sequence(import, 0);
  int64_t *length = arena_new(&import->context->arena, int64_t);
  if (!from) return;
  *length = from->count;
  import_result(import, 0, import_const(import, DTYPE_INT64, NULL, 0, length));
}

// The sizes of the parts of an axis: the listed ones, or equal ones of which the last may be
// smaller.
static bool part_sizes(Import *import, int64_t extent, IntArray *sizes) {
  ConstData *given = import_input(import, 1) ? import_constant(import, 1) : NULL;
  int64_t each = 1;
  if (import_input(import, 1) && !given) return false;
  if (given && (!dtype_is_int(given->type) || given->rank > 1))
    return import_refuse(import, "its sizes must be integers");
  if (given && given->rank == 1) return import_constant_ints(import, 1, sizes);
  if (given) each = const_int(given, 0);
  if (each < 1 || ceil_div(extent, each) > MOST_PARTS)
    return import_refuse(import, "would have more than %d parts", MOST_PARTS);
  for (int64_t at = 0; at < extent; at += each)
    array_push(&import->context->arena, sizes, MIN_OF(each, extent - at));
  return true;
}

static Value *without_axis(Import *import, Value *value, int64_t axis) {
  int64_t shape[TE_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < value->rank; i++)
    if (i != axis) shape[rank++] = import_dim(value, i);
  return import_reshape(import, value, shape, rank);
}

static void import_split_to(Import *import) {
  Value *x = tensor_input(import, 0);
  int64_t axis = import_int(import, "axis", 0);
  IntArray sizes = {0};
  if (!x || !import_axis(import, &axis, x->rank)) return;
  if (!part_sizes(import, import_dim(x, (int)axis), &sizes)) return;
  bool keep = import_input(import, 1) || import_int(import, "keepdims", 1);
  Value **parts = arena_array(&import->context->arena, Value *, sizes.count);
  if (sizes.count) {
    Node *node = import_begin(import, "split", &x, 1);
    node->output_count = sizes.count;
    node->outputs = parts;
    node_set_int(import->context, node, "axis", axis);
    import_set_ints(import, node, "sizes", sizes);
    if (!import_add(import, node)) return;
    parts = arena_copy(&import->context->arena, parts, sizeof *parts * (size_t)sizes.count);
  }
  for (int i = 0; i < sizes.count && !keep; i++)
    if (!(parts[i] = without_axis(import, parts[i], axis))) return;
  import_result(import, 0, import_list_of(import, parts, sizes.count));
}

static void import_concat_from(Import *import) {
  const PtrArray *from = import_sequence(import, 0);
  bool is_new = import_int(import, "new_axis", 0) != 0;
  int64_t axis = import_int(import, "axis", 0);
  if (!from) return;
  for (int i = 0; i < from->count; i++)
    if (value_is_list(from->items[i])) from = NULL, i = -1;
  if (!from || !from->count) {
    import_refuse(import, "its sequence is empty, or of sequences");
    return;
  }
  const Value *first = from->items[0];
  if (!import_axis(import, &axis, first->rank + is_new)) return;
  if (is_new) {
    import_result(import, 0, import_stack(import, (Value **)from->items, from->count, (int)axis));
    return;
  }
  Node *node = import_begin(import, "concat", (Value **)from->items, from->count);
  node_set_int(import->context, node, "axis", axis);
  import_result(import, 0, import_add(import, node));
}

// ---- Optional values --------------------------------------------------------------------------

static void import_optional(Import *import) {
  List *nothing = arena_new(&import->context->arena, List);
  nothing->is_nothing = true;
  Value *value = import_input(import, 0);
  if (!value) value = list_value(import->importer, import->name, import->pos, nothing);
  import_result(import, 0, value);
}

static bool is_there(const Import *import, const Value *value) {
  const List *list = value ? list_of(import, value) : NULL;
  return value && !(list && list->is_nothing);
}

static void import_has_element(Import *import) {
  bool *there = arena_new(&import->context->arena, bool);
  *there = is_there(import, import_input(import, 0));
  import_result(import, 0, import_const(import, DTYPE_BOOL, NULL, 0, there));
}

static void import_get_element(Import *import) {
  Value *value = import_input(import, 0);
  if (is_there(import, value))
    import_result(import, 0, value);
  else
    import_refuse(import, "its optional input '%s' holds nothing", value->name);
}

const OnnxRow onnx_sequence_rows[] = {
    {"ConcatFromSequence", 1, 1, "axis:int new_axis:int", import_concat_from, .lists = true},
    {"Optional", 0, 1, "type:type", import_optional, .lists = true},
    {"OptionalGetElement", 1, 1, NULL, import_get_element, .lists = true},
    {"OptionalHasElement", 0, 1, NULL, import_has_element, .lists = true},
    {"SequenceAt", 2, 2, NULL, import_at, .lists = true},
    {"SequenceConstruct", 0, -1, NULL, import_construct, .lists = true},
    {"SequenceEmpty", 0, 0, "dtype:int", import_construct, .lists = true},
    {"SequenceErase", 1, 2, NULL, import_erase, .lists = true},
    {"SequenceInsert", 2, 3, NULL, import_insert, .lists = true},
    {"SequenceLength", 1, 1, NULL, import_length, .lists = true},
    {"SequenceMap", 1, -1, "body:graph", import_sequence_map, .lists = true},
    {"SplitToSequence", 1, 2, "axis:int keepdims:int", import_split_to, .lists = true},
    {NULL},
};
