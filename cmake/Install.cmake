# `cmake --install`: programs in bin/, the wheel's libraries in lib/docmem/ beside them, so that the
# prefix can be moved and runs without the Python environment it was built from.
include(GNUInstallDirs)
set(DOCMEM_INSTALL_TORCH_DIR "${CMAKE_INSTALL_LIBDIR}/docmem")

function(docmem_install_program target)
  set_target_properties(${target} PROPERTIES
                        INSTALL_RPATH "$ORIGIN/../${DOCMEM_INSTALL_TORCH_DIR}")
  install(TARGETS ${target} RUNTIME COMPONENT runtime)
endfunction()

install(IMPORTED_RUNTIME_ARTIFACTS Libtorch::torch_cpu Libtorch::c10
        LIBRARY DESTINATION "${DOCMEM_INSTALL_TORCH_DIR}" COMPONENT runtime)
# libtorch_cpu needs these three by name; the last two only because the wheel is built with CUDA.
install(FILES "${Libtorch_LIBRARY_DIR}/libgomp.so.1"
              "${Libtorch_NVIDIA_LIBRARY_DIR}/libcupti.so.13"
              "${Libtorch_NVIDIA_LIBRARY_DIR}/libcudart.so.13"
        DESTINATION "${DOCMEM_INSTALL_TORCH_DIR}" COMPONENT runtime)
foreach(wheel torch nvidia_cuda_cupti nvidia_cuda_runtime)
  file(GLOB licences "${Libtorch_LIBRARY_DIR}/../../${wheel}-*.dist-info/licenses/*")
  install(FILES ${licences} DESTINATION "${CMAKE_INSTALL_DOCDIR}/${wheel}" COMPONENT runtime)
endforeach()
