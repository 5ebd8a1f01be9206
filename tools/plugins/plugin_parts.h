#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "framework/core/config/part.h"
#include "framework/core/error.h"
#include "framework/core/registry.h"

namespace precast::tools {

/// Rethrows an exception from a plug-in's code as an error that begins with `what`, such as
/// `plug-in a.so: model 'b' could not be made`. An Error with a specific exit code keeps it; all
/// others get the exit code `otherwise`. std::bad_alloc is rethrown unchanged. Call it in an
/// exception handler.
[[noreturn]] void rethrow_from_plugin(const std::string& what, ExitCode otherwise);

/// The part and its plug-in, for messages. @throws ConfigError if its name is taken in `into`.
template <typename Product, typename... Args>
[[nodiscard]] std::string new_part(const Registry<Product, Args...>& into, const std::string& name,
                                   const std::string& plugin) {
  const std::string where = fmt::format("plug-in {}: {} '{}'", plugin, into.kind(), name);
  if (!into.contains(name)) return where;
  throw ConfigError(fmt::format(
      "{}: expected an unused name, got one that is already registered. Rename the part", where));
}

/// Calls `make` and guards the result. Errors name the part.
template <typename Guards, typename Make>
[[nodiscard]] auto make_guarded(const std::string& where, Make make) {
  decltype(make()) made;
  try {
    made = make();
  } catch (...) {
    Guards::rethrow(where + " could not be made", ExitCode::usage);
  }
  if (made == nullptr) throw ConfigError(where + ": expected an object, got a null pointer");
  return Guards::guarded(std::move(made), where);
}

/// Adds the parts that a plug-in registered in `from`. If a factory throws or returns null, the
/// error names the part and the plug-in.
/// @tparam Guards has `rethrow`, like rethrow_from_plugin, and `guarded(part, where)`, which wraps
///                the part so that its members' errors name it as well (data_guards.h,
///                train_guards.h).
/// @throws ConfigError if a name is taken
template <typename Guards, typename Product, typename... Args>
void adopt(Registry<Product, Args...>& into, const Registry<Product, Args...>& from,
           const std::string& plugin) {
  for (const auto& entry : from.entries()) {
    into.add(entry.name, entry.help,
             [where = new_part(into, entry.name, plugin), factory = entry.factory](Args... args) {
               return make_guarded<Guards>(where,
                                           [&] { return factory(std::forward<Args>(args)...); });
             });
  }
}

/// Guards a plug-in's part with options: options(), check(), and the product that make() returns.
template <typename Guards, typename Product, typename... Inputs>
class PluginPart final : public Part<Product, Inputs...> {
 public:
  PluginPart(std::unique_ptr<Part<Product, Inputs...>> part, std::string where)
      : part_(std::move(part)), where_(std::move(where)) {}

  void options(Schema& schema) override {
    try {
      part_->options(schema);
    } catch (...) {
      Guards::rethrow(where_ + " failed in options", ExitCode::usage);
    }
  }
  void check(const Schema& schema, std::string_view where,
             Diagnostics& diagnostics) const override {
    try {
      part_->check(schema, where, diagnostics);
    } catch (...) {
      Guards::rethrow(where_ + " failed in check", ExitCode::usage);
    }
  }
  [[nodiscard]] std::unique_ptr<Product> make(Inputs... inputs) const override {
    return make_guarded<Guards>(where_,
                                [&] { return part_->make(std::forward<Inputs>(inputs)...); });
  }

 private:
  std::unique_ptr<Part<Product, Inputs...>> part_;
  std::string where_;
};

/// Returns a factory that creates PluginParts.
template <typename Guards, typename Product, typename... Inputs>
[[nodiscard]] auto plugin_part(std::function<std::unique_ptr<Part<Product, Inputs...>>()> factory,
                               std::string where) {
  return [factory = std::move(factory), where = std::move(where)] {
    return std::make_unique<PluginPart<Guards, Product, Inputs...>>(factory(), where);
  };
}

/// adopt() for parts with options.
template <typename Guards, typename Product, typename... Inputs>
void adopt(PartRegistry<Product, Inputs...>& into, const PartRegistry<Product, Inputs...>& from,
           const std::string& plugin) {
  for (const auto& entry : from.entries()) {
    into.add_part(entry.name, entry.help,
                  plugin_part<Guards>(entry.factory, new_part(into, entry.name, plugin)));
  }
}

/// A plug-in's part. Calls to its members go through before() or during().
template <typename Guards, typename Product>
class GuardedPart {
 public:
  GuardedPart(std::unique_ptr<Product> part, std::string where)
      : part_(std::move(part)), where_(std::move(where)) {}

  /// The part and its plug-in, for messages.
  [[nodiscard]] const std::string& where() const { return where_; }

  /// Makes a call before training starts. An exception rejects the recipe.
  template <typename Call>
  auto before(std::string_view member, Call call) const {
    return guard(member, ExitCode::usage, call);
  }
  /// Makes a call while a command runs.
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
