// SPDX-License-Identifier: Apache-2.0
// `pleat layout --show`: one row and one function for each thing that can be shown.
#include "cli/layout_show.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>

#include "explain/explain.h"

enum { MOST_AXES = 64, TABLE_ROWS = 64, STEPS_TRIED = 1 << 16, MOST_BLOCK = 256, MOST_STEPS = 4 };

typedef struct ShowRow {
  const char *name;
  bool needs_numbers; // all extents must be numbers
  int (*show)(LayoutView *view, Text *out);
} ShowRow;

static Context *context_of(const LayoutView *view) {
  return view->cli->context;
}

static int64_t bytes_of(const LayoutView *view) {
  return view->command->element_bytes ? view->command->element_bytes : 4;
}

static const char *extents_text(Context *context, const LayoutExpr *const *extents, int rank) {
  Text text = text_new(&context->arena);
  bool plain = true;
  for (int i = 0; i < rank; i++) plain &= extents[i]->args[0] == NULL;
  for (int i = 0; i < rank; i++)
    text_printf(&text, "%s%s", i ? plain ? "x" : ", " : "",
                layout_expr_text(context, extents[i], NULL, 0));
  return rank ? text_string(&text) : "rank 0";
}

static bool is_spread(const Layout *layout) {
  for (int i = 0; i < layout->physical_rank; i++)
    if (layout->map->resources[i]) return true;
  return false;
}

// ---- Steps -------------------------------------------------------------------------------------

// The offset of index x on one axis, with 0 on the other axes.
static const LayoutExpr *offset_on_axis(LayoutView *view, int axis, int64_t x) {
  const Layout *layout = view->operand.layout;
  const LayoutExpr *index[MOST_AXES];
  for (int i = 0; i < layout->rank; i++)
    index[i] = layout_const(context_of(view), i == axis ? x : 0);
  return layout_expr_substitute(context_of(view), layout_offset_expr(context_of(view), layout),
                                index, layout->rank);
}

// A text such as "1 (then H*W*16 after 16)", when the first step is a number.
static const char *symbolic_step(LayoutView *view, int axis) {
  const LayoutExpr *start = offset_on_axis(view, axis, 0), *e = offset_on_axis(view, axis, 1);
  if (view->operand.layout->map->replica_count || start->op != LAYOUT_CONST || start->value)
    return "varies";
  if (e->op != LAYOUT_CONST) return "varies";
  int64_t step = e->value;
  for (int64_t x = 2; x <= MOST_BLOCK; x++)
    if ((e = offset_on_axis(view, axis, x))->op != LAYOUT_CONST || e->value != x * step)
      return arena_printf(&context_of(view)->arena, "%" PRId64 " (then %s after %" PRId64 ")", step,
                          layout_expr_text(context_of(view), e, NULL, 0), x);
  return "varies";
}

// The steps of the offset along an axis: step[i] applies every after[i] indices, as in "1 (then 784
// after 16)".
typedef struct AxisSteps {
  int64_t after[MOST_STEPS], step[MOST_STEPS];
  int count;
} AxisSteps;

static int64_t steps_to(const AxisSteps *steps, int64_t x) {
  int64_t offset = 0;
  for (int i = steps->count - 1; i >= 0; x %= steps->after[i--])
    offset += x / steps->after[i] * steps->step[i];
  return offset;
}

// Records that the offset at index x differs from the first by `offset`. False when no steps give
// this.
static bool take_offset(AxisSteps *steps, int64_t x, int64_t offset) {
  if (steps->count && steps_to(steps, x) == offset) return true;
  if (steps->count == MOST_STEPS || (steps->count && x % steps->after[steps->count - 1]))
    return false;
  steps->after[steps->count] = x;
  steps->step[steps->count++] = offset;
  return true;
}

static const char *steps_text(Context *context, const AxisSteps *steps) {
  Text text = text_new(&context->arena);
  text_printf(&text, "%" PRId64, steps->step[0]);
  for (int i = 1; i < steps->count; i++)
    text_printf(&text, "%s%" PRId64 " after %" PRId64, i == 1 ? " (then " : ", ", steps->step[i],
                steps->after[i]);
  text_puts(&text, steps->count > 1 ? ")" : "");
  return text_string(&text);
}

// A text such as "1 (then 784 after 16)": the steps of the offset along one axis, with 0 on the
// others.
static const char *varying_step(LayoutView *view, int axis) {
  const Layout *layout = view->operand.layout;
  AxisSteps steps = {0};
  int64_t index[MOST_AXES] = {0}, start, offset;
  if (!layout->is_static) return symbolic_step(view, axis);
  int64_t most = MIN_OF(layout->extents[axis], (int64_t)STEPS_TRIED);
  if (most < 2 || !layout_offset(layout, index, &start)) return "varies";
  for (int64_t x = 1; x < most; x++) {
    index[axis] = x;
    if (!layout_offset(layout, index, &offset)) return "varies";
    if (!take_offset(&steps, x, offset - start)) return "varies";
  }
  return steps.count > 1 ? steps_text(context_of(view), &steps) : "varies";
}

static bool depends(const LayoutExpr *e, int axis) {
  bool found = e->op == LAYOUT_AXIS && e->value == axis;
  for (int i = 0; i < 3 && e->args[i] && !found; i++) found = depends(e->args[i], axis);
  return found;
}

// The step in memory for a layout on several resources, when only the memory axes change.
static const char *step_in_memory(LayoutView *view, int axis) {
  const Layout *layout = view->operand.layout;
  int64_t strides[MOST_AXES];
  bool known[MOST_AXES];
  if (layout->is_static) layout_strides(context_of(view), layout, strides, known);
  if (layout->is_static && known[axis])
    return arena_printf(&context_of(view)->arena, "%" PRId64, strides[axis]);
  for (int i = 0; i < layout->physical_rank; i++)
    if (layout->map->resources[i] && depends(layout->map->outputs[i], axis))
      return arena_printf(&context_of(view)->arena, "to another %s", layout->map->resources[i]);
  return varying_step(view, axis);
}

static const char *step_text(LayoutView *view, int axis) {
  const LayoutExpr *stride = NULL;
  LayoutAnswer answer = layout_stride(context_of(view), view->operand.layout, axis, &stride);
  if (answer.verdict == VERDICT_YES && stride)
    return layout_expr_text(context_of(view), stride, NULL, 0);
  if (is_spread(view->operand.layout)) return step_in_memory(view, axis);
  return varying_step(view, axis);
}

static void put_steps(LayoutView *view, Text *out) {
  const Layout *layout = view->operand.layout;
  for (int i = 0; i < layout->rank; i++)
    text_printf(out, "%s%s %s", i ? "   " : "", layout->map->inputs[i],
                layout->shape[i]->op == LAYOUT_CONST && layout->shape[i]->value == 1
                    ? "-"
                    : step_text(view, i));
  if (!layout->rank) text_puts(out, "none: one element");
}

static void put_vectors(LayoutView *view, Text *out) {
  const Layout *layout = view->operand.layout;
  size_t before = out->size;
  for (int i = 0; i < layout->rank; i++) {
    int64_t width = layout_vector_width(context_of(view), layout, i);
    if (width > 1)
      text_printf(out, "%s%s %" PRId64 " wide, aligned to %" PRId64 " bytes",
                  out->size > before ? "   " : "", layout->map->inputs[i], width,
                  width * bytes_of(view));
  }
  if (out->size == before)
    text_puts(out, layout->is_static ? "none" : "none for all values of the names");
}

static int show_strides(LayoutView *view, Text *out) {
  const char *dim = cli_paint(view->cli, COLOUR_DIM), *plain = cli_paint(view->cli, COLOUR_NONE);
  text_printf(out, "%sone step of%s   ", dim, plain);
  put_steps(view, out);
  text_printf(out, "\n%svectors%s       ", dim, plain);
  put_vectors(view, out);
  text_puts(out, "\n");
  return STATUS_DONE;
}

// ---- Padding ----------------------------------------------------------------------------------

static void put_padding_where(LayoutView *view, Text *out) {
  LayoutInverse inverse = {0};
  Context *context = context_of(view);
  const Layout *layout = view->operand.layout;
  if (layout_inverse(context, layout, &inverse).verdict != VERDICT_YES) return;
  if (!inverse.padding) return;
  text_printf(
      out, "%spadding%s       where %s\n", cli_paint(view->cli, COLOUR_DIM),
      cli_paint(view->cli, COLOUR_NONE),
      layout_expr_text(context, inverse.padding, inverse.map->inputs, inverse.map->input_count));
}

static int show_padding(LayoutView *view, Text *out) {
  QueryReply reply;
  LayoutRuns runs = {0};
  Context *context = context_of(view);
  if (!layout_view_ask(view, query_row_find("padding"), &view->operand, NULL, &reply))
    return STATUS_BAD;
  char *number = json_is_string(reply.answer) ? NULL : json_dumps(reply.answer, JSON_ENCODE_ANY);
  const char *count = number ? number : json_string_value(reply.answer);
  text_printf(
      out, "%s of the physical indices of %s hold no element\n", count ? count : "",
      extents_text(context, view->operand.layout->physical, view->operand.layout->physical_rank));
  free(number);
  query_reply_free(&reply);
  put_padding_where(view, out);
  LayoutAnswer answer = layout_padding_runs(context, view->operand.layout, 8, &runs);
  if (answer.verdict != VERDICT_YES || !runs.total) return STATUS_DONE;
  text_printf(out, "%soffsets%s       ", cli_paint(view->cli, COLOUR_DIM),
              cli_paint(view->cli, COLOUR_NONE));
  for (int i = 0; i < runs.shown; i++) {
    int64_t first = runs.runs[i].first, last = first + runs.runs[i].count - 1;
    text_printf(out, "%s%" PRId64, i ? ", " : "", first);
    if (last > first) text_printf(out, "-%" PRId64, last);
  }
  if (runs.run_count > runs.shown) text_printf(out, ", ... (%" PRId64 " runs)", runs.run_count);
  text_puts(out, "\n");
  return STATUS_DONE;
}

// ---- Summary ----------------------------------------------------------------------------------

static const char *claim(LayoutAnswer answer, const char *what) {
  return answer.verdict == VERDICT_YES ? what : answer.verdict == VERDICT_NO ? "not " : "perhaps ";
}

static void put_claims(LayoutView *view, Text *out) {
  Context *context = context_of(view);
  const Layout *layout = view->operand.layout;
  LayoutAnswer injective = layout_is_injective(context, layout);
  LayoutAnswer onto = layout_is_onto(context, layout);
  text_printf(out, "%sis%s            %sinjective, %sonto", cli_paint(view->cli, COLOUR_DIM),
              cli_paint(view->cli, COLOUR_NONE), claim(injective, ""), claim(onto, ""));
  if (layout_is_identity(context, layout).verdict == VERDICT_YES) text_puts(out, ", the identity");
  if (injective.verdict == VERDICT_NO)
    text_printf(out, "; %s", layout_answer_text(context, &injective) + strlen("no: "));
  text_puts(out, "\n");
}

static const char *padding_text(Context *context, LayoutPadding padding) {
  return padding.kind == LAYOUT_PADDING_CONSTANT
             ? arena_printf(&context->arena, "%.17g", padding.value)
         : padding.kind == LAYOUT_PADDING_ANY ? "any value"
                                              : "nobody knows what";
}

static int show_summary(LayoutView *view, Text *out) {
  Context *context = context_of(view);
  const Layout *layout = view->operand.layout;
  int64_t positions, count = -1;
  text_printf(out, "%s%s%s\n%s in %s", cli_paint(view->cli, COLOUR_BOLD),
              index_map_text(context, layout->map), cli_paint(view->cli, COLOUR_NONE),
              extents_text(context, layout->shape, layout->rank),
              extents_text(context, layout->physical, layout->physical_rank));
  if (layout_physical_size(layout, &positions)) {
    text_printf(out, "   %" PRId64 " physical ind%s", positions, positions == 1 ? "ex" : "ices");
    if (layout_padding_count(context, layout, &count).verdict == VERDICT_YES)
      text_printf(out, ", %" PRId64 " padding", count);
  }
  text_puts(out, "\n");
  put_claims(view, out);
  show_strides(view, out);
  put_padding_where(view, out);
  if (layout->padding.kind != LAYOUT_PADDING_UNKNOWN)
    text_printf(out, "%sit holds%s      %s\n", cli_paint(view->cli, COLOUR_DIM),
                cli_paint(view->cli, COLOUR_NONE), padding_text(context, layout->padding));
  return STATUS_DONE;
}

static json_t *strides_json(LayoutView *view) {
  const Layout *layout = view->operand.layout;
  json_t *list = json_array();
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *stride = NULL;
    LayoutAnswer answer = layout_stride(context_of(view), layout, i, &stride);
    json_array_append_new(list, answer.verdict == VERDICT_YES && stride
                                    ? json_expression(context_of(view), stride)
                                    : json_null());
  }
  return list;
}

static json_t *verdict_json(LayoutAnswer answer) {
  static const char *const words[] = {
      [VERDICT_NO] = "no", [VERDICT_YES] = "yes", [VERDICT_UNDECIDED] = "unknown"};
  return json_string(words[answer.verdict]);
}

static json_t *summary_json(LayoutView *view) {
  Context *context = context_of(view);
  const Layout *layout = view->operand.layout;
  int64_t positions, padding;
  json_t *object =
      json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "map", index_map_text(context, layout->map),
                "shape", json_expressions(context, layout->shape, layout->rank), "physical",
                json_expressions(context, layout->physical, layout->physical_rank), "injective",
                verdict_json(layout_is_injective(context, layout)), "onto",
                verdict_json(layout_is_onto(context, layout)), "strides", strides_json(view));
  if (layout_physical_size(layout, &positions))
    json_object_set_new(object, "places", json_integer(positions));
  if (layout->is_static && layout_padding_count(context, layout, &padding).verdict == VERDICT_YES)
    json_object_set_new(object, "padding", json_integer(padding));
  if (layout->padding.kind == LAYOUT_PADDING_CONSTANT)
    json_object_set_new(object, "pad_value", json_real(layout->padding.value));
  if (layout->padding.kind == LAYOUT_PADDING_ANY)
    json_object_set_new(object, "pad_value", json_string("any"));
  json_t *vectors = json_array();
  for (int i = 0; i < layout->rank; i++)
    json_array_append_new(vectors, json_integer(layout_vector_width(context, layout, i)));
  json_object_set_new(object, "vectors", vectors);
  return object;
}

// ---- Elements ---------------------------------------------------------------------------------

static const char *index_text(Arena *arena, const int64_t *index, int rank) {
  Text text = text_new(arena);
  for (int i = 0; i < rank; i++) text_printf(&text, "%s%" PRId64, i ? ", " : "", index[i]);
  return text_string(&text);
}

static const char *exprs_text(Context *context, const IndexMap *map, const LayoutExpr *const *e,
                              int count) {
  Text text = text_new(&context->arena);
  for (int i = 0; i < count; i++)
    text_printf(
        &text, "%s%s", i ? ", " : "",
        layout_expr_text(context, e[i], map->inputs, map->input_count + map->replica_count));
  return text_string(&text);
}

// Shows one row for all elements, when extents are not numbers.
static int show_formulas(LayoutView *view, Text *out) {
  Context *context = context_of(view);
  const Layout *layout = view->operand.layout;
  const IndexMap *map = layout->map;
  const LayoutExpr *offset = layout_offset_expr(context, layout), *axes[MOST_AXES];
  for (int i = 0; i < layout->rank; i++) axes[i] = layout_axis(context, i);
  text_printf(out, "# %s -> physical index in %s -> offset\n",
              extents_text(context, layout->shape, layout->rank),
              extents_text(context, layout->physical, layout->physical_rank));
  text_printf(out, "[%s] -> [%s] -> %s\n", exprs_text(context, map, axes, layout->rank),
              exprs_text(context, map, map->outputs, layout->physical_rank),
              exprs_text(context, map, &offset, 1));
  return STATUS_DONE;
}

static int show_table(LayoutView *view, Text *out) {
  const Layout *layout = view->operand.layout;
  if (!layout->is_static) return show_formulas(view, out);
  Arena *arena = &context_of(view)->arena;
  int64_t elements = 0, index[MOST_AXES], physical[MOST_AXES], offset;
  layout_logical_size(layout, &elements);
  int64_t shown = view->command->all ? elements : MIN_OF(elements, (int64_t)TABLE_ROWS);
  text_printf(out, "# %s -> physical index -> offset\n",
              extents_text(context_of(view), layout->shape, layout->rank));
  for (int64_t n = 0; n < shown; n++) {
    layout_index_at(layout->extents, layout->rank, n, index);
    if (!index_map_apply(layout->map, index, physical) || !layout_offset(layout, index, &offset))
      continue;
    text_printf(out, "[%s] -> [%s] -> %" PRId64 "\n", index_text(arena, index, layout->rank),
                index_text(arena, physical, layout->physical_rank), offset);
  }
  if (shown < elements)
    text_printf(out, "# %" PRId64 " of %" PRId64 " elements; --all shows the rest\n", shown,
                elements);
  return STATUS_DONE;
}

// ---- Pictures ---------------------------------------------------------------------------------

static bool axis_option(LayoutView *view, int *axis) {
  const Layout *layout = view->operand.layout;
  *axis = -1;
  if (!view->command->axis) return true;
  for (int i = 0; i < layout->rank; i++)
    if (strcmp(layout->map->inputs[i], view->command->axis) == 0) *axis = i;
  if (*axis >= 0) return true;
  return diag_error_as(context_of(view), DIAG_OPTION, (SourcePos){0},
                       "--axis: the layout has no axis '%s'%s", view->command->axis,
                       suggestion_or_names(&context_of(view)->arena, view->command->axis,
                                           layout->map->inputs, layout->rank));
}

static bool picture(LayoutView *view, bool logical, bool memory, Picture *out) {
  const LayoutCommand *command = view->command;
  PictureOptions options = {.element_bits = 8 * bytes_of(view),
                            .line_bytes = command->line,
                            .logical = logical,
                            .memory = memory,
                            .all = command->all};
  long long count, bytes;
  if (!axis_option(view, &options.axis)) return false;
  if (command->banks) {
    if (sscanf(command->banks, "%lldx%lld", &count, &bytes) != 2 || count < 1 || bytes < 1)
      return diag_error_as(context_of(view), DIAG_OPTION, (SourcePos){0},
                           "--banks is a count and bytes, 32x4, not '%s'", command->banks);
    options.bank_count = count;
    options.bank_bytes = bytes;
  }
  return layout_picture(context_of(view), view->operand.layout, &options, out);
}

static int terminal(LayoutView *view, bool logical, bool memory, Text *out) {
  Picture made;
  if (!picture(view, logical, memory, &made)) return STATUS_BAD;
  text_puts(out, picture_text(context_of(view), &made, view->cli->color));
  return STATUS_DONE;
}

static int show_picture(LayoutView *view, Text *out) {
  return terminal(view, false, false, out);
}

static int show_logical(LayoutView *view, Text *out) {
  return terminal(view, true, false, out);
}

static int show_memory(LayoutView *view, Text *out) {
  return terminal(view, false, true, out);
}

static int show_svg(LayoutView *view, Text *out) {
  Picture made;
  if (!picture(view, false, false, &made)) return STATUS_BAD;
  text_puts(out, picture_svg(context_of(view), &made));
  return STATUS_DONE;
}

// ---- Lines, banks, loops, code ----------------------------------------------------------------

static int64_t more_of(const QueryReply *reply, const char *key) {
  return json_integer_value(json_object_get(reply->more, key));
}

static const char *counted(Context *context, int64_t count, const char *noun) {
  return arena_printf(&context->arena, "%" PRId64 " %s%s", count, noun, count == 1 ? "" : "s");
}

// Writes [[first, count], …] as "0-2, 7, ... (9 runs)".
static void put_runs(Text *out, const json_t *runs, int64_t count) {
  const json_t *run;
  size_t i;
  json_array_foreach(runs, i, run) {
    int64_t first = json_integer_value(json_array_get(run, 0));
    int64_t last = first + json_integer_value(json_array_get(run, 1)) - 1;
    text_printf(out, "%s%" PRId64, i ? ", " : "", first);
    if (last > first) text_printf(out, "-%" PRId64, last);
  }
  if ((size_t)count > json_array_size(runs)) text_printf(out, ", ... (%" PRId64 " runs)", count);
}

static int show_lines(LayoutView *view, Text *out) {
  int64_t line = view->command->line ? view->command->line : 64;
  QueryReply reply;
  Context *context = context_of(view);
  if (!layout_view_ask(view, query_row_find("lines"), &view->operand, NULL, &reply))
    return STATUS_BAD;
  if (json_is_integer(reply.answer)) {
    text_printf(out, "%s of %s", counted(context, json_integer_value(reply.answer), "line"),
                counted(context, line, "byte"));
    text_printf(out, " in %s: ", counted(context, more_of(&reply, "run_count"), "run"));
    put_runs(out, json_object_get(reply.more, "runs"), more_of(&reply, "run_count"));
    text_puts(out, "\n");
  } else {
    text_printf(out, "%s\n", layout_answer_text(context, &reply.proof));
  }
  query_reply_free(&reply);
  return STATUS_DONE;
}

// Writes the conflicts of one access.
static int put_conflicts(LayoutView *view, Text *out) {
  QueryReply reply;
  Context *context = context_of(view);
  if (!layout_view_ask(view, query_row_find("conflicts"), &view->operand, NULL, &reply))
    return STATUS_BAD;
  int64_t degree = json_integer_value(reply.answer);
  if (!json_is_integer(reply.answer))
    text_printf(out, "%s\n", layout_answer_text(context, &reply.proof));
  else if (degree > 1)
    text_printf(out, "bank %" PRId64 " is asked for %s at once, ", more_of(&reply, "bank"),
                counted(context, degree, "word"));
  else
    text_puts(out, "no conflict, ");
  if (json_is_integer(reply.answer)) {
    text_printf(out, "%s in ", counted(context, more_of(&reply, "words"), "word"));
    text_printf(out, "%s of ", counted(context, more_of(&reply, "waves"), "wave"));
    text_printf(out, "%s at a time\n", counted(context, more_of(&reply, "phase"), "lane"));
  }
  const LayoutAnswer *no = &reply.proof;
  if (degree > 1 && no->witness && no->witness2)
    text_printf(out, "two words of one bank: lanes [%s] and [%s]\n",
                index_text(&context->arena, no->witness, no->witness_rank),
                index_text(&context->arena, no->witness2, no->witness_rank));
  query_reply_free(&reply);
  return STATUS_DONE;
}

static int show_banks(LayoutView *view, Text *out) {
  LayoutCommand one = *view->command;
  LayoutView with = *view;
  with.command = &one;
  if (!view->command->reads.count) {
    diag_error_as(context_of(view), DIAG_OPTION, (SourcePos){0},
                  "--show banks needs what is read at once: --read 'i=0:32, j=0'");
    return STATUS_MISUSE;
  }
  for (int i = 0; i < view->command->reads.count; i++) {
    one.reads = (StringList){.items = &view->command->reads.items[i], .count = 1};
    text_printf(out, "%s: ", one.reads.items[0]);
    int status = put_conflicts(&with, out);
    if (status != STATUS_DONE) return status;
  }
  return STATUS_DONE;
}

static int show_loops(LayoutView *view, Text *out) {
  LayoutLoops loops = {0};
  Context *context = context_of(view);
  const Layout *layout = view->operand.layout;
  LayoutAnswer answer = layout_loop_order(context, layout, &loops);
  if (answer.verdict != VERDICT_YES)
    return text_printf(out, "%s\n", layout_answer_text(context, &answer)), STATUS_BAD;
  for (int i = 0; i < loops.count; i++) {
    text_pad(out, ' ', 2 * i);
    text_printf(out, "for %s < %s", loops.index->inputs[i],
                layout_expr_text(context, loops.loops[i].extent, NULL, 0));
    text_printf(out, "   # memory + %s", layout_expr_text(context, loops.loops[i].stride, NULL, 0));
    if (loops.loops[i].axis >= 0)
      text_printf(out, ", %s %c %" PRId64, layout->map->inputs[loops.loops[i].axis],
                  loops.loops[i].step < 0 ? '-' : '+', (int64_t)llabs(loops.loops[i].step));
    text_puts(out, "\n");
  }
  text_pad(out, ' ', 2 * loops.count);
  if (loops.guard)
    text_printf(
        out, "if %s: ",
        layout_expr_text(context, loops.guard, loops.index->inputs, loops.index->input_count));
  text_puts(out, "element [");
  for (int i = 0; i < loops.index->output_count; i++)
    text_printf(out, "%s%s", i ? ", " : "",
                layout_expr_text(context, loops.index->outputs[i], loops.index->inputs,
                                 loops.index->input_count));
  text_puts(out, "]\n");
  return STATUS_DONE;
}

static bool is_c_name(const char *text) {
  bool letter = *text == '_' || isalpha((unsigned char)*text);
  while (*text == '_' || isalnum((unsigned char)*text)) text++;
  return letter && !*text;
}

static int show_c(LayoutView *view, Text *out) {
  const char *name = view->command->name ? view->command->name : "layout";
  if (!is_c_name(name)) {
    diag_error_as(
        context_of(view), DIAG_OPTION, (SourcePos){0},
        "--name '%s': expected letters, digits and '_' that begin the name of a C function", name);
    return STATUS_BAD;
  }
  const char *type = view->command->type ? view->command->type : "float";
  text_puts(out, layout_code(context_of(view), view->operand.layout, name, type));
  return STATUS_DONE;
}

// Shows a spelling. CuTe writes several memory axes as coordinates, which are rarely wanted alone.
static int show_spelling(LayoutView *view, LayoutSpelling spelling, Text *out) {
  const char *why = NULL, *flat_why = NULL, *flat_text = NULL;
  Context *context = context_of(view);
  const Layout *layout = view->operand.layout;
  const char *text = layout_spell(context, layout, spelling, &why);
  bool coordinates = text && spelling == LAYOUT_SPELLING_CUTE && layout->physical_rank > 1;
  const Layout *flat = !text || coordinates ? layout_flattened(context, layout) : NULL;
  if (flat) flat_text = layout_spell(context, flat, spelling, &flat_why);
  if (flat_text) text_printf(out, "%s   # with its memory axes flattened to one\n", flat_text);
  if (text)
    text_printf(out, "%s%s\n", text, coordinates ? "   # coordinates, one for each axis" : "");
  if (text || flat_text) return STATUS_DONE;
  diag_error(context, (SourcePos){0}, "%s", why);
  return STATUS_BAD;
}

// ---- The table --------------------------------------------------------------------------------

static const ShowRow rows[] = {
    {"summary", false, show_summary},
    {"picture", true, show_picture},
    {"logical", true, show_logical},
    {"memory", true, show_memory},
    {"svg", true, show_svg},
    {"table", false, show_table},
    {"offsets", true, show_logical},
    {"strides", false, show_strides},
    {"padding", false, show_padding},
    {"lines", true, show_lines},
    {"banks", true, show_banks},
    {"loops", false, show_loops},
    {"c", false, show_c},
};

const char *layout_show_name(int i) {
  if (i < COUNT_OF(rows)) return rows[i].name;
  i -= COUNT_OF(rows);
  return i < LAYOUT_SPELLING_COUNT ? layout_spelling_name(i) : NULL;
}

static const ShowRow *find_row(const char *name) {
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  return NULL;
}

bool layout_show_known(LayoutView *view) {
  const char *names[COUNT_OF(rows) + LAYOUT_SPELLING_COUNT + 1], *wanted = view->command->show;
  LayoutSpelling spelling;
  if (!wanted || find_row(wanted) || layout_spelling_find(wanted, &spelling)) return true;
  int count = 0;
  while ((names[count] = layout_show_name(count))) count++;
  const char *near = suggestion_of(&context_of(view)->arena, wanted, names, count);
  diag_error_as(context_of(view), DIAG_OPTION, (SourcePos){0}, "--show has no '%s'%s", wanted,
                near);
  return diag_note(context_of(view), (SourcePos){0}, "'pleat layout -h' lists its values");
}

static int put(LayoutView *view, Text *out, int status) {
  Cli *cli = view->cli;
  const char *name = view->command->show ? view->command->show : "summary";
  if (status == STATUS_MISUSE || cli->context->error_count) return status;
  if (cli->json && strcmp(name, "summary") == 0) return json_print(cli, summary_json(view));
  if (cli->json)
    return json_print(cli, json_pack("{s:s, s:s}", "show", name, "text", text_string(out))), status;
  if (cli->output && !file_write(cli->context, cli->output, text_string(out), out->size))
    return STATUS_BAD;
  if (!cli->output) fwrite(text_string(out), 1, out->size, stdout);
  return status;
}

static int needs_numbers(LayoutView *view, const char *name) {
  Context *context = context_of(view);
  const Layout *layout = view->operand.layout;
  diag_error_as(context, DIAG_OPTION, (SourcePos){0},
                "--show %s needs numbers for all extents of %s", name,
                extents_text(context, layout->shape, layout->rank));
  Text example = text_new(&context->arena);
  for (int i = 0; i < layout->rank; i++) text_printf(&example, "%s%d", i ? "x" : "", 4 * (i + 1));
  diag_note(context, (SourcePos){0}, "for example --shape %s", text_string(&example));
  return STATUS_BAD;
}

int layout_show(LayoutView *view) {
  const char *name = view->command->show ? view->command->show : "summary";
  const ShowRow *row = find_row(name);
  Text out = text_new(&context_of(view)->arena);
  LayoutSpelling spelling;
  if (row && row->needs_numbers && !view->operand.layout->is_static)
    return needs_numbers(view, name);
  if (row) return put(view, &out, row->show(view, &out));
  if (!layout_spelling_find(name, &spelling)) return STATUS_MISUSE;
  return put(view, &out, show_spelling(view, spelling, &out));
}
