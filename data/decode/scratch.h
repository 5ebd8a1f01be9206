#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace precast::data {

/// Memory that is kept between images. It is never cleared, so a file that claims to be large costs
/// nothing until pixels are written.
class Scratch {
 public:
  /// Returns at least `bytes` bytes; if the memory has to grow, its content is lost.
  std::uint8_t* acquire(std::size_t bytes) {
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
