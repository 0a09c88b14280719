// SPDX-License-Identifier: Apache-2.0
// Finds bilinear algorithms for sums over windows and for products of matrices, which the planner
// can take in their place. For each window product, algorithms of several sizes are made into
// stages (graph/window_products.h), and for a product of matrices one in blocks
// (graph/block_products.h). They are compared by the same costs as layouts: the cycles of the
// product in the layouts that suit it, the operations of the transforms, and the bytes that they
// move. Weights come from main memory, because other weights pass through the caches from one run
// to the next; the transformed ones are larger. The rounding errors of the cheapest are measured
// on sums as long as those of the stage, and the next one is taken when they are too large. A sum
// whose readers make small errors large (graph/vanishing_sums.h) stays as it is.
#include "graph/bilinear_errors.h"
#include "graph/block_products.h"
#include "graph/vanishing_sums.h"
#include "graph/window_products.h"
#include "plan/internal.h"

#include <stdlib.h>

enum { MOST_TRANSFORMED = 2, MOST_OUTPUTS = 6, IN_BLOCKS = MOST_OUTPUTS + 1 };
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

struct BilinearFacts {
  Array(KnownErrors) errors;
  KnownAlgorithm algorithms[MOST_OUTPUTS + 1][WINDOW_MOST_TAPS + 1]; // by outputs and taps
};

BilinearFacts *bilinear_facts_new(Context *context) {
  return arena_new(&context->arena, BilinearFacts);
}

// The choice for all stages whose loops are equal and that read their weights alike.
typedef struct KnownChoice {
  const Stage *kind; // the first of these stages
  int weight;        // entry of its reads
  int outputs;       // of the algorithm; 0: none is used; IN_BLOCKS: a product in blocks
  double direct, cycles;
} KnownChoice;

typedef struct Choosing {
  Planner planner; // for nests and layouts only
  const PlanOptions *options;
  BilinearFacts *facts;
  Array(KnownChoice) choices;
  Map kinds; // by stage: the first stage whose loops are equal
  PlanBilinears uses;
} Choosing;

// The forms of a stage's sum.
typedef struct SumForms {
  WeightedSum sum;
  bool in_windows, in_blocks;
  WindowProduct window;
  BlockProduct block;
} SumForms;

typedef struct BilinearVariant {
  WindowProduct product;
  int outputs; // as in KnownChoice
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

// The layout of a read whose first axis of the reduction is innermost, in blocks or as a whole.
static const Layout *layout_for(const Choosing *c, const Nest *nest, const NestRead *read,
                                int64_t block) {
  int d = nest_dimension_of(nest, read, nest->spatial_count);
  return d < 0 ? NULL : planner_inner_axis(&c->planner, read->buffer, d, block);
}

// The cycles of a sum of products whose vectors run along dimension `d` of the output, and whose
// data is read in blocks (0: in none); negative when it has no tiles.
static double product_cycles_along(const Choosing *c, const Nest *nest, const Buffer *weights,
                                   int d, int64_t block) {
  NestLayouts layouts = {0};
  int axis = nest->output_axis[d], lanes = machine_lanes(c->planner.machine, nest->output->type);
  if (axis < 0) return -1;
  for (int i = 0; i < nest->read_count; i++) {
    const NestRead *read = &nest->reads[i];
    layouts.packed[i] = read->buffer == weights;
    if (layouts.packed[i] != nest_depends(read, axis)) return -1;
    if (!layouts.packed[i]) layouts.reads[i] = layout_for(c, nest, read, block);
  }
  layouts.output = planner_inner_axis(&c->planner, nest->output, d, lanes);
  const Strategies *found = strategies_of(c->planner.context, c->planner.machine, nest, &layouts);
  return strategies_tile(found) ? found->items[0].cost : -1;
}

// The cycles of a sum of products with weights that are packed, in the layouts that suit it;
// negative when it has no tiles. Does not count what it writes.
static double product_cycles(Choosing *c, TeStage *te, const Buffer *weights) {
  Stage *stage = arena_new(&c->planner.context->arena, Stage);
  stage->te = te;
  const Nest *nest = planner_nest(&c->planner, stage);
  int64_t blocks[] = {machine_lanes(c->planner.machine, te->output->type), 0};
  double best = -1;
  for (int d = 0; nest && d < nest->output->rank; d++)
    for (int i = 0; i < COUNT_OF(blocks); i++) {
      double cycles = product_cycles_along(c, nest, weights, d, blocks[i]);
      if (cycles >= 0 && (best < 0 || cycles < best)) best = cycles;
    }
  if (best < 0) return best;
  double memory = memory_cycles(c->planner.machine, bytes_of(weights), MEMORY_MAIN, MEMORY_READ);
  return overlapped_cycles(c->planner.machine, best, memory);
}

static double transform_cycles(const Choosing *c, const TeStage *te, double memory) {
  double arithmetic = planner_transform_cycles(&c->planner, te);
  bool waits = planner_transform_waits(&c->planner, te);
  return waits ? arithmetic + memory : MAX_OF(arithmetic, memory);
}

static double variant_cycles(Choosing *c, const BilinearVariant *v) {
  const BilinearStages *stages = &v->stages;
  const CostModel *costs = cost_model_of(c->planner.machine);
  double data = bytes_of(stages->data->output), products = bytes_of(stages->products->output);
  double outputs = bytes_of(stages->outputs->output);
  double cycles = product_cycles(c, stages->products, stages->weights->output);
  if (cycles < 0) return PLAN_NEVER;
  cycles += moved(c, 0, products) + 2 * costs->call_cycles;
  cycles += transform_cycles(c, stages->data, moved(c, data / 2, data));
  return cycles + transform_cycles(c, stages->outputs, moved(c, products, outputs));
}

static double direct_cycles(Choosing *c, const WeightedSum *sum) {
  TeStage *te = sum->stage->te;
  double cycles = product_cycles(c, te, sum->weight->as.buffer);
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

// How many terms a sum has that is computed in blocks.
static int64_t terms_of(const BilinearVariant *v) {
  const TeStage *products = v->stages.products;
  int64_t terms = 2, extent;
  for (int a = 0; a < products->reduce_count; a++)
    if (expr_as_int(products->axes[products->axis_count + a].extent, &extent)) terms *= extent;
  return terms;
}

static BilinearErrors errors_of(Choosing *c, const BilinearVariant *v) {
  KnownErrors key = {.channels = v->outputs == IN_BLOCKS ? terms_of(v) : channels_of(&v->product)};
  const BilinearAlgorithm *by[MOST_TRANSFORMED] = {NULL};
  for (int i = 0; i < v->product.count; i++) {
    const TapWindow *w = &v->product.windows[i];
    if (!w->transformed) continue;
    key.outputs[key.count] = w->algorithm.outputs;
    key.taps[key.count] = w->taps;
    by[key.count++] = &w->algorithm;
  }
  for (int i = 0; i < c->facts->errors.count; i++) {
    KnownErrors known = c->facts->errors.items[i];
    if (known.channels == key.channels && !memcmp(known.outputs, key.outputs, sizeof key.outputs) &&
        !memcmp(known.taps, key.taps, sizeof key.taps))
      return known.errors;
  }
  Arena *scratch = &c->planner.context->scratch;
  key.errors = key.count ? bilinear_errors(scratch, key.channels, by[0], by[1])
                         : block_errors(scratch, key.channels, block_algorithm());
  array_push(&c->planner.context->arena, &c->facts->errors, key);
  return key.errors;
}

static bool is_accurate(const Choosing *c, const PlanBilinear *use) {
  double relative = c->options->accuracy.relative;
  return relative > 0 ? use->error <= relative : use->error <= DEFAULT_GROWTH * use->direct_error;
}

// ---- Variants

static bool algorithm_for(Choosing *c, int outputs, int64_t taps, BilinearAlgorithm *out) {
  KnownAlgorithm *known = &c->facts->algorithms[outputs][taps];
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

// The stages of the algorithm, and the share of the direct sum's cycles that it must stay below.
static bool make_stages(Choosing *c, const SumForms *forms, BilinearVariant *v, double *share) {
  const CostModel *costs = cost_model_of(c->planner.machine);
  *share = v->outputs == IN_BLOCKS ? costs->block_share : costs->bilinear_share;
  if (v->outputs == IN_BLOCKS) {
    v->use.bound = block_bound(block_algorithm());
    v->stages = block_product_stages(c->planner.context, &forms->block);
    return true;
  }
  v->product = forms->window;
  if (!transform_windows(c, v, v->outputs)) return false;
  v->stages = bilinear_stages(c->planner.context, &v->product);
  return true;
}

static bool make_variant(Choosing *c, const SumForms *forms, int outputs, double direct,
                         BilinearVariant *out) {
  double share;
  *out = (BilinearVariant){.outputs = outputs, .use = {.direct_cycles = direct}};
  if (!make_stages(c, forms, out, &share)) return false;
  out->use.cycles = variant_cycles(c, out);
  out->use.weight_bytes = bytes_of(out->stages.weights->output);
  out->use.direct_weight_bytes = bytes_of(forms->sum.weight->as.buffer);
  return out->use.cycles < direct * share;
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

static bool has_variant(const SumForms *forms, int outputs) {
  return outputs == IN_BLOCKS ? forms->in_blocks : forms->in_windows;
}

// The cheapest variant that saves cycles and is accurate; NULL: there is none.
static BilinearVariant *best_variant(Choosing *c, const SumForms *forms, double direct) {
  BilinearVariant *variants[IN_BLOCKS];
  int count = 0;
  if (direct < cost_model_of(c->planner.machine)->least_bilinear_cycles) return NULL;
  for (int outputs = 2; outputs <= IN_BLOCKS; outputs++) {
    BilinearVariant variant;
    if (has_variant(forms, outputs) && make_variant(c, forms, outputs, direct, &variant))
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
static BilinearVariant *known_variant(Choosing *c, const SumForms *forms,
                                      const KnownChoice *known) {
  BilinearVariant variant;
  if (!known->outputs) return NULL;
  if (!make_variant(c, forms, known->outputs, known->direct, &variant) ||
      variant.use.cycles != known->cycles)
    bug(c->planner.context, "'%s' does not cost what an equal stage does",
        forms->sum.stage->te->name);
  set_errors(c, &variant);
  return keep_variant(c, &variant);
}

static int weight_read(const WeightedSum *sum) {
  const PtrArray *reads = &sum->stage->reads;
  for (int i = 0; i < reads->count; i++)
    if (((const StageTensor *)reads->items[i])->buffer == sum->weight->as.buffer) return i;
  return -1;
}

static BilinearVariant *choose_variant(Choosing *c, const SumForms *forms) {
  const Stage *kind = map_find(&c->kinds, forms->sum.stage);
  int weight = weight_read(&forms->sum);
  for (int i = 0; i < c->choices.count; i++)
    if (c->choices.items[i].kind == kind && c->choices.items[i].weight == weight)
      return known_variant(c, forms, &c->choices.items[i]);
  double direct = direct_cycles(c, &forms->sum);
  BilinearVariant *best = best_variant(c, forms, direct);
  KnownChoice known = {kind, weight, best ? best->outputs : 0, direct, best ? best->use.cycles : 0};
  if (kind) array_push(&c->planner.context->arena, &c->choices, known);
  return best;
}

// Are the halves of the columns and of the terms whole vectors, also where two are unrolled?
static bool has_whole_vectors(const Choosing *c, const BlockProduct *p) {
  int64_t columns = weighted_sum_extent(&p->sum, p->column);
  int64_t terms = weighted_sum_extent(&p->sum, p->inner);
  int lanes = machine_lanes(c->planner.machine, DTYPE_FLOAT32);
  return columns % (4 * lanes) == 0 && terms % (2 * lanes) == 0;
}

// Is each weight used for many rows?
static bool has_rows(const Choosing *c, const BlockProduct *p) {
  double rows = 1;
  for (int a = 0; a < p->sum.stage->te->axis_count; a++)
    if (weighted_sum_moves_image(&p->sum, a)) rows *= (double)weighted_sum_extent(&p->sum, a);
  return rows >= cost_model_of(c->planner.machine)->least_block_rows;
}

static bool has_form(Choosing *c, Stage *stage, SumForms *out) {
  StageGraph *s = c->planner.stages;
  out->in_windows = window_product_of(s, stage, &out->window);
  out->in_blocks = block_product_of(s, stage, &out->block) && has_whole_vectors(c, &out->block) &&
                   has_rows(c, &out->block);
  out->sum = out->block.sum;
  return out->in_windows || out->in_blocks;
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
  c.facts = options->facts ? options->facts : bilinear_facts_new(s->context);
  Map nests = map_new(&s->context->arena), shapes = map_new(&s->context->arena);
  c.planner.nests = &nests;
  c.planner.shapes = &shapes;
  if (options->accuracy.exact || options->policy == PLAN_NONE) return c.uses;
  stage_graph_find_constants(s);
  for (int i = 0; i < s->stages.count; i++) {
    SumForms forms;
    Stage *stage = s->stages.items[i];
    if (stage->output->constant) continue; // it is computed once, while compiling
    if (stage->serves || stage->others.count || planner_constrains(options->constraints, stage) ||
        !has_form(&c, stage, &forms))
      continue;
    if (!c.planner.kinds) find_kinds(&c); // before the first variant adds stages
    BilinearVariant *variant = choose_variant(&c, &forms);
    if (!variant || vanishing_sum_matters(s, stage)) continue;
    stage_graph_add_bilinear(s, stage, &variant->stages);
    variant->use.stage = stage->usual;
    array_push(&s->context->arena, &c.uses, variant->use);
    stage_graph_find_constants(s);
  }
  return c.uses;
}
