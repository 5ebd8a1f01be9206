#include "tools/app/prediction_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "framework/core/dump_json.h"
#include "framework/core/error.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

}  // namespace

void check_finite(std::string_view sample, std::span<const float> outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (std::isfinite(outputs[i])) continue;
    throw Error(fmt::format("predict: sample {}: expected finite outputs, got {} for output {}. "
                            "Check whether the weights contain NaN or infinity",
                            sample, outputs[i], i),
                ExitCode::diverged);
  }
}

std::vector<Prediction> most_probable(std::span<const float> logits, int passes, std::int64_t k,
                                      Probability kind) {
  std::vector<std::int64_t> labels(logits.size());
  std::iota(labels.begin(), labels.end(), 0);
  const auto count = std::min(static_cast<std::size_t>(k), labels.size());
  const auto middle = labels.begin() + static_cast<std::ptrdiff_t>(count);
  const auto logit = [&](std::int64_t label) { return logits[static_cast<std::size_t>(label)]; };
  std::partial_sort(labels.begin(), middle, labels.end(), [&](std::int64_t a, std::int64_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  });
  const double largest = logits.empty() ? 0 : *std::ranges::max_element(logits);
  // Weights are relative to the most probable class, so that no exponential overflows.
  const auto weight = [&](double value) { return std::exp((value - largest) / passes); };
  double sum = 0;
  if (kind == Probability::softmax)
    for (const float value : logits) sum += weight(value);
  std::vector<Prediction> best;
  for (auto label = labels.begin(); label != middle; ++label) {
    const double value = logit(*label);
    best.push_back({*label, kind == Probability::softmax ? weight(value) / sum
                                                         : 1 / (1 + std::exp(-value / passes))});
  }
  return best;
}

PredictionTable::PredictionTable(std::vector<std::string> class_names, std::int64_t top)
    : class_names_(std::move(class_names)), top_(top) {}

std::string PredictionTable::class_text(std::int64_t label) const {
  const auto index = static_cast<std::size_t>(label);
  return index < class_names_.size() ? class_names_[index] : std::to_string(label);
}

std::string PredictionTable::csv_header() const {
  std::string header = "name,class,probability";
  for (std::int64_t rank = 2; rank <= top_; ++rank)
    fmt::format_to(std::back_inserter(header), ",class_{0},probability_{0}", rank);
  return header + "\n";
}

std::string PredictionTable::csv_row(std::string_view name,
                                     std::span<const Prediction> best) const {
  std::string row = csv_text(name);
  for (const Prediction& prediction : best) {
    fmt::format_to(std::back_inserter(row), ",{},{:.6g}", csv_text(class_text(prediction.label)),
                   prediction.probability);
  }
  return row + "\n";
}

std::string PredictionTable::json_row(std::string_view name, std::span<const Prediction> best,
                                      std::span<const float> logits) const {
  auto predictions = ordered_json::array();
  for (const Prediction& prediction : best) {
    ordered_json entry = ordered_json::object();
    if (static_cast<std::size_t>(prediction.label) < class_names_.size())
      entry["class"] = class_text(prediction.label);
    entry["label"] = prediction.label;
    entry["probability"] = prediction.probability;
    predictions.push_back(std::move(entry));
  }
  ordered_json row = {{"name", name}, {"predictions", std::move(predictions)}};
  if (!logits.empty()) row["logits"] = std::vector<float>(logits.begin(), logits.end());
  return dump_json(row) + "\n";
}

std::string outputs_json_row(std::string_view name, std::span<const float> outputs) {
  const ordered_json row = {{"name", name},
                            {"outputs", std::vector<float>(outputs.begin(), outputs.end())}};
  return dump_json(row) + "\n";
}

std::string logits_csv_header(std::string_view first_column, std::int64_t classes,
                              std::string_view output) {
  std::string header(first_column);
  for (std::int64_t c = 0; c < classes; ++c)
    fmt::format_to(std::back_inserter(header), ",{}_{}", output, c);
  return header + "\n";
}

std::string logits_csv_row(std::string_view name, std::span<const float> logits) {
  std::string row = csv_text(name);
  for (const float value : logits) fmt::format_to(std::back_inserter(row), ",{:.9g}", value);
  return row + "\n";
}

}  // namespace precast::tools
