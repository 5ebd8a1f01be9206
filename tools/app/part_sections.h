#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/config/part.h"
#include "framework/core/config/schema.h"

namespace precast::tools {

/// The keys with which a recipe names a part of one kind and sets its options.
struct PartSection {
  /// The key that names the part: "training.optimizer".
  std::string selector;
  /// The prefix of the options' keys: "optimizer.".
  std::string prefix;
  /// Options whose keys have names from ffcv-imagenet: {"momentum", "training.momentum"}. The key
  /// `prefix` + option name is then an alias.
  std::map<std::string, std::string> renamed = {};
  /// Options that published recipes set regardless of the part that they choose. If nothing reads
  /// such an option, there is only a warning.
  std::set<std::string> published = {};
};

/// The options of the parts that a recipe chose, as keys of its schema. Owns the values to which
/// the keys are bound, so it must outlive the schema.
class PartSections {
 public:
  /// Adds the options of the part `chosen` to `schema`. Options that only other parts of this kind
  /// have are added as keys that nothing reads. @throws ConfigError if `schema` already has the key
  /// of an option of `chosen`
  template <typename Product, typename... Inputs>
  void add(Schema& schema, const PartRegistry<Product, Inputs...>& registry,
           const PartSection& section, const std::string& chosen) {
    std::vector<Candidate> others;
    Candidate own{chosen, {}};
    for (const auto& entry : registry.entries()) {
      std::shared_ptr<Part<Product, Inputs...>> part = entry.factory();
      Schema options;
      part->options(options);
      if (entry.name == chosen) {
        own.options = options;
        owned_.push_back(std::move(part));
      } else {
        // `part` is destroyed here: only the names of these options are used later.
        others.push_back({entry.name, options});
      }
    }
    mount(schema, section, own, others, registry.contains(chosen));
  }

  /// The chosen part of a section, with the options that were given.
  [[nodiscard]] PartSpec spec(const Schema& schema, const PartSection& section,
                              const std::string& chosen) const;

 private:
  struct Candidate {
    std::string name;
    Schema options;
  };
  void mount(Schema& schema, const PartSection& section, const Candidate& own,
             const std::vector<Candidate>& others, bool known);

  std::vector<std::shared_ptr<void>> owned_;
  /// For each prefix: the names of options and their keys.
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> keys_;
};

/// The value of a scalar key before the schema is known: from the last override, else from the
/// file, else `otherwise`. The schema reports errors in the value later.
[[nodiscard]] std::string peek_value(const ConfigNode& file, const std::vector<Override>& overrides,
                                     std::string_view key, std::string otherwise);

}  // namespace precast::tools
