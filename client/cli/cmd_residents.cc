#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/admin_client.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/session.h"
#include "client/cli/table.h"

namespace docmem::cli {
namespace {

class ResidentsCommand final : public Command {
 public:
  ResidentsCommand() : Command("residents", "List what is loaded where") {
    arguments().Option("--tier", OneOf("TIER", &tier_), "Only this tier; else all but disk");
    arguments().Option("--kind", OneOf("KIND", &kind_), "Only this kind; else caches and adapters");
  }

  absl::Status Run(Session& session) override {
    v1::ListResidentRequest request;
    request.set_tier(tier_);
    request.set_kind(kind_);
    client::AdminClient client(session.connection());
    std::vector<v1::ResidentItem> items;
    do {
      const auto page = client.ListResident(request, session.call());
      if (!page.ok()) return page.status();
      items.insert(items.end(), page->items().begin(), page->items().end());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    if (session.json()) {
      session.PrintJson(JsonObject({{"items", JsonArrayOf(items)}}));
    } else {
      Print(items, session.out());
    }
    return absl::OkStatus();
  }

 private:
  static void Print(const std::vector<v1::ResidentItem>& items, std::ostream& out) {
    Table table({"DOCUMENT", "KIND", "TIER", ">BYTES", ">LEASES", "PINNED", "STATE", "ID"});
    for (const v1::ResidentItem& item : items) {
      table.Add({absl::StrCat(item.collection(), "/", item.document()), NameOf(item.kind()),
                 NameOf(item.tier()), FormatBytes(item.bytes()), absl::StrCat(item.leases()),
                 item.pinned() ? "yes" : "no", item.loading() ? "loading" : "loaded", item.id()});
    }
    table.Print(out);
  }

  v1::Tier tier_ = v1::TIER_UNSPECIFIED;
  v1::ArtifactKind kind_ = v1::ARTIFACT_KIND_UNSPECIFIED;
};

}  // namespace

std::unique_ptr<Command> MakeResidentsCommand() { return std::make_unique<ResidentsCommand>(); }

}  // namespace docmem::cli
