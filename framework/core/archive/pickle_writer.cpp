#include "framework/core/archive/pickle_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/core/error.h"

namespace precast {
namespace {

class Writer {
 public:
  [[nodiscard]] std::string take() { return std::move(text_); }

  void opcode(char code) { text_ += code; }

  void global(std::string_view module, std::string_view name) {
    text_ += fmt::format("c{}\n{}\n", module, name);
  }

  void string(std::string_view value) {
    opcode('X');
    raw(static_cast<std::uint32_t>(value.size()));
    text_ += value;
  }

  void integer(std::int64_t value) {
    if (value >= INT32_MIN && value <= INT32_MAX) {
      opcode('J');
      raw(static_cast<std::int32_t>(value));
    } else {
      text_ += "\x8a\x08";  // LONG1 of eight bytes
      raw(value);
    }
  }

  void tuple(std::span<const std::int64_t> values) {
    opcode('(');
    for (const std::int64_t value : values) integer(value);
    opcode('t');
  }

  void empty_ordered_dict() {
    global("collections", "OrderedDict");
    text_ += ")R";
  }

 private:
  template <std::integral Number>
  void raw(Number value) {
    std::array<char, sizeof value> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    text_.append(bytes.data(), bytes.size());
  }

  std::string text_ = "\x80\x02";  // PROTO 2
};

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

void write_tensor(Writer& out, const TensorRecord& record, std::size_t index) {
  const DTypeInfo& info = dtype_info(record.dtype);
  out.global("torch._utils", "_rebuild_tensor_v2");
  out.opcode('(');
  out.opcode('(');
  out.string("storage");
  out.global("torch", info.torch_storage);
  out.string(fmt::format("{}", index));
  out.string("cpu");
  out.integer(static_cast<std::int64_t>(record.bytes.size() / info.size_bytes));
  out.opcode('t');
  out.opcode('Q');  // BINPERSID
  out.integer(0);   // offset
  out.tuple(record.shape);
  out.tuple(contiguous_strides(record.shape));
  out.opcode('\x89');        // requires_grad: False
  out.empty_ordered_dict();  // hooks
  out.opcode('t');
  out.opcode('R');
}

}  // namespace

std::string pickle_state_dict(std::span<const TensorRecord> records) {
  Writer out;
  out.empty_ordered_dict();
  out.opcode('(');
  for (std::size_t i = 0; i < records.size(); ++i) {
    require(records[i].name.size() <= INT32_MAX, "a tensor's name fits 31 bits");
    out.string(records[i].name);
    write_tensor(out, records[i], i);
  }
  out.opcode('u');  // SETITEMS
  out.opcode('.');
  return out.take();
}

}  // namespace precast
