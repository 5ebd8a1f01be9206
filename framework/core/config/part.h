#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "framework/core/export.h"
#include "framework/core/registry.h"

namespace precast {

/// The name of a part and the values of its options, as a recipe gives them.
struct PRECAST_API PartSpec {
  /// A registered name.
  std::string name;
  /// A map of options; null if every option has its default.
  ConfigNode options = {};
  /// The key of the options in the recipe, for messages: "optimizer", "model.params".
  std::string key = {};

  /// Sets an option to a value that is written as in YAML: "0.1", "true". Replaces an earlier
  /// value.
  void set(std::string_view option, std::string value);
};

/// A part that a recipe can select. It declares its options, receives their values from the recipe,
/// and then builds the product. @tparam Inputs the arguments that the program passes to every part
/// of this kind.
template <typename Product, typename... Inputs>
class Part {
 public:
  virtual ~Part() = default;
  /// Declares the options, bound to members of this object.
  virtual void options(Schema& /*schema*/) {}
  /// Reports options that were given, but have no effect with the values of other options. Called
  /// only if all values are valid. @param schema the keys that options() has added, with the given
  /// values applied. @param where the key of the options, for messages.
  virtual void check(const Schema& /*schema*/, std::string_view /*where*/,
                     Diagnostics& /*diagnostics*/) const {}
  /// @throws ConfigError for options that contradict each other.
  [[nodiscard]] virtual std::unique_ptr<Product> make(Inputs... inputs) const = 0;
};

/// The parts of one kind, by name. One line adds a part: its name, its help and a function that
/// builds the product. The function receives the inputs of the kind and optionally an options
/// struct, which is a type with `void options(Schema&)` and optionally a `check` like Part::check:
///
///     std::unique_ptr<Optimizer> make_lion(const OptimizerInputs&, const LionOptions&);
///     optimizers.add("lion", "sign of the momentum (Chen et al. 2023)", make_lion);
template <typename Product, typename... Inputs>
class PartRegistry : public Registry<Part<Product, Inputs...>> {
  using Base = Registry<Part<Product, Inputs...>>;

 public:
  using Base::Base;
  using PartType = Part<Product, Inputs...>;

  /// A part with options. @throws std::logic_error if `name` is taken.
  template <typename Options>
  void add(std::string name, std::string help,
           std::unique_ptr<Product> (*factory)(Inputs..., const Options&)) {
    add<Options>(std::move(name), std::move(help),
                 [factory](Inputs... inputs, const Options& options) {
                   return factory(std::forward<Inputs>(inputs)..., options);
                 });
  }
  template <typename Options, typename Make>
  void add(std::string name, std::string help, Make factory) {
    class WithOptions final : public PartType {
     public:
      explicit WithOptions(Make factory) : factory_(std::move(factory)) {}
      void options(Schema& schema) override { options_.options(schema); }
      void check(const Schema& schema, std::string_view where,
                 Diagnostics& diagnostics) const override {
        if constexpr (requires { options_.check(schema, where, diagnostics); })
          options_.check(schema, where, diagnostics);
      }
      [[nodiscard]] std::unique_ptr<Product> make(Inputs... inputs) const override {
        return factory_(std::forward<Inputs>(inputs)..., options_);
      }

     private:
      Make factory_;
      Options options_;
    };
    add_part(std::move(name), std::move(help),
             [factory = std::move(factory)] { return std::make_unique<WithOptions>(factory); });
  }
  /// A part without options.
  template <typename Make>
  requires std::is_invocable_r_v < std::unique_ptr<Product>,
  const Make&, Inputs... > void add(std::string name, std::string help, Make factory) {
    class Plain final : public PartType {
     public:
      explicit Plain(Make factory) : factory_(std::move(factory)) {}
      [[nodiscard]] std::unique_ptr<Product> make(Inputs... inputs) const override {
        return factory_(std::forward<Inputs>(inputs)...);
      }

     private:
      Make factory_;
    };
    add_part(std::move(name), std::move(help),
             [factory = std::move(factory)] { return std::make_unique<Plain>(factory); });
  }
  /// A part that is a class derived from PartType. @throws std::logic_error if `name` is taken.
  void add_part(std::string name, std::string help, typename Base::Factory factory) {
    Base::add(std::move(name), std::move(help), std::move(factory));
  }

  /// Builds the product that `spec` describes. @throws ConfigError if the part or an option is
  /// unknown, or if a value is invalid or missing; and the errors of Part::make().
  [[nodiscard]] std::unique_ptr<Product> make(const PartSpec& spec, Inputs... inputs) const {
    const std::unique_ptr<PartType> part = this->create(spec.name);
    Schema schema;
    part->options(schema);
    Diagnostics diagnostics;
    const std::string where =
        spec.key.empty() ? fmt::format("{} {}", this->kind(), spec.name) : spec.key;
    schema.apply(spec.options, diagnostics, where);
    schema.check_required(spec.options.origin, diagnostics, where);
    if (diagnostics.errors().empty()) part->check(schema, where, diagnostics);
    diagnostics.throw_if_errors();
    return part->make(std::forward<Inputs>(inputs)...);
  }
};

}  // namespace precast
