// SPDX-License-Identifier: Apache-2.0
// Decides which sums of products of bytes are computed several at a time: those whose numbers are
// used often enough that packing them pays. They are packed as bytes where the machine has an
// instruction for them, and as words where it has not; sums of floats over windows then stay,
// because bilinear algorithms take fewer products.
#include "graph/byte_products.h"
#include "graph/window_products.h"
#include "plan/internal.h"

typedef struct ByteChoice {
  StageGraph *stages;
  const PlanOptions *options;
  PackedTensors packed;
} ByteChoice;

static bool is_worth(const ByteChoice *c, Stage *stage, ByteProduct *product) {
  WindowProduct windows;
  bool bytes = c->options->machine->dot_bytes, floats = !c->options->accuracy.exact;
  if (floats && !bytes) floats = !window_product_of(c->stages, stage, &windows);
  return byte_product_of(c->stages, stage, bytes ? BYTES : WORDS, floats, product) &&
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
  c->stages->fusions_decided++;
  c->stages->decided |= DECISION_BYTES;
  return true;
}

void plan_use_byte_products(StageGraph *s, const PlanOptions *options) {
  ByteChoice choice = {.stages = s, .options = options};
  bool found = false;
  if (machine_lanes(options->machine, DTYPE_INT32) == 1 || options->policy == PLAN_NONE ||
      s->avoided & DECISION_BYTES)
    return;
  stage_graph_find_constants(s);
  for (int i = 0; i < s->stages.count; i++) {
    int before = s->stages.count;
    found |= use_bytes(&choice, s->stages.items[i]);
    i += s->stages.count - before;
  }
  if (!found) return;
  stage_graph_prune(s);
  stage_graph_inline_widened(s);
  // Corrections are added where the sums are read.
  stage_graph_inline_intermediates(s, options->machine);
}
