#include "framework/api/torch_message.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace precast {
namespace {

TEST(FirstLine, OfLibtorchHasNoStackTraceAndNoAdvice) {
  const c10::Error error(c10::SourceLocation{"run", "step.cpp", 7},
                         "CUDA error: launch failure.\nCompile with X");
  ASSERT_NE(std::string(error.what()).find("step.cpp"), std::string::npos);
  EXPECT_EQ(first_line(error), "CUDA error: launch failure.");
  EXPECT_EQ(first_line(c10::Error("one line", nullptr)), "one line");
}

TEST(FirstLine, OfAnotherLibraryIsThatOfItsMessage) {
  EXPECT_EQ(first_line(std::runtime_error("first\nsecond")), "first");
  EXPECT_EQ(first_line(std::runtime_error("")), "");
}

}  // namespace
}  // namespace precast
