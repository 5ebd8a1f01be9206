#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "data/ring/item.h"
#include "data/ring/messages.h"
#include "data/ring/ring_reader.h"
#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

using namespace precast::data;

/// More items would only run the same code again.
constexpr std::uint64_t kMaxItems = 4;

/// Reads an item, so that sanitizers detect data outside the segment. Throws if an output is
/// outside the data area.
void touch_item(Input memory, const RingHeader& header, const RingItem& item) {
  const std::byte* const begin = memory.data() + header.data_offset;
  touch(std::as_bytes(std::span(item.sample_ids)));
  for (const HostTensor& field : item.fields) {
    const Input data(field.data, field.bytes());
    require(field.shape.at(0) == static_cast<std::int64_t>(item.sample_ids.size()),
            "outputs have a row for each sample");
    require(data.data() >= begin && data.data() + data.size() <= begin + header.data_bytes,
            "outputs are inside the data");
    touch(data);
  }
  reached(item.kind == RingKind::batch ? "batch" : "end of pass");
}

/// Attaches like a consumer, and takes the published items.
void attach(std::span<std::byte> memory, const RingHeader& header) {
  std::uint64_t published = 0;
  std::memcpy(&published, memory.data() + kRingPublishedAt, sizeof published);
  const std::uint64_t first = published - std::min<std::uint64_t>(header.slots, kMaxItems);
  RingReader reader(memory, header, memory.data() + header.control_offset, header.cells - 1, first);
  reader.end();
  for (std::uint64_t i = 0; i < kMaxItems; ++i) {
    const auto taken = reader.take();
    if (!taken) break;
    touch_item(memory, header, taken->item);
    reader.release(taken->sequence);
  }
}

}  // namespace

/// Parses the input as a segment, and as each message of both sides.
void ring(Input input) {
  try {
    const RingReply reply = parse_ring_reply(input);
    touch(std::as_bytes(std::span(reply.text)));
  } catch (const RingError&) {
    reached("no reply");
  }
  try {
    static_cast<void>(parse_ring_join(input));
  } catch (const RingError&) {
    reached("no join");
  }
  // A writable copy of exactly the input's size, so that sanitizers detect reads past its end.
  std::vector<std::byte> memory(input.begin(), input.end());
  const RingHeader header = read_ring_header(memory);
  const std::string description = read_ring_description(memory, header);
  touch(std::as_bytes(std::span(description)));
  if (!description.empty()) reached("description");
  for (std::uint64_t s = 0; s < kMaxItems; ++s) {
    try {
      touch_item(memory, header, read_ring_item(memory, header, s));
    } catch (const RingError&) {
      reached("no item");
    }
  }
  attach(memory, header);
}

}  // namespace precast::fuzz
