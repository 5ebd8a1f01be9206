#pragma once

#include <span>
#include <string_view>

#include "framework/core/export.h"

namespace precast {

/// The failpoints: named places in the code where a test can make the program fail. They are in one
/// list, so that a test can iterate over them.
inline constexpr std::string_view kFailpoints[] = {
    "atomic_file.before_sync",
    "atomic_file.before_rename",
    "beton.before_header",
    "beton.before_table",
    "each_sample.before_sample",
    "loader.before_sample",
    "preload.before_dataset",
    "disk.before_read",
    "remote.before_state",
    "log.before_line",
    "run_folder.before_weights",
    "checkpoint.before_file",
    "checkpoint.before_manifest",
    "checkpoint.before_rename",
    "checkpoint.before_second_rename",
    "checkpoint.before_parent_sync",
    "checkpoint.before_removal",
    "checkpoint.before_prune_sync",
    "checkpoint.before_prune_removal",
    "evaluator.before_batch",
    "evaluator.before_pass",
    "trainer.before_pass",
    "trainer.before_step",
};

/// Does nothing unless the environment variable PRECAST_FAILPOINTS arms `name`, as in
/// `beton.before_table=kill,log.before_line=error@3`: `kill` ends the process as SIGKILL does,
/// `stop` suspends it as SIGSTOP does, `term` sends it SIGTERM, `exit` ends it with code 1, `error`
/// throws an IoError, `sleep:MS` waits MS milliseconds. With `@N`, this happens only the N-th time
/// that the failpoint is reached; with `%R` (at the end), only in the process whose variable
/// PRECAST_RANK or RANK is R. If nothing is armed, the call only checks a variable. Thread-safe.
/// @throws ConfigError if PRECAST_FAILPOINTS contains an unknown name or action, even for another
/// failpoint or rank.
PRECAST_API void failpoint(std::string_view name);

}  // namespace precast
