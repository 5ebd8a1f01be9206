#include "data/decode/unstuffed_bytes.h"

#include <algorithm>
#include <cstring>

#include "data/decode/pixel_kernels.h"

namespace precast::data {
namespace {

constexpr std::size_t kPiece = 8192;

}  // namespace

bool lacks_marker(std::span<const std::uint8_t> rest) {
  return std::all_of(rest.begin(), rest.end(), [](std::uint8_t byte) { return byte == 0xFF; });
}

void UnstuffedBytes::start(std::span<const std::uint8_t> scan, std::size_t first_byte) {
  scan_ = scan;
  first_byte_ = read_ = std::min(first_byte, scan.size());
  size_ = 0;
  ended_ = truncated_ = false;
  removed_at_.clear();
  removed_before_ = 0;
}

void UnstuffedBytes::extend_to(std::size_t bytes) {
  while (size_ < bytes && !ended_) {
    const std::size_t count = std::min(kPiece, scan_.size() - read_);
    // copy_until_ff() writes complete vectors, so there must be room for one more.
    if (bytes_.size() < size_ + count + kPadding + 64)
      bytes_.resize(std::max(2 * bytes_.size(), size_ + count + kPadding + 64));
    const std::uint8_t* const from = scan_.data() + read_;
    std::size_t done = 0;
    while (done < count) {
      const std::size_t plain = copy_until_ff(from + done, count - done, bytes_.data() + size_);
      done += plain;
      size_ += plain;
      if (done == count) break;
      // A 0xFF is data if a zero follows, otherwise the start of a marker.
      if (read_ + done + 1 >= scan_.size() || from[done + 1] != 0) {
        ended_ = true;
        break;
      }
      bytes_[size_++] = 0xFF;
      removed_at_.push_back(static_cast<std::uint32_t>(size_));
      done += 2;
    }
    read_ += done;
    if (read_ >= scan_.size()) ended_ = true;
  }
  if (!ended_) return;
  std::memset(bytes_.data() + size_, 0, kPadding);
  truncated_ = lacks_marker(scan_.subspan(read_));
}

std::size_t UnstuffedBytes::scan_position(std::size_t at) {
  while (removed_before_ < removed_at_.size() && removed_at_[removed_before_] <= at)
    ++removed_before_;
  return first_byte_ + at + removed_before_;
}

}  // namespace precast::data
