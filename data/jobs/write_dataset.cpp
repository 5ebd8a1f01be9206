#include "data/jobs/write_dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "data/decode/jpeg_sidecar.h"
#include "data/jobs/checkpoint_finder.h"
#include "framework/core/cancel.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

/// The objects with which one worker encodes samples.
struct Encoders {
  std::vector<std::unique_ptr<Field>> fields;
  /// Set if a JPEG index will be written.
  std::optional<CheckpointFinder> finder;
};

/// Maximum number of runs, per worker, that are encoded but not yet laid out.
constexpr std::uint64_t kRunsPerWorker = 4;
/// Runs are just long enough that the time for passing a run to the calling thread (some
/// microseconds) is negligible. With longer runs, one worker would be busy with the last run while
/// others are idle. @{
constexpr std::uint64_t kMaxRunSamples = 32;
constexpr double kRunSeconds = 1e-3;
/// @}
/// A run that has grown to this size is handed over in pieces.
constexpr std::size_t kRunBytes = std::size_t{1} << 20;
/// The longest time until a cancel request is noticed.
constexpr auto kCancelPoll = std::chrono::milliseconds(50);

/// A sample that a worker passes to the calling thread.
struct EncodedSample {
  std::uint64_t index = 0;
  std::vector<EncodedValue> values;
  /// The checkpoints of the indexed field.
  std::vector<std::uint64_t> checkpoints;
  /// Set for a damaged sample that is left out.
  std::optional<SkippedSample> skipped;
  /// Set if the sample failed. It is then the last sample of its run.
  std::exception_ptr failure;
};

/// A range of consecutive samples, encoded by one worker.
struct Run {
  /// Whether the run belongs to the calling thread; otherwise it belongs to a worker.
  bool ready = false;
  /// The first sample that is not encoded yet, and one past the last sample of the run.
  std::uint64_t next = 0;
  std::uint64_t end = 0;
  /// The first `count` entries are encoded but not yet laid out. The other entries are unused;
  /// their memory is reused later.
  std::vector<EncodedSample> samples;
  std::size_t count = 0;
  std::size_t bytes = 0;

  Run() { samples.reserve(kMaxRunSamples); }
  /// Does not allocate: memory for the longest run is reserved.
  [[nodiscard]] EncodedSample& add() {
    if (count == samples.size()) samples.emplace_back();
    return samples[count++];
  }
  /// Keeps the memory for later samples, unless there is too much of it.
  void clear() {
    std::size_t capacity = 0;
    for (const EncodedSample& sample : samples)
      for (const EncodedValue& value : sample.values)
        capacity += value.metadata.capacity() + value.blob.capacity();
    if (capacity > 2 * kRunBytes) samples.resize(1);
    count = 0;
    bytes = 0;
  }
};

/// Returns the error with the sample's index and name at the start of its message. @param name
/// empty if it is not known yet.
Error with_sample_name(const Error& error, std::uint64_t index, const std::string& name) {
  const std::string message = error.what();
  // The name is not repeated. A sample of a .beton file has the name `FILE:NUMBER`, and messages
  // may begin with FILE.
  const bool is_named = name.empty() || message.starts_with(name.substr(0, name.rfind(':')) + ": ");
  const std::string suffix = is_named ? "" : fmt::format(" ({})", name);
  return Error(fmt::format("sample {}{}: {}", index, suffix, message), error.exit_code());
}

/// Workers fill runs in any order within a window; the calling thread empties them in file order.
class EncodeQueue {
 public:
  EncodeQueue(const std::vector<FieldPlan>& fields, std::uint64_t num_samples,
              const SampleProvider& provider, const WriteOptions& options,
              std::size_t indexed_field)
      : num_samples_(num_samples),
        provider_(provider),
        indexed_field_(indexed_field),
        skips_(options.on_corrupt == CorruptPolicy::skip),
        runs_(kRunsPerWorker * static_cast<std::uint64_t>(options.workers)) {
    for (int i = 0; i < options.workers; ++i) {
      Encoders encoders;
      for (const FieldPlan& field : fields) encoders.fields.push_back(field.make());
      if (options.index_interval > 0) encoders.finder.emplace(options.index_interval);
      encoders_.push_back(std::move(encoders));
    }
  }
  EncodeQueue(const EncodeQueue&) = delete;
  EncodeQueue& operator=(const EncodeQueue&) = delete;
  ~EncodeQueue() { stop(); }

  /// Starts the workers. The constructor does not do this: if it threw because a thread cannot be
  /// started, no destructor would end the threads that already run. @throws DeviceError if a
  /// thread cannot be started.
  void start() {
    threads_.reserve(encoders_.size());
    try {
      for (Encoders& encoders : encoders_) {
        threads_.emplace_back([this, &encoders] { work(encoders); });
      }
    } catch (const std::system_error& error) {
      throw DeviceError(fmt::format("write: cannot start worker {} of {}: {}. Use fewer workers",
                                    threads_.size() + 1, encoders_.size(), error.code().message()));
    }
  }

  /// Waits for the next samples, in file order. They stay valid until release(). @throws Cancelled
  std::span<EncodedSample> wait(const std::atomic<bool>* cancel) {
    Run& run = front();
    std::unique_lock lock(mutex_);
    while (!run.ready) {
      if (is_set(cancel)) throw Cancelled();
      ready_.wait_for(lock, kCancelPoll);
    }
    return {run.samples.data(), run.count};
  }

  /// Releases the samples returned by wait().
  void release() {
    Run& run = front();
    run.clear();
    const std::lock_guard lock(mutex_);
    run.ready = false;
    if (run.next < run.end) {
      emptied_.notify_all();
    } else {
      ++released_;
      run_freed_.notify_one();
    }
  }

  /// Ends the workers. @return the sums of their tallies, which are then complete.
  Tally stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    run_freed_.notify_all();
    emptied_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    Tally sum;
    for (const Encoders& encoders : encoders_) {
      for (const auto& field : encoders.fields) {
        for (const auto& [event, count] : field->tally()) sum[event] += count;
      }
      if (encoders.finder) sum["indexed"] += encoders.finder->indexed();
    }
    return sum;
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Run& front() { return runs_[released_ % runs_.size()]; }

  void work(Encoders& encoders) {
    while (Run* const run = take()) {
      for (bool is_complete = false; !is_complete;) {
        const Clock::time_point start = Clock::now();
        fill(encoders, *run);
        // Read this before publish(): afterwards, another worker may own the run if it is complete.
        is_complete = run->next == run->end;
        publish(*run, std::chrono::duration<double>(Clock::now() - start).count());
        if (!is_complete && !reclaim(*run)) return;
      }
    }
  }

  /// Claims the next samples as soon as there is room for them. @return null if no samples are
  /// left, or after stop().
  Run* take() {
    std::unique_lock lock(mutex_);
    run_freed_.wait(lock, [this] {
      return stopped_ || next_ == num_samples_ || claimed_ < released_ + runs_.size();
    });
    if (stopped_ || next_ == num_samples_) return nullptr;
    Run& run = runs_[claimed_++ % runs_.size()];
    run.next = next_;
    next_ += std::min(run_samples_, num_samples_ - next_);
    run.end = next_;
    return &run;
  }

  void fill(Encoders& encoders, Run& run) {
    while (run.next < run.end && run.bytes < kRunBytes && !stopped_) {
      EncodedSample& sample = run.add();
      sample.index = run.next++;
      sample.skipped.reset();
      try {
        encode(encoders, sample);
      } catch (...) {
        sample.failure = std::current_exception();
        run.end = run.next;
      }
      for (const EncodedValue& value : sample.values)
        run.bytes += value.metadata.size() + value.blob.size();
    }
  }

  void publish(Run& run, double seconds) {
    const auto samples = static_cast<double>(run.count);
    const auto bytes = static_cast<double>(run.bytes);
    // Aims at a quarter of kRunBytes, because sizes vary and most runs should stay below the limit.
    const double target_samples =
        samples * std::min(kRunSeconds / std::max(seconds, 1e-9), kRunBytes / (4 * bytes + 1));
    {
      const std::lock_guard lock(mutex_);
      const auto max_samples = static_cast<double>(std::min(2 * run_samples_, kMaxRunSamples));
      run_samples_ = static_cast<std::uint64_t>(std::clamp(target_samples, 1.0, max_samples));
      run.ready = true;
    }
    ready_.notify_one();
  }

  /// Waits until the calling thread has laid out the part of `run` that was handed over. @return
  /// false after stop().
  bool reclaim(const Run& run) {
    std::unique_lock lock(mutex_);
    emptied_.wait(lock, [&] { return stopped_ || !run.ready; });
    return !stopped_;
  }

  void encode(Encoders& encoders, EncodedSample& out) {
    std::string name;
    try {
      const Sample sample = provider_(out.index);
      name = sample.name;
      const auto& fields = encoders.fields;
      require(sample.values.size() == fields.size(), "a sample has one value per field");
      out.values.resize(fields.size());
      for (std::size_t i = 0; i < fields.size(); ++i) {
        fields[i]->encode(sample.values[i], out.index, out.values[i]);
      }
      if (encoders.finder) encoders.finder->find(out.values[indexed_field_], out.checkpoints);
    } catch (const Error& error) {
      if (error.exit_code() != ExitCode::dataset_invalid)
        throw with_sample_name(error, out.index, name);
      if (!skips_) throw DamagedSample(with_sample_name(error, out.index, name).what());
      out.skipped = {out.index, std::move(name), error.what()};
    }
  }

  const std::uint64_t num_samples_;
  const SampleProvider& provider_;
  const std::size_t indexed_field_;
  const bool skips_;
  std::vector<Run> runs_;
  std::vector<Encoders> encoders_;

  std::mutex mutex_;
  std::condition_variable ready_;
  std::condition_variable run_freed_;
  std::condition_variable emptied_;
  std::uint64_t next_ = 0;
  /// Number of samples of the next run, derived from the time and the bytes that the last run took.
  std::uint64_t run_samples_ = 1;
  /// Numbers of runs that workers have claimed and the calling thread has released. Only the
  /// calling thread changes released_.
  std::uint64_t claimed_ = 0;
  std::uint64_t released_ = 0;
  std::atomic<bool> stopped_ = false;
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

/// @throws ConfigError if an index is requested but there is no image field.
std::size_t indexed_field(const std::vector<FieldColumn>& columns, const WriteOptions& options) {
  const auto image = std::ranges::find(columns, FieldType::image, &FieldColumn::type);
  if (options.index_interval > 0 && image == columns.end())
    throw ConfigError("index: expected an RGB image field, got none");
  return static_cast<std::size_t>(image - columns.begin());
}

/// The files to write: the dataset and its JPEG index.
struct Outputs {
  BetonWriter file;
  std::optional<JpegSidecarWriter> index;

  void add(const EncodedSample& sample) {
    file.add(sample.values);
    if (index) index->add(sample.checkpoints);
  }
  /// Replaces an older dataset only after everything that needs disk space has been written.
  void finish() {
    file.complete();
    if (index) index->complete(file.fingerprint());
    file.finish();
    if (index) index->commit();
  }
};

/// Lays out all samples in file order.
void lay_out(EncodeQueue& queue, std::uint64_t num_samples, const SampleProvider& provider,
             const WriteOptions& options, Outputs& outputs, WriteSummary& summary) {
  for (std::uint64_t done = 0; done < num_samples;) {
    for (EncodedSample& sample : queue.wait(options.cancel)) {
      if (is_set(options.cancel)) throw Cancelled();
      if (sample.failure) std::rethrow_exception(sample.failure);
      if (sample.skipped) {
        summary.skipped.push_back(*std::move(sample.skipped));
      } else {
        try {
          outputs.add(sample);
        } catch (const DataError& error) {
          throw with_sample_name(error, sample.index, provider(sample.index).name);
        }
      }
      ++done;
      if (options.on_progress) options.on_progress(done, outputs.file.file_bytes());
    }
    queue.release();
  }
  if (summary.skipped.size() == num_samples) {
    const SkippedSample& first = summary.skipped.front();
    throw DataError(fmt::format(
        "dataset: expected at least one intact sample, got {} damaged samples. The first "
        "is {}",
        num_samples, with_sample_name(DataError(first.error), first.index, first.name).what()));
  }
}

}  // namespace

Cancelled::~Cancelled() = default;
DamagedSample::~DamagedSample() = default;

CorruptPolicy corrupt_policy(std::string_view name) {
  if (name == "fail") return CorruptPolicy::fail;
  if (name == "skip") return CorruptPolicy::skip;
  throw ConfigError(fmt::format("on-corrupt: expected fail or skip, got '{}'{}", name,
                                suggest_similar(name, {"fail", "skip"})));
}

WriteSummary write_dataset(const std::filesystem::path& path, const std::vector<FieldPlan>& fields,
                           std::uint64_t num_samples, const SampleProvider& provider,
                           const WriteOptions& options) {
  if (options.workers < 1) {
    throw ConfigError(fmt::format("workers: expected at least 1, got {}", options.workers));
  }
  const auto start = std::chrono::steady_clock::now();
  const std::vector<FieldColumn> columns = columns_of(fields);
  const std::size_t indexed = indexed_field(columns, options);
  Outputs outputs{.file{path, columns, num_samples, options.layout, *options.ops}, .index{}};
  if (options.index_interval > 0)
    outputs.index.emplace(jpeg_sidecar(path), options.index_interval, *options.ops);
  EncodeQueue queue(fields, num_samples, provider, options, indexed);
  queue.start();
  WriteSummary summary;
  lay_out(queue, num_samples, provider, options, outputs, summary);
  summary.tally = queue.stop();
  outputs.finish();
  summary.samples = num_samples - summary.skipped.size();
  summary.pages = outputs.file.pages();
  summary.file_bytes = outputs.file.file_bytes();
  if (outputs.index) summary.index_bytes = outputs.index->bytes();
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

}  // namespace precast::data
