#include "adapter_store/registry/sqlite_schema.h"

namespace docmem::store {
namespace {

// Times are microseconds since 1970, sizes bytes. `checksum` guards all other columns but `id`.
constexpr char kVersion1[] = R"sql(
CREATE TABLE settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE collections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  retain_text INTEGER NOT NULL,
  lexical_index INTEGER NOT NULL,
  max_in_flight INTEGER NOT NULL,
  max_queued INTEGER NOT NULL,
  max_bytes INTEGER NOT NULL,
  max_documents INTEGER NOT NULL,
  default_ratio_ppm INTEGER NOT NULL,
  default_mode TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE documents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  collection_id INTEGER NOT NULL REFERENCES collections (id),
  name TEXT NOT NULL,
  state INTEGER NOT NULL,
  state_reason TEXT NOT NULL,
  builder TEXT NOT NULL,
  title TEXT NOT NULL,
  pinned INTEGER NOT NULL,
  system_text TEXT NOT NULL,
  text_sha256 TEXT NOT NULL,
  text_bytes INTEGER NOT NULL,
  document_tokens INTEGER NOT NULL,
  default_cache_id TEXT NOT NULL,
  current_adapter INTEGER NOT NULL,
  last_adapter INTEGER NOT NULL,
  evaluation TEXT NOT NULL,
  revision INTEGER NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE (collection_id, name)
) STRICT;
CREATE INDEX documents_by_age ON documents (collection_id, id);

CREATE TABLE labels (
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (document_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX labels_by_value ON labels (key, value, document_id);

CREATE TABLE caches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  identity TEXT NOT NULL,
  ratio_ppm INTEGER NOT NULL,
  profile TEXT NOT NULL,
  kv_dtype TEXT NOT NULL,
  writer_adapter TEXT NOT NULL,
  scorer_adapter TEXT NOT NULL,
  system_text_digest TEXT NOT NULL,
  head_tokens INTEGER NOT NULL,
  context_tokens INTEGER NOT NULL,
  kept_tokens INTEGER NOT NULL,
  device_bytes INTEGER NOT NULL,
  full_bytes INTEGER NOT NULL,
  created INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE (document_id, name)
) STRICT;

CREATE TABLE adapters (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  hash TEXT NOT NULL,
  scope TEXT NOT NULL,
  base_model TEXT NOT NULL,
  description TEXT NOT NULL,
  max_rank INTEGER NOT NULL,
  prompt_format_digest TEXT NOT NULL,
  text_digest TEXT NOT NULL,
  training_job_id TEXT NOT NULL,
  device_bytes INTEGER NOT NULL,
  state INTEGER NOT NULL,
  created INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE (document_id, version),
  UNIQUE (document_id, hash)
) STRICT;

-- Files in place. Cache and adapter are null where the file belongs to the document itself.
CREATE TABLE files (
  id INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  cache_id INTEGER REFERENCES caches (id) ON DELETE CASCADE,
  adapter_id INTEGER REFERENCES adapters (id) ON DELETE CASCADE,
  role INTEGER NOT NULL,
  name TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  digest TEXT NOT NULL,
  quarantine TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX files_by_document ON files (document_id, bytes);
CREATE INDEX files_by_cache ON files (cache_id);
CREATE INDEX files_by_adapter ON files (adapter_id);

-- What is being published or deleted: names files that may lie on the disk without a row.
CREATE TABLE intents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  action INTEGER NOT NULL,
  instance TEXT NOT NULL,
  generation INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;

-- Gives files their ids: each is used once in the life of the registry.
CREATE TABLE intent_files (
  file_id INTEGER PRIMARY KEY AUTOINCREMENT,
  intent_id INTEGER NOT NULL REFERENCES intents (id) ON DELETE CASCADE,
  kind INTEGER NOT NULL
) STRICT;
CREATE INDEX intent_files_by_intent ON intent_files (intent_id);
)sql";

// Jobs that train adapters, and the files of their checkpoints.
constexpr char kVersion2[] = R"sql(
CREATE TABLE training_jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  state INTEGER NOT NULL,
  request TEXT NOT NULL,
  report TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX training_jobs_by_document ON training_jobs (document_id, state);

-- Guarded by the checksum as if it stood before it.
ALTER TABLE files ADD COLUMN job_id INTEGER REFERENCES training_jobs (id) ON DELETE CASCADE;
CREATE INDEX files_by_job ON files (job_id);
)sql";

// What the head of a cache was made with, so that an import can make it again.
constexpr char kVersion3[] = R"sql(
-- Guarded by the checksum as if it stood before it.
ALTER TABLE caches ADD COLUMN system_text TEXT;
)sql";

// How often words occur in the documents of collections with a lexical index. `term` and
// `in_chunks` are those of adapter_store/lexical/word_counts.h.
constexpr char kVersion4[] = R"sql(
CREATE TABLE word_documents (
  document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
  collection_id INTEGER NOT NULL REFERENCES collections (id),
  words INTEGER NOT NULL,
  chunks INTEGER NOT NULL
) STRICT;
CREATE INDEX word_documents_by_collection ON word_documents (collection_id, words, chunks);

CREATE TABLE word_postings (
  collection_id INTEGER NOT NULL,
  term INTEGER NOT NULL,
  document_id INTEGER NOT NULL REFERENCES word_documents (document_id) ON DELETE CASCADE,
  words INTEGER NOT NULL,
  in_title INTEGER NOT NULL,
  in_chunks TEXT NOT NULL,
  PRIMARY KEY (collection_id, term, document_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX word_postings_by_document ON word_postings (document_id);
)sql";

// Which instance works on a training, and until when nobody else may.
constexpr char kVersion5[] = R"sql(
CREATE TABLE training_claims (
  job_id INTEGER PRIMARY KEY REFERENCES training_jobs (id) ON DELETE CASCADE,
  instance TEXT NOT NULL,
  expires INTEGER NOT NULL
) STRICT;
CREATE INDEX training_jobs_open ON training_jobs (id) WHERE state < 3;
)sql";

constexpr const char* kMigrations[] = {kVersion1, kVersion2, kVersion3, kVersion4, kVersion5};

}  // namespace

std::span<const char* const> SqliteMigrations() { return kMigrations; }

}  // namespace docmem::store
