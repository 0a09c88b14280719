// SPDX-License-Identifier: Apache-2.0
// Holds the table of intrinsics.
#include "ir/intrinsic.h"

#define VOID INTRINSIC_VOID
#define HANDLE INTRINSIC_HANDLE
#define BOOL INTRINSIC_BOOL
#define INT32 INTRINSIC_INT32
#define UINT32 INTRINSIC_UINT32
#define UINT64 INTRINSIC_UINT64
#define OPERAND_0 INTRINSIC_OPERAND_0
#define OPERAND_1 INTRINSIC_OPERAND_1
#define GIVEN INTRINSIC_GIVEN
#define GIVEN_LAST INTRINSIC_GIVEN_LAST
#define STATED INTRINSIC_STATED
#define PURE true

static const Intrinsic table[] = {
#define INTRINSIC(name, newer, least, most, type, is_pure)                                         \
  {#name, newer, least, most, type, is_pure},
#include "ir/intrinsics.def"
#undef INTRINSIC
};

const Intrinsic *intrinsic_find(const char *name) {
  for (int i = 0; i < COUNT_OF(table); i++)
    if (!strcmp(table[i].name, name) || !strcmp(table[i].newer, name)) return &table[i];
  return NULL;
}

const Intrinsic *intrinsic_at(int i) {
  return i < COUNT_OF(table) ? &table[i] : NULL;
}

DType intrinsic_type(const Intrinsic *intrinsic, Expr *const *args, int count) {
  switch (intrinsic->type) {
  case INTRINSIC_HANDLE: return DTYPE_HANDLE;
  case INTRINSIC_BOOL: return DTYPE_BOOL;
  case INTRINSIC_INT32: return DTYPE_INT32;
  case INTRINSIC_UINT32: return DTYPE(TYPE_UINT, 32);
  case INTRINSIC_UINT64: return DTYPE(TYPE_UINT, 64);
  case INTRINSIC_OPERAND_0: return count > 0 ? args[0]->type : DTYPE_VOID;
  case INTRINSIC_OPERAND_1: return count > 1 ? args[1]->type : DTYPE_VOID;
  case INTRINSIC_VOID:
  case INTRINSIC_STATED:
  case INTRINSIC_GIVEN:
  case INTRINSIC_GIVEN_LAST: break;
  }
  return DTYPE_VOID;
}
