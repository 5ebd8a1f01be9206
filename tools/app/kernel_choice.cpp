#include "tools/app/kernel_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "framework/core/format.h"
#include "models/detail/fused_norm.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// Why no part of the run can use fused kernels; empty if some can.
std::string obstacle(const ResolvedRun& run) {
  if (!run.device.is_cuda()) return "on a CPU";
  return models::detail::has_fused_kernels() ? "" : "build without CUDA";
}

/// Why no batch norm of the run can use fused kernels; empty if some can.
std::string obstacle(const ResolvedRun& run, const TrainPlan& plan) {
  const std::string reason = obstacle(run);
  if (!reason.empty()) return reason;
  return plan.channels_last ? "" : "training.channels_last: false";
}

std::int64_t reference_norms(const ordered_json& kernels) {
  std::int64_t norms = 0;
  for (const auto& count : kernels.at("reference")) norms += count.get<std::int64_t>();
  return norms;
}

/// `4: ghost_batch_norm`
std::string reasons_text(const ordered_json& kernels) {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : kernels.at("reference").items())
    reasons.push_back(fmt::format("{}: {}", count.get<std::int64_t>(), reason));
  return fmt::format("{}", fmt::join(reasons, ", "));
}

bool nothing_fused(const ordered_json& kernels) {
  return std::ranges::all_of(std::array{"fused", "blurs", "max_pools", "stems"},
                             [&](const char* part) { return kernels.at(part) == 0; });
}

}  // namespace

bool uses_fused_kernels(const ResolvedRun& run) {
  const std::string& setting = run.config().model.kernels;
  return setting == "fused" ||
         (setting == "auto" && models::detail::fused_kernels_tested_on(run.device));
}

ordered_json describe_kernels(const ResolvedRun& run, const TrainPlan& plan,
                              models::FusedLayerCounts norms) {
  const std::string& setting = run.config().model.kernels;
  if (!plan.model.fused_kernels) {
    ordered_json none = {
        {"setting", setting}, {"fused", 0},     {"reference", ordered_json::object()},
        {"blurs", 0},         {"max_pools", 0}, {"stems", 0}};
    if (setting == "auto" && run.device.is_cuda() && usable_gpus() == 0 &&
        models::detail::has_fused_kernels())
      none["depends_on_gpu"] = true;
    return none;
  }
  if (const std::string reason = obstacle(run, plan); !reason.empty()) {
    std::int64_t all = norms.fused;
    for (const auto& [other, count] : norms.reference) all += count;
    norms = {};
    if (all > 0) norms.reference[reason] = all;
  }
  return {{"setting", setting},   {"fused", norms.fused},         {"reference", norms.reference},
          {"blurs", norms.blurs}, {"max_pools", norms.max_pools}, {"stems", norms.stems}};
}

std::string kernels_text(const ordered_json& kernels) {
  const std::string setting = kernels.at("setting");
  if (kernels.contains("depends_on_gpu"))
    return "fused on a GPU of compute capability 9.0, otherwise reference (model.kernels: auto)";
  if (setting != "fused" && nothing_fused(kernels)) {
    const std::string reasons = reasons_text(kernels);
    return fmt::format("reference{}{}", setting == "auto" ? " (model.kernels: auto)" : "",
                       reasons.empty() ? "" : fmt::format(" ({})", reasons));
  }
  const auto fused = kernels.at("fused").get<std::int64_t>();
  const std::string reasons = reasons_text(kernels);
  return fmt::format(
      "fused for {} of {}{}, {}, {}, {}", fused,
      format_count(static_cast<std::uint64_t>(fused + reference_norms(kernels)), "batch norm"),
      reasons.empty() ? "" : fmt::format(" ({})", reasons),
      format_count(kernels.at("max_pools").get<std::uint64_t>(), "max pool"),
      format_count(kernels.at("blurs").get<std::uint64_t>(), "blur"),
      format_count(kernels.at("stems").get<std::uint64_t>(), "RGB convolution"));
}

std::string kernels_used(const ordered_json& kernels) {
  return nothing_fused(kernels) ? "reference" : "fused";
}

std::string kernels_warning(const ordered_json& kernels) {
  if (kernels.at("setting") != "fused" || !nothing_fused(kernels)) return {};
  const std::string reasons = reasons_text(kernels);
  return fmt::format(
      "model.kernels: fused has no effect ({}). All ops run as with model.kernels: reference",
      reasons.empty() ? "the model has no batch norms that are models::detail::BatchNorm2d"
                      : "batch norms: " + reasons);
}

std::vector<std::string> part_kernels_warnings(const ResolvedRun& run) {
  std::vector<std::string> warnings;
  const std::string reason = obstacle(run);
  if (reason.empty()) return warnings;
  for (const char* key : {"loss.kernels", "optimizer.kernels"}) {
    // The key exists only if the chosen part has this option.
    if (run.recipe.resolved.value(key, "") == "fused")
      warnings.push_back(fmt::format("{}: fused has no effect ({})", key, reason));
  }
  return warnings;
}

}  // namespace precast::tools
