#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "adapter_store/adapter_store.h"
#include "adapter_store/resident_core.h"
#include "adapter_store/types.h"
#include "docmem/v1/adapter.pb.h"
#include "docmem/v1/collection.pb.h"
#include "docmem/v1/common.pb.h"
#include "docmem/v1/document.pb.h"
#include "engine/artifacts/mode.h"
#include "engine/compression/profile.h"

namespace docmem::server {

// Our plain structs as messages and back. What a message leaves unset is nothing here.

google::protobuf::Timestamp ToMessage(absl::Time time);

v1::Mode ToMessage(engine::Mode mode);
std::optional<engine::Mode> FromMessage(v1::Mode mode);

v1::AdapterScope ToMessage(engine::AdapterScope scope);
std::optional<engine::AdapterScope> FromMessage(v1::AdapterScope scope);

/// By the profile's name in a registry row; unspecified for any other text.
v1::Profile ProfileToMessage(const std::string& name);
std::optional<engine::Profile> FromMessage(v1::Profile profile);

/// By its name in a registry row; unspecified for any other text.
v1::KvDtype KvDtypeToMessage(const std::string& name);

v1::Tier ToMessage(store::Tier tier);
v1::ArtifactKind ToMessage(store::ResidentKind kind);

v1::Collection ToMessage(const store::Collection& collection);
v1::Cache ToMessage(const store::Cache& cache);
/// `evaluation` bytes that aren't an Evaluation message are left out.
v1::Document ToMessage(const store::Document& document);
/// `spec.description` is what `DescribeModules` has made.
v1::Adapter ToMessage(const store::Adapter& adapter);

}  // namespace docmem::server
