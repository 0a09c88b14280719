// SPDX-License-Identifier: Apache-2.0
// The data of `pleat plan` about a model, shared by the files that show it.
#ifndef PLEAT_CLI_PLAN_VIEW_H
#define PLEAT_CLI_PLAN_VIEW_H

#include "cli/model.h"
#include "report/report.h"

typedef struct PlanCommand {
  ModelOptions model; // must be first, see MODEL_OPTIONS
  bool schedules, program, fusion;
  const char *html, *onnx, *lp, *write_tuning;
} PlanCommand;

typedef struct View {
  Cli *cli;
  const PlanCommand *options;
  const char *path;
  Program *program;
  PlanReport report;
} View;

const char *view_cycles(const View *view, double cycles);
const char *view_gap(const View *view);
const char *view_shape(const View *view, const Buffer *buffer);
// The tensor of --why, or the one of the rewrite that it numbers; NULL: there is no such tensor.
const StageTensor *view_asked(const View *view);
// "+2.3 k", "as planned" or "impossible"
const char *view_difference(const View *view, const PleatLayoutPrice *price);
// The option that would give a tensor this layout; "": there is none.
const char *view_option(const View *view, const StageTensor *tensor, const Layout *layout);

// Writes the plan as one self-contained HTML page. False with a diagnostic.
bool plan_write_html(const View *view, FileSet *files, const char *path);

// Writes the model with the plan in its metadata. False with a diagnostic.
bool plan_write_onnx(const View *view, FileSet *files, const char *path);

#endif
