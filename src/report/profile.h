// SPDX-License-Identifier: Apache-2.0
// Measures runs of compiled code, and finds in which kernels their time goes and how near these
// come to what the machine can do. The command and the library share these functions.
#ifndef PLEAT_REPORT_PROFILE_H
#define PLEAT_REPORT_PROFILE_H

#include <jansson.h>

#include "pleat/pleat.h"
#include "runtime/compiled.h"

// ---- Runs --------------------------------------------------------------------------------------

// A measurement of `count` runs, after one that is not measured unless count is 1.
typedef struct MeasuredRuns {
  int count; // at least 1
  int steps; // 0: the times of steps are not wanted
  // Runs once, and adds the time of each step to step_ns unless that is NULL. False with a
  // diagnostic.
  bool (*run)(void *env, int64_t *step_ns);
  void (*progress)(void *env, int done, int all); // called before each measured run; may be NULL
  void *env;
} MeasuredRuns;

typedef struct Measurement {
  int runs;
  Spread latency;       // seconds
  int64_t first_end_ns; // when the first run was complete
  // The times of the steps of the run that took about the median, and the seconds of that run.
  // NULL without steps.
  int64_t *step_ns;
  double step_seconds;
} Measurement;

// False with a diagnostic. Polls the context for a call-back that cancels.
bool measure_runs(Context *context, const MeasuredRuns *runs, Measurement *out);

// ---- Profiles ----------------------------------------------------------------------------------

typedef struct ProfileLimits {
  double bandwidth[40]; // GB/s of all threads for copies, by powers of two; 0: not measured yet
} ProfileLimits;

typedef struct Profile {
  PleatProfile data; // without a text
  ProfileLimits limits;
} Profile;

// The profile of steps that were measured with their times. Measures the limits of the machine, in
// about a tenth of a second. Everything is in the arena.
Profile *profile_new(Arena *arena, const CompiledStep *steps, int count,
                     const Measurement *measurement, const HostMachine *machine);
// The table with the totals below it. Steps with one name and one code, such as those of a loop,
// are one row.
const char *profile_text(Arena *arena, Profile *profile);
// Adds "kernels", "run_ms" and "around_ms" to an object. Without a profile, which is then NULL, it
// adds an empty list "kernels".
void profile_add_json(const PleatProfile *profile, json_t *object);

#endif
