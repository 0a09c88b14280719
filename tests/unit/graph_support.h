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

#endif
