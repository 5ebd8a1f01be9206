#pragma once

#include <exception>

namespace precast::tools {

/// Throws what libtorch threw as an error of ours: its exceptions carry a C++ stack trace in
/// what(), and people want the sentence; what a transport between ranks throws is the failure of a
/// peer. Other exceptions pass unchanged.
[[noreturn]] void rethrow_plainly(const std::exception_ptr& failure);

}  // namespace precast::tools
