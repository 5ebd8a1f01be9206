#pragma once

#include "framework/core/export.h"

namespace precast {

/// Installs a SIGBUS handler for the life of the process; call it once, in main(). If a page of a
/// mapped file cannot be read or written, the handler writes a message with the path of the file to
/// standard error and ends the process with ExitCode::io. The causes are a file that was shortened
/// while it was mapped, a failed disk, or a full disk under a new file. Without the handler, SIGBUS
/// ends the process without a message. Other bus errors, such as those of a GPU's memory, still end
/// it in this way.
PRECAST_API void report_bus_errors();

}  // namespace precast
