#include "client/cli/training_arguments.h"

#include "absl/strings/str_cat.h"
#include "client/cli/names.h"
#include "client/cli/qa_file.h"

namespace docmem::cli {
void TrainingArguments::Declare(ArgumentList* arguments) {
  arguments->Option("--supervision", OneOf("KIND", &supervision_),
                    "What it learns from; else synthetic-qa");
  arguments->Option("--qa", Path("FILE", &qa_file_),
                    absl::StrCat("Your own pairs. ", kQaFileHelp, "; the first answer is learnt"));
  arguments->Option("--synthetic-pairs", Number("N", &synthetic_pairs_),
                    "Pairs that the model writes itself; else as the document's length asks for, "
                    "none beside --qa");
  arguments->Option("--rank", Number("N", &rank_), "The adapter's rank; else 8");
  arguments->Option("--alpha", Decimal("X", &alpha_), "Its scale times its rank; else 16");
  arguments->Option("--modules", Texts("NAME", &modules_),
                    "Module to change, such as q_proj; can come several times; else all seven");
  arguments->Option("--dropout", Decimal("P", &dropout_), "Dropout of its inputs; else 0");
  arguments->Option("--epochs", Number("N", &epochs_), "At most so many; else 25");
  arguments->Option("--learning-rate", Decimal("X", &learning_rate_), "The peak; else 0.002");
  arguments->Option("--batch-size", Number("N", &batch_size_), "Sequences of a micro-batch");
  arguments->Option("--accumulation", Number("N", &accumulation_), "Micro-batches of a step");
  arguments->Option("--holdout", Decimal("PART", &holdout_),
                    "Part that is held out for the early stop; else 0.1; 0: no early stop");
  arguments->Option("--patience", Number("N", &patience_),
                    "Epochs without improvement until the stop; else 3");
  arguments->Option("--seed", Number("N", &seed_), "Same seed, same adapter");
  arguments->Flag("--recompute", &recompute_, "Less memory, more time");
  arguments->Flag("--keep-current", &keep_current_, "Only store the adapter");
}

absl::Status TrainingArguments::Fill(const Environment& environment,
                                     v1::TrainingOptions* options) const {
  options->set_supervision(supervision_);
  if (synthetic_pairs_) options->set_synthetic_pairs(*synthetic_pairs_);
  if (rank_) options->set_rank(*rank_);
  if (alpha_) options->set_alpha(*alpha_);
  options->mutable_modules()->Add(modules_.begin(), modules_.end());
  if (dropout_) options->set_dropout(*dropout_);
  if (epochs_) options->set_epochs(*epochs_);
  if (learning_rate_) options->set_learning_rate(*learning_rate_);
  if (batch_size_) options->set_batch_size(*batch_size_);
  if (accumulation_) options->set_accumulation(*accumulation_);
  if (holdout_) options->set_holdout(*holdout_);
  if (patience_) options->set_patience(*patience_);
  if (seed_) options->set_seed(*seed_);
  if (recompute_) options->set_recompute(true);
  options->set_keep_current(keep_current_);
  if (qa_file_.empty()) return absl::OkStatus();
  const absl::StatusOr<QaFile> file = ReadQaFile(qa_file_, environment);
  if (!file.ok()) return file.status();
  for (const QaFile::Item& item : file->items) {
    v1::QaPair* pair = options->add_qa();
    pair->set_question(item.question);
    pair->set_answer(item.answers.front());
  }
  return absl::OkStatus();
}

}  // namespace docmem::cli
