// SPDX-License-Identifier: Apache-2.0
// Imports If, Loop, Scan and SequenceMap. The graph after the import has no control flow. A
// condition that is known decides at import; steps are unrolled (kernels that are equal except for
// their operands are compiled once); and for a condition that is computed at run time, both results
// are computed and one is selected.
#include "base/caller.h"
#include "frontend/onnx/compose.h"

#include "graph/graph.h"

typedef struct BranchValues {
  Value **items;
  int count;
} BranchValues;

static BranchValues values_new(Import *import, int count) {
  return (BranchValues){arena_array(&import->context->arena, Value *, count), count};
}

static void set_results(Import *import, const BranchValues *values) {
  for (int i = 0; i < values->count; i++) import_result(import, i, values->items[i]);
}

// ---- Bodies -----------------------------------------------------------------------------------

static const OnnxGraph *body_of(Import *import, const char *attribute) {
  const OnnxAttribute *found = import_attribute(import, attribute);
  if (found && found->g) return found->g;
  import_refuse(import, "attribute '%s' is missing", attribute);
  return NULL;
}

typedef bool (*WantsOutput)(const Import *import, int i);

static bool wants_all(const Import *import, int i) {
  return true;
}

static OnnxNames wanted_names(Import *import, const OnnxGraph *body, WantsOutput wants) {
  OnnxNames names = {0};
  for (int i = 0; i < body->output.count; i++)
    if (wants(import, i)) array_push(&import->context->arena, &names, body->output.items[i].name);
  return names;
}

// Imports a body under the names "node/label/…" with `inputs` as its inputs. Returns its outputs,
// where those that are not wanted may be NULL; false when one of the others failed.
static bool import_body_for(Import *import, const OnnxGraph *body, const char *label,
                            const BranchValues *inputs, WantsOutput wants, BranchValues *outputs) {
  Importer *importer = import->importer;
  ImportScope *around = importer->scope;
  if (!scope_expand(import, body->node.count + 1)) return false;
  ImportScope *scope =
      scope_new(importer, str_format(import->context, "%s/%s/", import->name, label));
  scope->outer = around;
  importer->scope = scope;
  for (int i = 0; i < inputs->count; i++)
    scope_give(importer, body->input.items[i].name, inputs->items[i]);
  importer_initializers(importer, body);
  importer->scope = around;
  OnnxNames results = wanted_names(import, body, wants);
  bool ok = scope_nodes(importer, scope, &body->node, &results);
  *outputs = values_new(import, body->output.count);
  for (int i = 0; ok && i < body->output.count; i++) {
    Str name = body->output.items[i].name;
    if (!scope_has(scope, name))
      ok = import_refuse(import, "its body does not make its result '%s'", name);
    outputs->items[i] = scope_value(scope, name);
    ok = ok && (outputs->items[i] || !wants(import, i));
  }
  return ok;
}

static bool import_body(Import *import, const OnnxGraph *body, const char *label,
                        const BranchValues *inputs, BranchValues *outputs) {
  return import_body_for(import, body, label, inputs, wants_all, outputs);
}

static bool check_body(Import *import, const OnnxGraph *body, int inputs, int least_outputs) {
  if (body->input.count == inputs && body->output.count >= least_outputs) return true;
  return import_refuse(import, "its body has %d inputs and %d results, expected %d and at least %d",
                       body->input.count, body->output.count, inputs, least_outputs);
}

Value *import_body_result(Import *import, const char *attribute, Value *value) {
  const OnnxGraph *body = body_of(import, attribute);
  BranchValues inputs = {&value, 1}, outputs;
  if (!body || !value || !check_body(import, body, 1, 1)) return NULL;
  return import_body(import, body, attribute, &inputs, &outputs) ? outputs.items[0] : NULL;
}

static bool check_results(Import *import, int count) {
  return import->node->output.count <= count ||
         import_refuse(import, "has %d results, but its body gives %d", import->node->output.count,
                       count);
}

// Selects a where the single element of `condition` is true, otherwise b.
static Value *chosen(Import *import, Value *condition, Value *a, Value *b) {
  return a == b ? a : compose_choose(import, compose_reshape(import, condition, NULL, 0), a, b);
}

static bool check_condition(Import *import, const Value *condition) {
  int64_t count = 1;
  for (int i = 0; i < condition->rank; i++) count *= import_dim(condition, i);
  if (dtype_is_bool(condition->type) && count == 1) return true;
  return import_refuse(import, "its condition '%s' is not one bool", condition->name);
}

static void warn_of_both(Import *import, const char *what) {
  diag_warning(import->context, import->pos, "%s: its condition is only known at run time: %s",
               import->node->op_type, what);
}

// ---- If ---------------------------------------------------------------------------------------

// Imports the results of a branch that are needed.
static bool import_branch(Import *import, const OnnxGraph *branch, const char *label,
                          BranchValues *results) {
  return import_body_for(import, branch, label, &(BranchValues){0}, import_result_is_needed,
                         results);
}

// Says why both branches have to be supported, and with which known values one would do.
static void tell_of_condition(Import *import) {
  Value *condition = import_input(import, 0);
  const char *sources = import_sources(import, condition);
  if (!sources) sources = values_text(import->context, &condition, 1);
  diag_note(import->context, import->pos,
            "both branches of If must be supported, because its condition is only known at run "
            "time; it follows from %s: with that known (%s) one branch is enough",
            sources, caller_option(import->context, CALLER_KNOWN));
}

static void import_both(Import *import, const OnnxGraph *yes, const OnnxGraph *no) {
  BranchValues a, b;
  Value *condition = import_input(import, 0);
  bool made = import_branch(import, yes, "then", &a);
  if (!import_branch(import, no, "else", &b) || !made) {
    tell_of_condition(import);
    return;
  }
  for (int i = 0; i < import->node->output.count; i++) {
    if (!import_result_is_needed(import, i)) continue;
    if (!import_same_form(a.items[i], b.items[i])) {
      import_refuse(import,
                    "its condition is only known at run time, and its branches give '%s' two "
                    "shapes or types: make the condition a constant",
                    import->node->output.items[i]);
      tell_of_condition(import);
      return;
    }
    array_push(&import->context->arena, &import->importer->graph->choices,
               ((GraphChoice){condition, {a.items[i], b.items[i]}}));
    a.items[i] = chosen(import, condition, a.items[i], b.items[i]);
  }
  set_results(import, &a);
}

void import_if(Import *import) {
  BranchValues results;
  const OnnxGraph *yes = body_of(import, "then_branch"), *no = body_of(import, "else_branch");
  if (!yes || !no || !check_condition(import, import_input(import, 0))) return;
  if (!check_body(import, yes, 0, import->node->output.count) ||
      !check_body(import, no, 0, import->node->output.count))
    return;
  ConstData *known = import_known(import, 0);
  if (!known) {
    import_both(import, yes, no);
    return;
  }
  bool taken = const_int(known, 0) != 0;
  if (import_branch(import, taken ? yes : no, taken ? "then" : "else", &results))
    set_results(import, &results);
}

// ---- Loop -------------------------------------------------------------------------------------

typedef struct Loop {
  Import *import;
  const OnnxGraph *body;
  int64_t trips; // the most
  int carried, collected;
  BranchValues inputs; // of the body: the step's number, the condition, the carried values
  Value *active;       // whether the step runs, when this is known at run time only; or NULL
  PtrArray *steps;     // for each collected result its values
} Loop;

// A constant for an input of the body, with rank 1 when it is declared so.
static Value *single(Loop *loop, int input, DType type, int64_t value) {
  const OnnxType *declared = loop->body->input.items[input].type;
  const OnnxTensorType *tensor = declared ? declared->tensor_type : NULL;
  int64_t one = 1, *data = arena_new(&loop->import->context->arena, int64_t);
  int rank = tensor && tensor->shape && tensor->shape->dim.count == 1;
  *data = value;
  return import_const(loop->import, type, &one, rank, data);
}

static bool loop_starts(Loop *loop, bool *runs) {
  Import *import = loop->import;
  Value *trips = import_input(import, 0), *condition = import_input(import, 1);
  loop->trips = INT64_MAX;
  *runs = true;
  if (trips) {
    ConstData *known = import_constant(import, 0);
    if (!known) return false;
    if (!dtype_is_int(known->type) || const_count(known) != 1)
      return import_refuse(import, "its trip count '%s' is not one integer", trips->name);
    loop->trips = const_int(known, 0);
  }
  if (!condition) return true;
  if (!check_condition(import, condition)) return false;
  ConstData *known = import_known(import, 1);
  if (known)
    *runs = const_int(known, 0) != 0;
  else
    loop->active = condition;
  return true;
}

// Takes the condition that a step computed: if it is known it sets *runs, otherwise loop->active.
static bool loop_continues(Loop *loop, Value *condition, bool *runs) {
  Import *import = loop->import;
  if (!check_condition(import, condition)) return false;
  if (condition->data) {
    *runs = const_int(condition->data, 0) != 0;
    return true;
  }
  if (loop->active)
    condition = import_op(import, "logical_and", import_reshape(import, loop->active, NULL, 0),
                          import_reshape(import, condition, NULL, 0));
  loop->active = condition;
  return condition != NULL;
}

// A step that may be inactive needs a known number of trips, and cannot collect results.
static bool check_active(Loop *loop) {
  Import *import = loop->import;
  if (!loop->active) return true;
  if (loop->trips < INT64_MAX && !loop->collected) return true;
  return import_refuse(import,
                       "its condition is only known at run time, which is only supported with a "
                       "trip count that is known and without results that are collected");
}

static bool carry(Loop *loop, const Value *active, const BranchValues *outputs) {
  Import *import = loop->import;
  for (int i = 0; i < loop->carried; i++) {
    Value **state = &loop->inputs.items[i + 2], *value = outputs->items[i + 1];
    if (active && !import_same_form(*state, value))
      return import_refuse(import,
                           "its condition is only known at run time, and '%s' changes its "
                           "shape or type",
                           loop->body->input.items[i + 2].name);
    *state = active ? chosen(import, (Value *)active, value, *state) : value;
    if (!*state) return false;
  }
  for (int i = 0; i < loop->collected; i++)
    array_push(&import->context->arena, &loop->steps[i], outputs->items[1 + loop->carried + i]);
  return true;
}

static bool loop_step(Loop *loop, int64_t step, bool *runs) {
  Import *import = loop->import;
  BranchValues outputs;
  const Value *active = loop->active;
  loop->inputs.items[0] = single(loop, 0, DTYPE_INT64, step);
  loop->inputs.items[1] = single(loop, 1, DTYPE_BOOL, 1);
  const char *label = arena_printf(&import->context->arena, "%lld", (long long)step);
  if (!import_body(import, loop->body, label, &loop->inputs, &outputs)) return false;
  return carry(loop, active, &outputs) && loop_continues(loop, outputs.items[0], runs) &&
         check_active(loop);
}

// The collected result of no steps. Its shape is what the body declares for one step.
static Value *nothing_collected(Loop *loop, int i) {
  Import *import = loop->import;
  const OnnxValue *declared = &loop->body->output.items[1 + loop->carried + i];
  const OnnxTensorType *tensor = declared->type ? declared->type->tensor_type : NULL;
  int64_t shape[TE_MAX_RANK] = {0};
  DType type;
  bool known = tensor && tensor->shape && tensor->shape->dim.count < TE_MAX_RANK &&
               onnx_dtype(tensor->elem_type, &type);
  for (int d = 0; known && d < tensor->shape->dim.count; d++) {
    shape[d + 1] = tensor->shape->dim.items[d].dim_value;
    known = tensor->shape->dim.items[d].has_dim_value && shape[d + 1] >= 0;
  }
  if (known) return import_const(import, type, shape, tensor->shape->dim.count + 1, "");
  import_refuse(import, "has no steps, and its body does not say of what shape '%s' is",
                declared->name);
  return NULL;
}

static Value *collected(Loop *loop, int i) {
  PtrArray *steps = &loop->steps[i];
  if (!steps->count) return nothing_collected(loop, i);
  for (int k = 0; k < steps->count; k++)
    if (!import_same_form(steps->items[0], steps->items[k])) {
      import_refuse(loop->import, "its result '%s' does not have the same shape in every step",
                    loop->body->output.items[1 + loop->carried + i].name);
      return NULL;
    }
  return import_stack(loop->import, (Value **)steps->items, steps->count, 0);
}

static void loop_results(Loop *loop) {
  Import *import = loop->import;
  for (int i = 0; i < import->node->output.count; i++)
    import_result(import, i,
                  i < loop->carried ? loop->inputs.items[i + 2]
                                    : collected(loop, i - loop->carried));
}

void import_loop(Import *import) {
  Loop loop = {.import = import, .body = body_of(import, "body")};
  bool runs = true;
  loop.carried = MAX_OF(import->node->input.count - 2, 0);
  if (!loop.body || !check_body(import, loop.body, loop.carried + 2, loop.carried + 1)) return;
  loop.collected = loop.body->output.count - 1 - loop.carried;
  if (!check_results(import, loop.carried + loop.collected)) return;
  loop.inputs = values_new(import, loop.carried + 2);
  loop.steps = arena_array(&import->context->arena, PtrArray, loop.collected);
  for (int i = 0; i < loop.carried; i++)
    if (!(loop.inputs.items[i + 2] = import_input(import, i + 2))) {
      import_refuse(import, "its input %d is absent", i + 2);
      return;
    }
  if (!loop_starts(&loop, &runs) || !check_active(&loop)) return;
  if (loop.active) warn_of_both(import, "all steps are computed");
  for (int64_t step = 0; runs && step < loop.trips; step++) {
    bool known = !loop.active;
    if (!loop_step(&loop, step, &runs)) return;
    if (known && loop.active) warn_of_both(import, "all steps are computed");
  }
  loop_results(&loop);
}

// ---- Scan -------------------------------------------------------------------------------------

enum { MOST_SCANNED = 64 };

typedef struct Scan {
  Import *import;
  const OnnxGraph *body;
  int first; // index of its first state input, which up to opset 8 followed the lengths
  int states, scanned, collected;
  int64_t length;
  int64_t axes[MOST_SCANNED], out_axes[MOST_SCANNED];
  bool reverse[MOST_SCANNED], out_reverse[MOST_SCANNED];
} Scan;

static bool read_list(Import *import, const char *key, int count, int64_t *values) {
  IntArray given = import_ints(import, key);
  if (given.count && given.count != count)
    return import_refuse(import, "attribute '%s' has %d values, expected %d", key, given.count,
                         count);
  for (int i = 0; i < count; i++) values[i] = given.count ? given.items[i] : 0;
  return true;
}

static bool read_directions(Import *import, const char *key, int count, bool *reverse) {
  int64_t values[MOST_SCANNED];
  if (!read_list(import, key, count, values)) return false;
  for (int i = 0; i < count; i++) reverse[i] = values[i] != 0;
  return true;
}

static bool scan_begin(Scan *scan, bool batched) {
  Import *import = scan->import;
  int64_t scanned = import_int(import, "num_scan_inputs", 0);
  int given = import->input_count - (batched ? 1 : 0);
  scan->first = batched ? 1 : 0;
  if (scanned < 1 || scanned > given || given > MOST_SCANNED)
    return import_refuse(import, "num_scan_inputs is %lld, of %d inputs", (long long)scanned,
                         given);
  scan->scanned = (int)scanned;
  scan->states = given - scan->scanned;
  if (!check_body(import, scan->body, given, scan->states)) return false;
  scan->collected = scan->body->output.count - scan->states;
  if (scan->collected > MOST_SCANNED)
    return import_refuse(import, "its body has more than %d results", MOST_SCANNED);
  for (int i = 0; i < given; i++)
    if (!import_input(import, scan->first + i))
      return import_refuse(import, "its input %d is absent", scan->first + i);
  return check_results(import, scan->body->output.count) &&
         read_directions(import, batched ? "directions" : "scan_input_directions", scan->scanned,
                         scan->reverse) &&
         read_directions(import, "scan_output_directions", scan->collected, scan->out_reverse) &&
         read_list(import, "scan_input_axes", scan->scanned, scan->axes) &&
         read_list(import, "scan_output_axes", scan->collected, scan->out_axes);
}

static bool scan_length(Scan *scan, Value *const *sequences) {
  for (int i = 0; i < scan->scanned; i++) {
    if (!import_axis(scan->import, &scan->axes[i], sequences[i]->rank)) return false;
    int64_t length = import_dim(sequences[i], (int)scan->axes[i]);
    if (i && length != scan->length)
      return import_refuse(scan->import, "its inputs have %lld and %lld steps",
                           (long long)scan->length, (long long)length);
    scan->length = length;
  }
  return scan->length > 0 || import_refuse(scan->import, "has no steps");
}

static bool scan_step(Scan *scan, Value *const *sequences, const char *label, int64_t step,
                      BranchValues *inputs, Value ***collected) {
  BranchValues outputs;
  for (int i = 0; i < scan->scanned; i++) {
    int64_t at = scan->reverse[i] ? scan->length - 1 - step : step;
    inputs->items[scan->states + i] =
        import_element(scan->import, sequences[i], (int)scan->axes[i], at);
    if (!inputs->items[scan->states + i]) return false;
  }
  if (!import_body(scan->import, scan->body, label, inputs, &outputs)) return false;
  for (int i = 0; i < scan->states; i++) inputs->items[i] = outputs.items[i];
  for (int i = 0; i < scan->collected; i++) {
    int64_t at = scan->out_reverse[i] ? scan->length - 1 - step : step;
    collected[i][at] = outputs.items[scan->states + i];
    if (!import_same_form(collected[i][at],
                          collected[i][scan->out_reverse[i] ? scan->length - 1 : 0]))
      return import_refuse(scan->import, "its result %d does not have the same shape in every step",
                           scan->states + i);
  }
  return true;
}

// Runs all steps over one set of sequences; the results are the states and the collected values.
// `label` is the prefix of the step's number.
static bool scan_all(Scan *scan, Value *const *states, Value *const *sequences, const char *label,
                     BranchValues *results) {
  Import *import = scan->import;
  Arena *arena = &import->context->arena;
  BranchValues inputs = values_new(import, scan->states + scan->scanned);
  Value ***collected = arena_array(arena, Value **, scan->collected);
  *results = values_new(import, scan->states + scan->collected);
  if (!scan_length(scan, sequences)) return false;
  if (!scope_expand(import, (int)MIN_OF(scan->length, INT32_MAX))) return false;
  for (int i = 0; i < scan->collected; i++)
    collected[i] = arena_array(arena, Value *, (int)scan->length);
  for (int i = 0; i < scan->states; i++) inputs.items[i] = states[i];
  for (int64_t step = 0; step < scan->length; step++)
    if (!scan_step(scan, sequences, arena_printf(arena, "%s%lld", label, (long long)step), step,
                   &inputs, collected))
      return false;
  for (int i = 0; i < scan->states; i++) results->items[i] = inputs.items[i];
  for (int i = 0; i < scan->collected; i++) {
    if (!import_axis(import, &scan->out_axes[i], collected[i][0]->rank + 1)) return false;
    Value *stacked = import_stack(import, collected[i], (int)scan->length, (int)scan->out_axes[i]);
    if (!stacked) return false;
    results->items[scan->states + i] = stacked;
  }
  return true;
}

// Up to opset 8 the first axis of every input is a batch, whose elements are scanned one by one.
static void scan_batch(Scan *scan) {
  Import *import = scan->import;
  Arena *arena = &import->context->arena;
  Value *first = import_input(import, 1);
  int all = scan->states + scan->scanned;
  if (import_input(import, 0)) {
    import_refuse(import, "lengths of sequences are not supported: leave them out");
    return;
  }
  int64_t batch = first->rank ? import_dim(first, 0) : 0;
  if (batch < 1 || !scope_expand(import, (int)MIN_OF(batch, INT32_MAX))) {
    if (batch < 1) import_refuse(import, "its inputs have no batch");
    return;
  }
  Value **results = arena_array(arena, Value *, (int)batch * scan->body->output.count);
  for (int b = 0; b < batch; b++) {
    BranchValues one = values_new(import, all), made;
    for (int i = 0; i < all; i++) {
      Value *value = import_input(import, scan->first + i);
      if (!value->rank || import_dim(value, 0) != batch) {
        import_refuse(import, "its inputs differ in their batch");
        return;
      }
      if (!(one.items[i] = import_element(import, value, 0, b))) return;
    }
    if (!scan_all(scan, one.items, one.items + scan->states, arena_printf(arena, "%d/", b), &made))
      return;
    for (int i = 0; i < made.count; i++) results[i * batch + b] = made.items[i];
  }
  for (int i = 0; i < import->node->output.count; i++)
    import_result(import, i, import_stack(import, results + i * batch, (int)batch, 0));
}

void import_scan(Import *import) {
  bool batched = import_opset(import) < 9;
  Scan scan = {.import = import, .body = body_of(import, "body")};
  BranchValues results;
  if (!scan.body || !scan_begin(&scan, batched)) return;
  if (batched)
    scan_batch(&scan);
  else if (scan_all(&scan, import->inputs, import->inputs + scan.states, "", &results))
    set_results(import, &results);
}

// ---- SequenceMap ------------------------------------------------------------------------------

// The body's inputs for element `at`: that element of each sequence, and each tensor as it is.
static bool map_inputs(Import *import, int at, int length, BranchValues *inputs) {
  *inputs = values_new(import, import->input_count);
  for (int i = 0; i < import->input_count; i++) {
    Value *value = import_input(import, i);
    inputs->items[i] = value;
    if (!value || !value_is_list(value)) continue;
    const PtrArray *items = import_sequence(import, i);
    if (!items) return false;
    if (items->count != length)
      return import_refuse(import, "its sequences have %d and %d values", length, items->count);
    inputs->items[i] = items->items[at];
  }
  return true;
}

void import_sequence_map(Import *import) {
  Arena *arena = &import->context->arena;
  const OnnxGraph *body = body_of(import, "body");
  const PtrArray *first = body ? import_sequence(import, 0) : NULL;
  if (!first || !check_body(import, body, import->input_count, 0) ||
      !check_results(import, body->output.count))
    return;
  Value **results = arena_array(arena, Value *, first->count * body->output.count);
  for (int at = 0; at < first->count; at++) {
    BranchValues inputs, outputs;
    if (!map_inputs(import, at, first->count, &inputs) ||
        !import_body(import, body, arena_printf(arena, "%d", at), &inputs, &outputs))
      return;
    for (int i = 0; i < outputs.count; i++) results[i * first->count + at] = outputs.items[i];
  }
  for (int i = 0; i < import->node->output.count; i++)
    import_result(import, i, import_list_of(import, results + i * first->count, first->count));
}
