#include "client/cli/training_view.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/display.h"
#include "client/cli/names.h"
#include "client/cli/progress_line.h"
#include "client/cli/table.h"
#include "client/training_client.h"

namespace docmem::cli {
namespace {

void ShowStep(const v1::TrainingStep& step, ProgressLine* line) {
  line->ShowBar("training", static_cast<double>(step.step()) / std::max(1U, step.total_steps()),
                absl::StrFormat("step %d of %d, loss %.4f, %.0f tokens/s, %s left", step.step(),
                                step.total_steps(), step.loss(), step.tokens_per_second(),
                                FormatSeconds(step.remaining_seconds())));
}

}  // namespace

void PrintJob(const v1::TrainingJob& job, std::ostream& out) {
  Fields fields;
  fields.Add("job", job.id());
  fields.Add("document", absl::StrCat(job.collection(), "/", job.document()));
  fields.Add("state", NameOf(job.state()));
  fields.Add("reason", job.message());
  if (job.qa_given() + job.qa_synthesized() + job.qa_dropped() > 0) {
    fields.Add("pairs", absl::StrCat(job.qa_given(), " given, ", job.qa_synthesized(),
                                     " written by the model, ", job.qa_dropped(), " dropped"));
  }
  fields.Add("step", absl::StrCat(job.step(), " of ", job.total_steps()));
  fields.Add("loss", absl::StrFormat("%.4f", job.loss()));
  if (job.holdout_loss() > 0) fields.Add("held-out", absl::StrFormat("%.4f", job.holdout_loss()));
  if (job.adapter_version() > 0) fields.Add("adapter", absl::StrCat(job.adapter_version()));
  fields.Add("created", FormatTime(job.create_time()));
  fields.Add("ended", FormatTime(job.end_time()));
  fields.Print(out);
}

absl::Status FollowJob(const Session& session, const std::string& job_id) {
  v1::WatchTrainingRequest request;
  request.set_job_id(job_id);
  client::TrainingClient client(session.connection());
  ProgressLine line(session.terminal());
  v1::TrainingJob last;
  const absl::Status status = client.Watch(
      request,
      [&](const v1::TrainingEvent& event) {
        if (event.has_job()) last = event.job();
        if (session.json()) {
          session.PrintJson(event);
          session.out().flush();
        } else {
          event.has_step() ? ShowStep(event.step(), &line) : line.Show(NameOf(last.state()));
        }
      },
      session.call());
  line.Clear();
  if (status.ok() && !session.json()) PrintJob(last, session.out());
  if (!status.ok() || last.state() != v1::TrainingJob::STATE_FAILED) return status;
  return absl::AbortedError(absl::StrCat("training ", job_id, " failed: ", last.message()));
}

}  // namespace docmem::cli
