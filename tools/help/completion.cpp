#include "tools/help/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/help/all_commands.h"

namespace precast::tools {
namespace {

using Words = std::vector<std::string>;

void add_once(Words& words, const std::string& word) {
  if (std::ranges::find(words, word) == words.end()) words.push_back(word);
}

/// The words that may follow `precast`.
Words first_words(const std::vector<CommandHelp>& commands) {
  Words words;
  for (const CommandHelp& command : commands)
    add_once(words, command.name.substr(0, command.name.find(' ')));
  return words;
}

/// The second words of a group.
Words words_of(const std::vector<CommandHelp>& commands, const std::string& group) {
  Words words;
  for (const CommandHelp& command : commands)
    if (command.name.starts_with(group + " "))
      words.push_back(command.name.substr(group.size() + 1));
  return words;
}

Words options_of(const CommandHelp& command) {
  Words words;
  for (const OptionHelp& option : command.options) words.push_back("--" + option.name);
  return words;
}

/// `--lr.` for `lr.lr`; keys without a section are complete.
Words sections_of(const std::vector<RecipeKey>& keys) {
  Words words;
  for (const RecipeKey& key : keys)
    add_once(words, "--" + key.section() + (key.name == key.section() ? "=" : "."));
  return words;
}

Words options_of(const std::vector<RecipeKey>& keys) {
  Words words;
  for (const RecipeKey& key : keys) add_once(words, "--" + key.name + "=");
  return words;
}

std::string joined(const Words& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

/// The `case` entries for options, which are the same in both shells.
std::string option_cases(const std::vector<CommandHelp>& commands) {
  std::string text;
  for (const CommandHelp& command : commands) {
    if (command.options.empty()) continue;
    text += fmt::format("    '{}') options='{}'{} ;;\n", command.name, joined(options_of(command)),
                        command.takes_keys ? " keys=1" : "");
  }
  return text;
}

/// The `case` entries for second words. The second words of a group also follow `help GROUP`.
std::string group_cases(const std::vector<CommandHelp>& commands) {
  std::string text;
  for (const std::string& group : command_groups(commands))
    text += fmt::format("    {0} | 'help {0}') second='{1}' ;;\n", group,
                        joined(words_of(commands, group)));
  return text + fmt::format("    help) second='{}' ;;\n    completion) second='bash zsh' ;;\n",
                            joined(first_words(commands)));
}

std::string filled(std::string text, const std::vector<CommandHelp>& commands) {
  const std::vector<RecipeKey> keys = all_keys(commands);
  const std::pair<std::string_view, std::string> parts[] = {
      {"@commands@", joined(first_words(commands))}, {"@groups@", group_cases(commands)},
      {"@options@", option_cases(commands)},         {"@sections@", joined(sections_of(keys))},
      {"@keys@", joined(options_of(keys))},
  };
  for (const auto& [name, part] : parts) text.replace(text.find(name), name.size(), part);
  return text;
}

constexpr const char* kBash =
    R"(# Completion of precast for bash, made by `precast completion bash`.
_precast() {
  local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
  local options='' keys='' second='' place=2 IFS=$' \t\n'
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W '@commands@' -- "$current"))
    return 0
  fi
  if [[ $command == help && $COMP_CWORD -eq 3 && $current != -* ]]; then
    command+=" ${COMP_WORDS[2]}" place=3
  fi
  case $command in
@groups@  esac
  if [[ $COMP_CWORD -eq $place && -n $second && $current != -* ]]; then
    COMPREPLY=($(compgen -W "$second" -- "$current"))
    return 0
  fi
  if [[ -n $second && $command != help && $command != completion ]]; then
    command+=" ${COMP_WORDS[2]}"
  fi
  [[ $current == -* ]] || return 0
  case $command in
@options@  esac
  if [[ -n $keys && $current == --*.* ]]; then
    options+=' @keys@'
  elif [[ -n $keys ]]; then
    options+=' @sections@'
  fi
  COMPREPLY=($(compgen -W "$options" -- "$current"))
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[.=] ]]; then
    compopt -o nospace 2>/dev/null
  fi
  return 0
}
complete -o default -F _precast precast
)";

constexpr const char* kZsh = R"(#compdef precast
# Completion of precast for zsh, made by `precast completion zsh`.
_precast() {
  local current=${words[CURRENT]} command=${words[2]}
  local options='' keys='' second='' place=3
  if (( CURRENT == 2 )); then
    compadd -- ${=:-@commands@}
    return
  fi
  if [[ $command == help && $CURRENT -eq 4 && $current != -* ]]; then
    command+=" ${words[3]}" place=4
  fi
  case $command in
@groups@  esac
  if [[ $CURRENT -eq $place && -n $second && $current != -* ]]; then
    compadd -- ${=second}
    return
  fi
  if [[ -n $second && $command != help && $command != completion ]]; then
    command+=" ${words[3]}"
  fi
  if [[ $current != -* ]]; then
    _files
    return
  fi
  case $command in
@options@  esac
  compadd -- ${=options}
  if [[ -n $keys && $current == --*.* ]]; then
    compadd -S '' -- ${=:-@keys@}
  elif [[ -n $keys ]]; then
    compadd -S '' -- ${=:-@sections@}
  fi
}
if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
  _precast "$@"
else
  compdef _precast precast
fi
)";

}  // namespace

std::string bash_completion(const std::vector<CommandHelp>& commands) {
  return filled(kBash, commands);
}

std::string zsh_completion(const std::vector<CommandHelp>& commands) {
  return filled(kZsh, commands);
}

}  // namespace precast::tools
