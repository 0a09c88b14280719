// SPDX-License-Identifier: Apache-2.0
// Alias analysis of tensor programs: which buffers share memory, which bytes two of them have in
// common, where an element of one is in the other, and whether the layout of the memory can change.
#ifndef PLEAT_SCHEDULE_ALIASES_H
#define PLEAT_SCHEDULE_ALIASES_H

#include "ir/ir.h"

// All buffers over one data variable that a function has or accesses, and other uses of the memory.
typedef struct Aliases {
  Arena *arena;
  const Buffer *buffer; // one of them
  Array(Buffer *) found;
  const char *opaque; // the use of the storage that is not an access; NULL: none
  int pointers;       // uses of the data pointer
  int addresses;      // uses of the address of an element
} Aliases;

// Equal shapes, types, layouts, offsets and separators: an index is the same element in both.
bool buffers_same_description(const Buffer *a, const Buffer *b);
Aliases aliases_find(Context *context, const PrimFunc *func, const Buffer *buffer);
// Why transform_layout cannot change all of them together; NULL: it can.
const char *aliases_layout_obstacle(const Aliases *aliases);

// Makes accesses of views of the buffer's regions, and of declared buffers with another shape over
// its memory, accesses of the buffer, where the places of their elements are proved.
PrimFunc *aliases_resolve(Context *context, const PrimFunc *func, Buffer *buffer);
// Finds the buffer's aliases, in the function or, where they cannot change together, in the one
// that aliases_resolve makes, which *func then is. Returns the obstacle that is left, or NULL.
const char *aliases_find_resolved(Context *context, PrimFunc **func, Buffer *buffer, Aliases *out);

// ---- All memory of a function ------------------------------------------------------------------

typedef enum AliasRole {
  ALIAS_PARAMETER,
  ALIAS_ALLOCATION,
  ALIAS_DECLARATION,
  ALIAS_VIEW, // T.match_buffer of a region
  ALIAS_ROLE_COUNT,
} AliasRole;

typedef struct AliasBuffer {
  const Buffer *buffer;
  AliasRole role;
  const Region *region; // of ALIAS_VIEW: what it is a view of
} AliasBuffer;

typedef enum AliasRelation {
  ALIAS_SAME,      // the same bytes
  ALIAS_CONTAINS,  // the first has all bytes of the second
  ALIAS_WITHIN,    // the other way round
  ALIAS_OVERLAP,   // some bytes of each, unless one has no elements
  ALIAS_DISJOINT,  // no byte
  ALIAS_UNDECIDED, // it depends on sizes or on the iteration, or was not decided
  ALIAS_RELATION_COUNT,
} AliasRelation;

// Two buffers, as numbers in AliasStorage.buffers.
typedef struct AliasPair {
  int a, b;
  AliasRelation relation;
  int64_t bytes; // in both; -1: not constant, or not known
  // Where element vars[0], vars[1], … of buffer `inner` is in buffer `outer`: from `index` on, over
  // `elements` elements, or in part `part` of `parts` equal parts of that element. `index` is NULL
  // where this is not known.
  int inner, outer;
  Expr **vars, **index, *part;
  int elements, parts;
  // ALIAS_UNDECIDED: sizes for which they have bytes in common, and others for which they have
  // none, "n = 2"; NULL where these were not found.
  const char *shared_for, *apart_for;
} AliasPair;

typedef struct AliasStorage {
  Array(AliasBuffer) buffers; // in the order of the program
  Array(AliasPair) pairs;     // of each two buffers
  const char *obstacle;       // to changes of the layout of the first one
} AliasStorage;
typedef Array(AliasStorage) AliasStorages;

// The memory of all parameters and allocations, in the order of the program.
AliasStorages aliases_analyze(Context *context, const PrimFunc *func);

// Where element vars[0], vars[1], … of a buffer is in another one.
typedef struct AliasPlace {
  Expr **vars, **index;
} AliasPlace;
// Where each element of `inner` is in `outer`, which has its bytes and elements of its type; NULL
// where this is not proved.
const AliasPlace *aliases_place(Context *context, const Buffer *inner, const Buffer *outer);

#endif
