#include "framework/core/archive/tensor_record.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace precast {
namespace {

TEST(TensorRecord, FindsEveryDtypeByItsNameInEachFormat) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    const DTypeInfo& info = dtype_info(dtype);
    EXPECT_EQ(find_dtype(&DTypeInfo::safetensors, info.safetensors), dtype);
    EXPECT_EQ(find_dtype(&DTypeInfo::torch_storage, info.torch_storage), dtype);
    if (dtype != DType::bf16) {
      EXPECT_EQ(find_dtype(&DTypeInfo::numpy, info.numpy), dtype);
    }
  }
  EXPECT_FALSE(find_dtype(&DTypeInfo::numpy, "").has_value());
  EXPECT_FALSE(find_dtype(&DTypeInfo::safetensors, "F8_E4M3").has_value());
}

TEST(TensorRecord, CountsElementsWithoutOverflow) {
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(element_count(Shape{}), 1U);
  EXPECT_EQ(element_count(Shape{2, 0, 3}), 0U);
  EXPECT_FALSE(element_count(Shape{-1}).has_value());
  EXPECT_FALSE(element_count(Shape{INT64_MAX, 2}).has_value());
  EXPECT_EQ(byte_count(DType::f64, Shape{2, 3}), 48U);
  EXPECT_FALSE(byte_count(DType::f32, Shape{INT64_MAX / 2}).has_value());
  EXPECT_EQ(shape_text(Shape{64, 3}), "[64, 3]");
}

}  // namespace
}  // namespace precast
