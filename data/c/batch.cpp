#include <fmt/core.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "data/c/handles.h"
#include "framework/core/error.h"

/// The structs of DLPack 1.0, whose layout is fixed. They have the names of dlpack.h and are
/// outside any namespace, so that `deleter` has the same type for the library that calls it. @{
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor* self);
};
struct DLManagedTensorVersioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor tensor;
};
/// @}

namespace precast::data::c {
namespace {

static_assert(PRECAST_DATA_BOOL == static_cast<int>(ElementType::boolean));
static_assert(PRECAST_DATA_BF16 == static_cast<int>(ElementType::bf16));
static_assert(PRECAST_DATA_U64 == static_cast<int>(ElementType::u64));

const HostTensor& tensor_of(const precast_data_batch& batch, std::size_t index) {
  if (index >= batch.batch.fields.size())
    throw ConfigError(fmt::format("batch: expected a tensor index below {}, got {}",
                                  batch.batch.fields.size(), index));
  return batch.batch.fields[index];
}

constexpr std::int32_t kDlCpu = 1;

DLDataType dl_type(ElementType type) {
  enum Code : std::uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kBool = 6 };
  const auto code = [&] {
    switch (type) {
      case ElementType::f16:
      case ElementType::f32:
      case ElementType::f64:
        return kFloat;
      case ElementType::bf16:
        return kBfloat;
      case ElementType::boolean:
        return kBool;
      case ElementType::i8:
      case ElementType::i16:
      case ElementType::i32:
      case ElementType::i64:
        return kInt;
      default:
        return kUint;
    }
  }();
  return {code, static_cast<std::uint8_t>(8 * element_size(type)), 1};
}

/// A tensor that another library uses. Shares ownership of the batch's memory.
template <typename Managed>
struct ExportedTensor : ProcessBound {
  Managed managed{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::shared_ptr<const void> memory;

  ExportedTensor(const HostTensor& tensor, std::shared_ptr<const void> owner)
      : shape(tensor.shape), strides(tensor.shape.size(), 1), memory(std::move(owner)) {
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    managed.tensor = {.data = tensor.data,
                      .device_type = kDlCpu,
                      .device_id = 0,
                      .ndim = static_cast<std::int32_t>(shape.size()),
                      .dtype = dl_type(tensor.type),
                      .shape = shape.data(),
                      .strides = strides.data(),
                      .byte_offset = 0};
    managed.context = this;
    managed.deleter = [](Managed* self) { destroy(static_cast<ExportedTensor*>(self->context)); };
  }
};

template <typename Managed>
Managed* export_tensor(const HostTensor& tensor, const std::shared_ptr<const void>& memory) {
  return &std::make_unique<ExportedTensor<Managed>>(tensor, memory).release()->managed;
}

}  // namespace
}  // namespace precast::data::c

using namespace precast::data;  // NOLINT(google-build-using-namespace): for the C functions below

extern "C" {

int64_t precast_data_batch_samples(const precast_data_batch* batch) {
  return static_cast<int64_t>(batch->batch.sample_ids.size());
}

size_t precast_data_batch_tensors(const precast_data_batch* batch) {
  return batch->batch.fields.size();
}

precast_data_status precast_data_batch_tensor(const precast_data_batch* batch, size_t index,
                                              precast_data_tensor* tensor) {
  return c::guarded([&] {
    c::check_argument(batch, "batch");
    c::check_argument(tensor, "tensor");
    const HostTensor& field = c::tensor_of(*batch, index);
    *tensor = {.name = field.name.c_str(),
               .dtype = static_cast<int32_t>(field.type),
               .ndim = static_cast<int32_t>(field.shape.size()),
               .shape = field.shape.data(),
               .data = field.data};
    return PRECAST_DATA_OK;
  });
}

const uint64_t* precast_data_batch_sample_ids(const precast_data_batch* batch) {
  return batch->batch.sample_ids.data();
}

precast_data_status precast_data_batch_dlpack(const precast_data_batch* handle, size_t index,
                                              int32_t versioned, void** tensor) {
  return c::guarded([&] {
    c::check_argument(tensor, "tensor");
    const HostBatch& batch = c::checked_handle(handle, "batch").batch;
    const HostTensor& field = c::tensor_of(*handle, index);
    if (versioned != 0) {
      auto* const made = c::export_tensor<DLManagedTensorVersioned>(field, batch.memory);
      made->major = 1;
      *tensor = made;
    } else {
      *tensor = c::export_tensor<DLManagedTensor>(field, batch.memory);
    }
    return PRECAST_DATA_OK;
  });
}

void precast_data_batch_release(precast_data_batch* batch) {
  c::destroy(batch);
}
}
