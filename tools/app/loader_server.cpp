#include "tools/app/loader_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "data/loader/batch_layout.h"
#include "data/ring/producer.h"
#include "data/ring/ring_error.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/log.h"
#include "framework/core/progress.h"
#include "framework/process/stop_signals.h"
#include "tools/cli/stopwatch.h"
#include "tools/report/data_verdict.h"

namespace precast::tools {
namespace {

/// How often signals, consumers and progress are checked.
constexpr std::chrono::milliseconds kPollInterval{100};

data::RingOptions ring_options(const ServedData& data, const ServeOptions& options) {
  const auto outputs = data::resolve_outputs(data.reader, data.pipeline, data.loader.normalize);
  const std::uint64_t samples = data.loader.order ? data.loader.order->size() : data.reader.size();
  const std::int64_t batch_size = data::samples_of_batch(samples, data.loader);
  const data::BatchLayout largest(outputs, batch_size,
                                  *std::ranges::max_element(data.image_size_px));
  return {.name = options.name,
          .slots = options.slots,
          .batch_size = batch_size,
          .batch_bytes = largest.bytes(),
          .buffers = options.slots + 1 + data.loader.batches_ahead,
          .description = data.description};
}

/// Loads batches in a separate thread and publishes them in a ring.
class LoaderServer {
 public:
  LoaderServer(const ServedData& data, const ServeOptions& options)
      : data_(data), options_(options), ring_(ring_options(data, options)) {
    data::LoaderOptions loader = data.loader;
    loader.allocator = ring_.allocator();
    loader_.emplace(data.reader, data.pipeline, std::move(loader));
    samples_of_pass_ = loader_->samples();
    batches_of_pass_ = loader_->batches();
  }

  int run() {
    const StopSignals signals;
    announce();
    if (wait_for_consumers()) publish();
    const bool stopped = StopSignals::requested();
    if (stopped)
      ring_.fail(
          Error(fmt::format("`precast serve --as {}` was stopped by a signal", options_.name),
                ExitCode::peer_failed));
    report("end", epoch_);
    return stopped ? StopSignals::exit_code() : 0;
  }

 private:
  [[nodiscard]] static bool stopping() { return StopSignals::requested(); }
  void announce() const {
    log_info("=> ring '{}': {} of {} ({}), images of at most {} px; waits for {}", options_.name,
             format_count(data_.image_size_px.size(), "epoch"),
             format_count(static_cast<std::uint64_t>(batches_of_pass_), "batch"),
             format_count(static_cast<std::uint64_t>(samples_of_pass_), "sample"),
             *std::ranges::max_element(data_.image_size_px),
             format_count(static_cast<std::uint64_t>(options_.consumers), "training run"));
    log_info("=> to use it: precast train ... --data.train_dataset=ring://{}", options_.name);
  }

  /// @return false if the server must stop.
  bool wait_for_consumers() {
    std::optional<Stopwatch> first_connected;
    Progress progress;
    for (int connected = ring_.consumers(); connected < options_.consumers;
         connected = ring_.consumers()) {
      if (stopping()) return false;
      if (connected > 0 && !first_connected) first_connected.emplace();
      if (first_connected && options_.max_wait.count() > 0 &&
          first_connected->seconds() > static_cast<double>(options_.max_wait.count()))
        return true;
      if (progress.due())
        progress.show(fmt::format("waiting for training runs: {} of {} connected", connected,
                                  options_.consumers));
      std::this_thread::sleep_for(kPollInterval);
    }
    return !stopping();
  }

  void publish() {
    watch_.emplace();
    {
      std::jthread publisher([this] { publish_all(); });
      Progress progress;
      std::unique_lock lock(mutex_);
      while (!done_) {
        changed_.wait_for(lock, kPollInterval);
        if (stopping()) ring_.interrupt();
        if (progress.due()) progress.show(progress_parts());
      }
    }
    if (failure_) std::rethrow_exception(failure_);
    if (stopping()) return;
    ring_.finish();
    while (!ring_.all_released() && !stopping()) std::this_thread::sleep_for(kPollInterval);
  }

  void publish_all() {
    try {
      publish_epochs();
    } catch (const Error& error) {
      ring_.fail(error);
      failure_ = std::current_exception();
    } catch (const std::exception& error) {
      ring_.fail(data::RingError(error.what(), ExitCode::failed));
      failure_ = std::current_exception();
    }
    const std::scoped_lock lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  void publish_epochs() {
    const data::RingPosition start = ring_.start();
    const auto epochs = static_cast<std::int64_t>(data_.image_size_px.size());
    for (std::int64_t epoch = start.epoch; epoch < epochs; ++epoch) {
      // If the requested batch does not exist, only the consumer that requested it fails.
      if (epoch == start.epoch && start.batch > batches_of_pass_) continue;
      epoch_ = epoch;
      const EpochRequest request{
          .epoch = epoch,
          .first_batch = epoch == start.epoch ? start.batch : std::int64_t{0},
          .image_size_px = data_.image_size_px[static_cast<std::size_t>(epoch)]};
      loader_->begin_epoch(request);
      batch_ = request.first_batch;
      while (const auto batch = loader_->next()) {
        decoded_ += batch->sample_ids.size();
        if (!ring_.publish(epoch, batch_, *batch)) return;
        ++batch_;
      }
      // The loader returned no batch: the pass is complete, or the loader was asked to stop.
      if (stopping()) return;
      if (!ring_.end_pass(epoch, batch_)) return;
      report("pass", epoch);
    }
  }

  [[nodiscard]] std::vector<LinePart> progress_parts() {
    const std::int64_t epoch = epoch_;
    const auto done = static_cast<std::uint64_t>(epoch * batches_of_pass_ + batch_);
    const auto all = data_.image_size_px.size() * static_cast<std::uint64_t>(batches_of_pass_);
    const double seconds = watch_->seconds();
    return {
        {fmt::format("epoch {} of {}", epoch + 1, data_.image_size_px.size()), 3},
        {fmt::format("batch {} of {}", done, all), 1},
        {format_count(static_cast<std::uint64_t>(ring_.consumers()), "training run"), 2},
        {fmt::format("{:.0f} samples/s decoded", static_cast<double>(decoded_) / seconds), 2},
        {fmt::format("{:.0f} delivered", static_cast<double>(ring_.samples_delivered()) / seconds),
         0}};
  }

  /// Called after each pass, and at the end.
  void report(const char* event, std::int64_t epoch) {
    const std::uint64_t decoded = decoded_;
    const std::uint64_t delivered = ring_.samples_delivered();
    const double seconds = watch_ ? watch_->seconds() : 0;
    const std::vector<ReplacedSample> replaced = loader_->statistics().replaced;
    if (std::string_view(event) == "end" && !replaced.empty())
      log_warning("{}", fmt::join(describe_replaced(replaced), "\n"));
    if (options_.json) {
      const nlohmann::ordered_json line = {{"event", event},
                                           {"process", ::getpid()},
                                           {"epoch", epoch},
                                           {"epochs", data_.image_size_px.size()},
                                           {"samples_decoded", decoded},
                                           {"samples_delivered", delivered},
                                           {"consumers", ring_.consumers()},
                                           {"replaced_samples", replaced.size()},
                                           {"seconds", seconds},
                                           {"cpu_seconds", watch_ ? watch_->cpu_seconds() : 0}};
      fmt::print("{}\n", dump_json(line));
      std::fflush(stdout);
    } else if (std::string_view(event) == "end") {
      fmt::print("ring '{}': {} decoded, {} delivered to training runs, in {}\n", options_.name,
                 format_count(decoded, "sample"), delivered, format_duration(seconds));
    }
  }

  const ServedData& data_;
  const ServeOptions& options_;
  data::RingProducer ring_;
  /// Destroyed before the ring, whose memory it fills.
  std::optional<data::Loader> loader_;
  std::int64_t samples_of_pass_ = 0;
  std::int64_t batches_of_pass_ = 0;
  std::optional<Stopwatch> watch_;
  std::atomic<std::int64_t> epoch_{0};
  std::atomic<std::int64_t> batch_{0};
  std::atomic<std::uint64_t> decoded_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr failure_;
};

}  // namespace

int serve(const ServedData& data, const ServeOptions& options) {
  return LoaderServer(data, options).run();
}

}  // namespace precast::tools
