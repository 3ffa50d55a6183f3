#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/names.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/cli/table.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class PrefetchCommand final : public Command {
 public:
  PrefetchCommand() : Command("prefetch", "Load documents' memories ahead of questions") {
    arguments().Positional(Texts("ID", &documents_), "The documents");
    DeclareCollection(&arguments(), &collection_);
    arguments().Option("--cache", Text("CACHE", &cache_id_),
                       "Load this cache, of one document; else the default ones");
    arguments().Flag("--adapter", &adapter_, "Load the current adapters too");
    arguments().Option("--tier", OneOf("TIER", &tier_), "Where to load them; else device");
    arguments().Flag("--wait", &wait_, "Return only when all is loaded");
  }

  absl::Status Run(Session& session) override {
    v1::PrefetchRequest request;
    request.set_collection(collection_);
    request.mutable_documents()->Assign(documents_.begin(), documents_.end());
    request.set_cache_id(cache_id_);
    request.set_adapter(adapter_);
    request.set_tier(tier_);
    request.set_wait(wait_);
    client::DocumentClient client(session.connection());
    return session.Show(client.Prefetch(request, session.call()),
                        [&](const v1::PrefetchResponse& reply) {
                          Table table({"DOCUMENT", "KIND", "TIER", ">BYTES", "ID"});
                          for (const auto& item : reply.items()) {
                            table.Add({item.document(), NameOf(item.kind()), NameOf(item.tier()),
                                       FormatBytes(item.bytes()), item.id()});
                          }
                          table.Print(session.out());
                        });
  }

 private:
  std::vector<std::string> documents_;
  std::string collection_;
  std::string cache_id_;
  bool adapter_ = false;
  v1::Tier tier_ = v1::TIER_UNSPECIFIED;
  bool wait_ = false;
};

}  // namespace

std::unique_ptr<Command> MakePrefetchCommand() { return std::make_unique<PrefetchCommand>(); }

}  // namespace docmem::cli
