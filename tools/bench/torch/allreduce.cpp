#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <charconv>
#include <climits>

#include "framework/core/error.h"
#include "tools/app/rank_session.h"
#include "tools/app/resolved_run.h"
#include "tools/bench/torch/commands.h"
#include "tools/bench/torch/step_rig.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"
#include "tools/cli/median.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stopwatch.h"
#include "tools/doctor/torch/torch_versions.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

constexpr int kWarmup = 2;

/// Returns the bytes of a size such as "64KB", "1MB" or "1GB" (powers of 1024), or "4096" (bytes).
/// @throws ConfigError
std::int64_t parse_size(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const std::pair<const char*, int> units[] = {{"", 0}, {"KB", 10}, {"MB", 20}, {"GB", 30}};
  for (const auto& [name, shift] : units) {
    if (failure == std::errc() && unit == name && value >= (shift == 0 ? 4 : 1) &&
        value <= (std::int64_t{64} << 30) >> shift) {
      return value << shift;
    }
  }
  throw ConfigError(
      fmt::format("--sizes: expected 4 bytes to 64 GB, such as 64KB,1MB, got '{}'", text));
}

std::vector<std::int64_t> parse_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const std::string& part : split_list("sizes", text)) sizes.push_back(parse_size(part));
  return sizes;
}

/// All ranks time the same sums. Each sum starts when the slowest rank is ready.
ordered_json time_sums(Communicator& ranks, at::Device device, std::int64_t bytes,
                       std::int64_t repeats) {
  const at::Tensor tensor = at::ones({bytes / 4}, at::device(device).dtype(at::kFloat));
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < kWarmup + repeats; ++i) {
    tensor.fill_(1);
    wait_for_device(device);
    static_cast<void>(ranks.all_gather("start"));
    const Stopwatch watch;
    ranks.all_reduce_sum({tensor});
    wait_for_device(device);
    if (i >= kWarmup) seconds.push_back(watch.seconds());
  }
  const double median_seconds = median(seconds);
  const double bandwidth = static_cast<double>(bytes / 4 * 4) / median_seconds;
  const double world = ranks.world();
  return {{"bytes", bytes / 4 * 4},
          {"seconds", median_seconds},
          {"algorithm_bytes_per_second", bandwidth},
          {"bus_bytes_per_second", bandwidth * 2 * (world - 1) / world}};
}

void report(const ordered_json& figures, bool json) {
  if (json) {
    print_json(figures);
    return;
  }
  fmt::print("{} ranks, {}\n{:>12}   {:>10}   {:>16}   {:>12}\n", figures.at("ranks").get<int>(),
             figures.at("transport").get<std::string>(), "bytes", "ms", "algorithm GB/s",
             "bus GB/s");
  for (const auto& row : figures.at("sums")) {
    fmt::print("{:>12}   {:>10.3f}   {:>16.3f}   {:>12.3f}\n", row.at("bytes").get<std::int64_t>(),
               1e3 * row.at("seconds").get<double>(),
               1e-9 * row.at("algorithm_bytes_per_second").get<double>(),
               1e-9 * row.at("bus_bytes_per_second").get<double>());
  }
}

Arguments allreduce_arguments() {
  Arguments arguments(
      "bench allreduce [options]",
      "Measures how fast the ranks sum float32 tensors of each size. The column `algorithm` shows "
      "the tensor's bytes divided by the time; `bus` shows the traffic of a link, which with n "
      "ranks is 2 (n - 1) / n times as much. If torchrun, srun or mpirun starts the command, it "
      "measures their ranks.");
  arguments.options().add_options()("ranks", po::value<std::int64_t>()->default_value(2),
                                    "number of ranks to start on this host")(
      "sizes", po::value<std::string>()->default_value("4KB,64KB,1MB,16MB,64MB"),
      "sizes of the tensors; in bytes, or with KB, MB or GB (powers of 1024)")(
      "runs", po::value<std::int64_t>()->default_value(15), kRunsHelp)(
      "device", po::value<std::string>()->default_value("auto"),
      "where to compute; auto, cpu (Gloo) or cuda (NCCL)")("json", kJsonHelp);
  arguments.example("precast bench allreduce --ranks 4 --sizes 1MB,64MB");
  arguments.exit_codes({6, 13, 129, 130, 143});
  return arguments;
}

/// @throws ConfigError
std::string read_device(const Arguments& options) {
  std::string device = options.text("device");
  if (device != "auto" && device != "cpu" && device != "cuda")
    throw ConfigError(fmt::format("--device: expected auto, cpu or cuda, got '{}'", device));
  return device;
}

/// The work of one rank; rank zero reports.
void measure_sums(RankSession& session, at::Device device, const std::vector<std::int64_t>& sizes,
                  const Arguments& options) {
  Communicator& ranks = session.communicator();
  ordered_json figures = {{"ranks", ranks.world()},
                          {"transport", device.is_cuda() ? "NCCL" : "Gloo"},
                          {"device_name", device_name(device)},
                          {"sums", ordered_json::array()}};
  for (const std::int64_t size : sizes)
    figures["sums"].push_back(time_sums(ranks, device, size, options.get<std::int64_t>("runs")));
  if (session.is_rank_zero()) report(figures, options.has("json"));
  static_cast<void>(ranks.all_gather("done"));
}

}  // namespace

int run_bench_allreduce(const std::vector<std::string>& args) {
  Arguments options = allreduce_arguments();
  if (!options.parse(args)) return 0;
  const std::vector<std::int64_t> sizes = parse_sizes(options.text("sizes"));
  const auto launched = options.get<std::int64_t>("ranks");
  check_range("ranks", launched, 2, 1024);
  check_range("runs", options.get<std::int64_t>("runs"), 1, INT_MAX);
  TrainConfig config;
  config.training.device = read_device(options);
  const RankInfo info = resolve_rank_info(config);
  if (info.source == "single") {
    std::vector<std::string> command = {"bench", "allreduce"};
    command.insert(command.end(), args.begin(), args.end());
    const int ranks = static_cast<int>(launched);
    check_gpus(gpu_problem("--ranks", config.training.device, ranks, usable_gpus(),
                           "To measure ranks on the CPU, give --device=cpu"));
    return launch_ranks(command, ranks);
  }
  const at::Device device = prepare_device(config, info);
  RankSession session(config, info, device);
  return session.run([&] {
    measure_sums(session, device, sizes, options);
    return 0;
  });
}

}  // namespace precast::tools
