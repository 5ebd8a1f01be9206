#include "data/sources/npy_array.h"

#include <fmt/core.h>

#include <utility>

#include "framework/core/archive/npy.h"
#include "framework/core/archive/tensor_record.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Whether NumPy has elements of this kind (one of biufcS) and size.
bool is_numpy_type(char kind, std::uint64_t bytes) {
  switch (kind) {
    case 'b':
      return bytes == 1;
    case 'i':
    case 'u':
      return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case 'f':
      return bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
    case 'c':
      return bytes == 8 || bytes == 16 || bytes == 32;
    default:
      return kind == 'S' && bytes > 0;
  }
}

}  // namespace

NpyView view_npy(std::span<const std::byte> file, const std::string& where) {
  NpyHeader header = parse_npy_header(file, where);
  const std::uint64_t element = dtype_bytes(header.descr);
  if (element == 0 || header.descr[0] == '>' || !is_numpy_type(header.descr[1], element)) {
    throw DataError(fmt::format(
        "{}: expected a numeric, little-endian dtype such as <f4, <i8 or |u1, got '{}'{}", where,
        header.descr,
        element != 0 && header.descr[0] == '>'
            ? ". Save array.astype(array.dtype.newbyteorder('<')) instead"
            : ""));
  }
  NpyView view{{std::move(header.descr), {}}, file.subspan(header.begin)};
  std::uint64_t bytes = element;
  bool fits = true;
  for (const std::int64_t size : header.shape) {
    view.format.shape.push_back(static_cast<std::uint64_t>(size));
    fits = fits && !__builtin_mul_overflow(bytes, view.format.shape.back(), &bytes);
  }
  if (!fits || bytes != view.elements.size()) {
    throw DataError(
        fmt::format("{}: expected the bytes of an array {}, got {} bytes. The file is "
                    "truncated or damaged",
                    where, describe(view.format), view.elements.size()));
  }
  return view;
}

ArrayInput npy_array(std::span<const std::byte> file, const std::string& where) {
  NpyView view = view_npy(file, where);
  if (view.format.shape.empty()) view.format.shape.push_back(1);
  return {std::move(view.format), {view.elements.begin(), view.elements.end()}};
}

}  // namespace precast::data
