#include "framework/core/event_file.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

namespace precast {
namespace {

// Three examples of RFC 3720, appendix B.4; the check value of CRC-32C (the CRC of "123456789") in
// Greg Cook's catalogue of CRC algorithms; and the empty string.
TEST(Crc32cTest, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string counting(32, '\0');
  std::iota(counting.begin(), counting.end(), '\0');
  EXPECT_EQ(crc32c(counting), 0x46DD794EU);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Unmasks a CRC, as readers of TFRecord files do.
std::uint32_t unmasked(std::string_view stored) {
  return std::rotl(static_cast<std::uint32_t>(little_endian(stored)) - 0xA282EAD8U, 15);
}

/// Removes the first record, checks its CRCs and returns its data.
std::string take_record(std::string& bytes) {
  const std::size_t size = little_endian(bytes.substr(0, 8));
  EXPECT_EQ(unmasked(bytes.substr(8, 4)), crc32c(bytes.substr(0, 8)));
  std::string data = bytes.substr(12, size);
  EXPECT_EQ(unmasked(bytes.substr(12 + size, 4)), crc32c(data));
  bytes.erase(0, 16 + size);
  return data;
}

std::string double_bytes(double value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, 8);
  return bytes;
}

TEST(EventFileTest, BeginsWithItsVersion) {
  std::string bytes = event_file_head(1.5);
  EXPECT_EQ(take_record(bytes),
            std::string("\x09") + double_bytes(1.5) + "\x1a\x0d" + "brain.Event:2");
  EXPECT_EQ(bytes, "");
}

TEST(EventFileTest, IntactRecordsEndBeforeATruncatedOrDamagedOne) {
  const std::string first = event_file_head(1.5);
  const EventScalar scalar{"loss", 2};
  const std::string both = first + event_record(1.5, 3, {&scalar, 1});
  EXPECT_EQ(intact_prefix_bytes(both), both.size());
  for (std::size_t size = first.size(); size < both.size(); ++size)
    EXPECT_EQ(intact_prefix_bytes(both.substr(0, size)), first.size());
  for (std::size_t at = first.size(); at < both.size(); ++at) {
    std::string damaged = both;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    EXPECT_EQ(intact_prefix_bytes(damaged), first.size()) << at;
  }
}

TEST(EventFileTest, ARecordHoldsWallTimeStepAndItsScalars) {
  const std::array<EventScalar, 2> scalars = {{{"loss", 0.5}, {"lr", -2.0}}};
  std::string bytes = event_record(2, 300, scalars);
  const std::string loss = std::string("\x0a\x04loss\x15") + std::string("\0\0\0\x3f", 4);
  const std::string lr = std::string("\x0a\x02lr\x15") + std::string("\0\0\0\xc0", 4);
  const std::string summary = std::string("\x0a\x0b") + loss + "\x0a\x09" + lr;
  EXPECT_EQ(take_record(bytes),
            std::string("\x09") + double_bytes(2) + "\x10\xac\x02" + "\x2a\x18" + summary);
  EXPECT_EQ(bytes, "");
}

}  // namespace
}  // namespace precast
