// Asks a running daemon about its documents, as many clients would, and tells how it went:
//   load_generator --address 127.0.0.1:7600 --clients 16 --seconds 60 --zipf 1
// A closed loop unless --rate is given: then questions come at random moments at that rate, whether
// or not earlier ones have been answered, and waiting counts from the moment a question was due.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iostream>
#include <random>
#include <thread>

#include "adapter_store/sync.h"
#include "bench/load_report.h"
#include "client/connection.h"
#include "client/document_client.h"
#include "client/query_client.h"

namespace docmem::bench {
namespace {

struct LoadOptions {
  std::string address = "127.0.0.1:7600";
  std::string collection = "default";
  std::string question = "What does the document say first?";
  uint32_t clients = 1;  // threads: in an open loop the most that are under way
  double rate = 0.0;     // questions per second; 0: closed loop
  double seconds = 10.0;
  double zipf = 0.0;  // exponent; 0: all documents alike
  uint32_t max_tokens = 32;
  uint32_t seed = 1;
  bool own = false;
  bool batch = false;
  bool check = false;
  bool json = false;
};

double Now() {
  static const absl::Time began = absl::Now();
  return absl::ToDoubleSeconds(absl::Now() - began);
}

// Which document comes when; thread-safe.
class Schedule {
 public:
  Schedule(const LoadOptions& options, size_t documents)
      : random_(options.seed),
        gap_(options.rate > 0.0 ? options.rate : 1.0),
        open_(options.rate > 0.0) {
    std::vector<double> weights(documents);
    for (size_t i = 0; i < documents; ++i) {
      weights[i] = std::pow(static_cast<double>(i + 1), -options.zipf);
    }
    document_ = std::discrete_distribution<size_t>(weights.begin(), weights.end());
  }

  // In an open loop `due` may lie ahead.
  Asked Next() {
    store::MutexLock lock(&mutex_);
    Asked asked;
    asked.document = document_(random_);
    if (open_) next_due_ += gap_(random_);
    asked.due = open_ ? next_due_ : Now();
    return asked;
  }

 private:
  store::Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  std::exponential_distribution<double> gap_ ABSL_GUARDED_BY(mutex_);
  std::discrete_distribution<size_t> document_ ABSL_GUARDED_BY(mutex_);
  double next_due_ ABSL_GUARDED_BY(mutex_) = Now();
  const bool open_;
};

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options) {}

  absl::Status Prepare() {
    constexpr uint32_t kClientsPerConnection = 16;
    for (uint32_t i = 0; i < options_.clients; i += kClientsPerConnection) {
      client::ConnectionOptions connection;
      connection.address = options_.address;
      connection.retry.enabled = false;
      auto opened = client::Connection::Open(connection);
      if (!opened.ok()) return opened.status();
      connections_.push_back(*std::move(opened));
    }
    if (absl::Status status = ListDocuments(); !status.ok()) return status;
    if (documents_.empty()) {
      return absl::FailedPreconditionError("collection " + options_.collection +
                                           " has no documents to ask");
    }
    return options_.check ? AskEachAlone() : absl::OkStatus();
  }

  // Client i of a run with --own asks document i alone.
  std::vector<Asked> Run() {
    Schedule schedule(options_, documents_.size());
    const double end = Now() + options_.seconds;
    std::vector<std::vector<Asked>> results(options_.clients);
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < options_.clients; ++i) {
      threads.emplace_back([&, i] {
        client::QueryClient client(connections_[i % connections_.size()]);
        for (Asked next = schedule.Next(); next.due < end; next = schedule.Next()) {
          absl::SleepFor(absl::Seconds(next.due - Now()));
          if (Now() >= end) return;
          if (options_.own) next.document = i % documents_.size();
          Ask(&client, &next);
          results[i].push_back(std::move(next));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<Asked> all;
    for (std::vector<Asked>& some : results)
      std::move(some.begin(), some.end(), std::back_inserter(all));
    return all;
  }

  size_t documents() const { return documents_.size(); }

 private:
  absl::Status ListDocuments() {
    client::DocumentClient client(connections_.front());
    v1::ListDocumentsRequest request;
    request.set_collection(options_.collection);
    do {
      const auto page = client.List(request);
      if (!page.ok()) return page.status();
      for (const v1::Document& document : page->documents()) documents_.push_back(document.id());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    std::sort(documents_.begin(), documents_.end());
    return absl::OkStatus();
  }

  // What every document answers when nothing else is going on.
  absl::Status AskEachAlone() {
    client::QueryClient client(connections_.front());
    for (size_t i = 0; i < documents_.size(); ++i) {
      absl::StatusOr<client::Answer> answer = client.Ask(RequestFor(i));
      if (!answer.ok()) return answer.status();
      alone_.push_back(std::move(answer->text));
    }
    return absl::OkStatus();
  }

  v1::AskRequest RequestFor(size_t document) const {
    v1::AskRequest request;
    request.mutable_memory()->set_collection(options_.collection);
    request.mutable_memory()->set_document(documents_[document]);
    request.mutable_prompt()->set_question(options_.question);
    request.set_max_tokens(options_.max_tokens);
    if (options_.batch) request.set_priority(v1::PRIORITY_BATCH);
    return request;
  }

  void Ask(client::QueryClient* client, Asked* asked) const {
    std::string text;
    double last = 0.0;
    const auto delta = [&](const v1::Delta& part) {
      const double now = Now();
      if (asked->tokens == 0) {
        asked->first_token = now;
      } else {
        asked->gaps.push_back(now - last);
      }
      last = now;
      asked->tokens += part.tokens();
      text += part.text();
    };
    const auto finished = client->Ask(RequestFor(asked->document), {.delta = delta});
    asked->end = Now();
    if (asked->tokens == 0) asked->first_token = asked->end;
    asked->code = finished.status().code();
    asked->differs = finished.ok() && options_.check && text != alone_[asked->document];
  }

  const LoadOptions options_;
  std::vector<std::shared_ptr<const client::Connection>> connections_;
  std::vector<std::string> documents_;  // the most asked first
  std::vector<std::string> alone_;
};

int Run(const LoadOptions& options) {
  Load load(options);
  if (const absl::Status status = load.Prepare(); !status.ok()) {
    std::cerr << status.message() << "\n";
    return 1;
  }
  const double began = Now();
  const std::vector<Asked> asked = load.Run();
  const LoadReport report(asked, load.documents(), Now() - began);
  std::cout << (options.json ? report.Json().dump() + "\n" : report.Text());
  return 0;
}

}  // namespace
}  // namespace docmem::bench

int main(int argc, char** argv) {
  docmem::bench::LoadOptions options;
  CLI::App app("Asks a running DocMem about its documents, as many clients would");
  app.add_option("--address", options.address, "HOST:PORT of the daemon")->capture_default_str();
  app.add_option("--collection", options.collection, "whose documents")->capture_default_str();
  app.add_option("--question", options.question, "asked of each document")->capture_default_str();
  app.add_option("--clients", options.clients, "questions under way, at most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--rate", options.rate,
                 "questions per second, at random moments; 0: each client "
                 "asks again when it has its answer")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seconds", options.seconds, "how long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--zipf", options.zipf, "exponent of the documents' popularity; 0: all alike")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-tokens", options.max_tokens, "of an answer")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of documents and moments")->capture_default_str();
  app.add_flag("--own", options.own, "each client asks a document of its own");
  app.add_flag("--batch", options.batch, "ask with priority batch");
  app.add_flag("--check", options.check, "ask each document alone before; count other answers");
  app.add_flag("--json", options.json, "print one JSON object");
  CLI11_PARSE(app, argc, argv);
  return docmem::bench::Run(options);
}
