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
  arguments().Flag("--tls", &tls_.wanted,
                   "Encrypt the connection; each of the next four implies it");
  arguments().Option("--tls-ca", Path("FILE", &tls_.ca),
                     "Authorities to trust, in PEM; else DOCMEM_TLS_CA, else the system's");
  arguments().Option("--tls-cert", Path("FILE", &tls_.certificate),
                     "Certificate to show to the daemon, in PEM; goes with --tls-key");
  arguments().Option("--tls-key", Path("FILE", &tls_.key), "Its key, in PEM without password");
  arguments().Option("--tls-server-name", Text("NAME", &tls_.server_name),
                     "Name in the daemon's certificate; else the address's host");
  arguments().Flag("--insecure", &insecure_,
                   "Send the token in plain text also to another machine");
  AddCommands(this);
}

}  // namespace docmem::cli
