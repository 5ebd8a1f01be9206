#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// The hosts of a Slurm node list such as `node[01-03,07],login1` or `rack[0-1]node[1-2]`: numbers
/// keep their leading zeros, the last bracket varies fastest. Empty if the string is not such a
/// list, or names more than a million hosts.
/// Source: the host list expressions of `scontrol show hostnames`.
[[nodiscard]] PRECAST_API std::optional<std::vector<std::string>> expand_hosts(
    std::string_view node_list);

/// The entry of node `node` (from 0) in Slurm's list of tasks on each node, such as `2(x3),1`: 2
/// for nodes 0 to 2, 1 for node 3. Empty if the string is not such a list or has no such node.
[[nodiscard]] PRECAST_API std::optional<int> tasks_on_node(std::string_view tasks_per_node,
                                                           int node);

}  // namespace precast
