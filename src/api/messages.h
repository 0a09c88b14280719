// SPDX-License-Identifier: Apache-2.0
// The status and messages that a call of the library returns, taken from its context.
#ifndef PLEAT_API_MESSAGES_H
#define PLEAT_API_MESSAGES_H

#include "base/base.h"
#include "pleat/pleat.h"

// The status (pleat.h) of a call, where `done` tells whether the call succeeded. When `messages` is
// not NULL, *messages receives the owned diagnostics, of which the last says how the call failed if
// it did not return; NULL when there are none. The context's diagnostics are cleared.
int messages_take(Context *context, bool done, PleatMessages **messages);
// Hands the context's diagnostics from number *next on to the request's log, and adds to *next.
void messages_log(const PleatRequest *request, Context *context, int *next);
// PLEAT_NO_MEMORY, for a call without a context. *messages, if `messages` is not NULL, says so.
int messages_no_memory(PleatMessages **messages);
// PLEAT_REFUSED, for a call without a context; the message is about the argument `name`.
int messages_refuse(const char *name, const char *why, PleatMessages **messages);

#endif
