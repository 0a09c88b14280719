// SPDX-License-Identifier: Apache-2.0
// Matches the layouts of a stage's tensors through its relations (relations.h). Stages of equal
// shapes that read in the same way share one relation, with what was computed for it.
#include "plan/internal.h"

// ---- The relations of all stages

static const char *relation_text(Context *context, const ReadRelation *r) {
  Text text = text_new(&context->scratch);
  text_printf(&text, "%u %u %u:", r->read->id, r->write->id, r->loose);
  for (int i = 0; i < r->rank; i++)
    text_printf(&text, " %lld/%lld", (long long)r->box[i], (long long)r->write_shape[i]);
  for (int i = 0; i < r->read_rank; i++) text_printf(&text, " %lld", (long long)r->read_shape[i]);
  return text_string(&text);
}

static PlanRelation *shared_relation(Planner *p, const ReadRelation *relation) {
  Context *context = p->context;
  Str key = str_intern(context, relation_text(context, relation));
  PlanRelation *found = map_find(p->shared_relations, key);
  if (found) return found;
  found = arena_new(&context->arena, PlanRelation);
  Map empty = map_new(&context->arena);
  *found = (PlanRelation){*relation, empty, empty, empty, empty};
  map_put(p->shared_relations, key, found);
  return found;
}

void planner_find_relations(Planner *p) {
  Context *context = p->context;
  int count = p->stages->stages.count;
  p->shared_relations = arena_new(&context->arena, Map);
  *p->shared_relations = map_new(&context->arena);
  p->relations = arena_array(&context->arena, PlanRelation **, count);
  for (int i = 0; i < count; i++) {
    const Stage *stage = p->stages->stages.items[i];
    p->relations[i] = arena_array(&context->arena, PlanRelation *, stage->reads.count);
    for (int k = 0; k < stage->reads.count && !stage->member_count; k++) {
      const StageTensor *tensor = stage->reads.items[k];
      ArenaMark mark = arena_mark(&context->scratch);
      ReadRelation *relation = tensor->data ? NULL : relation_of(context, stage, tensor);
      p->relations[i][k] = relation ? shared_relation(p, relation) : NULL;
      arena_reset(&context->scratch, mark);
    }
  }
}

// ---- Walks, computed once for each relation and layout

static const LayoutWalk no_walk;

typedef bool WalkFunction(Context *context, const ReadRelation *relation, const Layout *layout,
                          LayoutWalk *out);

static const LayoutWalk *walk_once(const Planner *p, Map *known, WalkFunction *walk_of,
                                   const ReadRelation *relation, const Layout *layout) {
  uint64_t key = map_key(layout) + 1;
  const LayoutWalk *walk = map_get(known, key);
  if (!walk) {
    LayoutWalk found;
    walk = walk_of(p->context, relation, layout, &found)
               ? arena_copy(&p->context->arena, &found, sizeof found)
               : &no_walk;
    map_set(known, key, (void *)walk);
  }
  return walk == &no_walk ? NULL : walk;
}

static bool transfer_forward(Context *context, const ReadRelation *relation, const Layout *layout,
                             LayoutWalk *out) {
  return relation_transfer(context, relation, true, layout, out);
}

static bool transfer_backward(Context *context, const ReadRelation *relation, const Layout *layout,
                              LayoutWalk *out) {
  return relation_transfer(context, relation, false, layout, out);
}

// ---- Candidates

// Axes have the same names in all layouts, so that equal maps are the same map. Their letters are
// added where a layout is printed (plan_layout_name).
const Layout *planner_layout_of_outputs(const Planner *p, const Buffer *buffer, int count,
                                        const LayoutExpr *const *outputs) {
  int64_t shape[TE_MAX_RANK];
  if (!buffer_static_shape(buffer, shape)) return NULL;
  const IndexMap *map =
      index_map_new(p->context, buffer->rank, NULL, count, outputs, NULL, NULL, 0);
  const Layout *layout = layout_static(p->context, map, shape, buffer->pos);
  return layout ? layout_with_padding(p->context, layout, (LayoutPadding){LAYOUT_PADDING_ANY, 0})
                : NULL;
}

static bool is_row_major(const LayoutWalk *walk, const int64_t *shape) {
  for (int i = 0; i < walk->count; i++)
    if (walk->digits[i].cut != 1 || walk->digits[i].extent != shape[walk->digits[i].axis] ||
        (i && walk->digits[i - 1].axis >= walk->digits[i].axis))
      return false;
  return true;
}

bool planner_candidate_of_walk(const Planner *p, const Buffer *buffer, const LayoutWalk *walk,
                               Candidate *out) {
  const LayoutExpr *outputs[WALK_MAX_DIGITS + TE_MAX_RANK];
  int64_t shape[TE_MAX_RANK];
  if (buffer->rank > TE_MAX_RANK || !buffer_static_shape(buffer, shape)) return false;
  int count = walk_outputs(p->context, walk, shape, buffer->rank, outputs);
  if (!count && buffer->rank) return false;
  *out = (Candidate){.walk = arena_copy(&p->context->arena, walk, sizeof *walk), .dense = true};
  if (is_row_major(walk, shape)) return true;
  out->layout = planner_layout_of_outputs(p, buffer, count, outputs);
  return out->layout != NULL;
}

bool planner_related(const Planner *p, const Stage *stage, int read, bool forward,
                     const Candidate *from, Candidate *out) {
  PlanRelation *r = p->relations[stage->index][read];
  const StageTensor *tensor = stage->reads.items[read];
  if (!r) return false;
  if (r->relation.same) {
    *out = *from;
    return true;
  }
  const LayoutWalk *walk =
      walk_once(p, forward ? &r->forward : &r->backward,
                forward ? transfer_forward : transfer_backward, &r->relation, from->layout);
  const Buffer *buffer = forward ? stage->output->buffer : tensor->buffer;
  if (!walk || !planner_candidate_of_walk(p, buffer, walk, out)) return false;
  out->panels = from->panels;
  out->requested = from->requested;
  return true;
}

bool planner_is_bijective(const Planner *p, const Stage *stage, int read) {
  const PlanRelation *r = p->relations[stage->index][read];
  return r && r->relation.bijective;
}

bool planner_is_in_place(const Planner *p, const Stage *stage, int read) {
  const PlanRelation *r = p->relations[stage->index][read];
  return r && r->relation.same;
}

bool planner_walks_alike(const Planner *p, const Stage *stage, int read, int number, int output) {
  PlanRelation *r = p->relations[stage->index][read];
  const StageTensor *tensor = stage->reads.items[read];
  const Layout *from = p->candidates[tensor->index].items[number].layout,
               *to = p->candidates[stage->output->index].items[output].layout;
  if (!r) return false;
  if (r->relation.same) return planner_same_layout(from, to);
  const LayoutWalk *a = walk_once(p, &r->read_walks, relation_read_walk, &r->relation, from);
  const LayoutWalk *b = walk_once(p, &r->write_walks, relation_write_walk, &r->relation, to);
  return a && b && walk_equal(a, b);
}

// The index within the output at which the domain of the relation begins or ends along an axis.
static int64_t end_within(const ReadRelation *r, int axis, int64_t block) {
  int64_t low = 0;
  layout_expr_value(r->write->outputs[axis], (int64_t[TE_MAX_RANK]){0}, NULL, 0, &low);
  return low % block ? low : low + r->box[axis];
}

int64_t planner_cut_block(const Planner *p, const Stage *stage, int read, int output, int64_t *at) {
  PlanRelation *r = p->relations[stage->index][read];
  const Candidate *candidate = &p->candidates[stage->output->index].items[output];
  if (!r || r->relation.same || !candidate->walk ||
      walk_once(p, &r->write_walks, relation_write_walk, &r->relation, candidate->layout))
    return 0;
  int64_t block = 1;
  *at = 0;
  for (int i = 0; i < candidate->walk->count; i++) {
    const WalkDigit *g = &candidate->walk->digits[i];
    if (g->cut != 1 || g->extent == r->relation.write_shape[g->axis]) continue;
    block = g->extent;
    *at = end_within(&r->relation, g->axis, block);
    if (*at % block) break;
  }
  return block;
}
