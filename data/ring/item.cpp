#include "data/ring/item.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "data/ring/ring_error.h"

namespace precast::data {
namespace {

/// Indexed by ElementType.
constexpr std::array<std::string_view, 13> kRingDtypes = {
    "|u1", "<f4", "<i8", "<f8", "<f2", "bfloat16", "|i1", "<i2", "<i4", "<u2", "<u4", "<u8", "|b1"};

/// Copies memory that another process may change at any time. The reads are volatile, so the
/// compiler cannot read the source again after the copy was checked.
template <typename Record>
Record copy_once(const std::byte* from) {
  std::array<std::uint64_t, sizeof(Record) / sizeof(std::uint64_t)> words;
  const auto* const source = reinterpret_cast<const volatile std::uint64_t*>(from);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = source[i];
  return std::bit_cast<Record>(words);
}

/// @param what the name of the value in RING.md.
[[noreturn]] void throw_invalid(std::string_view what, std::string_view got) {
  throw RingError(
      fmt::format("ring: expected a valid {} (data/ring/RING.md), got {}. The producer has a "
                  "different version or a bug, or the memory is damaged",
                  what, got));
}

/// @throws RingError if `valid` is false. @param what as for throw_invalid()
void expect(bool valid, std::string_view what, std::uint64_t got) {
  if (!valid) throw_invalid(what, fmt::to_string(got));
}

/// Whether [offset, offset + bytes) is inside [begin, end) and aligned.
bool is_inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t begin, std::uint64_t end) {
  return offset % kRingAlignment == 0 && offset >= begin && offset <= end && bytes <= end - offset;
}

std::uint64_t data_end(const RingHeader& header) {
  return header.data_offset + header.data_bytes;
}

std::string read_name(const RingOutput& output) {
  const std::string_view all(output.name, sizeof output.name);
  const std::string_view name = all.substr(0, all.find('\0'));
  if (!is_output_name(name)) throw_invalid("name", fmt::format("{:?}", name));
  return std::string(name);
}

ElementType read_dtype(const RingOutput& output) {
  const std::string_view all(output.dtype, sizeof output.dtype);
  const std::string_view name = all.substr(0, all.find('\0'));
  const auto type = ring_dtype(name);
  if (!type) throw_invalid("dtype", fmt::format("{:?}", name));
  return *type;
}

/// Returns the strides in C order. @param bytes receives the size of the tensor. @throws RingError
/// if the size overflows.
std::vector<std::uint64_t> strides_of(const std::vector<std::int64_t>& shape,
                                      std::uint64_t element_bytes, std::uint64_t& bytes) {
  std::vector<std::uint64_t> strides(shape.size());
  bytes = element_bytes;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = bytes;
    const bool overflow =
        __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(shape[i]), &bytes);
    expect(!overflow, "shape", static_cast<std::uint64_t>(shape[i]));
  }
  return strides;
}

HostTensor read_output(std::span<const std::byte> memory, const RingHeader& header,
                       const RingOutput& output, std::uint64_t samples) {
  HostTensor tensor{
      .name = read_name(output), .type = read_dtype(output), .shape = {}, .data = nullptr};
  expect(output.dimensions >= 1 && output.dimensions <= kMaxRingDimensions, "dimensions",
         output.dimensions);
  for (const std::uint64_t side : std::span(output.shape).first(output.dimensions)) {
    expect(side <= kMaxRingDimensionSize, "shape", side);
    tensor.shape.push_back(static_cast<std::int64_t>(side));
  }
  expect(output.shape[0] == samples, "shape", output.shape[0]);
  std::uint64_t bytes = 0;
  const auto strides = strides_of(tensor.shape, element_size(tensor.type), bytes);
  expect(bytes == 0 || std::ranges::equal(strides, std::span(output.strides).first(strides.size())),
         "strides", output.strides[0]);
  expect(is_inside(output.offset, bytes, header.data_offset, data_end(header)), "offset",
         output.offset);
  // HostTensor has no pointer to const data. Writing is still impossible: consumers map the segment
  // read-only.
  tensor.data = const_cast<std::byte*>(memory.data() + output.offset);
  return tensor;
}

std::uint64_t slot_offset(const RingHeader& header, std::uint64_t sequence) {
  return header.slots_offset + sequence % header.slots * header.slot_bytes;
}

std::uint64_t max_outputs(const RingHeader& header) {
  return (header.slot_bytes - sizeof(RingSlot)) / sizeof(RingOutput);
}

}  // namespace

bool is_output_name(std::string_view name) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  return !name.empty() && name.size() < sizeof RingOutput::name &&
         std::ranges::none_of(name, is_control);
}

std::optional<ElementType> ring_dtype(std::string_view name) {
  const auto* const known = std::ranges::find(kRingDtypes, name);
  if (known == kRingDtypes.end()) return std::nullopt;
  return static_cast<ElementType>(known - kRingDtypes.begin());
}

std::string_view ring_dtype_name(ElementType type) {
  return kRingDtypes.at(static_cast<std::size_t>(type));
}

RingHeader read_ring_header(std::span<const std::byte> memory) {
  expect(memory.size() >= kRingHeaderBytes, "segment size", memory.size());
  const auto header = copy_once<RingHeader>(memory.data());
  expect(header.magic == kRingMagic, "magic", header.magic);
  expect(header.version == kRingVersion, "version", header.version);
  expect(header.slots >= 1 && header.slots <= kMaxRingSlots, "slots", header.slots);
  expect(header.segment_bytes == memory.size(), "segment_bytes", header.segment_bytes);
  expect(header.cells >= 1 && header.cells <= kMaxRingConsumers, "cells", header.cells);
  const std::uint64_t end = memory.size();
  const std::uint64_t control_bytes = header.control_bytes();
  expect(is_inside(header.control_offset, control_bytes, kRingHeaderBytes, end), "control_offset",
         header.control_offset);
  expect(header.slot_bytes >= sizeof(RingSlot) && max_outputs(header) <= kMaxRingOutputs &&
             header.slot_bytes == sizeof(RingSlot) + max_outputs(header) * sizeof(RingOutput),
         "slot_bytes", header.slot_bytes);
  const std::uint64_t slots_bytes = header.slots * header.slot_bytes;
  expect(is_inside(header.slots_offset, slots_bytes, header.control_offset + control_bytes, end),
         "slots_offset", header.slots_offset);
  expect(is_inside(header.data_offset, 0, header.slots_offset + slots_bytes, end), "data_offset",
         header.data_offset);
  expect(header.data_bytes <= end - header.data_offset, "data_bytes", header.data_bytes);
  const std::uint64_t text_bytes = header.description_bytes;
  expect(text_bytes <= kMaxRingDescriptionBytes, "description_bytes", text_bytes);
  expect(text_bytes == 0 || is_inside(header.description_offset, text_bytes, kRingHeaderBytes, end),
         "description_offset", header.description_offset);
  return header;
}

std::string read_ring_description(std::span<const std::byte> memory, const RingHeader& header) {
  if (header.description_bytes == 0) return {};
  const std::byte* const at = memory.data() + header.description_offset;
  return {reinterpret_cast<const char*>(at), header.description_bytes};
}

RingItem read_ring_item(std::span<const std::byte> memory, const RingHeader& header,
                        std::uint64_t sequence) {
  const std::byte* const at = memory.data() + slot_offset(header, sequence);
  const auto slot = copy_once<RingSlot>(at);
  expect(slot.sequence == sequence, "sequence", slot.sequence);
  expect(slot.kind == static_cast<std::uint32_t>(RingKind::batch) ||
             slot.kind == static_cast<std::uint32_t>(RingKind::end_of_pass),
         "kind", slot.kind);
  const bool batch = slot.kind == static_cast<std::uint32_t>(RingKind::batch);
  expect(slot.outputs <= (batch ? max_outputs(header) : 0), "outputs", slot.outputs);
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  expect(slot.epoch <= kMax, "epoch", slot.epoch);
  expect(slot.batch <= kMax, "batch", slot.batch);
  expect(slot.samples <= (batch ? kMaxRingDimensionSize : 0), "samples", slot.samples);
  RingItem item{.kind = static_cast<RingKind>(slot.kind),
                .position = {.epoch = static_cast<std::int64_t>(slot.epoch),
                             .batch = static_cast<std::int64_t>(slot.batch)}};
  if (!batch) return item;
  expect(is_inside(slot.ids_offset, slot.samples * sizeof(std::uint64_t), header.data_offset,
                   data_end(header)),
         "ids_offset", slot.ids_offset);
  item.sample_ids.resize(slot.samples);
  if (slot.samples > 0)
    std::memcpy(item.sample_ids.data(), memory.data() + slot.ids_offset,
                slot.samples * sizeof(std::uint64_t));
  for (std::uint32_t i = 0; i < slot.outputs; ++i) {
    const auto output = copy_once<RingOutput>(at + sizeof(RingSlot) + i * sizeof(RingOutput));
    HostTensor tensor = read_output(memory, header, output, slot.samples);
    if (std::ranges::find(item.fields, tensor.name, &HostTensor::name) != item.fields.end())
      throw_invalid("name", fmt::format("'{}' twice", tensor.name));
    item.fields.push_back(std::move(tensor));
  }
  return item;
}

void write_ring_item(std::span<std::byte> memory, const RingHeader& header, std::uint64_t sequence,
                     const RingItem& item, std::uint64_t ids_offset) {
  expect(item.fields.size() <= max_outputs(header), "outputs", item.fields.size());
  const std::uint64_t ids_bytes = item.sample_ids.size() * sizeof(std::uint64_t);
  expect(is_inside(ids_offset, ids_bytes, header.data_offset, data_end(header)), "ids_offset",
         ids_offset);
  if (ids_bytes > 0) std::memcpy(memory.data() + ids_offset, item.sample_ids.data(), ids_bytes);
  const RingSlot slot{.sequence = sequence,
                      .kind = static_cast<std::uint32_t>(item.kind),
                      .outputs = static_cast<std::uint32_t>(item.fields.size()),
                      .epoch = static_cast<std::uint64_t>(item.position.epoch),
                      .batch = static_cast<std::uint64_t>(item.position.batch),
                      .samples = item.sample_ids.size(),
                      .ids_offset = ids_offset};
  std::byte* at = memory.data() + slot_offset(header, sequence);
  std::memcpy(at, &slot, sizeof slot);
  at += sizeof slot;
  for (const HostTensor& tensor : item.fields) {
    RingOutput output{.dimensions = static_cast<std::uint32_t>(tensor.shape.size())};
    expect(tensor.name.size() < sizeof output.name, "name", tensor.name.size());
    expect(tensor.shape.size() <= kMaxRingDimensions, "dimensions", tensor.shape.size());
    tensor.name.copy(output.name, tensor.name.size());
    const std::string_view dtype = ring_dtype_name(tensor.type);
    dtype.copy(output.dtype, dtype.size());
    std::uint64_t bytes = 0;
    std::ranges::copy(tensor.shape, output.shape);
    std::ranges::copy(strides_of(tensor.shape, element_size(tensor.type), bytes), output.strides);
    output.offset = static_cast<std::uint64_t>(tensor.data - memory.data());
    std::memcpy(at, &output, sizeof output);
    at += sizeof output;
  }
  // Consumers make the same checks: report an invalid item here, not in their processes.
  static_cast<void>(read_ring_item(memory, header, sequence));
}

}  // namespace precast::data
