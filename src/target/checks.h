// SPDX-License-Identifier: Apache-2.0
// Lists what a program's function NAME_call checks of its arguments, which are DLPack's tensors,
// for the targets to write down.
#ifndef PLEAT_TARGET_CHECKS_H
#define PLEAT_TARGET_CHECKS_H

#include "target/target.h"

// The value of an argument that a check compares. The fields of DLPack's DLTensor are at the byte
// offsets of DlpackOffset.
typedef enum TargetCheckValue {
  TARGET_CHECK_DEVICE, // int32
  TARGET_CHECK_RANK,   // int32
  TARGET_CHECK_CODE,   // uint8; of the element type, like the next two
  TARGET_CHECK_BITS,   // uint8
  TARGET_CHECK_LANES,  // uint16
  TARGET_CHECK_EXTENT, // int64, shape[axis]
  TARGET_CHECK_STRIDE, // int64, strides[axis]; as expected where strides is NULL
  TARGET_CHECK_NULL,   // 1 where the pointer to the memory is NULL, otherwise 0
  TARGET_CHECK_ALIGN,  // the address of the first element, modulo the bytes of an element
} TargetCheckValue;

enum DlpackOffset {
  DLPACK_DATA = 0,
  DLPACK_DEVICE = 8,
  DLPACK_RANK = 16,
  DLPACK_CODE = 20,
  DLPACK_BITS = 21,
  DLPACK_LANES = 22,
  DLPACK_SHAPE = 24,
  DLPACK_STRIDES = 32,
  DLPACK_OFFSET = 40,
};

typedef struct TargetCheck {
  TargetCheckValue value;
  int argument; // inputs come first, then outputs
  int axis;     // of extents and strides
  int64_t expected;
  int64_t unit;     // TARGET_CHECK_ALIGN: the bytes of an element
  const char *what; // "argument 1 'B': extent of axis 0"
} TargetCheck;
typedef Array(TargetCheck) TargetChecks;

// In an order in which each check may rely on those before it. Of the context's scratch.
TargetChecks target_checks(Context *context, const TargetProgram *program);
// The texts of NULL arguments, and of a wrong number of them.
const char *target_check_absent(Context *context, const TargetProgram *program, int argument);
#define TARGET_CHECK_COUNT_TEXT "number of arguments"

#endif
