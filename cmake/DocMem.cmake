# The bricks every folder is built from. Each takes SOURCES and DEPS; TORCH marks a target that
# sees libtorch, GRPC one that sees our services: each kind shares a precompiled header.
#
#   docmem_library(name SOURCES … [DEPS …] [PRIVATE_DEPS …] [TORCH|GRPC])
#   docmem_program(name SOURCES … DEPS … [OUTPUT file] [TORCH])
#   docmem_test(name SOURCES … DEPS … [TORCH|GRPC] [LABELS …] [ENV K=V …] [TIMEOUT seconds])
#   docmem_pytest(name SOURCES x_test.py … [LABELS …] [ENV K=V …] [TIMEOUT seconds])
#   docmem_fuzzer(name SOURCES … DEPS … [TORCH])
#   docmem_bench(name SOURCES … DEPS … [TORCH])
#   docmem_tsan_order(name library)

set(DOCMEM_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
    -Wno-missing-field-initializers  # designated initialisers leave the rest at its default
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # GCC 12 warns of std::string's own operator+
    # libstdc++ 12 deprecates what its own std::stable_sort uses, and only Clang 19 says so.
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety;-Wno-deprecated-declarations>)

if(DOCMEM_SANITIZE MATCHES "thread")
  # Protobuf's headers lay out messages with maps differently under TSan than the installed library
  # was compiled; libstdc++ must still know. Everywhere, as the precompiled header is shared.
  add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
endif()

# What every target of ours compiles and links with.
function(docmem_set_options target)
  target_compile_options(${target} PRIVATE ${DOCMEM_WARNINGS})
  # gRPC's targets bring this flag, and Clang wants it alike wherever the precompiled header is used.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:Clang>:-pthread>)
  if(DOCMEM_SANITIZE)
    set(flags -fsanitize=${DOCMEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(${target} PRIVATE ${flags})
    target_link_options(${target} PUBLIC ${flags})
  endif()
  if(DOCMEM_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# In the TSan preset: whatever links `library` also links tests/sanitizers/<name>.cc, which tells TSan
# the order that a library outside our build keeps.
function(docmem_tsan_order name library)
  if(NOT DOCMEM_SANITIZE MATCHES "thread")
    return()
  endif()
  add_library(docmem_${name} OBJECT "${PROJECT_SOURCE_DIR}/tests/sanitizers/${name}.cc")
  docmem_set_options(docmem_${name})
  target_link_libraries(${library} INTERFACE $<BUILD_INTERFACE:$<TARGET_OBJECTS:docmem_${name}>>)
endfunction()

# A precompiled header's owner; it needs a source to own it with.
function(docmem_precompiled_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;DEPS")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cc" CONTENT "// precompiled header\n")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/${name}.cc")
  docmem_set_options(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

docmem_precompiled_headers(docmem_torch_pch
  HEADERS <ATen/ATen.h> <torch/csrc/autograd/grad_mode.h>
  DEPS Libtorch::Libtorch OpenMP::OpenMP_CXX)
function(_docmem_use_precompiled target owner)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Winvalid-pch>)
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

function(docmem_use_torch target)
  target_link_libraries(${target} PUBLIC Libtorch::Libtorch OpenMP::OpenMP_CXX)
  _docmem_use_precompiled(${target} docmem_torch_pch)
endfunction()

function(docmem_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;GRPC" "" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS")
  if(NOT arg_HEADERS)
    file(GLOB arg_HEADERS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_sources(${name} PUBLIC FILE_SET HEADERS
                 BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_HEADERS})
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
  docmem_set_options(${name})
  if(arg_TORCH)
    docmem_use_torch(${name})
  elseif(arg_GRPC)
    _docmem_use_precompiled(${name} docmem_grpc_pch)
  endif()
endfunction()

# What programs, tests, fuzzers and benches have in common.
function(_docmem_executable name folder torch sources deps)
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${deps})
  target_compile_definitions(${name} PRIVATE DOCMEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
  docmem_set_options(${name})
  if(torch)
    docmem_use_torch(${name})
  endif()
endfunction()

function(docmem_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "OUTPUT" "SOURCES;DEPS")
  _docmem_executable(${name} bin "${arg_TORCH}" "${arg_SOURCES}" "${arg_DEPS}")
  if(arg_OUTPUT)
    set_target_properties(${name} PROPERTIES OUTPUT_NAME ${arg_OUTPUT})
  endif()
  docmem_install_program(${name})
endfunction()

function(docmem_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;GRPC" "TIMEOUT" "SOURCES;DEPS;LABELS;ENV")
  if(NOT BUILD_TESTING)
    return()
  endif()
  _docmem_executable(${name} tests "${arg_TORCH}" "${arg_SOURCES}" "${arg_DEPS};GTest::gmock_main")
  if(arg_GRPC)
    _docmem_use_precompiled(${name} docmem_grpc_pch)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  docmem_test_properties(${name} LABELS ${arg_LABELS} ENV ${arg_ENV} TIMEOUT ${arg_TIMEOUT})
endfunction()

function(docmem_pytest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LABELS;ENV")
  if(NOT BUILD_TESTING)
    return()
  endif()
  add_test(NAME ${name}
           COMMAND ${DOCMEM_PYTHON} -B -m pytest -q -rsx -p no:cacheprovider ${arg_SOURCES}
           WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  docmem_test_properties(${name} LABELS ${arg_LABELS} ENV ${arg_ENV} TIMEOUT ${arg_TIMEOUT})
endfunction()

# The environment every test sees; also for tests added with add_test(), such as pytest runs. The
# presets bound a test's time (longer for --long): TIMEOUT, in seconds, is for rare exceptions.
function(docmem_test_properties name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;ENV")
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}"
    ENVIRONMENT
      "DOCMEM_SMOLLM2=${DOCMEM_MODELS}/smollm2-135m-instruct;DOCMEM_DATA=${DOCMEM_DATA};${arg_ENV}")
  if(arg_TIMEOUT)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

if(DOCMEM_FUZZ)
  add_custom_target(fuzzers)
endif()

function(docmem_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;DEPS")
  if(NOT DOCMEM_FUZZ)
    return()
  endif()
  _docmem_executable(${name} fuzz "${arg_TORCH}" "${arg_SOURCES}" "${arg_DEPS}")
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endfunction()

function(docmem_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;DEPS")
  if(NOT BUILD_TESTING OR NOT benchmark_FOUND)
    return()
  endif()
  _docmem_executable(${name} bench "${arg_TORCH}" "${arg_SOURCES}"
                     "${arg_DEPS};benchmark::benchmark_main")
  add_test(NAME ${name} COMMAND ${name} --benchmark_min_time=0.01)
  docmem_test_properties(${name} LABELS bench)
endfunction()
