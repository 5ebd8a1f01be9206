#include "framework/core/config/value.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "framework/core/lower_case.h"
#include "framework/core/parse_number.h"

namespace precast {
namespace {

using Kind = ConfigNode::Kind;

std::optional<bool> parse_bool(std::string_view text) {
  const std::string lower = lower_case(text);
  for (const char* yes : {"true", "yes", "on", "1"}) {
    if (lower == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0"}) {
    if (lower == no) return false;
  }
  return std::nullopt;
}

template <typename Number>
std::optional<Number> parse_signed(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return parse_number<Number>(text);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (const auto number = parse_signed<std::int64_t>(text)) return number;
  const auto truth = parse_bool(text);
  return truth ? std::optional<std::int64_t>(*truth ? 1 : 0) : std::nullopt;
}

std::optional<double> parse_finite(std::string_view text) {
  const auto number = parse_signed<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

template <typename Item>
bool read_list(const ConfigNode& node, std::vector<Item>* target) {
  if (node.kind != Kind::list) return false;
  std::vector<Item> items(node.items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!read_value(node.items[i], &items[i])) return false;
  }
  *target = std::move(items);
  return true;
}

}  // namespace

bool read_value(const ConfigNode& node, bool* target) {
  const auto value = node.kind == Kind::scalar ? parse_bool(node.scalar) : std::nullopt;
  if (value) *target = *value;
  return value.has_value();
}
bool read_value(const ConfigNode& node, std::int64_t* target) {
  const auto value = node.kind == Kind::scalar ? parse_integer(node.scalar) : std::nullopt;
  if (value) *target = *value;
  return value.has_value();
}
bool read_value(const ConfigNode& node, double* target) {
  const auto value = node.kind == Kind::scalar ? parse_finite(node.scalar) : std::nullopt;
  if (value) *target = *value;
  return value.has_value();
}
bool read_value(const ConfigNode& node, std::string* target) {
  if (node.kind != Kind::scalar) return false;
  *target = node.scalar;
  return true;
}
bool read_value(const ConfigNode& node, ConfigNode* target) {
  *target = node;
  return true;
}
bool read_value(const ConfigNode& node, std::vector<double>* target) {
  return read_list(node, target);
}
bool read_value(const ConfigNode& node, std::vector<std::string>* target) {
  if (node.kind != Kind::scalar) return read_list(node, target);
  // A single name is a list with one element; an empty scalar is an empty list.
  *target = node.scalar.empty() ? std::vector<std::string>{} : std::vector{node.scalar};
  return true;
}

nlohmann::ordered_json to_json(const ConfigNode& node) {
  switch (node.kind) {
    case Kind::null:
      return nullptr;
    case Kind::scalar: {
      if (const auto integer = parse_signed<std::int64_t>(node.scalar)) return *integer;
      if (const auto number = parse_finite(node.scalar)) return *number;
      if (node.scalar == "true" || node.scalar == "false") return node.scalar == "true";
      return node.scalar;
    }
    case Kind::list: {
      auto list = nlohmann::ordered_json::array();
      for (const ConfigNode& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case Kind::map: {
      auto map = nlohmann::ordered_json::object();
      for (const ConfigNode::Entry& entry : node.entries) map[entry.key] = to_json(entry.value);
      return map;
    }
  }
  return nullptr;
}

}  // namespace precast
