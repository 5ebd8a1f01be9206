#include "framework/distributed/heartbeat.h"

#include <fmt/core.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/distributed/peer_watch.h"
#include "framework/distributed/rendezvous.h"

namespace precast::distributed {
namespace {

using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// The key of the first claim. StoreHost and the ranks must use the same key.
constexpr const char* kFailureKey = "failure";
/// How often to check for another rank's claim.
constexpr std::chrono::milliseconds kPoll{500};

/// Returns whether this claim is the first. @param claimant makes the claim unique, because two
/// ranks may claim the same cause.
bool claim(c10d::Store& store, const std::string& claimant, const std::string& cause) {
  const std::string mine = fmt::format("[{}] {}", claimant, cause);
  return store.compareSet(kFailureKey, "", mine) == mine;
}

}  // namespace

class Heartbeat::Impl {
 public:
  Impl(const GroupOptions& group, OnFailure on_failure, HeartbeatOptions options)
      : group_(group),
        on_failure_(std::move(on_failure)),
        options_(options),
        store_(open_store(group, /*serve=*/false, options.store_timeout)),
        watch_(*store_, group.rank, group.world) {
    watch_.beat();
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  ~Impl() {
    thread_.request_stop();
    wake_.notify_all();
    thread_.join();
    try {
      const std::scoped_lock lock(mutex_);
      watch_.finish();
      if (group_.serves_store) wait_for_other_ranks();
    } catch (const std::exception&) {
      // The process that serves the store may have exited already.
    }
  }

  bool claim_failure(const std::string& cause) {
    try {
      const std::scoped_lock lock(mutex_);
      claimed_ = true;
      return claim(*store_, name(), cause);
    } catch (const std::exception&) {
      return true;  // without the store, this rank cannot learn about other claims
    }
  }

  std::string claimed_cause() {
    try {
      const std::scoped_lock lock(mutex_);
      return store_->check({kFailureKey}) ? cause_in_store() : "";
    } catch (const std::exception&) {
      return {};
    }
  }

  bool wait_for_claim() {
    const auto deadline = Clock::now() + silence_timeout() + 2 * options_.period;
    while (Clock::now() < deadline) {
      try {
        const std::scoped_lock lock(mutex_);
        if (store_->check({kFailureKey})) return true;
      } catch (const std::exception&) {
        return group_.rank != reporter_without_store();
      }
      std::this_thread::sleep_for(kPoll);
    }
    return false;
  }

 private:
  [[nodiscard]] std::string name() const { return fmt::format("rank {}", group_.rank); }
  [[nodiscard]] std::chrono::milliseconds silence_timeout() const {
    return options_.period * options_.missed;
  }
  /// Equals this rank's number if this rank must report the loss of the store, because the ranks
  /// cannot agree on a reporter without the store. Rank 0 reports it only if it serves the store
  /// itself. Rank 1 always reports it, because rank 0 may have exited.
  [[nodiscard]] int reporter_without_store() const { return group_.serves_store ? 0 : 1; }

  /// Called by the rank that serves the store. It must exit last, because the other ranks report a
  /// missing store as a failure.
  void wait_for_other_ranks() {
    const auto deadline = Clock::now() + options_.store_timeout;
    for (int rank = 0; rank < group_.world && Clock::now() < deadline;) {
      if (watch_.has_finished(rank)) {
        ++rank;
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
  }

  void run(const std::stop_token& stop) {
    auto next_beat = Clock::now() + options_.period;
    auto last_round = Clock::now();
    while (!stop.stop_requested()) {
      sleep(stop);
      if (stop.stop_requested()) return;
      // A gap this long means that this process was suspended (Ctrl-Z, a suspended job). The others
      // were suspended too, so their silence does not count.
      const auto round = Clock::now();
      const bool suspended = round - std::exchange(last_round, round) > 2 * options_.period;
      try {
        const std::scoped_lock lock(mutex_);
        if (suspended) watch_.reset_silence(round);
        if (!claimed_ && store_->check({kFailureKey}))
          return fail(cause_in_store(), /*reported_elsewhere=*/true);
        if (Clock::now() < next_beat) continue;
        next_beat += options_.period;
        watch_.beat();
        if (const int silent = watch_.silent_rank(silence_timeout(), Clock::now()); silent >= 0)
          return fail_for_silence(silent);
      } catch (const std::exception&) {
        return fail(
            fmt::format("the store at {}:{}, which rank 0 or the launcher serves, does not respond",
                        group_.host, group_.port),
            /*reported_elsewhere=*/group_.rank != reporter_without_store());
      }
    }
  }

  void sleep(const std::stop_token& stop) {
    std::unique_lock lock(sleep_mutex_);
    wake_.wait_for(lock, std::min(kPoll, options_.period), [&] { return stop.stop_requested(); });
  }

  void fail_for_silence(int rank) {
    const std::string cause =
        fmt::format("rank {} is dead or stopped: no heartbeat for {} s", rank,
                    std::chrono::duration_cast<std::chrono::seconds>(silence_timeout()).count());
    fail(cause, /*reported_elsewhere=*/!claim(*store_, name(), cause));
  }

  void fail(const std::string& cause, bool reported_elsewhere) {
    on_failure_(cause, reported_elsewhere);
  }
  [[nodiscard]] std::string cause_in_store() {
    const std::vector<std::uint8_t> cause = store_->get(kFailureKey);
    return {cause.begin(), cause.end()};
  }

  GroupOptions group_;
  OnFailure on_failure_;
  HeartbeatOptions options_;
  std::mutex mutex_;
  StorePtr store_;
  PeerWatch watch_;
  std::atomic<bool> claimed_ = false;
  std::mutex sleep_mutex_;
  std::condition_variable wake_;
  std::jthread thread_;
};

Heartbeat::Heartbeat(const GroupOptions& group, OnFailure on_failure, HeartbeatOptions options)
    : impl_(std::make_unique<Impl>(group, std::move(on_failure), options)) {}

Heartbeat::~Heartbeat() = default;

bool Heartbeat::claim_failure(const std::string& cause) {
  return impl_->claim_failure(cause);
}

std::string Heartbeat::claimed_cause() {
  return impl_->claimed_cause();
}

bool Heartbeat::wait_for_claim() {
  return impl_->wait_for_claim();
}

struct StoreHost::Server {
  c10::intrusive_ptr<c10d::TCPStore> tcp;
};

StoreHost::StoreHost(const std::string& host) : server_(std::make_unique<Server>()) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  try {
    server_->tcp = c10::make_intrusive<c10d::TCPStore>(host, options);
  } catch (const c10::Error& error) {
    throw DeviceError(fmt::format("ranks: expected to serve a store on {}, got: {}", host,
                                  error.what_without_backtrace()));
  }
}

StoreHost::~StoreHost() = default;

int StoreHost::port() const {
  return server_->tcp->getPort();
}

bool StoreHost::claim_failure(const std::string& cause) {
  // Ranks that a launcher has started use no prefix.
  c10d::PrefixStore store("", server_->tcp);
  return claim(store, "launcher", cause);
}

}  // namespace precast::distributed
