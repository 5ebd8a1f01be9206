#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/command_help.h"

namespace precast::tools {

/// The command line of one command, read by Boost.Program_options in strict mode: options must be
/// written in full, and the error for an unknown option has a hint. Names have hyphens (underscores
/// only after a dot, as in keys of recipes), but users may write either. Old spellings are replaced
/// and reported. `--help` is added.
class Arguments {
 public:
  /// @param usage the text after `usage: precast`, such as `write SOURCE OUT.beton [options]`. The
  /// lower-case words at its beginning are the command's name.
  /// @param about what the command does, printed below the usage: one paragraph per line; may be
  /// empty.
  Arguments(std::string usage, std::string about);

  /// Adds a required positional argument. Arguments are expected in the order of these calls.
  void positional(const std::string& name, const std::string& help);
  /// Adds an optional positional argument, after the required ones.
  void optional_positional(const std::string& name, const std::string& help);
  /// Adds the last positional argument, with one or more values, read with
  /// get<std::vector<std::string>>().
  void positional_list(const std::string& name, const std::string& help);
  /// Like positional_list(), but the list may be empty; has() is then false.
  void optional_list(const std::string& name, const std::string& help);
  /// Adds an example to the help. @param command begins with `precast`, at most 76 characters.
  void example(std::string command, std::string about = "");
  /// Adds exit codes that this command can return. Every command can return 0, 1, 2, 5 and 11.
  void exit_codes(const std::vector<int>& codes);
  /// Makes the command accept `--section.key=value`. @param keys the keys, for the help; empty if
  /// the command has no list of them.
  void take_keys(std::vector<RecipeKey> keys);
  /// The options; callers add theirs with `add_options()`. The help of an option begins with its
  /// meaning, up to the first semicolon, in the same words in all commands (docs/options.md).
  [[nodiscard]] boost::program_options::options_description& options() { return options_; }

  [[nodiscard]] CommandHelp help() const;

  /// Parses the command line.
  /// @return false if the help was requested and has been printed: as text for `--help`, as one
  /// line of JSON if `--help-json` is the only argument.
  /// @throws ConfigError
  [[nodiscard]] bool parse(const std::vector<std::string>& args);

  [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) > 0; }
  /// Whether the option was given on the command line; has() is also true for defaults.
  /// @pre the option is declared
  [[nodiscard]] bool given(const std::string& name) const;
  template <typename T>
  [[nodiscard]] const T& get(const std::string& name) const {
    return values_[name].template as<T>();
  }
  [[nodiscard]] std::string text(const std::string& name) const { return get<std::string>(name); }
  /// The values of all options and arguments that have one, as they would be written on a command
  /// line.
  [[nodiscard]] std::map<std::string, std::string> texts() const;

 private:
  /// Parses `args` into `values_`. @throws boost::program_options::error
  void store(const std::vector<std::string>& args);
  /// @throws ConfigError if a positional argument is missing
  void check_positionals() const;
  /// A hint for an unknown option.
  [[nodiscard]] std::string hint(const std::string& option) const;
  /// The option that `name` refers to, with `-` and `_` interchangeable; empty if there is none.
  [[nodiscard]] std::string declared_spelling(std::string name) const;
  /// All arguments, with every option under its declared name. Reports old spellings.
  [[nodiscard]] std::vector<std::string> with_declared_spelling(
      std::vector<std::string> args) const;

  std::string usage_;
  std::string about_;
  boost::program_options::options_description options_;
  std::vector<ArgumentHelp> positional_;
  std::vector<Example> examples_;
  std::vector<int> exit_codes_ = {0, 1, 2, 5, 11};
  bool takes_keys_ = false;
  std::vector<RecipeKey> keys_;
  boost::program_options::variables_map values_;
};

/// @throws ConfigError naming the option unless low <= value <= high.
void check_range(std::string_view option, std::int64_t value, std::int64_t low, std::int64_t high);

/// The value of an option of type std::int64_t.
/// @throws the ConfigError of check_range()
[[nodiscard]] std::int64_t integer(const Arguments& arguments, const std::string& name,
                                   std::int64_t low, std::int64_t high);

/// The type of an integer option, with its default. Signed, so that "-1" is rejected and not read
/// as a very large number.
[[nodiscard]] boost::program_options::typed_value<std::int64_t>* number(std::int64_t value);

/// The value of --workers, an option of type std::int64_t, in threads; 0 is replaced by the number
/// of usable cores.
/// @throws the ConfigError of check_range()
[[nodiscard]] int worker_count(const Arguments& arguments);

/// The index of `name` in `known`. @throws ConfigError naming the option and the known names.
[[nodiscard]] std::size_t find_name(std::string_view option,
                                    const std::vector<std::string_view>& known,
                                    std::string_view name);

/// The values in `a,b,c`. @throws ConfigError naming the option if one of them is empty.
[[nodiscard]] std::vector<std::string> split_list(std::string_view option, std::string_view text);

}  // namespace precast::tools
