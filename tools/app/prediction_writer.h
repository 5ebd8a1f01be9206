#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/file.h"
#include "tools/app/prediction_table.h"

namespace precast::tools {

/// The output of predict and its destination.
struct PredictFormat {
  /// `.npy`, `.csv` or `.jsonl`; empty: a CSV on standard output, unless `json`.
  std::filesystem::path file;
  /// Whether to print JSON lines on standard output, in addition to the file.
  bool json = false;
  /// Whether to write logits: in the CSV in place of classes, and in addition to them in the JSON.
  bool logits = false;
  /// How logits become probabilities of classes; nullopt: the outputs are not classes, and are
  /// written unchanged (`logits` is then true).
  std::optional<Probability> classes = Probability::softmax;
  /// Name of the first column of a CSV of logits. Its other columns are `logit_0`, `logit_1` and so
  /// on, or `output_0` and so on if the outputs are not classes.
  std::string first_column = "sample";
  /// Number of classes to write per sample.
  std::int64_t top = 1;
};

/// @throws Error with the signal's exit code if the process was asked to stop (StopSignals)
void throw_if_stopped();

/// Writes the predictions. Lines of a `.csv` or `.jsonl` file are written as predictions are added,
/// and the file appears under its name when it is complete. The rows of a `.npy` and the text to
/// print stay in memory until finish().
class PredictionWriter {
 public:
  PredictionWriter(PredictFormat format, std::vector<std::string> class_names);

  /// Checks that the outputs can be written. Call it before predicting: an error after hours of
  /// predicting would lose the predictions.
  /// @param dims the number of dimensions of the outputs.
  /// @throws ConfigError if `dims` is not 2 ([samples, classes]), unless only a `.npy` is written
  void check_outputs(std::int64_t dims) const;
  /// @param logits [samples, classes] float32 on the CPU, each the sum of `passes` forward passes;
  /// if only a .npy is written, [samples, ...] of any shape.
  /// @param names one for each sample.
  /// @param problems for each sample, why it could not be read, or "" if it could. Samples that
  /// could not be read are left out; in a .npy, their rows are NaN. An empty list means that all
  /// samples could be read.
  /// @throws the errors of check_outputs() and throw_if_stopped(); unless only a .npy is written,
  /// the error of check_finite(); IoError
  void add(const at::Tensor& logits, int passes, std::span<const std::string> names,
           std::span<const std::string> problems = {});
  /// Completes the file and prints the text. Call it once, after the last add().
  /// @throws IoError
  void finish();
  /// Number of samples so far, without those that could not be read.
  [[nodiscard]] std::int64_t samples() const { return samples_; }

 private:
  [[nodiscard]] bool writes_array() const { return format_.file.extension() == ".npy"; }
  [[nodiscard]] bool writes_only_array() const { return writes_array() && !format_.json; }
  [[nodiscard]] bool writes_csv() const { return format_.file.extension() == ".csv"; }
  [[nodiscard]] bool writes_jsonl() const { return format_.file.extension() == ".jsonl"; }
  void add_array(const at::Tensor& logits, std::span<const std::string> problems);
  void begin_table(const at::Tensor& logits);
  /// Counts samples with outputs that are not finite. A .npy may contain them, for example for
  /// masked logits.
  void count_not_finite(const std::string& name, std::span<const float> outputs);
  void add_row(const std::string& name, std::span<const float> logits, int passes);
  /// Adds the line to the file, to the printed output or to both, as PredictFormat says.
  void write_csv(std::string_view text);
  void write_json(std::string_view text);
  void write_to_file(std::string_view text);

  PredictFormat format_;
  std::vector<std::string> class_names_;
  /// Created once the number of classes is known.
  std::optional<PredictionTable> table_;
  std::vector<at::Tensor> array_;
  /// The .csv or .jsonl file; created with its first line.
  std::optional<AtomicFile> text_file_;
  /// Lines that are not in text_file_ yet, and text to print.
  std::string file_buffer_, stdout_buffer_;
  std::int64_t samples_ = 0;
  std::int64_t not_finite_ = 0;
  std::string first_not_finite_;
};

}  // namespace precast::tools
