#include "adapter_store/registry/registry.h"

namespace docmem::store {

absl::Status Sql::Execute(const std::string& statement, const std::vector<SqlValue>& parameters) {
  return Query(statement, parameters, [](const SqlRow&) { return absl::OkStatus(); });
}

}  // namespace docmem::store
