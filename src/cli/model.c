// SPDX-License-Identifier: Apache-2.0
// Loading and compiling of models for the subcommands.
#include "cli/model.h"

#include "config.h"
#include "graph/graph.h"
#include "script/script.h"

#if PLEAT_HAVE_ONNX
#include "frontend/onnx/onnx.h"
#endif

static bool ends_with(const char *s, const char *ending) {
  size_t n = strlen(s), m = strlen(ending);
  return n >= m && strcmp(s + n - m, ending) == 0;
}

static GraphFunc *load_script(Cli *cli, const char *path) {
  Context *context = cli->context;
  size_t size;
  char *text = file_read(context, &context->arena, path, &size);
  if (!text) return NULL;
  SourceFile *file = source_file_new(context, path, text, size);
  Module *module = script_parse(context, file);
  for (int i = 0; module && i < module->funcs.count; i++)
    if (module->funcs.items[i].graph) return module->funcs.items[i].graph;
  if (module)
    diag_error(context, (SourcePos){.file = file}, "holds no graph function (@R.function)");
  return NULL;
}

GraphFunc *model_load(Cli *cli, const char *path, const ModelOptions *options) {
  if (ends_with(path, ".py")) return load_script(cli, path);
#if PLEAT_HAVE_ONNX
  OnnxOptions onnx = {.shapes = options->input_shapes.items,
                      .shape_count = options->input_shapes.count};
  OnnxImport *import = onnx_import(cli->context, path, &onnx);
  return import->graph;
#else
  diag_error(cli->context, (SourcePos){0}, "%s: this build reads no ONNX", path);
  return NULL;
#endif
}

typedef struct Shown {
  Progress progress;
} Shown;

static void show_progress(void *env, const char *what, int done, int all) {
  Shown *shown = env;
  shown->progress.what = what;
  shown->progress.total = all;
  progress_step(&shown->progress, done);
}

Program *model_build(Cli *cli, const GraphFunc *graph, const ModelOptions *options) {
  Shown shown = {progress_begin("compiling", 1)};
  CompileOptions compile = {.progress = show_progress, .progress_env = &shown};
  if (!cli_machine(cli, &compile.machine)) return NULL;
  if (options->policy && !strcmp(options->policy, "none")) compile.policy = PLAN_NONE;
  compile.lower.print_after = options->print_after;
  compile.lower.verify_each = options->verify_each;
  Program *program = program_build(cli->context, graph, &compile);
  progress_end(&shown.progress);
  return program;
}

Tensor *model_tensor(Cli *cli, const Value *value) {
  int64_t shape[TENSOR_MAX_RANK];
  ElementType type;
  const char *name = dtype_name(cli->context, value->type);
  if (value->rank > TENSOR_MAX_RANK || !value_static_shape(value, shape) ||
      !element_type_parse(name, &type)) {
    diag_error(cli->context, value->pos, "'%s' has no static shape", value->name);
    return NULL;
  }
  Tensor *tensor = tensor_new(type, shape, value->rank);
  if (!tensor) diag_error(cli->context, value->pos, "no memory for '%s'", value->name);
  return tensor;
}
