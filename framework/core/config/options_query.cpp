#include "framework/core/config/options_query.h"

#include <fmt/format.h>

namespace precast {

OptionsAnswer::OptionsAnswer(std::string_view where, std::string help, std::string defaults)
    : ConfigError(fmt::format("{}: expected options, got '?'. There are\n{}", where,
                              help.empty() ? "  none\n" : help)),
      help_(std::move(help)),
      defaults_(std::move(defaults)) {}
OptionsAnswer::~OptionsAnswer() = default;

ConfigNode options_query() {
  ConfigNode query;
  query.kind = ConfigNode::Kind::map;
  query.entries.push_back({std::string(OptionsAnswer::kKey), {}, {}});
  return query;
}

}  // namespace precast
