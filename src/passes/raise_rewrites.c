// SPDX-License-Identifier: Apache-2.0
// Makes the compact operators of calls whose programs only rewrite their tensor:
//   out[n, c, h, k] = x[n, 4*c + k, h]                 => layout_transform
//   out[i] = x[i - 1] for 1 <= i < 8, else v           => pad
//   out[i] = x[i + 2]                                  => crop
//   out[n, c, k] = x[n, 4*c + k] for 4*c + k < 6, else v  => pad, then layout_transform
//   out[n, c] = x[n, c // 4, c % 4] for 6 of 8 elements   => layout_transform, then crop
// The program may do so in several blocks: t[j, i] = x[i, j]; out[k] = t[k // 3, k % 3].
// Needs constant shapes. A call is replaced where the analyzer and the layout algebra prove that
// the operators compute the same; other calls stay.
#include "passes/rewrites.h"

// A program that moves elements: out[axes] = inside ? load : other.
typedef struct ProgramMove {
  Context *context;
  const TeStage *stage;
  Expr *load, *inside, *other; // inside NULL: all elements are loads
  Analyzer *analyzer;
} ProgramMove;

static bool read_move(Context *context, const Node *node, ProgramMove *move) {
  if (node->kind != NODE_CALL_TIR || node->input_count != 1 || node->output_count != 1)
    return false;
  const PrimFunc *func = call_prim_func(context, node);
  if (!func) return false;
  Te *te = te_new(context);
  const Buffer *like = func->buffers[0];
  te_input(te, like->name, like->type, like->shape, like->rank);
  if (!program_read_stages(te, func, te->inputs.items, 1, NULL)) return false;
  const TeStage *stage = move_of_stages(context, te);
  if (!stage) return false;
  bool chooses = stage->value->op == EXPR_IF_THEN_ELSE || stage->value->op == EXPR_SELECT;
  *move = (ProgramMove){.context = context, .stage = stage, .analyzer = analyzer_new(context)};
  move->load = chooses ? stage->value->args[1] : stage->value;
  if (chooses) move->inside = stage->value->args[0];
  if (chooses) move->other = stage->value->args[2];
  for (int i = 0; i < stage->axis_count; i++)
    analyzer_bind_kept(move->analyzer, stage->axes[i].var, stage->axes[i].min,
                       stage->axes[i].extent);
  bool constant = !chooses || move->other->op == EXPR_FLOAT || move->other->op == EXPR_INT;
  return constant && move->load->op == EXPR_LOAD && move->load->as.buffer == te->inputs.items[0];
}

static const Buffer *source_of(const ProgramMove *move) {
  return move->load->as.buffer;
}

// Is `inside` true exactly where the index is within the source?
static bool inside_is_within(const ProgramMove *move) {
  Context *context = move->context;
  Expr *within = expr_bool(context, true);
  for (int d = 0; d < move->load->count; d++) {
    Expr *index = move->load->args[d];
    within = expr_and(context, within,
                      expr_binary(context, EXPR_LE, expr_int(context, index->type, 0), index));
    within = expr_and(context, within, expr_lt(context, index, source_of(move)->shape[d]));
  }
  int mark = analyzer_mark(move->analyzer);
  analyzer_assume(move->analyzer, within);
  bool enough = analyzer_prove(move->analyzer, move->inside);
  analyzer_reset(move->analyzer, mark);
  analyzer_assume(move->analyzer, move->inside);
  bool needed = analyzer_prove(move->analyzer, within);
  analyzer_reset(move->analyzer, mark);
  return enough && needed;
}

// ---- Operators that replace a call

typedef struct Raising {
  Context *context;
  GraphFunc *graph;
  int *at; // where operators are inserted
  const Node *call;
} Raising;

static Node *operator_new(const Raising *r, const char *op, Value *input) {
  return node_new(r->context, NODE_OP, op, r->call->outputs[0]->name, &input, 1, 1);
}

static Value *insert(const Raising *r, Node *node) {
  GraphFunc *graph = r->graph;
  node->pos = r->call->pos;
  node->block = r->call->block;
  if (!op_infer(r->context, node)) return NULL;
  array_push(&r->context->arena, &graph->nodes, node);
  for (int i = graph->nodes.count - 1; i > *r->at; i--)
    graph->nodes.items[i] = graph->nodes.items[i - 1];
  graph->nodes.items[(*r->at)++] = node;
  return node->outputs[0];
}

static Value *insert_pad(const Raising *r, const int64_t *widths, int rank, Expr *value) {
  Node *node = operator_new(r, "pad", r->call->inputs[0]);
  node_set_ints(r->context, node, "pad_width", widths, 2 * rank);
  node->attrs =
      attrs_with(&r->context->arena, node->attrs, str_intern(r->context, "pad_value"), value);
  return insert(r, node);
}

// The shift of each axis when the move reads the element at its own index plus a constant.
static bool read_shift(const ProgramMove *move, int64_t *shift) {
  if (move->load->count != move->stage->axis_count) return false;
  for (int d = 0; d < move->load->count; d++) {
    Expr *rest = expr_sub(move->context, move->load->args[d], move->stage->axes[d].var);
    if (!expr_as_int(analyzer_simplify(move->analyzer, rest), &shift[d])) return false;
  }
  return true;
}

static Value *raise_pad(const Raising *r, const ProgramMove *move, const int64_t *shift) {
  int64_t widths[2 * TE_MAX_RANK];
  int rank = move->load->count;
  if (!inside_is_within(move)) return NULL;
  for (int d = 0; d < rank; d++) {
    int64_t out = 0, in = 0;
    expr_as_int(move->stage->output->shape[d], &out);
    expr_as_int(source_of(move)->shape[d], &in);
    widths[2 * d] = -shift[d];
    widths[2 * d + 1] = out - in + shift[d];
    if (widths[2 * d] < 0 || widths[2 * d + 1] < 0) return NULL;
  }
  return insert_pad(r, widths, rank, move->other);
}

static Value *raise_crop(const Raising *r, const ProgramMove *move, const int64_t *shift) {
  int64_t sizes[TE_MAX_RANK];
  int rank = move->load->count;
  bool whole = true;
  for (int d = 0; d < rank; d++) {
    int64_t in = 0;
    expr_as_int(move->stage->output->shape[d], &sizes[d]);
    expr_as_int(source_of(move)->shape[d], &in);
    if (shift[d] < 0 || shift[d] + sizes[d] > in) return NULL;
    whole &= sizes[d] == in;
  }
  if (whole) return r->call->inputs[0]; // a copy
  Node *node = operator_new(r, "crop", r->call->inputs[0]);
  node_set_ints(r->context, node, "start_indices", shift, rank);
  node_set_ints(r->context, node, "slice_sizes", sizes, rank);
  return insert(r, node);
}

// The layout that the indices of the load are on the shape of the result: its inverse is the index
// map of the rewrite. NULL where the indices are no layout.
static const Layout *indices_layout(const ProgramMove *move) {
  Context *context = move->context;
  const TeStage *stage = move->stage;
  Expr *vars[TE_MAX_RANK];
  int64_t shape[TE_MAX_RANK];
  for (int i = 0; i < stage->axis_count; i++) vars[i] = stage->axes[i].var;
  if (!buffer_static_shape(stage->output, shape)) return NULL;
  const IndexMap *map = index_map_from_exprs(context, vars, stage->axis_count, move->load->args,
                                             move->load->count, false);
  int diags = context->diags.count, errors = context->error_count;
  const Layout *layout = map ? layout_static(context, map, shape, (SourcePos){0}) : NULL;
  diag_forget(context, diags, errors);
  return layout;
}

static bool is_bijective(Context *context, const Layout *layout) {
  return layout && layout_is_bijective(context, layout).verdict == VERDICT_YES;
}

// Pads the source at the end of its axes to the extents that the layout takes.
static Value *padded_source(const Raising *r, const ProgramMove *move, const Layout *layout) {
  int64_t widths[2 * TE_MAX_RANK] = {0};
  bool grows = false;
  for (int d = 0; d < layout->physical_rank; d++) {
    int64_t in = 0;
    expr_as_int(source_of(move)->shape[d], &in);
    widths[2 * d + 1] = layout->physical_extents[d] - in;
    if (widths[2 * d + 1] < 0) return NULL;
    grows |= widths[2 * d + 1] > 0;
  }
  if (grows != (move->inside != NULL) || (grows && !inside_is_within(move))) return NULL;
  if (!grows) return r->call->inputs[0];
  return insert_pad(r, widths, layout->physical_rank, move->other);
}

// The transform states the separators of the program's buffers.
static void keep_separators(const Raising *r, Node *node, const char *key, const Buffer *buffer) {
  int64_t separators[TE_MAX_RANK];
  for (int i = 0; i < buffer->separator_count; i++) separators[i] = buffer->separators[i];
  if (buffer->separator_count)
    node_set_ints(r->context, node, key, separators, buffer->separator_count);
}

static Value *insert_transform(const Raising *r, Value *source, const Layout *layout) {
  Node *node = operator_new(r, "layout_transform", source);
  node_set_string(r->context, node, "index_map",
                  index_map_lambda(r->context, layout_short_map(r->context, layout)));
  keep_separators(r, node, "axis_separators", r->call->callee->buffers[1]);
  keep_separators(r, node, "input_axis_separators", r->call->callee->buffers[0]);
  return insert(r, node);
}

// The result is the beginning of what the inverse gives on the whole source:
//   out[c] = x[c // 4, c % 4] for 6 channels of 8  =>  crop(layout_transform(x)).
static Value *raise_part(const Raising *r, const ProgramMove *move, const LayoutInverse *inverse) {
  int64_t shape[TE_MAX_RANK], sizes[TE_MAX_RANK];
  const Buffer *source = source_of(move), *result = move->stage->output;
  if (move->inside || !buffer_static_shape(source, shape)) return NULL;
  const Layout *whole = layout_static(r->context, inverse->map, shape, (SourcePos){0});
  if (!is_bijective(r->context, whole) || whole->physical_rank != result->rank ||
      !buffer_static_shape(result, sizes))
    return NULL;
  for (int i = 0; i < result->rank; i++)
    if (whole->physical_extents[i] < sizes[i]) return NULL;
  Value *value = insert_transform(r, r->call->inputs[0], whole);
  if (!value) return NULL;
  Node *crop = operator_new(r, "crop", value);
  node_set_ints(r->context, crop, "start_indices", (int64_t[TE_MAX_RANK]){0}, result->rank);
  node_set_ints(r->context, crop, "slice_sizes", sizes, result->rank);
  return insert(r, crop);
}

static Value *raise_transform(const Raising *r, const ProgramMove *move) {
  Context *context = r->context;
  const Layout *layout = indices_layout(move);
  LayoutInverse inverse;
  if (!layout || layout_inverse(context, layout, &inverse).verdict != VERDICT_YES) return NULL;
  if (!is_bijective(context, layout)) return raise_part(r, move, &inverse);
  const Layout *back =
      layout_static(context, inverse.map, layout->physical_extents, (SourcePos){0});
  for (int i = 0; back && i < back->physical_rank; i++)
    if (back->physical_extents[i] != layout->extents[i]) return NULL; // a reader sees another shape
  Value *source = back ? padded_source(r, move, layout) : NULL;
  if (!source) return NULL;
  return insert_transform(r, source, back);
}

static Value *raise(const Raising *r, const ProgramMove *move) {
  int64_t shift[TE_MAX_RANK], shape[TE_MAX_RANK];
  if (!buffer_static_shape(source_of(move), shape)) return NULL;
  bool shifts = read_shift(move, shift);
  Value *value = NULL;
  if (shifts && move->inside) value = raise_pad(r, move, shift);
  if (shifts && !move->inside) value = raise_crop(r, move, shift);
  return value ? value : raise_transform(r, move);
}

bool graph_raises(Context *context, const Node *call) {
  GraphFunc *graph = graph_func_new(context, "rewrite");
  ProgramMove move;
  int at = 0;
  Raising r = {context, graph, &at, call};
  return read_move(context, call, &move) && raise(&r, &move);
}

bool graph_raise_rewrites(PassRun *run) {
  Context *context = run->context;
  GraphFunc *graph = run->graph;
  for (int i = 0; i < graph->nodes.count; i++) {
    const Node *node = graph->nodes.items[i];
    ProgramMove move;
    if (!read_move(context, node, &move)) continue;
    Raising r = {context, graph, &i, node};
    Value *value = raise(&r, &move);
    if (!value) continue;
    value->name = node->outputs[0]->name;
    graph_replace_value(graph, node->outputs[0], value);
  }
  graph_remove_unused(context, graph);
  return context->error_count == 0;
}
