#include "framework/core/archive/pickle_reader.h"

#include <fmt/format.h>

#include <utility>

#include "framework/core/archive/byte_reader.h"
#include "framework/core/archive/pickle_globals.h"
#include "framework/core/archive/pickle_stack.h"
#include "framework/core/utf8.h"

namespace precast {
namespace {

using Kind = PickleValue::Kind;
using Role = PickleValue::Role;

constexpr std::uint64_t kMaxPickleBytes = 64'000'000;
/// Towards kMaxPickleValues, a tensor counts as one value, like any other, plus this many, plus one
/// for each of its sizes and strides.
constexpr std::size_t kTensorCharge = 2;
constexpr std::size_t kMaxShownBytes = 100;

/// Executes the opcodes.
class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, const std::string& source, Pickle& pickle)
      : reader_(bytes, source), pickle_(pickle), stack_(reader_, pickle) {}

  void run() {
    for (;;) {
      const auto opcode = reader_.number<std::uint8_t>();
      if (opcode == '.') break;
      const bool known = constant(opcode) || number_or_text(opcode) || empty_container(opcode) ||
                         filled_container(opcode) || memo(opcode) || call(opcode);
      if (!known)
        reader_.fail(fmt::format("pickle: expected an allowed opcode, got 0x{:02x}", opcode));
      stack_.check_limits();
    }
    pickle_.top = stack_.pop_last();
  }

 private:
  template <typename... Values>
  void expect(bool holds, fmt::format_string<const Values&...> what, const Values&... values) {
    if (!holds) reader_.fail("pickle: expected " + fmt::format(what, values...));
  }

  PickleValue& push(Kind kind) { return stack_.push(kind); }

  bool constant(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80: {  // PROTO
        const auto protocol = reader_.number<std::uint8_t>();
        expect(protocol >= 2 && protocol <= 5, "protocol 2 to 5, got {}", protocol);
        return true;
      }
      case 0x95: {  // FRAME
        const auto size = reader_.number<std::uint64_t>();
        expect(size <= reader_.left(),
               "a frame of {} bytes, got {} bytes. The file is truncated or damaged", size,
               reader_.left());
        return true;
      }
      case 'N':
        push(Kind::none);
        return true;
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        push(Kind::boolean).integer = opcode == 0x88;
        return true;
      case '(':
        stack_.mark();
        return true;
      case '0':
        stack_.pop();
        return true;
      default:
        return false;
    }
  }

  void integer(std::int64_t value) { push(Kind::integer).integer = value; }

  void long_integer() {
    const auto size = reader_.number<std::uint8_t>();
    const auto bytes = reader_.take(size);
    if (size > sizeof(std::int64_t)) {
      push(Kind::opaque);  // such as an unsigned 64-bit seed
      return;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    }
    const bool negative = size > 0 && (std::to_integer<unsigned>(bytes[size - 1U]) & 0x80U) != 0;
    if (negative && size < sizeof value) value |= ~std::uint64_t{0} << (8 * size);
    integer(static_cast<std::int64_t>(value));
  }

  bool number_or_text(std::uint8_t opcode) {
    switch (opcode) {
      case 'J':
        integer(reader_.number<std::int32_t>());
        return true;
      case 'K':
        integer(reader_.number<std::uint8_t>());
        return true;
      case 'M':
        integer(reader_.number<std::uint16_t>());
        return true;
      case 0x8a:  // LONG1
        long_integer();
        return true;
      case 'G':  // BINFLOAT; its value is not needed
        reader_.skip(sizeof(double));
        push(Kind::real);
        return true;
      case 'X':  // BINUNICODE
        push(Kind::text).text = reader_.text(reader_.number<std::uint32_t>());
        return true;
      case 0x8c:  // SHORT_BINUNICODE
      case 'U':   // SHORT_BINSTRING
        push(Kind::text).text = reader_.text(reader_.number<std::uint8_t>());
        return true;
      case 'B':  // BINBYTES
        reader_.skip(reader_.number<std::uint32_t>());
        push(Kind::opaque);
        return true;
      case 'C':  // SHORT_BINBYTES
        reader_.skip(reader_.number<std::uint8_t>());
        push(Kind::opaque);
        return true;
      default:
        return false;
    }
  }

  void extend(const std::vector<PickleValue*>& items) {
    PickleValue& target = stack_.top();
    if (target.kind == Kind::opaque) return;
    const bool pairs = target.kind == Kind::dict;
    if ((!pairs && target.kind != Kind::list) || (pairs && items.size() % 2 != 0)) {
      reader_.fail("pickle: expected a list or a dict to fill, got a different value");
    }
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  bool empty_container(std::uint8_t opcode) {
    switch (opcode) {
      case ')':
        push(Kind::tuple);
        return true;
      case ']':
        push(Kind::list);
        return true;
      case '}':
        push(Kind::dict);
        return true;
      case 0x8f:  // EMPTY_SET
        push(Kind::opaque);
        return true;
      default:
        return false;
    }
  }

  void make_tuple(std::vector<PickleValue*> items) { push(Kind::tuple).items = std::move(items); }

  bool filled_container(std::uint8_t opcode) {
    switch (opcode) {
      case 't':
        make_tuple(stack_.pop_to_mark());
        return true;
      case 0x85:  // TUPLE1, TUPLE2, TUPLE3
      case 0x86:
      case 0x87:
        make_tuple(stack_.pop_many(opcode - 0x84U));
        return true;
      case 'a':  // APPEND
        extend(stack_.pop_many(1));
        return true;
      case 's':  // SETITEM
        extend(stack_.pop_many(2));
        return true;
      case 'e':   // APPENDS
      case 'u':   // SETITEMS
      case 0x90:  // ADDITEMS
        extend(stack_.pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  bool memo(std::uint8_t opcode) {
    switch (opcode) {
      case 'q':
        stack_.remember(reader_.number<std::uint8_t>());
        return true;
      case 'r':
        stack_.remember(reader_.number<std::uint32_t>());
        return true;
      case 0x94:  // MEMOIZE
        stack_.remember_next();
        return true;
      case 'h':
        stack_.recall(reader_.number<std::uint8_t>());
        return true;
      case 'j':
        stack_.recall(reader_.number<std::uint32_t>());
        return true;
      default:
        return false;
    }
  }

  void global(std::string_view module, std::string_view name) {
    const auto found = find_pickle_global(module, name);
    if (!found) {
      reader_.fail(
          fmt::format("pickle: expected tensors and plain values, got '{}.{}', which is "
                      "not on the allow list. Save only model.state_dict()",
                      utf8_prefix(module, kMaxShownBytes), utf8_prefix(name, kMaxShownBytes)));
    }
    PickleValue& value = push(Kind::global);
    value.role = found->role;
    value.dtype = found->dtype;
  }

  std::vector<std::int64_t> integers(const PickleValue& tuple) {
    if (tuple.kind != Kind::tuple || tuple.items.size() > kMaxTensorDimensions) {
      reader_.fail("pickle: expected a tuple of at most 64 sizes, got a different value");
    }
    std::vector<std::int64_t> values;
    for (const PickleValue* item : tuple.items) {
      if (item->kind != Kind::integer)
        reader_.fail("pickle: expected an integer size, got a different value");
      values.push_back(item->integer);
    }
    return values;
  }

  /// @param metadata None, or a dict with the keys "neg" and "conj" for a lazy negation and a lazy
  /// conjugation, which are not yet applied to the storage's values
  void check_metadata(const PickleValue& metadata) {
    if (metadata.kind != Kind::none && metadata.kind != Kind::dict)
      reader_.fail("pickle: expected a dict as the metadata of a tensor, got a different value");
    // Without this charge, a small pickle could search a large dict many times.
    stack_.charge(metadata.items.size());
    for (const char* bit : {"neg", "conj"}) {
      if (metadata.find(bit) == nullptr) continue;
      reader_.fail(
          fmt::format("pickle: expected a tensor without torch's {0} bit, got one with it. Call "
                      ".resolve_{0}() on the tensor before saving",
                      bit));
    }
  }

  void make_tensor(const std::vector<PickleValue*>& args) {
    // storage, offset, size, stride, requires_grad, hooks [, metadata]
    if (args.size() == 7) check_metadata(*args[6]);
    const bool fits = (args.size() == 6 || args.size() == 7) && args[0]->kind == Kind::storage &&
                      args[1]->kind == Kind::integer;
    if (!fits) reader_.fail("pickle: expected the arguments of a tensor, got different values");
    // Without this charge, a small pickle could request much memory: six bytes can repeat a call
    // whose result needs a kilobyte.
    stack_.charge(kTensorCharge + args[2]->items.size() + args[3]->items.size());
    auto tensor = std::make_unique<PickleValue::Tensor>();
    tensor->storage = *args[0]->storage;
    tensor->offset = args[1]->integer;
    tensor->shape = integers(*args[2]);
    tensor->strides = integers(*args[3]);
    push(Kind::tensor).tensor = std::move(tensor);
  }

  void reduce() {
    const PickleValue* args = stack_.pop(Kind::tuple, "a tuple of arguments");
    const PickleValue* callable = stack_.pop(Kind::global, "a function");
    switch (callable->role) {
      case Role::make_dict:
        push(Kind::dict);
        return;
      case Role::make_tensor:
        return make_tensor(args->items);
      case Role::return_first_argument:
        if (args->items.empty()) break;
        stack_.push_again(args->items[0]);
        return;
      case Role::opaque:
        push(Kind::opaque);
        return;
      case Role::storage_type:
      case Role::none:
        break;
    }
    reader_.fail("pickle: expected a call on the allow list, got another call");
  }

  /// ('storage', torch.FloatStorage, key, device, elements)
  void persistent_id() {
    const auto& items = stack_.pop(Kind::tuple, "a tuple that names a storage")->items;
    const bool fits = items.size() == 5 && items[0]->kind == Kind::text &&
                      items[0]->text == "storage" && items[1]->role == Role::storage_type &&
                      items[2]->kind == Kind::text && items[4]->kind == Kind::integer &&
                      items[4]->integer >= 0;
    if (!fits) reader_.fail("pickle: expected a storage of a known type, got different values");
    push(Kind::storage).storage = std::make_unique<PickleValue::Storage>(PickleValue::Storage{
        items[1]->dtype, items[2]->text, static_cast<std::uint64_t>(items[4]->integer)});
  }

  bool call(std::uint8_t opcode) {
    switch (opcode) {
      case 'c': {
        const std::string_view module = reader_.line();
        global(module, reader_.line());
        return true;
      }
      case 0x93: {  // STACK_GLOBAL
        const std::string_view name = stack_.pop(Kind::text, "a name")->text;
        global(stack_.pop(Kind::text, "a module")->text, name);
        return true;
      }
      case 'R':
        reduce();
        return true;
      case 0x81:  // NEWOBJ
        stack_.pop(Kind::tuple, "a tuple of arguments");
        if (stack_.pop(Kind::global, "a class")->role != Role::opaque) {
          reader_.fail("pickle: expected a class whose objects are ignored, got another class");
        }
        push(Kind::opaque);
        return true;
      case 'b': {  // BUILD sets attributes, such as an OrderedDict's _metadata; ignored
        stack_.pop();
        const Kind kind = stack_.top().kind;
        if (kind != Kind::dict && kind != Kind::opaque)
          reader_.fail("pickle: expected the state of a dict, got the state of another object");
        return true;
      }
      case 'Q':
        persistent_id();
        return true;
      default:
        return false;
    }
  }

  ByteReader reader_;
  Pickle& pickle_;
  PickleStack stack_;
};

}  // namespace

const PickleValue* PickleValue::find(std::string_view key) const {
  if (kind != Kind::dict) return nullptr;
  for (std::size_t i = items.size(); i >= 2; i -= 2) {
    if (items[i - 2]->kind == Kind::text && items[i - 2]->text == key) return items[i - 1];
  }
  return nullptr;
}

Pickle parse_pickle(std::span<const std::byte> bytes, const std::string& source) {
  if (bytes.size() > kMaxPickleBytes) {
    throw CheckpointError(fmt::format("{}: expected a pickle of at most {} bytes, got {}", source,
                                      kMaxPickleBytes, bytes.size()));
  }
  Pickle pickle;
  Unpickler(bytes, source, pickle).run();
  return pickle;
}

}  // namespace precast
