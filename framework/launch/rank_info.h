#pragma once

#include <functional>
#include <string>

#include "framework/core/export.h"

namespace precast {

/// Returns the value of an environment variable, or null if it is not set. An empty value counts as
/// not set.
using Environment = std::function<const char*(const char*)>;

/// This process's own environment.
[[nodiscard]] PRECAST_API Environment process_environment();

/// The rank of this process among the processes that train together, and the address where they
/// meet.
struct RankInfo {
  /// From 0 to world - 1.
  int rank = 0;
  int world = 1;
  /// From 0 to local_world - 1, among the ranks of this host.
  int local_rank = 0;
  int local_world = 1;
  /// Whether the environment contains local_world. If it does not, local_world is world, which is
  /// too large if there are several hosts.
  bool local_world_known = true;
  /// Host of rank 0 or, with precast's launcher, of the store; under MPI and for "single", the
  /// address of the caller's RendezvousEndpoint.
  std::string address;
  int port = 0;
  /// The program that started the process: "precast", "torchrun", "Slurm", "Open MPI", "PMI", or
  /// "single".
  std::string source = "single";
  /// A warning if two sources disagree: it shows their values and says which source was used.
  /// Otherwise empty, and always empty with precast's launcher, which may itself run under any
  /// other source. Only one rank should print it.
  std::string warning;
};

/// Where the ranks meet if the program that started them does not provide this (MPI, PMI): the keys
/// dist.address and dist.port of the recipe.
struct RendezvousEndpoint {
  std::string address = "localhost";
  int port = 12355;
};

/// Determines the rank from the environment variables of the program that started this one. The
/// first match is used: precast's own launcher, torchrun, Slurm (srun), Open MPI, PMI (MPICH, Intel
/// MPI). The table in README.md lists their variables. If Slurm and MPI disagree, MPI has
/// precedence: mpirun may have started its daemons with srun, and the Slurm variables then describe
/// the daemons.
/// @throws ConfigError naming the variable, its value, what was expected and the source.
[[nodiscard]] PRECAST_API RankInfo find_rank_info(const Environment& environment,
                                                  const RendezvousEndpoint& fallback = {});

}  // namespace precast
