#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast {

/// Named factories of one kind of part (models, methods, losses ...), in order of registration.
/// Programs create and fill registries at startup and pass them by const reference: there is no
/// singleton and no static registration. Thread-safe once filled.
template <typename Product, typename... Args>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Product>(Args...)>;
  struct Entry {
    std::string name;
    std::string help;
    Factory factory;
  };

  /// @param kind the kind of the entries, for messages: "model", "method".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}

  /// @throws std::logic_error if `name` is taken.
  void add(std::string name, std::string help, Factory factory) {
    require(find(name) == nullptr, fmt::format("{} '{}' is registered once", kind_, name));
    entries_.push_back({std::move(name), std::move(help), std::move(factory)});
  }

  /// @throws ConfigError if `name` is unknown; the message is unknown(name).
  [[nodiscard]] std::unique_ptr<Product> create(std::string_view name, Args... args) const {
    const Entry* entry = find(name);
    if (entry == nullptr) throw ConfigError(unknown(name));
    return entry->factory(std::forward<Args>(args)...);
  }

  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] const std::string& kind() const { return kind_; }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Entry& entry : entries_) all.push_back(entry.name);
    return all;
  }

  /// A message with a similar name or the list of known names: `unknown model 'resnet19'. Did you
  /// mean 'resnet18'?`
  [[nodiscard]] std::string unknown(std::string_view name) const {
    return fmt::format("unknown {} '{}'. {}", kind_, name, suggest(name, names()));
  }

 private:
  [[nodiscard]] const Entry* find(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }

  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace precast
