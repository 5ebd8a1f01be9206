#include "data/loader/replacements.h"

#include <fmt/core.h>

#include <utility>
#include <variant>

#include "data/beton/reader.h"
#include "data/loader/sample_bytes.h"
#include "data/transforms/whole_image.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Size to which an image is resized to find out whether its sample can be decoded. The size is
/// small because the resized image is not used.
constexpr std::int64_t kTrialSizePx = 16;

/// Replaces the crop by the complete image, and removes the flip and the transforms.
void simplify(ImagePipeline& pipeline) {
  pipeline.crop = std::make_shared<WholeImage>();
  pipeline.flip_probability = 0;
  pipeline.steps.clear();
}

/// The outputs without crops, transforms and conversions of numbers: a number that does not fit
/// `convert` is not damage.
std::vector<Output> without_augmentation(std::vector<Output> outputs) {
  for (Output& output : outputs) {
    if (auto* const image = std::get_if<ImageOutput>(&output.kind)) {
      simplify(image->pipeline);
      image->max_stored_side_px.reset();
    }
    if (auto* const mask = std::get_if<MaskOutput>(&output.kind)) simplify(mask->pipeline);
    if (auto* const number = std::get_if<IntegerOutput>(&output.kind)) {
      number->labels.clear();
      output.type = ElementType::i64;
    }
    if (is<FloatingOutput>(output)) output.type = ElementType::f64;
    if (is<SampleIdOutput>(output)) output.type = ElementType::i64;
  }
  return outputs;
}

}  // namespace

Replacements::Replacements(const BetonReader& reader, std::vector<Output> outputs,
                           const JpegOptions& jpeg, bool verify)
    : reader_(reader),
      outputs_(without_augmentation(std::move(outputs))),
      fields_(blob_fields_of(outputs_)),
      layout_(outputs_, /*batch_size=*/1, kTrialSizePx),
      memory_(layout_.bytes()),
      samples_(reader, outputs_, /*seed=*/0, {jpeg, nullptr}, verify) {}

std::string Replacements::problem(std::uint64_t sample) {
  try {
    DirectWindow window;
    samples_.set_window(window.read(reader_, range_of(reader_, fields_, sample)));
    samples_.read({.sample = sample}, layout_, 0, memory_.data());
    return {};
  } catch (const DataError& error) {
    return error.what();
  }
}

std::uint64_t Replacements::find_next(std::uint64_t sample) {
  const auto known = next_intact_.find(sample);
  if (known != next_intact_.end()) return known->second;
  std::uint64_t next = (sample + 1) % reader_.size();
  std::vector<std::uint64_t> passed = {sample};
  while (next != sample) {
    const auto found = next_intact_.find(next);
    if (found != next_intact_.end()) next = found->second;
    if (found != next_intact_.end() || problem(next).empty()) break;
    passed.push_back(next);
    next = (next + 1) % reader_.size();
  }
  if (next == sample) {
    // All samples are damaged only if this search has tested all of them. Otherwise, it ended
    // because an earlier search found `sample` intact: `sample` has failed now, but other samples
    // may still be replaced by it.
    none_intact_ = passed.size() == reader_.size();
    return sample;
  }
  for (const std::uint64_t bad : passed) next_intact_[bad] = next;
  return next;
}

std::uint64_t Replacements::replace(std::uint64_t sample, const std::string& error) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t by = none_intact_ ? sample : find_next(sample);
  if (by == sample && none_intact_) {
    throw DataError(fmt::format(
        "{}: expected at least one sample that can be decoded, got none of {}. The first error: {}",
        reader_.path().string(), reader_.size(), error));
  }
  if (by == sample) throw DataError(error);
  ReplacedSample& entry = replaced_[sample];
  if (entry.times++ == 0) entry = {sample, by, 1, error};
  return by;
}

std::vector<ReplacedSample> Replacements::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ReplacedSample> all;
  for (const auto& [sample, entry] : replaced_) all.push_back(entry);
  return all;
}

}  // namespace precast::data
