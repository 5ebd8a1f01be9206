#include "framework/core/archive/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "framework/core/error.h"

namespace precast {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kPreamble = 10;
constexpr std::size_t kAlignment = 64;

std::string header_text(std::string_view descr, std::span<const std::int64_t> shape) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  if (shape.size() == 1) sizes.pop_back();
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, sizes);
}

/// The header is a Python dict literal. This parser reads only literals in the form that NumPy
/// writes.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

  void parse(NpyHeader& array) {
    bool descr = false, order = false, shape = false;
    expect("{");
    while (!accept("}")) {
      const std::string_view key = quoted();
      expect(":");
      if (key == "descr" && !std::exchange(descr, true)) {
        array.descr = quoted();
      } else if (key == "fortran_order" && !std::exchange(order, true)) {
        if (accept("True"))
          fail(
              "fortran_order: expected False, got True. Save numpy.ascontiguousarray(array) "
              "instead");
        if (!accept("False")) fail("fortran_order: expected False or True, got another value");
      } else if (key == "shape" && !std::exchange(shape, true)) {
        parse_shape(array);
      } else {
        fail(fmt::format("expected descr, fortran_order and shape, each once, got '{}'", key));
      }
      accept(",");
    }
    skip_space();
    if (!rest_.empty() || !descr || !order || !shape)
      fail(
          "expected descr, fortran_order, shape and nothing after the dict, got fewer keys or more "
          "text");
  }

  [[noreturn]] void fail(std::string_view message) const {
    throw DataError(fmt::format("{}: npy header: {}", source_, message));
  }

 private:
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }

  bool accept(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("expected '{}' before '{}'", token, rest_.substr(0, 20)));
  }

  std::string_view quoted() {
    expect("'");
    const std::string_view text = rest_.substr(0, rest_.find('\''));
    rest_.remove_prefix(text.size());
    expect("'");
    return text;
  }

  void parse_shape(NpyHeader& array) {
    expect("(");
    while (!accept(")")) {
      std::int64_t size = 0;
      skip_space();
      const auto [end, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (failure != std::errc() || size < 0 || array.shape.size() == kMaxTensorDimensions) {
        fail(fmt::format("shape: expected at most {} sizes >= 0, got '{}'", kMaxTensorDimensions,
                         rest_.substr(0, 20)));
      }
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      array.shape.push_back(size);
      if (!accept(",")) {
        expect(")");
        return;
      }
    }
  }

  std::string_view rest_;
  const std::string& source_;
};

}  // namespace

void write_npy(const std::filesystem::path& path, DType dtype, std::span<const std::int64_t> shape,
               std::span<const std::byte> bytes, FileOps& ops) {
  require(!dtype_info(dtype).numpy.empty(), "NumPy has the dtype");
  require(byte_count(dtype, shape) == bytes.size(), "the bytes fill the shape");
  write_npy(path, dtype_info(dtype).numpy, shape, bytes, ops);
}

std::string npy_header(std::string_view descr, std::span<const std::int64_t> shape) {
  std::string header = header_text(descr, shape);
  const std::size_t total_bytes =
      (kPreamble + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.resize(total_bytes - kPreamble - 1, ' ');
  header += '\n';
  require(header.size() <= UINT16_MAX, "the header fits version 1.0");

  std::string preamble(kMagic);
  preamble += {'\x01', '\x00', static_cast<char>(header.size() & 0xFF),
               static_cast<char>(header.size() >> 8)};
  return preamble + header;
}

void write_npy(const std::filesystem::path& path, std::string_view descr,
               std::span<const std::int64_t> shape, std::span<const std::byte> bytes,
               FileOps& ops) {
  AtomicFile file(path, ops);
  file.append(npy_header(descr, shape));
  file.append(bytes);
  file.commit();
}

NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& source) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (file.size() < kPreamble || !text.starts_with(kMagic) || text[6] < 1 || text[6] > 3) {
    throw DataError(
        fmt::format("{}: expected a .npy file of version 1 to 3, got {} bytes of another format "
                    "or version",
                    source, file.size()));
  }
  const bool wide = text[6] > 1;
  const std::size_t start = wide ? kPreamble + 2 : kPreamble;
  std::uint32_t header_bytes = 0;
  if (file.size() >= start) std::memcpy(&header_bytes, text.data() + 8, wide ? 4 : 2);
  if (file.size() < start || header_bytes > file.size() - start) {
    throw DataError(
        fmt::format("{}: expected a header of {} bytes, got a file of {} bytes. "
                    "The file is truncated",
                    source, header_bytes, file.size()));
  }
  NpyHeader header;
  HeaderParser(text.substr(start, header_bytes), source).parse(header);
  header.begin = start + header_bytes;
  return header;
}

NpyArray parse_npy(std::span<const std::byte> file, const std::string& source) {
  NpyHeader header = parse_npy_header(file, source);
  const auto dtype = find_dtype(&DTypeInfo::numpy, header.descr);
  if (!dtype) {
    throw DataError(
        fmt::format("{}: npy header: expected a dtype such as <f4, <i8 or |u1, got '{}'", source,
                    header.descr));
  }
  NpyArray array{*dtype, std::move(header.shape), {}};
  const auto data = file.subspan(header.begin);
  const auto expected = byte_count(array.dtype, array.shape);
  if (expected != data.size()) {
    throw DataError(
        fmt::format("{}: expected {} of data for {} {}, got {} bytes. The file is "
                    "truncated or damaged",
                    source, expected ? fmt::format("{} bytes", *expected) : "fewer than 2^64 bytes",
                    dtype_info(array.dtype).name, shape_text(array.shape), data.size()));
  }
  array.bytes.assign(data.begin(), data.end());
  return array;
}

NpyArray read_npy(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_npy(file.bytes(), path.string());
}

}  // namespace precast
