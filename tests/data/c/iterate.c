#include "tests/data/c/iterate.h"

#include <string.h>

#include "data/c/precast_data.h"

static void count_tensor(const precast_data_tensor* tensor, epoch_facts* facts) {
  if (strcmp(tensor->name, "label") == 0 && tensor->dtype == PRECAST_DATA_I64) {
    const int64_t* labels = (const int64_t*)tensor->data;
    for (int64_t i = 0; i < tensor->shape[0]; ++i) facts->label_sum += labels[i];
  } else if (strcmp(tensor->name, "image") == 0 && tensor->dtype == PRECAST_DATA_U8) {
    const uint8_t* pixels = (const uint8_t*)tensor->data;
    int64_t count = 1;
    for (int32_t i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
    for (int64_t i = 0; i < count; ++i) facts->pixel_sum += pixels[i];
    facts->height = tensor->shape[1];
  }
}

static void count_batch(const precast_data_batch* batch, epoch_facts* facts) {
  facts->batches += 1;
  facts->samples += precast_data_batch_samples(batch);
  for (size_t i = 0; i < precast_data_batch_tensors(batch); ++i) {
    precast_data_tensor tensor;
    if (precast_data_batch_tensor(batch, i, &tensor) == PRECAST_DATA_OK)
      count_tensor(&tensor, facts);
  }
}

int iterate_in_c(const char* path, const char* options, epoch_facts* facts) {
  precast_data_dataset* dataset = NULL;
  precast_data_loader* loader = NULL;
  precast_data_batch* batch = NULL;
  memset(facts, 0, sizeof *facts);
  precast_data_status status = precast_data_dataset_open(&path, 1, NULL, &dataset);
  if (status == PRECAST_DATA_OK) status = precast_data_loader_open(dataset, options, &loader);
  precast_data_dataset_destroy(dataset);
  if (status == PRECAST_DATA_OK) status = precast_data_loader_begin_epoch(loader, 0, 0, 0);
  while (status == PRECAST_DATA_OK) {
    status = precast_data_loader_next(loader, -1, &batch);
    if (status == PRECAST_DATA_OK) {
      count_batch(batch, facts);
      precast_data_batch_release(batch);
    }
  }
  precast_data_loader_destroy(loader);
  return (int)status;
}
