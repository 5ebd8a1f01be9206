// kernel_bench: times each CUDA kernel on the first GPU. For comparison, it alternates between the
// kernel and a copy within GPU memory, each for a window of about 30 ms. Not installed; does not
// need libtorch:
//     ninja -C build kernel_bench && build/bin/kernel_bench --json
// Exit codes: 0 done, 1 failed, 2 usage, 6 no GPU or a CUDA error.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"
#include "tools/bench/kernels/kernel_case.h"
#include "tools/bench/kernels/kernel_timer.h"
#include "tools/cli/median.h"
#include "tools/cli/text_table.h"

namespace precast::tools {
namespace {

constexpr int kMinWindows = 7;
constexpr int kMaxWindows = 1000;

struct Request {
  std::vector<KernelEntry> kernels;
  int windows = 9;
  bool json = false;
  bool help = false;
  bool list = false;
};

void print_help() {
  fmt::print(
      "usage: kernel_bench [KERNEL...] [--windows N] [--json | --list]\n"
      "Times each kernel on the first GPU. For comparison, alternates between the kernel and a "
      "copy within GPU memory, each for a window of about 30 ms. Prints medians over the "
      "windows.\n\n"
      "  KERNEL...     kernels to time; default: all\n"
      "  --windows N   number of windows per kernel; {} to {} (default 9)\n"
      "  --json        print JSON instead of a table\n"
      "  --list        print the names of the kernels; needs no GPU\n"
      "  --help        print this help\n",
      kMinWindows, kMaxWindows);
}

KernelEntry find_kernel(std::string_view name) {
  for (const KernelEntry& entry : kernel_list()) {
    if (entry.name == name) return entry;
  }
  throw ConfigError(
      fmt::format("kernel_bench: expected the name of a kernel, got '{}'. See --list", name));
}

int parse_windows(std::string_view text) {
  const auto windows = parse_number<int>(text);
  if (!windows || *windows < kMinWindows || *windows > kMaxWindows) {
    throw ConfigError(
        fmt::format("--windows: expected {} to {}, got '{}'", kMinWindows, kMaxWindows, text));
  }
  return *windows;
}

Request parse(const std::vector<std::string>& args) {
  Request request;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--json") {
      request.json = true;
    } else if (arg == "--help" || arg == "-h") {
      request.help = true;
    } else if (arg == "--list") {
      request.list = true;
    } else if (arg.starts_with("--windows=")) {
      request.windows = parse_windows(std::string_view(arg).substr(10));
    } else if (arg == "--windows") {
      request.windows = parse_windows(++i < args.size() ? args[i] : "");
    } else if (arg.starts_with("-")) {
      throw ConfigError(
          fmt::format("kernel_bench: expected a known option, got '{}'. See --help", arg));
    } else {
      request.kernels.push_back(find_kernel(arg));
    }
  }
  if (request.kernels.empty()) request.kernels.assign(kernel_list().begin(), kernel_list().end());
  return request;
}

cudaDeviceProp first_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    throw DeviceError(fmt::format(
        "kernel_bench: expected a GPU, got none ({}). Run it where nvidia-smi lists one",
        status == cudaSuccess ? "the driver sees no device" : cudaGetErrorString(status)));
  }
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return properties;
}

nlohmann::ordered_json measure(const KernelEntry& entry, KernelTimer& timer, int windows) {
  const KernelCase kernel = entry.make();
  const KernelTime time = timer.measure(kernel, windows);
  const double us = median(time.us);
  const double gb_per_s = static_cast<double>(kernel.bytes_moved) / us / 1e3;
  const double copy = median(time.copy_gb_per_s);
  return {{"name", entry.name},
          {"shape", kernel.shape},
          {"bytes_moved", kernel.bytes_moved},
          {"us", us},
          {"us_least", *std::ranges::min_element(time.us)},
          {"us_most", *std::ranges::max_element(time.us)},
          {"gb_per_s", gb_per_s},
          {"copy_gb_per_s", copy},
          {"share_of_copy", gb_per_s / copy}};
}

nlohmann::ordered_json report_of(const Request& request) {
  const cudaDeviceProp gpu = first_gpu();
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  nlohmann::ordered_json report = {{"gpu", gpu.name},
                                   {"architecture", fmt::format("sm_{}{}", gpu.major, gpu.minor)},
                                   {"l2_bytes", gpu.l2CacheSize},
                                   {"driver_cuda", driver},
                                   {"runtime_cuda", CUDART_VERSION},
                                   {"windows", request.windows},
                                   {"kernels", nlohmann::ordered_json::array()}};
  KernelTimer timer;
  for (const KernelEntry& entry : request.kernels) {
    report["kernels"].push_back(measure(entry, timer, request.windows));
  }
  return report;
}

void print_table(const nlohmann::ordered_json& report) {
  fmt::print("{} ({}), {} windows per kernel\n", report["gpu"].get<std::string>(),
             report["architecture"].get<std::string>(), report["windows"].get<int>());
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "us (min - max)", "GB/s", "copy GB/s", "of the copy rate", "shape"}};
  for (const auto& of : report["kernels"]) {
    rows.push_back({of["name"].get<std::string>(),
                    fmt::format("{:.1f} ({:.1f} - {:.1f})", of["us"].get<double>(),
                                of["us_least"].get<double>(), of["us_most"].get<double>()),
                    fmt::format("{:.0f}", of["gb_per_s"].get<double>()),
                    fmt::format("{:.0f}", of["copy_gb_per_s"].get<double>()),
                    fmt::format("{:.0f} %", 100 * of["share_of_copy"].get<double>()),
                    of["shape"].get<std::string>()});
  }
  print_text_table(rows);
}

int run(const std::vector<std::string>& args) {
  const Request request = parse(args);
  if (request.help) {
    print_help();
  } else if (request.list) {
    for (const KernelEntry& entry : kernel_list()) fmt::print("{}\n", entry.name);
  } else {
    const nlohmann::ordered_json report = report_of(request);
    if (request.json) {
      fmt::print("{}\n", report.dump(2));
    } else {
      print_table(report);
    }
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace
}  // namespace precast::tools

int main(int argc, char** argv) {
  try {
    return precast::tools::run({argv + 1, argv + argc});
  } catch (const precast::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(precast::ExitCode::failed);
  }
}
