#pragma once

#include <zmq.h>

namespace precast::data {

/// The functions of libzmq that precast uses. The library is loaded when it is first needed, so
/// that programs also run without it.
struct LibZmq {
  decltype(&zmq_errno) error_number;
  decltype(&zmq_strerror) error_text;
  decltype(&zmq_ctx_new) ctx_new;
  decltype(&zmq_ctx_term) ctx_term;
  decltype(&zmq_socket) socket;
  decltype(&zmq_close) close;
  decltype(&zmq_setsockopt) setsockopt;
  decltype(&zmq_bind) bind;
  decltype(&zmq_connect) connect;
  decltype(&zmq_poll) poll;
  decltype(&zmq_msg_init) msg_init;
  decltype(&zmq_msg_recv) msg_recv;
  decltype(&zmq_msg_size) msg_size;
  decltype(&zmq_msg_data) msg_data;
  decltype(&zmq_msg_more) msg_more;
  decltype(&zmq_msg_close) msg_close;
};

/// Loads libzmq in the first call. @return its functions. @throws DeviceError if libzmq is not
/// installed or lacks one of them. Thread-safe.
[[nodiscard]] const LibZmq& libzmq();

}  // namespace precast::data
