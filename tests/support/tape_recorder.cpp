#include "tests/support/tape_recorder.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace precast::test {
namespace {

using torch::jit::Stack;

/// A dispatch key below autograd and autocast, and above the kernels. No other part of libtorch
/// uses this key.
constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;

/// Operations whose result the host reads.
constexpr std::array<std::string_view, 8> kSyncingOps = {
    "aten::_local_scalar_dense", "aten::item",  "aten::is_nonzero", "aten::nonzero",
    "aten::masked_select",       "aten::equal", "aten::_unique2",   "aten::bincount"};

/// Operations that only allocate memory. They are not recorded.
constexpr std::array<std::string_view, 5> kAllocating = {"aten::empty", "aten::empty_strided",
                                                         "aten::empty_like", "aten::new_empty",
                                                         "aten::new_empty_strided"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Calls `visit` with every defined tensor in a value.
template <typename Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector())
      if (tensor.defined()) visit(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector())
      if (tensor && tensor->defined()) visit(*tensor);
  }
}

/// A tensor with the current memory of `tensor`, even if `tensor` gets other memory later.
at::Tensor alias_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return at::Tensor(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      c10::VariableVersion(0), /*allow_tensor_metadata_change=*/false));
}

c10::IValue alias_of(const c10::IValue& value) {
  if (value.isTensor()) return alias_of(value.toTensor());
  if (value.isTensorList()) {
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(alias_of(tensor));
    return tensors;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const auto& tensor : value.toOptionalTensorVector())
      tensors.push_back(tensor ? std::optional(alias_of(*tensor)) : std::nullopt);
    return tensors;
  }
  return value;
}

/// Restores the default CPU generator, which represents the device's generator.
class GeneratorGuard {
 public:
  GeneratorGuard() : generator_(at::globalContext().defaultGenerator(at::kCPU)) {
    const std::scoped_lock lock(generator_.mutex());
    before_ = generator_.get_state();
  }
  GeneratorGuard(const GeneratorGuard&) = delete;
  GeneratorGuard& operator=(const GeneratorGuard&) = delete;
  ~GeneratorGuard() {
    const std::scoped_lock lock(generator_.mutex());
    generator_.set_state(before_);
  }

 private:
  at::Generator generator_;
  at::Tensor before_;
};

class NoAutocastCache {
 public:
  NoAutocastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  NoAutocastCache(const NoAutocastCache&) = delete;
  NoAutocastCache& operator=(const NoAutocastCache&) = delete;
  ~NoAutocastCache() { at::autocast::set_autocast_cache_enabled(before_); }

 private:
  bool before_;
};

/// Memory that a recording uses.
struct Memory {
  c10::Storage storage;
  /// Whether the recorded work has allocated it.
  bool own = false;
  /// The number of references that the tape has, including this one.
  std::size_t references = 1;
  /// The bytes before the recording, unless the recorded work has allocated the memory.
  std::vector<char> before{};

  [[nodiscard]] bool is_referred_to_by_others() const {
    return static_cast<std::size_t>(storage.use_count()) > references;
  }
  void poison() const { std::memset(storage.mutable_data(), 0xFF, storage.nbytes()); }
};

/// The operations of one recording.
class Tape {
 public:
  void take_inputs(const Stack& inputs) {
    for (const c10::IValue& value : inputs) {
      for_each_tensor(value, [&](const at::Tensor& tensor) {
        // A number, as in `x + 1`, is an argument of the kernel, not memory.
        if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) find(tensor, /*own=*/false);
      });
    }
  }

  void add(std::function<void()> launch) {
    calls_.push_back({.op = {}, .inputs = {}, .outputs = {}, .launch = std::move(launch)});
  }

  void add(const c10::OperatorHandle& op, const Stack& inputs, const Stack& outputs) {
    Call call{.op = op, .inputs = {}, .outputs = {}, .launch = {}};
    bool fresh = false;
    for (const c10::IValue& value : outputs) {
      for_each_tensor(value, [&](const at::Tensor& tensor) {
        fresh = fresh || !memory_.contains(tensor.storage().unsafeGetStorageImpl());
      });
    }
    for (const c10::IValue& value : outputs) {
      for_each_tensor(value, [&](const at::Tensor& tensor) {
        const bool known = memory_.contains(tensor.storage().unsafeGetStorageImpl());
        ++find(tensor, /*own=*/true).references;
        call.outputs.push_back({alias_of(tensor), /*copied=*/!known});
      });
    }
    const bool view = !fresh && !outputs.empty() && !op.schema().is_mutable();
    if (view || contains(kAllocating, op.schema().name())) {
      for (const Output& output : call.outputs) --find(output.tensor, true).references;
      return;
    }
    for (const c10::IValue& value : inputs) call.inputs.push_back(alias_of(value));
    for (const c10::IValue& value : call.inputs) {
      for_each_tensor(value, [&](const at::Tensor& tensor) {
        if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) ++find(tensor, false).references;
      });
    }
    calls_.push_back(std::move(call));
  }

  /// Undoes the recorded operations: restores the memory that existed before them, and poisons the
  /// memory that they allocated.
  void undo() {
    for (auto& [impl, memory] : memory_) {
      if (memory.own) {
        memory.poison();
      } else {
        std::memcpy(memory.storage.mutable_data(), memory.before.data(), memory.before.size());
        memory.before.clear();
      }
    }
  }

  void poison() const {
    for (const auto& [impl, memory] : memory_)
      if (memory.own && !memory.is_referred_to_by_others()) memory.poison();
  }

  void run() const {
    for (const auto& [impl, memory] : memory_) {
      TORCH_CHECK(memory.own || memory.is_referred_to_by_others(),
                  "memory that the recording uses has been freed");
    }
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (const Call& call : calls_) {
      if (call.launch) {
        call.launch();
        continue;
      }
      Stack stack = call.inputs;
      call.op->callBoxed(stack);
      auto output = call.outputs.begin();
      for (const c10::IValue& value : stack) {
        for_each_tensor(value, [&](const at::Tensor& tensor) {
          if (output->copied) output->tensor.copy_(tensor);
          ++output;
        });
      }
    }
  }

  [[nodiscard]] std::size_t size() const { return calls_.size(); }

 private:
  struct Output {
    at::Tensor tensor;
    /// Whether a replay must copy the result to `tensor`, because the operation does not write to
    /// this memory itself.
    bool copied;
  };
  struct Call {
    /// Empty for a launch.
    std::optional<c10::OperatorHandle> op;
    Stack inputs;
    std::vector<Output> outputs;
    std::function<void()> launch;
  };

  Memory& find(const at::Tensor& tensor, bool own) {
    const c10::Storage& storage = tensor.storage();
    const auto [entry, added] =
        memory_.try_emplace(storage.unsafeGetStorageImpl(), Memory{storage, own});
    Memory& memory = entry->second;
    if (added && !own) {
      const auto* bytes = static_cast<const char*>(storage.data());
      memory.before.assign(bytes, bytes + storage.nbytes());
    }
    return memory;
  }

  std::vector<Call> calls_;
  std::map<const c10::StorageImpl*, Memory> memory_;
};

/// The tape on which this thread records, or null.
thread_local Tape* active_tape = nullptr;

void on_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const c10::DispatchKeySet below =
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  const std::string& name = op.schema().name();
  TORCH_CHECK(!contains(kSyncingOps, name),
              "CUDA error: operation not permitted when stream is capturing: ", name);
  const std::size_t count = op.schema().arguments().size();
  const Stack inputs(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  const std::size_t rest = stack->size() - count;
  active_tape->take_inputs(inputs);
  {
    // Operations that this operation calls are part of it, and are not recorded.
    const c10::impl::ExcludeDispatchKeyGuard no_parts(kKey);
    op.redispatchBoxed(below, stack);
  }
  active_tape->add(op, inputs,
                   Stack(stack->begin() + static_cast<std::ptrdiff_t>(rest), stack->end()));
}

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_call>());
}

}  // namespace

/// All recordings of one recorder.
class TapeRecorder::Pool {
 public:
  void poison() const {
    for (const Tape* tape : tapes) tape->poison();
  }
  std::vector<const Tape*> tapes;
};

namespace {

class TapeRecording final : public engine::GraphRecorder::Recording {
 public:
  TapeRecording(std::unique_ptr<Tape> tape, std::shared_ptr<TapeRecorder::Pool> pool, TapeLog& log)
      : tape_(std::move(tape)), pool_(std::move(pool)), log_(log) {
    pool_->tapes.push_back(tape_.get());
    ++log_.alive;
  }
  TapeRecording(const TapeRecording&) = delete;
  TapeRecording& operator=(const TapeRecording&) = delete;
  ~TapeRecording() override {
    std::erase(pool_->tapes, tape_.get());
    --log_.alive;
  }
  void replay() override {
    ++log_.replays;
    pool_->poison();
    tape_->run();
  }

 private:
  std::unique_ptr<Tape> tape_;
  std::shared_ptr<TapeRecorder::Pool> pool_;
  TapeLog& log_;
};

}  // namespace

bool TapeRecorder::record_launch(std::function<void()> launch) {
  if (active_tape == nullptr) return false;
  active_tape->add(std::move(launch));
  return true;
}

TapeRecorder::TapeRecorder(TapeLog& log) : log_(log), pool_(std::make_shared<Pool>()) {}
TapeRecorder::~TapeRecorder() = default;

void TapeRecorder::warm_up(const Work& work) {
  ++log_.warm_ups;
  const NoAutocastCache no_cache;
  work();
}

std::unique_ptr<engine::GraphRecorder::Recording> TapeRecorder::record(const Work& work) {
  ++log_.recordings;
  const GeneratorGuard generator;
  const NoAutocastCache no_cache;
  auto tape = std::make_unique<Tape>();
  const auto stop = [&] {
    active_tape = nullptr;
    log_.recording = false;
    tape->undo();
  };
  active_tape = tape.get();
  log_.recording = true;
  try {
    const c10::impl::IncludeDispatchKeyGuard records(kKey);
    work();
  } catch (...) {
    stop();
    throw;
  }
  stop();
  log_.operations = tape->size();
  return std::make_unique<TapeRecording>(std::move(tape), pool_, log_);
}

}  // namespace precast::test
