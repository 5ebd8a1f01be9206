// Times cuDNN's convolutions of ResNet-50, plain and fused with batch norm and ReLU, in fp16 and
// channels_last, on the first GPU. Without a GPU, --plan-only builds the same plans for a described
// GPU. usage() lists the options. Built and run by tools/peers/cudnn_support/run. Exit codes: 0
// done, 1 failed, 2 usage, 6 no GPU or no such device description.
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "plan_pool.h"
#include "report.h"

namespace {

using namespace cudnn_graphs;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Options {
  std::int64_t batch = 256, plans = 8, seconds = 90;
  std::string json, device;
};

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct NoGpu : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void usage(std::FILE* to) {
  std::fprintf(to,
               "usage: cudnn_times [--batch N] [--plans N] [--seconds N] [--json FILE]\n"
               "       cudnn_times --plan-only DEVICE.json [the options above]\n"
               "  --batch N       images in a batch (default 256)\n"
               "  --plans N       maximum number of plans per graph, in cuDNN's order (default 8)\n"
               "  --seconds N     start no convolution after this time (default 90)\n"
               "  --json FILE     also write the times and the names of the fastest plans to FILE\n"
               "  --plan-only DEVICE.json  needs no GPU: print how many plans can be built for the "
               "GPU that\n"
               "                  the file describes, instead of times\n");
}

std::int64_t positive(const std::string& option, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 1'000'000) {
    throw UsageError("expected a number from 1 to 1000000 after " + option + ", got '" + text +
                     "'");
  }
  return value;
}

Options parse(const std::vector<std::string>& args) {
  Options options;
  for (std::size_t i = 0; i < args.size(); i += 2) {
    const std::string& option = args[i];
    const std::string value = i + 1 < args.size() ? args[i + 1] : "";
    if (option == "--batch") {
      options.batch = positive(option, value);
    } else if (option == "--plans") {
      options.plans = positive(option, value);
    } else if (option == "--seconds") {
      options.seconds = positive(option, value);
    } else if (option == "--json" && !value.empty()) {
      options.json = value;
    } else if (option == "--plan-only" && !value.empty()) {
      options.device = value;
    } else {
      throw UsageError("expected an option and its value, got '" + option + " " + value + "'");
    }
  }
  return options;
}

/// Selects the first GPU. @return its name
std::string use_gpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    const std::string why =
        error == cudaSuccess ? "" : std::string(" (") + cudaGetErrorString(error) + ")";
    throw NoGpu("expected a GPU, got none" + why + ". Use --plan-only DEVICE.json without a GPU.");
  }
  check_cuda(cudaSetDevice(0), "cannot use the GPU");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cannot describe the GPU");
  return properties.name;
}

Device described(const std::string& path) {
  try {
    return read_device(path);
  } catch (const std::exception& error) {
    throw NoGpu(error.what());
  }
}

/// Measures or, without a bench, only lists the tasks of a layer.
Row measure(PlanPool& pool, const Layer& layer, Bench* bench) {
  Row row{&layer, {}};
  for (Task* task : pool.tasks(layer)) {
    Cell& cell = row.cells[static_cast<std::size_t>(task->pattern - kPatterns.data())];
    cell.task = task;
    if (!bench || task->plans.empty()) continue;
    try {
      cell.measured = bench->measure(*task);
    } catch (const std::exception& error) {
      throw std::runtime_error(name_of(layer.shape) + ", " + task->pattern->title + ": " +
                               error.what());
    }
    task->net.reset();
  }
  return row;
}

/// Prints and appends a row for each layer until `deadline`. @return the names of the remaining
/// layers
std::vector<std::string> measure_all(PlanPool& pool, Bench* bench, PlanPool::Time deadline,
                                     std::vector<Row>& rows) {
  std::vector<std::string> left_out;
  bool paused = false;
  for (const Layer& layer : kLayers) {
    // Measures as many layers as are ready before building continues.
    if (paused && !pool.ready(layer)) {
      pool.resume();
      paused = false;
    }
    if (Clock::now() >= deadline || !pool.wait(layer, deadline)) {
      left_out.push_back(name_of(layer.shape));
      continue;
    }
    if (bench && !paused) {
      pool.pause();
      paused = true;
    }
    rows.push_back(measure(pool, layer, bench));
    print_row(rows.back(), bench != nullptr);
  }
  if (paused) pool.resume();
  return left_out;
}

void print_end(const std::vector<Row>& rows, const std::vector<std::string>& left_out, bool sums) {
  if (sums) {
    print_sum(rows, false);
    print_sum(rows, true);
  }
  for (const std::string& name : left_out) {
    std::printf("%s%s", name == left_out.front() ? "\nnot measured, --seconds reached:  " : ", ",
                name.c_str());
  }
  std::printf("\n");
}

void write_json(const std::string& path, const Json& json) {
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void run(const Options& options) {
  const auto begin = Clock::now();
  const Device device = options.device.empty() ? nullptr : described(options.device);
  const std::string name = device ? options.device : use_gpu();
  PlanPool pool({device, options.batch, static_cast<std::size_t>(options.plans)});
  Json json = {{"device", name},
               {"cudnn", cudnnGetVersion()},
               {"batch", options.batch},
               {"plans", options.plans}};
  std::printf("%s, cuDNN %zu, batch %lld, fp16, channels_last\n", name.c_str(), cudnnGetVersion(),
              static_cast<long long>(options.batch));
  const std::unique_ptr<Bench> bench = device ? nullptr : std::make_unique<Bench>();
  if (bench) {
    // 256 channels at 56 px.
    const std::size_t bytes = static_cast<std::size_t>(options.batch) * 256 * 56 * 56 * 2;
    pool.pause();
    const double copy = bench->copy_gb_per_s(bytes);
    pool.resume();
    json["copy_gb_per_s"] = copy;
    std::printf("copy of %zu MB within the GPU: %.0f GB/s\n", bytes / 1'000'000, copy);
  }
  std::printf("\n");
  print_head();
  std::vector<Row> rows;
  std::vector<std::string> left_out;
  std::exception_ptr failure;
  try {
    left_out = measure_all(pool, bench.get(), begin + std::chrono::seconds(options.seconds), rows);
  } catch (...) {
    failure = std::current_exception();  // the rows measured so far are still written
  }
  print_end(rows, left_out, bench != nullptr);
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::printf("%.0f s\n", took.count());
  json["seconds"] = took.count();
  json["left_out"] = left_out;
  json["convolutions"] = Json::array();
  for (const Row& row : rows) json["convolutions"].push_back(to_json(row));
  if (!options.json.empty()) write_json(options.json, json);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args.size() == 1 && (args[0] == "--help" || args[0] == "-h")) {
      usage(stdout);
    } else {
      run(parse(args));
    }
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "cudnn_times: %s\n", error.what());
    usage(stderr);
    return kExitUsage;
  } catch (const NoGpu& error) {
    std::fprintf(stderr, "cudnn_times: %s\n", error.what());
    return kExitEnvironment;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cudnn_times: %s\n", error.what());
    return kExitFailed;
  }
}
