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

/// Where a recipe names the part of one kind, and where it gives the part's options.
struct PartSection {
  /// The key that names the part: "training.optimizer".
  std::string chooser;
  /// What stands before the options' names: "optimizer.".
  std::string prefix;
  /// Options with a name of ffcv-imagenet's: {"momentum", "training.momentum"}. `prefix` and the
  /// option's name is then an alias.
  std::map<std::string, std::string> renamed = {};
  /// Options that published recipes give whatever part they choose: a warning where nothing reads
  /// them.
  std::set<std::string> published = {};
};

/// The options of the parts that a recipe chose, as keys of its schema. Owns what the keys are
/// bound to: outlives the schema.
class PartSections {
 public:
  /// Adds the options of the part `chosen` to `schema`, and the options that only other parts of
  /// the kind have as keys that nothing reads.
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
        others.push_back({entry.name, options});
        // Only the names of its options are looked at.
      }
    }
    mount(schema, section, own, others, registry.contains(chosen));
  }

  /// The part of a section with the options that were given.
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
  /// By prefix: the option's name and its key.
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> keys_;
};

/// The value of a scalar key before the schema is known: the last override's, else the file's, else
/// `otherwise`. What is wrong with it the schema says later.
[[nodiscard]] std::string value_ahead(const ConfigNode& file,
                                      const std::vector<Override>& overrides, std::string_view key,
                                      std::string otherwise);

}  // namespace precast::tools
