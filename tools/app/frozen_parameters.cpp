#include "tools/app/frozen_parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/format.h"

namespace precast::tools {
namespace {

constexpr std::size_t kMaxNames = 3;

/// Whether `given` is the parameter's name, or the name of a module that contains it.
bool covers(std::string_view given, std::string_view parameter) {
  if (!parameter.starts_with(given)) return false;
  return parameter.size() == given.size() || given.ends_with('.') || parameter[given.size()] == '.';
}

bool shares_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.const_data_ptr() != nullptr && a.const_data_ptr() == b.const_data_ptr();
}

}  // namespace

void freeze_parameters(const Model& model, const std::vector<std::string>& names) {
  const std::vector<NamedTensor> parameters = model.parameters();
  // Unlike parameters(), state() lists a tied parameter under each of its names.
  const std::vector<NamedTensor> state = model.state();
  for (const std::string& name : names) {
    bool found = false;
    for (const NamedTensor& parameter : parameters) {
      const auto is_other_name = [&](const NamedTensor& entry) {
        return covers(name, entry.name) && shares_memory(entry.tensor, parameter.tensor);
      };
      if (!covers(name, parameter.name) && std::ranges::none_of(state, is_other_name)) continue;
      parameter.tensor.requires_grad_(false);
      found = true;
    }
    if (!found) {
      throw ConfigError(fmt::format(
          "training.freeze: expected the name of a parameter, or of a module that "
          "contains parameters (the first parameter is '{}'), got '{}'. Prefixes of names "
          "are not accepted",
          parameters.empty() ? "" : parameters.front().name, name));
    }
  }
  const auto trains = [](const NamedTensor& p) { return p.tensor.requires_grad(); };
  if (std::ranges::none_of(parameters, trains))
    throw ConfigError(
        "training.freeze: expected at least one parameter left to train, got all parameters "
        "frozen");
}

std::vector<std::string> frozen_parameters(const Model& model) {
  std::vector<std::string> names;
  for (NamedTensor& parameter : model.parameters())
    if (!parameter.tensor.requires_grad()) names.push_back(std::move(parameter.name));
  return names;
}

std::string frozen_text(const std::vector<std::string>& names) {
  const std::span shown(names.data(), std::min(names.size(), kMaxNames));
  const std::size_t more = names.size() - shown.size();
  return fmt::format("{}: {}{}", format_count(names.size(), "tensor"), fmt::join(shown, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace precast::tools
