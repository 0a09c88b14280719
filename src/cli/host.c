// SPDX-License-Identifier: Apache-2.0
// Limits the machine to what `--cpu` and `--threads` allow, and opens the cache for `--no-cache`.
#include "cli/cli.h"

#include <stdlib.h>

// Warns of caches that machine_probe does not understand.
static void check_caches(Context *context) {
  const char *caches = getenv("PLEAT_CACHES");
  HostMachine machine;
  if (caches && *caches && !machine_use_caches(&machine, caches))
    diag_warning(context, (SourcePos){0},
                 "PLEAT_CACHES is '%s', which is no list of three sizes such as 32K,512K,32M\nthe "
                 "caches of this machine are taken",
                 caches);
}

bool cli_machine(Cli *cli, HostMachine *machine) {
  check_caches(cli->context);
  *machine = machine_probe();
  const char *here = machine->level_name;
  bool (*const use)(HostMachine *, const char *) =
      cli->command->runs_nothing ? machine_use : machine_limit;
  if (cli->cpu && !use(machine, cli->cpu))
    return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0},
                         "--cpu %s: this machine has no more than %s; `pleat compile` and `pleat "
                         "plan` can be asked about it all the same",
                         cli->cpu, here);
  if (cli->threads > MOST_THREADS)
    return diag_error_as(cli->context, DIAG_OPTION, (SourcePos){0}, "--threads %lld: at most %d",
                         (long long)cli->threads, MOST_THREADS);
  if (cli->threads) machine->threads = (int)cli->threads;
  return true;
}

Cache *cli_cache(Cli *cli) {
  if (!cli->no_cache && !cli->cache) cli->cache = cache_open(cli->context);
  cli->no_cache |= !cli->cache; // so that there is one warning
  return cli->cache;
}
