#include "tools/report/event_sink.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/event_file.h"
#include "framework/core/file.h"
#include "framework/core/unix_time.h"
#include "tools/report/run_record.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

struct Tag {
  std::string_view key;
  std::string_view tag;
};

constexpr Tag kStepTags[] = {
    {"loss", "train/loss"}, {"current_lr", "train/lr"}, {"resolution", "train/resolution"}};
constexpr Tag kEpochTags[] = {{"train_loss", "epoch/train_loss"},
                              {"current_lr", "epoch/lr"},
                              {"resolution", "epoch/resolution"},
                              {"val_loss", "val/loss"},
                              {"top_1", "val/top_1"},
                              {"top_5", "val/top_5"}};

void add_finite(std::vector<EventScalar>& scalars, std::string_view tag, double value) {
  if (std::isfinite(value)) scalars.push_back({tag, value});
}

/// Whether the key is a standard figure of an epoch's record and not an additional metric.
bool is_standard_key(std::string_view key) {
  constexpr std::string_view kOthers[] = {"epoch",    "steps",      "skipped_steps", "images",
                                          "val_time", "train_time", "wait_time"};
  return std::ranges::find(kEpochTags, key, &Tag::key) != std::ranges::end(kEpochTags) ||
         std::ranges::find(kOthers, key) != std::ranges::end(kOthers);
}

/// Adds val/NAME for each additional metric of the record. @return the tags, which must outlive
/// `scalars`
std::vector<std::string> add_metrics(const ordered_json& record,
                                     std::vector<EventScalar>& scalars) {
  std::vector<std::string> tags;
  std::vector<double> values;
  for (const auto& [key, value] : record.items()) {
    if (!value.is_number() || is_standard_key(key)) continue;
    tags.push_back("val/" + key);
    values.push_back(value.get<double>());
  }
  for (std::size_t i = 0; i < tags.size(); ++i) add_finite(scalars, tags[i], values[i]);
  return tags;
}

}  // namespace

EventSink::EventSink(std::filesystem::path path, FileOps& ops) : file_(std::move(path), ops) {
  reset_totals();
}

void EventSink::reset_totals() {
  last_step_.reset();
  if (file_.position() == 0) last_step_ = Totals{};
  last_epoch_ = last_step_;
}

void EventSink::rewind(std::int64_t position) {
  file_.truncate(position);
  // A file that was shorter than `position` may end in an incomplete record, which is removed
  // unless its end is still in memory.
  if (!file_.has_unwritten()) {
    const std::vector<std::byte> bytes = read_file(file_.path());
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    file_.truncate(static_cast<std::int64_t>(intact_prefix_bytes(text)));
  }
  reset_totals();
}

void EventSink::write(const ordered_json& record) {
  const bool is_step = record.contains("step");
  std::vector<EventScalar> scalars;
  for (const Tag& tag :
       is_step ? std::span<const Tag>(kStepTags) : std::span<const Tag>(kEpochTags))
    add_finite(scalars, tag.tag, number_of(record, tag.key));
  std::vector<std::string> metric_tags;
  if (!is_step) metric_tags = add_metrics(record, scalars);
  std::optional<Totals>& last = is_step ? last_step_ : last_epoch_;
  const Totals now{number_of(record, "images"), number_of(record, "train_time"),
                   number_of(record, "wait_time")};
  if (last && now.train_seconds > last->train_seconds) {
    const double seconds = now.train_seconds - last->train_seconds;
    add_finite(scalars, is_step ? "train/images_per_second" : "epoch/images_per_second",
               (now.images - last->images) / seconds);
    add_finite(scalars, is_step ? "train/wait_share" : "epoch/wait_share",
               (now.wait_seconds - last->wait_seconds) / seconds);
  }
  last = now;
  const double step = number_of(record, is_step ? "step" : "steps");
  if (scalars.empty() || !std::isfinite(step)) return;
  const double wall_time = unix_seconds();
  const std::string head = file_.position() == 0 ? event_file_head(wall_time) : "";
  file_.append(head + event_record(wall_time, static_cast<std::int64_t>(step), scalars));
}

}  // namespace precast::tools
