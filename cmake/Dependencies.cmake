# Every outside package, found once. Versions are those of Debian 12.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# ---- engine -----------------------------------------------------------------------------------
if(DOCMEM_CUDA)
  find_package(Libtorch 2.11 REQUIRED COMPONENTS CUDA)
else()
  find_package(Libtorch 2.11 REQUIRED)
endif()
# at::parallel_for is a header template that needs the flag; the runtime is the one libtorch loads.
# Clang would bring a runtime of its own, so there (analysis, fuzzing) it stays on one thread.
add_library(OpenMP::OpenMP_CXX INTERFACE IMPORTED)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(OpenMP::OpenMP_CXX INTERFACE -fopenmp)
  target_link_libraries(OpenMP::OpenMP_CXX INTERFACE "${Libtorch_LIBRARY_DIR}/libgomp.so.1")
endif()
find_package(nlohmann_json 3.11 REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto SSL)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_package(CLI11 CONFIG QUIET)  # of docmem-eval; the engine alone builds without it
if(BUILD_TESTING)
  find_package(GTest 1.12 CONFIG REQUIRED)
  find_package(benchmark CONFIG)
  find_program(DOCMEM_PYTHON python3 HINTS "${DOCMEM_TORCH_DIR}/bin" REQUIRED)
endif()

# ---- store, daemon, client --------------------------------------------------------------------
if(NOT DOCMEM_ENGINE_ONLY)
  find_package(Protobuf MODULE REQUIRED)  # before gRPC, whose package needs its targets
  find_package(gRPC CONFIG REQUIRED)
  find_package(absl CONFIG REQUIRED)
  find_package(CURL 7.88 REQUIRED)
  find_package(PostgreSQL REQUIRED)
  find_package(pugixml 1.13 CONFIG REQUIRED)
  find_package(SQLite3 REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)
  find_package(spdlog CONFIG REQUIRED)
  find_package(CLI11 CONFIG REQUIRED)
  pkg_check_modules(TOMLPLUSPLUS REQUIRED IMPORTED_TARGET tomlplusplus)
  pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
  find_path(STEMMER_INCLUDE_DIR libstemmer.h REQUIRED)  # comes without a package of its own
  find_library(STEMMER_LIBRARY stemmer REQUIRED)
  add_library(Stemmer::Stemmer UNKNOWN IMPORTED)
  set_target_properties(Stemmer::Stemmer PROPERTIES IMPORTED_LOCATION "${STEMMER_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${STEMMER_INCLUDE_DIR}")
endif()
