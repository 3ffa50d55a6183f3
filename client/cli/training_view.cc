#include "client/cli/training_view.h"

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

std::string StepText(const v1::TrainingStep& step) {
  return absl::StrFormat("step %d of %d, loss %.4f, %.0f tokens/s, %s left", step.step(),
                         step.total_steps(), step.loss(), step.tokens_per_second(),
                         FormatSeconds(step.remaining_seconds()));
}

}  // namespace

void PrintJob(const v1::TrainingJob& job, std::ostream& out) {
  Fields fields;
  fields.Add("job", job.id());
  fields.Add("document", absl::StrCat(job.collection(), "/", job.document()));
  fields.Add("state", NameOf(job.state()));
  fields.Add("reason", job.message());
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
          line.Show(event.has_step() ? StepText(event.step()) : NameOf(event.job().state()));
        }
      },
      session.call());
  line.Clear();
  if (status.ok() && !session.json()) PrintJob(last, session.out());
  if (!status.ok() || last.state() != v1::TrainingJob::STATE_FAILED) return status;
  return absl::AbortedError(absl::StrCat("training ", job_id, " failed: ", last.message()));
}

}  // namespace docmem::cli
