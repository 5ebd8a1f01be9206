#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/outside/message.h"

namespace precast::test {

/// A message with this header and data, valid or not.
inline std::vector<std::byte> raw_message(std::string_view header, std::string_view data = {},
                                          std::uint32_t version = 1) {
  std::string text = "PCSTBTCH";
  const std::uint32_t numbers[] = {version, static_cast<std::uint32_t>(header.size())};
  text.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  text.append(header).append(data);
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// A batch of `samples` images of side x side px and their labels. All pixels are equal, and so are
/// all labels.
struct TestBatch {
  explicit TestBatch(std::int64_t samples, std::int64_t side = 2, std::int64_t label = 1,
                     std::uint8_t pixel = 7)
      : pixels(static_cast<std::size_t>(samples * side * side * 3), std::byte{pixel}),
        labels(static_cast<std::size_t>(samples), label),
        fields{{.name = "image",
                .type = data::ElementType::u8,
                .shape = {samples, side, side, 3},
                .data = pixels.data()},
               {.name = "label",
                .type = data::ElementType::i64,
                .shape = {samples},
                .data = reinterpret_cast<std::byte*>(labels.data())}} {}
  TestBatch(const TestBatch&) = delete;
  TestBatch& operator=(const TestBatch&) = delete;

  [[nodiscard]] std::vector<std::byte> message(
      std::optional<data::RingPosition> position = {}) const {
    return data::make_outside_message({.end = {}, .position = position, .fields = fields});
  }

  std::vector<std::byte> pixels;
  std::vector<std::int64_t> labels;
  std::vector<data::HostTensor> fields;
};

}  // namespace precast::test
