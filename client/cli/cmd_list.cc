#include <map>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/document_view.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class ListCommand final : public Command {
 public:
  ListCommand() : Command("list", "List the documents of a collection") {
    DeclareCollection(&arguments(), &collection_);
    arguments().Option("--label", Pairs(&labels_), "Only documents with this label");
    arguments().Option("--order", OneOf("ORDER", &order_), "Order; else id");
    arguments().Flag("--descending", &descending_, "Last one first");
  }

  absl::Status Run(Session& session) override {
    v1::ListDocumentsRequest request;
    request.set_collection(collection_);
    request.mutable_labels()->insert(labels_.begin(), labels_.end());
    request.set_order(order_);
    request.set_descending(descending_);
    client::DocumentClient client(session.connection());
    std::vector<v1::Document> documents;
    do {
      auto page = client.List(request, session.call());
      if (!page.ok()) return page.status();
      documents.insert(documents.end(), page->documents().begin(), page->documents().end());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    if (session.json()) {
      session.PrintJson(JsonObject({{"documents", JsonArrayOf(documents)}}));
    } else {
      PrintDocuments(documents, session.out());
    }
    return absl::OkStatus();
  }

 private:
  std::string collection_;
  std::map<std::string, std::string> labels_;
  v1::DocumentOrder order_ = v1::DOCUMENT_ORDER_UNSPECIFIED;
  bool descending_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeListCommand() { return std::make_unique<ListCommand>(); }

}  // namespace docmem::cli
