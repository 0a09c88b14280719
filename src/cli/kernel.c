// SPDX-License-Identifier: Apache-2.0
// Makes the arguments of the kernels of a TVMScript file, and begins sessions of them.
#include "cli/kernel.h"

#include "cli/saved.h"

#include "graph/graph.h"
#include "script/script.h"

#include <stdlib.h>

// ---- Signatures --------------------------------------------------------------------------------

const char *kernel_signature(Cli *cli, const Kernel *kernel) {
  Context *context = cli->context;
  Text text[2] = {text_new(&context->arena), text_new(&context->arena)};
  for (int i = 0; i < kernel->func->param_count; i++) {
    const Buffer *buffer = kernel->func->buffers[i];
    const Expr *param = kernel->func->params[i];
    Text *out = &text[(kernel->access[i] & PARAM_WRITTEN) != 0];
    text_printf(out, "%s%s ", out->size ? ", " : "", buffer ? buffer->name : param->as.var->name);
    for (int d = 0; buffer && d < buffer->rank; d++)
      text_printf(out, "%s%s", d ? ", " : "[", script_expr_text(context, buffer->shape[d]));
    if (buffer && buffer->rank) text_puts(out, "] ");
    text_puts(out, dtype_name(context, buffer ? buffer->type : param->type));
  }
  return arena_printf(&context->arena, "%s -> %s", text_string(&text[0]), text_string(&text[1]));
}

// ---- Arguments ----------------------------------------------------------------------------------

bool kernels_check_given(Cli *cli, const Kernels *kernels, const StringList *given,
                         const StringList *sizes) {
  StringList names = {0};
  kernels_check_sizes(cli->context, kernels, sizes->items, sizes->count);
  for (int i = 0; i < kernels->count; i++)
    for (int j = 0; j < kernels->items[i].func->param_count; j++)
      array_push(&cli->context->arena, &names, kernel_param_name(&kernels->items[i], j));
  return cli_check_given(cli, given, "kernel", names.items, names.count);
}

typedef struct Given {
  Cli *cli;
  const StringList *inputs;
} Given;

static Tensor *given_array(void *env, const char *name) {
  const Given *given = env;
  return cli_given_array(given->cli, given->inputs, name, NULL);
}

// The text after NAME= in `--input`, which is a file or a number; NULL when the option is absent.
static const char *given_text(void *env, const char *name) {
  const StringList *inputs = ((const Given *)env)->inputs;
  size_t n = strlen(name);
  for (int i = 0; i < inputs->count; i++)
    if (strncmp(inputs->items[i], name, n) == 0 && inputs->items[i][n] == '=')
      return inputs->items[i] + n + 1;
  return NULL;
}

bool kernel_make_arguments(Cli *cli, const Kernel *kernel, const InputContents *contents,
                           const StringList *sizes, bool fill_all, KernelArguments *out) {
  Given given = {cli, &contents->given};
  const KernelContents from = {.fill = contents->fill,
                               .seed = contents->seed,
                               .fill_all = fill_all,
                               .sizes = sizes->items,
                               .size_count = sizes->count,
                               .array = given_array,
                               .file = given_text,
                               .number = given_text,
                               .env = &given};
  return kernel_arguments(cli->context, kernel, &from, out);
}

// ---- Sessions -----------------------------------------------------------------------------------

static bool one_kernel(Session *s, const Module *module, const StringList *given, Kernel *kernel) {
  Kernels kernels = {0};
  if (!kernels_load(s->cli->context, s->cli->inputs.items[0], module, s->model->func, &s->machine,
                    &kernels))
    return false;
  *kernel = kernels.items[0];
  if (kernels.count == 1)
    return kernels_check_given(s->cli, &kernels, given, model_sizes(s->cli, s->model));
  return diag_error_as(s->cli->context, DIAG_OPTION, (SourcePos){0},
                       "%s holds %d tensor programs; say with --func which",
                       s->cli->inputs.items[0], kernels.count);
}

static void take_outputs(Session *s, const Kernel *kernel, const KernelArguments *arguments) {
  int count = kernel->func->param_count;
  s->outputs = arena_array(&s->cli->context->arena, Tensor *, count);
  s->output_names = arena_array(&s->cli->context->arena, const char *, count);
  for (int i = 0; i < count; i++) {
    if (!(kernel->access[i] & PARAM_WRITTEN)) continue;
    s->output_names[s->output_count] = kernel_param_name(kernel, i);
    s->outputs[s->output_count++] = arguments->tensors[i];
  }
}

static bool begin_kernel(Session *s, const Module *module, const InputContents *contents) {
  Arena *arena = &s->cli->context->arena;
  Kernel *kernel = s->kernel = arena_new(arena, Kernel);
  KernelArguments arguments;
  CompileOptions compile = {.lower = {.print_after = s->model->print_after,
                                      .verify_each = s->model->verify_each,
                                      .guards = !s->model->unchecked,
                                      .report = &s->lower_report},
                            .cache = cli_cache(s->cli)};
  if (!cli_check_pass(s->cli, "--print-ir-after", s->model->print_after) ||
      !model_target(s->cli, s->model, &compile))
    return false;
  s->machine = compile.machine;
  if (!one_kernel(s, module, &contents->given, kernel) ||
      !kernels_prove_bounds(s->cli->context, &(Kernels){.items = kernel, .count = 1},
                            &compile.lower) ||
      !kernel_make_arguments(s->cli, kernel, contents, model_sizes(s->cli, s->model), false,
                             &arguments))
    return false;
  s->inputs = arguments.tensors;
  s->input_count = kernel->func->param_count;
  s->kernel_args = arguments.args;
  take_outputs(s, kernel, &arguments);
  s->kernel_code = kernel_code_new(s->cli->context, &kernel->scheduled, 1, &compile, &s->target);
  return s->kernel_code && session_ready(s);
}

bool session_begin_file(Session *s, const char *path, const InputContents *contents) {
  ModelFile file;
  if (saved_named(path)) return session_begin_saved(s, path, contents);
  if (!model_is_script(path) && !s->model->func) {
    if (!model_check_graph(s->cli, s->model)) return false;
    if (session_find(s, path, contents)) return s->executable != NULL;
    return s->cli->context->error_count == 0 &&
           session_begin(s, model_import(s->cli, path, &s->import), contents);
  }
  if (!model_open(s->cli, path, s->model, &file)) return false;
  return file.graph ? session_begin(s, file.graph, contents)
                    : begin_kernel(s, file.module, contents);
}
