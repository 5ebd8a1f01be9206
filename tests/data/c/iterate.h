/* Uses the data library as a C program does. iterate.c is compiled as C. */
#ifndef PRECAST_TESTS_DATA_C_ITERATE_H
#define PRECAST_TESTS_DATA_C_ITERATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Totals of one epoch, and the height of its images. */
/* NOLINTNEXTLINE(modernize-use-using,readability-identifier-naming): C */
typedef struct epoch_facts {
  int64_t batches;
  int64_t samples;
  int64_t label_sum;
  uint64_t pixel_sum;
  int64_t height;
} epoch_facts;

/* Reads one epoch of the fields `image` and `label`. @return PRECAST_DATA_END, or the
 * status of the first error. */
int iterate_in_c(const char* path, const char* options, epoch_facts* facts);

#ifdef __cplusplus
}
#endif

#endif
