#include "framework/distributed/peer_watch.h"

#include <fmt/core.h>

#include <string>

namespace precast::distributed {
namespace {

constexpr std::int64_t kFinished = std::int64_t{1} << 40;

std::string beat_key(int rank) {
  return fmt::format("beat/{}", rank);
}

}  // namespace

PeerWatch::PeerWatch(c10d::Store& store, int rank, int world)
    : store_(store), rank_(rank), beats_(static_cast<std::size_t>(world)) {}

void PeerWatch::beat() {
  store_.add(beat_key(rank_), 1);
}

void PeerWatch::finish() {
  store_.add(beat_key(rank_), kFinished);
}

bool PeerWatch::has_finished(int rank) {
  return store_.add(beat_key(rank), 0) >= kFinished;
}

int PeerWatch::silent_rank(std::chrono::milliseconds timeout, Clock::time_point now) {
  const int world = static_cast<int>(beats_.size());
  int watched = 0;
  for (int i = 1; i < world && watched < kWatched; ++i) {
    const int rank = (rank_ + i) % world;
    Beat& beat = beats_[static_cast<std::size_t>(rank)];
    if (beat.count >= kFinished) continue;
    ++watched;
    const std::int64_t count = store_.add(beat_key(rank), 0);
    if (count != beat.count) beat = {count, now};
    if (now - beat.seen > timeout) return rank;
  }
  return -1;
}

void PeerWatch::reset_silence(Clock::time_point now) {
  for (Beat& beat : beats_) beat.seen = now;
}

}  // namespace precast::distributed
