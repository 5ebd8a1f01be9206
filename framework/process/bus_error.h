#pragma once

#include "framework/core/export.h"

namespace precast {

/// From now on, if a page of a mapped file cannot be read or written, the process writes a message
/// with the path of the file to standard error and ends with ExitCode::io. The cause is a file that
/// was shortened while it was mapped, a disk that failed, or a full disk under a new file. The
/// kernel signals this as SIGBUS, which would end the process without a message. Other bus errors,
/// such as those of a GPU's memory, still do. Call it once, in main(): the handler stays for the
/// life of the process.
PRECAST_API void report_bus_errors();

}  // namespace precast
