// SPDX-License-Identifier: Apache-2.0
// Other people's kernels, for `bench --against`: the same operator on the same arrays in the same
// process.
#ifndef PLEAT_CLI_PEER_H
#define PLEAT_CLI_PEER_H

#include "cli/session.h"

typedef struct Peer Peer;

// oneDNN, loaded now, made ready for the session's one operator (a product of matrices or a 2-d
// convolution). It runs in its own layouts or in row-major ones, whichever is faster; rewrites of
// what is given and wanted count, those of constants do not. NULL with a diagnostic: it is not
// installed, or has nothing to compare.
Peer *peer_dnnl(const Session *session);
const char *peer_name(const Peer *peer); // "oneDNN 2.6"
const char *peer_way(const Peer *peer);  // "row-major" or "in its own layouts"
bool peer_run(Peer *peer);               // false when the library failed
const Tensor *peer_output(const Peer *peer);

#endif
