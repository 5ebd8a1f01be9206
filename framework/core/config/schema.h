#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "framework/core/config/node.h"
#include "framework/core/export.h"

namespace precast {

/// One `--section.key=value` of a command line.
struct Override {
  std::string key;
  ConfigNode value;
};

/// The keys that a configuration may have. Each key is bound to a variable. The variable's value at
/// the time when the key is added is the default; apply() overwrites it. Thus defaults, checks,
/// `--help` and the resolved configuration come from one table, and each default is written only
/// once, as a member initialiser.
///
/// Coercions: `true/false/yes/no/on/off/1/0`, in any case, for bool; a bool where an integer is
/// expected counts as 1 or 0; a single name where a list of names is expected is a list of one;
/// numbers are read in decimal (`012` is 12), and `5e-5` is a number. The schema refers to the
/// variables and must not outlive them. Not thread-safe.
class PRECAST_API Schema {
 public:
  /// A variable of an enumeration type, accessed as an index into Key::choices.
  struct Choice {
    std::function<std::size_t()> get;
    std::function<void(std::size_t)> set;
  };
  using Target = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<double>*,
                              std::vector<std::string>*, ConfigNode*, Choice>;
  /// A key as help texts show it.
  struct KeyHelp {
    std::string name;
    std::string help;
    /// `integer`, `raw|jpg|keep` ...
    std::string type;
    /// The current value as JSON; before apply(), this is the default.
    std::string value;
    bool is_switch = false;
    bool required = false;
  };

  /// The name, target and allowed values of one key. Setters return the key, so that a key and its
  /// limits are written in one expression.
  class PRECAST_API Key {
   public:
    Key& min(double low);
    /// An exclusive lower bound: `lr > 0`.
    Key& above(double low);
    Key& max(double high);
    /// An exclusive upper bound.
    Key& below(double high);
    Key& choices(std::vector<std::string> names);
    /// For an integer key: allows the string `word` (such as `auto`) in place of a number. It
    /// stands for `value`, which may be outside the limits for numbers and is shown as `word`.
    Key& word(std::string word, std::int64_t value);
    /// The configuration must contain the key.
    Key& required();
    /// The key is accepted for compatibility with old files, but has no effect; `reason` is
    /// reported as a warning.
    Key& dead(std::string reason);

   private:
    friend class Schema;
    [[nodiscard]] bool allows(double value) const;
    /// `>= 1 and <= 100`.
    [[nodiscard]] std::string bounds() const;
    [[nodiscard]] std::string or_word() const;
    std::string name_;
    std::string help_;
    std::optional<Target> target_;
    std::optional<double> min_, max_;
    bool min_excluded_ = false, max_excluded_ = false;
    std::vector<std::string> choices_;
    std::optional<std::pair<std::string, std::int64_t>> word_;
    std::optional<std::string> dead_;
    std::optional<std::string> unread_;
    std::optional<std::string> alias_of_;
    bool required_ = false;
    bool given_ = false;
    /// The name under which the key was given (its own name or an alias), and the value as it was
    /// written.
    std::string given_as_;
    ConfigNode written_;
    Origin origin_{"default", 0, 0};
  };

  /// Adds a key. The returned reference is valid until the next key is added.
  /// @param name section and name of a recipe's key, such as `lr.lr_peak_epoch`, or the name of a
  /// part's option.
  Key& add(std::string name, Target target, std::string help);
  /// Adds a variable of an enumeration type, with the names of its values.
  template <typename Enum>
  Key& add(std::string name, Enum* target, const std::vector<std::pair<std::string, Enum>>& values,
           std::string help) {
    std::vector<std::string> names;
    std::vector<Enum> meanings;
    for (const auto& [value_name, value] : values) {
      names.push_back(value_name);
      meanings.push_back(value);
    }
    const Choice choice = {
        [target, meanings] {
          return static_cast<std::size_t>(std::ranges::find(meanings, *target) - meanings.begin());
        },
        [target, meanings](std::size_t index) { *target = meanings.at(index); }};
    return add(std::move(name), choice, std::move(help)).choices(std::move(names));
  }
  /// Adds a key that exists only in old files and has no effect.
  Key& add_dead(std::string name, std::string reason);
  /// Adds a key that has no effect in this configuration. If the configuration contains it,
  /// `reason` is reported as an error, or as a warning after warn_of_unread().
  Key& add_unread(std::string name, std::string reason);
  void warn_of_unread() { unread_is_error_ = false; }
  /// Reports, as an error or a warning like add_unread(), that the key `name` was given but has no
  /// effect.
  void report_unread(std::string_view name, std::string_view reason,
                     Diagnostics& diagnostics) const;
  /// Adds another name for `key`. It is an error if one source gives both; a later source, such as
  /// the command line, may use either name.
  void add_alias(std::string name, std::string key);
  /// Adds the key `key` of `other` under another name, bound to the same variable.
  Key& add_renamed(std::string name, const Schema& other, std::string_view key);

  /// Reads a map of sections (or, for names without dots, a flat map). Unknown keys, and values
  /// that have the wrong type or are not allowed, are reported to `diagnostics`, each with a hint
  /// or with the key's meaning. A rejected value does not change the key's variable.
  /// @param prefix put before key names in messages: "methods[1].ema".
  void apply(const ConfigNode& map, Diagnostics& diagnostics, std::string_view prefix = "");
  void apply(const Override& override, Diagnostics& diagnostics);
  /// Reports required keys that no call of apply() has set. Call it last. @param where the position
  /// that messages show.
  /// @param prefix as above.
  void check_required(const Origin& where, Diagnostics& diagnostics,
                      std::string_view prefix = "") const;

  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Whether there is such a key and it has an effect, that is, was added by neither add_dead() nor
  /// add_unread().
  [[nodiscard]] bool reads(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;
  /// The position at which the value of `name` was written; `default` if none was given. @throws
  /// std::logic_error for an unknown name.
  [[nodiscard]] const Origin& origin(std::string_view name) const;
  [[nodiscard]] bool given(std::string_view name) const;
  /// The value given for `name`, as it was written; null if none was given.
  [[nodiscard]] const ConfigNode& given_value(std::string_view name) const;
  /// The current values, as a flat map: {"data.num_workers": 12, ...}.
  [[nodiscard]] nlohmann::ordered_json values() const;
  /// The keys that have an effect, in order, without aliases.
  [[nodiscard]] std::vector<KeyHelp> keys() const;
  /// One line per key: name, help, type or allowed values, default.
  /// @param prefix put before each name: "--" for keys on a command line.
  [[nodiscard]] std::string help(std::string_view prefix = "--") const;

 private:
  [[nodiscard]] static nlohmann::ordered_json value_of(const Key& key);
  [[nodiscard]] const Key* find(std::string_view name) const;
  void walk(const ConfigNode& map, const std::string& path, Diagnostics& diagnostics,
            std::string_view prefix);
  void assign(Key& key, const ConfigNode& value, Diagnostics& diagnostics, std::string_view prefix);
  /// @return whether the value fits the key and was stored; otherwise an error was reported, with
  /// the key named `shown`.
  bool take(Key& key, const ConfigNode& value, std::string_view shown, Diagnostics& diagnostics);
  [[nodiscard]] std::string unknown(std::string_view name) const;

  void report_unread(const Origin& origin, std::string_view name, std::string_view reason,
                     Diagnostics& diagnostics) const;

  std::vector<Key> keys_;
  bool unread_is_error_ = true;
};

}  // namespace precast
