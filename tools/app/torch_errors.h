#pragma once

#include <exception>

namespace precast::tools {

/// Rethrows a libtorch exception as an Error without the C++ stack trace that its what() contains,
/// because users need only the message. Running out of memory becomes ExitCode::out_of_memory, a
/// failure of a GPU or its driver ExitCode::environment, and an error of a transport between ranks
/// ExitCode::peer_failed. Other exceptions are rethrown unchanged.
[[noreturn]] void rethrow_translated(const std::exception_ptr& failure);

}  // namespace precast::tools
