// SPDX-License-Identifier: Apache-2.0
// Finds the smallest failing part of a model for `verify --reduce`: parts of growing depth that end
// at the value that differs are cut out of the model, with the reference's values as their inputs,
// until one of them differs by itself.
#include "cli/reduce.h"

#include "config.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#if PLEAT_HAVE_ONNX
#include "frontend/onnx/onnx.h"

typedef struct Reducer {
  const Reduction *what;
  Context *context;
  Map values; // from a name (Str) to its Value *
  const char *model, *data;
  int inputs; // number of input files of the last part
} Reducer;

static void note_values(Reducer *r) {
  const GraphFunc *graph = r->what->graph;
  r->values = map_new(&r->context->arena);
  for (int i = 0; i < graph->nodes.count; i++)
    for (int k = 0; k < graph->nodes.items[i]->output_count; k++) {
      Value *value = graph->nodes.items[i]->outputs[k];
      if (!map_contains(&r->values, value->name)) map_put(&r->values, value->name, value);
    }
  for (int i = 0; i < graph->param_count; i++)
    map_put(&r->values, graph->params[i]->name, graph->params[i]);
}

static const char *data_file(const Reducer *r, const char *kind, int number) {
  return arena_printf(&r->context->arena, "%s/%s_%d.pb", r->data, kind, number);
}

static bool make_folder(Reducer *r, const char *path) {
  if (mkdir(path, 0777) == 0 || errno == EEXIST) return true;
  return diag_error(r->context, (SourcePos){.file = source_file_new(r->context, path, NULL, 0)},
                    "cannot be made: %s", strerror(errno));
}

static bool write_data(Reducer *r, FileSet *files, const OnnxPartFound *found) {
  Reference *reference = r->what->reference;
  for (int i = found->inputs.count; i < r->inputs; i++) unlink(data_file(r, "input", i));
  r->inputs = found->inputs.count;
  for (int i = 0; i < found->inputs.count; i++) {
    const Value *value = found->inputs.items[i];
    const void *data = reference_value(reference, value);
    if (!data || !onnx_write_tensor(r->context, files, data_file(r, "input", i), value, data))
      return false;
  }
  const Value *result = r->what->value;
  const void *data = reference_value(reference, result);
  return data && onnx_write_tensor(r->context, files, data_file(r, "output", 0), result, data);
}

static bool write_part(Reducer *r, int depth, OnnxPartFound *found) {
  OnnxPart part = {r->what->value->name, depth, &r->values};
  FileSet *files = file_set_new(r->context);
  return file_set_end(files,
                      onnx_extract(r->context, r->what->path, &part, files, r->model, found) &&
                          write_data(r, files, found));
}

static bool report(Reducer *r, const OnnxPartFound *found) {
  const Value *value = r->what->value;
  return diag_note(r->context, value->producer ? value->producer->pos : value->pos,
                   "%d node%s differ%s by %s: %s; to see it, with the same options:\n"
                   "pleat verify %s --test-data %s",
                   found->nodes, found->nodes == 1 ? "" : "s", found->nodes == 1 ? "s" : "",
                   found->nodes == 1 ? "itself" : "themselves", r->model, r->model, r->data);
}

bool reduce_model(const Reduction *reduction) {
  Context *context = reduction->cli->context;
  Reducer r = {.what = reduction, .context = context};
  r.model = arena_printf(&context->arena, "%s/model.onnx", reduction->folder);
  r.data = arena_printf(&context->arena, "%s/test_data_set_0", reduction->folder);
  note_values(&r);
  if (!make_folder(&r, reduction->folder) || !make_folder(&r, r.data)) return false;
  int before = 0;
  for (int depth = 1;; depth += 1 + depth / 4) {
    OnnxPartFound found;
    if (!write_part(&r, depth, &found)) return false;
    if (found.nodes == before) break;
    before = found.nodes;
    if (reduction->differs(reduction->env, r.model, r.data)) return report(&r, &found);
  }
  return diag_note(context, reduction->value->pos,
                   "no part of the model before '%s' differs by itself: its layouts and kernels "
                   "are then others; %s holds all of it",
                   reduction->value->name, r.model);
}

#else
bool reduce_model(const Reduction *reduction) {
  return diag_error(reduction->cli->context, (SourcePos){0}, "this build cannot read ONNX");
}
#endif
