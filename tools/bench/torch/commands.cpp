#include "tools/bench/torch/commands.h"

#include <fmt/core.h>

#include "framework/core/error.h"

namespace precast::tools {

int run_torch_bench(const std::vector<std::string>& args) {
  const std::string what = args.empty() ? "nothing" : args[0];
  const std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  if (what == "step") return run_bench_step(rest);
  if (what == "stages") return run_bench_stages(rest);
  if (what == "allreduce") return run_bench_allreduce(rest);
  throw ConfigError(fmt::format("bench: expected step, stages or allreduce, got {}", what));
}

}  // namespace precast::tools
