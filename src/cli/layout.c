// SPDX-License-Identifier: Apache-2.0
// `pleat layout`: the layout algebra with no model. Options are turned into the fields of a request
// (layout_request.h), so that the command and --batch cannot say different things.
#include "cli/layout_show.h"

#include <stdlib.h>

static const Option options[] = {
    {"shape", 0, OPTION_TEXT, "1x30x7x7",
     "logical extents: numbers, names (NxCx7x7); by default what SPEC says, or names",
     offsetof(LayoutCommand, shape)},
    {"physical", 0, OPTION_TEXT, "1x2x7x7x16", "physical extents, where not those of the spelling",
     offsetof(LayoutCommand, physical)},
    {"where", 0, OPTION_LIST, "'C % 16 == 0'", "what is known of a name in the shape",
     offsetof(LayoutCommand, where)},
    {"order", 0, OPTION_TEXT, "NCHW", "the logical axes of a named layout, in order",
     offsetof(LayoutCommand, order)},
    {"pad-value", 0, OPTION_TEXT, "0", "what the padding holds: a number, any, unknown",
     offsetof(LayoutCommand, pad_value)},
    {"show", 0, OPTION_TEXT, "WHAT", "one of those below", offsetof(LayoutCommand, show)},
    {"is", 0, OPTION_TEXT, "injective|onto|bijective|identity|permutation|blocking",
     "whether it is; exit 1 when not", offsetof(LayoutCommand, is)},
    {"equal", 0, OPTION_TEXT, "OTHER", "whether both are the same; exit 1 when not",
     offsetof(LayoutCommand, equal)},
    {"inverse", 0, OPTION_FLAG, NULL, "the map from places to elements",
     offsetof(LayoutCommand, inverse)},
    {"to", 0, OPTION_TEXT, "OTHER", "the map from its places to those in another layout",
     offsetof(LayoutCommand, to)},
    {"compose", 0, OPTION_TEXT, "OTHER", "OTHER applied to its places",
     offsetof(LayoutCommand, compose)},
    {"copy", 0, OPTION_TEXT, "OTHER", "what a copy to another layout moves, by resource",
     offsetof(LayoutCommand, copy)},
    {"refine", 0, OPTION_TEXT, "OTHER", "the digits of which both layouts consist",
     offsetof(LayoutCommand, refine)},
    {"product", 0, OPTION_TEXT, "OTHER", "its copies, arranged as OTHER on --other-shape",
     offsetof(LayoutCommand, product)},
    {"other-shape", 0, OPTION_TEXT, "4x4", "the shape of OTHER, where not the same",
     offsetof(LayoutCommand, other_shape)},
    {"at", 0, OPTION_TEXT, "0,17,3,2", "where the element of an index lies",
     offsetof(LayoutCommand, at)},
    {"at-offset", 0, OPTION_TEXT, "37", "the element that lies at an offset",
     offsetof(LayoutCommand, at_offset)},
    {"box", 0, OPTION_TEXT, "c=0:16,h=2:5", "a part of the tensor: start:stop:step by axis",
     offsetof(LayoutCommand, box)},
    {"slice", 0, OPTION_TEXT, "c=0:16,h=::2", "the layout of a part",
     offsetof(LayoutCommand, slice)},
    {"reshape", 0, OPTION_TEXT, "30x49", "the same places under another logical shape",
     offsetof(LayoutCommand, reshape)},
    {"read", 0, OPTION_LIST, "i=0:32,j=0", "what lanes read at once, a range by axis",
     offsetof(LayoutCommand, reads)},
    {"vector", 0, OPTION_INT, "N", "elements that each lane reads",
     offsetof(LayoutCommand, vector)},
    {"banks", 0, OPTION_TEXT, "32x4", "banks and their bytes; 32x4 by default",
     offsetof(LayoutCommand, banks)},
    {"swizzle", 0, OPTION_FLAG, NULL, "the swizzle with the fewest conflicts for every --read",
     offsetof(LayoutCommand, swizzle)},
    {"line", 0, OPTION_INT, "64", "bytes of a cache line, or of a page",
     offsetof(LayoutCommand, line)},
    {"element-bytes", 0, OPTION_INT, "4", "bytes of an element",
     offsetof(LayoutCommand, element_bytes)},
    {"axis", 0, OPTION_TEXT, "NAME", "colour memory by this axis", offsetof(LayoutCommand, axis)},
    {"name", 0, OPTION_TEXT, "NAME", "what --show c calls its functions",
     offsetof(LayoutCommand, name)},
    {"type", 0, OPTION_TEXT, "TYPE", "the element type of --show c", offsetof(LayoutCommand, type)},
    {"all", 0, OPTION_FLAG, NULL, "show large tensors whole", offsetof(LayoutCommand, all)},
    {"color", 0, OPTION_TEXT, "auto|always|never", "colours", offsetof(LayoutCommand, color)},
    {"batch", 0, OPTION_TEXT, "FILE", "answer a JSON object on each line; - is standard input",
     offsetof(LayoutCommand, batch)},
    {"no-certificates", 0, OPTION_FLAG, NULL, "leave certificates out of the answers of --batch",
     offsetof(LayoutCommand, no_certificates)},
    {"help-batch", 0, OPTION_FLAG, NULL, "what the lines of --batch say",
     offsetof(LayoutCommand, help_batch)},
};

// ---- Layouts ----------------------------------------------------------------------------------

// A number where the text is one, the text otherwise.
static json_t *number_or_text(const char *text) {
  char *end;
  double value = strtod(text, &end);
  return *text && !*end ? json_real(value) : json_string(text);
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
  if (command->pad_value)
    json_object_set_new(object, "padding", number_or_text(command->pad_value));
  bool good = query_operand_read(view->cli->context, object, "--", NULL, &view->operand);
  json_decref(object);
  return good;
}

// The other layout of a question; of --compose, on the places of this one. Without a shape of its
// own, on this one's.
static bool read_other(LayoutView *view, const char *spelling, const char *option, bool on_places,
                       QueryOperand *out) {
  const Layout *layout = view->operand.layout;
  Context *context = view->cli->context;
  json_t *object = operand_json(view->command, spelling);
  if (view->command->other_shape)
    json_object_set_new(object, "shape", json_string(view->command->other_shape));
  if (on_places)
    json_object_set_new(object, "shape",
                        json_expressions(context, layout->physical, layout->physical_rank));
  const QueryOperand *like = view->command->product ? NULL : &view->operand;
  bool good = query_operand_read(context, object, option, like, out);
  json_decref(object);
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

static void set_text(json_t *fields, const char *key, const char *text) {
  if (text) json_object_set_new(fields, key, json_string(text));
}

static json_t *question_fields(const LayoutCommand *command) {
  json_t *fields = json_object();
  if (command->at) json_object_set_new(fields, "at", index_json(command->at));
  if (command->at_offset) json_object_set_new(fields, "at", index_json(command->at_offset));
  set_text(fields, "to", command->reshape);
  set_text(fields, "box", command->slice ? command->slice : command->box);
  set_text(fields, "banks", command->banks);
  if (command->reads.count) {
    json_object_set_new(fields, "read", json_string(command->reads.items[0]));
    json_object_set_new(fields, "reads", reads_json(command));
  }
  if (command->vector) json_object_set_new(fields, "vector", json_integer(command->vector));
  if (command->line) json_object_set_new(fields, "line", json_integer(command->line));
  int64_t bytes = command->element_bytes ? command->element_bytes : 4;
  json_object_set_new(fields, "element_bits", json_integer(8 * bytes));
  return fields;
}

// Errors in the fields of a question are errors in the options that say them.
static void name_options(Context *context, const LayoutCommand *command) {
  const struct {
    const char *field, *option;
  } rows[] = {
      {"at", command->at ? "--at" : "--at-offset"},
      {"box", command->slice ? "--slice" : "--box"},
      {"to", "--reshape"},
      {"read", "--read"},
      {"banks", "--banks"},
      {"vector", "--vector"},
      {"line", "--line"},
      {"element_bits", "--element-bytes"},
  };
  for (int i = 0; i < context->diags.count; i++) {
    const SourceFile *file = context->diags.items[i].pos.file;
    for (int j = 0; file && j < COUNT_OF(rows); j++) {
      size_t size = strlen(rows[j].field);
      if (strncmp(file->name, rows[j].field, size) || strcspn(file->name + size, "s[")) continue;
      context->diags.items[i].pos.file =
          source_file_new(context, rows[j].option, file->text, file->size);
    }
  }
}

// The name of the question that the options ask, and the other layout; NULL: none.
static const char *question_of(const LayoutCommand *command, const char **other,
                               const char **option) {
  *other = NULL;
  *option = "";
  if (command->equal) return *other = command->equal, *option = "--equal", "equal";
  if (command->to) return *other = command->to, *option = "--to", "divide";
  if (command->compose) return *other = command->compose, *option = "--compose", "compose";
  if (command->copy) return *other = command->copy, *option = "--copy", "copy";
  if (command->refine) return *other = command->refine, *option = "--refine", "refine";
  if (command->product) return *other = command->product, *option = "--product", "product";
  if (command->inverse) return "inverse";
  if (command->at) return "offset";
  if (command->at_offset) return "logical";
  if (command->slice) return "slice";
  if (command->reshape) return "reshape";
  if (command->swizzle) return "swizzle";
  return command->is;
}

bool layout_view_ask(LayoutView *view, const char *op, const QueryOperand *a, const QueryOperand *b,
                     QueryReply *reply) {
  json_t *fields = question_fields(view->command);
  QueryRequest request = {.context = view->cli->context,
                          .fields = fields,
                          .operation = query_row_find(op),
                          .a = *a,
                          .b = b ? *b : (QueryOperand){0}};
  *reply = (QueryReply){0};
  bool good = request.operation->run(&request, reply);
  json_decref(fields);
  if (!good) name_options(view->cli->context, view->command);
  return good;
}

static int ask(LayoutView *view, const char *op, const char *other, const char *option) {
  QueryOperand second = {0};
  QueryReply reply = {0};
  bool compose = strcmp(op, "compose") == 0, to = strcmp(op, "divide") == 0;
  if (other && !read_other(view, other, option, compose, &second)) {
    if (compose)
      diag_note(view->cli->context, (SourcePos){0}, "its tensor is the places of the layout, %s",
                index_map_text(view->cli->context, view->operand.layout->map));
    return STATUS_BAD;
  }
  // --to asks for OTHER divided by this one, --compose for OTHER after it.
  const QueryOperand *a = compose || to ? &second : &view->operand;
  const QueryOperand *b = compose || to ? &view->operand : &second;
  if (!layout_view_ask(view, op, a, b, &reply)) return STATUS_BAD;
  const char *word = json_string_value(reply.answer);
  bool no = word && (!strcmp(word, "no") || !strcmp(word, "unknown"));
  if (view->cli->json) {
    json_t *object = json_object();
    query_reply_set(&reply, object);
    json_print(view->cli, object);
  } else {
    layout_print_reply(view, op, &reply);
  }
  query_reply_free(&reply);
  return no ? STATUS_BAD : STATUS_DONE;
}

// ---- What says nothing -------------------------------------------------------------------------

static bool uses(const LayoutExpr *e, Str symbol) {
  bool found = e->op == LAYOUT_SYMBOL && e->symbol == symbol;
  for (int i = 0; i < 3 && e->args[i] && !found; i++) found = uses(e->args[i], symbol);
  return found;
}

static bool has_symbol(const Layout *layout, Str symbol) {
  bool found = false;
  for (int k = 0; k < layout->rank && !found; k++) found = uses(layout->shape[k], symbol);
  for (int k = 0; k < layout->physical_rank && !found; k++)
    found = uses(layout->physical[k], symbol) || uses(layout->map->outputs[k], symbol);
  return found;
}

// A symbol that --where defines: it is there if the layout has it where nothing is said of it.
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
  context->diags.count = diags;
  context->error_count = errors;
  return found;
}

// What --where says is of names that are there.
static bool names_are_used(LayoutView *view) {
  const LayoutConditions *said = &view->operand.conditions;
  Str unused = NULL;
  for (int i = 0; i < said->facts.count && !unused; i++)
    if (!has_symbol(view->operand.layout, said->facts.items[i].symbol))
      unused = said->facts.items[i].symbol;
  for (int i = 0; i < said->definition_count && !unused; i++) {
    const LayoutDefinition *d = &said->definitions[i];
    bool itself = d->value->op == LAYOUT_SYMBOL && d->value->symbol == d->symbol;
    if (!itself && !is_defined_for(view, d->symbol)) unused = d->symbol;
  }
  return !unused || diag_error(view->cli->context, (SourcePos){0},
                               "--where: no extent has the name `%s`", unused);
}

static bool is_word_of(const char *word, const char *words) {
  size_t size = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); at += size)
    if ((at == words || at[-1] == ' ') && (at[size] == ' ' || !at[size])) return true;
  return false;
}

// Options that the question has no use for, and questions beside the first.
static bool options_are_used(LayoutView *view, const char *op) {
  const LayoutCommand *c = view->command;
  const char *asked = op ? op : c->show ? c->show : "summary", *more = NULL;
  const struct {
    bool given;
    const char *option, *users, *are;
  } rows[] = {
      {c->reads.count > 0, "--read", "banks swizzle", "--show banks and --swizzle"},
      {c->vector > 0, "--vector", "banks swizzle", "--show banks and --swizzle"},
      {c->banks, "--banks", "banks swizzle svg picture logical memory offsets",
       "--show banks, pictures and --swizzle"},
      {c->line > 0, "--line", "lines svg picture logical memory offsets",
       "--show lines and pictures"},
      {c->box, "--box", "lines", "--show lines"},
      {c->axis, "--axis", "svg picture logical memory offsets", "pictures"},
      {c->all, "--all", "table svg picture logical memory offsets", "--show table and pictures"},
      {c->name, "--name", "c", "--show c"},
      {c->type, "--type", "c", "--show c"},
      {c->other_shape, "--other-shape", "equal divide copy refine product",
       "questions about OTHER"},
  };
  const struct {
    bool given;
    const char *option;
  } questions[] = {
      {c->equal, "--equal"},     {c->to, "--to"},           {c->compose, "--compose"},
      {c->copy, "--copy"},       {c->refine, "--refine"},   {c->product, "--product"},
      {c->inverse, "--inverse"}, {c->at, "--at"},           {c->at_offset, "--at-offset"},
      {c->slice, "--slice"},     {c->reshape, "--reshape"}, {c->swizzle, "--swizzle"},
      {c->is, "--is"},           {c->show, "--show"},
  };
  for (int i = 0; i < COUNT_OF(rows); i++)
    if (rows[i].given && !is_word_of(asked, rows[i].users))
      return diag_error(view->cli->context, (SourcePos){0}, "%s is not used here: it is for %s",
                        rows[i].option, rows[i].are);
  for (int i = 0; i < COUNT_OF(questions); i++) {
    if (questions[i].given && more)
      return diag_error(view->cli->context, (SourcePos){0}, "%s and %s: one question at a time",
                        more, questions[i].option);
    if (questions[i].given) more = questions[i].option;
  }
  return true;
}

// ---- The command ------------------------------------------------------------------------------

static int run(Cli *cli, void *given) {
  LayoutView view = {.cli = cli, .command = given};
  const LayoutCommand *command = given;
  if (command->help_batch) return layout_batch_help(stdout), STATUS_DONE;
  if (command->batch) return layout_batch(cli->context, command->batch, !command->no_certificates);
  if (!cli->inputs.count) {
    diag_error(cli->context, (SourcePos){0}, "expected a layout, such as NCHW16c, or --batch FILE");
    return STATUS_MISUSE;
  }
  if (command->color)
    cli->color = strcmp(command->color, "always") == 0 ||
                 (cli->color && strcmp(command->color, "never") != 0);
  if (command->swizzle && !command->reads.count) {
    diag_error(cli->context, (SourcePos){0},
               "--swizzle needs what is read at once: --read 'i=0:32' --read 'j=0:32'");
    return STATUS_MISUSE;
  }
  const char *other, *option, *op = question_of(command, &other, &option);
  if (!layout_show_known(&view) || !options_are_used(&view, op)) return STATUS_MISUSE;
  if (!read_main(&view) || !names_are_used(&view)) return STATUS_BAD;
  return op ? ask(&view, op, other, option) : layout_show(&view);
}

const Command command_layout = {
    .name = "layout",
    .arguments = "SPEC",
    .summary = "ask a layout anything, with no model: offsets, inverse, padding, banks, pictures",
    .example =
        "  $ pleat layout NCHW16c --shape 1x30x7x7\n"
        "  n, c, h, w -> n, c//16, h, w, c%16\n"
        "  1x30x7x7 in 1x2x7x7x16   1568 places, 98 padding\n"
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
