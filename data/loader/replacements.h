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

/// Finds sound samples to put in the place of damaged ones, and keeps account of it. The one for a
/// sample is the next of the file, after the last one the first, whose every value the outputs can
/// be made from, images decoded whole: a function of the file, the outputs and the sample, whatever
/// crop came upon the damage, and whichever thread. Thread-safe.
class PRECAST_API Replacements {
 public:
  /// Borrows the reader. @param outputs what is made of a sample. @param verify also by checksums.
  Replacements(const BetonReader& reader, std::vector<Output> outputs, const JpegOptions& jpeg,
               bool verify);
  Replacements(const Replacements&) = delete;
  Replacements& operator=(const Replacements&) = delete;

  /// @param error why `sample` cannot be used. @return the one to use. @throws DataError if no
  /// sample of the file is sound; IoError.
  std::uint64_t replace(std::uint64_t sample, const std::string& error);
  /// By sample.
  [[nodiscard]] std::vector<ReplacedSample> list() const;

 private:
  /// @return what is wrong with it; empty if nothing is.
  std::string problem(std::uint64_t sample);
  /// @return `sample` itself if there is none.
  std::uint64_t find_next(std::uint64_t sample);

  const BetonReader& reader_;
  std::vector<Output> outputs_;
  std::vector<std::size_t> fields_;
  BatchLayout layout_;
  std::vector<std::byte> memory_;
  SampleReader samples_;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, ReplacedSample> replaced_;
  /// Of samples that a search has passed over: the sound one behind them.
  std::map<std::uint64_t, std::uint64_t> next_sound_;
  bool none_is_sound_ = false;
};

}  // namespace precast::data
