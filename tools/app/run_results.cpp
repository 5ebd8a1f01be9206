#include "tools/app/run_results.h"

#include <fmt/core.h>

#include "framework/core/format.h"

namespace precast::tools {

double train_rate(const engine::TrainSummary& summary) {
  return summary.train_seconds > 0
             ? static_cast<double>(summary.images_trained) / summary.train_seconds
             : 0;
}

void print_results(const RunResults& results) {
  const engine::TrainSummary& summary = results.summary;
  const engine::EvalResult& eval = *summary.final_eval;
  const std::string samples =
      format_count(static_cast<std::uint64_t>(eval.samples), results.images ? "image" : "sample") +
      (results.flip_tta ? ", flip TTA" : "");
  if (eval.is_classification) {
    fmt::print("\ntop-1 {:.4f}   top-5 {:.4f}   ({})\n", eval.top_1(), eval.top_5(), samples);
  } else {
    fmt::print("\nloss {:.4f}   ({})\n", eval.loss, samples);
  }
  for (const auto& [name, value] : eval.metrics) fmt::print("{} {:.4f}\n", name, value);
  const double waiting =
      summary.train_seconds > 0 ? 100 * summary.wait_seconds / summary.train_seconds : 0;
  fmt::print("training   {:>8}   {:.0f} {}/s, {:.1f} % of the time waiting for data\n",
             format_duration(summary.train_seconds), train_rate(summary),
             results.images ? "img" : "samples", waiting);
  fmt::print("evaluation {:>8}\n", format_duration(summary.eval_seconds));
  for (const std::string& line : results.data) fmt::print("data       {}\n", line);
  fmt::print(
      "run folder {}: report.html, final_weights.safetensors, final_weights.pt, log, params.json, "
      "summary.json, checkpoints\n",
      results.folder.string());
}

}  // namespace precast::tools
