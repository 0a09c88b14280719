// SPDX-License-Identifier: Apache-2.0
// pleat-manual writes one manual page or one completion to standard output:
//   pleat-manual man pleat | man SUBCOMMAND [FILE] | bash | zsh
// where FILE has the help of the program pleat-SUBCOMMAND, which the page then describes as well.
// It is a program of the build and is not installed. SOURCE_DATE_EPOCH gives the date of the pages.
#include "cli/manual.h"

#include <stdlib.h>
#include <time.h>

#include "cli/layout_show.h"
#include "lower/lower.h"

// ---- Values -----------------------------------------------------------------------------------

static const char *pass_name(int i) {
  const LowerPass *pass = lower_pass_at(i);
  return pass ? pass->name : NULL;
}

// Names in the help that stand for words of a table.
static const struct {
  const char *value;
  const char *(*word)(int i); // NULL past the last
} tables[] = {{"PASS", pass_name}, {"A,B", pass_name}, {"WHAT", layout_show_name}};

ManualValue manual_value_kind(const Option *option) {
  static const char *const files[] = {"FILE", ".py", ".json"};
  const char *value = option->value;
  if (!value) return VALUE_NONE;
  if (strchr(value, '|')) return VALUE_WORDS;
  for (int i = 0; i < COUNT_OF(tables); i++)
    if (strcmp(value, tables[i].value) == 0) return VALUE_WORDS;
  if (strcmp(value, "DIR") == 0) return VALUE_FOLDER;
  if (strncmp(value, "NAME=FILE", 9) == 0) return VALUE_NAMED_FILE;
  for (int i = 0; i < COUNT_OF(files); i++)
    if (text_ends_with(value, files[i])) return VALUE_FILE;
  return VALUE_FREE;
}

void manual_value_words(const Option *option, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < COUNT_OF(tables); i++) {
    const char *word;
    if (strcmp(option->value, tables[i].value) != 0) continue;
    for (int k = 0; (word = tables[i].word(k)) && used < size; k++)
      used += (size_t)snprintf(text + used, size - used, "%s%s", k ? " " : "", word);
    return;
  }
  snprintf(text, size, "%s", option->value);
  for (char *p = text; (p = strchr(p, '|'));) *p = ' ';
}

bool manual_takes_files(const Command *command) {
  return strstr(command->arguments, "MODEL") || strstr(command->arguments, "KERNEL");
}

// ---- The program ------------------------------------------------------------------------------

static const char *page_date(void) {
  static char text[32];
  const char *epoch = getenv("SOURCE_DATE_EPOCH");
  time_t now = epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
  struct tm parts;
  gmtime_r(&now, &parts);
  strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

// The text of a file, NULL for none.
static const char *file_text(const char *path) {
  static char text[1 << 16];
  FILE *file = fopen(path, "r");
  size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  return size ? text : NULL;
}

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "", *name = argc > 2 ? argv[2] : "";
  const Command *command = command_find(name);
  if (strcmp(kind, "man") == 0 && strcmp(name, "pleat") == 0)
    manual_main_page(page_date(), stdout);
  else if (strcmp(kind, "man") == 0 && command)
    manual_page(command, page_date(), argc > 3 ? file_text(argv[3]) : NULL, stdout);
  else if (strcmp(kind, "bash") == 0)
    manual_bash(stdout);
  else if (strcmp(kind, "zsh") == 0)
    manual_zsh(stdout);
  else
    return fprintf(stderr, "usage: pleat-manual man NAME [FILE] | bash | zsh\n"), STATUS_MISUSE;
  return fflush(stdout) || ferror(stdout) ? STATUS_BAD : STATUS_DONE;
}
