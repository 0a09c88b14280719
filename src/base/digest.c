// SPDX-License-Identifier: Apache-2.0
// Computes digests by XXH3, whose functions are compiled into this file, so that no program needs
// the library at run time. Its specification is at https://github.com/Cyan4973/xxHash.
#include "base/digest.h"

#include <inttypes.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

Digest digest_of(const void *data, size_t size) {
  XXH128_hash_t hash = XXH3_128bits(data, size);
  return (Digest){{hash.high64, hash.low64}};
}

bool digest_equal(Digest a, Digest b) {
  return a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

void digest_print(Digest digest, char text[DIGEST_TEXT_SIZE]) {
  snprintf(text, DIGEST_TEXT_SIZE, "%016" PRIx64 "%016" PRIx64, digest.words[0], digest.words[1]);
}
