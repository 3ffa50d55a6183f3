// Asks a document: ask ADDRESS DOCUMENT QUESTION. Prints the answer as it comes.
#include <iostream>

#include "client/connection.h"
#include "client/error.h"
#include "client/query_client.h"

namespace {

int Fail(const absl::Status& status) {
  std::cerr << "ask: " << status.message() << " [" << docmem::client::DetailOf(status).reason
            << "]\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: ask HOST:PORT DOCUMENT QUESTION\n";
    return 2;
  }
  const auto connection = docmem::client::Connection::Open({.address = argv[1]});
  if (!connection.ok()) return Fail(connection.status());

  docmem::v1::AskRequest request;
  request.mutable_memory()->set_document(argv[2]);
  request.mutable_prompt()->set_question(argv[3]);
  request.set_max_tokens(64);

  docmem::client::AskEvents events;
  events.delta = [](const docmem::v1::Delta& delta) { std::cout << delta.text() << std::flush; };
  const auto finished = docmem::client::QueryClient(*connection).Ask(request, events);
  std::cout << std::endl;
  return finished.ok() ? 0 : Fail(finished.status());
}
