#include "tools/commands/convert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/core/archive/checkpoint_files.h"
#include "framework/core/archive/checkpoint_folder.h"
#include "framework/core/archive/weight_names.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "tools/cli/arguments.h"
#include "tools/cli/averages_warning.h"
#include "tools/cli/json_output.h"
#include "tools/cli/run_weights.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kSafetensors = ".safetensors";
constexpr std::array<std::string_view, 3> kExtensions = {kSafetensors, ".pt", ".pth"};
constexpr std::array<std::string_view, 3> kNames = {"torchvision", "ffcv", "timm"};
/// The networks that all three programs have under the same names and that compute the same
/// function in all of them.
constexpr std::array<std::string_view, 7> kSharedNetworks = {
    "resnet18",  "resnet34",        "resnet50",       "resnet101",
    "resnet152", "wide_resnet50_2", "resnext50_32x4d"};
/// With this option, a network of kSharedNetworks computes a function that none of the programs
/// supports.
constexpr std::string_view kOwnOption = "squeeze_excite.latent_channels";
constexpr std::int64_t kRgb = 3;

Arguments declare() {
  Arguments arguments(
      "convert IN OUT [options]",
      "Converts weights. Tensors are copied unchanged. The prefixes 'module.' and '_orig_mod.' are "
      "removed, except from checkpoints and from files with a model spec of precast. From a "
      "training state, only the model's weights are taken. No code in a .pt file is executed.");
  arguments.positional("IN",
                       "a .safetensors, .pt or .pth file, recognised by its content; or the folder "
                       "of a finished run, to convert its final weights; or the folder of a "
                       "checkpoint, to convert the weights that its run evaluated (with ema and "
                       "swa, the averages)");
  arguments.positional("OUT", "the file to write; its name ends in .safetensors, .pt or .pth");
  arguments.options().add_options()(
      "names", po::value<std::string>()->value_name("PROGRAM"),
      "program whose tensor names to write; torchvision, ffcv or timm; an error if, according to "
      "the model spec or the BlurPool filters in IN, that program has no network that computes the "
      "same function. Default: ffcv for a network with BlurPool, otherwise the names in IN")(
      "json", po::bool_switch(), kJsonHelp);
  arguments.example("precast convert final_weights.pt final_weights.safetensors");
  arguments.example("precast convert --names timm final_weights.pt timm.safetensors");
  arguments.example("precast convert runs/a weights.pt");
  arguments.example("precast convert runs/a/checkpoints/ckpt-0000000010 weights.pt");
  arguments.exit_codes({4});
  return arguments;
}

/// The weights file or the folder of a checkpoint to which IN refers: for the folder of a finished
/// run, its final weights. @throws ConfigError for the folder of a run that has not finished, or
/// was continued and has not finished again
std::string find_input(const std::string& in) {
  const std::filesystem::path run = in;
  if (!std::filesystem::is_regular_file(run / kRunParams)) return in;
  const bool has_final = std::filesystem::is_regular_file(run / kFinalWeights);
  const auto newest =
      has_final ? newer_checkpoint(run) : latest_valid_checkpoint(run / kCheckpoints);
  if (has_final && !newest) return (run / kFinalWeights).string();
  throw ConfigError(fmt::format(
      "{}: expected a run that has finished, got {}. {}", in,
      has_final ? fmt::format("one with a checkpoint that is newer than {}", kFinalWeights)
                : fmt::format("one without {}", kFinalWeights),
      newest
          ? fmt::format("Give its newest checkpoint, {}{}", newest->path.string(),
                        has_final ? fmt::format(", or the weights from before it was continued, {}",
                                                (run / kFinalWeights).string())
                                  : "")
          : "It has no checkpoint either"));
}

void check_output(const std::string& in, const std::filesystem::path& out) {
  if (std::ranges::find(kExtensions, out.extension().string()) == kExtensions.end()) {
    throw ConfigError(fmt::format("{}: expected a name that ends in {}, {} or {}", out.string(),
                                  kExtensions[0], kExtensions[1], kExtensions[2]));
  }
  std::error_code ignored;
  const bool in_checkpoint =
      std::filesystem::is_directory(in, ignored) &&
      std::filesystem::equivalent(in, std::filesystem::absolute(out).parent_path(), ignored);
  if (in_checkpoint || std::filesystem::equivalent(in, out, ignored)) {
    throw ConfigError(fmt::format("{}: expected an output file other than {}{}", out.string(), in,
                                  in_checkpoint ? " and the files in it" : ""));
  }
}

struct Summary {
  std::string in;
  std::string out;
  std::size_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::size_t renamed = 0;
  std::vector<std::string> left_out = {};
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
  fmt::print("{}: {}, {}\n", summary.out, format_count(summary.tensors, "tensor"),
             format_bytes(static_cast<double>(summary.file_bytes)));
  if (summary.renamed > 0) fmt::print("renamed: {}\n", summary.renamed);
  if (!summary.left_out.empty()) {
    fmt::print("left out ({}): {}\n", summary.left_out.size(), fmt::join(summary.left_out, ", "));
  }
}

/// @param names the program; if empty, nothing is checked. @throws CheckpointError for a network
/// that the program does not have.
void check_target(const std::string& in, std::string_view names,
                  const std::optional<WeightsSpec>& spec, bool blurpool) {
  const auto refuse = [&](const std::string& found) {
    throw CheckpointError(
        fmt::format("{0}: expected a network that {1} has, got {2}. {1} would compute different "
                    "outputs or reject the file",
                    in, names, found));
  };
  if (names.empty()) return;
  if (blurpool && names == "timm") {
    refuse(
        "BlurPool before strided convolutions, with zero padding; timm blurs after the "
        "activation, with reflected borders");
  }
  if (blurpool && names == "torchvision") refuse("BlurPool; --names ffcv keeps it");
  if (!spec) return;
  // timm's networks have any number of channels (in_chans).
  if (spec->in_channels != kRgb && names != "timm")
    refuse(fmt::format("model.in_channels: {}", spec->in_channels));
  if (std::ranges::find(kSharedNetworks, spec->arch) == kSharedNetworks.end())
    refuse("model.arch: " + spec->arch);
  if (const auto own = spec->params.find(std::string(kOwnOption)); own != spec->params.end())
    refuse(fmt::format("model.params.{}: {}", own->first, own->second));
}

bool is_floating_point(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Replaces the weights of a checkpoint with the averages that the run evaluated. Integers are not
/// averaged.
/// @param records with torchvision's names. @param methods the checkpoint's file with the averages.
/// @throws CheckpointError if an average is missing or does not fit its weight
void use_averages(std::vector<TensorRecord>& records, const WeightsFile& methods,
                  const std::string& method) {
  for (TensorRecord& record : records) {
    if (!is_floating_point(record.dtype)) continue;
    const std::string name = fmt::format("{0}/{1}.{0}", method, record.name);
    const TensorRecord* const average = methods.find(name);
    if (average == nullptr) {
      throw CheckpointError(fmt::format("{}: expected the average '{}' of the method {}, got none",
                                        methods.path().string(), name, method));
    }
    if (average->dtype != record.dtype || average->shape != record.shape) {
      throw CheckpointError(fmt::format("{}: expected '{}' of shape {}, got {}",
                                        methods.path().string(), name, shape_text(record.shape),
                                        shape_text(average->shape)));
    }
    record.bytes = average->bytes;
  }
}

/// The weights to convert. `records` refers to the memory of the two files.
struct Input {
  WeightsFile file;
  /// The file of a checkpoint that contains the state of the methods.
  std::optional<WeightsFile> methods = {};
  std::vector<TensorRecord> records = {};
  std::map<std::string, std::string> metadata = {};
};

/// @param in the result of find_input()
Input open_input(const std::filesystem::path& in) {
  if (!std::filesystem::is_directory(in)) {
    Input input{.file = load_weights(in)};
    if (const std::string text = averages_warning(input.file); !text.empty())
      log_warning("{}", text);
    input.records = input.file.records();
    input.metadata = input.file.metadata();
    return input;
  }
  if (!std::filesystem::exists(in / kManifestName)) {
    throw ConfigError(
        fmt::format("{}: expected a weights file, or the folder of a run (which contains {}) or of "
                    "a checkpoint (which contains {}), got another folder",
                    in.string(), kRunParams, kManifestName));
  }
  static_cast<void>(verify_checkpoint(in));
  Input input{.file = load_weights(in / kModelFile, WrapperPrefixes::keep)};
  input.methods = load_weights(in / kMethodsFile, WrapperPrefixes::keep);
  const std::optional<WeightsSpec> spec = spec_of(input.file);
  // The averages are stored under torchvision's names, but blurred layers of the weights may have
  // other names.
  input.records = spec ? torchvision_names(input.file.records(), in.string(), spec).records
                       : input.file.records();
  input.metadata = input.file.metadata();
  const auto averages = input.metadata.extract(std::string(kAveragesKey));
  if (averages.empty()) {
    throw CheckpointError(
        fmt::format("{}: expected a checkpoint that says whether its run evaluated averages (ema, "
                    "swa), got a checkpoint of an older version, or one with a method that does "
                    "not say this. If the run used neither, convert {}",
                    in.string(), (in / kModelFile).string()));
  }
  if (!averages.mapped().empty()) use_averages(input.records, *input.methods, averages.mapped());
  return input;
}

/// @param names one of kNames; empty: the default. @throws ConfigError, IoError, CheckpointError
Summary convert(const std::string& in, const std::string& out, std::string_view names) {
  check_output(in, out);
  const Input input = open_input(in);
  const std::optional<WeightsSpec> spec = spec_of(input.file);
  const bool has_filters = !filtered_layers(input.records, spec).empty();
  check_target(in, names, spec, has_filters || (spec && spec->blurpool));
  // If layers with BlurPool do not have ffcv-imagenet's names yet, they are renamed here.
  const auto blurred = spec && !has_filters ? spec->blurred : std::map<std::string, std::int64_t>();
  const FfcvNames renamed = ffcv_names(input.records, blurred, in);
  const bool safetensors = std::filesystem::path(out).extension() == kSafetensors;
  std::map<std::string, std::string> metadata = input.metadata;
  if (safetensors) metadata.emplace("format", "pt");
  save_weights(out, renamed.records, metadata);
  Summary summary{.in = in,
                  .out = out,
                  .tensors = renamed.records.size(),
                  .file_bytes = std::filesystem::file_size(out),
                  .renamed = renamed.renamed};
  for (const TensorRecord& record : renamed.records) summary.tensor_bytes += record.bytes.size();
  for (const auto& [key, value] : metadata) {
    if (!safetensors && key != kWeightsSpecKey && key != "format")
      summary.left_out.push_back("metadata " + key);
  }
  return summary;
}

}  // namespace

int run_convert(const std::vector<std::string>& args) {
  Arguments arguments = declare();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const std::string names = arguments.has("names") ? arguments.text("names") : "";
  if (!names.empty() && std::ranges::find(kNames, names) == kNames.end()) {
    throw ConfigError(
        fmt::format("--names: expected one of {}, got '{}'", fmt::join(kNames, ", "), names));
  }
  const Summary summary = convert(find_input(arguments.text("IN")), arguments.text("OUT"), names);
  arguments.get<bool>("json") ? print_as_json(summary) : print_text(summary);
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
