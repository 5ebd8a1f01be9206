#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/registry.h"

namespace precast::tools {

/// Rethrows what a plug-in threw while it made a part, with both their names; errors of precast
/// keep their exit codes. Call in a handler.
[[noreturn]] void rethrow_from_plugin(const std::string& where);

/// Adds the parts that a plug-in registered in `from`. Factories that throw, or that make nothing,
/// are told by their names and the plug-in's.
/// @throws ConfigError if a name is taken
template <typename Product, typename... Args>
void adopt(Registry<Product, Args...>& into, const Registry<Product, Args...>& from,
           const std::string& plugin) {
  for (const auto& entry : from.entries()) {
    const std::string where = fmt::format("plug-in {}: {} '{}'", plugin, into.kind(), entry.name);
    if (into.contains(entry.name)) {
      throw ConfigError(fmt::format(
          "{}: expected a name of its own, got one that is registered already. Rename it", where));
    }
    into.add(entry.name, entry.help, [where, factory = entry.factory](Args... args) {
      std::unique_ptr<Product> made;
      try {
        made = factory(std::forward<Args>(args)...);
      } catch (...) {
        rethrow_from_plugin(where);
      }
      if (made == nullptr) throw ConfigError(where + ": expected an object, got a null pointer");
      return made;
    });
  }
}

}  // namespace precast::tools
