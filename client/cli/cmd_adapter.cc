#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/adapter_client.h"
#include "client/cli/adapter_view.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/cli/table.h"

namespace docmem::cli {
namespace {

class AdapterListCommand final : public Command {
 public:
  AdapterListCommand() : Command("list", "List a document's adapters, the newest first") {
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::ListAdaptersRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    client::AdapterClient client(session.connection());
    std::vector<v1::Adapter> adapters;
    do {
      const auto page = client.List(request, session.call());
      if (!page.ok()) return page.status();
      adapters.insert(adapters.end(), page->adapters().begin(), page->adapters().end());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    if (session.json()) {
      session.PrintJson(JsonObject({{"adapters", JsonArrayOf(adapters)}}));
    } else {
      Print(adapters, session.out());
    }
    return absl::OkStatus();
  }

 private:
  static void Print(const std::vector<v1::Adapter>& adapters, std::ostream& out) {
    Table table({">VERSION", "STATE", "CURRENT", "SCOPE", ">DISK", ">DEVICE", "CREATED", "HASH"});
    for (const v1::Adapter& adapter : adapters) {
      table.Add({absl::StrCat(adapter.version()), NameOf(adapter.state()),
                 adapter.current() ? "yes" : "no", NameOf(adapter.scope()),
                 FormatBytes(adapter.stored_bytes()), FormatBytes(adapter.device_bytes()),
                 FormatTime(adapter.create_time()), adapter.hash()});
    }
    table.Print(out);
  }

  std::string document_;
  std::string collection_;
};

class AdapterShowCommand final : public Command {
 public:
  AdapterShowCommand() : Command("show", "Show an adapter") {
    arguments().Positional(Text("ID", &document_), "The document");
    arguments().Option("--adapter", Number("VERSION", &version_),
                       "The version; else the current one");
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::GetAdapterRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.set_version(version_);
    client::AdapterClient client(session.connection());
    return session.Show(client.Get(request, session.call()),
                        [&](const v1::Adapter& adapter) { PrintAdapter(adapter, session.out()); });
  }

 private:
  std::string document_;
  uint32_t version_ = 0;
  std::string collection_;
};

class AdapterUseCommand final : public Command {
 public:
  AdapterUseCommand() : Command("use", "Choose the adapter version that answers, or none") {
    Usage("ID VERSION [options]");
    Usage("ID --none [options]");
    arguments().Positional(Text("ID", &document_), "The document");
    arguments().Positional(Number("VERSION", &version_), "The version").required = false;
    arguments().Flag("--none", &none_, "No adapter answers");
    DeclareCollection(&arguments(), &collection_);
    arguments().Option("--revision", Number("N", &revision_),
                       "Refuse if the document has another revision");
  }

  absl::Status Run(Session& session) override {
    if (none_ == (version_ > 0)) return UsageError("give a VERSION from 1, or --none");
    v1::SetCurrentAdapterRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.set_version(version_);
    request.set_revision(revision_);
    client::AdapterClient client(session.connection());
    return session.Show(client.SetCurrent(request, session.call()),
                        [&](const v1::SetCurrentAdapterResponse& reply) {
                          session.out() << document_ << ": " << Name(reply.current_version())
                                        << ", before " << Name(reply.previous_version()) << '\n';
                        });
  }

 private:
  static std::string Name(uint32_t version) {
    return version == 0 ? "no adapter" : absl::StrCat("adapter ", version);
  }

  std::string document_;
  uint32_t version_ = 0;
  bool none_ = false;
  std::string collection_;
  uint64_t revision_ = 0;
};

class AdapterDeleteCommand final : public Command {
 public:
  AdapterDeleteCommand() : Command("delete", "Delete an adapter version that isn't current") {
    arguments().Positional(Text("ID", &document_), "The document");
    arguments().Positional(Number("VERSION", &version_), "The version");
    DeclareCollection(&arguments(), &collection_);
    arguments().Flag("--allow-missing", &allow_missing_, "An absent version is no error");
  }

  absl::Status Run(Session& session) override {
    v1::DeleteAdapterRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.set_version(version_);
    request.set_allow_missing(allow_missing_);
    client::AdapterClient client(session.connection());
    return session.Show(
        client.Delete(request, session.call()), [&](const v1::DeleteAdapterResponse& reply) {
          session.out() << document_ << ": adapter " << version_
                        << (reply.deleted() ? " deleted" : " not there");
          if (reply.deleted_caches() > 0) {
            session.out() << " with " << FormatCount(reply.deleted_caches(), "cache");
          }
          session.out() << '\n';
        });
  }

 private:
  std::string document_;
  uint32_t version_ = 0;
  std::string collection_;
  bool allow_missing_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeAdapterGroup() {
  auto group =
      std::make_unique<CommandGroup>("adapter", "Bring in and choose a document's adapters");
  group->Add(MakeAdapterUploadCommand());
  group->Add(std::make_unique<AdapterListCommand>());
  group->Add(std::make_unique<AdapterShowCommand>());
  group->Add(MakeAdapterDownloadCommand());
  group->Add(std::make_unique<AdapterUseCommand>());
  group->Add(std::make_unique<AdapterDeleteCommand>());
  return group;
}

}  // namespace docmem::cli
