/* The C interface of precast's data library: open a .beton file, iterate over batches, write
 * samples. Plain C99; data/c/README.md has the design and an example.
 *
 * Errors. A function that can fail returns a precast_data_status. Unless the status is
 * PRECAST_DATA_OK, PRECAST_DATA_END or PRECAST_DATA_TIMEOUT, precast_data_error_message() returns a
 * message; for a damaged sample it names the file and the sample. No function throws or ends the
 * process. Only warnings, such as one about a damaged JPEG index, are printed, to standard error.
 *
 * Handles. Each kind of handle has a function that destroys it. Handles can be destroyed in any
 * order: a loader keeps its dataset open, and a batch keeps its memory alive. Destroying NULL does
 * nothing. Functions that return no status do not check their arguments. Several threads can use a
 * dataset at the same time. If they use the same loader or writer, their calls run one after the
 * other. Do not destroy a loader or writer while another thread uses it. A batch can be used and
 * released in any thread.
 *
 * Processes. A handle belongs to the process that created it, because a fork does not copy threads.
 * In a child process, functions that can fail return PRECAST_DATA_ENVIRONMENT_ERROR for the handle
 * (except precast_data_batch_tensor(), which still works), and destroying the handle does nothing.
 *
 * Strings. Options are a YAML (or JSON) map in UTF-8, with the names and values of recipes. NULL
 * and "" mean the defaults. Wrong options cause PRECAST_DATA_CONFIG_ERROR; one message can list
 * several of them. */
#ifndef PRECAST_DATA_H
#define PRECAST_DATA_H

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): C */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers): C */

/* NOLINTBEGIN(modernize-use-using,readability-identifier-naming): C */

#if defined(__GNUC__)
#define PRECAST_DATA_API __attribute__((visibility("default")))
#else
#define PRECAST_DATA_API
#endif

/* The version of this interface. It changes when a function or a struct changes, but not when a
 * function is added: a new function gets a new version node in the library. */
#define PRECAST_DATA_ABI_VERSION 1

/* Maximum number of dimensions of a value. */
#define PRECAST_DATA_MAX_DIMS 32

#ifdef __cplusplus
extern "C" {
#endif

/* Errors have the numbers of precast's exit codes. */
typedef enum precast_data_status {
  PRECAST_DATA_OK = 0,
  PRECAST_DATA_FAILED = 1,       /* an error inside precast */
  PRECAST_DATA_CONFIG_ERROR = 2, /* a wrong option or argument; a number `convert` cannot hold */
  PRECAST_DATA_DATA_ERROR = 3,   /* a damaged file or sample; a value the writer cannot store */
  PRECAST_DATA_IO_ERROR = 5,
  PRECAST_DATA_ENVIRONMENT_ERROR = 6, /* cannot start threads, or a handle of another process */
  PRECAST_DATA_OUT_OF_MEMORY = 11,
  PRECAST_DATA_END = 100,    /* no more batches in this epoch */
  PRECAST_DATA_TIMEOUT = 101 /* no batch yet */
} precast_data_status;

typedef enum precast_data_dtype {
  PRECAST_DATA_U8 = 0,
  PRECAST_DATA_F32 = 1,
  PRECAST_DATA_I64 = 2,
  PRECAST_DATA_F64 = 3,
  PRECAST_DATA_F16 = 4,
  PRECAST_DATA_BF16 = 5,
  PRECAST_DATA_I8 = 6,
  PRECAST_DATA_I16 = 7,
  PRECAST_DATA_I32 = 8,
  PRECAST_DATA_U16 = 9,
  PRECAST_DATA_U32 = 10,
  PRECAST_DATA_U64 = 11,
  PRECAST_DATA_BOOL = 12
} precast_data_dtype;

typedef struct precast_data_dataset precast_data_dataset;
typedef struct precast_data_loader precast_data_loader;
typedef struct precast_data_batch precast_data_batch;
typedef struct precast_data_writer precast_data_writer;

/* One tensor of a batch in host memory, in C order without gaps. All pointers are valid until the
 * batch is released. The memory may be written to. */
typedef struct precast_data_tensor {
  const char* name;
  int32_t dtype; /* precast_data_dtype */
  int32_t ndim;
  const int64_t*
      shape;  /* the first dimension counts samples; images: [N, H, W, C] or [N, C, H, W] */
  void* data; /* aligned to 64 bytes */
} precast_data_tensor;

typedef enum precast_data_kind {
  PRECAST_DATA_INTEGER = 0,
  PRECAST_DATA_FLOATING = 1,
  PRECAST_DATA_BYTES = 2,
  PRECAST_DATA_TEXT = 3,      /* JSON, UTF-8, without a terminating zero */
  PRECAST_DATA_ARRAY = 4,     /* elements in C order; dtype, ndim and shape */
  PRECAST_DATA_IMAGE_FILE = 5 /* a JPEG; for writing also PNG and WebP */
} precast_data_kind;

/* One value of a sample, read from a file or to be written to a file. */
typedef struct precast_data_value {
  int32_t kind; /* precast_data_kind */
  int32_t ndim;
  int64_t integer;
  double floating;
  const void* data;
  uint64_t bytes;
  const char* dtype; /* numpy's type string, such as "<f4" or "|u1" */
  int64_t shape[PRECAST_DATA_MAX_DIMS];
} precast_data_value;

/* Returns the PRECAST_DATA_ABI_VERSION with which the library was built. */
PRECAST_DATA_API int32_t precast_data_abi_version(void);
/* Returns the version of precast, such as "0.1.0". */
PRECAST_DATA_API const char* precast_data_version(void);
/* Returns the message of the last error in this thread; "" if there was none. Valid until the next
 * error in this thread. */
PRECAST_DATA_API const char* precast_data_error_message(void);

/* ---- datasets ---- */

/* Opens one or several .beton files as one dataset; a path may be an http:// or https:// URL.
 * Options: in_memory (1), direct_io, cache_dir, http_retry_s, fields, with the meaning of data.* in
 * recipes.
 * @param paths [count], count >= 1. */
PRECAST_DATA_API precast_data_status precast_data_dataset_open(const char* const* paths,
                                                               size_t count, const char* options,
                                                               precast_data_dataset** dataset);
PRECAST_DATA_API void precast_data_dataset_destroy(precast_data_dataset* dataset);
/* Returns JSON: {"path", "samples", "fingerprint", "checksums", "fields": [{"name", "type",
 * "dtype", "shape", ...}], "classes": {FIELD: [NAME, ...]}}. Valid as long as the dataset. */
PRECAST_DATA_API const char* precast_data_dataset_info(const precast_data_dataset* dataset);
PRECAST_DATA_API int64_t precast_data_dataset_samples(const precast_data_dataset* dataset);
/* Reads one stored value. An image stored as pixels is a PRECAST_DATA_ARRAY of shape [H, W, 3]; an
 * image stored as JPEG is a PRECAST_DATA_IMAGE_FILE, also with shape [H, W, 3]. The value of a
 * custom field is the bytes of its metadata. With in_memory 0, returns PRECAST_DATA_CONFIG_ERROR.
 * @param field index of the field in the file. @param value contains pointers that are valid as
 * long as the dataset. */
PRECAST_DATA_API precast_data_status precast_data_dataset_read(const precast_data_dataset* dataset,
                                                               int64_t sample, size_t field,
                                                               precast_data_value* value);

/* ---- loaders ---- */

/* Creates a loader. Its threads start with the first epoch. Options, with the names of recipes and
 * of `precast bench loader`: batch_size (required), pipeline (data/transforms/README.md; empty: the
 * standard evaluation pipeline), image_size (224), normalize (false: uint8, true: normalised
 * float32; true is an error if the pipeline converts an image without normalising it), order,
 * subset, filter, repeats, label_field, shuffle_window_mb, seed, drop_last, workers (0: one per
 * usable core), batches_ahead, rank, world, on_corrupt, verify, jpeg_dct, jpeg_index_mb, cache_mb.
 */
PRECAST_DATA_API precast_data_status precast_data_loader_open(const precast_data_dataset* dataset,
                                                              const char* options,
                                                              precast_data_loader** loader);
/* Stops and joins the threads. Batches stay valid. */
PRECAST_DATA_API void precast_data_loader_destroy(precast_data_loader* loader);
/* Returns JSON: {"outputs": [NAME, ...], "options": {NAME: VALUE, ...}, "resolved": {NAME: VALUE,
 * ...}}. `outputs`: the tensors of a batch, in order. `options`: all options with their values.
 * `resolved`: strings that say what `subset` and, with order quasi_random, `shuffle_window_mb` mean
 * for this dataset and host (for @FILE, a hash of the listed samples; for the window, its MiB). To
 * continue an epoch in another loader, compare `resolved` instead of these two options. Valid as
 * long as the loader. */
PRECAST_DATA_API const char* precast_data_loader_info(const precast_data_loader* loader);
/* Number of batches and of samples in this rank's part of an epoch. */
PRECAST_DATA_API int64_t precast_data_loader_batches(const precast_data_loader* loader);
PRECAST_DATA_API int64_t precast_data_loader_samples(const precast_data_loader* loader);
/* Starts an epoch, and ends an epoch that is still running. The batches depend only on the options,
 * the arguments and the file.
 * @param first_batch number of batches to skip, such as those consumed before a restart.
 * @param image_size_px 0: the option image_size. */
PRECAST_DATA_API precast_data_status precast_data_loader_begin_epoch(precast_data_loader* loader,
                                                                     int64_t epoch,
                                                                     int64_t first_batch,
                                                                     int64_t image_size_px);
/* Returns the next batch. When the batch and all DLPack tensors made from it have been released,
 * the loader uses their memory for a later batch. If the program holds more batches than the loader
 * has buffers, the loader allocates more memory; it never overwrites a batch that the program
 * holds.
 * @param timeout_ms how long to wait; a negative number means without a limit.
 * @return PRECAST_DATA_END after the last batch, PRECAST_DATA_TIMEOUT if none is ready in time. An
 * error, such as a damaged sample, ends the epoch. */
PRECAST_DATA_API precast_data_status precast_data_loader_next(precast_data_loader* loader,
                                                              int64_t timeout_ms,
                                                              precast_data_batch** batch);
/* Sets `json` to statistics since the loader was created: {"samples", "stored_bytes", "disk_bytes",
 * "seconds_waited", "workers": [{"busy", "waiting", "cpu"}], "replaced": [{"sample", "by",
 * "error"}]}. Valid until the next call with this loader. */
PRECAST_DATA_API precast_data_status precast_data_loader_statistics(precast_data_loader* loader,
                                                                    const char** json);

/* ---- batches ---- */

/* Number of samples and of tensors in the batch. */
PRECAST_DATA_API int64_t precast_data_batch_samples(const precast_data_batch* batch);
PRECAST_DATA_API size_t precast_data_batch_tensors(const precast_data_batch* batch);
PRECAST_DATA_API precast_data_status precast_data_batch_tensor(const precast_data_batch* batch,
                                                               size_t index,
                                                               precast_data_tensor* tensor);
/* Returns the ids of the samples in the dataset, [precast_data_batch_samples()]. Valid until the
 * batch is released. */
PRECAST_DATA_API const uint64_t* precast_data_batch_sample_ids(const precast_data_batch* batch);
/* Exports a tensor to another library (DLPack), without a copy. The tensor keeps the batch's memory
 * alive, even after the batch has been released.
 * @param versioned 0: DLManagedTensor; 1: DLManagedTensorVersioned (DLPack 1.0).
 * @param tensor set to the new tensor; its `deleter` frees it, in any thread. */
PRECAST_DATA_API precast_data_status precast_data_batch_dlpack(const precast_data_batch* batch,
                                                               size_t index, int32_t versioned,
                                                               void** tensor);
PRECAST_DATA_API void precast_data_batch_release(precast_data_batch* batch);

/* ---- writers ---- */

/* Creates a .beton file, which appears under its name when precast_data_writer_finish() is called.
 * @param fields a YAML map from names to types, in the order of the values: {image: {image: {mode:
 * raw}}, label: int, box: {ndarray: {dtype: <f4, shape: [4]}}, depth: {pixels: {dtype: <u2,
 * channels: 1}}, words: {ragged: {dtype: <i4, dims: 1}}, caption: json, audio: bytes}. The type
 * image has the options of `precast write --image.*`.
 * @param samples maximum number of samples.
 * Options: page_size (8 MiB) in bytes, checksums (true), seed (0), classes ({FIELD: [NAME, ...]}):
 * the names of the labels 0, 1, ...; such a field accepts no other labels. */
PRECAST_DATA_API precast_data_status precast_data_writer_open(const char* path, const char* fields,
                                                              int64_t samples, const char* options,
                                                              precast_data_writer** writer);
/* Encodes and adds one sample. If a value causes PRECAST_DATA_DATA_ERROR, the sample is left out,
 * and the writer can still be used.
 * @param values [count], one per field; may be freed after the call. */
PRECAST_DATA_API precast_data_status precast_data_writer_add(precast_data_writer* writer,
                                                             const precast_data_value* values,
                                                             size_t count);
/* Writes the remaining data and makes the file visible. Call once. */
PRECAST_DATA_API precast_data_status precast_data_writer_finish(precast_data_writer* writer);
/* Discards the file if precast_data_writer_finish() was not called. */
PRECAST_DATA_API void precast_data_writer_destroy(precast_data_writer* writer);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using,readability-identifier-naming) */

#endif
