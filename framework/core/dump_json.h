#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace precast {

/// `value` as JSON text, on one line unless `indent` is given (spaces per level). Bytes that are
/// not UTF-8, which names of files and classes may contain, become U+FFFD; with nlohmann's dump()
/// alone, they are an error.
/// @tparam Json nlohmann::json or nlohmann::ordered_json
template <typename Json>
[[nodiscard]] std::string dump_json(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace precast
