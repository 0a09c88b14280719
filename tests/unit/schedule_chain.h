// SPDX-License-Identifier: Apache-2.0
// The program on which the steps are tried that need no particular one.
#ifndef PLEAT_TESTS_SCHEDULE_CHAIN_H
#define PLEAT_TESTS_SCHEDULE_CHAIN_H

#include "schedule_check.h"

// Two stages, of which the second reads the transpose of what the first writes.
static const char *const chain =
    HEAD "def f(A: T.Buffer((13, 7), 'float32'), D: T.Buffer((7, 13), 'float32')):\n"
         "    B = T.alloc_buffer((13, 7))\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "    for j, i in T.grid(7, 13):\n"
         "        with T.block('D'):\n"
         "            vj, vi = T.axis.remap('SS', [j, i])\n"
         "            D[vj, vi] = B[vi, vj] + T.float32(1)\n";

#endif
