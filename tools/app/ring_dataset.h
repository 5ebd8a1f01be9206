#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/core/config/node.h"

namespace precast::tools {

/// The training set of data.train_dataset: ring://NAME.
struct RingDataset {
  /// Empty: the recipe names no ring.
  std::string name;
  /// The ring's description (data/ring/RING.md).
  std::string description;
  /// The dataset's files, from the description; empty: the description does not name any, since the
  /// producer is not `precast serve`.
  std::vector<std::string> files;
};

/// Reads the description of the ring that `files` names; waits up to 10 s for its producer. @param
/// origin of the key data.train_dataset.
/// @return an empty name if `files` contains no ring. @throws ConfigError if a ring is one of
/// several entries, or if its description is neither empty nor a JSON object whose `datasets`, if
/// present, is a list of files; IoError if there is no such ring; RingError.
[[nodiscard]] RingDataset find_ring_dataset(const std::vector<std::string>& files,
                                            const Origin& origin);

}  // namespace precast::tools
