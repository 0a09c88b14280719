// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of `pleat layout`.
#ifndef PLEAT_CLI_LAYOUT_SHOW_H
#define PLEAT_CLI_LAYOUT_SHOW_H

#include "cli/cli.h"
#include "query/query.h"

typedef struct LayoutCommand {
  const char *batch, *shape, *physical, *order, *pad_value, *show, *is, *equal, *to, *compose,
      *refine, *copy, *product, *other_shape, *at, *at_offset, *box, *slice, *reshape, *banks,
      *axis, *name, *type, *color;
  StringList where, reads;
  int64_t vector, line, element_bytes;
  bool inverse, swizzle, all, help_batch, no_certificates;
} LayoutCommand;

typedef struct LayoutView {
  Cli *cli;
  const LayoutCommand *command;
  QueryOperand operand;
} LayoutView;

#define LAYOUT_SHOW_HELP                                                                           \
  "  summary    the most important answers (without --show)\n"                                     \
  "  picture    the tensor and the memory, in the terminal; logical, memory: one of them\n"        \
  "  svg        the same as SVG\n"                                                                 \
  "  table      each element, its physical index and its offset\n"                                 \
  "  offsets    the tensor with each element's offset\n"                                           \
  "  strides    the stride of each axis, vectors\n"                                                \
  "  padding    the physical indices that hold no element\n"                                       \
  "  lines      cache lines or pages (--line) that the tensor or a --box touches\n"                \
  "  banks      bank conflicts of each --read\n"                                                   \
  "  loops      the loop nest that visits memory in sequence\n"                                    \
  "  c          offset, pack and unpack as C\n"                                                    \
  "  index-map, lambda, named, onednn, cute, xla, torch, bases, shards: that spelling\n"

// Value i of --show: a row of the table, then the spellings. NULL past the last.
const char *layout_show_name(int i);
// Is the value of --show known? False with a diagnostic.
bool layout_show_known(LayoutView *view);
int layout_show(LayoutView *view);
// Asks a question with the fields from the command line. False with diagnostics.
bool layout_view_ask(LayoutView *view, const QueryRow *row, const QueryOperand *a,
                     const QueryOperand *b, QueryReply *reply);
// Prints an answer as text.
void layout_print_reply(LayoutView *view, const QueryRow *row, const QueryReply *reply);
// Answers the lines of the file `path` ("-": standard input) on standard output.
int layout_batch(Context *context, const char *path, bool certificates);
void layout_batch_help(FILE *out);

#endif
