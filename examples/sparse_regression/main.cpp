// Sparse linear regression by SAGA on a .beton file that need not fit into memory:
//   sparse_regression make OUT.beton [options]
//   sparse_regression solve FILE.beton [options]
#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/progress.h"
#include "framework/core/system.h"
#include "generate.h"
#include "saga.h"
#include "sample_stream.h"

namespace {

namespace po = boost::program_options;
using precast::ConfigError;
using sparse_regression::PathPoint;
using sparse_regression::PathResult;
using sparse_regression::SampleStream;

/// The options and the file of a subcommand.
class Command {
 public:
  explicit Command(const std::string& usage) : usage_(usage), options_("options") {
    options_.add_options()("help", "show this text");
  }

  [[nodiscard]] po::options_description& options() { return options_; }

  /// @return false if the help was printed. @throws ConfigError
  bool parse(const std::vector<std::string>& args) {
    po::options_description all;
    all.add(options_).add_options()("file", po::value<std::string>());
    po::positional_options_description positional;
    positional.add("file", 1);
    using po::command_line_style::style_t;
    try {
      po::store(
          po::command_line_parser(args)
              .options(all)
              .positional(positional)
              .style(style_t::allow_long | style_t::long_allow_adjacent | style_t::long_allow_next)
              .run(),
          values_);
      po::notify(values_);
    } catch (const po::error& error) {
      throw ConfigError(fmt::format("sparse_regression: {}. Try --help", error.what()));
    }
    if (values_.count("help") > 0) {
      std::cout << "usage: sparse_regression " << usage_ << "\n" << options_;
      return false;
    }
    if (values_.count("file") == 0)
      throw ConfigError("sparse_regression: expected a .beton file, got none. Try --help");
    return true;
  }

  [[nodiscard]] std::filesystem::path file() const { return get<std::string>("file"); }
  [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) > 0; }
  template <typename T>
  [[nodiscard]] const T& get(const std::string& name) const {
    return values_[name].as<T>();
  }
  /// @throws ConfigError naming the option unless low <= value <= high.
  template <typename T>
  [[nodiscard]] T in_range(const std::string& name, T low, T high) const {
    const T value = get<T>(name);
    if (value >= low && value <= high) return value;
    throw ConfigError(fmt::format("--{}: expected {} to {}, got {}", name, low, high, value));
  }

 private:
  std::string usage_;
  po::options_description options_;
  po::variables_map values_;
};

template <typename T>
po::typed_value<T>* value(T standard) {
  return po::value<T>()->default_value(standard, fmt::format("{}", standard));
}
po::typed_value<std::int64_t>* integer(std::int64_t standard) {
  return value(standard);
}

constexpr std::int64_t kMany = std::int64_t{1} << 40;

int worker_count(const Command& command, const std::string& name) {
  const auto count = static_cast<int>(command.in_range<std::int64_t>(name, 0, 1024));
  return count == 0 ? precast::usable_cores() : count;
}

void run_make(const std::vector<std::string>& args) {
  Command command("make OUT.beton [options]");
  command.options().add_options()("samples", integer(10000), "number of samples")(
      "features", integer(2000), "number of features of a sample")(
      "nonzeros", integer(50), "number of features with a nonzero coefficient")(
      "noise", value(1.0), "standard deviation of the noise that is added to the target")(
      "seed", integer(0), "seed of all random choices")("dtype", value<std::string>("float16"),
                                                        "type of the features: float16 or float32")(
      "workers", integer(0), "number of threads; 0: one per core")(
      "npy", "also write OUT.beton.x.npy and OUT.beton.y.npy");
  if (!command.parse(args)) return;
  const std::string dtype = command.get<std::string>("dtype");
  if (dtype != "float16" && dtype != "float32")
    throw ConfigError(fmt::format("--dtype: expected float16 or float32, got '{}'", dtype));
  sparse_regression::generate(
      command.file(),
      {.samples = command.in_range<std::int64_t>("samples", 2, kMany),
       .features = command.in_range<std::int64_t>("features", 1, 100'000'000),
       .nonzeros = command.in_range<std::int64_t>("nonzeros", 1, kMany),
       .noise = command.in_range("noise", 0.0, 1e6),
       .seed = static_cast<std::uint64_t>(command.in_range<std::int64_t>("seed", 0, kMany)),
       .float32 = dtype == "float32",
       .workers = worker_count(command, "workers"),
       .npy = command.has("npy")});
}

nlohmann::ordered_json point_json(const PathPoint& point) {
  return {{"lambda", point.lambda},
          {"objective", point.objective},
          {"gap", point.gap},
          {"relative_gap", point.gap / point.objective},
          {"nonzeros", point.nonzeros},
          {"r2", point.r2},
          {"intercept", point.intercept},
          {"converged", point.converged},
          {"epochs", point.epochs},
          {"exact_passes", point.exact_passes},
          {"seconds", point.seconds}};
}

nlohmann::ordered_json result_json(const PathResult& result, const SampleStream& stream) {
  const auto statistics = stream.statistics();
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const PathPoint& point : result.points) points.push_back(point_json(point));
  return {{"samples", stream.samples()},
          {"features", stream.features()},
          {"constant_features", result.constant_features},
          {"lambda_max", result.lambda_max},
          {"row_smoothness", result.row_smoothness},
          {"full_smoothness", result.full_smoothness},
          {"batch_smoothness", result.batch_smoothness},
          {"preparation_seconds", result.preparation_seconds},
          {"epoch_seconds", result.epoch_seconds},
          {"passes", statistics.passes},
          {"pass_seconds", statistics.seconds},
          {"seconds_waited", statistics.seconds_waited},
          {"planned_memory", stream.plan().json()},
          {"peak_resident_bytes", sparse_regression::peak_resident_bytes()},
          {"path", points}};
}

/// Writes one row per lambda: the coefficients, then the intercept.
void write_coefficients(const std::filesystem::path& path, const PathResult& result,
                        std::int64_t features) {
  std::vector<double> values;
  for (const PathPoint& point : result.points) {
    const double* const begin = point.coefficients.const_data_ptr<double>();
    values.insert(values.end(), begin, begin + features);
    values.push_back(point.intercept);
  }
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(result.points.size()),
                                           features + 1};
  precast::write_npy(path, "<f8", shape, std::as_bytes(std::span(values)));
}

void print_table(const PathResult& result, const SampleStream& stream) {
  fmt::print("{:>11}  {:>11}  {:>8}  {:>8}  {:>7}  {:>6}  {:>5}  {:>8}\n", "lambda", "objective",
             "gap", "nonzeros", "r2", "epochs", "exact", "seconds");
  for (const PathPoint& point : result.points) {
    fmt::print("{:>11.5g}  {:>11.6g}  {:>8.1e}  {:>8}  {:>7.4f}  {:>6}  {:>5}  {:>8.1f}{}\n",
               point.lambda, point.objective, point.gap / point.objective, point.nonzeros, point.r2,
               point.epochs, point.exact_passes, point.seconds,
               point.converged ? "" : "  not converged");
  }
  fmt::print("{} passes, {:.3f} s per epoch, {} of memory at its peak\n",
             stream.statistics().passes, result.epoch_seconds,
             precast::format_bytes(static_cast<double>(sparse_regression::peak_resident_bytes())));
}

void add_solve_options(po::options_description& options) {
  options.add_options()("field", value<std::string>("x"), "field with the features")(
      "target", value<std::string>("y"), "field with the target, a number")(
      "lambdas", integer(10), "number of lambdas to solve, from the largest to the smallest")(
      "lambda-ratio", value(0.01), "the smallest lambda divided by the largest")(
      "l1-ratio", value(0.99), "fraction of the L1 norm in the penalty; 1: lasso")(
      "tolerance", value(1e-5),
      "a lambda is solved when the duality gap is at most this fraction of the objective")(
      "max-epochs", integer(100), "maximum number of epochs for one lambda")(
      "step-scale", value(0.5), "step size, in units of 1 / smoothness of a batch")(
      "batch-size", integer(512), "samples per step")(
      "order", value<std::string>("quasi_random"),
      "order of the samples: sequential, random or quasi_random")(
      "seed", integer(0), "seed of all random choices")("memory-mb", integer(1024),
                                                        "memory limit of the process in MiB")(
      "direct-io", "bypass the page cache")("workers", integer(1),
                                            "number of threads that read; 0: one per core")(
      "threads", integer(0), "number of threads that compute, at most 8; 0: one per core")(
      "device", value<std::string>("cpu"), "device that computes: cpu or cuda")(
      "coefficients", po::value<std::string>(),
      "write the coefficients as .npy, float64 [lambdas, features + 1]; the last column is the "
      "intercept")("json", "print the result as JSON");
}

sparse_regression::StreamOptions stream_options(const Command& command) {
  const std::string device = command.get<std::string>("device");
  if (device != "cpu" && device != "cuda")
    throw ConfigError(fmt::format("--device: expected cpu or cuda, got '{}'", device));
  const auto lambdas = static_cast<int>(command.get<std::int64_t>("lambdas"));
  return {.features_field = command.get<std::string>("field"),
          .target_field = command.get<std::string>("target"),
          .batch_size = command.in_range<std::int64_t>("batch-size", 1, 1 << 24),
          .workers = worker_count(command, "workers"),
          .order = command.get<std::string>("order"),
          .seed = static_cast<std::uint64_t>(command.in_range<std::int64_t>("seed", 0, kMany)),
          .direct_io = command.has("direct-io"),
          .memory_bytes =
              static_cast<std::uint64_t>(command.in_range<std::int64_t>("memory-mb", 1, 1 << 30))
              << 20,
          .reserved =
              [lambdas](std::int64_t samples, std::int64_t features) {
                return sparse_regression::solver_bytes(samples, features, lambdas);
              },
          .device = at::Device(device)};
}

void run_solve(const std::vector<std::string>& args) {
  Command command("solve FILE.beton [options]");
  add_solve_options(command.options());
  if (!command.parse(args)) return;
  const sparse_regression::PathOptions path = {
      .lambdas = static_cast<int>(command.in_range<std::int64_t>("lambdas", 1, 10000)),
      .lambda_ratio = command.in_range("lambda-ratio", 1e-12, 1.0),
      .l1_ratio = command.in_range("l1-ratio", 1e-3, 1.0),
      .tolerance = command.in_range("tolerance", 1e-7, 1.0),
      .max_epochs = static_cast<int>(command.in_range<std::int64_t>("max-epochs", 1, 1'000'000)),
      .step_scale = command.in_range("step-scale", 1e-6, 1e6),
      .threads = worker_count(command, "threads")};
  // ATen uses one thread, because BatchProducts divides each batch among its own threads.
  at::set_num_threads(1);
  SampleStream stream(command.file(), stream_options(command));
  precast::log_info("memory: {}", stream.plan().text());
  const PathResult result = [&] {
    precast::Progress progress;
    return solve_path(stream, path, [&](const sparse_regression::Progress& now) {
      if (!progress.due()) return;
      progress.show(
          fmt::format("lambda {} of {} | epoch {} | objective {:.6g} | relative gap {:.1e}{}",
                      now.lambda + 1, path.lambdas, now.epochs, now.objective,
                      now.gap / now.objective, now.exact ? "" : " (estimate)"));
    });
  }();
  if (command.has("coefficients"))
    write_coefficients(command.get<std::string>("coefficients"), result, stream.features());
  if (command.has("json")) {
    fmt::print("{}\n", result_json(result, stream).dump());
  } else {
    print_table(result, stream);
  }
}

int run(const std::vector<std::string>& args) {
  const std::string name = args.empty() ? "" : args.front();
  const std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
  if (name == "make") {
    run_make(rest);
  } else if (name == "solve") {
    run_solve(rest);
  } else {
    throw ConfigError(fmt::format(
        "sparse_regression: expected the command make or solve, got '{}'. `sparse_regression "
        "solve --help` lists the options of solve",
        name));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run({argv + 1, argv + argc});
} catch (const precast::Error& error) {
  precast::log_info("error: {}", error.what());
  return static_cast<int>(error.exit_code());
} catch (const std::bad_alloc&) {
  precast::log_line("error: out of memory");
  return static_cast<int>(precast::ExitCode::out_of_memory);
} catch (const std::exception& error) {
  precast::log_info("error: {}", error.what());
  return static_cast<int>(precast::ExitCode::failed);
}
