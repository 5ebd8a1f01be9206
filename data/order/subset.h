#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// The samples that are used, in ascending order of their ids.
class PRECAST_API SampleSet {
 public:
  /// All from `first` to `end` - 1.
  SampleSet(std::uint64_t first, std::uint64_t end) : first_(first), size_(end - first) {}
  explicit SampleSet(std::vector<std::uint64_t> ids) : size_(ids.size()), ids_(std::move(ids)) {}

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t index) const {
    return ids_.empty() ? first_ + index : ids_[index];
  }
  [[nodiscard]] std::uint64_t memory_bytes() const { return ids_.size() * sizeof(ids_[0]); }

 private:
  std::uint64_t first_ = 0;
  std::uint64_t size_;
  std::vector<std::uint64_t> ids_;
};

/// The syntax of a subset, for help and messages.
inline constexpr const char* kSubsetForms =
    "N (the first N), A:B (from A to B - 1), random:N (N drawn at random), random:N:SEED (another "
    "draw) or @FILE (the samples that a file lists)";

/// Whether choose_subset() accepts the text for a large enough dataset. Does not read a list.
[[nodiscard]] PRECAST_API bool is_subset(std::string_view text);

/// Chooses a part of `size` samples: "" all; "N" the first N; "A:B" those from A to B - 1 (if A or
/// B is left out, the dataset's start or end); "random:N" N samples drawn at random without
/// replacement, "random:N:SEED" another draw (SEED is 0 if left out). A draw depends only on
/// `size`, N and SEED, not on training.seed. It is therefore the same on all ranks, in resumed runs
/// and in runs with different seeds. A smaller N selects a subset of the samples of a larger N.
/// "@FILE" selects the samples that a file lists (read_sample_list() in sample_list.h).
/// @param dataset_name the dataset, for messages. @throws ConfigError; its message begins with
/// `subset`.
[[nodiscard]] PRECAST_API SampleSet choose_subset(std::string_view text, std::uint64_t size,
                                                  std::string_view dataset_name);

/// Returns a text that identifies the samples of a subset, so that two runs can be compared: `text`
/// itself or, for "@FILE", the number of the listed samples and a hash of their ids. The file may
/// thus be moved, but its samples must not change. @throws the errors of choose_subset()
[[nodiscard]] PRECAST_API std::string subset_identity(std::string_view text, std::uint64_t size,
                                                      std::string_view dataset_name);

}  // namespace precast::data
