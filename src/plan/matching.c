// SPDX-License-Identifier: Apache-2.0
// Matches the layouts of a stage's tensors through its relations (relations.h). Stages of equal
// shapes that read in the same way share one relation, with what was computed for it.
#include "plan/internal.h"

// ---- The relations of all stages

static bool same_extents(const int64_t *a, const int64_t *b, int count) {
  return memcmp(a, b, sizeof *a * (size_t)count) == 0;
}

static bool same_relation(const ReadRelation *a, const ReadRelation *b) {
  return a->read == b->read && a->write == b->write && a->loose == b->loose && a->rank == b->rank &&
         a->read_rank == b->read_rank && same_extents(a->box, b->box, a->rank) &&
         same_extents(a->write_shape, b->write_shape, a->rank) &&
         same_extents(a->read_shape, b->read_shape, a->read_rank);
}

static uint64_t hash_extents(uint64_t hash, const int64_t *extents, int count) {
  for (int i = 0; i < count; i++) hash = hash_mix(hash, (uint64_t)extents[i]);
  return hash;
}

static uint64_t relation_hash(const ReadRelation *r) {
  uint64_t hash = hash_mix(hash_mix(r->read->id, r->write->id), r->loose);
  hash = hash_extents(hash, r->box, r->rank);
  hash = hash_extents(hash, r->write_shape, r->rank);
  return hash_extents(hash, r->read_shape, r->read_rank);
}

static PlanRelation *shared_relation(const Planner *p, const ReadRelation *relation) {
  Context *context = p->context;
  uint64_t key = relation_hash(relation);
  PlanRelation *first = map_get(p->shared_relations, key), *found = first;
  while (found && !same_relation(&found->relation, relation)) found = found->next;
  if (found) return found;
  found = arena_new(&context->arena, PlanRelation);
  Map empty = map_new(&context->arena);
  *found = (PlanRelation){*relation, empty, empty, empty, empty, first};
  map_set(p->shared_relations, key, found);
  return found;
}

PlanRelation *planner_find_relation(Planner *p, const Stage *stage, const StageTensor *tensor) {
  ArenaMark mark = arena_mark(&p->context->scratch);
  ReadRelation *relation = tensor->data ? NULL : relation_of(p->context, stage, tensor);
  PlanRelation *found = relation ? shared_relation(p, relation) : NULL;
  arena_reset(&p->context->scratch, mark);
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
    if (p->kinds[i] != stage) {
      p->relations[i] = p->relations[p->kinds[i]->index];
      continue;
    }
    if (stage->member_count) stage = stage_of_group_value(p->stages, stage);
    p->relations[i] = arena_array(&context->arena, PlanRelation *, stage->reads.count);
    for (int k = 0; k < stage->reads.count; k++)
      p->relations[i][k] = planner_find_relation(p, stage, stage->reads.items[k]);
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
    walk = walk_of(p->context, relation, layout, &found) ? walk_keep(p->context, &found) : &no_walk;
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

PlanShape *planner_shape(const Planner *p, const Buffer *buffer) {
  int64_t shape[TE_MAX_RANK + 1] = {buffer->rank};
  if (buffer->rank > TE_MAX_RANK || !buffer_static_shape(buffer, shape + 1)) return NULL;
  Digest digest = digest_of(shape, sizeof *shape * (size_t)(buffer->rank + 1));
  PlanShape *known = map_get(p->shapes, digest.words[0]);
  if (known && digest_equal(known->of, digest)) return known;
  Map empty = map_new(&p->context->arena);
  known = arena_new(&p->context->arena, PlanShape);
  *known = (PlanShape){digest, empty, empty, empty};
  map_set(p->shapes, digest.words[0], known);
  return known;
}

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

static bool candidate_of_walk(const Planner *p, const Buffer *buffer, const LayoutWalk *walk,
                              Candidate *out) {
  const LayoutExpr *outputs[WALK_MAX_DIGITS + TE_MAX_RANK];
  int64_t shape[TE_MAX_RANK];
  if (!buffer_static_shape(buffer, shape)) return false;
  int count = walk_outputs(p->context, walk, shape, buffer->rank, outputs);
  if (!count && buffer->rank) return false;
  *out = (Candidate){.walk = walk, .dense = true};
  if (is_row_major(walk, shape)) return true;
  out->layout = planner_layout_of_outputs(p, buffer, count, outputs);
  return out->layout != NULL;
}

static uint64_t walk_hash(const LayoutWalk *walk) {
  uint64_t hash = (uint64_t)walk->count;
  for (int i = 0; i < walk->count; i++) {
    const WalkDigit *digit = &walk->digits[i];
    hash = hash_mix(hash_mix(hash, (uint64_t)digit->axis), (uint64_t)digit->cut);
    hash = hash_mix(hash, (uint64_t)digit->extent);
  }
  return hash;
}

bool planner_candidate_of_walk(const Planner *p, const Buffer *buffer, const LayoutWalk *walk,
                               Candidate *out) {
  PlanShape *shape = planner_shape(p, buffer);
  if (!shape) return false;
  uint64_t key = walk_hash(walk);
  WalkCandidate *first = map_get(&shape->walks, key), *known = first;
  while (known && !walk_equal(known->walk, walk)) known = known->next;
  if (!known) {
    known = arena_new(&p->context->arena, WalkCandidate);
    *known = (WalkCandidate){.walk = walk_keep(p->context, walk), .next = first};
    known->made = candidate_of_walk(p, buffer, known->walk, &known->candidate);
    map_set(&shape->walks, key, known);
  }
  *out = known->candidate;
  return known->made;
}

bool planner_related(const Planner *p, const Stage *stage, int read, bool forward,
                     const Candidate *from, Candidate *out) {
  PlanRelation *r = planner_relation(p, stage, read);
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
  const PlanRelation *r = planner_relation(p, stage, read);
  return r && r->relation.bijective;
}

bool planner_is_in_place(const Planner *p, const Stage *stage, int read) {
  const PlanRelation *r = planner_relation(p, stage, read);
  return r && r->relation.same;
}

bool planner_walks_alike(const Planner *p, const Stage *stage, int read, int number, int output) {
  PlanRelation *r = planner_relation(p, stage, read);
  const StageTensor *tensor = stage->reads.items[read];
  const Layout *from = p->candidates[tensor->index].items[number].layout,
               *to = p->candidates[stage->output->index].items[output].layout;
  if (!r) return false;
  if (r->relation.same) return planner_same_layout(from, to);
  const LayoutWalk *a = walk_once(p, &r->read_walks, relation_read_walk, &r->relation, from);
  const LayoutWalk *b = walk_once(p, &r->write_walks, relation_write_walk, &r->relation, to);
  return a && b && walk_equal(a, b);
}

// The cycles of loading the elements of each piece of the stage's output that is a load of the
// tensor; PLAN_NEVER where it is not known how a piece loads them.
static double pieces_apart(const Planner *p, const Stage *stage, const StageTensor *tensor,
                           const Layout *from, const Layout *to) {
  const StagePieces *pieces = p->pieces[stage->index];
  double cycles = pieces ? 0 : PLAN_NEVER;
  for (int i = 0; pieces && i < pieces->count && cycles < PLAN_NEVER; i++) {
    const StagePiece *piece = &pieces->items[i];
    double elements = 1;
    if (piece->computes || (piece->tensor && !piece->relation)) return PLAN_NEVER;
    if (piece->tensor != tensor) continue;
    PlanRelation *r = shared_relation(p, piece->relation);
    for (int a = 0; a < r->relation.rank; a++) elements *= (double)r->relation.box[a];
    cycles +=
        planner_apart_cost(p, walk_once(p, &r->read_walks, relation_read_walk, &r->relation, from),
                           walk_once(p, &r->write_walks, relation_write_walk, &r->relation, to),
                           elements, dtype_bytes(tensor->buffer->type), true);
  }
  return cycles;
}

double planner_permute_cost(const Planner *p, const Stage *stage, int read, int number,
                            int output) {
  PlanRelation *r = planner_relation(p, stage, read);
  const StageTensor *tensor = stage->reads.items[read];
  const Candidate *from = &p->candidates[tensor->index].items[number],
                  *to = &p->candidates[stage->output->index].items[output];
  bool tiles = !stage->member_count;
  int64_t element = dtype_bytes(tensor->buffer->type);
  double elements = to->bytes / dtype_bytes(stage->output->buffer->type);
  double apart = r && !r->relation.loose ? PLAN_NEVER
                                         : pieces_apart(p, stage, tensor, from->layout, to->layout);
  if (apart < PLAN_NEVER) return apart;
  if (!r) return planner_apart_cost(p, NULL, NULL, elements, element, tiles);
  if (r->relation.same)
    return planner_apart_cost(p, from->walk, to->walk, elements, element, tiles);
  const LayoutWalk *a =
      walk_once(p, &r->read_walks, relation_read_walk, &r->relation, from->layout);
  const LayoutWalk *b =
      walk_once(p, &r->write_walks, relation_write_walk, &r->relation, to->layout);
  return planner_apart_cost(p, a, b, elements, element, tiles);
}

// The index within the output at which the domain of the relation begins or ends along an axis.
static int64_t end_within(const ReadRelation *r, int axis, int64_t block) {
  int64_t low = 0;
  layout_expr_value(r->write->outputs[axis], (int64_t[TE_MAX_RANK]){0}, NULL, 0, &low);
  return low % block ? low : low + r->box[axis];
}

int64_t planner_cut_block(const Planner *p, const Stage *stage, int read, int output, int64_t *at) {
  PlanRelation *r = planner_relation(p, stage, read);
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
