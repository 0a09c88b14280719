// SPDX-License-Identifier: Apache-2.0
// Formats the source text of scripts, and rewrites the syntax of older versions of TVMScript. Both
// change the text and keep its comments; script.h reads and prints programs.
#ifndef PLEAT_SCRIPT_FORMAT_H
#define PLEAT_SCRIPT_FORMAT_H

#include "script/python.h"

typedef struct FormatOptions {
  bool upgrade; // rewrite older syntax
  bool newer;   // with `upgrade`: use the names of TVM in 2026 (T.sblock, tirx)
} FormatOptions;

// Writes the file with its functions and classes of TVMScript formatted; other Python stays
// as it is. The tokens of the result are those of the file, or of the file after the upgrade. False
// with diagnostics when the file cannot be read.
bool script_format(Context *context, const SourceFile *file, const FormatOptions *options,
                   Text *out);

// The text of the file in today's syntax:
//
//   with tir.block([16, tir.reduce_axis(0, 8)], "B") as [vi, vk]:
//       tir.bind(vi, i * 4 + j)
//       tir.bind(vk, k)
//
// becomes
//
//   with tir.block("B"):
//       vi = tir.axis.S(16, i * 4 + j)
//       vk = tir.axis.R(8, k)
//
// Blocks without T.bind are bound to the loops around them in their order, and a block without
// loops gets a loop for each block variable, as TVM did before RFC 41. NULL with diagnostics.
const SourceFile *script_upgrade(Context *context, const SourceFile *file, bool newer);

// The range of the file that a definition at the outermost level covers: its decorators, heading
// and suite.
SourcePos py_definition_range(const PyNode *definition);
// The number of the first token that begins at `position` or after it.
int py_token_at(const TokenArray *tokens, int32_t position);
// The end of the last token before `end` that is text; the range of a suite ends where the next
// statement begins.
int32_t py_text_end(const TokenArray *tokens, int32_t end);

#endif
