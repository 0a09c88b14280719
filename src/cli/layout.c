// SPDX-License-Identifier: Apache-2.0
// `pleat layout`: the layout algebra without a model. The table layout_options.def tells which
// question of query/query.h an option asks and which field of a question it fills, so that the
// command and --batch give equal answers.
#include "cli/layout_show.h"

#include <stdlib.h>

static const Option options[] = {
#define OPTION(member, name, kind, value, ask, field, users, are, help)                            \
  {name, 0, OPTION_##kind, value, help, offsetof(LayoutCommand, member)},
#include "cli/layout_options.def"
#undef OPTION
};

static const char ASK_VALUE[] = "value", ASK_SHOW[] = "show";

// The relation of each option to questions: one row for each of `options`.
static const struct OptionUse {
  const char *ask, *field, *users, *are;
} uses[] = {
#define OPTION(member, name, kind, value, ask, field, users, are, help) {ask, field, users, are},
#include "cli/layout_options.def"
#undef OPTION
};

static const void *member(const LayoutCommand *command, int option) {
  return (const char *)command + options[option].offset;
}

// The value of an option of kind text; NULL when it is absent or of another kind.
static const char *text_of(const LayoutCommand *command, int option) {
  return options[option].kind == OPTION_TEXT ? *(const char *const *)member(command, option) : NULL;
}

static bool is_given(const LayoutCommand *command, int option) {
  switch (options[option].kind) {
  case OPTION_FLAG: return *(const bool *)member(command, option);
  case OPTION_INT: return *(const int64_t *)member(command, option) > 0;
  case OPTION_LIST: return ((const StringList *)member(command, option))->count > 0;
  default: return text_of(command, option) != NULL;
  }
}

// ---- Layouts ----------------------------------------------------------------------------------

// Adds the value of --pad-value to the JSON of the layout. Reports an error for any other text.
static bool add_pad_value(LayoutView *view, json_t *object) {
  const char *text = view->command->pad_value;
  char *end;
  double value = text ? strtod(text, &end) : 0;
  if (!text) return true;
  if (*text && !*end)
    json_object_set_new(object, "padding", json_real(value));
  else if (strcmp(text, "any") == 0 || strcmp(text, "unknown") == 0)
    json_object_set_new(object, "padding", json_string(text));
  else
    return diag_error_as(view->cli->context, DIAG_OPTION, (SourcePos){0},
                         "--pad-value takes a number, any or unknown, not '%s'", text);
  return true;
}

static json_t *operand_json(const LayoutCommand *command, const char *spelling) {
  json_t *object = json_pack("{s:s}", "layout", spelling), *where = json_array();
  if (command->shape) json_object_set_new(object, "shape", json_string(command->shape));
  for (int i = 0; i < command->where.count; i++)
    json_array_append_new(where, json_string(command->where.items[i]));
  json_object_set_new(object, "where", where);
  if (command->order) json_object_set_new(object, "order", json_string(command->order));
  return object;
}

static bool read_main(LayoutView *view) {
  const LayoutCommand *command = view->command;
  json_t *object = operand_json(command, view->cli->inputs.items[0]);
  if (command->physical) json_object_set_new(object, "physical", json_string(command->physical));
  bool good = add_pad_value(view, object) &&
              query_operand_read(view->cli->context, object, "--", NULL, &view->operand);
  json_decref(object);
  return good;
}

// Reads the other layout of a question. When neither its text nor an option defines its shape, the
// shape is that of the command's layout, or for --compose that layout's physical shape.
static bool read_other(LayoutView *view, const QueryRow *row, int option, QueryOperand *out) {
  const Layout *layout = view->operand.layout;
  Context *context = view->cli->context;
  json_t *object = operand_json(view->command, text_of(view->command, option));
  if (view->command->other_shape)
    json_object_set_new(object, "shape", json_string(view->command->other_shape));
  if (row->other == QUERY_OTHER_OUTER)
    json_object_set_new(object, "shape",
                        json_expressions(context, layout->physical, layout->physical_rank));
  const QueryOperand *like = row->other == QUERY_OTHER_ANY ? NULL : &view->operand;
  const char *name = arena_printf(&context->arena, "--%s", options[option].name);
  bool good = query_operand_read(context, object, name, like, out);
  json_decref(object);
  if (!good && row->other == QUERY_OTHER_OUTER)
    diag_note(context, (SourcePos){0}, "its tensor has the physical shape of the layout, %s",
              index_map_text(context, layout->map));
  return good;
}

// ---- Questions --------------------------------------------------------------------------------

static json_t *index_json(const char *text) {
  json_t *list = json_array();
  char *end;
  for (const char *p = text; *p; p = *end ? end + 1 : end) {
    json_array_append_new(list, json_integer(strtoll(p, &end, 10)));
    if (end == p || (*end && *end != ',')) return json_decref(list), json_string(text);
  }
  return list;
}

static json_t *reads_json(const LayoutCommand *command) {
  json_t *list = json_array();
  for (int i = 0; i < command->reads.count; i++)
    json_array_append_new(list, json_string(command->reads.items[i]));
  return list;
}

// The value of an option as the field of a question.
static json_t *field_json(const LayoutCommand *command, int option) {
  const char *text = text_of(command, option);
  if (options[option].kind == OPTION_INT)
    return json_integer(*(const int64_t *)member(command, option));
  return strcmp(uses[option].field, "at") ? json_string(text) : index_json(text);
}

static json_t *question_fields(const LayoutCommand *command) {
  json_t *fields = json_object();
  for (int i = 0; i < COUNT_OF(options); i++)
    if (uses[i].field && options[i].kind != OPTION_LIST && is_given(command, i))
      json_object_set_new(fields, uses[i].field, field_json(command, i));
  if (command->reads.count) {
    json_object_set_new(fields, "read", json_string(command->reads.items[0]));
    json_object_set_new(fields, "reads", reads_json(command));
  }
  int64_t bytes = command->element_bytes ? command->element_bytes : 4;
  json_object_set_new(fields, "element_bits", json_integer(8 * bytes));
  return fields;
}

// The option that filled a field. An error names the field "read" with an index, such as
// "reads[1]".
static const char *option_of_field(const LayoutCommand *command, const char *name) {
  for (int i = 0; i < COUNT_OF(options); i++) {
    size_t size = uses[i].field ? strlen(uses[i].field) : 0;
    if (size && is_given(command, i) && !strncmp(name, uses[i].field, size) &&
        !strcspn(name + size, "s["))
      return options[i].name;
  }
  return NULL;
}

// Errors in the fields of a question become errors in the options that filled the fields.
static void name_options(Context *context, const LayoutCommand *command) {
  for (int i = 0; i < context->diags.count; i++) {
    const SourceFile *file = context->diags.items[i].pos.file;
    const char *option = file ? option_of_field(command, file->name) : NULL;
    if (option)
      context->diags.items[i].pos.file = source_file_new(
          context, arena_printf(&context->arena, "--%s", option), file->text, file->size);
  }
}

bool layout_view_ask(LayoutView *view, const QueryRow *row, const QueryOperand *a,
                     const QueryOperand *b, QueryReply *reply) {
  json_t *fields = question_fields(view->command);
  QueryRequest request = {.context = view->cli->context,
                          .fields = fields,
                          .row = row,
                          .a = *a,
                          .b = b ? *b : (QueryOperand){0}};
  *reply = (QueryReply){0};
  bool good = row->run(&request, reply);
  json_decref(fields);
  if (!good) name_options(view->cli->context, view->command);
  return good;
}

static int ask(LayoutView *view, const QueryRow *row, int option) {
  QueryOperand second = {0};
  QueryReply reply = {0};
  if (query_row_takes(row, "b") && !read_other(view, row, option, &second)) return STATUS_BAD;
  bool swapped = row->other == QUERY_OTHER_OUTER || row->other == QUERY_OTHER_DIVIDED;
  const QueryOperand *a = swapped ? &second : &view->operand;
  const QueryOperand *b = swapped ? &view->operand : &second;
  if (!layout_view_ask(view, row, a, b, &reply)) return STATUS_BAD;
  const char *word = json_string_value(reply.answer);
  bool no = word && (!strcmp(word, "no") || !strcmp(word, "unknown"));
  if (view->cli->json) {
    json_t *object = json_object();
    query_reply_set(&reply, object);
    json_print(view->cli, object);
  } else {
    layout_print_reply(view, row, &reply);
  }
  query_reply_free(&reply);
  return no ? STATUS_BAD : STATUS_DONE;
}

// ---- Options without use -----------------------------------------------------------------------

static bool expr_uses(const LayoutExpr *e, Str symbol) {
  bool found = e->op == LAYOUT_SYMBOL && e->symbol == symbol;
  for (int i = 0; i < 3 && e->args[i] && !found; i++) found = expr_uses(e->args[i], symbol);
  return found;
}

static bool has_symbol(const Layout *layout, Str symbol) {
  bool found = false;
  for (int k = 0; k < layout->rank && !found; k++) found = expr_uses(layout->shape[k], symbol);
  for (int k = 0; k < layout->physical_rank && !found; k++)
    found = expr_uses(layout->physical[k], symbol) || expr_uses(layout->map->outputs[k], symbol);
  return found;
}

// Does the layout have a symbol that --where defines? The layout is read without that definition to
// find out.
static bool is_defined_for(LayoutView *view, Str symbol) {
  Context *context = view->cli->context;
  int diags = context->diags.count, errors = context->error_count;
  LayoutView without = *view;
  LayoutCommand command = *view->command;
  size_t size = strlen(symbol);
  command.where.items = arena_array(&context->arena, const char *, command.where.count);
  command.where.count = 0;
  for (int i = 0; i < view->command->where.count; i++) {
    const char *item = view->command->where.items[i], *start = item + strspn(item, " ");
    const char *end = start + size;
    bool defines = !strncmp(start, symbol, size) && !strncmp(end + strspn(end, " "), "==", 2);
    if (!defines) command.where.items[command.where.count++] = item;
  }
  without.command = &command;
  bool found = !read_main(&without) || has_symbol(without.operand.layout, symbol);
  diag_forget(context, diags, errors);
  return found;
}

// Checks that the conditions of --where refer to symbols of the layout.
static bool names_are_used(LayoutView *view) {
  const LayoutConditions *conditions = &view->operand.conditions;
  Str unused = NULL;
  for (int i = 0; i < conditions->facts.count && !unused; i++)
    if (!has_symbol(view->operand.layout, conditions->facts.items[i].symbol))
      unused = conditions->facts.items[i].symbol;
  for (int i = 0; i < conditions->definition_count && !unused; i++) {
    const LayoutDefinition *d = &conditions->definitions[i];
    bool itself = d->value->op == LAYOUT_SYMBOL && d->value->symbol == d->symbol;
    if (!itself && !is_defined_for(view, d->symbol)) unused = d->symbol;
  }
  return !unused || diag_error_as(view->cli->context, DIAG_OPTION, (SourcePos){0},
                                  "--where: no extent has the name `%s`", unused);
}

static bool is_word_of(const char *word, const char *words) {
  size_t size = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); at += size)
    if ((at == words || at[-1] == ' ') && (at[size] == ' ' || !at[size])) return true;
  return false;
}

// The name of the question that an option asks: a row of the table, or ASK_SHOW.
static const char *name_asked(const LayoutCommand *command, int option) {
  const char *ask = uses[option].ask;
  return ask == ASK_VALUE ? text_of(command, option) : ask;
}

// The option that asks a question, or -1 when none does.
static int asking_option(const LayoutCommand *command) {
  for (int i = 0; i < COUNT_OF(options); i++)
    if (uses[i].ask && uses[i].ask != ASK_SHOW && is_given(command, i)) return i;
  return -1;
}

// Refuses options that the question does not use, and a second question.
static bool options_are_used(LayoutView *view, int asking) {
  const LayoutCommand *c = view->command;
  const char *asked = asking >= 0 ? name_asked(c, asking) : c->show ? c->show : "summary";
  int first = -1;
  for (int i = 0; i < COUNT_OF(options); i++)
    if (uses[i].users && is_given(c, i) && !is_word_of(asked, uses[i].users))
      return diag_error_as(view->cli->context, DIAG_OPTION, (SourcePos){0},
                           "--%s is not used here: it is for %s", options[i].name, uses[i].are);
  for (int i = 0; i < COUNT_OF(options); i++) {
    if (!uses[i].ask || !is_given(c, i)) continue;
    if (first >= 0)
      return diag_error_as(view->cli->context, DIAG_OPTION, (SourcePos){0},
                           "--%s and --%s: one question at a time", options[first].name,
                           options[i].name);
    first = i;
  }
  return true;
}

// Refuses options that have no effect on the output.
static bool output_is_used(const LayoutView *view, int asking) {
  const Cli *cli = view->cli;
  const GivenOption output = {"--output", cli->output != NULL};
  const GivenOption certificates = {"--no-certificates", view->command->no_certificates};
  return cli_refuse(view->cli, &certificates, 1, "is for the answers of --batch") &&
         (asking < 0 || cli_refuse(view->cli, &output, 1, "is for what --show shows")) &&
         (!cli->json || cli_refuse(view->cli, &output, 1, "--json prints on standard output"));
}

// ---- The command ------------------------------------------------------------------------------

// The lines of the file say everything, so that no other option has an effect.
static int run_batch(Cli *cli, const LayoutCommand *command) {
  const GivenOption rows[] = {{"--output", cli->output != NULL}, {"--json", cli->json}};
  const char *why = "--batch reads and prints a JSON object on each line, and nothing else";
  bool used = cli_refuse(cli, rows, COUNT_OF(rows), why);
  for (int i = 0; i < COUNT_OF(options); i++) {
    const void *place = member(command, i);
    bool own = place == &command->batch || place == &command->no_certificates;
    const GivenOption row = {arena_printf(&cli->context->arena, "--%s", options[i].name),
                             !own && is_given(command, i)};
    used &= cli_refuse(cli, &row, 1, why);
  }
  const GivenOption layout = {cli->inputs.count ? cli->inputs.items[0] : "", cli->inputs.count};
  if (!cli_refuse(cli, &layout, 1, why) || !used) return STATUS_MISUSE;
  return layout_batch(cli->context, command->batch, !command->no_certificates);
}

static int run(Cli *cli, void *given) {
  LayoutView view = {.cli = cli, .command = given};
  const LayoutCommand *command = given;
  diag_code_set(cli->context, DIAG_LAYOUT);
  if (command->help_batch) return layout_batch_help(stdout), STATUS_DONE;
  if (command->batch) return run_batch(cli, command);
  if (!cli->inputs.count) {
    diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                  "expected a layout, such as NCHW16c, or --batch FILE");
    return STATUS_MISUSE;
  }
  if (command->color)
    cli->color = strcmp(command->color, "always") == 0 ||
                 (cli->color && strcmp(command->color, "never") != 0);
  if (command->swizzle && !command->reads.count) {
    diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                  "--swizzle needs what is read at once: --read 'i=0:32' --read 'j=0:32'");
    return STATUS_MISUSE;
  }
  int asking = asking_option(command);
  if (!layout_show_known(&view) || !options_are_used(&view, asking) ||
      !output_is_used(&view, asking))
    return STATUS_MISUSE;
  if (!read_main(&view) || !names_are_used(&view)) return STATUS_BAD;
  if (asking < 0) return layout_show(&view);
  return ask(&view, query_row_find(name_asked(command, asking)), asking);
}

const Command command_layout = {
    .name = "layout",
    .arguments = "SPEC",
    .summary = "answer questions about a layout: offsets, inverse, padding, banks, pictures",
    .example =
        "  $ pleat layout NCHW16c --shape 1x30x7x7\n"
        "  n, c, h, w -> n, c//16, h, w, c%16\n"
        "  1x30x7x7 in 1x2x7x7x16   1568 physical indices, 98 padding\n"
        "  is            injective, not onto\n"
        "  one step of   n -   c 1 (then 784 after 16)   h 112   w 16\n"
        "  vectors       c 16 wide, aligned to 64 bytes\n"
        "  padding       where 30 <= p1*16 + p4\n\n"
        "more:\n"
        "  pleat layout NCHW16c\n"
        "  pleat layout 'f32[30,64]{1,0:T(8,128)}' --to '(30,64):(64,1)'\n"
        "  pleat layout NCHW16c --shape 1xCx7x7 --where 'C % 16 == 0' --is onto\n"
        "  pleat layout NCHW16c --shape 1x30x7x7 --to NHWC\n"
        "  pleat layout NCHW16c --shape 1x30x7x7 --show svg -o layout.svg\n"
        "  pleat layout 'i,j -> i,j' --shape 32x32 --read 'i=0:32' --show banks\n"
        "  pleat layout 'i,j -> i,j' --shape 32x32 --read 'i=0:32' --read 'j=0:32' --swizzle\n\n"
        "--show WHAT:\n" LAYOUT_SHOW_HELP
        "\nSPEC and OTHER are layouts in any of these spellings:\n"
        "  NCHW16c, NHWC of NCHW                        named axes and blocks of them\n"
        "  n,c,h,w -> n,c//16,h,w,c%16                  an index map; i,j -> i @lane, j; r=2 for "
        "copies\n"
        "  lambda n, c: [n, c // 4, c % 4]              a Python function\n"
        "  aBcd16b                                      oneDNN\n"
        "  (4,8):(8,1), Sw<3,3,3> o 0 o (8,64):(64,1)   CuTe; (4,8):(1@0,1@1) for coordinates\n"
        "  f32[30,64]{1,0:T(8,128)}, {0,1}              XLA\n"
        "  size=(2, 3) stride=(3, 1)                    PyTorch\n"
        "  register: [[0, 1]], lane: [[0, 2], [1, 0]]   Triton's linear layouts\n"
        "  S[(8, 4) : (4@lane, 1)] + R[2 : 1@device]    TVM; ComposeLayout(3, 3, 3, "
        "TileLayout(S[...]))\n"
        "docs/layouts.md has all of them\n",
    .takes = TAKES_JSON | TAKES_OUTPUT,
    .options = options,
    .option_count = COUNT_OF(options),
    .options_size = sizeof(LayoutCommand),
    .least_inputs = 0,
    .most_inputs = 1,
    .run = run,
};
