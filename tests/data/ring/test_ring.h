#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "data/ring/item.h"
#include "data/ring/ring_writer.h"

namespace precast::test {

/// A ring in memory: 2 slots, 2 cells, at most 2 outputs. Item 0 is a batch of 3 samples, item 1
/// the end of its pass. The description is after the data.
struct TestRing {
  static constexpr std::uint64_t kControlAt = 192, kSlotsAt = 448, kDataAt = 1600;
  static constexpr std::uint64_t kDescriptionAt = 1856, kBytes = 1920;
  static constexpr std::uint64_t kIdsBytes = 128;
  static constexpr std::string_view kDescription = R"({"of":"TestRing"})";

  TestRing() : words(kBytes / sizeof(std::uint64_t)) {
    data::RingWriter writer(bytes(), header, /*batch_size=*/3);
    std::ranges::copy(std::as_bytes(std::span(kDescription)), bytes().begin() + kDescriptionAt);
    std::byte* const at = bytes().data() + kDataAt + kIdsBytes;
    for (int i = 0; i < 12; ++i) at[i] = static_cast<std::byte>(i);
    writer.publish(
        {.position = {.epoch = 5, .batch = 7},
         .fields =
             {{.name = "image", .type = data::ElementType::u8, .shape = {3, 2, 2}, .data = at},
              {.name = "label", .type = data::ElementType::i64, .shape = {3}, .data = at + 64}},
         .sample_ids = {9, 4, 6}},
        nullptr);
    writer.publish({.kind = data::RingKind::end_of_pass, .position = {.epoch = 5, .batch = 8}},
                   nullptr);
  }

  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)); }

  data::RingHeader header = {.slots = 2,
                             .segment_bytes = kBytes,
                             .cells = 2,
                             .control_offset = kControlAt,
                             .slots_offset = kSlotsAt,
                             .slot_bytes = 64 + 2 * 256,
                             .data_offset = kDataAt,
                             .data_bytes = kDescriptionAt - kDataAt,
                             .description_offset = kDescriptionAt,
                             .description_bytes = kDescription.size()};
  std::vector<std::uint64_t> words;
};

}  // namespace precast::test
