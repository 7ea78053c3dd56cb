# ricci_find_gpus(VARIABLE): the architectures of this machine's GPUs, such as 90-real; empty if nvidia-smi lists no GPU, or a GPU that
# ricci or nvcc does not support.
function(ricci_find_gpus result)
  set(${result} "" PARENT_SCOPE)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader OUTPUT_VARIABLE seen ERROR_QUIET RESULT_VARIABLE failed)
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+\\.[0-9]" seen "${seen}")
  if(failed)
    return()
  endif()
  list(REMOVE_DUPLICATES seen)
  set(found)
  foreach(capability IN LISTS seen)
    string(REPLACE . "" number ${capability})
    if(number LESS 80 OR NOT known MATCHES "sm_${number}(\n|$)")
      return()
    endif()
    list(APPEND found ${number}-real)
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# ricci_choose_architectures(GPUS VARIABLE): the architectures to build for if CMAKE_CUDA_ARCHITECTURES is not set. On a machine with
# GPUs these are the GPUs' architectures, so each kernel is compiled once. Without a GPU, these are A100 and H100, with PTX for newer GPUs.
# Tests without a GPU compile for H100 only. Its machine code is checked.
function(ricci_choose_architectures gpus result)
  set(architectures 80-real 90-real 90-virtual)
  if(gpus)
    set(architectures ${gpus})
  elseif(RICCI_TESTS)
    set(architectures 90-real)
  endif()
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE version ERROR_QUIET)
  if(version MATCHES "release ([0-9]+)" AND NOT CMAKE_MATCH_1 LESS 12)  # the same GPUs, with wgmma
    list(TRANSFORM architectures REPLACE "^90-real$" "90a-real")
  endif()
  set(${result} "${architectures}" PARENT_SCOPE)
endfunction()
