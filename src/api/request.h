// SPDX-License-Identifier: Apache-2.0
// Reads what a caller of the library hands over, before anything else looks at it.
#ifndef PLEAT_API_REQUEST_H
#define PLEAT_API_REQUEST_H

#include "base/fields.h"
#include "pleat/pleat.h"

// Copies the request, and checks each of its pointers and counts. False with diagnostics.
bool request_read(Context *context, const PleatRequest *given, PleatRequest *out);
// Replaces *count by the number of threads that the caller's struct states, unless that is 0. False
// with a diagnostic.
bool threads_read(Context *context, int given, int *count);
// Is `tensor` the description of a tensor that may be read? Its memory is not looked at. False with
// a diagnostic that calls it `what` and `name`.
bool tensor_readable(Context *context, const char *what, const char *name,
                     const PleatTensor *tensor);
// Are the tensors of a field, called `what`, readable, and have they names and data? False with a
// diagnostic.
bool named_tensors_check(Context *context, const char *field, const char *what,
                         const PleatNamedTensor *tensors, size_t count);

#endif
