// SPDX-License-Identifier: Apache-2.0
// The programs on which random sequences of steps are tried.
#ifndef PLEAT_TESTS_SCHEDULE_PROGRAMS_H
#define PLEAT_TESTS_SCHEDULE_PROGRAMS_H

#include "random_kernels.h"
#include "schedule_check.h"

static const char *const programs[] = {
    HEAD "def f(A: T.Buffer((13, 7), 'float32'), R: T.Buffer((13, 7), 'float32'),\n"
         "      D: T.Buffer((7, 13), 'float32')):\n"
         "    B = T.alloc_buffer((13, 7))\n"
         "    C = T.alloc_buffer((13, 7))\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
         "    for i, j in T.grid(13, 7):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = B[vi, 6 - vj] + R[vi, vj]\n"
         "    for j, i in T.grid(7, 13):\n"
         "        with T.block('D'):\n"
         "            vj, vi = T.axis.remap('SS', [j, i])\n"
         "            D[vj, vi] = T.max(C[vi, vj], T.float32(0)) - B[vi, vj]\n",
    HEAD
    "def f(X: T.Buffer((3, 5, 6), 'float32'), W: T.Buffer((5, 3, 3, 2), 'float32'),\n"
    "      b: T.Buffer((5,), 'float32'), Y: T.Buffer((5, 5, 3), 'float32')):\n"
    "    P = T.alloc_buffer((3, 7, 6))\n"
    "    C = T.alloc_buffer((5, 5, 3))\n"
    "    for c, h, w in T.grid(3, 7, 6):\n"
    "        with T.block('P'):\n"
    "            vc, vh, vw = T.axis.remap('SSS', [c, h, w])\n"
    "            P[vc, vh, vw] = T.if_then_else(1 <= vh and vh < 6, X[vc, vh - 1, vw], "
    "T.float32(0))\n"
    "    for o, h, w, c, k, l in T.grid(5, 5, 3, 3, 3, 2):\n"
    "        with T.block('C'):\n"
    "            vo, vh, vw, vc, vk, vl = T.axis.remap('SSSRRR', [o, h, w, c, k, l])\n"
    "            with T.init():\n"
    "                C[vo, vh, vw] = b[vo]\n"
    "            C[vo, vh, vw] = C[vo, vh, vw] + P[vc, vh + vk, vw * 2 + vl] * W[vo, vc, vk, vl]\n"
    "    for o, h, w in T.grid(5, 5, 3):\n"
    "        with T.block('Y'):\n"
    "            vo, vh, vw = T.axis.remap('SSS', [o, h, w])\n"
    "            Y[vo, vh, vw] = T.max(C[vo, vh, vw], T.float32(0))\n",
    HEAD "def f(A: T.Buffer((9, 10), 'float32'), S: T.Buffer((9,), 'float32')):\n"
         "    M = T.alloc_buffer((9,))\n"
         "    E = T.alloc_buffer((9, 10))\n"
         "    for i, k in T.grid(9, 10):\n"
         "        with T.block('M'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                M[vi] = T.float32(-100)\n"
         "            M[vi] = T.max(M[vi], A[vi, vk])\n"
         "    for i, k in T.grid(9, 10):\n"
         "        with T.block('E'):\n"
         "            vi, vk = T.axis.remap('SS', [i, k])\n"
         "            E[vi, vk] = A[vi, vk] - M[vi]\n"
         "    for i, k in T.grid(9, 10):\n"
         "        with T.block('S'):\n"
         "            vi, vk = T.axis.remap('SR', [i, k])\n"
         "            with T.init():\n"
         "                S[vi] = T.float32(0)\n"
         "            S[vi] = S[vi] + E[vi, vk]\n",
    // Blocks inside of blocks.
    HEAD "def f(A: T.Buffer((12, 8), 'float32'), C: T.Buffer((12, 8), 'float32')):\n"
         "    B = T.alloc_buffer((12, 8))\n"
         "    for i, j in T.grid(12, 8):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
         "    for i in T.grid(4):\n"
         "        with T.block('O'):\n"
         "            vo = T.axis.spatial(4, i)\n"
         "            T.reads(B[vo * 3:vo * 3 + 3, 0:8])\n"
         "            T.writes(C[vo * 3:vo * 3 + 3, 0:8])\n"
         "            D = T.alloc_buffer((3, 8))\n"
         "            for k, j in T.grid(3, 8):\n"
         "                with T.block('D'):\n"
         "                    vk, vj = T.axis.remap('SS', [k, j])\n"
         "                    D[vk, vj] = B[vo * 3 + vk, vj] * T.float32(3)\n"
         "            for k, j in T.grid(3, 8):\n"
         "                with T.block('C'):\n"
         "                    vk, vj = T.axis.remap('SS', [k, j])\n"
         "                    C[vo * 3 + vk, vj] = D[vk, 7 - vj] - T.float32(2)\n",
    // Predicates that read a buffer, sizes of 64 bits, and a view.
    HEAD "def f(A: T.Buffer((T.int64(9), T.int64(7)), 'float32'),\n"
         "      C: T.Buffer((T.int64(9), T.int64(7)), 'float32'),\n"
         "      E: T.Buffer((T.int64(9), T.int64(7)), 'float32')):\n"
         "    B = T.alloc_buffer((T.int64(9), T.int64(7)))\n"
         "    for i, j in T.grid(T.int64(9), T.int64(7)):\n"
         "        with T.block('B'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            B[vi, vj] = A[vi, vj] - T.float32(1)\n"
         "    for i, j in T.grid(T.int64(9), T.int64(7)):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            T.where(B[i, j] > T.float32(0))\n"
         "            C[vi, vj] = A[vi, T.int64(6) - vj] * T.float32(2)\n"
         "    for i, j in T.grid(T.int64(9), T.int64(7)):\n"
         "        with T.block('E'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            T.reads(B[vi, vj], A[vi, vj])\n"
         "            T.writes(E[vi, vj])\n"
         "            S = T.match_buffer(B[vi, vj], ())\n"
         "            E[vi, vj] = S[()] + A[vi, vj]\n",
    // Reductions that are nested, under a condition, and into a buffer that is used again.
    HEAD "def f(A: T.Buffer((6, 5, 4), 'float32'), C: T.Buffer((6, 5), 'float32')):\n"
         "    S = T.alloc_buffer((6, 5))\n"
         "    for i, j, k in T.grid(6, 5, 4):\n"
         "        with T.block('S'):\n"
         "            vi, vj, vk = T.axis.remap('SSR', [i, j, k])\n"
         "            with T.init():\n"
         "                S[vi, vj] = T.float32(1)\n"
         "            S[vi, vj] = S[vi, vj] + T.if_then_else(vk > 0, A[vi, vj, vk - 1], "
         "T.float32(2))\n"
         "    for i, j in T.grid(6, 5):\n"
         "        with T.block('T'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            T.where(i * 5 + j < 27)\n"
         "            S[vi, vj] = S[vi, vj] * T.float32(2)\n"
         "    for i, j in T.grid(6, 5):\n"
         "        with T.block('C'):\n"
         "            vi, vj = T.axis.remap('SS', [i, j])\n"
         "            C[vi, vj] = S[vi, vj] + A[vi, vj, 3]\n",
};

// One of 20 programs.
static inline const char *program_of(uint64_t seed) {
  uint64_t at = seed % (COUNT_OF(programs) + COUNT_OF(random_kernels));
  return at < COUNT_OF(programs) ? programs[at] : random_kernels[at - COUNT_OF(programs)];
}

#endif
