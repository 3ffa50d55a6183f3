#include <optional>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/names.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/cli/training_view.h"
#include "client/training_client.h"

namespace docmem::cli {
namespace {

class TrainCommand final : public Command {
 public:
  TrainCommand() : Command("train", "Train an adapter for a document") {
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
    arguments().Option("--supervision", OneOf("KIND", &supervision_),
                       "What it learns from; else synthetic-qa");
    arguments().Option("--seed", Number("N", &seed_), "Same seed, same adapter");
    arguments().Flag("--keep-current", &keep_current_, "Only store the adapter");
    arguments().Flag("--follow", &follow_, "Show steps and losses until the training has ended");
  }

  absl::Status Run(Session& session) override {
    v1::StartTrainingRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    request.mutable_options()->set_supervision(supervision_);
    request.mutable_options()->set_keep_current(keep_current_);
    if (seed_) request.mutable_options()->set_seed(*seed_);
    client::TrainingClient client(session.connection());
    const auto job = client.Start(request, session.call());
    if (job.ok() && follow_) return FollowJob(session, job->id());
    return session.Show(job,
                        [&](const v1::TrainingJob& started) { PrintJob(started, session.out()); });
  }

 private:
  std::string document_;
  std::string collection_;
  v1::Supervision supervision_ = v1::SUPERVISION_UNSPECIFIED;
  std::optional<uint64_t> seed_;
  bool keep_current_ = false;
  bool follow_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTrainCommand() { return std::make_unique<TrainCommand>(); }

}  // namespace docmem::cli
