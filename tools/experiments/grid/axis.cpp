#include "tools/experiments/grid/axis.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/core/config/schema.h"
#include "framework/core/config/value.h"
#include "framework/core/rng.h"
#include "framework/core/suggest.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {
namespace {

using Kind = ConfigNode::Kind;

constexpr std::int64_t kMaxValues = 100'000;
constexpr const char* kForms =
    "expected a list, {from, to, step}, {uniform: ...}, {log_uniform: ...} or {random: ...}";

/// Rounds computed numbers to drop noise in the last bits: 0.3, not 0.30000000000000004.
std::string number_text(double value, int digits) {
  return fmt::format("{:.{}g}", value, digits);
}

/// Reads one axis.
class Reader {
 public:
  Reader(const std::string& key, std::uint64_t seed, Diagnostics& diagnostics)
      : name_("axes." + key),
        random_(derived_seed(seed, "sweep " + key), 0, 0, RandomUse::transform),
        diagnostics_(diagnostics) {
    axis_.key = key;
  }

  SweepAxis read(const ConfigNode& node) {
    if (node.kind == Kind::list) {
      for (const ConfigNode& item : node.items)
        axis_.values.push_back({setting_text(item), item.origin});
    } else if (node.kind != Kind::map) {
      add_error(node.origin, fmt::format("{}, got {}", kForms, node.text()));
    } else if (node.entries.size() == 1) {
      read_form(node.entries[0]);
    } else {
      read_range(node);
    }
    if (axis_.values.empty() && is_valid_) add_error(node.origin, "expected values, got none");
    return std::move(axis_);
  }

 private:
  void add_error(const Origin& origin, std::string_view message) {
    is_valid_ = false;
    diagnostics_.error(origin, name_, message);
  }
  void add(const std::string& text, const ConfigNode& node) {
    axis_.values.push_back({text, node.origin});
  }
  /// @return false if `map` does not fit `schema`.
  bool fill(Schema& schema, const ConfigNode& map, const std::string& prefix) {
    const std::size_t before = diagnostics_.errors().size();
    if (map.kind != Kind::map) {
      diagnostics_.error(map.origin, prefix,
                         fmt::format("expected a map of options, got {}", map.text()));
    } else {
      schema.apply(map, diagnostics_, prefix);
      if (diagnostics_.errors().size() == before)
        schema.check_required(map.origin, diagnostics_, prefix);
    }
    is_valid_ = is_valid_ && diagnostics_.errors().size() == before;
    return diagnostics_.errors().size() == before;
  }

  void read_range(const ConfigNode& node) {
    double from = 0, to = 0, step = 1;
    Schema schema;
    schema.add("from", &from, "first value").required();
    schema.add("to", &to, "last value").required();
    schema.add("step", &step, "difference between successive values").required();
    if (!fill(schema, node, name_)) return;
    // Includes a last value that is above `to` only because of rounding.
    const double steps = std::floor((to - from) / step * (1 + 1e-12) + 1e-9);
    if (step == 0 || !std::isfinite(steps) || steps < 0 || steps >= kMaxValues) {
      return add_error(
          node.origin,
          fmt::format(
              "expected a step that leads from {} to {} in fewer than 100,000 steps, got {}", from,
              to, step));
    }
    for (int i = 0; i <= static_cast<int>(steps); ++i) add(number_text(from + i * step, 12), node);
  }

  void read_form(const ConfigNode::Entry& form) {
    if (form.key == "uniform" || form.key == "log_uniform") {
      read_interval(form.value, form.key == "log_uniform", name_ + "." + form.key);
    } else if (form.key == "random") {
      read_choices(form.value, name_ + ".random");
    } else {
      add_error(form.key_origin,
                fmt::format("unknown '{}'. {}", form.key,
                            suggest(form.key, {"uniform", "log_uniform", "random"})));
    }
  }

  void read_interval(const ConfigNode& node, bool logarithmic, const std::string& prefix) {
    double low = 0, high = 0;
    std::int64_t n = 0, samples = 0;
    Schema schema;
    auto& low_key = schema.add("low", &low, "smallest value").required();
    if (logarithmic) low_key.above(0);
    schema.add("high", &high, "largest value").required();
    schema.add("n", &n, "number of values, evenly spaced, including both ends")
        .min(2)
        .max(kMaxValues);
    schema.add("samples", &samples, "number of values to draw").min(1).max(kMaxValues);
    if (!fill(schema, node, prefix)) return;
    if ((n == 0) == (samples == 0))
      return add_error(node.origin, n == 0 ? "expected one of n and samples, got neither"
                                           : "expected one of n and samples, got both");
    if (!(low < high))
      return add_error(node.origin,
                       fmt::format("expected low below high, got {} and {}", low, high));
    const double begin = logarithmic ? std::log(low) : low;
    const double end = logarithmic ? std::log(high) : high;
    for (std::int64_t i = 0; i < n + samples; ++i) {
      const double share =
          samples > 0 ? random_.uniform() : static_cast<double>(i) / static_cast<double>(n - 1);
      const double position = begin + share * (end - begin);
      add(number_text(logarithmic ? std::exp(position) : position, 6), node);
    }
  }

  void read_choices(const ConfigNode& node, const std::string& prefix) {
    ConfigNode choices;
    std::int64_t samples = 0;
    Schema schema;
    schema.add("choices", &choices, "the values to draw from").required();
    schema.add("samples", &samples, "number of values to draw").required().min(1).max(kMaxValues);
    if (!fill(schema, node, prefix)) return;
    if (choices.kind != Kind::list || choices.items.empty()) {
      return add_error(node.origin,
                       fmt::format("expected choices: [a, b, ...], got {}", choices.text()));
    }
    std::vector<std::size_t> left;
    for (std::int64_t i = 0; i < samples; ++i) {
      if (left.empty()) {
        for (std::size_t choice = 0; choice < choices.items.size(); ++choice)
          left.push_back(choice);
      }
      const auto drawn = left.begin() + static_cast<std::ptrdiff_t>(random_.below(left.size()));
      const ConfigNode& item = choices.items[*drawn];
      axis_.values.push_back({setting_text(item), item.origin});
      left.erase(drawn);
    }
  }

  std::string name_;
  RandomStream random_;
  Diagnostics& diagnostics_;
  SweepAxis axis_;
  bool is_valid_ = true;
};

}  // namespace

SweepAxis read_axis(const std::string& key, const ConfigNode& node, std::uint64_t seed,
                    Diagnostics& diagnostics) {
  return Reader(key, seed, diagnostics).read(node);
}

std::string canonical_value(const std::string& text) {
  const ConfigNode node = ConfigNode::from_text(text);
  // Integers first: a double would not distinguish all of them.
  if (std::int64_t integer = 0; read_value(node, &integer)) return fmt::format("{}", integer);
  if (double number = 0; read_value(node, &number)) return fmt::format("{}", number);
  return text;
}

}  // namespace precast::tools
