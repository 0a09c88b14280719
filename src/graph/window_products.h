// SPDX-License-Identifier: Apache-2.0
// Sums of products over windows, such as convolutions, and the stages that compute them with fewer
// products. See window_products.c.
#ifndef PLEAT_GRAPH_WINDOW_PRODUCTS_H
#define PLEAT_GRAPH_WINDOW_PRODUCTS_H

#include "graph/bilinear.h"
#include "graph/stages.h"

enum { WINDOW_MOST = 3, WINDOW_MOST_TAPS = 7 };

// An axis y of the output and an axis r of the reduction that move the image as y + r only.
typedef struct TapWindow {
  int axis, tap; // among the stage's axes
  int64_t outputs, taps;
  bool transformed; // `algorithm` is used for it
  BilinearAlgorithm algorithm;
} TapWindow;

// A stage output[…] = Σ image(…) * weight[…], where the weights are constant.
typedef struct WindowProduct {
  Stage *stage;
  Expr *image, *weight; // the factors
  int count;
  TapWindow windows[WINDOW_MOST]; // of at least 3 taps, none of them transformed
} WindowProduct;

// False when the stage is no such sum over at least one window.
bool window_product_of(StageGraph *stages, Stage *stage, WindowProduct *out);

// The stages that compute a window product by the algorithms of its transformed windows.
typedef struct BilinearStages {
  TeStage *weights, *data, *products, *outputs; // `outputs` writes the buffer of the stage
} BilinearStages;
BilinearStages bilinear_stages(Context *context, const WindowProduct *product);
// Makes these stages another way to compute the output of the product's stage.
void stage_graph_add_bilinear(StageGraph *stages, const WindowProduct *product,
                              const BilinearStages *use);

#endif
