// SPDX-License-Identifier: Apache-2.0
// Kernels of other libraries for `bench --against`: the same operator on the same arrays, in the
// same process.
#ifndef PLEAT_CLI_PEER_H
#define PLEAT_CLI_PEER_H

#include "cli/session.h"

typedef struct Peer Peer;

// Loads oneDNN and prepares it for the session's one operator (a matrix product or a 2-d
// convolution). It runs with its own layouts or with row-major ones, whichever is faster. The time
// includes rewrites of inputs and outputs, but not those of constants. NULL with a diagnostic when
// oneDNN is not installed or does not support the operator.
Peer *peer_dnnl(const Session *session);
const char *peer_name(const Peer *peer); // "oneDNN 2.6"
const char *peer_way(const Peer *peer);  // "row-major" or "in its own layouts"
bool peer_run(Peer *peer);               // false when the library failed
const Tensor *peer_output(const Peer *peer);

#endif
