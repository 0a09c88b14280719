// SPDX-License-Identifier: Apache-2.0
// Makes graph functions, and their stages, from the texts of their parameters and statements. Fails
// with the diagnostics when a text is wrong.
#ifndef PLEAT_GRAPH_SUPPORT_H
#define PLEAT_GRAPH_SUPPORT_H

#include "graph/stages.h"
#include "script/script.h"

#include <setjmp.h>
#include <cmocka.h>

#define F32(NAME, SHAPE) NAME ": R.Tensor((" SHAPE "), \"float32\")"
#define LINE "        "
#define END(Y) LINE "R.output(" Y ")\n    return " Y "\n"

static inline void print_and_fail(Context *context, const char *text) {
  diag_print_all(context, stderr);
  fail_msg("%s", text);
}

static inline GraphFunc *graph_of(Context *context, const char *params, const char *body) {
  const char *text =
      arena_printf(&context->arena,
                   "from pleat.script import relax as R\n@R.function\ndef main(%s):\n"
                   "    with R.dataflow():\n%s",
                   params, body);
  SourceFile *file = source_file_new(context, "graph.py", text, strlen(text));
  Module *module = script_parse(context, file);
  GraphFunc *graph = module ? module->funcs.items[0].graph : NULL;
  if (!graph || !graph_infer(context, graph)) print_and_fail(context, text);
  return graph;
}

static inline StageGraph *stages_of(Context *context, const char *params, const char *body) {
  StageGraph *stages = stage_graph_new(context, graph_of(context, params, body));
  if (!stages) print_and_fail(context, body);
  return stages;
}

// The program of all stages. The parameters have the order of those of `like`; NULL: any.
static inline PrimFunc *program_like(StageGraph *s, const PrimFunc *like) {
  PrimFunc *func = stages_prim_func(s, s->stages.items, s->stages.count, "main");
  for (int i = 0; like && i < func->param_count; i++)
    for (int k = i + 1; k < func->param_count; k++) {
      if (func->buffers[k] != like->buffers[i]) continue;
      Buffer *buffer = func->buffers[i];
      Expr *param = func->params[i];
      func->buffers[i] = func->buffers[k];
      func->params[i] = func->params[k];
      func->buffers[k] = buffer;
      func->params[k] = param;
    }
  return func;
}

#endif
