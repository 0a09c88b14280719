// SPDX-License-Identifier: Apache-2.0
// `pleat fmt`: formats TVMScript in Python files, and rewrites the syntax of older versions.
#include "cli/model.h"

#include <jansson.h>

#include "script/format.h"

typedef struct FmtOptions {
  bool check, upgrade, newer;
} FmtOptions;

static const Option options[] = {
    {"check", 0, OPTION_FLAG, NULL, "write nothing; name the files that would change, and fail",
     offsetof(FmtOptions, check)},
    {"upgrade", 0, OPTION_FLAG, NULL, "rewrite the syntax of older versions of TVMScript",
     offsetof(FmtOptions, upgrade)},
    {"newer-names", 0, OPTION_FLAG, NULL, "with --upgrade: use T.sblock and tirx",
     offsetof(FmtOptions, newer)},
};

typedef struct Formatted {
  const char *path;
  Text text;
  bool changed;
} Formatted;

static bool format_one(Cli *cli, const FmtOptions *o, const char *path, Formatted *out) {
  SourceFile *file = script_read(cli, path);
  if (!file) return false;
  if (file->module)
    return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                         "%s: fmt formats whole files, without the name of a module", path);
  *out = (Formatted){path, text_new(&cli->context->arena), false};
  DiagCode code = diag_code_set(cli->context, DIAG_SYNTAX);
  bool done = script_format(cli->context, file,
                            &(FormatOptions){.upgrade = o->upgrade, .newer = o->newer}, &out->text);
  diag_code_set(cli->context, code);
  out->changed =
      done && (out->text.size != file->size || memcmp(out->text.data, file->text, file->size) != 0);
  return done;
}

static bool check_options(Cli *cli, const FmtOptions *o) {
  const GivenOption newer = {"--newer-names", o->newer && !o->upgrade};
  const GivenOption output = {"--output", cli->output && (o->check || cli->inputs.count > 1)};
  return cli_refuse(cli, &newer, 1, "only --upgrade changes names") &&
         cli_refuse(cli, &output, 1,
                    o->check ? "--check writes nothing"
                             : "there are several files; each is "
                               "written where it was read");
}

// Writes the result; a file is written only when it changed.
static bool put(Cli *cli, const FmtOptions *o, const Formatted *f) {
  bool from_input = strcmp(f->path, "-") == 0;
  const char *path = cli->output ? cli->output : f->path;
  if (o->check || (!f->changed && !cli->output && !from_input)) return true;
  return file_write(cli->context, path, text_string((Text *)&f->text), f->text.size);
}

static void report(Cli *cli, const FmtOptions *o, const Formatted *f) {
  bool in_place = !cli->output && strcmp(f->path, "-") != 0;
  if (cli->json || !f->changed || !(in_place || o->check)) return;
  printf("%s %s\n", o->check ? "would change" : "formatted", f->path);
}

static int run(Cli *cli, void *given) {
  const FmtOptions *o = given;
  if (!check_options(cli, o)) return STATUS_MISUSE;
  json_t *list = json_array();
  bool done = true, changed = false;
  for (int i = 0; i < cli->inputs.count; i++) {
    Formatted f;
    bool formatted = format_one(cli, o, cli->inputs.items[i], &f) && put(cli, o, &f);
    done &= formatted;
    if (!formatted) continue;
    changed |= f.changed;
    report(cli, o, &f);
    json_array_append_new(list, json_pack("{s:s, s:b}", "file", f.path, "changed", f.changed));
  }
  if (cli->json)
    json_print(cli, json_pack("{s:o}", "files", list));
  else
    json_decref(list);
  return !done || (o->check && changed) ? STATUS_BAD : STATUS_DONE;
}

const Command command_fmt = {
    .name = "fmt",
    .arguments = "FILE.py…",
    .summary = "format TVMScript in Python files, and upgrade older syntax",
    .example = "  $ pleat fmt --upgrade kernel.py\n"
               "  formatted kernel.py\n",
    .takes = TAKES_OUTPUT | TAKES_JSON,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(FmtOptions),
    .least_inputs = 1,
    .most_inputs = 1000000,
    .run = run,
};
