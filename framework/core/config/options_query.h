#pragma once

#include <string>
#include <string_view>

#include "framework/core/config/node.h"
#include "framework/core/error.h"
#include "framework/core/export.h"

namespace precast {

/// What Schema::apply throws when its map has the key `?`: the options that may stand there. Parts
/// whose options are read while they are made (models) so tell them before they are, to `precast
/// list`; a recipe that says `params: {"?": 1}` is told them as an error.
class PRECAST_API OptionsAnswer : public ConfigError {
 public:
  static constexpr std::string_view kKey = "?";

  /// @param help as Schema::help. @param defaults as Schema::values, JSON text.
  OptionsAnswer(std::string_view where, std::string help, std::string defaults);
  ~OptionsAnswer() override;

  [[nodiscard]] const std::string& help() const { return help_; }
  [[nodiscard]] const std::string& defaults() const { return defaults_; }

 private:
  std::string help_;
  std::string defaults_;
};

/// The map that asks: {?}.
[[nodiscard]] PRECAST_API ConfigNode options_query();

}  // namespace precast
