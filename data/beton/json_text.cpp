#include "data/beton/json_text.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace precast::data {
namespace {

using Json = nlohmann::ordered_json;

/// Parses a document without building it; stops and returns false if the document exceeds the
/// limits.
class LimitCheck final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  /// nlohmann parses integers of more than 64 bits as floats.
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return text.find_first_of(".eE") != string_t::npos;
  }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*members*/) override { return ++depth_ <= kMaxJsonDepth; }
  bool key(string_t& /*value*/) override { return true; }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t /*elements*/) override { return ++depth_ <= kMaxJsonDepth; }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool leave() {
    --depth_;
    return true;
  }
  std::size_t depth_ = 0;
};

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

/// Replaces Python's extensions in `text` by standard values and characters. A text that Python's
/// json rejects stays invalid.
std::string to_standard_json(std::string_view text) {
  constexpr std::string_view kNumbers[] = {"-Infinity", "Infinity", "NaN"};
  std::string standard;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (quoted && rest[0] == '\\' && rest.size() >= 6 && rest[1] == 'u') {
      const bool surrogate = (rest[2] == 'd' || rest[2] == 'D') && rest[3] >= '8' &&
                             is_hex(rest[3]) && is_hex(rest[4]) && is_hex(rest[5]);
      standard += surrogate ? "\\u0020" : rest.substr(0, 6);
      at += 5;
      continue;
    }
    if (quoted && rest[0] == '\\' && rest.size() > 1) {
      standard += rest.substr(0, 2);
      ++at;
      continue;
    }
    if (rest[0] == '"') quoted = !quoted;
    const auto* number = std::ranges::find_if(
        kNumbers, [&](std::string_view name) { return !quoted && rest.starts_with(name); });
    if (number == std::end(kNumbers)) {
      standard += rest[0];
    } else {
      standard += "null";  // Not "0", whose digit could extend a preceding number.
      at += number->size() - 1;
    }
  }
  return standard;
}

}  // namespace

bool is_json(std::string_view text) {
  return Json::accept(text) || Json::accept(to_standard_json(text));
}

std::string_view json_text(std::span<const std::byte> value) {
  const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
  return text.substr(0, text.find('\0'));
}

Json parse_json_within_limits(std::string_view text) {
  LimitCheck check;
  if (!Json::sax_parse(text, &check)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace precast::data
