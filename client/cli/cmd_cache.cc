#include <string>

#include "client/cli/build_arguments.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/document_view.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class CacheBuildCommand final : public Command {
 public:
  CacheBuildCommand() : Command("build", "Build caches from a document's retained text") {
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
    build_.Declare(&arguments());
    arguments().Option("--mode", OneOf("MODE", &mode_),
                       "Who writes and scores the cache; else the base model");
    arguments().Option("--adapter", Number("VERSION", &adapter_version_),
                       "For adapter-prefill modes: this version; else the current one");
  }

  absl::Status Run(Session& session) override {
    v1::BuildCacheRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.set_mode(mode_);
    request.set_adapter_version(adapter_version_);
    if (absl::Status status = build_.Fill(&request); !status.ok()) return status;
    client::DocumentClient client(session.connection());
    ProgressLine line(session.terminal());
    const auto result = client.BuildCache(
        request, [&](const v1::BuildProgress& progress) { ShowBuildProgress(progress, &line); },
        session.call());
    line.Clear();
    return session.Show(result, [&](const v1::BuildCacheResult& done) {
      session.out() << FormatCount(static_cast<uint64_t>(done.built_cache_ids_size()), "cache")
                    << " built\n";
      PrintCaches(done.caches(), "", session.out());
    });
  }

 private:
  std::string document_;
  std::string collection_;
  BuildArguments build_;
  v1::Mode mode_ = v1::MODE_UNSPECIFIED;
  uint32_t adapter_version_ = 0;
};

class CacheListCommand final : public Command {
 public:
  CacheListCommand() : Command("list", "List a document's caches") {
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::GetDocumentRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    client::DocumentClient client(session.connection());
    const absl::StatusOr<v1::Document> document = client.Get(request, session.call());
    if (!document.ok()) return document.status();
    if (session.json()) {
      session.PrintJson(JsonObject({{"caches", JsonArrayOf(document->caches())},
                                    {"defaultCacheId", JsonString(document->default_cache_id())}}));
    } else {
      PrintCaches(document->caches(), document->default_cache_id(), session.out());
    }
    return absl::OkStatus();
  }

 private:
  std::string document_;
  std::string collection_;
};

class CacheDeleteCommand final : public Command {
 public:
  CacheDeleteCommand() : Command("delete", "Delete one cache of a document") {
    arguments().Positional(Text("ID", &document_), "The document");
    arguments().Positional(Text("CACHE", &cache_id_), "The cache's id");
    DeclareCollection(&arguments(), &collection_);
    arguments().Flag("--allow-missing", &allow_missing_, "An absent cache is no error");
  }

  absl::Status Run(Session& session) override {
    v1::DeleteCacheRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.set_cache_id(cache_id_);
    request.set_allow_missing(allow_missing_);
    client::DocumentClient client(session.connection());
    return session.Show(
        client.DeleteCache(request, session.call()), [&](const v1::DeleteCacheResponse& reply) {
          session.out() << cache_id_ << (reply.deleted() ? ": deleted\n" : ": not there\n");
        });
  }

 private:
  std::string document_;
  std::string cache_id_;
  std::string collection_;
  bool allow_missing_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCacheGroup() {
  auto group =
      std::make_unique<CommandGroup>("cache", "Build, list and delete a document's caches");
  group->Add(std::make_unique<CacheBuildCommand>());
  group->Add(std::make_unique<CacheListCommand>());
  group->Add(std::make_unique<CacheDeleteCommand>());
  return group;
}

}  // namespace docmem::cli
