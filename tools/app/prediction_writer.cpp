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
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/process/stop_signals.h"

namespace precast::tools {
namespace {

constexpr std::size_t kWriteBytes = 1U << 20U;

}  // namespace

void throw_if_stopped() {
  if (!StopSignals::requested()) return;
  throw Error("predict: stopped before the result was complete",
              static_cast<ExitCode>(StopSignals::exit_code()));
}

PredictionWriter::PredictionWriter(PredictFormat format, std::vector<std::string> class_names)
    : format_(std::move(format)), class_names_(std::move(class_names)) {}

void PredictionWriter::check_outputs(std::int64_t dims) const {
  if (writes_only_array() || dims == 2) return;
  throw ConfigError(
      fmt::format("predict: expected one output for each class, [samples, classes], got {} "
                  "dimensions. Write a .npy file, which can store any shape",
                  dims));
}

void PredictionWriter::add(const at::Tensor& logits, int passes, std::span<const std::string> names,
                           std::span<const std::string> problems) {
  check_outputs(logits.dim());
  const at::Tensor rows = logits.contiguous();
  if (writes_array()) add_array(rows, problems);
  if (!writes_only_array() && !table_) begin_table(rows);
  const auto readable = [&](std::size_t i) { return problems.empty() || problems[i].empty(); };
  const std::size_t outputs =
      names.empty() ? 0 : static_cast<std::size_t>(rows.numel()) / names.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!readable(i)) continue;
    ++samples_;
    const std::span<const float> row{rows.const_data_ptr<float>() + i * outputs, outputs};
    if (writes_only_array()) {
      count_not_finite(names[i], row);
      continue;
    }
    check_finite(names[i], row);
    throw_if_stopped();
    add_row(names[i], row, passes);
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
  const std::int64_t classes = logits.size(1);
  if (!class_names_.empty() && std::ssize(class_names_) != classes) {
    log_warning(
        "predict: expected {} class names, one per output of the model, got {}. Labels are written "
        "as numbers",
        classes, class_names_.size());
    class_names_.clear();
  }
  table_.emplace(class_names_, std::min(format_.top, classes));
  write_csv(format_.logits ? logits_csv_header(format_.first_column, classes,
                                               format_.classes ? "logit" : "output")
                           : table_->csv_header());
}

void PredictionWriter::add_row(const std::string& name, std::span<const float> logits, int passes) {
  const bool json = format_.json || writes_jsonl();
  const bool csv = writes_csv() || (format_.file.empty() && !json);
  if (csv && format_.logits) write_csv(logits_csv_row(name, logits));
  if (json && !format_.classes) write_json(outputs_json_row(name, logits));
  if (!format_.classes || (!json && format_.logits)) return;
  const std::vector<Prediction> best = most_probable(logits, passes, format_.top, *format_.classes);
  if (csv && !format_.logits) write_csv(table_->csv_row(name, best));
  if (!json) return;
  write_json(table_->json_row(name, best, format_.logits ? logits : std::span<const float>()));
}

void PredictionWriter::write_csv(std::string_view text) {
  if (writes_csv()) write_to_file(text);
  if (format_.file.empty() && !format_.json) stdout_buffer_ += text;
}

void PredictionWriter::write_json(std::string_view text) {
  if (writes_jsonl()) write_to_file(text);
  if (format_.json) stdout_buffer_ += text;
}

void PredictionWriter::write_to_file(std::string_view text) {
  if (!text_file_) text_file_.emplace(format_.file);
  file_buffer_ += text;
  if (file_buffer_.size() < kWriteBytes) return;
  text_file_->append(file_buffer_);
  file_buffer_.clear();
}

void PredictionWriter::count_not_finite(const std::string& name, std::span<const float> outputs) {
  if (std::ranges::all_of(outputs, [](float value) { return std::isfinite(value); })) return;
  if (not_finite_++ == 0) first_not_finite_ = name;
}

void PredictionWriter::finish() {
  if (not_finite_ > 0) {
    log_warning("predict: {} outputs that are NaN or infinite; the first one is {}",
                not_finite_ == 1 ? "1 sample has" : fmt::format("{} samples have", not_finite_),
                first_not_finite_);
  }
  if (writes_array()) {
    const at::Tensor all = (array_.size() == 1 ? array_[0] : at::cat(array_)).contiguous();
    const auto* bytes = static_cast<const std::byte*>(all.const_data_ptr());
    write_npy(format_.file, DType::f32, all.sizes().vec(), {bytes, all.nbytes()});
  } else if (!format_.file.empty()) {
    write_to_file("");  // creates the file even if there are no samples
    text_file_->append(file_buffer_);
    text_file_->commit();
  }
  fmt::print("{}", stdout_buffer_);
  if (!format_.file.empty())
    log_info("{}: {}", format_.file.string(),
             format_count(static_cast<std::uint64_t>(samples_), "sample"));
}

}  // namespace precast::tools
