# Plants one violation of each kind in a sample tree and expects an error of layering.cmake that names it. Without a
# violation, there must be no error:
#   cmake -DCHECK=<layering.cmake> -DSCRATCH=<folder> -P tests/layering_test.cmake
cmake_minimum_required(VERSION 3.25)

function(check outcome)  # runs layering.cmake on the tree; sets `code` to its exit code and ${outcome} to its output
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${CHECK}
    RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(code ${code} PARENT_SCOPE)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  set(${outcome} "${text}" PARENT_SCOPE)
endfunction()

function(plant file include)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/framework/core/error.h "#include <string>\n")
  file(WRITE ${SCRATCH}/framework/api/model.h "#include <ATen/core/Tensor.h>\n#include \"framework/core/error.h\"\n")
  file(WRITE ${SCRATCH}/framework/api/epoch_request.h "#include <cstdint>\n")
  file(WRITE ${SCRATCH}/data/loader/loader.cpp "#include \"framework/api/epoch_request.h\"\n#include \"data/image/image.h\"\n")
  file(WRITE ${SCRATCH}/data/image/image.h "#include <cstddef>\n")
  file(WRITE ${SCRATCH}/data/torch/batch_source.h "#include \"framework/api/model.h\"\n")
  file(WRITE ${SCRATCH}/data/torch/batch_source.cpp "#include <ATen/core/Tensor.h>\n#include \"framework/api/model.h\"\n#include \"data/image/image.h\"\n")
  file(WRITE ${SCRATCH}/tools/app/train.cpp "#include \"models/register.h\"\n#include \"data/image/image.h\"\n#include \"tools/cli/command.h\"\n")
  file(WRITE ${SCRATCH}/tools/cli/command.h "#include \"framework/process/spawn.h\"\n")
  if(file)
    file(APPEND ${SCRATCH}/${file} "  #  include ${include}  // planted\n")
  endif()
endfunction()

plant("" "")
check(text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "expected no complaint about a clean tree, got: ${text}")
endif()

set(planted
  "framework/core/file.cpp|\"framework/api/batch.h\""
  "framework/core/file.cpp|<c10/util/Exception.h>"
  "framework/api/batch.h|\"data/image/image.h\""
  "framework/engine/trainer.cpp|\"models/resnet.h\""
  "framework/distributed/sync.cpp|\"recipes/register.h\""
  "framework/misc/thing.h|<string>"
  "framework/engine/trainer.cpp|\"framework/distributed/sync.h\""
  "framework/process/spawn.cpp|\"framework/launch/launcher.h\""
  "framework/launch/launcher.cpp|<ATen/core/Tensor.h>"
  "tools/commands/write.cpp|\"framework/api/model.h\""
  "tools/commands/write.cpp|\"models/register.h\""
  "tools/cli/command.cpp|\"tools/app/session.h\""
  "data/image/exif.cpp|\"data/loader/loader.h\""
  "data/image/image.h|<ATen/ops/ones.h>"
  "data/loader/loader.cpp|\"framework/api/model.h\""
  "data/loader/loader.cpp|\"data/torch/batch_source.h\""
  "data/torch/batch_source.cpp|\"models/resnet.h\""
  "models/resnet.cpp|\"recipes/methods/blurpool.h\""
  "models/resnet.cpp|\"framework/engine/trainer.h\""
  "models/resnet.cpp|\"../data/image/image.h\""
  "recipes/methods/ema.cpp|\"models/resnet.h\""
  "recipes/methods/ema.cpp|\"tests/support/fake_model.h\""
  "data/beton/reader.cpp|\"tools/cli/command.h\""
  "tools/app/train.cpp|<torch/torch.h>"
  "tests/models/resnet_test.cpp|<torch/torch.h>")
foreach(pair IN LISTS planted)
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 file)
  list(GET pair 1 include)
  plant(${file} "${include}")
  check(text)
  string(FIND "${text}" "${file}" named)
  if(code EQUAL 0 OR named EQUAL -1)
    message(FATAL_ERROR "planted in ${file}: #include ${include}; expected a complaint naming the file, got: ${text}")
  endif()
endforeach()

# Tables with a mistake: a missing row, a folder that does not exist, and a folder above one that it includes.
function(plant_table rows place outcome)
  plant("" "")
  set(table "| folder | owns |\n")
  foreach(row IN LISTS rows)
    string(APPEND table "| `${row}` | something |\n")
  endforeach()
  file(MAKE_DIRECTORY ${SCRATCH}/framework/process ${SCRATCH}/models)
  file(WRITE ${SCRATCH}/docs/architecture.md "${table}")
  check(text)
  string(FIND "${text}" "${place}" named)
  if(outcome STREQUAL "clean" AND NOT code EQUAL 0)
    message(FATAL_ERROR "expected no complaint about a complete table, got: ${text}")
  elseif(outcome STREQUAL "refused" AND (code EQUAL 0 OR named EQUAL -1))
    message(FATAL_ERROR "expected a complaint naming ${place}, got: ${text}")
  endif()
endfunction()
set(all framework/core framework/process framework/api data/image data/loader data/torch models tools/cli tools/app)
plant_table("${all}" "" clean)
set(without ${all})
list(REMOVE_ITEM without data/loader)
plant_table("${without}" "data/loader: expected a row" refused)
plant_table("${all};data/cache" "lists data/cache" refused)
set(late ${all})
list(REMOVE_ITEM late data/image)
plant_table("${late};data/image" "data/loader is above data/image" refused)
file(REMOVE_RECURSE ${SCRATCH})
