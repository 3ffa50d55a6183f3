#pragma once

namespace docmem::server {

/// Of the program, from the build.
inline constexpr char kVersion[] = DOCMEM_VERSION;

/// Of the wire contract; grows with every addition to it.
inline constexpr int kApiRevision = 1;

}  // namespace docmem::server
