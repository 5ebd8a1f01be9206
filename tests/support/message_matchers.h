#pragma once

#include <gmock/gmock.h>

#include <cctype>
#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace precast::test {

/// Whether `text` contains `fact` as a whole word: 5 is in neither "500" nor "1.5".
inline bool names(std::string_view text, std::string_view fact) {
  const std::string padded = "  " + std::string(text) + "  ";
  const auto digit = [&](std::size_t at) { return padded[at] >= '0' && padded[at] <= '9'; };
  const auto word = [&](std::size_t at) {
    return std::isalnum(static_cast<unsigned char>(padded[at])) != 0 || padded[at] == '_' ||
           (padded[at] == '.' && digit(at - 1) && digit(at + 1));
  };
  const auto edge = [&](std::size_t at) { return !word(at - 1) || !word(at); };
  for (std::size_t at = padded.find(fact, 2); at != padded.npos; at = padded.find(fact, at + 1)) {
    if (edge(at) && edge(at + fact.size())) return true;
  }
  return false;
}

class NamesMatcher {
 public:
  using is_gtest_matcher = void;
  explicit NamesMatcher(std::vector<std::string> facts) : facts_(std::move(facts)) {}
  bool MatchAndExplain(std::string_view message, std::ostream* why) const {
    for (const std::string& fact : facts_) {
      if (names(message, fact)) continue;
      if (why != nullptr) *why << "which lacks '" << fact << "'";
      return false;
    }
    return true;
  }
  void DescribeTo(std::ostream* out) const { *out << "names " << testing::PrintToString(facts_); }
  void DescribeNegationTo(std::ostream* out) const { DescribeTo(&(*out << "not all: ")); }

 private:
  std::vector<std::string> facts_;
};

template <std::integral Number>
requires(!std::same_as<Number, char>) std::string fact_text(Number number) {
  return std::to_string(number);
}
inline std::string fact_text(std::string text) {
  return text;
}  // also for a path, which converts to a string

/// Matches a message that contains every fact, in any order, each as a whole word. A fact is a
/// name, a location, a value from the user or a number, never a part of a sentence:
///   EXPECT_THAT(read, ThrowsMessage<DataError>(Names("r.yaml:2:10", "data.order", "random")));
NamesMatcher Names(const auto&... facts) {
  return NamesMatcher({fact_text(facts)...});
}

}  // namespace precast::test
