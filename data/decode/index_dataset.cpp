#include "data/decode/index_dataset.h"

#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "data/beton/reader.h"
#include "data/decode/jpeg_decoder.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// The threads' common state.
class Indexing {
 public:
  Indexing(const BetonReader& reader, std::size_t field, JpegIndex& index)
      : reader_(reader), field_(field), index_(index) {}

  void work() {
    JpegDecoder decoder;
    std::vector<std::uint64_t> points;
    for (std::uint64_t sample = next_++; sample < reader_.size() && !failed_; sample = next_++) {
      try {
        add(decoder, sample, points);
      } catch (const DataError& error) {
        fail(sample, error);
      }
      ++done_;
    }
  }

  [[nodiscard]] std::uint64_t done() const { return done_; }
  [[nodiscard]] IndexSummary summary() const { return {jpegs_, without_}; }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void add(JpegDecoder& decoder, std::uint64_t sample, std::vector<std::uint64_t>& points) {
    const ImageRecord image = reader_.image(sample, field_);
    if (image.mode != ImageMode::jpg) return;
    // One pixel is decoded, and the rest only read over.
    decoder.decode(image.bytes, image.height, image.width, {0, 0, 1, 1}, index_.interval(), points);
    index_.add(sample, points);
    ++jpegs_;
    if (points.empty()) ++without_;
  }

  void fail(std::uint64_t sample, const DataError& error) {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    if (sample >= failed_sample_) return;
    failed_sample_ = sample;
    failure_ = std::make_exception_ptr(
        DataError(fmt::format("{}: sample {}, field '{}': {}", reader_.path().string(), sample,
                              reader_.fields()[field_].name, error.what())));
  }

  const BetonReader& reader_;
  const std::size_t field_;
  JpegIndex& index_;
  std::atomic<std::uint64_t> next_{0}, done_{0}, jpegs_{0}, without_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::uint64_t failed_sample_ = UINT64_MAX;
  std::exception_ptr failure_;
};

}  // namespace

std::unique_ptr<JpegIndex> index_dataset(const BetonReader& reader, std::size_t field,
                                         std::size_t interval, int workers,
                                         const std::function<void(std::uint64_t)>& on_progress,
                                         IndexSummary& summary) {
  auto index = std::make_unique<JpegIndex>(reader.size(), interval, UINT64_MAX);
  Indexing indexing(reader, field, *index);
  std::atomic<int> running{workers};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) {
      threads.emplace_back([&] {
        indexing.work();
        --running;
      });
    }
    while (running > 0) {
      on_progress(indexing.done());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  indexing.rethrow();
  summary = indexing.summary();
  return index;
}

}  // namespace precast::data
