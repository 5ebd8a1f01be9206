#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace precast::data {

/// Whether the rest of a scan has no marker: it is empty, or consists of 0xFF bytes until the file
/// ends. libjpeg also treats such a file as truncated.
[[nodiscard]] bool lacks_marker(std::span<const std::uint8_t> rest);

/// The entropy-coded bytes of a scan without the zeros that JPEG stuffs after each 0xFF, produced
/// piece by piece as the decoder advances. After the end, up to kPadding zeros may be read.
class UnstuffedBytes {
 public:
  /// Bytes that may be read past the end.
  static constexpr std::size_t kPadding = 4096;

  /// Starts at byte `first_byte` of `scan`, which is borrowed.
  void start(std::span<const std::uint8_t> scan, std::size_t first_byte);
  /// Continues until at least `bytes` bytes are available, or until the scan ends at a marker or at
  /// the end of the file.
  void extend_to(std::size_t bytes);

  [[nodiscard]] const std::uint8_t* data() const { return bytes_.data(); }
  /// Bytes available so far.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Whether the scan has ended: size() is then final.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Whether the scan ended without a marker, because the file is truncated.
  [[nodiscard]] bool is_truncated() const { return truncated_; }
  /// Position of byte `at` (<= size()) in the scan. `at` must not decrease between calls.
  [[nodiscard]] std::size_t scan_position(std::size_t at);

 private:
  std::span<const std::uint8_t> scan_;
  std::size_t first_byte_ = 0;
  std::size_t read_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
  bool ended_ = false;
  bool truncated_ = false;
  /// The values of size() at which a stuffed zero was removed.
  std::vector<std::uint32_t> removed_at_;
  std::size_t removed_before_ = 0;
};

}  // namespace precast::data
