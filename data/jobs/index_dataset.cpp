#include "data/jobs/index_dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "data/decode/baseline_header.h"
#include "data/decode/index_share.h"
#include "data/jobs/checkpoint_finder.h"
#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::data {
namespace {

/// Adds the checkpoints of JPEGs to the index, for one thread.
class Indexing {
 public:
  Indexing(const BetonReader& reader, std::size_t field, JpegIndex& index, IndexSummary& all,
           std::mutex& mutex)
      : reader_(reader),
        field_(field),
        index_(index),
        finder_(index.interval()),
        total_(all),
        mutex_(mutex) {}
  Indexing(const Indexing&) = delete;
  Indexing& operator=(const Indexing&) = delete;
  ~Indexing() {
    const std::scoped_lock lock(mutex_);
    total_.jpegs += finder_.jpegs();
    total_.unindexed += finder_.unindexed();
    std::ranges::move(damaged_, std::back_inserter(total_.damaged));
  }

  void add(std::uint64_t sample) {
    const ImageRecord image = reader_.image(sample, field_);
    if (image.mode != ImageMode::jpg) return;
    try {
      finder_.find(image, points_);
    } catch (const DataError& error) {
      // A damaged JPEG has no checkpoints; the code that decodes it handles the error.
      damaged_.push_back({sample, error.what()});
    }
    index_.add(sample, points_);
  }

 private:
  const BetonReader& reader_;
  const std::size_t field_;
  JpegIndex& index_;
  CheckpointFinder finder_;
  std::vector<std::uint64_t> points_;
  std::vector<DamagedJpeg> damaged_;
  IndexSummary& total_;
  std::mutex& mutex_;
};

/// Returns the number of pixels per MCU of a JPEG. If the file is not mapped or the JPEG is not a
/// baseline one, returns 256, the number in most JPEGs.
double mcu_pixels(const BetonReader& reader, std::uint64_t sample, std::size_t field) {
  if (reader.disk() != nullptr) return 256;
  const auto header = parse_baseline_header(reader.image(sample, field).bytes);
  return header ? 64.0 * header->luma_columns * header->luma_rows : 256;
}

/// Estimates the size, in bytes, of an index with the default distance between checkpoints.
/// Inspects fewer than 2,000 samples; returns 0 if none of them is a JPEG.
std::uint64_t estimated_bytes(const BetonReader& reader, std::size_t field) {
  constexpr std::uint64_t kProbes = 1000;
  constexpr double kCheckpointBytes = 8;
  double bytes = 0;
  double pixels_of_mcu = 0;
  const std::uint64_t step = std::max<std::uint64_t>(1, reader.size() / kProbes);
  std::uint64_t probes = 0;
  for (std::uint64_t sample = 0; sample < reader.size(); sample += step, ++probes) {
    if (reader.image_mode(sample, field) != ImageMode::jpg) continue;
    if (pixels_of_mcu == 0) pixels_of_mcu = mcu_pixels(reader, sample, field);
    bytes += kCheckpointBytes * static_cast<double>(reader.image_pixels(sample, field)) /
             (pixels_of_mcu * kDefaultCheckpointInterval);
  }
  return static_cast<std::uint64_t>(bytes / static_cast<double>(probes) *
                                    static_cast<double>(reader.size()));
}

/// Opens the index of each of several files.
std::shared_ptr<JpegIndex> open_indices(const BetonReader& reader, std::uint64_t max_bytes) {
  std::vector<std::shared_ptr<JpegIndex>> indices;
  bool any = false;
  for (const BetonReader& file : reader.files()) {
    indices.push_back(open_jpeg_index(file, share_of(max_bytes, file.size(), reader.size())));
    any = any || indices.back() != nullptr;
    if (indices.back() == nullptr)
      indices.back() = std::make_shared<JpegIndex>(file.size(), kDefaultCheckpointInterval, 0);
  }
  return any ? std::make_shared<JpegIndex>(std::move(indices)) : nullptr;
}

}  // namespace

std::shared_ptr<JpegIndex> open_jpeg_index(const BetonReader& reader, std::uint64_t max_bytes) {
  const std::size_t field = reader.first_field(FieldType::image);
  if (field >= reader.fields().size()) return nullptr;
  if (reader.num_files() > 1) return open_indices(reader, max_bytes);
  const std::uint64_t bytes = estimated_bytes(reader, field);
  if (bytes == 0) return nullptr;
  const auto sidecar = jpeg_sidecar(reader.path());
  if (std::error_code ignored; std::filesystem::exists(sidecar, ignored)) {
    try {
      return JpegIndex::open(sidecar, reader.fingerprint(), reader.size());
    } catch (const Error& error) {
      log_warning("{}", error.what());
    }
  }
  if (max_bytes == 0) return nullptr;
  // Leaves room for the checkpoint at the start of each row of MCUs, which does not depend on the
  // distance.
  const std::uint64_t enough = bytes + bytes / 2;
  // If this index would be too large, uses one checkpoint per row of MCUs.
  constexpr std::size_t kRowInterval = 4096;
  return enough <= max_bytes
             ? std::make_shared<JpegIndex>(reader.size(), kDefaultCheckpointInterval, enough)
             : std::make_shared<JpegIndex>(reader.size(), kRowInterval, max_bytes);
}

std::unique_ptr<JpegIndex> index_dataset(const BetonReader& reader, std::size_t field,
                                         std::size_t interval, const ForEachOptions& options,
                                         IndexSummary& summary) {
  auto index = std::make_unique<JpegIndex>(reader.size(), interval, UINT64_MAX);
  summary = {};
  std::mutex mutex;
  summary.cancelled = !for_each_sample(reader.size(), options, [&] {
    auto indexing = std::make_shared<Indexing>(reader, field, *index, summary, mutex);
    return [indexing](std::uint64_t sample) { indexing->add(sample); };
  });
  std::ranges::sort(summary.damaged, {}, &DamagedJpeg::sample);
  return index;
}

}  // namespace precast::data
