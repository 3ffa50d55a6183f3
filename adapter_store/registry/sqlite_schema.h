#pragma once

#include <span>

namespace docmem::store {

/// Step i brings a database from version i to i + 1; a new database takes all of them. A released
/// step never changes.
std::span<const char* const> SqliteMigrations();

}  // namespace docmem::store
