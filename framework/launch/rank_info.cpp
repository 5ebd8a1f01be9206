#include "framework/launch/rank_info.h"

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"
#include "framework/launch/slurm.h"

namespace precast {
namespace {

constexpr int kMaxRanks = 1'000'000;
constexpr int kMaxPort = 65535;

/// Reads the variables of one source. Errors name the variable and the source.
class Variables {
 public:
  Variables(const Environment& environment, const char* source)
      : environment_(environment), source_(source) {}

  [[nodiscard]] std::optional<std::string> text(const char* name) const {
    const char* value = environment_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }
  [[nodiscard]] std::string required_text(const char* name, std::string_view expected) const {
    const std::optional<std::string> value = text(name);
    if (!value) throw_invalid(name, expected);
    return *value;
  }
  /// A number from `low` to `high`.
  [[nodiscard]] int number(const char* name, int low, int high) const {
    const std::string expected = fmt::format("an integer from {} to {}", low, high);
    const std::string value = required_text(name, expected);
    const auto result = parse_number<int>(value);
    if (!result || *result < low || *result > high) throw_invalid(name, expected);
    return *result;
  }
  [[noreturn]] void throw_invalid(const char* name, std::string_view expected) const {
    const std::optional<std::string> value = text(name);
    throw ConfigError(fmt::format(
        "ranks from {0}: {1}: expected {2}, got {3}. {0} sets it; start the program through {0}, "
        "or unset the variables of {0} to train with one rank",
        source_, name, expected, value ? fmt::format("\"{}\"", *value) : "no value"));
  }

 private:
  const Environment& environment_;
  const char* source_;
};

/// The names of the four variables that a source sets.
struct Names {
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
};

struct Source {
  const char* name;
  Names names;
};

constexpr Source kPrecast{
    "precast",
    {"PRECAST_RANK", "PRECAST_WORLD_SIZE", "PRECAST_LOCAL_RANK", "PRECAST_LOCAL_WORLD_SIZE"}};
constexpr Source kTorchrun{"torchrun", {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}};
constexpr Source kSlurm{"Slurm", {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr}};
constexpr Source kOpenMpi{"Open MPI",
                          {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}};
// PMI does not define the last two; Hydra, the launcher of MPICH and Intel MPI, sets them.
constexpr Source kPmi{"PMI", {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};
constexpr std::array kSources{kPrecast, kTorchrun, kSlurm, kOpenMpi, kPmi};

bool same_source(const Source& source, const Source& other) {
  return std::string_view(source.name) == other.name;
}

/// Slurm also sets rank 0 in batch scripts and interactive shells. There the step number is
/// missing, or is one of the numbers that Slurm reserves.
bool in_srun_step(const Variables& slurm) {
  std::optional<std::string> step = slurm.text("SLURM_STEP_ID");
  if (!step) step = slurm.text("SLURM_STEPID");
  if (!step) return false;
  constexpr unsigned long long kFirstReserved = 0xfffffff0;
  return std::strtoull(step->c_str(), nullptr, 10) < kFirstReserved;
}

bool present(const Source& source, const Environment& environment) {
  const Variables variables(environment, source.name);
  if (!variables.text(source.names.rank)) return false;
  return !same_source(source, kSlurm) ||
         (variables.text(source.names.world) && in_srun_step(variables));
}

bool agree(const Source& a, const Source& b, const Environment& environment) {
  const Variables variables(environment, a.name);
  return variables.text(a.names.rank) == variables.text(b.names.rank) &&
         variables.text(a.names.world) == variables.text(b.names.world);
}

void read_ranks(const Variables& variables, const Names& names, RankInfo& info) {
  info.world = variables.number(names.world, 1, kMaxRanks);
  info.rank = variables.number(names.rank, 0, info.world - 1);
}

/// @param may_miss whether the variables for this host may be missing; all ranks then count as
/// ranks on one host.
void read_local_ranks(const Variables& variables, const Names& names, bool may_miss,
                      RankInfo& info) {
  info.local_world_known = !may_miss || variables.text(names.local_world).has_value();
  info.local_world =
      info.local_world_known ? variables.number(names.local_world, 1, info.world) : info.world;
  info.local_rank = may_miss && !variables.text(names.local_rank)
                        ? info.rank
                        : variables.number(names.local_rank, 0, info.local_world - 1);
}

RankInfo read_precast(const Variables& variables) {
  RankInfo info;
  read_ranks(variables, kPrecast.names, info);
  read_local_ranks(variables, kPrecast.names, false, info);
  constexpr const char* kStore = "PRECAST_STORE";
  const std::string store = variables.required_text(kStore, "HOST:PORT");
  const std::size_t colon = store.rfind(':');
  if (colon == std::string::npos || colon == 0) variables.throw_invalid(kStore, "HOST:PORT");
  info.address = store.substr(0, colon);
  // Removes the brackets of an IPv6 address.
  if (info.address.front() == '[' && info.address.back() == ']') {
    info.address = info.address.substr(1, info.address.size() - 2);
  }
  info.port = parse_number<int>(std::string_view(store).substr(colon + 1)).value_or(0);
  if (info.port < 1 || info.port > kMaxPort) {
    variables.throw_invalid(kStore, fmt::format("HOST:PORT with a port from 1 to {}", kMaxPort));
  }
  return info;
}

RankInfo read_torchrun(const Variables& variables) {
  RankInfo info;
  read_ranks(variables, kTorchrun.names, info);
  // LOCAL_WORLD_SIZE may be missing, because users who set the variables by hand often leave it
  // out. LOCAL_RANK is required: without it, ranks could share a GPU.
  if (info.world > 1) {
    (void)variables.required_text(kTorchrun.names.local_rank, "the rank within this host");
  }
  read_local_ranks(variables, kTorchrun.names, true, info);
  info.address = variables.required_text("MASTER_ADDR", "the host of rank 0");
  info.port = variables.number("MASTER_PORT", 1, kMaxPort);
  return info;
}

/// Number of tasks of this step on this node.
int slurm_local_world(const Variables& variables, const RankInfo& info) {
  constexpr int kMaxNodes = 1'000'000;
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const std::optional<std::string> list = variables.text(name);
    if (!list) continue;
    const int node = variables.number("SLURM_NODEID", 0, kMaxNodes);
    const std::optional<int> tasks = tasks_on_node(*list, node);
    if (!tasks || *tasks < 1 || *tasks > info.world) {
      variables.throw_invalid(name,
                              fmt::format("a list of tasks per node, such as 4(x2),1, with 1 to {} "
                                          "tasks on node {}",
                                          info.world, node));
    }
    return *tasks;
  }
  return variables.number("SLURM_NTASKS_PER_NODE", 1, info.world);
}

/// The node of rank 0. The address of srun is only used as a last resort, because srun may run on a
/// login node.
std::string slurm_address(const Variables& variables) {
  constexpr const char* kNodes = "SLURM_STEP_NODELIST";
  if (const std::optional<std::string> nodes = variables.text(kNodes)) {
    const std::optional<std::vector<std::string>> hosts = expand_hosts(*nodes);
    if (!hosts) variables.throw_invalid(kNodes, "a node list such as node[01-03,07]");
    return hosts->front();
  }
  if (const auto address = variables.text("SLURM_LAUNCH_NODE_IPADDR")) return *address;
  variables.throw_invalid(kNodes, "the nodes of this step");
}

/// A port that is the same on every rank, and usually different for jobs and steps that run at the
/// same time.
int slurm_port(const Variables& variables) {
  constexpr std::int64_t kFirst = 20'000;
  constexpr std::int64_t kPorts = 30'000;
  constexpr std::int64_t kStepsOfAJob = 101;
  const auto number = [&](const char* name, const char* old_name) {
    constexpr int kHighest = std::numeric_limits<int>::max();
    return std::int64_t{variables.number(variables.text(name) ? name : old_name, 0, kHighest)};
  };
  const std::int64_t job = number("SLURM_JOB_ID", "SLURM_JOBID");
  const std::int64_t step = number("SLURM_STEP_ID", "SLURM_STEPID");
  return static_cast<int>(kFirst + (job * kStepsOfAJob + step) % kPorts);
}

RankInfo read_slurm(const Variables& variables) {
  RankInfo info;
  read_ranks(variables, kSlurm.names, info);
  info.local_world = slurm_local_world(variables, info);
  info.local_rank = variables.number("SLURM_LOCALID", 0, info.local_world - 1);
  info.address = slurm_address(variables);
  info.port = slurm_port(variables);
  return info;
}

RankInfo read_mpi(const Variables& variables, const Source& source,
                  const RendezvousEndpoint& fallback) {
  RankInfo info;
  read_ranks(variables, source.names, info);
  read_local_ranks(variables, source.names, same_source(source, kPmi), info);
  info.address = fallback.address;
  info.port = fallback.port;
  return info;
}

RankInfo read(const Source& source, const Environment& environment,
              const RendezvousEndpoint& fallback) {
  const Variables variables(environment, source.name);
  RankInfo info = same_source(source, kPrecast)    ? read_precast(variables)
                  : same_source(source, kTorchrun) ? read_torchrun(variables)
                  : same_source(source, kSlurm)    ? read_slurm(variables)
                                                   : read_mpi(variables, source, fallback);
  info.source = source.name;
  return info;
}

std::string describe(const Source& source, const Environment& environment) {
  const Variables variables(environment, source.name);
  return fmt::format("{} says {}={}, {}={}", source.name, source.names.rank,
                     variables.text(source.names.rank).value_or(""), source.names.world,
                     variables.text(source.names.world).value_or(""));
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

RankInfo find_rank_info(const Environment& environment, const RendezvousEndpoint& fallback) {
  const Source* chosen = nullptr;
  const Source* other = nullptr;  // the first source that disagrees
  for (const Source& source : kSources) {
    if (!present(source, environment)) continue;
    if (chosen == nullptr) {
      chosen = &source;
    } else if (other == nullptr && !agree(*chosen, source, environment)) {
      other = &source;
    }
  }
  if (chosen == nullptr) {
    RankInfo single;
    single.address = fallback.address;
    single.port = fallback.port;
    return single;
  }
  if (other != nullptr && same_source(*chosen, kSlurm)) std::swap(chosen, other);
  RankInfo info = read(*chosen, environment, fallback);
  // There is no warning for precast's launcher, which may itself run under any other source.
  if (other != nullptr && !same_source(*chosen, kPrecast)) {
    info.warning =
        fmt::format("{}, but {}. The values of {} are used", describe(*chosen, environment),
                    describe(*other, environment), chosen->name);
  }
  return info;
}

}  // namespace precast
