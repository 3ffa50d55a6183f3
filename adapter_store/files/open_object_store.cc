#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/files/object_store.h"
#include "adapter_store/files/s3_object_store.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenObjectStore(const std::string& where) {
  if (absl::StartsWith(where, "s3://")) {
    STORE_ASSIGN_OR_RETURN(S3Place place, ParseS3Place(where, std::getenv));
    return S3ObjectStore(std::move(place));
  }
  if (absl::StartsWith(where, "/")) {
    // Made here it would be another place than the volume that isn't mounted yet.
    std::error_code ignored;
    if (!std::filesystem::is_directory(where, ignored)) {
      return absl::FailedPreconditionError(
          absl::StrCat("there is no folder '", where, "' for artifacts: is the volume mounted?"));
    }
    STORE_ASSIGN_OR_RETURN(std::shared_ptr<FileSystem> files, OpenPosixFileSystem(where));
    return FolderObjectStore(std::move(files));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", where,
      "' is no place for artifacts; it should be an absolute path or s3://BUCKET/PREFIX"));
}

}  // namespace docmem::store
