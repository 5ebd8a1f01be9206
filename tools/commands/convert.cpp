#include "tools/commands/convert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "framework/core/archive/weight_names.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/error.h"
#include "framework/core/progress.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kSafetensors = ".safetensors";
constexpr std::array<std::string_view, 3> kExtensions = {kSafetensors, ".pt", ".pth"};

Arguments declare() {
  Arguments arguments(
      "convert IN OUT [options]",
      "Converts weights. Tensors are copied unchanged; the prefixes 'module.' and '_orig_mod.' are "
      "removed, and ffcv-imagenet's names of antialiased convolutions become torchvision's. From a "
      "training state the model's part is taken. No code in a .pt is executed.");
  arguments.positional("IN", "a .safetensors, .pt or .pth file; recognised by its content");
  arguments.positional("OUT", "a name that ends in .safetensors, .pt or .pth");
  arguments.options().add_options()("json", po::bool_switch(), kJsonHelp);
  arguments.example("precast convert final_weights.pt final_weights.safetensors");
  arguments.exit_codes({4});
  return arguments;
}

void check_output(const std::string& in, const std::filesystem::path& out) {
  if (std::ranges::find(kExtensions, out.extension().string()) == kExtensions.end()) {
    throw ConfigError(fmt::format("{}: expected a name that ends in {}", out.string(),
                                  fmt::join(kExtensions, ", ")));
  }
  std::error_code ignored;
  if (std::filesystem::equivalent(in, out, ignored)) {
    throw ConfigError(fmt::format("{}: expected another file to write than {}", out.string(), in));
  }
}

struct Summary {
  std::string in;
  std::string out;
  std::size_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::size_t renamed = 0;
  std::vector<std::string> left_out;
};

void print_as_json(const Summary& summary) {
  const nlohmann::ordered_json report = {
      {"input", summary.in},         {"file", summary.out},
      {"tensors", summary.tensors},  {"tensor_bytes", summary.tensor_bytes},
      {"bytes", summary.file_bytes}, {"renamed", summary.renamed},
      {"left_out", summary.left_out}};
  print_json(report);
}

void print_text(const Summary& summary) {
  fmt::print("{}: {} tensors of {}, {} in all\n", summary.out, summary.tensors,
             format_bytes(static_cast<double>(summary.tensor_bytes)),
             format_bytes(static_cast<double>(summary.file_bytes)));
  if (summary.renamed > 0) fmt::print("renamed: {}\n", summary.renamed);
  if (!summary.left_out.empty()) {
    fmt::print("left out ({}): {}\n", summary.left_out.size(), fmt::join(summary.left_out, ", "));
  }
}

/// @throws ConfigError, IoError, DataError
Summary convert(const std::string& in, const std::string& out) {
  check_output(in, out);
  const WeightsFile file = load_weights(in);
  TorchvisionNames names = torchvision_names(file.records(), in);
  save_weights(out, names.records, file.metadata());
  Summary summary{.in = in,
                  .out = out,
                  .tensors = names.records.size(),
                  .file_bytes = std::filesystem::file_size(out),
                  .renamed = names.renamed,
                  .left_out = std::move(names.left_out)};
  for (const TensorRecord& record : names.records) summary.tensor_bytes += record.bytes.size();
  if (std::filesystem::path(out).extension() != kSafetensors) {
    for (const auto& [key, value] : file.metadata()) summary.left_out.push_back("metadata " + key);
  }
  return summary;
}

}  // namespace

int run_convert(const std::vector<std::string>& args) {
  Arguments arguments = declare();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const Summary summary = convert(arguments.text("IN"), arguments.text("OUT"));
  arguments.get<bool>("json") ? print_as_json(summary) : print_text(summary);
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
