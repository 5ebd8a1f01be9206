#include "data/outside/libzmq.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::data {
namespace {

/// The library file of Debian's package libzmq5; the 5 is the version of the binary interface.
constexpr const char* kFile = "libzmq.so.5";

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr)
    throw DeviceError(fmt::format("{}: expected the function {}, got none", kFile, name));
}

LibZmq load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw DeviceError(fmt::format("zmq://: expected {}, got: {}. Install the package libzmq5",
                                  kFile, ::dlerror()));
  LibZmq found{};
  find(library, "zmq_errno", found.error_number);
  find(library, "zmq_strerror", found.error_text);
  find(library, "zmq_ctx_new", found.ctx_new);
  find(library, "zmq_ctx_term", found.ctx_term);
  find(library, "zmq_socket", found.socket);
  find(library, "zmq_close", found.close);
  find(library, "zmq_setsockopt", found.setsockopt);
  find(library, "zmq_bind", found.bind);
  find(library, "zmq_connect", found.connect);
  find(library, "zmq_poll", found.poll);
  find(library, "zmq_msg_init", found.msg_init);
  find(library, "zmq_msg_recv", found.msg_recv);
  find(library, "zmq_msg_size", found.msg_size);
  find(library, "zmq_msg_data", found.msg_data);
  find(library, "zmq_msg_more", found.msg_more);
  find(library, "zmq_msg_close", found.msg_close);
  return found;
}

}  // namespace

const LibZmq& libzmq() {
  static const LibZmq loaded = load();
  return loaded;
}

}  // namespace precast::data
