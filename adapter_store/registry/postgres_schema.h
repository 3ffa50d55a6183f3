#pragma once

#include <span>

namespace docmem::store {

/// Step i brings the tables from version i to i + 1; an empty schema takes all of them. A released
/// step never changes. Versions are PostgreSQL's own, not those of SQLite.
std::span<const char* const> PostgresMigrations();

}  // namespace docmem::store
