#include "data/beton/write_dataset.h"

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

using Encoders = std::vector<std::unique_ptr<Field>>;

/// Samples that may be encoded and not yet laid out, for each worker.
constexpr std::uint64_t kAheadPerWorker = 4;
/// How soon a cancel request is seen at the latest.
constexpr auto kCancelPoll = std::chrono::milliseconds(50);

/// A sample between a worker and the calling thread.
struct Slot {
  enum class State { empty, ready, damaged, failed } state = State::empty;
  std::vector<EncodedValue> values;
  /// Of a damaged one, to be skipped.
  SkippedSample skipped;
  std::exception_ptr failure;
};

/// The same error with the sample's place in front. @param name empty while it is not known.
Error naming(const Error& error, std::uint64_t index, const std::string& name) {
  const std::string place = name.empty() ? "" : fmt::format(" ({})", name);
  return Error(fmt::format("sample {}{}: {}", index, place, error.what()), error.exit_code());
}

/// Workers fill slots in any order within a window; the owner empties them in file order.
class EncodeQueue {
 public:
  EncodeQueue(const std::vector<FieldPlan>& fields, std::uint64_t num_samples,
              const SampleProvider& provider, const WriteOptions& options)
      : num_samples_(num_samples),
        provider_(provider),
        skips_(options.on_corrupt == CorruptPolicy::skip),
        slots_(kAheadPerWorker * static_cast<std::uint64_t>(options.workers)) {
    for (int i = 0; i < options.workers; ++i) {
      Encoders encoders;
      for (const FieldPlan& field : fields) encoders.push_back(field.make());
      encoders_.push_back(std::move(encoders));
    }
  }
  EncodeQueue(const EncodeQueue&) = delete;
  EncodeQueue& operator=(const EncodeQueue&) = delete;
  ~EncodeQueue() { stop(); }

  /// Starts the workers. Not in the constructor: when a thread cannot be started, only the
  /// destructor of a complete object ends those that run already. @throws DeviceError
  void start() {
    threads_.reserve(encoders_.size());
    try {
      for (Encoders& encoders : encoders_) {
        threads_.emplace_back([this, &encoders] { work(encoders); });
      }
    } catch (const std::system_error& error) {
      throw DeviceError(fmt::format("cannot start worker {} of {}: {}. Use fewer workers",
                                    threads_.size() + 1, encoders_.size(), error.code().message()));
    }
  }

  /// Waits for sample `index`, which is one more than the last one. @throws what its worker threw.
  Slot& wait(std::uint64_t index, const std::atomic<bool>* cancel) {
    Slot& slot = slots_[index % slots_.size()];
    std::unique_lock lock(mutex_);
    while (slot.state == Slot::State::empty) {
      if (cancel != nullptr && cancel->load()) throw Cancelled();
      ready_.wait_for(lock, kCancelPoll);
    }
    if (slot.state == Slot::State::failed) std::rethrow_exception(slot.failure);
    return slot;
  }

  /// Frees the slot of the sample that wait() gave.
  void release(std::uint64_t index) {
    {
      const std::lock_guard lock(mutex_);
      slots_[index % slots_.size()].state = Slot::State::empty;
      released_ = index + 1;
    }
    room_.notify_all();
  }

  /// Ends the workers. Then the tallies are complete.
  Tally stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    Tally sum;
    for (const Encoders& encoders : encoders_) {
      for (const auto& field : encoders) {
        for (const auto& [event, count] : field->tally()) sum[event] += count;
      }
    }
    return sum;
  }

 private:
  void work(Encoders& encoders) {
    std::uint64_t index = 0;
    while (take(index)) {
      Slot& slot = slots_[index % slots_.size()];
      Slot::State state = Slot::State::failed;
      try {
        state = encode(encoders, index, slot);
      } catch (...) {
        slot.failure = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        slot.state = state;
      }
      ready_.notify_one();
    }
  }

  /// Claims the next sample once its slot is free. @return false when there is nothing more to do.
  bool take(std::uint64_t& index) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] {
      return stopped_ || next_ == num_samples_ || next_ < released_ + slots_.size();
    });
    if (stopped_ || next_ == num_samples_) return false;
    index = next_++;
    return true;
  }

  Slot::State encode(Encoders& encoders, std::uint64_t index, Slot& slot) {
    std::string name;
    try {
      const Sample sample = provider_(index);
      name = sample.name;
      require(sample.values.size() == encoders.size(), "a sample has one value a field");
      slot.values.resize(encoders.size());
      for (std::size_t i = 0; i < encoders.size(); ++i) {
        encoders[i]->encode(sample.values[i], index, slot.values[i]);
      }
      return Slot::State::ready;
    } catch (const Error& error) {
      if (!skips_ || error.exit_code() != ExitCode::dataset_invalid)
        throw naming(error, index, name);
      slot.skipped = {index, std::move(name), error.what()};
      return Slot::State::damaged;
    }
  }

  const std::uint64_t num_samples_;
  const SampleProvider& provider_;
  const bool skips_;
  std::vector<Slot> slots_;
  std::vector<Encoders> encoders_;

  std::mutex mutex_;
  std::condition_variable ready_;
  std::condition_variable room_;
  std::uint64_t next_ = 0;
  std::uint64_t released_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

std::vector<FieldColumn> columns_of(const std::vector<FieldPlan>& fields) {
  std::vector<FieldColumn> columns;
  for (const FieldPlan& field : fields) {
    const std::unique_ptr<Field> made = field.make();
    columns.push_back({field.name, made->type(), made->arguments()});
  }
  return columns;
}

/// Lays out all samples in order, as the workers hand them over.
void lay_out(EncodeQueue& queue, std::uint64_t num_samples, const SampleProvider& provider,
             const WriteOptions& options, BetonWriter& writer, WriteSummary& summary) {
  for (std::uint64_t index = 0; index < num_samples; ++index) {
    if (options.cancel != nullptr && options.cancel->load()) throw Cancelled();
    Slot& slot = queue.wait(index, options.cancel);
    if (slot.state == Slot::State::damaged) {
      summary.skipped.push_back(std::move(slot.skipped));
    } else {
      try {
        writer.add(slot.values);
      } catch (const DataError& error) {
        throw naming(error, index, provider(index).name);
      }
    }
    queue.release(index);
    if (options.on_progress) options.on_progress(index + 1, writer.file_bytes());
  }
  if (summary.skipped.size() == num_samples) {
    const SkippedSample& first = summary.skipped.front();
    throw DataError(fmt::format(
        "dataset: expected a sample that is not damaged, got {} damaged ones. The first "
        "is {}: {}",
        num_samples, first.name, first.error));
  }
}

}  // namespace

Cancelled::~Cancelled() = default;

CorruptPolicy corrupt_policy(std::string_view name) {
  if (name == "fail") return CorruptPolicy::fail;
  if (name == "skip") return CorruptPolicy::skip;
  throw ConfigError(
      fmt::format("on-corrupt: unknown policy '{}'. {}", name, suggest(name, {"fail", "skip"})));
}

WriteSummary write_dataset(const std::filesystem::path& path, const std::vector<FieldPlan>& fields,
                           std::uint64_t num_samples, const SampleProvider& provider,
                           const WriteOptions& options) {
  if (options.workers < 1) {
    throw ConfigError(fmt::format("workers: expected at least 1, got {}", options.workers));
  }
  const auto start = std::chrono::steady_clock::now();
  BetonWriter writer(path, columns_of(fields), num_samples, options.layout, *options.ops);
  EncodeQueue queue(fields, num_samples, provider, options);
  queue.start();
  WriteSummary summary;
  lay_out(queue, num_samples, provider, options, writer, summary);
  summary.tally = queue.stop();
  writer.finish();
  summary.samples = num_samples - summary.skipped.size();
  summary.pages = writer.pages();
  summary.file_bytes = writer.file_bytes();
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

}  // namespace precast::data
