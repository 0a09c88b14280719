// SPDX-License-Identifier: Apache-2.0
// Makes random elements. Element i is a function of the seed and i alone, so any part can be made
// anywhere. The mixing is that of SplitMix64 (Steele, Lea, Flood 2014).
#include "runtime/runtime.h"

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static double random_value(ElementType type, uint64_t bits) {
  switch (type.code) {
  case ELEMENT_BOOL: return (double)(bits & 1);
  case ELEMENT_INT:
    return type.bits < 8 ? (double)(bits % ((1u << type.bits) - 1)) - ((1 << (type.bits - 1)) - 1)
                         : (double)(bits % 201) - 100;
  case ELEMENT_UINT: return (double)(bits % (type.bits < 8 ? 1u << type.bits : 101));
  default: return (double)(bits >> 40) * 0x1p-23 - 1;
  }
}

void tensor_fill_random(Tensor *tensor, uint64_t seed) {
  const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
  uint64_t start = mix(seed + golden);
  for (int64_t i = 0, count = tensor_count(tensor); i < count; i++)
    element_set(tensor->type, tensor_element(tensor, i),
                random_value(tensor->type, mix(start + (uint64_t)i * golden)));
}
