#pragma once

#include <exception>

namespace precast::tools {

/// Rethrows a libtorch exception as an Error without the C++ stack trace that its what() contains,
/// because users need only the message. Running out of memory becomes ExitCode::out_of_memory, and
/// an error of a transport between ranks becomes ExitCode::peer_failed. Other exceptions are
/// rethrown unchanged.
[[noreturn]] void rethrow_plainly(const std::exception_ptr& failure);

}  // namespace precast::tools
