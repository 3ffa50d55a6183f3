#include "client/admin_client.h"
#include "client/cli/commands.h"
#include "client/cli/session.h"

namespace docmem::cli {
namespace {

class DrainCommand final : public Command {
 public:
  DrainCommand() : Command("drain", "Let the daemon refuse new work and finish what it has") {
    Describe("The process goes on. Readiness turns off, so that traffic goes elsewhere.");
    arguments().Flag("--undo", &undo_, "Take up work again");
  }

  absl::Status Run(Session& session) override {
    v1::DrainRequest request;
    request.set_undo(undo_);
    client::AdminClient client(session.connection());
    return session.Show(client.Drain(request, session.call()), [&](const v1::DrainResponse& reply) {
      const v1::QueueStatus& queue = reply.queue();
      session.out() << (reply.draining() ? "draining" : "taking up work") << ": " << queue.running()
                    << " running, " << queue.loading() << " loading, " << queue.waiting()
                    << " waiting, " << queue.building() << " building\n";
    });
  }

 private:
  bool undo_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDrainCommand() { return std::make_unique<DrainCommand>(); }

}  // namespace docmem::cli
