/* SPDX-License-Identifier: Apache-2.0
 *
 * Register allocation with the solver alone. Each value is in one of three registers or in memory
 * (spilled); two values that are live at the same time need different registers; a copy between two
 * values is free when both are in the same register.
 *
 *   cc registers.c -lpleat_solve -lm
 */
#include <stdio.h>
#include <stdlib.h>

#include <pleat/solve.h>

enum { REGISTERS = 3, CHOICES = REGISTERS + 1, VALUES = 6 };
static const int64_t never = PLEAT_PBQP_INFINITY;

static const struct {
  const char *name;
  int64_t spill; /* the cost of the loads and stores */
} values[VALUES] = {{"a", 20}, {"b", 4}, {"c", 30}, {"d", 12}, {"e", 9}, {"f", 15}};
static const int live_together[][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2},
                                       {1, 3}, {2, 3}, {3, 4}, {4, 5}};
static const int copies[][2] = {{0, 4}, {2, 5}};

static int check(PleatPbqp *p, int result) {
  if (result >= 0) return result;
  fprintf(stderr, "registers: %s\n", pleat_pbqp_error(p));
  exit(1);
}

static void add_edge(PleatPbqp *p, const int *pair, int64_t same, int64_t different) {
  int64_t costs[CHOICES * CHOICES] = {0};
  for (int i = 0; i < REGISTERS; i++)
    for (int j = 0; j < REGISTERS; j++) costs[i * CHOICES + j] = i == j ? same : different;
  check(p, pleat_pbqp_edge(p, pair[0], pair[1], costs));
}

int main(void) {
  PleatPbqp *p = pleat_pbqp_new();
  if (!p) return 1;
  for (int i = 0; i < VALUES; i++)
    check(p, pleat_pbqp_variable(p, CHOICES, (int64_t[CHOICES]){0, 0, 0, values[i].spill}));
  for (size_t i = 0; i < sizeof live_together / sizeof *live_together; i++)
    add_edge(p, live_together[i], never, 0);
  for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) add_edge(p, copies[i], 0, 1);

  PleatPbqpResult result = {.size = sizeof result};
  check(p, pleat_pbqp_solve(p, 1.0, &result));
  if (!result.choices) return 1;
  for (int i = 0; i < VALUES; i++)
    if (result.choices[i] < REGISTERS)
      printf("%s: register %d\n", values[i].name, result.choices[i]);
    else
      printf("%s: memory\n", values[i].name);
  printf("cost %lld, %s\n", (long long)result.cost, result.proved ? "proved least" : "not proved");
  pleat_pbqp_free(p);
  return 0;
}
