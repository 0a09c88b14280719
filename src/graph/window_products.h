// SPDX-License-Identifier: Apache-2.0
// Sums of products over windows, such as convolutions, and the stages that compute them with fewer
// products. See window_products.c.
#ifndef PLEAT_GRAPH_WINDOW_PRODUCTS_H
#define PLEAT_GRAPH_WINDOW_PRODUCTS_H

#include "graph/bilinear.h"
#include "graph/weighted_sums.h"

enum { WINDOW_MOST = 3, WINDOW_MOST_TAPS = 7 };

// An axis y of the output and an axis r of the reduction that move the image as y + r only.
typedef struct TapWindow {
  int axis, tap; // among the stage's axes
  int64_t outputs, taps;
  bool transformed; // `algorithm` is used for it
  BilinearAlgorithm algorithm;
} TapWindow;

// A sum over windows of at least 3 taps, none of them transformed.
typedef struct WindowProduct {
  WeightedSum sum;
  int count;
  TapWindow windows[WINDOW_MOST];
} WindowProduct;

// False when the stage is no such sum over at least one window.
bool window_product_of(StageGraph *stages, Stage *stage, WindowProduct *out);
// The stages that compute a window product by the algorithms of its transformed windows.
BilinearStages bilinear_stages(Context *context, const WindowProduct *product);

#endif
