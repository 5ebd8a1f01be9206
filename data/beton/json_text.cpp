#include "data/beton/json_text.h"

#include <nlohmann/json.hpp>
#include <string>

namespace precast::data {
namespace {

using Json = nlohmann::ordered_json;

/// Goes over a document without building it; stops, with false, where it leaves the limits.
class LimitCheck final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  /// nlohmann takes whole numbers of more than 64 bits for floats.
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

}  // namespace

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
