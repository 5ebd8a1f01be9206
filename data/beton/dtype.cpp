#include "data/beton/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/beton/format.h"
#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

constexpr std::size_t kMaxTimeText = 16;
constexpr std::size_t kMaxDtypeTextBytes = kFieldArgumentsBytes - kDtypeTextAt;

/// Whether the type is a numpy date or time span of 8 bytes, such as `<M8[ns]`.
bool is_time(std::string_view dtype) {
  return dtype.size() > 5 && dtype.size() <= kMaxTimeText && (dtype[1] == 'M' || dtype[1] == 'm') &&
         dtype.substr(2, 2) == "8[" && dtype.back() == ']' &&
         std::ranges::all_of(dtype.substr(4, dtype.size() - 5), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
         });
}

}  // namespace

std::uint64_t dtype_bytes(std::string_view dtype) {
  constexpr std::string_view kOrders = "<>|=";
  constexpr std::string_view kKinds = "biufcSVU";
  if (dtype.size() < 3 || kOrders.find(dtype[0]) == std::string_view::npos) return 0;
  if (is_time(dtype)) return 8;
  if (kKinds.find(dtype[1]) == std::string_view::npos) return 0;
  const std::uint64_t bytes = parse_number<std::uint32_t>(dtype.substr(2)).value_or(0);
  // numpy's Unicode characters take 4 bytes each.
  return dtype[1] == 'U' ? 4 * bytes : bytes;
}

std::string describe(const ArrayFormat& format) {
  return fmt::format("[{}] of {}", fmt::join(format.shape, ", "), format.dtype);
}

std::uint64_t array_bytes(const ArrayFormat& format, const std::string& location) {
  std::uint64_t bytes = dtype_bytes(format.dtype);
  if (bytes == 0) {
    throw DataError(fmt::format("{}: expected a plain numpy type such as <f4, got '{}'", location,
                                format.dtype));
  }
  if (format.shape.empty() || format.shape.size() > kMaxDimensions) {
    throw DataError(fmt::format("{}: expected a shape with 1 to {} dimensions, got {}", location,
                                kMaxDimensions, format.shape.size()));
  }
  for (const std::uint64_t dimension : format.shape) {
    if (dimension == 0 || __builtin_mul_overflow(bytes, dimension, &bytes) ||
        bytes > kMaxPageBytes) {
      throw DataError(
          fmt::format("{}: expected dimensions of at least 1 and a value of at most {} bytes, got "
                      "shape {}",
                      location, kMaxPageBytes, describe(format)));
    }
  }
  return bytes;
}

std::vector<std::byte> array_arguments(const ArrayFormat& format, const std::string& location) {
  (void)array_bytes(format, location);
  const std::string text = fmt::format(R"([["", "{}"]])", format.dtype);
  require(text.size() <= kMaxDtypeTextBytes,
          "a plain type's text has at most kMaxDtypeTextBytes bytes");
  std::vector<std::byte> arguments(kFieldArgumentsBytes);
  for (std::size_t i = 0; i < format.shape.size(); ++i)
    store(arguments.data() + 8 * i, format.shape[i]);
  store(arguments.data() + kDtypeLengthAt, std::uint64_t{text.size()});
  std::memcpy(arguments.data() + kDtypeTextAt, text.data(), text.size());
  return arguments;
}

/// The arguments describe the type as a struct with one unnamed member: `[["", "<f4"]]`.
ArrayFormat parse_array_arguments(const std::byte* arguments, const std::string& location) {
  const auto length = load<std::uint64_t>(arguments + kDtypeLengthAt);
  if (length == 0 || length > kMaxDtypeTextBytes) {
    throw DataError(fmt::format("{}: expected a dtype description of 1 to {} bytes, got {}",
                                location, kMaxDtypeTextBytes, length));
  }
  std::string text(length, '\0');
  std::memcpy(text.data(), arguments + kDtypeTextAt, length);
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  const bool one_member = parsed.is_array() && parsed.size() == 1 && parsed[0].is_array() &&
                          parsed[0].size() == 2 && parsed[0][1].is_string();
  ArrayFormat format;
  if (one_member) format.dtype = parsed[0][1].get<std::string>();
  if (dtype_bytes(format.dtype) == 0) {
    throw DataError(
        fmt::format("{}: expected a plain numpy dtype such as [[\"\", \"<f4\"]], got "
                    "a different description of {} bytes",
                    location, length));
  }
  for (std::size_t i = 0; i < kMaxDimensions; ++i)
    format.shape.push_back(load<std::uint64_t>(arguments + 8 * i));
  while (!format.shape.empty() && format.shape.back() == 0) format.shape.pop_back();
  if (format.shape.empty()) {
    throw DataError(fmt::format("{}: expected a shape, got none", location));
  }
  return format;
}

}  // namespace precast::data
