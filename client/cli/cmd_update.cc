#include <map>
#include <optional>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/document_view.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

class UpdateCommand final : public Command {
 public:
  UpdateCommand() : Command("update", "Change a document's title, labels or default cache") {
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
    Value title = Text("TEXT", &title_);
    title.assign = [this, assign = title.assign](const std::string& text) {
      title_set_ = true;
      return assign(text);
    };
    arguments().Option("--title", title, "The new title; an empty one removes it");
    arguments().Option("--label", Pairs(&labels_), "The new labels, in place of all old ones");
    arguments().Flag("--no-labels", &no_labels_, "Remove all labels");
    arguments().Option("--default-cache", Text("CACHE", &default_cache_),
                       "Cache for questions that name no ratio");
    arguments().Flag("--delete-text", &delete_text_,
                     "Delete the retained text: no cache can be built later");
    arguments().Option("--revision", Number("N", &revision_),
                       "Refuse if the document has another revision");
  }

  absl::Status Run(Session& session) override {
    if (no_labels_ && !labels_.empty())
      return UsageError("--label and --no-labels exclude each other");
    v1::UpdateDocumentRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.set_revision(revision_);
    v1::Document* values = request.mutable_values();
    auto* mask = request.mutable_update_mask();
    if (title_set_) {
      values->set_title(title_);
      mask->add_paths("title");
    }
    if (no_labels_ || !labels_.empty()) {
      values->mutable_labels()->insert(labels_.begin(), labels_.end());
      mask->add_paths("labels");
    }
    if (!default_cache_.empty()) {
      values->set_default_cache_id(default_cache_);
      mask->add_paths("default_cache_id");
    }
    if (delete_text_) mask->add_paths("text_retained");
    if (mask->paths().empty()) return UsageError("nothing to change: give an option");
    client::DocumentClient client(session.connection());
    return session.Show(client.Update(request, session.call()), [&](const v1::Document& document) {
      PrintDocument(document, session.out());
    });
  }

 private:
  std::string document_;
  std::string collection_;
  std::string title_;
  bool title_set_ = false;
  std::map<std::string, std::string> labels_;
  bool no_labels_ = false;
  std::string default_cache_;
  bool delete_text_ = false;
  uint64_t revision_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeUpdateCommand() { return std::make_unique<UpdateCommand>(); }

}  // namespace docmem::cli
