// SPDX-License-Identifier: Apache-2.0
// Writes a transform_layout as steps on single axes, and a run of such steps as one
// transform_layout, for the other forms of a trace. A form is found from the digits of the map's
// outputs; it counts only when it is run on the function before the step, and gives the same loops,
// and buffers whose layouts are proved equal. Where an index has another text then, the steps that
// follow are run too, and must give as many results.
//   i, j -> j // 4, i, j % 4    =>   split_axis(1, [None, 4]); reorder_axes([1, 0, 2])
#include "schedule/internal.h"

enum { MOST_DIGITS = 64 };

// A digit (axis // cut) % extent, with its weight in the output that it belongs to.
typedef LayoutWeightedDigit AxisDigit;
typedef struct DigitList {
  AxisDigit items[MOST_DIGITS];
  int count;
} DigitList;

// An output: the sum of digits, XORed with another sum.
typedef struct OutputDigits {
  DigitList sum, swizzle;
} OutputDigits;

typedef struct AxisForm {
  Context *context;
  const Relaid *relaid;
  const char *why;
  int64_t *extents; // of the logical axes; a stand-in for a symbolic one
  OutputDigits *outputs;
  int output_count;
  DigitList axes; // the digits of the axes, which become the axes of the buffer, in order
  StepValue block, slot;
  StepCallArray *steps;
} AxisForm;

static bool give_up(AxisForm *f, const char *why) {
  f->why = why;
  return false;
}

// ---- Digits of the outputs ---------------------------------------------------------------------

static bool read_sum(AxisForm *f, const LayoutExpr *e, DigitList *out) {
  LayoutDigitSum sum;
  const Layout *layout = f->relaid->layout;
  if (!layout_expr_digits(f->context, e, f->extents, layout->rank, &sum) || sum.start ||
      sum.count > MOST_DIGITS)
    return give_up(
        f, arena_printf(&f->context->arena, "%s is not a sum of digits of the axes",
                        layout_expr_text(f->context, e, layout->map->inputs, layout->rank)));
  for (int i = 0; i < sum.count; i++) out->items[i] = sum.digits[i];
  out->count = sum.count;
  return true;
}

static bool read_outputs(AxisForm *f) {
  const Layout *layout = f->relaid->layout;
  enum { STAND_IN = 1 << 20 }; // many factors divide it
  f->extents = arena_array(&f->context->arena, int64_t, layout->rank);
  for (int i = 0; i < layout->rank; i++) {
    const LayoutExpr *extent = layout->shape[i];
    f->extents[i] = extent->op == LAYOUT_CONST ? extent->value : STAND_IN;
    if (!f->extents[i]) return give_up(f, "the buffer is empty");
  }
  f->output_count = layout->physical_rank;
  f->outputs = arena_array(&f->context->arena, OutputDigits, f->output_count);
  for (int k = 0; k < f->output_count; k++) {
    const LayoutExpr *e = layout->map->outputs[k];
    bool swizzled = e->op == LAYOUT_XOR;
    if (!read_sum(f, swizzled ? e->args[0] : e, &f->outputs[k].sum)) return false;
    if (swizzled && !read_sum(f, e->args[1], &f->outputs[k].swizzle)) return false;
  }
  return true;
}

// ---- Cuts --------------------------------------------------------------------------------------

// Cuts each digit of `list` of this axis that has the cut inside of it. False when the cut does not
// divide it.
static bool cut_list(DigitList *list, int axis, int64_t cut, bool *changed) {
  for (int i = 0; i < list->count; i++) {
    AxisDigit *d = &list->items[i];
    if (d->axis != axis || cut <= d->cut || cut >= d->cut * d->extent) continue;
    int64_t radix = cut / d->cut;
    if (cut % d->cut || list->count == MOST_DIGITS) return false;
    for (int k = list->count++; k > i + 1; k--) list->items[k] = list->items[k - 1];
    list->items[i + 1] = (AxisDigit){axis, d->cut, radix, d->weight};
    *d = (AxisDigit){axis, cut, ceil_div(d->extent, radix), d->weight * radix};
    *changed = true;
  }
  return true;
}

static bool cut_all(AxisForm *f, int axis, int64_t cut, bool *changed) {
  for (int k = 0; k < f->output_count; k++)
    if (!cut_list(&f->outputs[k].sum, axis, cut, changed) ||
        !cut_list(&f->outputs[k].swizzle, axis, cut, changed))
      return give_up(f, arena_printf(&f->context->arena,
                                     "the cuts of axis %d do not divide one another", axis));
  return true;
}

static bool cut_at_ends(AxisForm *f, const DigitList *list, bool *changed) {
  for (int i = 0; i < list->count; i++) {
    AxisDigit d = list->items[i];
    int64_t end;
    if (!cut_all(f, d.axis, d.cut, changed)) return false;
    if (mul_fits(d.cut, d.extent, &end) && end < f->extents[d.axis] &&
        !cut_all(f, d.axis, end, changed))
      return false;
  }
  return true;
}

// The digit of the sum that has the weight; -1: there is none.
static int digit_with_weight(const DigitList *sum, int64_t weight) {
  for (int i = 0; i < sum->count; i++)
    if (sum->items[i].weight <= weight) return i;
  return -1;
}

// Cuts the digits of an output so that each digit of the swizzle meets one of the sum.
static bool cut_for_swizzle(AxisForm *f, OutputDigits *output, bool *changed) {
  for (int i = 0; i < output->swizzle.count && !*changed; i++) {
    AxisDigit by = output->swizzle.items[i];
    int at = digit_with_weight(&output->sum, by.weight);
    if (at < 0) return give_up(f, "a swizzle changes no digit of its axis");
    AxisDigit d = output->sum.items[at];
    int64_t low = by.weight / d.weight, top = at ? output->sum.items[at - 1].weight : INT64_MAX;
    if (by.weight % d.weight || (low > 1 && low >= d.extent))
      return give_up(f, "a swizzle begins within no digit of its axis");
    if (low > 1 && !cut_all(f, d.axis, d.cut * low, changed)) return false;
    if (!*changed && by.extent > top / by.weight &&
        !cut_all(f, by.axis, by.cut * (top / by.weight), changed))
      return false;
  }
  return true;
}

static bool cut_outputs(AxisForm *f) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int k = 0; k < f->output_count; k++)
      if (!cut_at_ends(f, &f->outputs[k].sum, &changed) ||
          !cut_at_ends(f, &f->outputs[k].swizzle, &changed) ||
          (!changed && !cut_for_swizzle(f, &f->outputs[k], &changed)))
        return false;
  }
  return true;
}

// ---- The axes after all are split --------------------------------------------------------------

static int axis_of_digit(const AxisForm *f, int axis, int64_t cut) {
  for (int i = 0; i < f->axes.count; i++)
    if (f->axes.items[i].axis == axis && f->axes.items[i].cut == cut) return i;
  return -1;
}

static bool add_axis(AxisForm *f, int at, AxisDigit d) {
  if (f->axes.count == MOST_DIGITS) return give_up(f, "it has too many digits");
  for (int k = f->axes.count++; k > at; k--) f->axes.items[k] = f->axes.items[k - 1];
  f->axes.items[at] = d;
  return true;
}

// The place of the digit among the others, by axis and from the highest digit down.
static int place_of(const AxisForm *f, const AxisDigit *d) {
  int at = 0;
  while (at < f->axes.count &&
         (f->axes.items[at].axis < d->axis ||
          (f->axes.items[at].axis == d->axis && f->axes.items[at].cut > d->cut)))
    at++;
  return at;
}

// Lists the digits of all axes. Each must be in one output.
static bool list_axes(AxisForm *f) {
  for (int k = 0; k < f->output_count; k++)
    for (int i = 0; i < f->outputs[k].sum.count; i++) {
      AxisDigit d = f->outputs[k].sum.items[i];
      if (axis_of_digit(f, d.axis, d.cut) >= 0)
        return give_up(f, "a digit of an axis is in two outputs");
      if (!add_axis(f, place_of(f, &d), d)) return false;
    }
  for (int a = 0; a < f->relaid->layout->rank; a++) {
    int64_t cut = 1;
    for (int at; (at = axis_of_digit(f, a, cut)) >= 0 && f->axes.items[at].extent > 1;)
      cut *= f->axes.items[at].extent;
    if (cut < f->extents[a]) return give_up(f, "a digit of an axis is in no output");
  }
  return true;
}

// Appends a digit of extent 1 to an output: that of a whole axis of extent 1 that no output has
// yet, else one that is split off.
static bool add_unit(AxisForm *f, DigitList *sum) {
  int axis = 0;
  for (int a = f->relaid->layout->rank - 1; a > 0 && !axis; a--)
    if (axis_of_digit(f, a, 1) < 0) axis = a;
  int64_t cut = 1;
  while (axis_of_digit(f, axis, cut) >= 0) cut = cut > 0 ? -1 : cut - 1; // below the other digits
  AxisDigit unit = {axis, cut, 1, 1};
  if (sum->count == MOST_DIGITS || !add_axis(f, place_of(f, &unit), unit))
    return give_up(f, "it has too many digits");
  sum->items[sum->count++] = unit;
  return true;
}

// Gives each output a digit of weight 1, and each axis a digit.
static bool add_units(AxisForm *f) {
  if (!f->output_count || !f->relaid->layout->rank) return give_up(f, "it has no axes");
  for (int k = 0; k < f->output_count; k++) {
    DigitList *sum = &f->outputs[k].sum;
    if ((!sum->count || sum->items[sum->count - 1].weight > 1) && !add_unit(f, sum)) return false;
  }
  for (int a = 0; a < f->relaid->layout->rank; a++) {
    bool there = false;
    for (int i = 0; i < f->axes.count; i++) there |= f->axes.items[i].axis == a;
    if (there) continue;
    DigitList *sum = &f->outputs[0].sum; // at the front, where it has any weight
    AxisDigit unit = {a, 1, 1, sum->items[0].weight * sum->items[0].extent};
    if (sum->count == MOST_DIGITS || !add_axis(f, place_of(f, &unit), unit))
      return give_up(f, "it has too many digits");
    memmove(sum->items + 1, sum->items, sizeof *sum->items * (size_t)sum->count++);
    sum->items[0] = unit;
  }
  return true;
}

// ---- Steps -------------------------------------------------------------------------------------

static void add_step(AxisForm *f, StepId id, StepValue a, StepValue b) {
  StepCall call = {.info = &step_table[id], .args = {f->block, f->slot, a, b}};
  array_push(&f->context->arena, f->steps, call);
}

static StepValue list_of(Context *context, const int64_t *items, int count) {
  StepValue list = value_list(context, count);
  for (int i = 0; i < count; i++) list.as.list.items[i] = value_int(items[i]);
  return list;
}

static void split_axes(AxisForm *f) {
  for (int a = f->relaid->layout->rank - 1; a >= 0; a--) {
    int64_t factors[MOST_DIGITS];
    int count = 0;
    for (int i = 0; i < f->axes.count; i++)
      if (f->axes.items[i].axis == a) factors[count++] = f->axes.items[i].extent;
    if (count < 2) continue;
    StepValue list = list_of(f->context, factors, count);
    list.as.list.items[0] = (StepValue){VALUE_NONE};
    add_step(f, STEP_split_axis, value_int(a), list);
  }
}

static int axis_of(const AxisForm *f, const AxisDigit *d) {
  return axis_of_digit(f, d->axis, d->cut);
}

// Pads the digits of an output so that each weight is the product of the extents behind it.
static bool pad_digits(AxisForm *f, int k) {
  const DigitList *sum = &f->outputs[k].sum;
  const LayoutExpr *physical = f->relaid->layout->physical[k];
  for (int i = 0; i < sum->count; i++) {
    const AxisDigit *d = &sum->items[i];
    int64_t radix = d->extent;
    if (i)
      radix = sum->items[i - 1].weight / d->weight;
    else if (physical->op == LAYOUT_CONST)
      radix = MAX_OF(physical->value / d->weight, radix);
    if (i && (sum->items[i - 1].weight % d->weight || radix < d->extent))
      return give_up(f, "the weights of an output's digits do not divide one another");
    if (radix != d->extent) add_step(f, STEP_pad_axis, value_int(axis_of(f, d)), value_int(radix));
  }
  return true;
}

static bool swizzle_digits(AxisForm *f, const OutputDigits *output) {
  for (int i = 0; i < output->swizzle.count; i++) {
    const AxisDigit *by = &output->swizzle.items[i];
    int at = digit_with_weight(&output->sum, by->weight), source = axis_of(f, by);
    if (at < 0 || output->sum.items[at].weight != by->weight || source < 0)
      return give_up(f, "a swizzle is by digits that are in no output");
    add_step(f, STEP_swizzle_axes, value_int(axis_of(f, &output->sum.items[at])),
             value_int(source));
  }
  return true;
}

// The identity is written as an order that changes nothing.
static void reorder_axes(AxisForm *f) {
  int64_t order[MOST_DIGITS];
  int count = 0;
  bool moved = !f->steps->count && !f->relaid->layout->map->separator_count;
  for (int k = 0; k < f->output_count; k++)
    for (int i = 0; i < f->outputs[k].sum.count; i++, count++) {
      order[count] = axis_of(f, &f->outputs[k].sum.items[i]);
      moved |= order[count] != count;
    }
  if (moved)
    add_step(f, STEP_reorder_axes, list_of(f->context, order, count), (StepValue){VALUE_NONE});
}

static void fuse_axes(AxisForm *f) {
  int end = f->axes.count;
  for (int k = f->output_count - 1; k >= 0; k--) {
    int64_t axes[MOST_DIGITS];
    int count = f->outputs[k].sum.count;
    end -= count;
    for (int i = 0; i < count; i++) axes[i] = end + i;
    if (count > 1)
      add_step(f, STEP_fuse_axes, list_of(f->context, axes, count), (StepValue){VALUE_NONE});
  }
}

static bool separate_axes(AxisForm *f, const StepCall *call) {
  const IndexMap *map = f->relaid->layout->map;
  if (f->relaid->buffer->separator_count)
    return give_up(f, "it replaces the axis separators that the buffer has");
  for (int i = 0; i < map->separator_count; i++)
    add_step(f, STEP_separate_axis, value_int(map->separators[i]), (StepValue){VALUE_NONE});
  const StepValue *padding = &call->args[3];
  if (padding->kind == VALUE_STRING) return give_up(f, "it says that padding is unknown");
  if (padding->kind == VALUE_MAP || padding->kind == VALUE_FUNCTION)
    return give_up(f, "its padding has several values");
  if (padding->kind != VALUE_NONE)
    add_step(f, STEP_pad_value, *padding, call->args[step_find_param(call->info, "fill")]);
  return true;
}

// ---- Proof by running --------------------------------------------------------------------------

typedef struct Outline {
  Arena *arena;
  StmtArray loops, blocks;
} Outline;

static bool see_outline(Visitor *visitor, Stmt *s) {
  Outline *outline = visitor->env;
  if (s->kind == STMT_FOR) array_push(outline->arena, &outline->loops, s);
  if (s->kind == STMT_BLOCK) array_push(outline->arena, &outline->blocks, s);
  return true;
}

static Outline outline_of(Context *context, const PrimFunc *func) {
  Outline outline = {.arena = &context->arena};
  Visitor visitor = {.env = &outline, .enter_stmt = see_outline};
  visit_stmt(&visitor, func->body);
  return outline;
}

static bool same_layout(Context *context, const Buffer *a, const Buffer *b) {
  if (a == b) return true;
  if (!a->layout || !b->layout || a->separator_count != b->separator_count) return false;
  const LayoutPadding *p = &a->layout->padding, *q = &b->layout->padding;
  if (p->kind != q->kind || (p->kind == LAYOUT_PADDING_CONSTANT && p->value != q->value))
    return false;
  return layout_equal(context, a->layout, b->layout).verdict == VERDICT_YES;
}

static bool same_regions(Context *context, const Region *a, int a_count, const Region *b,
                         int b_count) {
  bool same = a_count == b_count;
  for (int i = 0; i < a_count && same; i++)
    same = a[i].buffer->name == b[i].buffer->name && same_layout(context, a[i].buffer, b[i].buffer);
  return same;
}

// Whether later steps find the same loops, blocks and buffers in both functions.
static bool same_outline(Context *context, const PrimFunc *a, const PrimFunc *b) {
  Outline x = outline_of(context, a), y = outline_of(context, b);
  if (x.loops.count != y.loops.count || x.blocks.count != y.blocks.count) return false;
  for (int i = 0; i < x.loops.count; i++)
    if (x.loops.items[i]->as.loop.extent != y.loops.items[i]->as.loop.extent) return false;
  for (int i = 0; i < x.blocks.count; i++) {
    const Block *p = x.blocks.items[i]->as.block, *q = y.blocks.items[i]->as.block;
    if (p->name != q->name || p->var_count != q->var_count ||
        !same_regions(context, p->reads, p->read_count, q->reads, q->read_count) ||
        !same_regions(context, p->writes, p->write_count, q->writes, q->write_count))
      return false;
  }
  return true;
}

static Map loops_of(Context *context, const PrimFunc *func) {
  Outline outline = outline_of(context, func);
  Map loops = map_new(&context->arena);
  for (int i = 0; i < outline.loops.count; i++)
    map_put(&loops, outline.loops.items[i]->as.loop.var, outline.loops.items[i]);
  return loops;
}

// Whether `run` has the loops of `before` that `after` has, so that later steps find them.
static bool keeps_loops(Context *context, const PrimFunc *before, const PrimFunc *after,
                        const PrimFunc *run) {
  Map given = loops_of(context, before), kept = loops_of(context, run);
  Outline outline = outline_of(context, after);
  bool all = true;
  for (int i = 0; i < outline.loops.count && all; i++) {
    const Expr *loop = outline.loops.items[i]->as.loop.var;
    all = !map_contains(&given, loop) || map_contains(&kept, loop);
  }
  return all;
}

// The value with the blocks and loops of the steps that were run again.
static StepValue value_again(Context *context, const Map *again, StepValue value) {
  if (value.kind == VALUE_LIST) {
    StepValue list = value_list(context, value.as.list.count);
    for (int i = 0; i < value.as.list.count; i++)
      list.as.list.items[i] = value_again(context, again, value.as.list.items[i]);
    return list;
  }
  const void *handle = value.kind == VALUE_BLOCK  ? (const void *)value.as.block
                       : value.kind == VALUE_LOOP ? value.as.loop
                                                  : NULL;
  StepValue *found = handle ? map_find(again, handle) : NULL;
  return found ? *found : value;
}

static bool make_again(FormRun *run, const StepCall *old) {
  Context *context = run->schedule->context;
  StepCall call = {.info = old->info};
  for (int i = 0; i < STEP_MAX_PARAMS; i++)
    call.args[i] = value_again(context, &run->again, old->args[i]);
  if (!step_apply(run->schedule, &call) || call.results.count != old->results.count) return false;
  for (int i = 0; i < call.results.count; i++) {
    const StepValue *value = &old->results.items[i];
    if (value->kind == VALUE_BLOCK)
      map_put(&run->again, value->as.block, &call.results.items[i]);
    else if (value->kind == VALUE_LOOP)
      map_put(&run->again, value->as.loop, &call.results.items[i]);
  }
  return true;
}

static FormRun form_run_copy(const FormRun *run) {
  Arena *arena = &run->schedule->context->arena;
  return (FormRun){schedule_copy(run->schedule), map_copy(arena, &run->again)};
}

void form_run_step(FormRun *run, const StepCall *call) {
  if (run->schedule && !make_again(run, call))
    bug(run->schedule->context, "a step after another form of the trace is refused");
}

// Whether the trace's steps after `last` are made on the schedule too, with as many results.
static bool rest_is_made(const Schedule *schedule, const FormRun *run, const StepCall *last) {
  FormRun rest = form_run_copy(run);
  const StepCall *end = schedule->trace.items + schedule->trace.count;
  for (const StepCall *old = last + 1; old < end; old++)
    if (!make_again(&rest, old)) return false;
  return true;
}

// Whether the steps, made on `run` (if it has no schedule: on the function `before` the trace's
// steps up to `last`), give the loops and layouts of the function after these.
static bool steps_give(const Schedule *schedule, FormRun *run, PrimFunc *before,
                       const StepCall *last, const StepCall *steps, int count) {
  const PrimFunc *after = last->relaid->after;
  Context *context = schedule->context;
  int diags = context->diags.count, errors = context->error_count;
  FormRun next = {schedule_copy(schedule), map_new(&context->arena)};
  next.schedule->func = before;
  if (run->schedule) next = form_run_copy(run);
  next.schedule->quiet = true;
  bool made = true;
  for (int i = 0; i < count && made; i++) made = make_again(&next, &steps[i]);
  const PrimFunc *func = next.schedule->func;
  bool equal = made && !run->schedule && prim_func_equal(context, func, after, NULL) &&
               keeps_loops(context, before, after, func);
  made = made &&
         (equal || (same_outline(context, func, after) && rest_is_made(schedule, &next, last)));
  if (made && !equal) *run = next;
  diag_forget(context, diags, errors); // a form that is refused is no error of the user
  return made;
}

// Lets the steps keep loops where the call does.
static void keep_loops_as(const StepCall *call, StepCallArray *steps) {
  if (step_rewrites_loops(call) || call->args[3].kind != VALUE_NONE) return;
  for (int i = 0; i < steps->count; i++) {
    StepCall *step = &steps->items[i];
    int param = step_find_param(step->info, "rewrite_loops");
    if (param >= 0) step->args[param] = (StepValue){VALUE_BOOL, .as.i = 0};
  }
}

bool layout_as_axis_steps(const Schedule *schedule, FormRun *run, const StepCall *call,
                          StepCallArray *out, const char **why) {
  const Relaid *relaid = call->relaid;
  AxisForm f = {.context = schedule->context, .relaid = relaid, .steps = out};
  f.block = call->args[0];
  f.slot = relaid->named ? value_string(relaid->buffer->name) : call->args[1];
  out->count = 0;
  bool found = read_outputs(&f) && cut_outputs(&f) && list_axes(&f) && add_units(&f);
  if (found) split_axes(&f);
  for (int k = 0; k < f.output_count && found; k++) found = pad_digits(&f, k);
  for (int k = 0; k < f.output_count && found; k++) found = swizzle_digits(&f, &f.outputs[k]);
  if (found) {
    reorder_axes(&f);
    fuse_axes(&f);
    found = separate_axes(&f, call);
    keep_loops_as(call, out);
  }
  if (found && !steps_give(schedule, run, relaid->before, call, out->items, out->count))
    found = give_up(&f, "the steps axis by axis give other loops");
  *why = f.why;
  return found;
}

// ---- One map from steps on single axes ---------------------------------------------------------

static bool is_axis_step(const StepCall *call) {
  return call->relaid && call->info != &step_table[STEP_transform_layout];
}

static bool same_place(const StepCall *a, const StepCall *b) {
  return a->args[0].as.block == b->args[0].as.block && b->relaid->before == a->relaid->after &&
         b->relaid->buffer->data == a->relaid->buffer->data;
}

// The optional padding of an axis step.
static StepValue padding_of_call(const StepCall *call) {
  bool has = call->info->params[4].name != NULL;
  return has ? call->args[4] : (StepValue){VALUE_NONE};
}

static bool try_map(const Schedule *schedule, FormRun *run, const StepCall *calls, int count,
                    const IndexMap *map, StepCall *out) {
  *out = (StepCall){.info = &step_table[STEP_transform_layout],
                    .args = {calls[0].args[0], calls[0].args[1], {VALUE_MAP, .as.map = map}}};
  out->args[3] = padding_of_call(&calls[count - 1]);
  if (step_rewrites_loops(&calls[0])) out->args[5] = (StepValue){VALUE_BOOL, .as.i = 1};
  return steps_give(schedule, run, calls[0].relaid->before, &calls[count - 1], out, 1);
}

// The map with simplified outputs, if it is shorter then.
static const IndexMap *shorter_map(Context *context, const Layout *layout, const IndexMap *map) {
  if (!layout->is_static) return map;
  const LayoutExpr **outputs =
      arena_array(&context->arena, const LayoutExpr *, map->output_count + 1);
  for (int i = 0; i < map->output_count; i++)
    outputs[i] = layout_expr_simplify(context, map->outputs[i], layout->extents, map->input_count);
  const IndexMap *simple = index_map_with_outputs(context, map, outputs);
  bool is_shorter = strlen(index_map_text(context, simple)) < strlen(index_map_text(context, map));
  return is_shorter ? simple : map;
}

int axis_steps_as_layout(const Schedule *schedule, FormRun *run, const StepCall *calls, int count,
                         StepCall *out) {
  Context *context = schedule->context;
  const IndexMap *maps[MOST_DIGITS];
  int length = 0;
  while (length < count && length < MOST_DIGITS && is_axis_step(&calls[length])) {
    const StepCall *call = &calls[length];
    if (length && (!same_place(call - 1, call) || padding_of_call(call - 1).kind != VALUE_NONE ||
                   step_rewrites_loops(call - 1) != step_rewrites_loops(call)))
      break;
    const IndexMap *map = call->relaid->layout->map;
    maps[length] = length ? index_map_compose(context, map, maps[length - 1]) : map;
    length++;
  }
  for (; length > 0; length--) {
    const Layout *first = calls[0].relaid->layout;
    if (try_map(schedule, run, calls, length, shorter_map(context, first, maps[length - 1]), out) ||
        try_map(schedule, run, calls, length, maps[length - 1], out))
      return length;
  }
  return 0;
}
