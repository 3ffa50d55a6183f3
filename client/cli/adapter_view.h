#pragma once

#include <ostream>

#include "docmem/v1/adapter.pb.h"

namespace docmem::cli {

/// Everything about an adapter, for people.
void PrintAdapter(const v1::Adapter& adapter, std::ostream& out);

}  // namespace docmem::cli
