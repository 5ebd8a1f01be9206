#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace precast::data {

/// Memory that is kept between images and never cleared: what a file merely claims to be large
/// costs nothing before it is written.
class Scratch {
 public:
  /// At least so many bytes; what was in them is lost when there were fewer.
  std::uint8_t* at_least(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t size_ = 0;
};

}  // namespace precast::data
