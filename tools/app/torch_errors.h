#pragma once

#include <exception>

namespace precast::tools {

/// Rethrows an exception of libtorch as one of our errors: its what() carries a C++ stack trace,
/// and users need only the message. An error of a transport between ranks becomes the failure of a
/// peer. Other exceptions pass unchanged.
[[noreturn]] void rethrow_plainly(const std::exception_ptr& failure);

}  // namespace precast::tools
