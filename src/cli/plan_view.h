// SPDX-License-Identifier: Apache-2.0
// What `pleat plan` has of a model, for the files that show it.
#ifndef PLEAT_CLI_PLAN_VIEW_H
#define PLEAT_CLI_PLAN_VIEW_H

#include "cli/model.h"

typedef struct PlanCommand {
  ModelOptions model; // first: MODEL_OPTIONS
  bool schedules, program, fusion;
  const char *why, *html, *onnx;
  int64_t kernel;
} PlanCommand;

// A line of the table: a rewrite at run time, or constants that are folded alike.
typedef struct Row {
  const PlanRewrite *first;
  const char *from, *to;
  PtrArray members; // const PlanRewrite *
  int64_t bytes;
} Row;

typedef struct View {
  Cli *cli;
  const PlanCommand *options;
  const char *path;
  Program *program;
  Plan *plan;
  Array(Row) rows;
} View;

// A layout of a tensor as people write it.
const char *view_layout_name(const View *view, const StageTensor *tensor, const Layout *layout);
const char *view_row_name(const View *view, const Row *row);
const char *view_row_because(const View *view, const Row *row);
const char *view_cycles(const View *view, double cycles);
const char *view_gap(const View *view);
const char *view_shape(const View *view, const Buffer *buffer);

// The plan as one HTML page that needs nothing else. False with a diagnostic.
bool plan_write_html(const View *view, const char *path);

// The model with the plan noted in its metadata. False with a diagnostic.
bool plan_write_onnx(const View *view, const char *path);

#endif
