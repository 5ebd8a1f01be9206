#include "tools/app/torch_errors.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/core/error.h"
#include "framework/engine/out_of_memory.h"

namespace precast::tools {
namespace {

bool mentions(const std::exception& error, std::string_view word) {
  return std::string_view(error.what()).find(word) != std::string_view::npos;
}

/// Whether a CUDA error is a failure of the GPU or its driver, not of a kernel or a call.
bool is_gpu_failure(std::int32_t code) {
  // cudaErrorInitializationError, InsufficientDriver, DevicesUnavailable, NoDevice, InvalidDevice,
  // NoKernelImageForDevice, ECCUncorrectable, NvlinkUncorrectable, Contained, HardwareStackError,
  // SystemNotReady, SystemDriverMismatch, MpsConnectionFailed, ExternalDevice, Unknown
  constexpr std::array<std::int32_t, 15> kFailures = {3,   35,  46,  100, 101, 209, 214, 220,
                                                      226, 714, 802, 803, 805, 911, 999};
  return std::ranges::find(kFailures, code) != kFailures.end();
}

}  // namespace

void rethrow_translated(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const c10::DistError& error) {
    throw Error(
        std::string("the connection between ranks failed: ") + error.what_without_backtrace(),
        ExitCode::peer_failed);
  } catch (const c10::Error& error) {
    if (engine::is_out_of_memory(error)) {
      throw Error(std::string("out of memory: ") + error.what_without_backtrace() +
                      ". Lower training.batch_size (in an evaluation: validation.batch_size) or "
                      "resolution.max_res, or raise training.micro_batches",
                  ExitCode::out_of_memory);
    }
    if (mentions(error, "gloo")) {
      throw Error(
          std::string("the connection between ranks failed: ") + error.what_without_backtrace(),
          ExitCode::peer_failed);
    }
    const std::string text = std::string("libtorch: ") + error.what_without_backtrace();
    const auto* gpu = dynamic_cast<const c10::AcceleratorError*>(&error);
    if (gpu != nullptr && is_gpu_failure(gpu->get_error_code())) throw DeviceError(text);
    throw Error(text);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    // Gloo's exceptions are recognised by the source file that they name.
    if (!mentions(error, "gloo")) throw;
    throw Error(std::string("the connection between ranks failed: ") + error.what(),
                ExitCode::peer_failed);
  }
}

}  // namespace precast::tools
