#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdio>

// clang-format off: jpeglib.h needs the headers above it.
#include <jpeglib.h>
// clang-format on

namespace precast::data {

/// libjpeg's error handling without its exit(): a fatal error jumps to `jump`; warnings are
/// counted. Private to data/image. Between setjmp() and the last call of libjpeg a function must
/// not hold an object with a destructor, because longjmp() would skip it.
struct JpegErrors {
  jpeg_error_mgr base{};
  std::jmp_buf jump{};
  int warnings = 0;
  /// Whether the file is truncated.
  bool truncated = false;
  char text[JMSG_LENGTH_MAX] = {};

  /// Installs this object in `codec`, which must not move afterwards.
  void install(j_common_ptr codec);
};

}  // namespace precast::data
