# Finds libtorch in a PyTorch wheel: the wheel's own CMake package demands a CUDA toolkit, which a
# CPU build neither has nor needs.
#
#   DOCMEM_TORCH_DIR     hint: a Python environment, or the wheel's `torch` folder itself
#   Libtorch::Libtorch   headers and libraries; with COMPONENTS CUDA also the CUDA half
#   Libtorch_LIBRARY_DIR, Libtorch_NVIDIA_LIBRARY_DIR
#                        the wheels' own libraries, for installation

file(GLOB _Libtorch_hints "${DOCMEM_TORCH_DIR}/lib/python3*/site-packages/torch")
list(APPEND _Libtorch_hints "${DOCMEM_TORCH_DIR}")

find_path(Libtorch_INCLUDE_DIR ATen/ATen.h
          HINTS ${_Libtorch_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
cmake_path(GET Libtorch_INCLUDE_DIR PARENT_PATH Libtorch_ROOT)
find_library(Libtorch_CPU_LIBRARY torch_cpu HINTS "${Libtorch_ROOT}/lib" NO_DEFAULT_PATH)
find_library(Libtorch_C10_LIBRARY c10 HINTS "${Libtorch_ROOT}/lib" NO_DEFAULT_PATH)
set(Libtorch_LIBRARY_DIR "${Libtorch_ROOT}/lib")
set(Libtorch_NVIDIA_LIBRARY_DIR "${Libtorch_ROOT}/../nvidia/cu13/lib")

if(EXISTS "${Libtorch_ROOT}/version.py")
  file(STRINGS "${Libtorch_ROOT}/version.py" _Libtorch_version_line REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Libtorch_VERSION "${_Libtorch_version_line}")
endif()

if("CUDA" IN_LIST Libtorch_FIND_COMPONENTS)
  find_library(Libtorch_CUDA_LIBRARY torch_cuda HINTS "${Libtorch_ROOT}/lib" NO_DEFAULT_PATH)
  find_library(Libtorch_C10_CUDA_LIBRARY c10_cuda HINTS "${Libtorch_ROOT}/lib" NO_DEFAULT_PATH)
  find_path(Libtorch_CUDA_INCLUDE_DIR cuda_runtime_api.h
            HINTS "${Libtorch_ROOT}/../nvidia/cu13/include" /usr/local/cuda/include)
  if(Libtorch_CUDA_LIBRARY AND Libtorch_C10_CUDA_LIBRARY AND Libtorch_CUDA_INCLUDE_DIR)
    set(Libtorch_CUDA_FOUND TRUE)
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch
  REQUIRED_VARS Libtorch_CPU_LIBRARY Libtorch_C10_LIBRARY Libtorch_INCLUDE_DIR
  VERSION_VAR Libtorch_VERSION
  HANDLE_COMPONENTS
  REASON_FAILURE_MESSAGE "run `./dev build` once, or set DOCMEM_TORCH_DIR to a PyTorch environment")
mark_as_advanced(Libtorch_INCLUDE_DIR Libtorch_CPU_LIBRARY Libtorch_C10_LIBRARY
                 Libtorch_CUDA_LIBRARY Libtorch_C10_CUDA_LIBRARY Libtorch_CUDA_INCLUDE_DIR)

if(Libtorch_FOUND AND NOT TARGET Libtorch::Libtorch)
  function(_libtorch_import target location)
    add_library(${target} SHARED IMPORTED)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${location}")
  endfunction()

  _libtorch_import(Libtorch::c10 "${Libtorch_C10_LIBRARY}")
  _libtorch_import(Libtorch::torch_cpu "${Libtorch_CPU_LIBRARY}")
  add_library(Libtorch::Libtorch INTERFACE IMPORTED)
  target_link_libraries(Libtorch::Libtorch INTERFACE Libtorch::torch_cpu Libtorch::c10)

  # -idirafter: the wheel also carries fmt and protobuf headers, and Debian's must win over them.
  target_compile_options(Libtorch::Libtorch INTERFACE
    "SHELL:-idirafter ${Libtorch_INCLUDE_DIR}"
    "SHELL:-idirafter ${Libtorch_INCLUDE_DIR}/torch/csrc/api/include")

  if(Libtorch_CUDA_FOUND)
    _libtorch_import(Libtorch::c10_cuda "${Libtorch_C10_CUDA_LIBRARY}")
    _libtorch_import(Libtorch::torch_cuda "${Libtorch_CUDA_LIBRARY}")
    target_link_libraries(Libtorch::Libtorch INTERFACE Libtorch::torch_cuda Libtorch::c10_cuda)
    target_compile_options(Libtorch::Libtorch INTERFACE
      "SHELL:-idirafter ${Libtorch_CUDA_INCLUDE_DIR}")
    target_compile_definitions(Libtorch::Libtorch INTERFACE DOCMEM_CUDA=1)
    # torch_cuda registers its kernels when loaded, and names libraries only its own run path finds.
    target_link_options(Libtorch::Libtorch INTERFACE
      "LINKER:--no-as-needed" "LINKER:--allow-shlib-undefined")
  endif()
endif()
