#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace precast::data {

class BetonReader;

/// A number from a sample's metadata, selected by its name in an expression: the value of an int or
/// float field (`label`); `width`, `height`, `mode` or `bytes` of an image field (`image.width`);
/// `bytes` of any other field that is not a number (`text.bytes`). Without a field's name, these
/// four names refer to the first image field, unless a number field has the same name. Const and
/// thread-safe; keeps a reference to the reader.
class SampleProperty {
 public:
  /// @throws ConfigError for an unknown name; the message suggests names.
  SampleProperty(const BetonReader& reader, std::string_view name);

  /// The value for a sample; long double represents every int64. `mode` is a data::ImageMode.
  [[nodiscard]] long double of(std::uint64_t sample) const;
  [[nodiscard]] bool is_mode() const { return kind_ == Kind::mode; }
  /// Whether the number is the value of a float field, which is a double.
  [[nodiscard]] bool is_floating() const { return kind_ == Kind::floating; }
  /// The index of the int field, if the number is the value of an int field; otherwise nothing.
  [[nodiscard]] std::optional<std::size_t> integer_field() const {
    return kind_ == Kind::integer ? std::optional(field_) : std::nullopt;
  }

 private:
  enum class Kind { integer, floating, width, height, mode, bytes };
  [[nodiscard]] bool find_number(std::string_view name);
  [[nodiscard]] bool find_property(std::string_view name);

  const BetonReader* reader_;
  std::size_t field_ = 0;
  Kind kind_ = Kind::integer;
};

}  // namespace precast::data
