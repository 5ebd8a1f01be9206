#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/registry.h"

namespace precast::tools {

/// Rethrows what code of a plug-in threw as an error that begins with `what`, as `plug-in a.so:
/// model 'b' could not be made`. Exit codes that say something stay, as does running out of memory;
/// all else gets `otherwise`. Call in a handler.
[[noreturn]] void rethrow_from_plugin(const std::string& what, ExitCode otherwise);

/// Adds the parts that a plug-in registered in `from`. Factories that throw, or that make nothing,
/// are told by their names and the plug-in's.
/// @tparam Guards `rethrow`, as rethrow_from_plugin, and `guarded(part, where)`: the part so that
///                what its members throw names it, too (data_guards.h, train_guards.h).
/// @throws ConfigError if a name is taken
template <typename Guards, typename Product, typename... Args>
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
        Guards::rethrow(where + " could not be made", ExitCode::usage);
      }
      if (made == nullptr) throw ConfigError(where + ": expected an object, got a null pointer");
      return Guards::guarded(std::move(made), where);
    });
  }
}

/// A part of a plug-in, and how its members are called.
template <typename Guards, typename Product>
class GuardedPart {
 public:
  GuardedPart(std::unique_ptr<Product> part, std::string where)
      : part_(std::move(part)), where_(std::move(where)) {}

  /// The part and its plug-in, for messages.
  [[nodiscard]] const std::string& where() const { return where_; }

  /// Before the start: what is thrown refuses the recipe.
  template <typename Call>
  auto before(std::string_view member, Call call) const {
    return guard(member, ExitCode::usage, call);
  }
  /// While a command runs.
  template <typename Call>
  auto during(std::string_view member, Call call) const {
    return guard(member, ExitCode::failed, call);
  }

 private:
  template <typename Call>
  auto guard(std::string_view member, ExitCode otherwise, Call call) const {
    try {
      return call(*part_);
    } catch (...) {
      Guards::rethrow(fmt::format("{} failed in {}", where_, member), otherwise);
    }
  }

  std::unique_ptr<Product> part_;
  std::string where_;
};

}  // namespace precast::tools
