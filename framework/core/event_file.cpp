#include "framework/core/event_file.h"

#include <array>
#include <bit>

namespace precast {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  // The polynomial 0x1EDC6F41, bits reversed.
  constexpr std::uint32_t kPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

/// A CRC of data that contains CRCs is weak. Therefore, TFRecord rotates CRCs and adds a constant
/// before it stores them.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8;
}

template <typename Unsigned>
void put_fixed(std::string& out, Unsigned value) {
  for (std::size_t byte = 0; byte < sizeof(value); ++byte)
    out += static_cast<char>((value >> (8 * byte)) & 0xFF);
}

/// Reads the number that put_fixed() wrote at the front of `bytes`.
template <typename Unsigned>
Unsigned take_fixed(std::string_view bytes) {
  Unsigned value = 0;
  for (std::size_t byte = sizeof(value); byte-- > 0;)
    value = static_cast<Unsigned>(value << 8 | static_cast<unsigned char>(bytes[byte]));
  return value;
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

// Protocol Buffers' wire types.
enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

/// The beginning of an Event message; field 1 is wall_time.
std::string begin_event(double wall_time) {
  std::string event;
  put_key(event, 1, Wire::fixed64);
  put_fixed(event, std::bit_cast<std::uint64_t>(wall_time));
  return event;
}

std::string framed(std::string_view data) {
  std::string out;
  put_fixed(out, static_cast<std::uint64_t>(data.size()));
  put_fixed(out, masked_crc(out));
  out += data;
  put_fixed(out, masked_crc(data));
  return out;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

std::string event_file_head(double wall_time) {
  std::string event = begin_event(wall_time);
  put_bytes(event, 3, "brain.Event:2");  // file_version
  return framed(event);
}

std::string event_record(double wall_time, std::int64_t step,
                         std::span<const EventScalar> scalars) {
  std::string summary;
  for (const EventScalar& scalar : scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);   // tag
    put_key(value, 2, Wire::fixed32);  // simple_value
    put_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)));
    put_bytes(summary, 1, value);  // Summary: repeated Value
  }
  std::string event = begin_event(wall_time);
  put_key(event, 2, Wire::varint);  // step
  put_varint(event, static_cast<std::uint64_t>(step));
  put_bytes(event, 5, summary);  // summary
  return framed(event);
}

std::size_t intact_prefix_bytes(std::string_view file) {
  constexpr std::size_t kHead = 12, kTail = 4;
  std::size_t intact_bytes = 0;
  while (file.size() - intact_bytes >= kHead + kTail) {
    const std::string_view rest = file.substr(intact_bytes);
    const auto size = take_fixed<std::uint64_t>(rest);
    if (take_fixed<std::uint32_t>(rest.substr(8)) != masked_crc(rest.substr(0, 8)) ||
        size > rest.size() - kHead - kTail ||
        take_fixed<std::uint32_t>(rest.substr(kHead + size)) !=
            masked_crc(rest.substr(kHead, size)))
      break;
    intact_bytes += kHead + size + kTail;
  }
  return intact_bytes;
}

}  // namespace precast
