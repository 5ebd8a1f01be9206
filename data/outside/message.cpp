#include "data/outside/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "data/outside/producer_error.h"
#include "data/ring/item.h"
#include "data/ring/layout.h"
#include "framework/core/utf8.h"

namespace precast::data {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMagic = "PCSTBTCH";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kPrefixBytes = kMagic.size() + 2 * sizeof(std::uint32_t);
constexpr std::size_t kMaxReasonBytes = 2016;

/// @param what the value's name in MESSAGE.md.
[[noreturn]] void throw_invalid(std::string_view what, const std::string& got) {
  throw ProducerError(
      fmt::format("expected a valid {} (data/outside/MESSAGE.md), got {}", what, got));
}

void expect(bool valid, std::string_view what, std::uint64_t got) {
  if (!valid) throw_invalid(what, fmt::to_string(got));
}

/// Replaces control characters, which a terminal would interpret, and truncates the result.
std::string printable(std::string text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  std::ranges::replace_if(text, is_control, '?');
  return std::string(utf8_prefix(text, kMaxReasonBytes));
}

/// Returns a value as JSON, truncated. For an array or an object, returns only the type, because
/// the recursion that writes nested values could exhaust the stack.
std::string dump(const ordered_json& value) {
  constexpr std::size_t kMaxDumpBytes = 80;
  if (!value.is_primitive()) return value.type_name();
  return value.dump(-1, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace)
      .substr(0, kMaxDumpBytes);
}

/// Accepts only the known keys, because a format with other keys will have a different version
/// number.
void check_keys(const ordered_json& object, std::span<const std::string_view> known) {
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end()) throw_invalid("key", dump(ordered_json(key)));
}

std::uint64_t number_at(const ordered_json& object, const char* key, std::uint64_t max_value) {
  if (!object.contains(key)) throw_invalid(key, "none");
  const ordered_json& value = object.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max_value)
    throw_invalid(key, dump(value));
  return value.get<std::uint64_t>();
}

std::string name_of(const ordered_json& output) {
  if (!output.contains("name") || !output.at("name").is_string())
    throw_invalid("name", dump(output));
  const std::string name = output.at("name");
  if (!is_output_name(name)) throw_invalid("name", dump(output.at("name")));
  return name;
}

ElementType dtype_of(const ordered_json& output) {
  if (!output.contains("dtype") || !output.at("dtype").is_string())
    throw_invalid("dtype", dump(output));
  const auto type = ring_dtype(output.at("dtype").get<std::string>());
  if (!type) throw_invalid("dtype", dump(output.at("dtype")));
  return *type;
}

std::vector<std::int64_t> shape_of(const ordered_json& output) {
  if (!output.contains("shape") || !output.at("shape").is_array())
    throw_invalid("shape", dump(output));
  const ordered_json& sides = output.at("shape");
  expect(!sides.empty() && sides.size() <= kMaxRingDimensions, "number of dimensions",
         sides.size());
  std::vector<std::int64_t> shape;
  for (const ordered_json& side : sides) {
    if (!side.is_number_unsigned() || side.get<std::uint64_t>() > kMaxRingDimensionSize)
      throw_invalid("shape", dump(side));
    shape.push_back(side.get<std::int64_t>());
  }
  return shape;
}

/// Reads an output, and removes its data from the start of `rest`.
HostTensor take_output(const ordered_json& output, std::span<const std::byte>& rest) {
  constexpr std::string_view kKeys[] = {"name", "dtype", "shape"};
  if (!output.is_object()) throw_invalid("output", dump(output));
  check_keys(output, kKeys);
  HostTensor tensor{.name = name_of(output),
                    .type = dtype_of(output),
                    .shape = shape_of(output),
                    .data = const_cast<std::byte*>(rest.data())};
  std::uint64_t bytes = element_size(tensor.type);
  for (const std::int64_t side : tensor.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(side), &bytes))
      throw_invalid("shape", "a shape of 2^64 bytes or more");
  }
  if (bytes > rest.size())
    throw_invalid("size",
                  fmt::format("{} of the {} bytes of '{}'", rest.size(), bytes, tensor.name));
  rest = rest.subspan(bytes);
  return tensor;
}

std::vector<HostTensor> read_outputs(const ordered_json& outputs, std::span<const std::byte> data) {
  if (!outputs.is_array()) throw_invalid("outputs", dump(outputs));
  expect(!outputs.empty() && outputs.size() <= kMaxRingOutputs, "number of outputs",
         outputs.size());
  std::vector<HostTensor> fields;
  for (const ordered_json& output : outputs) {
    HostTensor field = take_output(output, data);
    if (std::ranges::find(fields, field.name, &HostTensor::name) != fields.end())
      throw_invalid("name", fmt::format("'{}' twice", field.name));
    if (!fields.empty() && field.shape[0] != fields[0].shape[0])
      throw_invalid("number of samples",
                    fmt::format("{} in '{}' and {} in '{}'", fields[0].shape[0], fields[0].name,
                                field.shape[0], field.name));
    fields.push_back(std::move(field));
  }
  if (!data.empty()) throw_invalid("size", fmt::format("{} bytes after the data", data.size()));
  return fields;
}

/// Returns the header, and removes it and the bytes before it from `message`.
ordered_json take_header(std::span<const std::byte>& message) {
  expect(message.size() >= kPrefixBytes, "size", message.size());
  std::uint32_t numbers[2];  // version, bytes of the header
  if (std::memcmp(message.data(), kMagic.data(), kMagic.size()) != 0)
    throw_invalid("magic number", "other bytes");
  std::memcpy(numbers, message.data() + kMagic.size(), sizeof numbers);
  expect(numbers[0] == kVersion, "version", numbers[0]);
  message = message.subspan(kPrefixBytes);
  expect(numbers[1] <= kMaxMessageHeaderBytes && numbers[1] <= message.size(), "header size",
         numbers[1]);
  const auto* const text = reinterpret_cast<const char*>(message.data());
  auto header = ordered_json::parse(text, text + numbers[1], nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) throw_invalid("header", "text that is not a JSON object");
  message = message.subspan(numbers[1]);
  return header;
}

}  // namespace

OutsideMessage parse_outside_message(std::span<const std::byte> message) {
  constexpr std::string_view kBatchKeys[] = {"epoch", "batch", "outputs"};
  constexpr std::string_view kEndKeys[] = {"end"};
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const ordered_json header = take_header(message);
  OutsideMessage parsed;
  if (header.contains("end")) {
    check_keys(header, kEndKeys);
    if (!header.at("end").is_string()) throw_invalid("end", dump(header.at("end")));
    if (!message.empty())
      throw_invalid("size", fmt::format("{} bytes after the header of an end", message.size()));
    parsed.end = printable(header.at("end").get<std::string>());
    return parsed;
  }
  check_keys(header, kBatchKeys);
  if (header.contains("epoch") || header.contains("batch"))
    parsed.position = {.epoch = static_cast<std::int64_t>(number_at(header, "epoch", kMax)),
                       .batch = static_cast<std::int64_t>(number_at(header, "batch", kMax))};
  if (!header.contains("outputs")) throw_invalid("outputs", "none");
  parsed.fields = read_outputs(header.at("outputs"), message);
  return parsed;
}

std::vector<std::byte> make_outside_message(const OutsideMessage& message) {
  ordered_json header = ordered_json::object();
  if (message.end) header["end"] = *message.end;
  if (message.position)
    header.update({{"epoch", message.position->epoch}, {"batch", message.position->batch}});
  for (const HostTensor& field : message.fields)
    header["outputs"].push_back(
        {{"name", field.name}, {"dtype", ring_dtype_name(field.type)}, {"shape", field.shape}});
  const std::string text = header.dump();
  const std::uint32_t numbers[] = {kVersion, static_cast<std::uint32_t>(text.size())};
  std::vector<std::byte> bytes;
  const auto append = [&](const void* from, std::size_t count) {
    const auto* const begin = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), begin, begin + count);
  };
  append(kMagic.data(), kMagic.size());
  append(numbers, sizeof numbers);
  append(text.data(), text.size());
  for (const HostTensor& field : message.fields) append(field.data, field.bytes());
  return bytes;
}

}  // namespace precast::data
