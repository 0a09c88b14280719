// SPDX-License-Identifier: Apache-2.0
// Declares how the threads of a warp access shared memory at once, for questions about its banks.
#ifndef PLEAT_ARITH_SHARED_ACCESS_H
#define PLEAT_ARITH_SHARED_ACCESS_H

#include "arith/arith.h"
#include "layout/layout.h"

// An access of a buffer of shared memory inside of loops over threadIdx.
typedef struct SharedAccess {
  Buffer *buffer;
  Expr *const *indices; // as in the program
  bool write;
  SourcePos pos;        // of the statement
  const Layout *layout; // of the buffer, row-major
  LayoutAccess lanes;   // (positions …, lane) -> the index of the element
  LayoutAccess last;    // the same for a last warp of fewer threads; its map is NULL: there is none
  const char *why;      // NULL, or why the layout or the lanes are not known
} SharedAccess;
typedef Array(SharedAccess) SharedAccesses;

// The accesses of `buffer` (NULL: of all buffers of scope "shared…") in the function, in order of
// the text. A warp has 32 threads, whose numbers follow one another with threadIdx.x innermost. The
// positions are the whole warps of a block and the iterations of the other loops that the indices
// use.
void shared_accesses(Context *context, const PrimFunc *func, const Buffer *buffer,
                     SharedAccesses *out);
// The banks of NVIDIA's shared memory, 32 of 4 bytes, for elements of the buffer.
LayoutBanks shared_banks(const Buffer *buffer);
// layout_bank_conflicts of the access; undecided where `why` is set.
LayoutAnswer shared_access_conflicts(Context *context, const SharedAccess *access,
                                     LayoutConflicts *out);

#endif
