#include "data/sources/register.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/sources/opened.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::refusing;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(OpenSource, ListsItsKindsForWhatItDoesNotKnow) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder / "a.odd", std::vector<std::byte>(3073));
  EXPECT_THAT(refusing(folder / "a.odd"),
              ThrowsMessage<DataError>(AllOf(HasSubstr("a.odd: expected a dataset of one of"),
                                             HasSubstr("cifar"), HasSubstr("folder"),
                                             HasSubstr("idx"), HasSubstr("tar"))));
  EXPECT_THAT(refusing(folder / "a.odd", "tra"),
              ThrowsMessage<ConfigError>(HasSubstr("unknown kind 'tra'. Did you mean 'tar'?")));
  // A kind that is asked for is taken at its word.
  EXPECT_EQ(open_source(folder / "a.odd", "cifar")->size(), 1U);
}

}  // namespace
}  // namespace precast::data
