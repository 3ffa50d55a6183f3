#include "client/cli/commands.h"

namespace docmem::cli {

void AddCommands(CommandGroup* root) {
  root->Add(MakeIngestCommand());
  root->Add(MakeAskCommand());
  root->Add(MakeChatCommand());
  root->Add(MakeScoreCommand());
  root->Add(MakeRouteCommand());
  root->Add(MakeListCommand());
  root->Add(MakeShowCommand());
  root->Add(MakeTextCommand());
  root->Add(MakeUpdateCommand());
  root->Add(MakePinCommand());
  root->Add(MakeUnpinCommand());
  root->Add(MakePrefetchCommand());
  root->Add(MakeDeleteCommand());
  root->Add(MakeExportCommand());
  root->Add(MakeImportCommand());
  root->Add(MakeBackupCommand());
  root->Add(MakeRestoreCommand());
  root->Add(MakeCacheGroup());
  root->Add(MakeAdapterGroup());
  root->Add(MakeTrainCommand());
  root->Add(MakeEvalCommand());
  root->Add(MakeJobsGroup());
  root->Add(MakeCollectionGroup());
  root->Add(MakeStatusCommand());
  root->Add(MakeHealthCommand());
  root->Add(MakeResidentsCommand());
  root->Add(MakeDrainCommand());
  root->Add(MakeTokenGroup());
  root->Add(MakeCompletionCommand(root));
}

}  // namespace docmem::cli
