#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "data/outside/producer_error.h"
#include "data/outside/transports.h"
#include "data/outside/wait_limit.h"
#include "data/ring/consumer.h"
#include "data/ring/ring_error.h"

namespace precast::data {
namespace {

/// How long a producer that was started at the same time as the run may take to open its ring.
constexpr std::chrono::seconds kMaxStartupTime{10};
constexpr std::chrono::milliseconds kRetryInterval{100};

/// Replaces the exit codes that would blame another rank or the recipe: here, the cause is always
/// the producer.
ExitCode code_of(const RingError& error) {
  const ExitCode code = error.exit_code();
  return code == ExitCode::peer_failed || code == ExitCode::usage ? ExitCode::loader : code;
}

class RingBatches final : public OutsideBatches {
 public:
  RingBatches(std::string name, OutsideOptions options)
      : name_(std::move(name)), limit_(fmt::format("ring '{}'", name_), std::move(options)) {}

  void begin(std::optional<RingPosition> first) override {
    RingJoin join{.mode = RingJoin::Mode::epoch_start, .position = {}};
    if (first) join = {.mode = RingJoin::Mode::position, .position = *first};
    limit_.begin(first);
    const auto until = std::chrono::steady_clock::now() + kMaxStartupTime;
    while (!consumer_) {
      try {
        // The time limit for batches does not apply while the ring is being joined.
        RingConsumerOptions options{
            .stopped = [this] { return consumer_ ? limit_.reached() : limit_.stopped(); },
            .on_skipped = [this](const RingPosition& at) { limit_.skip(at); }};
        consumer_.emplace(name_, join, std::move(options));
      } catch (const RingError& error) {
        if (limit_.stopped()) return;
        throw error_of_ring(error);
      } catch (const IoError&) {
        if (limit_.stopped()) return;
        if (std::chrono::steady_clock::now() >= until) throw;
        std::this_thread::sleep_for(kRetryInterval);
      }
    }
  }

  std::optional<OutsideBatch> next() override {
    // A stop ended begin() before the producer appeared.
    if (!consumer_) return std::nullopt;
    if (!std::exchange(skipped_, false)) limit_.restart();
    try {
      return take();
    } catch (const RingError& error) {
      throw error_of_ring(error);
    }
  }

  void skip(const RingPosition& at) override {
    limit_.skip(at);
    skipped_ = true;
  }

 private:
  [[nodiscard]] ProducerError error_of_ring(const RingError& error) const {
    return ProducerError(fmt::format("ring '{}': {}", name_, without_ring_prefix(error.what())),
                         code_of(error));
  }

  /// Returns the next batch of this pass, or the first batch of a later pass.
  std::optional<OutsideBatch> take() {
    while (true) {
      if (!in_pass_) {
        const std::optional<RingPosition> start = consumer_->begin_pass();
        if (!start) return end();
        position_ = *start;
        in_pass_ = true;
      }
      if (std::optional<HostBatch> batch = consumer_->next()) {
        const RingPosition at = position_;
        ++position_.batch;
        return OutsideBatch{.host = std::move(*batch),
                            .position = at,
                            .name = fmt::format("ring '{}': {}", name_, text_of(at))};
      }
      in_pass_ = false;
    }
  }

  std::optional<OutsideBatch> end() {
    if (limit_.stopped()) return std::nullopt;
    limit_.throw_if_reached("a batch");
    throw ProducerError(
        fmt::format("ring '{}': expected another batch, got the end of the ring before {}. The "
                    "producer makes fewer epochs or batches than the run needs",
                    name_, text_of(position_)));
  }

  std::string name_;
  WaitLimit limit_;
  std::optional<RingConsumer> consumer_;
  /// Whether the last batch was skipped, so that the wait continues.
  bool skipped_ = false;
  bool in_pass_ = false;
  /// The position of the next batch in the pass.
  RingPosition position_;
};

}  // namespace

std::unique_ptr<OutsideBatches> make_ring_batches(std::string name, OutsideOptions options) {
  return std::make_unique<RingBatches>(std::move(name), std::move(options));
}

}  // namespace precast::data
