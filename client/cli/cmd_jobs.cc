#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/cli/table.h"
#include "client/cli/training_view.h"
#include "client/training_client.h"

namespace docmem::cli {
namespace {

class JobsListCommand final : public Command {
 public:
  JobsListCommand() : Command("list", "List trainings, the newest first") {
    arguments().Positional(Text("ID", &document_), "Only of this document").required = false;
    DeclareCollection(&arguments(), &collection_);
  }

  absl::Status Run(Session& session) override {
    v1::ListTrainingJobsRequest request;
    request.set_collection(collection_);
    request.set_document(document_);
    client::TrainingClient client(session.connection());
    std::vector<v1::TrainingJob> jobs;
    do {
      const auto page = client.List(request, session.call());
      if (!page.ok()) return page.status();
      jobs.insert(jobs.end(), page->jobs().begin(), page->jobs().end());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    if (session.json()) {
      session.PrintJson(JsonObject({{"jobs", JsonArrayOf(jobs)}}));
      return absl::OkStatus();
    }
    Table table({"JOB", "DOCUMENT", "STATE", ">STEP", ">LOSS", ">ADAPTER", "CREATED"});
    for (const v1::TrainingJob& job : jobs) {
      table.Add({job.id(), job.document(), NameOf(job.state()),
                 absl::StrCat(job.step(), "/", job.total_steps()),
                 absl::StrFormat("%.4f", job.loss()),
                 job.adapter_version() == 0 ? "-" : absl::StrCat(job.adapter_version()),
                 FormatTime(job.create_time())});
    }
    table.Print(session.out());
    return absl::OkStatus();
  }

 private:
  std::string document_;
  std::string collection_;
};

class JobsShowCommand final : public Command {
 public:
  JobsShowCommand() : Command("show", "Show a training") {
    arguments().Positional(Text("JOB", &job_id_), "The training's id");
    arguments().Flag("--follow", &follow_, "Show steps and losses until it has ended");
  }

  absl::Status Run(Session& session) override {
    if (follow_) return FollowJob(session, job_id_);
    v1::GetTrainingJobRequest request;
    request.set_job_id(job_id_);
    client::TrainingClient client(session.connection());
    return session.Show(client.Get(request, session.call()),
                        [&](const v1::TrainingJob& job) { PrintJob(job, session.out()); });
  }

 private:
  std::string job_id_;
  bool follow_ = false;
};

class JobsCancelCommand final : public Command {
 public:
  JobsCancelCommand() : Command("cancel", "Cancel a training; nothing half done stays") {
    arguments().Positional(Text("JOB", &job_id_), "The training's id");
  }

  absl::Status Run(Session& session) override {
    v1::CancelTrainingRequest request;
    request.set_job_id(job_id_);
    client::TrainingClient client(session.connection());
    return session.Show(client.Cancel(request, session.call()),
                        [&](const v1::TrainingJob& job) { PrintJob(job, session.out()); });
  }

 private:
  std::string job_id_;
};

}  // namespace

std::unique_ptr<Command> MakeJobsGroup() {
  auto group = std::make_unique<CommandGroup>("jobs", "List, show and cancel trainings");
  group->Add(std::make_unique<JobsListCommand>());
  group->Add(std::make_unique<JobsShowCommand>());
  group->Add(std::make_unique<JobsCancelCommand>());
  return group;
}

}  // namespace docmem::cli
