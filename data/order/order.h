#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/order/subset.h"
#include "framework/core/config/part.h"
#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Determines which sample is at each position of an epoch, over all ranks: position p belongs to
/// rank p % world. The result of ids() depends only on its arguments and on the inputs from which
/// the order was created, not on ranks, threads or restarts. Const and thread-safe.
class PRECAST_API SampleOrder {
 public:
  virtual ~SampleOrder();
  /// Number of positions in every epoch.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// The sample at each position, [size()].
  [[nodiscard]] virtual std::vector<std::uint64_t> ids(std::uint64_t seed,
                                                       std::int64_t epoch) const = 0;
  /// Memory of the order itself in bytes, in addition to the result of ids().
  [[nodiscard]] virtual std::uint64_t memory_bytes() const { return 0; }
};

/// A recipe's options for the order of an epoch's samples.
struct OrderOptions {
  /// Name of an entry of the registry.
  std::string name = "sequential";
  /// Which samples of the file are used: see subset.h. "": all.
  std::string subset = {};
  /// A condition that selects some of these samples by their values (filter.h); "": all.
  std::string filter = {};
  /// How often each sample occurs, at neighbouring positions. The copies of a sample go to
  /// successive ranks; with one rank, they go into the same batch, or into successive batches if
  /// one ends between them. Each copy is augmented independently (Hoffer et al., "Augment your
  /// batch", 2019; DeiT's repeated augmentation).
  std::int64_t repeats = 1;
  /// weighted, class_balanced: name of the int field; "": default_label_field() (labels.h).
  std::string label_field = {};
  /// quasi_random: maximum number of pages that are open at the same time.
  std::uint64_t window_pages = 1024;
  /// A map with the options that only the order `name` has; null: the defaults.
  ConfigNode part = {};
};

/// The samples that `options.subset` and `options.filter` select. @throws ConfigError if there are
/// none, or for an invalid subset or filter. Messages begin with the option's name, except those
/// about a filter's syntax.
[[nodiscard]] PRECAST_API SampleSet select_samples(const BetonReader& reader,
                                                   const OrderOptions& options);

/// The inputs from which an order is created. `reader` is needed only during construction.
struct OrderInputs {
  const BetonReader& reader;
  const OrderOptions& options;
  SampleSet members;
};

using OrderRegistry = PartRegistry<SampleOrder, const OrderInputs&>;

/// Registers the orders that come with precast. To add an order, write a pair of files and add a
/// line to this function.
PRECAST_API void register_orders(OrderRegistry& registry);

/// @throws ConfigError for an unknown name or an invalid option, and if no sample is selected;
/// messages begin with the option's name.
[[nodiscard]] PRECAST_API std::shared_ptr<const SampleOrder> make_order(
    const OrderRegistry& registry, const BetonReader& reader, const OrderOptions& options);
/// make_order() with the orders that come with precast.
[[nodiscard]] PRECAST_API std::shared_ptr<const SampleOrder> make_order(
    const BetonReader& reader, const OrderOptions& options);

/// An invalid option: its name, and what was expected.
struct OrderProblem {
  std::string option;
  std::string message;
};

/// Returns the problems with subset, filter and repeats that can be found without a file.
[[nodiscard]] PRECAST_API std::vector<OrderProblem> find_problems(const OrderOptions& options);

}  // namespace precast::data
