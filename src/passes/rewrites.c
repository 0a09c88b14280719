// SPDX-License-Identifier: Apache-2.0
// Reads nodes as layout rewrites, and makes nodes of layouts.
#include "passes/rewrites.h"

// ---- Layouts on shapes that may have symbols ---------------------------------------------------

const Layout *layout_on_shape(Context *context, const IndexMap *map, Expr *const *shape, int rank) {
  const LayoutExpr *extents[TE_MAX_RANK];
  if (!map || map->input_count != rank || map->replica_count || rank > TE_MAX_RANK) return NULL;
  for (int i = 0; i < rank; i++)
    if (!(extents[i] = layout_from_expr(context, shape[i], NULL, 0, true))) return NULL;
  int diags = context->diags.count, errors = context->error_count;
  const Layout *layout =
      layout_new(context, map, extents, NULL, (LayoutFacts){0}, (LayoutPadding){0}, (SourcePos){0});
  diag_forget(context, diags, errors);
  return layout;
}

bool layout_physical_shape(Context *context, const Layout *layout, Expr *const *shape, int rank,
                           Expr **physical) {
  Map symbols = map_new(&context->arena);
  for (int i = 0; i < rank; i++)
    if (shape[i]->op == EXPR_VAR) map_put(&symbols, shape[i]->as.var->name, shape[i]);
  for (int i = 0; i < layout->physical_rank; i++)
    if (!(physical[i] = expr_from_layout(context, layout->physical[i], NULL, 0, &symbols)))
      return false;
  return true;
}

// A shorter map may span less: c % 4 is c for 3 channels.
const IndexMap *layout_short_map(Context *context, const Layout *layout) {
  const IndexMap *map = layout_simplified(context, layout)->map;
  const Layout *derived =
      layout_new(context, map, layout->shape, NULL, layout->facts, layout->padding, (SourcePos){0});
  bool same = derived && derived->physical_rank == layout->physical_rank;
  for (int i = 0; same && i < layout->physical_rank; i++)
    same = derived->physical[i] == layout->physical[i];
  return same ? map : layout->map;
}

bool layout_pads(Context *context, const Layout *layout) {
  return layout_is_onto(context, layout).verdict != VERDICT_YES;
}

bool layout_changes_nothing(Context *context, const Layout *layout) {
  if (layout->rank != layout->physical_rank) return false;
  for (int i = 0; i < layout->rank; i++)
    if (layout->physical[i] != layout->shape[i]) return false;
  return layout_is_identity(context, layout).verdict == VERDICT_YES;
}

// ---- Reading -----------------------------------------------------------------------------------

static bool read_transform(Context *context, const Node *node, Rewrite *rewrite) {
  const Value *x = node->inputs[0];
  LayoutSource source = layout_source(node_string(node, "index_map", ""), x->rank);
  const Layout *layout =
      layout_on_shape(context, index_map_parse(context, &source), x->shape, x->rank);
  if (!layout) return false;
  *rewrite = (Rewrite){layout, layout_pads(context, layout), node_float(node, "pad_value", 0)};
  return true;
}

static const Expr *load_of_move(const TeStage *stage) {
  const Expr *value = stage->value;
  bool chooses = value->op == EXPR_IF_THEN_ELSE || value->op == EXPR_SELECT;
  if (chooses) value = value->args[1];
  return !stage->init && !stage->ordered && value->op == EXPR_LOAD ? value : NULL;
}

static Expr *inline_stage(Rewriter *rewriter, Expr *e) {
  const TeStage *stage = rewriter->env;
  Context *context = rewriter->context;
  Map axes = map_new(&context->arena);
  if (e->op != EXPR_LOAD || e->as.buffer != stage->output) return e;
  for (int i = 0; i < stage->axis_count; i++) map_put(&axes, stage->axes[i].var, e->args[i]);
  return substitute_expr(context, stage->value, &axes);
}

const TeStage *move_of_stages(Context *context, const Te *te) {
  int last = te->stages.count - 1;
  if (last < 0 || te->outputs.count != 1) return NULL;
  TeStage *move = arena_copy(&context->arena, te->stages.items[last], sizeof *move);
  for (int i = last; i > 0; i--) {
    const TeStage *before = te->stages.items[i - 1];
    const Expr *load = load_of_move(move);
    if (!load || !load_of_move(before) || load->as.buffer != before->output) return NULL;
    Rewriter rewriter = {.context = context, .env = (void *)before, .expr = inline_stage};
    move->value = rewrite_expr(&rewriter, move->value);
  }
  return load_of_move(move) && move->output == te->outputs.items[0] ? move : NULL;
}

bool stages_only_move(const Te *te) {
  for (int i = 0; i < te->stages.count; i++)
    if (!load_of_move(te->stages.items[i])) return false;
  return te->stages.count > 0;
}

// The stage that the node is, which moves elements of the tensor `*input`. NULL: it is none.
static const TeStage *only_move(Context *context, const Node *node, Buffer **input) {
  const Value *x = node->inputs[0];
  Te *te = te_new(context);
  *input = te_input(te, x->name, x->type, x->shape, x->rank);
  bool read = false;
  if (node->kind == NODE_OP) read = op_define(context, te, node, input);
  const PrimFunc *func = node->kind == NODE_CALL_TIR ? call_prim_func(context, node) : NULL;
  if (func) read = program_read_stages(te, func, input, 1, NULL);
  return read ? move_of_stages(context, te) : NULL;
}

// The layout of the source whose inverse are the indices of the load.
static const Layout *layout_of_load(Context *context, const TeStage *stage) {
  Expr *vars[TE_MAX_RANK];
  const Expr *load = stage->value;
  LayoutInverse inverse;
  for (int i = 0; i < stage->axis_count; i++) vars[i] = stage->axes[i].var;
  const IndexMap *map =
      index_map_from_exprs(context, vars, stage->axis_count, load->args, load->count, true);
  const Layout *read = layout_on_shape(context, map, stage->output->shape, stage->axis_count);
  if (!read || layout_inverse(context, read, &inverse).verdict != VERDICT_YES) return NULL;
  const Layout *layout =
      layout_on_shape(context, inverse.map, load->as.buffer->shape, load->as.buffer->rank);
  // A layout that is not one to one is that of a reader which takes a part of the source.
  if (!layout || layout_is_bijective(context, layout).verdict != VERDICT_YES) return NULL;
  for (int i = 0; i < layout->physical_rank; i++)
    if (layout->physical[i] != read->shape[i]) return NULL; // a reader sees another shape
  return layout_simplified(context, layout);
}

bool node_rewrite(Context *context, const Node *node, Rewrite *rewrite) {
  bool calls = node && (node->kind == NODE_OP || node->kind == NODE_CALL_TIR);
  if (!calls || node->input_count != 1 || !node->inputs[0] || node->output_count != 1 ||
      !node_is_known(node))
    return false;
  if (node->kind == NODE_OP && strcmp(node->op, "layout_transform") == 0)
    return read_transform(context, node, rewrite);
  Buffer *input;
  const TeStage *stage = only_move(context, node, &input);
  if (!stage || stage->value->op != EXPR_LOAD || stage->value->as.buffer != input) return false;
  *rewrite = (Rewrite){.layout = layout_of_load(context, stage)};
  return rewrite->layout != NULL;
}

const AxisSeparators *separators_new(Context *context, AxisSeparators separators) {
  if (!separators.count && !separators.input_count) return NULL;
  return arena_copy(&context->arena, &separators, sizeof separators);
}

const Layout *rewrite_inverse(Context *context, const Node *node) {
  Rewrite rewrite;
  LayoutInverse inverse;
  if (!node_rewrite(context, node, &rewrite) || rewrite.pads) return NULL;
  if (layout_inverse(context, rewrite.layout, &inverse).verdict != VERDICT_YES) return NULL;
  return layout_on_shape(context, inverse.map, node->outputs[0]->shape, node->outputs[0]->rank);
}

// ---- Making ------------------------------------------------------------------------------------

Value *insert_node(Insertion *insertion, Node *node) {
  GraphFunc *graph = insertion->graph;
  Context *context = insertion->context;
  node->pos = insertion->like->pos;
  node->block = insertion->like->block;
  if (node->kind == NODE_OP && !op_infer(context, node)) return NULL;
  array_push(&context->arena, &graph->nodes, node);
  for (int i = graph->nodes.count - 1; i > insertion->at; i--)
    graph->nodes.items[i] = graph->nodes.items[i - 1];
  graph->nodes.items[insertion->at++] = node;
  return node->outputs[0];
}

bool map_is_permutation(const IndexMap *map, int64_t *axes) {
  uint64_t seen = 0;
  if (map->input_count != map->output_count || map->separator_count) return false;
  for (int i = 0; i < map->output_count; i++) {
    const LayoutExpr *e = map->outputs[i];
    if (e->op != LAYOUT_AXIS || seen >> e->value & 1) return false;
    seen |= UINT64_C(1) << e->value;
    axes[i] = e->value;
  }
  return true;
}

static Node *operator_new(Context *context, const char *op, Value *input) {
  return node_new(context, NODE_OP, op, input->name, &input, 1, 1);
}

Node *rewrite_node_new(Context *context, Value *value, const Rewrite *rewrite) {
  int64_t axes[TE_MAX_RANK];
  const IndexMap *map = rewrite->layout->map;
  if (!map_is_permutation(map, axes)) map = layout_short_map(context, rewrite->layout);
  const AxisSeparators *separators = rewrite->separators;
  if (!separators && map_is_permutation(map, axes)) {
    Node *node = operator_new(context, "permute_dims", value);
    node_set_ints(context, node, "axes", axes, map->output_count);
    return node;
  }
  Node *node = operator_new(context, "layout_transform", value);
  node_set_string(context, node, "index_map", index_map_lambda(context, map));
  if (rewrite->pads) node_set_float(context, node, "pad_value", rewrite->pad_value);
  if (separators && separators->count)
    node_set_ints(context, node, "axis_separators", separators->result, separators->count);
  if (separators && separators->input_count)
    node_set_ints(context, node, "input_axis_separators", separators->input,
                  separators->input_count);
  return node;
}

Value *insert_rewrite(Insertion *insertion, Value *value, const Rewrite *rewrite) {
  Context *context = insertion->context;
  if (layout_changes_nothing(context, rewrite->layout)) return value;
  return insert_node(insertion, rewrite_node_new(context, value, rewrite));
}

// How a tensor is given back from a layout: a crop to the part of the memory that the layout fills,
// its inverse there, and a crop of the padding that the inverse moves behind the elements.
typedef struct GivingBack {
  const Layout *inverse;
  const int64_t *filled; // NULL: all of the memory
  bool crops;
} GivingBack;

static bool is_static(const Layout *layout) {
  return layout->is_static && layout->rank <= TE_MAX_RANK && layout->physical_rank <= TE_MAX_RANK;
}

static const Layout *bijective_inverse(Context *context, const Layout *layout, Expr *const *shape) {
  LayoutInverse inverse;
  if (layout_inverse(context, layout, &inverse).verdict != VERDICT_YES) return NULL;
  const Layout *back = layout_on_shape(context, inverse.map, shape, layout->physical_rank);
  return back && layout_is_bijective(context, back).verdict == VERDICT_YES ? back : NULL;
}

static bool gives_shape(const Layout *inverse, const Layout *layout) {
  bool same = true;
  for (int i = 0; i < layout->rank; i++) same &= inverse->physical[i] == layout->shape[i];
  return same;
}

// The inverse of a layout that pads an axis of one element, as n, c -> n, c // 4, c % 4 does for
// one channel, is not one to one on the whole memory, but is on the part that is filled.
static bool gives_back_filled(Context *context, const Layout *layout, GivingBack *out) {
  Expr *shape[TE_MAX_RANK];
  if (!is_static(layout)) return false;
  const Layout *filled = layout_static(context, layout_simplified(context, layout)->map,
                                       layout->extents, (SourcePos){0});
  if (!filled || filled->physical_rank != layout->physical_rank) return false;
  for (int i = 0; i < filled->physical_rank; i++)
    shape[i] = expr_index(context, filled->physical_extents[i]);
  *out = (GivingBack){bijective_inverse(context, filled, shape), filled->physical_extents};
  return out->inverse && gives_shape(out->inverse, layout);
}

static bool gives_back(Context *context, const Layout *layout, Expr *const *stored_shape,
                       GivingBack *out) {
  *out = (GivingBack){bijective_inverse(context, layout, stored_shape)};
  if (!out->inverse) return gives_back_filled(context, layout, out);
  out->crops = !gives_shape(out->inverse, layout);
  return !out->crops || (is_static(out->inverse) && is_static(layout));
}

bool layout_gives_back(Context *context, const Layout *layout, Expr *const *shape, int rank) {
  Expr *stored[TE_MAX_RANK];
  GivingBack way;
  return layout->physical_rank <= TE_MAX_RANK &&
         layout_physical_shape(context, layout, shape, rank, stored) &&
         gives_back(context, layout, stored, &way);
}

static Value *insert_crop(Insertion *insertion, Value *value, const int64_t *sizes, int rank) {
  Node *node = operator_new(insertion->context, "crop", value);
  node_set_ints(insertion->context, node, "start_indices", (int64_t[TE_MAX_RANK]){0}, rank);
  node_set_ints(insertion->context, node, "slice_sizes", sizes, rank);
  return insert_node(insertion, node);
}

Value *insert_inverse(Insertion *insertion, Value *stored, const Layout *layout,
                      const AxisSeparators *separators) {
  GivingBack way;
  if (!gives_back(insertion->context, layout, stored->shape, &way)) return NULL;
  if (way.filled) stored = insert_crop(insertion, stored, way.filled, layout->physical_rank);
  const Rewrite back = {.layout = way.inverse, .separators = separators};
  Value *whole = stored ? insert_rewrite(insertion, stored, &back) : NULL;
  if (!way.crops || !whole) return whole;
  return insert_crop(insertion, whole, layout->extents, layout->rank);
}
