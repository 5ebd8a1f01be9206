#include "data/outside/wait_limit.h"

#include <fmt/format.h>

#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::data {

WaitLimit::WaitLimit(std::string source, OutsideOptions options)
    : source_(std::move(source)), options_(std::move(options)) {}

void WaitLimit::restart() {
  since_ = Clock::now();
  skipped_ = {};
}

void WaitLimit::skip(const RingPosition& at) {
  skipped_.last = at;
  if (skipped_.count++ > 0) return;
  skipped_.first = at;
  if (first_)
    log_info("=> {}: skips the batches from {} until {}, the first needed one", source_,
             text_of(at), text_of(*first_));
}

void WaitLimit::throw_if_reached(const std::string& what) const {
  if (!timed_out()) return;
  const double limit_s = std::chrono::duration<double>(options_.timeout).count();
  if (skipped_.count == 0 || !first_)
    throw Error(fmt::format("{}: expected {} within {} s, got none. Check that the producer runs "
                            "and is not too slow, or increase data.producer_timeout_s",
                            source_, what, limit_s),
                ExitCode::stalled);
  throw Error(
      fmt::format("{}: expected {} within {} s, got {} earlier batches, from {} to {}. Check "
                  "that the producer starts at this batch or shortly before it, and continues its "
                  "batch numbering after a restart, or increase data.producer_timeout_s",
                  source_, text_of(*first_), limit_s, skipped_.count, text_of(skipped_.first),
                  text_of(skipped_.last)),
      ExitCode::stalled);
}

}  // namespace precast::data
