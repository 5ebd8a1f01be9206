#include "tools/app/torch_errors.h"

#include <c10/util/Exception.h>

#include <string>
#include <string_view>

#include "framework/core/error.h"
#include "framework/engine/out_of_memory.h"

namespace precast::tools {
namespace {

bool says(const std::exception& error, std::string_view word) {
  return std::string_view(error.what()).find(word) != std::string_view::npos;
}

}  // namespace

void rethrow_plainly(const std::exception_ptr& failure) {
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
    if (says(error, "gloo")) {
      throw Error(
          std::string("the connection between ranks failed: ") + error.what_without_backtrace(),
          ExitCode::peer_failed);
    }
    throw Error(std::string("libtorch: ") + error.what_without_backtrace());
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    // Gloo's exceptions are recognised by the source file that they name.
    if (!says(error, "gloo")) throw;
    throw Error(std::string("the connection between ranks failed: ") + error.what(),
                ExitCode::peer_failed);
  }
}

}  // namespace precast::tools
