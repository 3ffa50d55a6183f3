-- A registry as version 4 of the schema left it, with the words of a document, by sqlite3's .dump.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
  checksum INTEGER NOT NULL, system_text TEXT,
  UNIQUE (document_id, name)
) STRICT;
INSERT INTO "caches" VALUES(1,1,'0da4a07a1c29764351cc8f32afb7a4b1bc2c8af30633039bbd8353382fe7e549','{"config_digest":"28d00e114537240d8368102d90c405558f31e7051435b0c8cbe5acc80ba794dc","context_digest":"984a7f416e765ee623d182fcdf4c0834fc85cc39318584edf152fd5e8af4c8de","context_tokens":"88","dtype":"float32","format_version":"1","head_tokens":"47","kv_dtype":"float32","profile":"compactor;first=8;last=4;sketch=48;chunk=256;pool=3;blend=0.9;seed=0","ratio_ppm":"900000","scorer":"base","tokenizer_digest":"0f8b6e075c45d833fa4d8deddcdc831afdb01779922b8d7b9f99b0d2c1e74c40","weights_digest":"29a767500311661057096ccbad15345e986a0daca0822f305107223d75e8d80a","writer":"base"}',900000,'compactor','float32','','','921ea8e2219dee81c01dc3faa6ec9007fee2f4389e690f8f8c45c9a40a084807',47,88,51,110592,180224,1796091433420179,-7106034791874590588,NULL);
INSERT INTO "caches" VALUES(2,1,'a1a3c05bce7d01027b03cb5847c2ae611000e9f7d07aba72a76eb231e108f711','{"config_digest":"28d00e114537240d8368102d90c405558f31e7051435b0c8cbe5acc80ba794dc","context_digest":"4caf51a8d737baec8bb33db8034976074b556bb9affa181ec9788b76d3700231","context_tokens":"73","dtype":"float32","format_version":"1","head_tokens":"32","kv_dtype":"float32","profile":"compactor;first=8;last=4;sketch=48;chunk=256;pool=3;blend=0.5;seed=0","ratio_ppm":"500000","scorer":"base","tokenizer_digest":"0f8b6e075c45d833fa4d8deddcdc831afdb01779922b8d7b9f99b0d2c1e74c40","weights_digest":"29a767500311661057096ccbad15345e986a0daca0822f305107223d75e8d80a","writer":"base"}',500000,'compactor','float32','','','2c49a7a0d0d8870e1a43311e06f99490f43b5a976cf8a8cb6c7b4928fb0d3ed9',32,73,52,114688,149504,1796091433440460,8937577282667665158,'Answer in rhyme.');
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
INSERT INTO "collections" VALUES(1,'default',1,0,0,0,0,0,900000,'',1,1796091433359953,1796091433359953,-7089355784431096119);
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
INSERT INTO "documents" VALUES(1,1,'lamps',2,'','','Lamps',0,'','52267f295f7a7c1696b70b6228d97f829c314acf502f36e5d3354604a6a93e25',75,41,'0da4a07a1c29764351cc8f32afb7a4b1bc2c8af30633039bbd8353382fe7e549',0,0,'',3,1796091433404519,1796091433440538,8223607029255363738);
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
, job_id INTEGER REFERENCES training_jobs (id) ON DELETE CASCADE) STRICT;
INSERT INTO "files" VALUES(1,1,1,NULL,2,'cache.safetensors',109400,'ed8183954c5684e596287ce49d6d3bd0','',-2783483962103501487,NULL);
INSERT INTO "files" VALUES(2,1,NULL,NULL,1,'text.zst',80,'d2f5300351e4a6615b6affb73a364bc1','',6800826744246735621,NULL);
INSERT INTO "files" VALUES(3,1,2,NULL,2,'cache.safetensors',111464,'232de16b4d33596c803d37e9f46ab104','',-3798897438441460573,NULL);
CREATE TABLE intent_files (
  file_id INTEGER PRIMARY KEY AUTOINCREMENT,
  intent_id INTEGER NOT NULL REFERENCES intents (id) ON DELETE CASCADE,
  kind INTEGER NOT NULL
) STRICT;
CREATE TABLE intents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  action INTEGER NOT NULL,
  instance TEXT NOT NULL,
  generation INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;
CREATE TABLE labels (
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (document_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
INSERT INTO "settings" VALUES('generation.030cc5e2b7d3a56022ffdd944c101719','1');
INSERT INTO "settings" VALUES('dtype','float32');
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
CREATE TABLE word_documents (
  document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,
  collection_id INTEGER NOT NULL REFERENCES collections (id),
  words INTEGER NOT NULL,
  chunks INTEGER NOT NULL
) STRICT;
INSERT INTO "word_documents" VALUES(1,1,1,1);
CREATE TABLE word_postings (
  collection_id INTEGER NOT NULL,
  term INTEGER NOT NULL,
  document_id INTEGER NOT NULL REFERENCES word_documents (document_id) ON DELETE CASCADE,
  words INTEGER NOT NULL,
  in_title INTEGER NOT NULL,
  in_chunks TEXT NOT NULL,
  PRIMARY KEY (collection_id, term, document_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "word_postings" VALUES(1,77,1,1,0,'');
CREATE INDEX documents_by_age ON documents (collection_id, id);
CREATE INDEX labels_by_value ON labels (key, value, document_id);
CREATE INDEX files_by_document ON files (document_id, bytes);
CREATE INDEX files_by_cache ON files (cache_id);
CREATE INDEX files_by_adapter ON files (adapter_id);
CREATE INDEX intent_files_by_intent ON intent_files (intent_id);
CREATE INDEX training_jobs_by_document ON training_jobs (document_id, state);
CREATE INDEX files_by_job ON files (job_id);
CREATE INDEX word_documents_by_collection ON word_documents (collection_id, words, chunks);
CREATE INDEX word_postings_by_document ON word_postings (document_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('collections',1);
INSERT INTO "sqlite_sequence" VALUES('documents',1);
INSERT INTO "sqlite_sequence" VALUES('intents',2);
INSERT INTO "sqlite_sequence" VALUES('intent_files',3);
INSERT INTO "sqlite_sequence" VALUES('caches',2);
COMMIT;
PRAGMA user_version=4;
