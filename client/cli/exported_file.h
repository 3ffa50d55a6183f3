#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "docmem/v1/document.pb.h"

namespace docmem::cli {

/// Exports a document into a file, which appears under its name only when it is whole and checked;
/// how many bytes it has. Progress begins with `label`.
absl::StatusOr<uint64_t> WriteExportedFile(const Session& session,
                                           const v1::ExportDocumentRequest& request,
                                           const std::string& path, const std::string& label);

}  // namespace docmem::cli
