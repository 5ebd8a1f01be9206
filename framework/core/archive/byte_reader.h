#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "framework/core/error.h"

namespace precast {

/// A bounds-checked cursor over little-endian bytes. Every failure throws a CheckpointError that
/// names the source and the byte position. Borrows the bytes. Not thread-safe.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string source)
      : bytes_(bytes), source_(std::move(source)) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size() - position_; }
  [[nodiscard]] const std::string& source() const { return source_; }

  void seek(std::uint64_t position) {
    if (position > bytes_.size()) {
      fail(fmt::format("expected a position within {} bytes, got {}", bytes_.size(), position));
    }
    position_ = position;
  }

  [[nodiscard]] std::span<const std::byte> take(std::uint64_t size) {
    if (size > left()) {
      fail(fmt::format("expected {} more bytes, got {}. The file is truncated or damaged", size,
                       left()));
    }
    const auto taken = bytes_.subspan(position_, size);
    position_ += size;
    return taken;
  }

  void skip(std::uint64_t size) { static_cast<void>(take(size)); }

  template <std::integral Number>
  [[nodiscard]] Number number() {
    Number value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  [[nodiscard]] std::string_view text(std::uint64_t size) {
    const auto taken = take(size);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  /// The bytes up to the next newline, which is consumed but not returned.
  [[nodiscard]] std::string_view line() {
    std::uint64_t end = position_;
    while (end < bytes_.size() && bytes_[end] != std::byte{'\n'}) ++end;
    const std::string_view taken = text(end - position_);
    skip(1);
    return taken;
  }

  [[noreturn]] void fail(std::string_view message) const {
    throw CheckpointError(fmt::format("{}: {} (byte {})", source_, message, position_));
  }

 private:
  std::span<const std::byte> bytes_;
  std::string source_;
  std::uint64_t position_ = 0;
};

}  // namespace precast
