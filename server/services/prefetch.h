#pragma once

#include "absl/status/status.h"
#include "adapter_store/adapter_store.h"
#include "docmem/v1/document.pb.h"
#include "server/interceptors/call.h"
#include "server/runtime/residency.h"

namespace docmem::server {

/// Loads the documents' memories as the request says and fills the response with where each is
/// then. With `wait` it blocks until all is loaded or the call's deadline has passed; loads go on
/// then.
absl::Status PrefetchDocuments(Call& call, store::AdapterStore& store, Residency& residency,
                               const v1::PrefetchRequest& request, v1::PrefetchResponse* response);

}  // namespace docmem::server
