#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// A class that a model predicts for a sample.
struct Prediction {
  std::int64_t label = 0;
  double probability = 0;
};

/// How logits become probabilities.
enum class Probability {
  /// A sample has one class: the probabilities of all classes sum to 1.
  softmax,
  /// A sample has any number of classes: each class has its own probability.
  sigmoid,
};

/// @param outputs of one sample. @param sample its name, for the message.
/// @throws Error with ExitCode::diverged if an output is not finite
void check_finite(std::string_view sample, std::span<const float> outputs);

/// The `k` most probable classes (all, if there are fewer), the most probable first; classes with
/// equal logits are in the order of their labels.
/// @param logits of one sample, summed over `passes` forward passes (2 if the mirrored image was
/// added). The probabilities are those of the mean over the passes. All logits must be finite.
[[nodiscard]] std::vector<Prediction> most_probable(std::span<const float> logits, int passes,
                                                    std::int64_t k, Probability kind);

/// Predictions as text, one line per sample.
class PredictionTable {
 public:
  /// @param class_names names of the labels from 0 on; empty: labels are written as numbers.
  /// @param top number of predictions per sample, >= 1.
  PredictionTable(std::vector<std::string> class_names, std::int64_t top);

  /// `name,class,probability`, then `class_2,probability_2` and so on, up to `top`.
  [[nodiscard]] std::string csv_header() const;
  /// A line of this CSV (RFC 4180: quotes around text with commas, quotes or line breaks).
  /// Probabilities have six significant digits.
  [[nodiscard]] std::string csv_row(std::string_view name, std::span<const Prediction> best) const;
  /// `{"name": ..., "predictions": [{"class": ..., "label": 3, "probability": 0.9}, ...]}`.
  /// `class` is missing if the class has no name. @param logits added as `logits`, unless empty
  [[nodiscard]] std::string json_row(std::string_view name, std::span<const Prediction> best,
                                     std::span<const float> logits) const;

 private:
  /// The class's name, or its number.
  [[nodiscard]] std::string class_text(std::int64_t label) const;

  std::vector<std::string> class_names_;
  std::int64_t top_;
};

/// A JSON line of outputs that are not classes: `{"name": ..., "outputs": [1.5, -0.25]}`.
[[nodiscard]] std::string outputs_json_row(std::string_view name, std::span<const float> outputs);
/// A line of logits: `name,1.5,-0.25`. Nine significant digits preserve the exact float32.
[[nodiscard]] std::string logits_csv_row(std::string_view name, std::span<const float> logits);
/// `<first column>,logit_0,logit_1,...`.
/// @param output the name of the columns, without their number.
[[nodiscard]] std::string logits_csv_header(std::string_view first_column, std::int64_t classes,
                                            std::string_view output = "logit");

}  // namespace precast::tools
