#include "server/ingest/archives.h"

#include <map>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "adapter_store/archive_reader.h"
#include "adapter_store/document_import.h"
#include "engine/engine.h"
#include "engine/formats/digest.h"
#include "engine/text/unicode.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/runtime/cache_artifact.h"

namespace docmem::server {
namespace {

constexpr char kModelName[] = "name";

// What a document's memories depend on; the name is only for people.
std::map<std::string, std::string> ModelOf(const engine::Engine& engine) {
  const engine::ModelIdentity& identity = engine.identity();
  return {{kModelName, engine.config().name},
          {"weights_digest", identity.weights_digest},
          {"config_digest", identity.config_digest},
          {"tokenizer_digest", identity.tokenizer_digest},
          {"dtype", identity.dtype},
          {"prompt_format_digest", engine.prompt_format().digest()}};
}

absl::Status CheckModel(const std::map<std::string, std::string>& archived,
                        const std::map<std::string, std::string>& running) {
  for (const auto& [field, value] : running) {
    if (field == kModelName) continue;
    const auto found = archived.find(field);
    if (found == archived.end()) {
      return store::ArchiveInvalid(absl::StrCat("the manifest's model lacks ", field));
    }
    if (found->second == value) continue;
    const auto name = archived.find(kModelName);
    return Error(absl::StatusCode::kFailedPrecondition, reason::kIdentityMismatch,
                 absl::StrCat(field, ": the document was exported from model '",
                              name == archived.end() ? "" : name->second, "' with ", found->second,
                              ", this is '", running.at(kModelName), "' with ", value,
                              "; import it where the same model runs, or ingest its text here"),
                 {{"field", field}});
  }
  return absl::OkStatus();
}

// Those that a cache's head can be made with again: the format's own, the document's, the caches'.
std::set<std::string> KnownSystemTexts(const engine::Engine& engine,
                                       const store::DocumentSpec& spec,
                                       std::set<std::string> of_caches) {
  of_caches.insert(spec.system_text);
  of_caches.erase("");
  of_caches.insert(engine.prompt_format().default_system_text());
  return of_caches;
}

// Whether each cache can be compared with the text when it is imported.
absl::Status CheckSystemTexts(const engine::Engine& engine, const store::Document& document) {
  if (!document.text) return absl::OkStatus();
  std::set<std::string> texts;
  for (const store::Cache& cache : document.caches) texts.insert(cache.spec.system_text);
  std::set<std::string> known;
  for (const std::string& text : KnownSystemTexts(engine, document.spec, std::move(texts))) {
    known.insert(engine::Sha256Hex(text));
  }
  for (const store::Cache& cache : document.caches) {
    if (known.contains(cache.spec.system_text_digest)) continue;
    return Error(absl::StatusCode::kFailedPrecondition, reason::kIdentityMismatch,
                 absl::StrCat("cache ", cache.spec.id,
                              " has another system text than the document's, and an earlier "
                              "version of docmemd stored only its digest: no import could compare "
                              "it with the document's text; "
                              "delete that cache, export, and build it again"),
                 {{"field", "system_text_digest"}, {"cache", cache.spec.id}});
  }
  return absl::OkStatus();
}

absl::Status TooLarge(const std::string& what, uint64_t bytes, uint64_t limit) {
  return Error(absl::StatusCode::kInvalidArgument, reason::kLimitExceeded,
               absl::StrCat(what, " has ", bytes, " bytes, at most ", limit, " are allowed"));
}

class IncomingArchiveImpl final : public IncomingArchive, private store::ArchiveSink {
 public:
  IncomingArchiveImpl(const Archives::Parts& parts, ImportRequest request)
      : parts_(parts), request_(std::move(request)) {}

  absl::Status Take(std::string_view bytes) override { return reader_.Take(bytes); }
  absl::StatusOr<store::Document> Publish() override;

 private:
  absl::Status OnManifest(const store::ArchiveManifest& manifest) override;
  absl::Status OnPart(const store::ArchivePart& part, std::string bytes) override;
  absl::Status CheckSizes() const;
  absl::Status TakeText(const std::string& text);
  absl::Status CheckContext(const store::ArchiveCache& cache,
                            const engine::CacheIdentity& identity) const;
  absl::Status TakeAdapter(const store::ArchiveAdapter& adapter);
  absl::Status TakeCache(const store::ArchiveCache& cache, const std::string& bytes);

  const Archives::Parts parts_;
  ImportRequest request_;
  store::ArchiveReader reader_{this};
  const store::ArchiveManifest* manifest_ = nullptr;  // the reader's
  std::unique_ptr<store::DocumentImport> import_;
  // Of the archive's text behind each system text that is known, by that one's digest; empty
  // without the text.
  std::map<std::string, std::string> context_digests_;
  AdapterUpload upload_;  // the adapter whose files are coming
};

absl::Status IncomingArchiveImpl::OnManifest(const store::ArchiveManifest& manifest) {
  manifest_ = &manifest;
  absl::Status status = CheckModel(manifest.model, ModelOf(*parts_.engine));
  status.Update(CheckSizes());
  if (!status.ok()) return status;
  if (request_.key.id.empty()) request_.key.id = manifest.key.id;
  auto import = parts_.store->BeginImport(request_.key, request_.replaces);
  if (import.ok()) import_ = *std::move(import);
  return import.status();
}

absl::Status IncomingArchiveImpl::CheckSizes() const {
  if (manifest_->spec.text_bytes > request_.max_text_bytes) {
    return TooLarge("the text", manifest_->spec.text_bytes, request_.max_text_bytes);
  }
  for (const store::ArchiveAdapter& adapter : manifest_->adapters) {
    uint64_t left = request_.max_adapter_bytes;
    for (const store::ArchiveFile& file : adapter.files) {
      if (file.bytes > left) return TooLarge("an adapter", file.bytes, request_.max_adapter_bytes);
      left -= file.bytes;
    }
  }
  const uint64_t max_cache = parts_.engine->CacheBytes(parts_.engine->config().max_positions);
  for (const store::ArchiveCache& cache : manifest_->caches) {
    if (cache.file.bytes > max_cache) return TooLarge("a cache", cache.file.bytes, max_cache);
  }
  return absl::OkStatus();
}

absl::Status IncomingArchiveImpl::OnPart(const store::ArchivePart& part, std::string bytes) {
  if (part.cache != nullptr) return TakeCache(*part.cache, bytes);
  if (part.adapter == nullptr) return TakeText(bytes);
  upload_.files[part.file->name] = std::move(bytes);
  if (part.file != &part.adapter->files.back()) return absl::OkStatus();
  const absl::Status status = TakeAdapter(*part.adapter);
  upload_.files.clear();
  return status;
}

absl::Status IncomingArchiveImpl::TakeText(const std::string& text) {
  if (engine::Sha256Hex(text) != manifest_->spec.text_sha256) {
    return store::ArchiveInvalid("the text's SHA-256 differs from the manifest's");
  }
  if (text.empty() || !engine::IsValidUtf8(text)) {
    return store::ArchiveInvalid("the text is empty or isn't UTF-8");
  }
  std::set<std::string> texts;
  for (const store::ArchiveCache& cache : manifest_->caches) texts.insert(cache.system_text);
  for (const std::string& system_text :
       KnownSystemTexts(*parts_.engine, manifest_->spec, std::move(texts))) {
    const absl::StatusOr<engine::Context> context =
        CatchEngine([&] { return parts_.engine->EncodeContext(system_text, text, 0); });
    if (!context.ok()) return context.status();
    context_digests_[engine::Sha256Hex(system_text)] = engine::ContextDigest(context->ids);
  }
  return import_->AddText(text);
}

absl::Status IncomingArchiveImpl::CheckContext(const store::ArchiveCache& cache,
                                               const engine::CacheIdentity& identity) const {
  if (!manifest_->text) return absl::OkStatus();
  const auto known = context_digests_.find(cache.system_text_digest);
  if (known == context_digests_.end()) {
    return store::ArchiveInvalid(
        absl::StrCat("cache ", cache.id,
                     " has a system text that isn't in the archive, so that it can't be "
                     "compared with the document's text"));
  }
  if (known->second == identity.context_digest) return absl::OkStatus();
  return store::ArchiveInvalid(
      absl::StrCat("cache ", cache.id, " was made from another text than the document's"));
}

absl::Status IncomingArchiveImpl::TakeAdapter(const store::ArchiveAdapter& adapter) {
  const auto scope = engine::ScopeFromName(adapter.scope);
  if (!scope) return store::ArchiveInvalid("the manifest has an adapter of an unknown scope");
  upload_.scope = *scope;
  // The model's name may differ where its digests don't.
  upload_.allow_other_base = true;
  upload_.prompt_format_digest = adapter.prompt_format_digest;
  upload_.text_digest = adapter.text_digest;
  const absl::StatusOr<PackedUpload> packed = parts_.intake->Pack(upload_);
  if (!packed.ok()) return packed.status();
  if (packed->spec.hash != adapter.hash) {
    return store::ArchiveInvalid(
        absl::StrCat("adapter version ", adapter.version, " isn't the one that its hash names"));
  }
  store::ImportedAdapter imported{.version = adapter.version,
                                  .state = adapter.state,
                                  .spec = packed->spec,
                                  .files = FilesOf(upload_),
                                  .packed = FileOf(*packed)};
  imported.spec.training_job_id = adapter.training_job_id;
  return import_->AddAdapter(imported);
}

absl::Status IncomingArchiveImpl::TakeCache(const store::ArchiveCache& cache,
                                            const std::string& bytes) {
  const auto file = std::as_bytes(std::span(bytes));
  const auto loaded =
      CatchEngine([&] { return parts_.engine->LoadCache({.owner = nullptr, .bytes = file}); });
  if (absl::IsDataLoss(loaded.status())) {
    return store::ArchiveInvalid(
        absl::StrCat("cache ", cache.id, " is damaged: ", loaded.status().message()));
  }
  if (!loaded.ok()) return loaded.status();
  store::NewCache imported{CacheSpecOf(*parts_.engine, **loaded),
                           store::FileFromMemory(kCacheFileName, file)};
  imported.spec.system_text = cache.system_text;
  imported.spec.system_text_digest = cache.system_text_digest;
  const store::CacheSpec& spec = imported.spec;
  if (spec.id != cache.id || spec.context_tokens - spec.head_tokens != manifest_->document_tokens) {
    return store::ArchiveInvalid(
        absl::StrCat("cache ", cache.id, " isn't what the manifest says of it"));
  }
  absl::Status status = CheckContext(cache, (*loaded)->identity());
  if (!status.ok()) return status;
  return import_->AddCache(imported);
}

absl::StatusOr<store::Document> IncomingArchiveImpl::Publish() {
  if (absl::Status status = reader_.Finish(); !status.ok()) return status;
  absl::StatusOr<store::Document> document =
      import_->Publish({.spec = manifest_->spec,
                        .document_tokens = manifest_->document_tokens,
                        .default_cache_id = manifest_->default_cache_id,
                        .current_adapter_version = manifest_->current_adapter_version,
                        .evaluation = manifest_->evaluation});
  if (!document.ok()) return document;
  parts_.residency->ForgetDocument(document->key);
  if (!document->spec.pinned) return document;
  absl::StatusOr<store::Adapter> current = absl::NotFoundError("none");
  if (document->current_adapter_version != 0) current = parts_.store->GetAdapter(document->key, 0);
  parts_.residency->SetPins(*document, current.ok() ? &*current : nullptr);
  return document;
}

}  // namespace

absl::StatusOr<std::unique_ptr<store::ArchiveWriter>> Archives::Export(
    const store::DocumentKey& key) const {
  const absl::StatusOr<store::Document> document = parts_.store->GetDocument(key);
  absl::Status status = document.status();
  if (status.ok()) status = CheckSystemTexts(*parts_.engine, *document);
  if (!status.ok()) return status;
  return store::ArchiveWriter::Open(parts_.store, key, ModelOf(*parts_.engine));
}

std::unique_ptr<IncomingArchive> Archives::Import(ImportRequest request) const {
  return std::make_unique<IncomingArchiveImpl>(parts_, std::move(request));
}

}  // namespace docmem::server
