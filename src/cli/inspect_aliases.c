// SPDX-License-Identifier: Apache-2.0
// `pleat inspect --aliases`: which buffers of tensor programs share memory.
#include "cli/inspect.h"
#include "cli/model.h"

#include <jansson.h>

#include "report/report.h"

static bool is_chosen(const ModuleFunc *func, const char *name) {
  return func->prim && (!name || strcmp(func->name, name) == 0);
}

static int print_json(Cli *cli, const Module *module, const char *name) {
  json_t *functions = json_object();
  for (int i = 0; i < module->funcs.count; i++)
    if (is_chosen(&module->funcs.items[i], name))
      json_object_set_new(functions, module->funcs.items[i].name,
                          report_aliases(cli->context, module->funcs.items[i].prim));
  return json_print(cli, json_pack("{s:o}", "functions", functions));
}

static bool check_options(Cli *cli, const char *path, const ModelOptions *o) {
  const GivenOption rows[] = {
      {"--input-shape", o->input_shapes.count > 0},
      {"--dim", o->dims.count > 0},
      {"--input", o->inputs.count > 0},
      {"--desired-layout", o->desired.count > 0},
      {"--keep-layout", o->keep.count > 0},
      {"--input-layout", o->input_layouts.count > 0},
      {"--output-layout", o->output_layouts.count > 0},
      {"--policy", o->policy != NULL},
      {"--cpu", cli->cpu != NULL},
      {"--no-cache", cli->no_cache},
  };
  if (!model_is_script(path))
    return diag_error_as(
        cli->context, DIAG_OPTION, (SourcePos){0},
        "--aliases: %s is no file of TVMScript, whose tensor programs have buffers", path);
  return cli_refuse(cli, rows, COUNT_OF(rows), "--aliases looks at tensor programs as they are");
}

int inspect_aliases(Cli *cli, const char *path, const ModelOptions *options) {
  if (!check_options(cli, path, options)) return STATUS_MISUSE;
  Module *module = script_load(cli, path);
  if (!module) return STATUS_BAD;
  int count = 0;
  for (int i = 0; i < module->funcs.count; i++)
    count += is_chosen(&module->funcs.items[i], options->func);
  if (!count) {
    diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0}, "%s holds no tensor program%s%s", path,
                  options->func ? " " : "", options->func ? options->func : "");
    return STATUS_BAD;
  }
  if (cli->json) return print_json(cli, module, options->func);
  Text text = text_new(&cli->context->arena);
  for (int i = 0; i < module->funcs.count; i++)
    if (is_chosen(&module->funcs.items[i], options->func))
      report_aliases_text(cli->context, module->funcs.items[i].prim, &text);
  fputs(text_string(&text), stdout);
  return STATUS_DONE;
}
