#include "tools/bench/bench.h"

#include <fmt/core.h>

#include "framework/core/error.h"
#include "tools/bench/decode.h"
#include "tools/bench/loader.h"
#include "tools/cli/exec_sibling.h"

namespace precast::tools {

int run_bench(const std::vector<std::string>& args) {
  const std::string what = args.empty() ? "" : args[0];
  const std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  if (what == "loader") return run_bench_loader(rest);
  if (what == "decode") return run_bench_decode(rest);
  if (what == "step" || what == "stages" || what == "allreduce") exec_precast_train("bench", args);
  if (what == "--help" || what == "-h") {
    fmt::print(
        "usage: precast bench WHAT [options]   (precast bench WHAT --help)\n\n"
        "  loader      how fast batches come, over batch sizes, workers, processes ...\n"
        "  decode      how fast stored JPEGs are decoded and resized\n"
        "  step        how fast a model trains, on made-up or real data, on one rank or many\n"
        "  stages      what slows training down: reading, processing, or the steps themselves\n"
        "  allreduce   how fast gradients are summed over the ranks\n");
    return 0;
  }
  throw ConfigError(fmt::format("bench: expected loader, decode, step, stages or allreduce, got {}",
                                what.empty() ? "nothing" : "'" + what + "'"));
}

}  // namespace precast::tools
