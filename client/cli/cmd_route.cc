#include <string>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/cli/table.h"
#include "client/query_client.h"

namespace docmem::cli {
namespace {

class RouteCommand final : public Command {
 public:
  RouteCommand() : Command("route", "Rank the documents of a collection that answer a question") {
    arguments().Positional(Text("QUESTION", &question_), "What is asked");
    DeclareCollection(&arguments(), &collection_);
    arguments().Option("--count", Number("N", &count_), "Documents to rank; else 5");
  }

  absl::Status Run(Session& session) override {
    v1::RouteRequest request;
    request.set_collection(collection_);
    request.set_question(question_);
    request.set_k(count_);
    client::QueryClient queries(session.connection());
    return session.Show(
        queries.Route(request, session.call()), [&](const v1::RouteResponse& reply) {
          if (reply.abstained()) session.Note("no document of the collection fits the question");
          if (reply.documents().empty()) return;
          Table table({">SCORE", "DOCUMENT", "TITLE"});
          for (const v1::RankedDocument& ranked : reply.documents()) {
            table.Add({absl::StrFormat("%.3f", ranked.score()), ranked.document(), ranked.title()});
          }
          table.Print(session.out());
        });
  }

 private:
  std::string question_;
  std::string collection_;
  uint32_t count_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeRouteCommand() { return std::make_unique<RouteCommand>(); }

}  // namespace docmem::cli
