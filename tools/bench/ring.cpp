#include "tools/bench/ring.h"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/ring/consumer.h"
#include "framework/core/format.h"
#include "framework/core/progress.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stopwatch.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// Reads the ring to its end. The time is measured from the first batch.
ordered_json read_all(const std::string& name) {
  data::RingConsumer ring(name, {.mode = data::RingJoin::Mode::position, .position = {}});
  std::uint64_t batches = 0, samples = 0;
  std::optional<Stopwatch> watch;
  Progress progress;
  while (ring.begin_pass()) {
    while (const auto batch = ring.next()) {
      if (!watch) {
        watch.emplace();
        continue;
      }
      samples += batch->sample_ids.size();
      ++batches;
      if (progress.due())
        progress.show(fmt::format("{}, {:.0f} samples/s", format_count(batches, "batch"),
                                  static_cast<double>(samples) / watch->seconds()));
    }
  }
  const double seconds = watch ? watch->seconds() : 0;
  return {{"ring", name},
          {"batches", batches},
          {"samples", samples},
          {"seconds", seconds},
          {"samples_per_second", seconds > 0 ? static_cast<double>(samples) / seconds : 0},
          {"cpu_seconds", watch ? watch->cpu_seconds() : 0}};
}

}  // namespace

int run_bench_ring(const std::vector<std::string>& args) {
  Arguments arguments(
      "bench ring NAME [options]",
      "Reads all batches of a ring and discards them. The first batch starts the clock and is not "
      "counted.");
  arguments.positional("NAME", "the ring, as in ring://NAME");
  arguments.options().add_options()("json", kJsonHelp);
  arguments.example("precast bench ring data", "after `precast serve recipe.yaml --as data &`");
  arguments.exit_codes({10, 13});
  if (!arguments.parse(args)) return 0;
  const ordered_json figures = read_all(arguments.text("NAME"));
  if (arguments.has("json")) {
    print_json(figures);
  } else {
    fmt::print("{}, {} in {:.1f} s: {:.0f} samples/s, {:.2f} CPU-seconds of this process\n",
               format_count(figures.at("batches").get<std::uint64_t>(), "batch"),
               format_count(figures.at("samples").get<std::uint64_t>(), "sample"),
               figures.at("seconds").get<double>(), figures.at("samples_per_second").get<double>(),
               figures.at("cpu_seconds").get<double>());
  }
  return 0;
}

}  // namespace precast::tools
