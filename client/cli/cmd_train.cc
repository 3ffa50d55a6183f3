#include <string>

#include "client/cli/commands.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/cli/training_arguments.h"
#include "client/cli/training_view.h"
#include "client/training_client.h"

namespace docmem::cli {
namespace {

class TrainCommand final : public Command {
 public:
  TrainCommand() : Command("train", "Train an adapter for a document") {
    Describe(
        "Trainings run one after another between the questions, also when this command has ended. "
        "The finished adapter becomes the document's current one.");
    arguments().Positional(Text("ID", &document_), "The document");
    DeclareCollection(&arguments(), &collection_);
    training_.Declare(&arguments());
    arguments().Flag("--follow", &follow_, "Show steps and losses until the training has ended");
  }

  absl::Status Run(Session& session) override {
    v1::StartTrainingRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    absl::Status status = training_.Fill(session.environment(), request.mutable_options());
    if (!status.ok()) return status;
    client::TrainingClient client(session.connection());
    const auto job = client.Start(request, session.call());
    if (job.ok() && follow_) return FollowJob(session, job->id());
    return session.Show(job,
                        [&](const v1::TrainingJob& started) { PrintJob(started, session.out()); });
  }

 private:
  std::string document_;
  std::string collection_;
  TrainingArguments training_;
  bool follow_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTrainCommand() { return std::make_unique<TrainCommand>(); }

}  // namespace docmem::cli
