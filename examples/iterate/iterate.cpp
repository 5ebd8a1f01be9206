// Reads a .beton file in batches with precast's loader, without libtorch:
//   iterate FILE.beton
#include <cstdio>
#include <exception>

#include "data/beton/reader.h"
#include "data/loader/loader.h"

int main(int argc, char** argv) try {
  const precast::data::BetonReader file(argc > 1 ? argv[1] : "train.beton");
  precast::data::Loader loader(file, precast::data::standard_train_pipeline(),
                               {.batch_size = 32, .workers = 2, .seed = 1});
  loader.begin_epoch({.epoch = 0, .image_size_px = 64});
  while (const auto batch = loader.next()) {
    for (const auto& field : batch->fields) {
      std::printf("%s [", field.name.c_str());
      for (const auto side : field.shape) std::printf(" %lld", static_cast<long long>(side));
      std::printf(" ]  ");
    }
    std::printf("first sample: %llu\n", static_cast<unsigned long long>(batch->sample_ids[0]));
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
