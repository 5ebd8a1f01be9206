#include "framework/engine/state_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "framework/core/archive/tensor_record.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/engine/state_archive.h"

namespace precast::engine {
namespace {

void each_part(const CheckpointParts& parts,
               const std::function<void(const std::string& name, const State& state)>& action) {
  action("optimizer", parts.optimizer.state());
  for (const NamedMethod& method : parts.methods)
    action("method " + method.name, method.method->state());
}

std::set<std::string> layout_of(const State& state) {
  std::set<std::string> layout;
  for (const auto& [name, tensor] : state.tensors) {
    layout.insert(tensor.defined()
                      ? fmt::format("{} ({} {})", name, c10::toString(tensor.scalar_type()),
                                    shape_text(tensor.sizes().vec()))
                      : fmt::format("{} (undefined)", name));
  }
  return layout;
}

std::vector<std::string> only_in(const std::set<std::string>& one,
                                 const std::set<std::string>& other) {
  std::vector<std::string> found;
  std::ranges::set_difference(one, other, std::back_inserter(found));
  return found;
}

/// A string that is equal for equal states.
std::string digest_of(const State& state) {
  std::string text;
  const StateCopy copy(state.tensors);
  for (const TensorRecord& record : copy.records()) {
    const std::string_view bytes(reinterpret_cast<const char*>(record.bytes.data()),
                                 record.bytes.size());
    text += fmt::format("{} {:x},", record.name, std::hash<std::string_view>{}(bytes));
  }
  for (const auto& [name, value] : state.counters) text += fmt::format("{} {},", name, value);
  return text;
}

}  // namespace

void StateChecks::start() {
  layouts_.clear();
  each_part(parts_, [&](const std::string& name, const State& state) {
    check_storable(state.tensors, name);
    layouts_[name] = layout_of(state);
  });
  not_finite_.clear();
  std::set<std::string> parameters;
  for (const NamedTensor& parameter : parts_.model.parameters()) parameters.insert(parameter.name);
  for (const NamedTensor& entry : parts_.model.state()) {
    if (!parameters.contains(entry.name) && !all_finite({entry}, parts_.device))
      not_finite_.insert(entry.name);
  }
}

bool StateChecks::finite(const at::Tensor& loss_sum) const {
  std::vector<NamedTensor> checked = {{"loss_sum", loss_sum}};
  for (const NamedTensor& entry : parts_.model.state())
    if (!not_finite_.contains(entry.name)) checked.push_back(entry);
  return all_finite(checked, parts_.device);
}

void StateChecks::check_unchanged() const {
  each_part(parts_, [&](const std::string& name, const State& state) {
    const auto before = layouts_.find(name);
    if (before == layouts_.end()) return;  // start() was not called
    const std::set<std::string> now = layout_of(state);
    if (now == before->second) return;
    const std::vector<std::string> missing = only_in(before->second, now);
    const std::vector<std::string> added = only_in(now, before->second);
    throw Error(fmt::format(
        "{}: expected state() to have the same tensors as before the first step, got {}{}{}{}{}. A "
        "checkpoint with this state could not be resumed. Create all tensors in the constructor{}",
        name, added.empty() ? "" : "additional ", fmt::join(added, ", "),
        added.empty() || missing.empty() ? "" : "; ", missing.empty() ? "" : "missing ",
        fmt::join(missing, ", "), name == "optimizer" ? "" : " or in on_train_begin()"));
  });
}

void StateChecks::compare_ranks() {
  if (compared_ || parts_.ranks.world() == 1) return;
  compared_ = true;
  nlohmann::json mine = nlohmann::json::object();
  for (const NamedMethod& method : parts_.methods) {
    if (!method.method->evaluates_averages()) mine[method.name] = digest_of(method.method->state());
  }
  const std::vector<std::string> texts = parts_.ranks.all_gather(dump_json(mine));
  if (parts_.ranks.rank() != 0) return;
  std::vector<nlohmann::json> all;
  for (const std::string& text : texts) all.push_back(nlohmann::json::parse(text));
  for (const NamedMethod& method : parts_.methods) {
    const auto of = [&](const nlohmann::json& rank) { return rank.value(method.name, ""); };
    const auto other = std::ranges::find_if(
        all, [&](const nlohmann::json& rank) { return of(rank) != of(all.front()); });
    if (other == all.end()) continue;
    log_warning(
        "method {}: expected the same state on all ranks, got a different state on rank {} than on "
        "rank 0. Checkpoints contain rank 0's state: a resumed run restores it on all ranks",
        method.name, other - all.begin());
  }
}

}  // namespace precast::engine
