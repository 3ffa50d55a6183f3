-- A registry as version 1 of the schema left it, by sqlite3's .dump.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
INSERT INTO settings VALUES('generation.5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a','1');
INSERT INTO settings VALUES('dtype','float32');
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
INSERT INTO collections VALUES(1,'default',1,0,0,0,0,0,900000,'',1,1767225600000000,1767225600000000,8742779969525489743);
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
INSERT INTO documents VALUES(1,1,'contract',2,'','','Social Contract',1,'','734194ede5b063e654d63cb95a682ca1551b45e3cc86e88f1a85c1286eedd4ac',6,90,'0000000000000000000000000000000000000000000000000000000000000001',1,1,'',3,1767225600000000,1767225600000000,7180990844646960912);
CREATE TABLE labels (
  document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (document_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO labels VALUES(1,'lang','en');
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
INSERT INTO caches VALUES(1,1,'0000000000000000000000000000000000000000000000000000000000000001','{"kv_dtype":"float32"}',900000,'compactor','float32','','','',10,100,19,4096,40960,1767225600000000,8157947560604277248);
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
INSERT INTO adapters VALUES(1,1,1,'0000000000000000000000000000000000000000000000000000000000000001','FROM_BRIDGE','tiny','',8,'','','',1024,1,1767225600000000,7577036566458455938);
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
INSERT INTO files VALUES(1,1,1,NULL,2,'cache',5,'95f64cad147d23ee983871c230125b12','',237631476757498519);
INSERT INTO files VALUES(2,1,NULL,NULL,1,'text.zst',19,'7644ca2f2cf4296d50f38adf69986814','',1253562788612684969);
INSERT INTO files VALUES(3,1,NULL,1,3,'adapter_config.json',2,'dc7048f8f8747f561349cde127705c16','',5508870105958940160);
INSERT INTO files VALUES(4,1,NULL,1,3,'adapter_model.safetensors',7,'bdbda1eb6e05adc4800d98e5524fefbc','',-2453056475705713972);
INSERT INTO files VALUES(5,1,NULL,1,4,'packed',14,'5acb69613593195584943abe5b474cd2','',-8691726231875192384);
CREATE TABLE intents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  action INTEGER NOT NULL,
  instance TEXT NOT NULL,
  generation INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;
CREATE TABLE intent_files (
  file_id INTEGER PRIMARY KEY AUTOINCREMENT,
  intent_id INTEGER NOT NULL REFERENCES intents (id) ON DELETE CASCADE,
  kind INTEGER NOT NULL
) STRICT;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('collections',1);
INSERT INTO sqlite_sequence VALUES('documents',1);
INSERT INTO sqlite_sequence VALUES('intents',2);
INSERT INTO sqlite_sequence VALUES('intent_files',5);
INSERT INTO sqlite_sequence VALUES('caches',1);
INSERT INTO sqlite_sequence VALUES('adapters',1);
CREATE INDEX documents_by_age ON documents (collection_id, id);
CREATE INDEX labels_by_value ON labels (key, value, document_id);
CREATE INDEX files_by_document ON files (document_id, bytes);
CREATE INDEX files_by_cache ON files (cache_id);
CREATE INDEX files_by_adapter ON files (adapter_id);
CREATE INDEX intent_files_by_intent ON intent_files (intent_id);
COMMIT;
PRAGMA user_version=1;
