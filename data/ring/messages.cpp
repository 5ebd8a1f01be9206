#include "data/ring/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "data/ring/layout.h"
#include "framework/core/utf8.h"

namespace precast::data {
namespace {

constexpr std::size_t kVersionEnd = 12;
constexpr std::uint32_t kMaxExitCode = 255;

/// Reads the fixed part of a message, and checks magic, version and size.
template <typename Message>
Message head_of(std::span<const std::byte> bytes) {
  Message message;
  // The pointer of an empty span may be null, which memcpy() does not allow.
  if (!bytes.empty()) std::memcpy(&message, bytes.data(), std::min(bytes.size(), sizeof message));
  if (bytes.size() < kVersionEnd || message.magic != kRingMagic)
    throw RingError(
        fmt::format("ring: expected a message in the format of data/ring/RING.md, got {} bytes in "
                    "another format",
                    bytes.size()));
  if (message.version != kRingVersion)
    throw RingError(
        fmt::format("ring: expected version {} of the format, got {}. Use the same version of "
                    "precast for the producer and its consumers",
                    kRingVersion, message.version));
  if (bytes.size() < sizeof message || bytes.size() > kMaxRingMessageBytes)
    throw RingError(fmt::format("ring: expected a message of {} to {} bytes, got {}",
                                sizeof message, kMaxRingMessageBytes, bytes.size()));
  return message;
}

template <typename Message>
std::vector<std::byte> bytes_of(const Message& message, std::string_view text = {}) {
  text = utf8_prefix(text, kMaxRingMessageBytes - sizeof message);
  std::vector<std::byte> bytes(sizeof message + text.size());
  std::memcpy(bytes.data(), &message, sizeof message);
  std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin() + sizeof message);
  return bytes;
}

}  // namespace

std::vector<std::byte> ring_message(const RingJoin& join) {
  return bytes_of(RingJoinMessage{.mode = static_cast<std::uint32_t>(join.mode),
                                  .epoch = static_cast<std::uint64_t>(join.position.epoch),
                                  .batch = static_cast<std::uint64_t>(join.position.batch)});
}

std::vector<std::byte> ring_message(const RingReply& reply) {
  return bytes_of(RingReplyMessage{.kind = static_cast<std::uint32_t>(reply.kind),
                                   .cell = reply.cell,
                                   .exit_code = static_cast<std::uint32_t>(reply.exit_code),
                                   .sequence = reply.sequence},
                  reply.text);
}

RingJoin parse_ring_join(std::span<const std::byte> message) {
  const auto join = head_of<RingJoinMessage>(message);
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (join.mode < 1 || join.mode > 3 || join.epoch > kMax || join.batch > kMax ||
      (join.mode != 1 && join.batch != 0))
    throw RingError(
        fmt::format("ring: expected mode 1, or mode 2 or 3 with batch 0, and an epoch and a batch "
                    "below 2^63, got mode {}, epoch {}, batch {}",
                    join.mode, join.epoch, join.batch),
        ExitCode::usage);
  return {.mode = static_cast<RingJoin::Mode>(join.mode),
          .position = {.epoch = static_cast<std::int64_t>(join.epoch),
                       .batch = static_cast<std::int64_t>(join.batch)}};
}

RingReply parse_ring_reply(std::span<const std::byte> message) {
  const auto head = head_of<RingReplyMessage>(message);
  if (head.kind < 1 || head.kind > 2 || head.exit_code > kMaxExitCode)
    throw RingError(
        fmt::format("ring: expected a welcome (kind 1) or an end (kind 2) with an exit code of at "
                    "most {}, got kind {}, exit code {}",
                    kMaxExitCode, head.kind, head.exit_code));
  const auto text = message.subspan(sizeof head);
  return {.kind = static_cast<RingReply::Kind>(head.kind),
          .cell = head.cell,
          .sequence = head.sequence,
          .exit_code = static_cast<ExitCode>(head.exit_code),
          .text = {reinterpret_cast<const char*>(text.data()), text.size()}};
}

}  // namespace precast::data
