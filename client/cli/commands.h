#pragma once

#include <memory>

#include "client/cli/command.h"

namespace docmem::cli {

// Each is made in the file of its name, cmd_….cc.
std::unique_ptr<Command> MakeAdapterGroup();
std::unique_ptr<Command> MakeAdapterDownloadCommand();
std::unique_ptr<Command> MakeAdapterUploadCommand();
std::unique_ptr<Command> MakeAskCommand();
std::unique_ptr<Command> MakeBackupCommand();
std::unique_ptr<Command> MakeCacheGroup();
std::unique_ptr<Command> MakeChatCommand();
std::unique_ptr<Command> MakeCollectionGroup();
/// `root` must outlive it: the script names all its commands.
std::unique_ptr<Command> MakeCompletionCommand(const Command* root);
std::unique_ptr<Command> MakeDeleteCommand();
std::unique_ptr<Command> MakeDrainCommand();
std::unique_ptr<Command> MakeEvalCommand();
std::unique_ptr<Command> MakeExportCommand();
std::unique_ptr<Command> MakeHealthCommand();
std::unique_ptr<Command> MakeImportCommand();
std::unique_ptr<Command> MakeIngestCommand();
std::unique_ptr<Command> MakeJobsGroup();
std::unique_ptr<Command> MakeListCommand();
std::unique_ptr<Command> MakePinCommand();
std::unique_ptr<Command> MakePrefetchCommand();
std::unique_ptr<Command> MakeResidentsCommand();
std::unique_ptr<Command> MakeRestoreCommand();
std::unique_ptr<Command> MakeRouteCommand();
std::unique_ptr<Command> MakeScoreCommand();
std::unique_ptr<Command> MakeShowCommand();
std::unique_ptr<Command> MakeStatusCommand();
std::unique_ptr<Command> MakeTextCommand();
std::unique_ptr<Command> MakeTokenGroup();
std::unique_ptr<Command> MakeTrainCommand();
std::unique_ptr<Command> MakeUnpinCommand();
std::unique_ptr<Command> MakeUpdateCommand();

/// All of them, in the order of the help.
void AddCommands(CommandGroup* root);

}  // namespace docmem::cli
