# `cpack` in a build folder makes a Debian package of what was built there: docs/debian.md. It needs
# dpkg-dev and file, which find out what the package depends on.
set(CPACK_GENERATOR DEB)
set(CPACK_INSTALL_CMAKE_PROJECTS
    "${PROJECT_BINARY_DIR};docmem;runtime;/;${PROJECT_BINARY_DIR};docmem;service;/")
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR ON)  # for /etc
set(CPACK_INSTALL_PREFIX /usr)

set(CPACK_PACKAGE_CONTACT "whoever built it <root@localhost>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    "${Libtorch_LIBRARY_DIR}" "${Libtorch_NVIDIA_LIBRARY_DIR}")
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)  # xz takes minutes for libtorch
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/deploy/debian/conffiles"
    "${PROJECT_SOURCE_DIR}/deploy/debian/postinst"
    "${PROJECT_SOURCE_DIR}/deploy/debian/prerm"
    "${PROJECT_SOURCE_DIR}/deploy/debian/postrm")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
