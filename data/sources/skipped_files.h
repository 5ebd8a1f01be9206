#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace precast::data {

/// The files of a source that are left out of the dataset, grouped by reason.
class SkippedFiles {
 public:
  /// The files that are left out for one reason: their number, and the names of the first ones.
  struct Files {
    std::uint64_t count = 0;
    std::vector<std::string> first;
  };

  void add(const std::string& reason, const std::string& name) {
    constexpr std::size_t kMaxNamed = 5;
    Files& files = by_reason_[reason];
    ++files.count;
    if (files.first.size() < kMaxNamed) files.first.push_back(name);
  }
  /// The number of files for all reasons together.
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t all = 0;
    for (const auto& [reason, files] : by_reason_) all += files.count;
    return all;
  }
  [[nodiscard]] const std::map<std::string, Files>& by_reason() const { return by_reason_; }

 private:
  std::map<std::string, Files> by_reason_;
};

}  // namespace precast::data
