#include "framework/core/config/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/core/config/value.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast {
namespace {

using Kind = ConfigNode::Kind;

std::string type_name(const Schema::Target& target) {
  constexpr const char* kNames[] = {"true or false",   "integer",       "number", "text",
                                    "list of numbers", "list of names", "YAML",   "name"};
  return kNames[target.index()];
}

}  // namespace

Schema::Key& Schema::Key::min(double low) {
  min_ = low;
  return *this;
}
Schema::Key& Schema::Key::above(double low) {
  min_excluded_ = true;
  return min(low);
}
Schema::Key& Schema::Key::max(double high) {
  max_ = high;
  return *this;
}
Schema::Key& Schema::Key::below(double high) {
  max_excluded_ = true;
  return max(high);
}
Schema::Key& Schema::Key::choices(std::vector<std::string> names) {
  choices_ = std::move(names);
  return *this;
}
Schema::Key& Schema::Key::word(std::string word, std::int64_t value) {
  word_ = {std::move(word), value};
  return *this;
}
Schema::Key& Schema::Key::required() {
  required_ = true;
  return *this;
}
Schema::Key& Schema::Key::dead(std::string reason) {
  dead_ = std::move(reason);
  return *this;
}

Schema::Key& Schema::add(std::string name, Target target, std::string help) {
  require(!contains(name), fmt::format("key {} is declared once", name));
  Key& key = keys_.emplace_back();
  key.name_ = std::move(name);
  key.target_ = target;
  key.help_ = std::move(help);
  return key;
}

Schema::Key& Schema::add_dead(std::string name, std::string reason) {
  Key& key = keys_.emplace_back();
  key.name_ = std::move(name);
  return key.dead(std::move(reason));
}

Schema::Key& Schema::add_unread(std::string name, std::string reason) {
  Key& key = keys_.emplace_back();
  key.name_ = std::move(name);
  key.unread_ = std::move(reason);
  return key;
}

void Schema::add_alias(std::string name, std::string key) {
  require(contains(key), fmt::format("{} is a declared key", key));
  Key& alias = keys_.emplace_back();
  alias.name_ = std::move(name);
  alias.alias_of_ = std::move(key);
}

Schema::Key& Schema::add_renamed(std::string name, const Schema& other, std::string_view key) {
  require(other.contains(key), fmt::format("{} is a declared key", key));
  require(!contains(name), fmt::format("key {} is declared once", name));
  Key& copy = keys_.emplace_back(*other.find(key));
  copy.name_ = std::move(name);
  return copy;
}

void Schema::apply(const ConfigNode& map, Diagnostics& diagnostics, std::string_view prefix) {
  if (map.kind == Kind::null) return;
  if (map.kind != Kind::map) {
    diagnostics.error(map.origin, prefix,
                      fmt::format("expected a map of options, got {}", map.text()));
    return;
  }
  walk(map, "", diagnostics, prefix);
}

void Schema::apply(const Override& override, Diagnostics& diagnostics) {
  Key* key = const_cast<Key*>(find(override.key));
  if (key == nullptr) {
    diagnostics.error(override.value.origin, "--" + override.key, unknown(override.key));
    return;
  }
  assign(*key, override.value, diagnostics, "");
}

void Schema::walk(const ConfigNode& map, const std::string& path, Diagnostics& diagnostics,
                  std::string_view prefix) {
  for (const ConfigNode::Entry& entry : map.entries) {
    const std::string name = path.empty() ? entry.key : path + "." + entry.key;
    const std::string shown = prefix.empty() ? name : fmt::format("{}.{}", prefix, name);
    if (Key* key = const_cast<Key*>(find(name))) {
      assign(*key, entry.value, diagnostics, prefix);
      continue;
    }
    const bool section = std::ranges::any_of(
        keys_, [&](const Key& key) { return key.name_.starts_with(name + "."); });
    if (!section) {
      diagnostics.error(entry.key_origin, shown, unknown(name));
    } else if (entry.value.kind == Kind::map) {
      walk(entry.value, name, diagnostics, prefix);
    } else if (entry.value.kind != Kind::null) {
      diagnostics.error(entry.value.origin, shown,
                        fmt::format("expected a map of keys, got {}", entry.value.text()));
    }
  }
}

void Schema::assign(Key& key, const ConfigNode& value, Diagnostics& diagnostics,
                    std::string_view prefix) {
  const std::string shown = prefix.empty() ? key.name_ : fmt::format("{}.{}", prefix, key.name_);
  if (key.dead_) {
    diagnostics.ignored(value.origin, shown, *key.dead_);
    return;
  }
  if (key.unread_) {
    report_unread(value.origin, shown, *key.unread_, diagnostics);
    return;
  }
  Key& resolved = key.alias_of_ ? *const_cast<Key*>(find(*key.alias_of_)) : key;
  // One source must not give a key under two names. A later source, such as the command line, may
  // use any name of the key to override the value.
  if (resolved.given_ && resolved.given_as_ != key.name_ &&
      resolved.origin_.source == value.origin.source) {
    diagnostics.error(value.origin, shown,
                      fmt::format("given twice: here and as {} ({})", resolved.given_as_,
                                  resolved.origin_.text()));
    return;
  }
  if (!take(resolved, value, shown, diagnostics)) return;
  resolved.given_ = true;
  resolved.given_as_ = key.name_;
  resolved.written_ = value;
  resolved.origin_ = value.origin;
}

bool Schema::Key::allows(double value) const {
  const bool low = min_ && (min_excluded_ ? value <= *min_ : value < *min_);
  const bool high = max_ && (max_excluded_ ? value >= *max_ : value > *max_);
  return !low && !high;
}

std::string Schema::Key::bounds() const {
  std::vector<std::string> all;
  if (min_) all.push_back(fmt::format("{} {}", min_excluded_ ? ">" : ">=", *min_));
  if (max_) all.push_back(fmt::format("{} {}", max_excluded_ ? "<" : "<=", *max_));
  return fmt::format("{}", fmt::join(all, " and "));
}

std::string Schema::Key::or_word() const {
  return word_ ? " or " + word_->first : "";
}

bool Schema::take(Key& key, const ConfigNode& value, std::string_view shown,
                  Diagnostics& diagnostics) {
  const auto expected = [&](std::string_view what) {
    diagnostics.error(
        value.origin, shown,
        fmt::format("expected {}, got {}. Meaning: {}", what, value.text(), key.help_));
    return false;
  };
  const auto is_choice = [&](const std::string& name) {
    if (key.choices_.empty() || std::ranges::count(key.choices_, name) > 0) return true;
    diagnostics.error(value.origin, shown,
                      fmt::format("expected one of {}, got {}{}", fmt::join(key.choices_, ", "),
                                  value.text(), suggest_similar(name, key.choices_)));
    return false;
  };
  // The value is checked in a copy, so that a wrong value never reaches the bound variable.
  const auto take_value = [&]<typename T>(T* bound) {
    T parsed = *bound;
    if constexpr (std::is_same_v<T, std::int64_t>) {
      std::string text;
      if (key.word_ && read_value(value, &text) && text == key.word_->first) {
        *bound = key.word_->second;
        return true;
      }
    }
    if (!read_value(value, &parsed)) return expected(type_name(*key.target_) + key.or_word());
    if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) {
      if (!key.allows(static_cast<double>(parsed)))
        return expected(
            fmt::format("{} {}{}", type_name(*key.target_), key.bounds(), key.or_word()));
    }
    if constexpr (std::is_same_v<T, std::string>) {
      if (!is_choice(parsed)) return false;
    }
    *bound = std::move(parsed);
    return true;
  };
  const auto take_choice = [&](const Choice& choice) {
    std::string name;
    if (!read_value(value, &name)) return expected(type_name(*key.target_));
    if (!is_choice(name)) return false;
    choice.set(
        static_cast<std::size_t>(std::ranges::find(key.choices_, name) - key.choices_.begin()));
    return true;
  };
  return std::visit(
      [&](const auto& target) {
        if constexpr (std::is_same_v<std::decay_t<decltype(target)>, Choice>) {
          return take_choice(target);
        } else {
          return take_value(target);
        }
      },
      *key.target_);
}

void Schema::report_unread(std::string_view name, std::string_view reason,
                           Diagnostics& diagnostics) const {
  report_unread(origin(name), name, reason, diagnostics);
}

void Schema::report_unread(const Origin& origin, std::string_view name, std::string_view reason,
                           Diagnostics& diagnostics) const {
  if (unread_is_error_) {
    diagnostics.error(origin, name, reason);
  } else {
    diagnostics.unread(origin, name, reason);
  }
}

void Schema::check_required(const Origin& where, Diagnostics& diagnostics,
                            std::string_view prefix) const {
  for (const Key& key : keys_) {
    if (key.required_ && !key.given_) {
      const std::string shown =
          prefix.empty() ? key.name_ : fmt::format("{}.{}", prefix, key.name_);
      diagnostics.error(where, shown,
                        fmt::format("expected a value, because there is no default, got none{}",
                                    key.help_.empty() ? "" : fmt::format(" ({})", key.help_)));
    }
  }
}

bool Schema::reads(std::string_view name) const {
  const Key* key = find(name);
  return key != nullptr && (key->target_ || key->alias_of_);
}

std::vector<std::string> Schema::names() const {
  std::vector<std::string> all;
  for (const Key& key : keys_) all.push_back(key.name_);
  return all;
}

const Origin& Schema::origin(std::string_view name) const {
  require(contains(name), fmt::format("{} is a declared key", name));
  return find(name)->origin_;
}

bool Schema::given(std::string_view name) const {
  require(contains(name), fmt::format("{} is a declared key", name));
  return find(name)->given_;
}

const ConfigNode& Schema::given_value(std::string_view name) const {
  require(contains(name), fmt::format("{} is a declared key", name));
  return find(name)->written_;
}

nlohmann::ordered_json Schema::values() const {
  auto all = nlohmann::ordered_json::object();
  for (const Key& key : keys_) {
    if (key.target_) all[key.name_] = value_of(key);
  }
  return all;
}

nlohmann::ordered_json Schema::value_of(const Key& key) {
  return std::visit(
      [&](const auto& value) -> nlohmann::ordered_json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Choice>) {
          return key.choices_.at(value.get());
        } else if constexpr (std::is_same_v<T, ConfigNode*>) {
          return to_json(*value);
        } else if constexpr (std::is_same_v<T, std::int64_t*>) {
          if (key.word_ && key.word_->second == *value) return key.word_->first;
          return *value;
        } else {
          return *value;
        }
      },
      *key.target_);
}

std::vector<Schema::KeyHelp> Schema::keys() const {
  const auto type_of = [](const Key& key) {
    if (!key.choices_.empty()) return fmt::format("{}", fmt::join(key.choices_, "|"));
    const std::string type = type_name(*key.target_);
    if (key.min_ && key.max_ && !key.min_excluded_ && !key.max_excluded_)
      return fmt::format("{}, {} to {}{}", type, *key.min_, *key.max_, key.or_word());
    return (key.min_ || key.max_ ? type + " " + key.bounds() : type) + key.or_word();
  };
  std::vector<KeyHelp> all;
  for (const Key& key : keys_) {
    if (!key.target_) continue;
    all.push_back({.name = key.name_,
                   .help = key.help_,
                   .type = type_of(key),
                   .value = value_of(key).dump(),
                   .is_switch = std::holds_alternative<bool*>(*key.target_),
                   .required = key.required_});
  }
  return all;
}

std::string Schema::help(std::string_view prefix) const {
  std::string text;
  for (const KeyHelp& key : keys()) {
    text += fmt::format("  {:<34} {} ({}; {})\n", fmt::format("{}{}", prefix, key.name), key.help,
                        key.type, key.required ? "required" : "default " + key.value);
  }
  return text;
}

const Schema::Key* Schema::find(std::string_view name) const {
  for (const Key& key : keys_) {
    if (key.name_ == name) return &key;
  }
  return nullptr;
}

std::string Schema::unknown(std::string_view name) const {
  // The hint suggests only keys of the same section, because the list of all keys would be too
  // long.
  const std::string_view section = name.substr(0, name.rfind('.') + 1);
  std::vector<std::string> near;
  std::set<std::string> sections;
  for (const Key& key : keys_) {
    if (key.name_.starts_with(section)) near.push_back(key.name_);
    sections.insert(key.name_.substr(0, key.name_.find('.')));
  }
  if (section.empty() && near.size() > sections.size())
    near.assign(sections.begin(), sections.end());
  if (near.empty()) {
    // The section itself is unknown or misspelt.
    const std::string hint = suggest(name, names());
    if (hint.starts_with("Did you mean")) return "unknown key. " + hint;
    near.assign(sections.begin(), sections.end());
  }
  return fmt::format("unknown key. {}", suggest(name, near));
}

}  // namespace precast
