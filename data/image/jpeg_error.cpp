#include "data/image/jpeg_error.h"

#include <jerror.h>

namespace precast::data {
namespace {

JpegErrors& errors_of(j_common_ptr codec) {
  return *static_cast<JpegErrors*>(codec->client_data);
}

void on_error(j_common_ptr codec) {
  JpegErrors& errors = errors_of(codec);
  codec->err->format_message(codec, errors.text);
  std::longjmp(errors.jump, 1);
}

void on_message(j_common_ptr codec, int level) {
  if (level >= 0) return;  // A trace message; negative levels are warnings.
  JpegErrors& errors = errors_of(codec);
  ++errors.warnings;
  if (codec->err->msg_code == JWRN_JPEG_EOF) errors.truncated = true;
}

void print_nothing(j_common_ptr /*codec*/) {}

}  // namespace

void JpegErrors::install(j_common_ptr codec) {
  codec->err = jpeg_std_error(&base);
  codec->client_data = this;
  base.error_exit = on_error;
  base.emit_message = on_message;
  base.output_message = print_nothing;
}

}  // namespace precast::data
