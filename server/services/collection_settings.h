#pragma once

#include "absl/status/status.h"
#include "adapter_store/types.h"
#include "docmem/v1/collection.pb.h"
#include "google/protobuf/field_mask.pb.h"

namespace docmem::server {

/// Copies the fields that `mask` names from a message into settings; a named field that the message
/// doesn't set gets its default. INVALID_ARGUMENT naming the field for an unknown path or a bad
/// value; then `settings` is unspecified.
absl::Status ApplySettings(const v1::CollectionSettings& from,
                           const google::protobuf::FieldMask& mask,
                           store::CollectionSettings* settings);

/// The mask of all fields.
google::protobuf::FieldMask AllSettingsMask();

}  // namespace docmem::server
