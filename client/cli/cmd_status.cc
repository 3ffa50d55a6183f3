#include <string>

#include "absl/strings/str_cat.h"
#include "client/admin_client.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/names.h"
#include "client/cli/session.h"
#include "client/cli/table.h"

namespace docmem::cli {
namespace {

void PrintTiers(const v1::GetStatusResponse& status, std::ostream& out) {
  Table table({"TIER", "KIND", ">ITEMS", ">BYTES", ">PINNED", ">LEASED", ">LOADING", ">BUDGET"});
  for (const v1::TierUsage& tier : status.tiers()) {
    table.Add({NameOf(tier.tier()), "all", "", FormatBytes(tier.used_bytes()), "", "", "",
               FormatBytes(tier.budget_bytes())});
    for (const v1::KindUsage& kind : tier.kinds()) {
      table.Add({"", NameOf(kind.kind()), absl::StrCat(kind.items()), FormatBytes(kind.bytes()),
                 FormatBytes(kind.pinned_bytes()), FormatBytes(kind.leased_bytes()),
                 FormatBytes(kind.loading_bytes()), ""});
    }
  }
  table.Print(out);
}

void Print(const v1::GetStatusResponse& status, std::ostream& out) {
  Fields fields;
  fields.Add("docmemd", absl::StrCat(status.version(), ", API revision ", status.api_revision()));
  fields.Add("phase", NameOf(status.phase()));
  fields.Add("up since", absl::StrCat(FormatTime(status.start_time()), ", ",
                                      FormatSeconds(status.uptime_seconds())));
  if (status.has_model()) {
    const v1::ModelInfo& model = status.model();
    fields.Add("model", absl::StrCat(model.name(), " (", model.family(), ", ", model.dtype(), ", ",
                                     model.device(), ")"));
    fields.Add("parameters",
               absl::StrCat(model.parameters(), ", ", FormatCount(model.layers(), "layer"), ", ",
                            FormatBytes(model.weight_bytes())));
    fields.Add("positions", absl::StrCat(model.positions()));
    fields.Add("prompt format", model.prompt_format());
  }
  fields.Add("collections", absl::StrCat(status.collections()));
  fields.Add("documents", absl::StrCat(status.documents()));
  fields.Add("caches", absl::StrCat(status.caches()));
  fields.Add("adapters", absl::StrCat(status.adapters()));
  if (status.quarantined() > 0) fields.Add("quarantined", absl::StrCat(status.quarantined()));
  const v1::QueueStatus& queue = status.queue();
  fields.Add("requests",
             absl::StrCat(queue.running(), " running, ", queue.loading(), " loading, ",
                          queue.waiting(), " waiting, ", queue.building(), " building"));
  fields.Print(out);
  if (status.tiers().empty()) return;
  out << '\n';
  PrintTiers(status, out);
}

class StatusCommand final : public Command {
 public:
  StatusCommand() : Command("status", "Show the daemon's model, load and budgets") {}

  absl::Status Run(Session& session) override {
    client::AdminClient client(session.connection());
    return session.Show(client.GetStatus(session.call()),
                        [&](const v1::GetStatusResponse& status) { Print(status, session.out()); });
  }
};

}  // namespace

std::unique_ptr<Command> MakeStatusCommand() { return std::make_unique<StatusCommand>(); }

}  // namespace docmem::cli
