# ricci_enable_cuda(): enables the CUDA language if ricci was built for GPUs. Call it after find_package(ricci) or add_subdirectory(),
# outside functions, in the folder of the targets with kernels or in a parent folder.
macro(ricci_enable_cuda)
  get_target_property(RICCI_HAS_CUDA ricci::ricci RICCI_HAS_CUDA)
  if(RICCI_HAS_CUDA)
    enable_language(CUDA)
  endif()
endmacro()

# ricci_add_kernels(TARGET FILE.cu ...): adds your files with kernels to TARGET, a target that links ricci::ricci. The C++ compiler compiles
# each file for the CPU and the emulator. If ricci was built for GPUs, nvcc compiles it again for its kernels (cuda/seam.h), so the project
# has to call ricci_enable_cuda() first. The target properties RICCI_HAS_CUDA and RICCI_CUDA_ARCHITECTURES describe the GPUs that ricci was
# built for.
function(ricci_add_kernels target)
  if(NOT TARGET ricci::ricci)
    message(FATAL_ERROR "ricci_add_kernels: ricci::ricci does not exist; call find_package(ricci) first, here or in a parent folder")
  endif()
  get_target_property(has_cuda ricci::ricci RICCI_HAS_CUDA)
  if(has_cuda AND NOT CMAKE_CUDA_COMPILER_LOADED)
    message(FATAL_ERROR "ricci_add_kernels: this ricci was built for GPUs, so nvcc has to compile the kernels of ${target}: call ricci_enable_cuda() first")
  endif()
  set(files)
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file NORMALIZE)
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "ricci_add_kernels: the file ${file} does not exist")
    endif()
    cmake_path(GET file STEM LAST_ONLY name)
    string(SHA1 hash ${file})  # distinguishes files of the same name
    string(SUBSTRING ${hash} 0 8 hash)
    set(whole ${CMAKE_CURRENT_BINARY_DIR}/${target}-kernels/${name}-${hash}.cpp)
    file(CONFIGURE OUTPUT ${whole} CONTENT "#include \"${file}\"\n")
    # The options of ricci's ops: loops are vectorized, and NaN stays NaN.
    set_source_files_properties(${whole} PROPERTIES COMPILE_OPTIONS "-fno-math-errno;-fno-trapping-math;-fopenmp-simd")
    target_sources(${target} PRIVATE ${whole})
    list(APPEND files ${file})
  endforeach()
  if(has_cuda)
    ricci_compile_for_gpus(${target} ${files})
  endif()
endfunction()

# Compiles the files with nvcc into a separate object library.
function(ricci_compile_for_gpus target)
  if(TARGET ${target}-kernels)
    target_sources(${target}-kernels PRIVATE ${ARGN})
    return()
  endif()
  get_target_property(architectures ricci::ricci RICCI_CUDA_ARCHITECTURES)
  add_library(${target}-kernels OBJECT ${ARGN})
  target_compile_definitions(${target}-kernels PRIVATE RICCI_HAS_CUDA)
  target_include_directories(${target}-kernels PRIVATE $<TARGET_PROPERTY:ricci::ricci,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_options(${target}-kernels PRIVATE -std=c++20)
  set_target_properties(${target}-kernels PROPERTIES CUDA_ARCHITECTURES "${architectures}")
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}-kernels>)
  if(TARGET ricci_headers)
    add_dependencies(${target}-kernels ricci_headers)
  endif()
endfunction()
