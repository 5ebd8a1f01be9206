#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "data/beton/reader.h"
#include "data/loader/memory_plan.h"
#include "framework/api/batch_source.h"

namespace sparse_regression {

struct StreamOptions {
  /// The field with the features, and the field with the target.
  std::string features_field = "x";
  std::string target_field = "y";
  std::int64_t batch_size = 512;
  int workers = 1;
  /// `sequential`, `random` or `quasi_random`.
  std::string order = "quasi_random";
  std::uint64_t seed = 0;
  /// Whether reads bypass the kernel's page cache.
  bool direct_io = false;
  /// The total memory that the process may use, in bytes.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  /// Bytes of `memory_bytes` that the caller will use itself, in addition to the memory that the
  /// process uses already.
  std::function<std::uint64_t(std::int64_t samples, std::int64_t features)> reserved = {};
  at::Device device = at::kCPU;
};

/// Counts and times of the stream so far.
struct StreamStatistics {
  std::int64_t passes = 0;
  /// Time spent waiting for batches.
  double seconds_waited = 0;
  double seconds = 0;
};

/// Streams the rows of a feature matrix from a .beton file that need not fit into memory, in
/// batches. With the same options, their content depends only on the pass and, for the order
/// `quasi_random`, on the memory that is left for pages. Use from one thread.
class SampleStream {
 public:
  /// @throws precast::DataError for a file without these fields, a field of a different type or a
  /// target that is not finite; precast::ConfigError if the memory is too small; precast::IoError.
  SampleStream(const std::filesystem::path& path, const StreamOptions& options);
  ~SampleStream();

  [[nodiscard]] std::int64_t samples() const { return targets_.numel(); }
  [[nodiscard]] std::int64_t features() const { return features_; }
  [[nodiscard]] std::int64_t batch_size() const { return options_.batch_size; }
  [[nodiscard]] at::Device device() const { return options_.device; }
  /// float64 [samples], in memory.
  [[nodiscard]] const at::Tensor& targets() const { return targets_; }
  [[nodiscard]] const precast::data::MemoryPlan& plan() const { return plan_; }
  [[nodiscard]] StreamStatistics statistics() const;

  /// Runs one pass over all samples. @param visit receives the rows [batch, features] of float16 or
  /// float32, and the samples' indices, int64 [batch], both on the device. @throws
  /// precast::DataError for a damaged sample.
  using Visit = std::function<void(const at::Tensor& rows, const at::Tensor& ids)>;
  void pass(const Visit& visit);

 private:
  StreamOptions options_;
  precast::data::BetonReader reader_;
  std::int64_t features_ = 0;
  at::Tensor targets_;
  precast::data::MemoryPlan plan_;
  std::unique_ptr<precast::BatchSource> source_;
  StreamStatistics statistics_;
};

/// The time of a monotonic clock, in seconds.
[[nodiscard]] double now_seconds();

/// The resident memory of the process in bytes, now and at its peak; 0 if unknown. @{
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t peak_resident_bytes();
/// @}

}  // namespace sparse_regression
