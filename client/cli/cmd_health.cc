#include "client/cli/commands.h"
#include "client/cli/session.h"
#include "client/health_client.h"

namespace docmem::cli {
namespace {

class HealthCommand final : public Command {
 public:
  HealthCommand() : Command("health", "Ask whether the daemon serves, for probes") {
    Describe(
        "Asks the health address, which is another than the API's and plain: docmem --address "
        "127.0.0.1:7601 health. Fails unless the answer is yes.");
    arguments().Flag("--liveness", &liveness_,
                     "Ask whether it works at all, not whether it is ready");
  }

  bool NeedsCredentials() const override { return false; }

  absl::Status Run(Session& session) override {
    client::HealthClient client(session.connection());
    const absl::StatusOr<bool> serving =
        client.IsServing(liveness_ ? "docmem.liveness" : "", session.call());
    if (!serving.ok()) return serving.status();
    if (!*serving) return absl::UnavailableError("not serving");
    if (session.json()) {
      session.PrintJson(R"({"serving":true})");
    } else {
      session.out() << "serving\n";
    }
    return absl::OkStatus();
  }

 private:
  bool liveness_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeHealthCommand() { return std::make_unique<HealthCommand>(); }

}  // namespace docmem::cli
