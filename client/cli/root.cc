#include "client/cli/root.h"

#include "client/cli/commands.h"

namespace docmem::cli {

RootCommand::RootCommand() : CommandGroup("docmem", "Asks, fills and looks after a DocMem daemon") {
  Describe(
      "A document is ingested once and then answers questions from its compressed cache, with its "
      "adapter where it has one. `docmem COMMAND --help` explains a command.\n\n"
      "Exit code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C.");
  arguments().Option("--address", Text("HOST:PORT", &address_),
                     "The daemon; else DOCMEM_ADDRESS, else 127.0.0.1:7600");
  arguments().Option("--output", Choice("FORMAT", {"text", "json"}, &output_),
                     "For people, or proto3 JSON on one line");
  arguments().Option("--timeout", Decimal("SECONDS", &timeout_seconds_),
                     "Give up after this time, tries again included; else 120 s for questions, 1 h "
                     "for documents, 30 s for all else");
  arguments().Option("--token-file", Path("FILE", &token_file_),
                     "File with the access token; else DOCMEM_TOKEN has the token itself");
  AddCommands(this);
}

}  // namespace docmem::cli
