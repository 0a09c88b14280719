// SPDX-License-Identifier: Apache-2.0
// Defines the format of saved programs. A file has four sections: the header, the description of
// the program, its code and its weights. Each section is padded with zeros to whole pages, so that
// the weights can be mapped. Numbers are little-endian.
#ifndef PLEAT_RUNTIME_SAVED_H
#define PLEAT_RUNTIME_SAVED_H

#include "base/digest.h"
#include "runtime/compiled.h"

// Changed whenever the meaning of a file changes.
enum { SAVED_FORMAT = 7 };
enum {
  SAVED_PAGE = 4096,
  SAVED_CHUNK = 1 << 20, // bytes of the weights that have a digest of their own
  SAVED_TEXT = 24,
  SAVED_MOST_RANK = 32,
};

// The magic begins with a byte that no text has and ends with a line break that conversions of
// texts change.
#define SAVED_MAGIC "\x89PLEAT\r\n"

// The fields up to `library` are the same in all formats.
typedef struct SavedHeader {
  char magic[8];
  uint32_t format, reserved;
  char library[SAVED_TEXT];                             // the version that wrote the file
  char cpu[SAVED_TEXT];                                 // the processor level that the code needs
  uint64_t description_bytes, code_bytes, weight_bytes; // multiples of the page
  Digest description;                                   // of the section with its padding
  char zeros[SAVED_PAGE - 104 - sizeof(Digest)];
  Digest header; // of the bytes before it
} SavedHeader;
_Static_assert(sizeof(SavedHeader) == SAVED_PAGE, "the header is one page");

// The description is a sequence of integers of 64 bits and texts, which are a length and then the
// bytes. `saved_write.c` and `saved_read.c` have a function for each of these parts:
//
//   name, arena bytes
//   digest of the code with its padding; count of imports; their names
//   weight bytes; for each chunk of the weights: its digest
//   count of constants; for each: offset in the weights, bytes
//   count of inputs; for each: argument, length of the known contents, known contents
//   count of outputs; for each: argument
//   count of steps; for each: name; why it may be slow, or no text; number of the kernel;
//                             operations (a double); bytes of its tensors;
//                             count of regions, for each: offset in the code, extent, chunks;
//                             count of arguments, for each: kind, number, offset;
//                             count of conditions, for each: kind, number, offset, value;
//                             1 and a call when a function of the caller runs in place of code
//
// A call is the name of the function, that of the node, the number of the way, and the counts of
// inputs and outputs; for each of them its name, element type, rank, extents, and layout as text;
// then the count of attributes, and for each its name, text, whether it is a list, and its numbers.
//
// An argument is its name, the code and bits of its element type, its rank and its extents.

static inline uint64_t saved_padded(uint64_t bytes) {
  return (bytes + SAVED_PAGE - 1) / SAVED_PAGE * SAVED_PAGE;
}

#endif
