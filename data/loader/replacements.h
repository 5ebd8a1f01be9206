#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/loader/sample_reader.h"
#include "framework/api/replaced_sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// Finds intact samples to replace damaged ones, and records the replacements. A damaged sample is
/// replaced by the next intact sample in the file, wrapping around at the end. A sample is intact
/// if all outputs can be made from its values, with images decoded completely. The choice depends
/// only on the file, the outputs and the sample, not on the crop or the thread that found the
/// damage. Thread-safe.
class PRECAST_API Replacements {
 public:
  /// Borrows the reader. @param outputs the outputs that the loader makes from each sample. @param
  /// verify whether a sample with a wrong checksum counts as damaged.
  Replacements(const BetonReader& reader, std::vector<Output> outputs, const JpegOptions& jpeg,
               bool verify);
  Replacements(const Replacements&) = delete;
  Replacements& operator=(const Replacements&) = delete;

  /// @param error why `sample` cannot be used. @return the sample to use instead. @throws DataError
  /// if no sample of the file is intact; ConfigError if an intact sample does not fit its output
  /// (SampleReader::read()); IoError.
  std::uint64_t replace(std::uint64_t sample, const std::string& error);
  /// The replacements so far, sorted by sample.
  [[nodiscard]] std::vector<ReplacedSample> list() const;

 private:
  /// @return the error of a damaged sample; empty if it is intact.
  std::string problem(std::uint64_t sample);
  /// @return the next intact sample; `sample` itself if there is none.
  std::uint64_t find_next(std::uint64_t sample);

  const BetonReader& reader_;
  std::vector<Output> outputs_;
  std::vector<std::size_t> fields_;
  BatchLayout layout_;
  std::vector<std::byte> memory_;
  SampleReader samples_;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, ReplacedSample> replaced_;
  /// For each sample that a search has skipped, the next intact sample.
  std::map<std::uint64_t, std::uint64_t> next_intact_;
  bool none_intact_ = false;
};

}  // namespace precast::data
