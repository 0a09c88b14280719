// SPDX-License-Identifier: Apache-2.0
// Writes manual pages with the macros of man(7), which groff and mandoc both read.
#include "cli/manual.h"

// ---- Text -------------------------------------------------------------------------------------

// Writes `size` bytes so that they appear as they are: in roff a backslash, and a dot or a quote at
// the start of a line, are commands, and some ASCII characters would become typographic ones.
static void put_text(FILE *out, const char *text, size_t size) {
  static const struct {
    char character;
    const char *roff;
  } escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'^', "\\(ha"},
                 {'~', "\\(ti"}, {'`', "\\(ga"}, {'\'', "\\(aq"}};
  if (size && text[0] == '.') fputs("\\&", out);
  for (size_t i = 0; i < size; i++) {
    const char *roff = NULL;
    for (int k = 0; k < COUNT_OF(escapes); k++)
      if (escapes[k].character == text[i]) roff = escapes[k].roff;
    if (roff)
      fputs(roff, out);
    else
      fputc(text[i], out);
  }
}

static void put(FILE *out, const char *text) {
  put_text(out, text, strlen(text));
}

// Breaks a text into lines of at most 62 columns, where it has spaces.
static void put_lines(FILE *out, const char *text) {
  enum { COLUMNS = 62 };
  for (const char *end; *text; text = end + (*end == ' ')) {
    size_t size = strlen(text);
    end = text + size;
    const char *space = size > COLUMNS ? memrchr(text, ' ', COLUMNS) : NULL;
    if (!space && size > COLUMNS) space = strchr(text, ' ');
    if (space) end = space;
    put_text(out, text, (size_t)(end - text));
    fputc('\n', out);
  }
}

// A text as a sentence, with a capital letter and a full stop.
static void put_sentence(FILE *out, const char *text) {
  char sentence[512];
  snprintf(sentence, sizeof sentence, "%s.", text);
  if (sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = (char)(sentence[0] - 'a' + 'A');
  put_lines(out, sentence);
}

// Text in which the lines that are indented by two spaces stay as they are, and the others are
// paragraphs.
static void put_example(FILE *out, const char *text) {
  bool verbatim = false, first = true; // the heading has made the space before the first part
  for (const char *end; *text; text = *end ? end + 1 : end) {
    end = strchrnul(text, '\n');
    bool indented = end - text > 1 && text[0] == ' ' && text[1] == ' ';
    if (end == text) continue; // the space between parts comes from the macros
    if (verbatim && !indented) fputs(".EE\n", out);
    if (!first && !(verbatim && indented)) fputs(".PP\n", out);
    if (!verbatim && indented) fputs(".EX\n", out);
    first = false;
    verbatim = indented;
    put_text(out, indented ? text + 2 : text, (size_t)(end - text) - (indented ? 2 : 0));
    fputc('\n', out);
  }
  if (verbatim) fputs(".EE\n", out);
}

// ---- Parts of a page --------------------------------------------------------------------------

static void put_heading(FILE *out, const char *name, const char *date) {
  fputs(".\\\" Made from the tables of options of the command; do not edit.\n.TH ", out);
  for (const char *p = name; *p; p++) fputc(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p, out);
  fprintf(out, " 1 \"%s\" \"Pleat %s\" \"User Commands\"\n.SH NAME\n", date, PLEAT_VERSION);
}

static void put_option(FILE *out, const Option *option) {
  fputs(".TP\n", out);
  if (option->letter) fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
  fputs("\\fB\\-\\-", out);
  put(out, option->name);
  fputs("\\fR", out);
  if (option->value) {
    fputs(option->kind == OPTION_OPTIONAL ? "[=\\fI" : " \\fI", out);
    put(out, option->value);
    fputs(option->kind == OPTION_OPTIONAL ? "\\fR]" : "\\fR", out);
  }
  fputc('\n', out);
  put_sentence(out, option->help);
  if (option->kind == OPTION_LIST || option->kind == OPTION_OPTIONAL)
    fputs("The option can be given several times.\n", out);
}

typedef struct ManualItem {
  const char *term, *text;
} ManualItem;

static void put_item(FILE *out, const ManualItem *item) {
  fprintf(out, ".TP\n.B %s\n", item->term);
  put_lines(out, item->text);
}

static void put_items(FILE *out, const char *heading, const ManualItem *items, int count) {
  fprintf(out, ".SH %s\n", heading);
  for (int i = 0; i < count; i++) put_item(out, &items[i]);
}

static void put_exit_status(FILE *out) {
  static const ManualItem items[] = {
      {"0", "The command has done what was asked."},
      {"1", "The input is not valid, or a check or comparison failed."},
      {"2", "The command was used wrongly, for example with an unknown option."},
      {"3", "An internal error occurred, or memory is exhausted."}};
  put_items(out, "EXIT STATUS", items, COUNT_OF(items));
}

static void put_json(FILE *out) {
  fputs(".SH JSON\n", out);
  put_lines(out,
            "With --json, the result is one object on standard output. When there are errors or "
            "warnings, it has the field \"messages\", a list of objects, and nothing is on "
            "standard error; a command that fails without a result prints this field alone. "
            "The exit status is the same as without --json. A field whose value is not known "
            "is null.");
  static const ManualItem items[] = {
      {"severity", "\"error\" or \"warning\"; for a note, \"note\"."},
      {"code", "The kind of fault, a word that programs may compare with. pleat.h lists them."},
      {"file", "The file, or the option or part of the request that is wrong."},
      {"line\\fR, \\fBcolumn\\fR, \\fBwidth",
       "The position in the file, from 1, and the number of bytes that it marks."},
      {"source", "The line of the file."},
      {"node", "The name of the model's node."},
      {"text", "The message. Further lines explain it."},
      {"notes", "A list of objects with these fields, which belong to the message."}};
  for (int i = 0; i < COUNT_OF(items); i++) put_item(out, &items[i]);
}

static void put_see_also(FILE *out, const Command *self) {
  fputs(".SH SEE ALSO\n", out);
  if (self) fputs(".BR pleat (1),\n", out);
  for (int i = 0, last = COMMAND_COUNT - 1; i < COMMAND_COUNT; i++) {
    if (command_table[i] == self) continue;
    bool end = i == last || (i == last - 1 && command_table[last] == self);
    fprintf(out, ".BR pleat\\-%s (1)%s\n", command_table[i]->name, end ? "" : ",");
  }
}

// ---- Pages ------------------------------------------------------------------------------------

// The help of a program whose name is that of the subcommand's page, pleat-check.
static void put_other_program(FILE *out, const char *name, const char *help) {
  fputs(".SH THE PROGRAM ", out);
  put(out, name);
  fputs("\n.EX\n", out);
  for (const char *end; *help; help = end + (*end != 0)) {
    end = strchrnul(help, '\n');
    put_text(out, help, (size_t)(end - help));
    fputc('\n', out);
  }
  fputs(".EE\n", out);
}

void manual_page(const Command *command, const char *date, const char *other_help, FILE *out) {
  char name[64];
  const Option *option;
  snprintf(name, sizeof name, "pleat-%s", command->name);
  put_heading(out, name, date);
  put(out, name);
  fputs(" \\- ", out);
  put_lines(out, command->summary);
  fprintf(out, ".SH SYNOPSIS\n\\fBpleat %s\\fR ", command->name);
  if (*command->arguments) {
    fputs("\\fI", out);
    put(out, command->arguments);
    fputs("\\fR ", out);
  }
  fputs("[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n", out);
  put_sentence(out, command->summary);
  fputs(".SH OPTIONS\n", out);
  for (int i = 0; (option = command_option(command, i)); i++) put_option(out, option);
  if (command->takes & TAKES_JSON) put_json(out);
  put_exit_status(out);
  fputs(".SH EXAMPLES\n", out);
  put_example(out, command->example);
  if (other_help) put_other_program(out, name, other_help);
  put_see_also(out, command);
}

static void put_environment(FILE *out) {
  static const ManualItem items[] = {
      {"PLEAT_CACHE",
       "The folder in which compiled code is kept; pleat in XDG_CACHE_HOME, or in "
       ".cache of the home folder, by default. The value off switches the cache off."},
      {"PLEAT_CACHE_SIZE", "The most bytes in this folder, such as 500M."},
      {"PLEAT_CACHES",
       "The caches of the machine for which code is made, if it is another one: the bytes of the "
       "first and the second level of a core and of the third level, such as 32K,512K,32M."},
      {"PLEAT_REGION_CYCLES",
       "The work in processor cycles for which another thread is started, 8000 by default. Smaller "
       "loops run in one thread. With 0 every loop is given to all threads."},
      {"PLEAT_POISON",
       "With 1, all memory whose contents are undefined is NaN when a run begins, padding "
       "included. Tests use it, with PLEAT_CACHE=off."},
      {"NO_COLOR", "If it is set, the output has no colours."},
      {"TMPDIR", "The folder of temporary files; /tmp by default."},
      {"CC, CFLAGS",
       "The C compiler and its options, where code is made through C. A build without "
       "LLVM makes all code in this way."}};
  put_items(out, "ENVIRONMENT", items, COUNT_OF(items));
}

void manual_main_page(const char *date, FILE *out) {
  put_heading(out, "pleat", date);
  fputs("pleat \\- compile tensor programs, and answer questions about layouts\n"
        ".SH SYNOPSIS\n"
        "\\fBpleat\\fR \\fISUBCOMMAND\\fR [\\fIOPTIONS\\fR] \\fIFILE\\fR\n"
        ".br\n"
        "\\fBpleat\\fR \\fISUBCOMMAND\\fR \\fB\\-h\\fR\n"
        ".br\n"
        "\\fBpleat \\-\\-version\\fR\n"
        ".SH DESCRIPTION\n",
        out);
  put_lines(out, "Pleat reads a model (ONNX) or a kernel (TVMScript), decides how every tensor is "
                 "stored in memory, proves that each such decision keeps the meaning of the "
                 "program, and makes native code from it.");
  fputs(".SH SUBCOMMANDS\n", out);
  for (int i = 0; i < COMMAND_COUNT; i++) {
    fprintf(out, ".TP\n.BR pleat\\-%s (1)\n", command_table[i]->name);
    put_sentence(out, command_table[i]->summary);
  }
  static const ManualItem items[] = {
      {"\\-h\\fR, \\fB\\-\\-help",
       "Print the subcommands; after a subcommand: its options and a worked example."},
      {"\\-\\-version", "Print the version and the optional parts of this build."}};
  put_items(out, "OPTIONS", items, COUNT_OF(items));
  put_environment(out);
  put_exit_status(out);
  put_see_also(out, NULL);
}
