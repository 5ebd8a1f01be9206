#include "tools/experiments/grid/axis_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "framework/core/suggest.h"

namespace precast::tools {
namespace {

using Kind = ConfigNode::Kind;

/// Finds, for each axis, the index of the list of `zip` that contains it; -1 if no list does.
class ZipReader {
 public:
  ZipReader(const std::vector<SweepAxis>& axes, Diagnostics& diagnostics)
      : axes_(axes), diagnostics_(diagnostics), list_of_axis_(axes.size(), -1) {
    for (const SweepAxis& axis : axes) names_.push_back(axis.key);
  }

  std::vector<int> read(const ConfigNode& zip) {
    if (zip.kind != Kind::null && zip.kind != Kind::list)
      add_error(zip, fmt::format("expected [[key, key], ...], got {}", zip.text()));
    for (std::size_t i = 0; i < zip.items.size(); ++i) read_list(zip.items[i], static_cast<int>(i));
    return list_of_axis_;
  }

 private:
  void read_list(const ConfigNode& list, int number) {
    if (list.kind != Kind::list)
      add_error(list, fmt::format("expected [key, key], got {}", list.text()));
    std::optional<std::size_t> length;
    for (const ConfigNode& item : list.items) {
      const auto found = std::ranges::find(names_, item.scalar);
      if (found == names_.end()) {
        add_error(item, fmt::format("expected the key of an axis, got {}. {}", item.text(),
                                    suggest(item.scalar, names_)));
        continue;
      }
      const auto axis = static_cast<std::size_t>(found - names_.begin());
      const std::size_t values = axes_[axis].values.size();
      if (list_of_axis_[axis] >= 0) add_error(item, item.scalar + " is given twice");
      if (length && *length != values)
        add_error(item, fmt::format("expected {} values, like the other axes of this list, got {}",
                                    *length, values));
      length = values;
      list_of_axis_[axis] = number;
    }
  }

  void add_error(const ConfigNode& node, const std::string& message) {
    diagnostics_.error(node.origin, "zip", message);
  }

  const std::vector<SweepAxis>& axes_;
  Diagnostics& diagnostics_;
  std::vector<std::string> names_;
  std::vector<int> list_of_axis_;
};

}  // namespace

AxisProduct::AxisProduct(std::vector<SweepAxis> axes, const ConfigNode& zip,
                         Diagnostics& diagnostics)
    : axes_(std::move(axes)) {
  const std::vector<int> list_of_axis = ZipReader(axes_, diagnostics).read(zip);
  std::map<int, std::size_t> group_of_list;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const int list = list_of_axis[axis];
    if (list >= 0 && group_of_list.contains(list)) {
      groups_[group_of_list.at(list)].push_back(axis);
    } else {
      if (list >= 0) group_of_list[list] = groups_.size();
      groups_.push_back({axis});
    }
  }
}

std::optional<std::size_t> AxisProduct::size(std::size_t most) const {
  std::size_t count = 1;
  for (const Group& group : groups_) {
    count *= axes_[group[0]].values.size();
    // Checked after each factor, before the product can overflow.
    if (count > most) return std::nullopt;
  }
  return count;
}

std::vector<Setting> AxisProduct::settings(std::size_t number) const {
  std::vector<Setting> settings(axes_.size());
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    const std::size_t length = axes_[group->front()].values.size();
    for (const std::size_t axis : *group)
      settings[axis] = {axes_[axis].key, axes_[axis].values[number % length].text};
    number /= length;
  }
  return settings;
}

}  // namespace precast::tools
