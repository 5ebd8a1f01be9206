#include "tools/commands/sizes_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "data/beton/reader.h"
#include "data/image/image_file.h"
#include "data/jobs/each_sample.h"
#include "data/jobs/write_dataset.h"
#include "data/loader/sample_decoder.h"
#include "data/transforms/pipeline.h"
#include "data/write/image_field.h"
#include "framework/core/error.h"
#include "tools/cli/stopwatch.h"

namespace precast::tools {
namespace {

/// The cost of storing one image with one encoding.
struct Cost {
  double bytes = 0;
  double decode_seconds = 0;
};

/// How an image is encoded. Quality 0: as pixels.
struct Encoding {
  int quality = 0;
  std::int64_t max_resolution_px = 0;
};

/// Returns, for each resolution, one encoding per quality, then raw pixels.
std::vector<Encoding> encodings_of(const MeasureOptions& options) {
  std::vector<Encoding> encodings;
  for (const int side : options.resolutions_px) {
    for (const int quality : options.qualities) encodings.push_back({quality, side});
    encodings.push_back({0, side});
  }
  return encodings;
}

data::ImageFieldOptions field_options(const Encoding& encoding) {
  data::ImageFieldOptions image;
  image.mode = encoding.quality == 0 ? data::ImageWriteMode::raw : data::ImageWriteMode::jpg;
  if (encoding.quality > 0) image.jpeg_quality = encoding.quality;
  image.max_resolution_px = encoding.max_resolution_px;
  return image;
}

/// One thread's encoders and decoder.
class SampleBenchmark {
 public:
  SampleBenchmark(const std::vector<Encoding>& encodings, int crop_px)
      : crop_px_(crop_px),
        out_(static_cast<std::size_t>(crop_px) * static_cast<std::size_t>(crop_px) * 3) {
    for (const Encoding& encoding : encodings)
      fields_.push_back(std::make_unique<data::ImageField>(field_options(encoding)));
  }

  /// @param input an image of the source. @return one cost per encoding.
  std::vector<Cost> measure(data::ImageInput input, std::uint64_t sample) {
    // All encodings begin from the same pixels, so the image is decoded only once.
    if (!input.file.empty()) data::decode_image_file(input.file, input.pixels);
    input.file.clear();
    const data::Value value = std::move(input);
    std::vector<Cost> costs;
    for (const auto& field : fields_) {
      field->encode(value, sample, encoded_);
      const data::ImageRecord record = {
          static_cast<data::ImageMode>(encoded_.metadata[0]),
          data::load<std::uint16_t>(encoded_.metadata.data() + data::kImageWidthAt),
          data::load<std::uint16_t>(encoded_.metadata.data() + data::kImageHeightAt),
          encoded_.blob};
      const double begin = thread_cpu_seconds();
      decoder_.decode(record, {.sample = sample, .position = sample}, crop_px_, out_.data());
      costs.push_back({static_cast<double>(encoded_.blob.size()), thread_cpu_seconds() - begin});
    }
    return costs;
  }

 private:
  int crop_px_;
  std::vector<std::unique_ptr<data::ImageField>> fields_;
  data::EncodedValue encoded_;
  data::ImagePipeline pipeline_ = data::standard_train_pipeline();
  data::SampleDecoder decoder_{pipeline_, 0};
  std::vector<std::uint8_t> out_;
};

using Costs = std::vector<std::vector<Cost>>;

/// @param skipped receives the damaged samples if options.on_corrupt is skip.
Costs measure_all(const data::Source& source, std::size_t field, const MeasureOptions& options,
                  const std::vector<Encoding>& encodings,
                  std::vector<data::SkippedSample>& skipped) {
  Costs costs(options.samples.size());
  std::vector<data::SkippedSample> damaged(costs.size());
  const auto make_work = [&]() -> data::SampleWork {
    const auto benchmark = std::make_shared<SampleBenchmark>(encodings, options.crop_px);
    return [&, benchmark](std::uint64_t i) {
      data::Sample sample;
      try {
        sample = source.sample(options.samples[i]);
        auto* const image = std::get_if<data::ImageInput>(&sample.values.at(field));
        require(image != nullptr, "an image field gives images");
        costs[i] = benchmark->measure(std::move(*image), i);
      } catch (const DataError& error) {
        if (options.on_corrupt == data::CorruptPolicy::skip) {
          damaged[i] = {options.samples[i], sample.name, error.what()};
          return;
        }
        if (sample.name.empty()) throw;
        throw DataError(sample.name + ": " + error.what());
      }
    };
  };
  if (!data::for_each_sample(costs.size(),
                             {.workers = options.workers,
                              .on_progress = options.on_progress,
                              .cancel = options.cancel},
                             make_work))
    throw data::Cancelled();
  std::erase_if(costs, [](const std::vector<Cost>& of_image) { return of_image.empty(); });
  std::erase_if(damaged, [](const data::SkippedSample& sample) { return sample.error.empty(); });
  skipped = std::move(damaged);
  if (costs.empty())
    throw DataError(fmt::format(
        "expected at least one intact sample among the {} that were read, got none. The first "
        "is damaged: {}",
        options.samples.size(), skipped.at(0).error));
  return costs;
}

/// Combines the costs of two encodings according to the JPEG share of `settings`.
/// @param jpeg, raw the indices of the encodings.
MeasuredSettings combine(const Costs& costs, std::size_t jpeg, std::size_t raw,
                         const StorageSettings& settings) {
  const auto count = static_cast<double>(costs.size());
  double sum = 0;
  double squares = 0;
  double seconds = 0;
  for (const std::vector<Cost>& image : costs) {
    const double share = settings.jpeg_share;
    const double bytes = share * image[jpeg].bytes + (1 - share) * image[raw].bytes;
    sum += bytes;
    squares += bytes * bytes;
    seconds += share * image[jpeg].decode_seconds + (1 - share) * image[raw].decode_seconds;
  }
  const double mean = sum / count;
  const double variance = count > 1 ? (squares - count * mean * mean) / (count - 1) : 0;
  return {settings, mean, std::sqrt(std::max(0.0, variance) / count),
          count / std::max(seconds, 1e-9)};
}

}  // namespace

Measurement measure_settings(const data::Source& source, std::size_t field,
                             const MeasureOptions& options) {
  Measurement measured;
  const Costs costs = measure_all(source, field, options, encodings_of(options), measured.skipped);
  const std::size_t stride = options.qualities.size() + 1;
  std::vector<MeasuredSettings>& candidates = measured.candidates;
  for (std::size_t side = 0; side < options.resolutions_px.size(); ++side) {
    const int side_px = options.resolutions_px[side];
    const std::size_t raw = side * stride + options.qualities.size();
    for (const double share : options.jpeg_shares) {
      if (share == 0) {
        candidates.push_back(combine(costs, raw, raw, {0, 0, side_px}));
        continue;
      }
      for (std::size_t q = 0; q < options.qualities.size(); ++q)
        candidates.push_back(
            combine(costs, side * stride + q, raw, {share, options.qualities[q], side_px}));
    }
  }
  return measured;
}

}  // namespace precast::tools
