#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "framework/core/config/node.h"
#include "framework/core/export.h"

namespace precast {

/// Reads `node` into `*target`. @return false if the value does not fit the type; `*target` is then
/// unchanged. @{
PRECAST_API bool read_value(const ConfigNode& node, bool* target);
PRECAST_API bool read_value(const ConfigNode& node, std::int64_t* target);
PRECAST_API bool read_value(const ConfigNode& node, double* target);
PRECAST_API bool read_value(const ConfigNode& node, std::string* target);
PRECAST_API bool read_value(const ConfigNode& node, std::vector<double>* target);
PRECAST_API bool read_value(const ConfigNode& node, std::vector<std::string>* target);
PRECAST_API bool read_value(const ConfigNode& node, ConfigNode* target);
/// @}

/// Converts a value to JSON. Numbers, true and false keep their type; other scalars become strings.
[[nodiscard]] PRECAST_API nlohmann::ordered_json to_json(const ConfigNode& node);

}  // namespace precast
