// SPDX-License-Identifier: Apache-2.0
// Decides which sums of products are computed four bytes at a time: those whose numbers are used
// often enough that packing them pays, on a machine with an instruction for them.
#include "graph/byte_products.h"
#include "plan/internal.h"

typedef struct ByteChoice {
  StageGraph *stages;
  const PlanOptions *options;
  PackedTensors packed;
} ByteChoice;

static bool is_worth(const ByteChoice *c, Stage *stage, ByteProduct *product) {
  return byte_product_of(c->stages, stage, !c->options->accuracy.exact, product) &&
         product->reuse >= cost_model_of(c->options->machine)->least_byte_reuse;
}

// Computes the stage by products of bytes, if that is worth it.
static bool use_bytes(ByteChoice *c, Stage *stage) {
  ByteProduct product;
  if (stage->serves || stage->others.count || planner_constrains(c->options->constraints, stage) ||
      !is_worth(c, stage, &product))
    return false;
  while (stage_graph_store_bytes(c->stages, &product))
    if (!is_worth(c, stage, &product)) return false;
  stage_graph_use_bytes(c->stages, &product, &c->packed);
  return true;
}

void plan_use_byte_products(StageGraph *s, const PlanOptions *options) {
  ByteChoice choice = {.stages = s, .options = options};
  bool found = false;
  if (!options->machine->dot_bytes || options->policy == PLAN_NONE) return;
  stage_graph_find_constants(s);
  for (int i = 0; i < s->stages.count; i++) {
    int before = s->stages.count;
    found |= use_bytes(&choice, s->stages.items[i]);
    i += s->stages.count - before;
  }
  if (!found) return;
  stage_graph_prune(s);
  stage_graph_inline_widened(s);
  stage_graph_inline_intermediates(s); // corrections are added where the sums are read
}
