#include "framework/distributed/rendezvous.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "framework/api/torch_message.h"
#include "framework/core/cancel.h"
#include "framework/core/format.h"
#include "framework/core/log.h"

namespace precast::distributed {
namespace {

/// The time limit of one attempt to reach the store. libtorch continues an attempt after a signal,
/// so a rank notices a request to stop only when the attempt has ended.
constexpr std::chrono::milliseconds kAttempt{5000};

/// The first line of a library's message, without a full stop at its end.
std::string reason_of(const std::exception& error) {
  std::string line = first_line(error);
  if (line.ends_with('.')) line.pop_back();
  return line;
}

[[noreturn]] void throw_stopped() {
  throw Error("ranks: stopped by a signal before all ranks had connected. Start the run again",
              ExitCode::preempted);
}

/// @throws libtorch's exceptions
c10::intrusive_ptr<c10d::Store> connect_to_store(const GroupOptions& options, bool serve,
                                                 std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions store;
  store.port = static_cast<std::uint16_t>(options.port);
  store.isServer = serve;
  store.waitWorkers = false;
  store.timeout = timeout;
  return c10::make_intrusive<c10d::PrefixStore>(
      options.prefix, c10::make_intrusive<c10d::TCPStore>(options.host, store));
}

/// The error of a rank that could not open the store within `timeout`.
DeviceError store_error(const GroupOptions& options, bool serve, std::chrono::milliseconds timeout,
                        const std::exception& cause) {
  const std::string address = fmt::format("{}:{}", options.host, options.port);
  if (serve) {
    return DeviceError(
        fmt::format("ranks: expected to listen at {} as rank 0, got: {}. Does another run use this "
                    "port? Give each run its own port (mpirun: --dist.port of precast; torchrun: "
                    "--master-port)",
                    address, reason_of(cause)));
  }
  return DeviceError(
      fmt::format("ranks: expected rank 0 at {} within {} s, got: {}. Look at the output of rank "
                  "0, and check whether this host can connect to the host of rank 0",
                  address, timeout.count() / 1000, reason_of(cause)));
}

/// Opens the store. A rank that is asked to stop does not wait for rank 0.
c10::intrusive_ptr<c10d::Store> connect_with_retries(const GroupOptions& options) {
  const auto until = std::chrono::steady_clock::now() + options.join_timeout;
  while (true) {
    try {
      auto store = connect_to_store(
          options, options.serves_store,
          options.serves_store ? options.join_timeout : std::min(kAttempt, options.join_timeout));
      store->setTimeout(options.join_timeout);
      return store;
    } catch (const std::exception& error) {
      if (is_set(options.stop)) throw_stopped();
      if (options.serves_store || std::chrono::steady_clock::now() >= until)
        throw store_error(options, options.serves_store, options.join_timeout, error);
    }
  }
}

std::string to_text(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

/// The interval at which a waiting rank reads the store.
constexpr std::chrono::milliseconds kJoinPoll{100};

/// The error of a run whose ranks have not all connected. @param found what is wrong, such as `rank
/// 3 has not connected`.
DeviceError rendezvous_error(const GroupOptions& options, const std::string& found) {
  return DeviceError(fmt::format(
      "ranks: expected {} ranks at {}:{} within {} s, but {}. Look at the output of those ranks, "
      "and check how many were started on each host",
      options.world, options.host, options.port, options.join_timeout.count() / 1000, found));
}

/// Distributes a number that no earlier run has used, through a store that contains keys of earlier
/// runs. Each process increments `hello/<rank>` and takes the result as its number, so that no two
/// processes with the same rank have the same number. Rank 0 writes its own number to
/// `welcome/<rank>/<number>` for every process. A process reads only the key with its own number,
/// so it never reads an answer to an earlier process.
class ReusedStoreHandshake {
 public:
  ReusedStoreHandshake(c10d::Store& store, const GroupOptions& options)
      : store_(store),
        options_(options),
        number_(store.add(hello_key(options.rank), 1)),
        responded_(static_cast<std::size_t>(options.world)) {}

  /// Returns rank 0's number; other ranks wait for it. @throws DeviceError if rank 0 does not
  /// connect within join_timeout; Error with ExitCode::preempted if this rank was asked to stop
  std::string rank_zero_number() {
    if (options_.rank == 0) return std::to_string(number_);
    const auto until = Clock::now() + options_.join_timeout;
    const std::string welcome = response_key(options_.rank, number_);
    store_.add(kCount, 1);
    std::optional<Clock::time_point> stopped;
    while (!store_.check({welcome})) {
      const auto now = Clock::now();
      // After a request to stop, this rank waits kLeaveGrace longer, because it needs the answer to
      // tell the other ranks to stop.
      if (!stopped && is_set(options_.stop)) stopped = now;
      if (stopped && now > *stopped + kLeaveGrace) throw_stopped();
      if (now > until) throw rendezvous_error(options_, "rank 0 has not connected");
      std::this_thread::sleep_for(kJoinPoll);
    }
    return to_text(store_.get(welcome));
  }

  /// Called by rank 0: answers all processes that have incremented their key since the last call.
  /// Nobody reads answers to processes of earlier runs.
  void respond() {
    // The count is read first, so that the next call notices a process that arrives during the
    // loop.
    if (const std::int64_t count = store_.add(kCount, 0); count == std::exchange(count_, count))
      return;
    for (int rank = 1; rank < options_.world; ++rank) {
      std::int64_t& responded = responded_[static_cast<std::size_t>(rank)];
      for (const std::int64_t newest = store_.add(hello_key(rank), 0); responded < newest;)
        store_.set(response_key(rank, ++responded), std::to_string(number_));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr const char* kCount = "hello";
  static constexpr std::chrono::seconds kLeaveGrace{2};

  static std::string hello_key(int rank) { return fmt::format("hello/{}", rank); }
  static std::string response_key(int rank, std::int64_t number) {
    return fmt::format("welcome/{}/{}", rank, number);
  }

  c10d::Store& store_;
  const GroupOptions& options_;
  std::int64_t number_;
  /// For each rank, the highest number that rank 0 has answered.
  std::vector<std::int64_t> responded_;
  std::int64_t count_ = -1;
};

/// Waits until all ranks have connected, and names the missing ranks. If a rank is asked to stop
/// before that, all ranks leave. The first rank that writes kOutcome decides for all, so that no
/// rank leaves while another one continues.
class JoinBarrier {
 public:
  /// @param handshake null if the store was empty when the run began.
  JoinBarrier(c10d::Store& store, const GroupOptions& options, ReusedStoreHandshake* handshake)
      : store_(store), options_(options), handshake_(handshake) {}

  /// @throws DeviceError on all connected ranks if a rank has not connected, or has connected
  /// twice; Error with ExitCode::preempted on all ranks if one was asked to stop.
  void run() {
    const auto begin = Clock::now();
    auto next_log = begin + kFirstProgressLog;
    if (store_.add(key(options_.rank), 1) > 1) {
      give_up(fmt::format("rank {} has connected twice; each process needs its own rank",
                          options_.rank));
    }
    leave_if_stopped();
    store_.add(kCount, 1);
    while (store_.add(kCount, 0) < options_.world) {
      respond();
      // Reports a problem that another rank has found. Otherwise, if that rank serves the store and
      // exits, this rank would report the loss of the store instead.
      if (store_.check({kCause})) throw DeviceError(to_text(store_.get(kCause)));
      leave_if_stopped();
      const auto now = Clock::now();
      if (now > begin + options_.join_timeout) give_up(missing() + " not connected");
      if (options_.rank == 0 && now > next_log) {
        log_info("=> {} ranks at {}:{}: {} not connected yet", options_.world, options_.host,
                 options_.port, missing());
        next_log += kProgressLogInterval;
      }
      std::this_thread::sleep_for(kJoinPoll);
    }
    if (!agree_on(kComplete)) leave();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr const char* kCount = "here";
  static constexpr const char* kCause = "not_here";
  static constexpr const char* kOutcome = "outcome";
  static constexpr const char* kComplete = "connected";
  static constexpr const char* kStopped = "stopped";
  static constexpr std::chrono::seconds kFirstProgressLog{10};
  static constexpr std::chrono::seconds kProgressLogInterval{60};

  static std::string key(int rank) { return fmt::format("here/{}", rank); }

  /// On rank 0, sends its number to the other processes, so that they can join this barrier.
  void respond() {
    if (handshake_ != nullptr && options_.rank == 0) handshake_->respond();
  }

  /// Records `outcome` unless another rank has already recorded an outcome. @return whether the
  /// recorded outcome is `outcome`.
  bool agree_on(const std::string& outcome) {
    return store_.compareSet(kOutcome, "", outcome) == outcome;
  }

  /// Leaves if this rank or another one was asked to stop, unless a rank has already recorded that
  /// all ranks have connected.
  void leave_if_stopped() {
    if ((is_set(options_.stop) || store_.check({kOutcome})) && agree_on(kStopped)) leave();
  }

  [[noreturn]] void leave() const {
    // The other ranks need this time to read the outcome from the store.
    if (options_.serves_store) std::this_thread::sleep_for(10 * kJoinPoll);
    throw_stopped();
  }

  /// Returns the missing ranks with a verb, such as `ranks 1, 3 have`; names at most 16. A rank
  /// sets its key before it increments kCount. If all keys are set, returns the number of ranks
  /// that are not counted yet, such as `1 rank has`.
  std::string missing() {
    constexpr std::size_t kMaxNamed = 16;
    std::vector<std::string> ranks;
    for (int rank = 0; rank < options_.world; ++rank)
      if (!store_.check({key(rank)})) ranks.push_back(std::to_string(rank));
    if (ranks.empty()) {
      const auto uncounted = std::max<std::int64_t>(1, options_.world - store_.add(kCount, 0));
      return fmt::format("{} rank{}", uncounted, uncounted == 1 ? " has" : "s have");
    }
    const bool one = ranks.size() == 1;
    return fmt::format("rank{} {} ha{}", one ? "" : "s", first_names(ranks, kMaxNamed),
                       one ? "s" : "ve");
  }

  [[noreturn]] void give_up(const std::string& found) {
    const DeviceError error = rendezvous_error(options_, found);
    store_.set(kCause, std::string(error.what()));
    respond();
    if (options_.serves_store) std::this_thread::sleep_for(10 * kJoinPoll);
    throw error;
  }

  c10d::Store& store_;
  const GroupOptions& options_;
  ReusedStoreHandshake* handshake_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(const GroupOptions& options, bool serve,
                                           std::chrono::milliseconds timeout) {
  try {
    return connect_to_store(options, serve, timeout);
  } catch (const std::exception& error) {
    throw store_error(options, serve, timeout, error);
  }
}

c10::intrusive_ptr<c10d::Store> rendezvous(GroupOptions& options) {
  c10::intrusive_ptr<c10d::Store> store = connect_with_retries(options);
  try {
    std::optional<ReusedStoreHandshake> handshake;
    if (options.store_is_reused) {
      handshake.emplace(*store, options);
      const std::string number = handshake->rank_zero_number();
      options.prefix += "/" + number;
      store = c10::make_intrusive<c10d::PrefixStore>(number, store);
    }
    JoinBarrier(*store, options, handshake ? &*handshake : nullptr).run();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    // The rank that serves the store may also have been asked to stop and have exited.
    if (is_set(options.stop)) throw_stopped();
    throw connection_error(options, error);
  }
  return store;
}

DeviceError connection_error(const GroupOptions& options, const std::exception& cause) {
  return DeviceError(fmt::format(
      "ranks: expected {} ranks to connect to each other (through the store at {}:{}), got: {}. "
      "A rank may have ended; on hosts with several networks, set GLOO_SOCKET_IFNAME to the "
      "interface to use",
      options.world, options.host, options.port, reason_of(cause)));
}

}  // namespace precast::distributed
