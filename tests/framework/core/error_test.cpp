#include "framework/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using test::Names;

TEST(Error, CarriesTheExitCodeOfItsKind) {
  EXPECT_EQ(ConfigError("x").exit_code(), ExitCode::usage);
  EXPECT_EQ(DataError("x").exit_code(), ExitCode::dataset_invalid);
  EXPECT_EQ(CheckpointError("x").exit_code(), ExitCode::checkpoint_invalid);
  EXPECT_EQ(IoError("x").exit_code(), ExitCode::io);
  EXPECT_EQ(DeviceError("x").exit_code(), ExitCode::environment);
  EXPECT_EQ(Error("x").exit_code(), ExitCode::failed);
  EXPECT_EQ(Error("x", ExitCode::stalled).exit_code(), ExitCode::stalled);
}

TEST(Error, NamesThePathAndTheReasonOfASystemCall) {
  EXPECT_THAT(IoError("cannot write", "/x/y", ENOSPC).what(),
              Names("cannot write", "/x/y", std::strerror(ENOSPC)));
}

TEST(Require, NamesTheLocationOfAFailedCheck) {
  EXPECT_NO_THROW(require(true, "fine"));
  try {
    require(false, "n % 2 == 0");
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), Names("error_test.cpp", "n % 2 == 0"));
  }
}

}  // namespace
}  // namespace precast
