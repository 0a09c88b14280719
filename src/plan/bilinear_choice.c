// SPDX-License-Identifier: Apache-2.0
// Finds bilinear algorithms for window products, which the planner can take in their place. For
// each of them, algorithms of several sizes are made into stages (graph/window_products.h) and
// compared by the same costs as layouts: the cycles of the product in the layouts that suit it, the
// operations of the transforms, and the bytes that they move. Weights come from main memory,
// because other weights pass through the caches from one run to the next; the transformed ones are
// larger. The rounding errors of the cheapest are measured on sums as long as those of the stage,
// and the next one is taken when they are too large.
#include "graph/bilinear_errors.h"
#include "graph/window_products.h"
#include "plan/internal.h"

#include <stdlib.h>

enum { MOST_TRANSFORMED = 2, MOST_OUTPUTS = 6 };
static const double DEFAULT_GROWTH = 4; // of errors, relative to the direct sum

typedef struct KnownErrors {
  int64_t channels;
  int count;
  int64_t outputs[MOST_TRANSFORMED], taps[MOST_TRANSFORMED];
  BilinearErrors errors;
} KnownErrors;

typedef struct KnownAlgorithm {
  bool searched, exists;
  BilinearAlgorithm algorithm;
} KnownAlgorithm;

// The choice for all stages whose loops are equal and that read their weights alike.
typedef struct KnownChoice {
  const Stage *kind; // the first of these stages
  int weight;        // entry of its reads
  int outputs;       // of the algorithm; 0: none is used
  double direct, cycles;
} KnownChoice;

typedef struct Choosing {
  Planner planner; // for nests and layouts only
  const PlanOptions *options;
  Array(KnownErrors) known;
  Array(KnownChoice) choices;
  Map kinds; // by stage: the first stage whose loops are equal
  KnownAlgorithm algorithms[MOST_OUTPUTS + 1][WINDOW_MOST_TAPS + 1]; // by outputs and taps
  PlanBilinears uses;
} Choosing;

typedef struct BilinearVariant {
  WindowProduct product;
  BilinearStages stages;
  PlanBilinear use;
} BilinearVariant;

// ---- Costs

static double bytes_of(const Buffer *buffer) {
  return nest_buffer_bytes(buffer);
}

static double moved(const Choosing *c, double read, double written) {
  return planner_move_cost(&c->planner, read, written);
}

// The layout of a read whose first axis of the reduction is innermost, in blocks of vectors.
static const Layout *layout_for(const Choosing *c, const Nest *nest, const NestRead *read) {
  int d = nest_dimension_of(nest, read, nest->spatial_count);
  int lanes = machine_lanes(c->planner.machine, read->buffer->type);
  return d < 0 ? NULL : planner_inner_axis(&c->planner, read->buffer, d, lanes);
}

// The cycles of a sum of products with weights that are packed, in the layouts that suit it;
// negative when it has no tiles. Does not count what it writes.
static double product_cycles(Choosing *c, TeStage *te, const Buffer *weights) {
  Stage *stage = arena_new(&c->planner.context->arena, Stage);
  stage->te = te;
  const Nest *nest = planner_nest(&c->planner, stage);
  double best = -1;
  for (int d = 0; nest && d < nest->output->rank; d++) {
    NestLayouts layouts = {0};
    int axis = nest->output_axis[d], lanes = machine_lanes(c->planner.machine, te->output->type);
    bool filters = axis >= 0;
    for (int i = 0; i < nest->read_count && filters; i++) {
      const NestRead *read = &nest->reads[i];
      layouts.packed[i] = read->buffer == weights;
      filters = layouts.packed[i] == nest_depends(read, axis);
      if (!layouts.packed[i]) layouts.reads[i] = layout_for(c, nest, read);
    }
    if (!filters) continue;
    layouts.output = planner_inner_axis(&c->planner, nest->output, d, lanes);
    const Strategies *found = strategies_of(c->planner.context, c->planner.machine, nest, &layouts);
    if (!strategies_tile(found) || (best >= 0 && found->items[0].cost >= best)) continue;
    best = found->items[0].cost;
  }
  if (best < 0) return best;
  double memory = memory_cycles(c->planner.machine, bytes_of(weights), MEMORY_MAIN, MEMORY_READ);
  return overlapped_cycles(c->planner.machine, best, memory);
}

static double variant_cycles(Choosing *c, const BilinearVariant *v) {
  const BilinearStages *stages = &v->stages;
  const CostModel *costs = cost_model_of(c->planner.machine);
  double data = bytes_of(stages->data->output), products = bytes_of(stages->products->output);
  double outputs = bytes_of(stages->outputs->output);
  double cycles = product_cycles(c, stages->products, stages->weights->output);
  if (cycles < 0) return PLAN_NEVER;
  cycles += moved(c, 0, products) + 2 * costs->call_cycles;
  cycles += MAX_OF(planner_transform_cycles(&c->planner, stages->data), moved(c, data / 2, data));
  return cycles + MAX_OF(planner_transform_cycles(&c->planner, stages->outputs),
                         moved(c, products, outputs));
}

static double direct_cycles(Choosing *c, const WindowProduct *product) {
  TeStage *te = product->sum.stage->te;
  double cycles = product_cycles(c, te, product->sum.weight->as.buffer);
  return cycles < 0 ? cycles : cycles + moved(c, 0, bytes_of(te->output));
}

// ---- Accuracy

// How many terms a sum of the products has that are not among the taps of transformed windows.
static int64_t channels_of(const WindowProduct *p) {
  const TeStage *te = p->sum.stage->te;
  int64_t channels = 1, extent;
  for (int a = te->axis_count; a < te->axis_count + te->reduce_count; a++) {
    bool tap = false;
    for (int i = 0; i < p->count; i++) tap |= p->windows[i].transformed && p->windows[i].tap == a;
    if (!tap && expr_as_int(te->axes[a].extent, &extent)) channels *= extent;
  }
  return channels;
}

static BilinearErrors errors_of(Choosing *c, const BilinearVariant *v) {
  KnownErrors key = {.channels = channels_of(&v->product)};
  const BilinearAlgorithm *by[MOST_TRANSFORMED] = {NULL};
  for (int i = 0; i < v->product.count; i++) {
    const TapWindow *w = &v->product.windows[i];
    if (!w->transformed) continue;
    key.outputs[key.count] = w->algorithm.outputs;
    key.taps[key.count] = w->taps;
    by[key.count++] = &w->algorithm;
  }
  for (int i = 0; i < c->known.count; i++) {
    KnownErrors known = c->known.items[i];
    if (known.channels == key.channels && !memcmp(known.outputs, key.outputs, sizeof key.outputs) &&
        !memcmp(known.taps, key.taps, sizeof key.taps))
      return known.errors;
  }
  key.errors = bilinear_errors(&c->planner.context->scratch, key.channels, by[0], by[1]);
  array_push(&c->planner.context->arena, &c->known, key);
  return key.errors;
}

static bool is_accurate(const Choosing *c, const PlanBilinear *use) {
  double relative = c->options->accuracy.relative;
  return relative > 0 ? use->error <= relative : use->error <= DEFAULT_GROWTH * use->direct_error;
}

// ---- Variants

static bool algorithm_for(Choosing *c, int outputs, int64_t taps, BilinearAlgorithm *out) {
  KnownAlgorithm *known = &c->algorithms[outputs][taps];
  if (!known->searched) known->exists = bilinear_best(outputs, (int)taps, &known->algorithm);
  known->searched = true;
  *out = known->algorithm;
  return known->exists;
}

// Sets the algorithms with `outputs` outputs along the last windows. False when there are none.
static bool transform_windows(Choosing *c, BilinearVariant *v, int outputs) {
  for (int i = v->product.count - 1; i >= 0 && v->use.count < MOST_TRANSFORMED; i--) {
    TapWindow *w = &v->product.windows[i];
    if (w->outputs < outputs) continue;
    w->transformed = algorithm_for(c, outputs, w->taps, &w->algorithm);
    if (!w->transformed) continue;
    v->use.outputs[v->use.count] = outputs;
    v->use.taps[v->use.count++] = w->taps;
  }
  v->use.bound = 1;
  for (int i = 0; i < v->product.count; i++)
    if (v->product.windows[i].transformed)
      v->use.bound *= bilinear_bound(&v->product.windows[i].algorithm);
  return v->use.count > 0;
}

static bool make_variant(Choosing *c, const WindowProduct *product, int outputs, double direct,
                         BilinearVariant *out) {
  *out = (BilinearVariant){.product = *product, .use = {.direct_cycles = direct}};
  if (!transform_windows(c, out, outputs)) return false;
  out->stages = bilinear_stages(c->planner.context, &out->product);
  out->use.cycles = variant_cycles(c, out);
  return out->use.cycles < direct * cost_model_of(c->planner.machine)->bilinear_share;
}

static int by_cycles(const void *a, const void *b) {
  const BilinearVariant *x = *(BilinearVariant *const *)a, *y = *(BilinearVariant *const *)b;
  return (x->use.cycles > y->use.cycles) - (x->use.cycles < y->use.cycles);
}

static void set_errors(Choosing *c, BilinearVariant *v) {
  BilinearErrors errors = errors_of(c, v);
  v->use.error = errors.bilinear;
  v->use.direct_error = errors.direct;
}

static BilinearVariant *keep_variant(Choosing *c, const BilinearVariant *variant) {
  return arena_copy(&c->planner.context->arena, variant, sizeof *variant);
}

// The cheapest variant that saves cycles and is accurate; NULL: there is none.
static BilinearVariant *best_variant(Choosing *c, const WindowProduct *product, double direct) {
  BilinearVariant *variants[MOST_OUTPUTS];
  int count = 0;
  if (direct < cost_model_of(c->planner.machine)->least_bilinear_cycles) return NULL;
  for (int outputs = 2; outputs <= MOST_OUTPUTS; outputs++) {
    BilinearVariant variant;
    if (make_variant(c, product, outputs, direct, &variant))
      variants[count++] = keep_variant(c, &variant);
  }
  qsort(variants, (size_t)count, sizeof(BilinearVariant *), by_cycles);
  for (int i = 0; i < count; i++) {
    set_errors(c, variants[i]);
    if (is_accurate(c, &variants[i]->use)) return variants[i];
  }
  return NULL;
}

// The variant that was chosen for an equal stage; NULL: none was.
static BilinearVariant *known_variant(Choosing *c, const WindowProduct *product,
                                      const KnownChoice *known) {
  BilinearVariant variant;
  if (!known->outputs) return NULL;
  if (!make_variant(c, product, known->outputs, known->direct, &variant) ||
      variant.use.cycles != known->cycles)
    bug(c->planner.context, "'%s' does not cost what an equal stage does",
        product->sum.stage->te->name);
  set_errors(c, &variant);
  return keep_variant(c, &variant);
}

static int weight_read(const WindowProduct *product) {
  const PtrArray *reads = &product->sum.stage->reads;
  for (int i = 0; i < reads->count; i++)
    if (((const StageTensor *)reads->items[i])->buffer == product->sum.weight->as.buffer) return i;
  return -1;
}

static BilinearVariant *choose_variant(Choosing *c, const WindowProduct *product) {
  const Stage *kind = map_find(&c->kinds, product->sum.stage);
  int weight = weight_read(product);
  for (int i = 0; i < c->choices.count; i++)
    if (c->choices.items[i].kind == kind && c->choices.items[i].weight == weight)
      return known_variant(c, product, &c->choices.items[i]);
  double direct = direct_cycles(c, product);
  BilinearVariant *best = best_variant(c, product, direct);
  KnownChoice known = {kind, weight, best ? (int)best->use.outputs[0] : 0, direct,
                       best ? best->use.cycles : 0};
  if (kind) array_push(&c->planner.context->arena, &c->choices, known);
  return best;
}

// ---- All stages

static void find_kinds(Choosing *c) {
  const StageGraph *s = c->planner.stages;
  planner_find_kinds(&c->planner);
  c->kinds = map_new(&c->planner.context->arena);
  for (int i = 0; i < s->stages.count; i++)
    map_put(&c->kinds, s->stages.items[i], c->planner.kinds[i]);
}

PlanBilinears plan_add_bilinear(StageGraph *s, const PlanOptions *options) {
  Choosing c = {.planner = {.context = s->context, .stages = s, .machine = options->machine},
                .options = options};
  Map nests = map_new(&s->context->arena), shapes = map_new(&s->context->arena);
  c.planner.nests = &nests;
  c.planner.shapes = &shapes;
  if (options->accuracy.exact || options->policy == PLAN_NONE) return c.uses;
  stage_graph_find_constants(s);
  find_kinds(&c);
  for (int i = 0; i < s->stages.count; i++) {
    WindowProduct product;
    Stage *stage = s->stages.items[i];
    if (stage->serves || stage->others.count || planner_constrains(options->constraints, stage) ||
        !window_product_of(s, stage, &product))
      continue;
    BilinearVariant *variant = choose_variant(&c, &product);
    if (!variant) continue;
    stage_graph_add_bilinear(s, stage, &variant->stages);
    variant->use.stage = stage->usual;
    array_push(&s->context->arena, &c.uses, variant->use);
    stage_graph_find_constants(s);
  }
  return c.uses;
}
