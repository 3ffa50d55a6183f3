# `cmake --install … --component client`: what an outside project needs to link the client library.
include(CMakePackageConfigHelpers)
set(client_include "${CMAKE_INSTALL_INCLUDEDIR}/docmem")
set(client_package "${CMAKE_INSTALL_LIBDIR}/cmake/docmem")

set_target_properties(docmem_client PROPERTIES EXPORT_NAME client)
set_target_properties(docmem_proto PROPERTIES EXPORT_NAME proto)
install(TARGETS docmem_client docmem_proto EXPORT docmem-targets
        ARCHIVE COMPONENT client
        FILE_SET HEADERS DESTINATION "${client_include}" COMPONENT client
        INCLUDES DESTINATION "${client_include}")
install(DIRECTORY "${PROJECT_BINARY_DIR}/proto/docmem" DESTINATION "${client_include}"
        COMPONENT client FILES_MATCHING PATTERN "*.pb.h")
install(EXPORT docmem-targets NAMESPACE docmem:: DESTINATION "${client_package}" COMPONENT client)
configure_file("${CMAKE_CURRENT_LIST_DIR}/docmem-config.cmake.in" docmem-config.cmake @ONLY)
write_basic_package_version_file(docmem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/docmem-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/docmem-config-version.cmake"
        DESTINATION "${client_package}" COMPONENT client)
