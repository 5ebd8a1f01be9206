#include "tools/app/prediction_writer.h"

#include <ATen/ops/cat.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/log.h"
#include "framework/core/progress.h"

namespace precast::tools {

PredictionWriter::PredictionWriter(PredictFormat format, std::vector<std::string> class_names)
    : format_(std::move(format)), class_names_(std::move(class_names)) {}

void PredictionWriter::add(const at::Tensor& logits, int passes, std::span<const std::string> names,
                           std::span<const std::string> problems) {
  const at::Tensor rows = logits.contiguous();
  if (writes_array()) add_array(rows, problems);
  const bool only_array = writes_array() && !format_.json;
  if (!only_array && !table_) begin_table(rows);
  const auto readable = [&](std::size_t i) { return problems.empty() || problems[i].empty(); };
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!readable(i)) continue;
    ++samples_;
    if (only_array) continue;
    const auto classes = static_cast<std::size_t>(rows.size(1));
    add_row(names[i], {rows.const_data_ptr<float>() + i * classes, classes}, passes);
  }
}

void PredictionWriter::add_array(const at::Tensor& logits, std::span<const std::string> problems) {
  at::Tensor rows = logits;
  if (std::ranges::any_of(problems, [](const std::string& text) { return !text.empty(); })) {
    rows = logits.clone();
    for (std::size_t i = 0; i < problems.size(); ++i)
      if (!problems[i].empty()) rows.select(0, static_cast<std::int64_t>(i)).fill_(NAN);
  }
  array_.push_back(rows);
}

void PredictionWriter::begin_table(const at::Tensor& logits) {
  if (logits.dim() != 2) {
    throw ConfigError(
        fmt::format("predict: expected one output for each class, [samples, classes], got {} "
                    "dimensions. Write a .npy file, which can store any shape",
                    logits.dim()));
  }
  const std::int64_t classes = logits.size(1);
  if (!class_names_.empty() && std::ssize(class_names_) != classes) {
    log_warning(
        "predict: expected {} class names, one per output of the model, got {}. Labels are written "
        "as numbers",
        classes, class_names_.size());
    class_names_.clear();
  }
  table_.emplace(class_names_, std::min(format_.top, classes));
  csv_ = format_.logits ? logits_csv_header(format_.first_column, classes,
                                            format_.classes ? "logit" : "output")
                        : table_->csv_header();
}

void PredictionWriter::add_row(const std::string& name, std::span<const float> logits, int passes) {
  const bool json = format_.json || format_.file.extension() == ".jsonl";
  const bool csv = format_.file.extension() == ".csv" || (format_.file.empty() && !json);
  if (csv && format_.logits) csv_ += logits_csv_row(name, logits);
  if (json && !format_.classes) json_ += outputs_json_row(name, logits);
  if (!format_.classes || (!json && format_.logits)) return;
  const std::vector<Prediction> best = most_probable(logits, passes, format_.top, *format_.classes);
  if (csv && !format_.logits) csv_ += table_->csv_row(name, best);
  if (!json) return;
  json_ += table_->json_row(name, best, format_.logits ? logits : std::span<const float>());
}

void PredictionWriter::finish() {
  const std::string extension = format_.file.extension().string();
  if (writes_array()) {
    const at::Tensor all = at::cat(array_).contiguous();
    const auto* bytes = static_cast<const std::byte*>(all.const_data_ptr());
    write_npy(format_.file, DType::f32, all.sizes().vec(), {bytes, all.nbytes()});
  } else if (!format_.file.empty()) {
    write_file(format_.file, extension == ".csv" ? csv_ : json_);
  }
  if (format_.json) fmt::print("{}", json_);
  if (format_.file.empty() && !format_.json) fmt::print("{}", csv_);
  if (!format_.file.empty())
    log_info("{}: {}", format_.file.string(),
             format_count(static_cast<std::uint64_t>(samples_), "sample"));
}

}  // namespace precast::tools
