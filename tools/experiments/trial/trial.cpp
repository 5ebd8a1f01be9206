#include "tools/experiments/trial/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <system_error>

#include "framework/core/config/value.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/rng.h"
#include "tools/cli/neutral_keys.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/recipe_file.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {
namespace {

constexpr std::size_t kMaxPrefixLength = 60;

std::string sanitized(std::string text) {
  std::ranges::replace_if(
      text,
      [](unsigned char c) {
        return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '+' && c != '_';
      },
      '_');
  return text;
}

}  // namespace

std::vector<std::string> Trial::train_arguments() const {
  std::vector<std::string> arguments = {"train"};
  if (!recipe.empty()) arguments.push_back(recipe.string());
  for (const Setting& setting : settings)
    arguments.push_back(fmt::format("--{}={}", setting.key, setting.value));
  arguments.push_back("--logging.folder=" + folder.string());
  arguments.push_back("--logging.run_id=" + id);
  arguments.emplace_back("--checkpoint.resume=auto");
  // If one axis varies the optimiser, and another axis an option of only one optimiser, the trials
  // with other optimisers do not read this option, which must not be an error. check_by_dry_run()
  // reports the keys that no trial reads.
  arguments.emplace_back("--warn-unread");
  return arguments;
}

std::string setting_text(const ConfigNode& value) {
  return value.kind == ConfigNode::Kind::scalar ? value.scalar : value.flow();
}

ConfigNode value_of(std::string_view key, const ConfigNode& recipe,
                    const std::vector<Setting>& settings) {
  const auto setting = std::ranges::find(settings, key, &Setting::key);
  if (setting != settings.end()) {
    Diagnostics ignored;  // the trials report mistakes
    return parse_override(setting->value, {}, ignored);
  }
  const std::size_t dot = key.find('.');
  const ConfigNode* const section = recipe.find(key.substr(0, dot));
  const ConfigNode* const value = section != nullptr ? section->find(key.substr(dot + 1)) : nullptr;
  return value != nullptr ? *value : ConfigNode{};
}

std::optional<std::uintmax_t> dataset_bytes(const ConfigNode& files) {
  std::vector<std::string> paths;
  if (!read_value(files, &paths) || paths.empty()) return std::nullopt;
  std::uintmax_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code unknown;
    bytes += std::filesystem::file_size(path, unknown);
    if (unknown) return std::nullopt;
  }
  return bytes;
}

std::string dataset_names(const ConfigNode& files) {
  ConfigNode names = files;
  const auto remove_folder = [](std::string& path) {
    path = std::filesystem::path(path).filename().string();
  };
  remove_folder(names.scalar);
  for (ConfigNode& item : names.items) remove_folder(item.scalar);
  return names.flow();
}

std::string recipe_hash(const std::filesystem::path& recipe) {
  const std::vector<std::byte> bytes = read_file(recipe);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return fmt::format("{:016x}", derived_seed(0, text));
}

nlohmann::ordered_json plugin_hashes(const std::filesystem::path& recipe,
                                     const std::vector<Setting>& settings) {
  Diagnostics ignored;  // the trials report mistakes
  std::vector<Override> overrides;
  for (const Setting& setting : settings) {
    if (setting.key == "plugins")
      overrides.push_back(
          {setting.key, parse_override(setting.value, {kCommandLine, 0, 0}, ignored)});
  }
  const ConfigNode sections = read_recipe_file(recipe, ignored).sections;
  auto hashes = nlohmann::ordered_json::object();
  for (const PluginPath& plugin : plugin_paths(sections, overrides, ignored)) {
    try {
      hashes[plugin.name] = plugin_digest(plugin.path);
    } catch (const IoError&) {  // the trials report it
    }
  }
  return hashes;
}

void reject_eval_only(const ConfigNode& value, Diagnostics& diagnostics) {
  bool evaluates = false;
  if (!read_value(value, &evaluates) || !evaluates) return;
  diagnostics.error(value.origin, kEvalOnlyKey,
                    "expected false, because each run must train, got true. Evaluate weights with "
                    "`precast eval`");
}

std::filesystem::path executable_path() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

bool changes_results(const Setting& setting) {
  return !is_neutral_key(setting.key);
}

std::string trial_id(const std::vector<Setting>& settings) {
  std::vector<Setting> sorted = settings;
  std::ranges::sort(sorted, {}, &Setting::key);
  std::string prefix, lines;
  for (const Setting& setting : sorted) {
    const std::string name = setting.key.substr(setting.key.rfind('.') + 1);
    prefix += fmt::format("{}{}{}", prefix.empty() ? "" : "_", name, setting.value);
    lines += fmt::format("{}={}\n", setting.key, setting.value);
  }
  return fmt::format("{}-{:016x}", sanitized(prefix.substr(0, kMaxPrefixLength)),
                     derived_seed(0, lines));
}

TrialOutcome classify_exit(int exit_code, int signal) {
  // 128 + N: signal N killed a rank, or the program if a shell started it.
  if (signal != 0 || exit_code > 128) return TrialOutcome::retry;
  // The exit codes of shells for a program that cannot be started.
  if (exit_code == 126 || exit_code == 127) return TrialOutcome::fatal;
  switch (static_cast<ExitCode>(exit_code)) {
    case ExitCode::done:
      return TrialOutcome::done;
    case ExitCode::preempted:
      return TrialOutcome::preempted;
    case ExitCode::diverged:
      return TrialOutcome::diverged;
    case ExitCode::usage:
      return TrialOutcome::fatal;
    case ExitCode::io:
    case ExitCode::environment:
    case ExitCode::loader:
    case ExitCode::out_of_memory:
    case ExitCode::peer_failed:
    case ExitCode::stalled:
      return TrialOutcome::retry;
    case ExitCode::failed:
    case ExitCode::dataset_invalid:
    case ExitCode::checkpoint_invalid:
      break;
  }
  return TrialOutcome::failed;
}

std::string exit_text(int exit_code) {
  if (exit_code == 0) return "ended without summary.json";
  const char* const name = exit_code > 128 ? ::sigabbrev_np(exit_code - 128) : nullptr;
  return name != nullptr ? fmt::format("killed by SIG{}", name)
                         : fmt::format("exit code {}", exit_code);
}

std::optional<nlohmann::ordered_json> read_summary(const std::filesystem::path& run_folder) {
  std::ifstream file(run_folder / "summary.json");
  if (!file) return std::nullopt;
  auto summary = nlohmann::ordered_json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object()) return std::nullopt;
  summary.erase("classes");
  return summary;
}

std::string format_figure(double value, std::string_view figure) {
  if (figure.starts_with("top_")) return fmt::format("{:.4f}", value);
  // From 10,000 on, four significant digits would need an exponent.
  return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string figure_text(const nlohmann::ordered_json& value, std::string_view figure) {
  return value.is_number() ? format_figure(value.get<double>(), figure) : "-";
}

}  // namespace precast::tools
