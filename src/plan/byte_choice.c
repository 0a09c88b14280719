// SPDX-License-Identifier: Apache-2.0
// Decides which sums of products are computed four bytes at a time: those whose numbers are used
// often enough that packing them pays, on a machine with vectors of 32 bits.
#include "graph/byte_products.h"
#include "plan/internal.h"

void plan_use_byte_products(StageGraph *s, const PlanOptions *options) {
  PackedTensors packed = {0};
  const CostModel *costs = cost_model_of(options->machine);
  if (machine_lanes(options->machine, DTYPE_INT32) == 1 || options->policy == PLAN_NONE) return;
  stage_graph_find_constants(s);
  for (int i = 0; i < s->stages.count; i++) {
    ByteProduct product;
    Stage *stage = s->stages.items[i];
    int before = s->stages.count;
    if (stage->serves || stage->others.count || planner_constrains(options->constraints, stage) ||
        !byte_product_of(s, stage, !options->accuracy.exact, &product) ||
        product.reuse < costs->least_byte_reuse)
      continue;
    stage_graph_use_bytes(s, &product, &packed);
    i += s->stages.count - before;
  }
  stage_graph_prune(s);
}
