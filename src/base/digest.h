// SPDX-License-Identifier: Apache-2.0
// Declares digests of 128 bits (XXH3), by which the cache and saved models name contents and notice
// damage. They detect accidents, not an attacker, who can construct contents of equal digest.
#ifndef PLEAT_BASE_DIGEST_H
#define PLEAT_BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Digest {
  uint64_t words[2];
} Digest;

enum { DIGEST_TEXT_SIZE = 33 }; // of a digest as 32 hexadecimal digits, with the final 0

Digest digest_of(const void *data, size_t size); // about 10 GB/s
bool digest_equal(Digest a, Digest b);
void digest_print(Digest digest, char text[DIGEST_TEXT_SIZE]);

#endif
