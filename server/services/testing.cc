#include "server/services/testing.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <span>

#include "absl/strings/str_cat.h"
#include "engine/formats/digest.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace docmem::server {
namespace {

std::string NewFolder() {
  static std::atomic<int> next{0};
  const std::string folder =
      absl::StrCat(testing::TempDir(), "docmem_services_test_",
                   testing::UnitTest::GetInstance()->random_seed(), "_", ::getpid(), "_", next++);
  std::filesystem::remove_all(folder);
  return folder;
}

store::NewFile FileOf(const std::string& name, const std::string& bytes) {
  return store::FileFromMemory(name, std::as_bytes(std::span(bytes)));
}

template <class Detail>
Detail DetailOf(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  Detail detail;
  for (const auto& any : details.details()) {
    if (any.UnpackTo(&detail)) break;
  }
  return detail;
}

}  // namespace

void FakeResidency::SetPins(const store::Document& document, const store::Adapter* current) {
  Note(absl::StrCat("pin ", document.key.id, " ", current ? current->version : 0));
}
void FakeResidency::Forget(const store::DocumentKey& document, const store::Cache& cache) {
  Note(absl::StrCat("forget ", document.id, "/", cache.spec.id));
}
void FakeResidency::Forget(const store::Adapter& adapter) {
  Note(absl::StrCat("forget ", adapter.document.id, " v", adapter.version));
}
void FakeResidency::ForgetDocument(const store::DocumentKey& document) {
  Note(absl::StrCat("forget ", document.id));
}
void FakeResidency::Prefetch(const store::DocumentKey& document, const store::Cache& cache,
                             const store::Adapter*, absl::AnyInvocable<void(absl::Status)> done) {
  Note(absl::StrCat("load ", document.id, "/", cache.spec.id));
  {
    const store::MutexLock lock(&mutex_);
    if (holds_) return held_.push_back(std::move(done));
  }
  done(absl::OkStatus());
}

void FakeResidency::HoldLoads() {
  const store::MutexLock lock(&mutex_);
  holds_ = true;
}
size_t FakeResidency::held_loads() {
  const store::MutexLock lock(&mutex_);
  return held_.size();
}
void FakeResidency::EndLoads(const absl::Status& status) {
  std::vector<Done> held;
  {
    const store::MutexLock lock(&mutex_);
    held.swap(held_);
    holds_ = false;
  }
  for (Done& done : held) done(status);
}

std::vector<std::string> FakeResidency::notes() {
  const store::MutexLock lock(&mutex_);
  return notes_;
}
void FakeResidency::Note(std::string note) {
  const store::MutexLock lock(&mutex_);
  notes_.push_back(std::move(note));
}

absl::Status FakeAsker::Submit(Question question, std::shared_ptr<AnswerSink> sink) {
  sink->OnStarted({.request_id = question.request_id});
  sink->OnFinished({});
  sink->OnClosed(absl::OkStatus());
  return absl::OkStatus();
}

TestServer::TestServer(std::unique_ptr<Authenticator> authenticator,
                       absl::Duration silent_client_limit)
    : folder_(NewFolder()),
      authenticator_(std::move(authenticator)),
      context_{.guard = &guard_,
               .open_calls = &open_calls,
               .executor = &executor_,
               .timer = &timer,
               .metrics = &metrics_,
               .log = &log_,
               .silent_client_limit = silent_client_limit} {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{
           &collections_, &documents_, &adapters_, &trainings_, &queries_, &admin_, &reflection_}) {
    builder.RegisterService(service);
  }
  server_ = builder.BuildAndStart();
  channel =
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
}

TestServer::~TestServer() {
  channel.reset();
  server_->Shutdown();
  server_->Wait();
  executor_.Close();
  store.reset();
  std::filesystem::remove_all(folder_);
}

void TestServer::Serve() {
  store::AdapterStoreOptions options;
  options.folder = folder_;
  auto opened = store::AdapterStore::Open(std::move(options));
  ASSERT_TRUE(opened.ok()) << opened.status();
  store = *std::move(opened);
  late_store_.Set(store.get());
  late_residency_.Set(&residency);
  late_asker_.Set(&asker);
  late_model_.Set(&model);
  lifecycle.SetPhase(Phase::kServing);
}

store::Document TestServer::Publish(const std::string& id,
                                    const std::vector<std::string>& cache_ids) {
  store::DocumentPublication publication;
  publication.key = {"default", id};
  publication.spec = {.text_sha256 = engine::Sha256Hex(id), .text_bytes = 1};
  publication.row = store->BeginDocument(publication.key, publication.spec, 0)->row;
  const std::string bytes = "rows";
  for (const std::string& cache_id : cache_ids) {
    publication.caches.push_back(
        {.spec = {.id = engine::Sha256Hex(cache_id)}, .file = FileOf("cache", bytes)});
  }
  return *store->PublishDocument(publication);
}

store::Adapter TestServer::PublishAdapter(const std::string& id, const std::string& content) {
  store::AdapterPublication publication;
  publication.document = {"default", id};
  publication.spec.hash = engine::Sha256Hex(content);
  publication.spec.scope = "FROM_BRIDGE";
  publication.spec.description = R"([{"name": "q_proj", "rank": 8, "scale": 2.0}])";
  publication.files = {FileOf("adapter_config.json", content)};
  publication.packed = FileOf("packed", content);
  return *store->PublishAdapter(publication);
}

std::string ReasonOf(const grpc::Status& status) {
  return DetailOf<google::rpc::ErrorInfo>(status).reason();
}

std::string FieldOf(const grpc::Status& status) {
  const auto bad = DetailOf<google::rpc::BadRequest>(status);
  return bad.field_violations().empty() ? "" : bad.field_violations(0).field();
}

grpc::Status CallWithEmptyMessage(const std::shared_ptr<grpc::Channel>& channel,
                                  const std::string& path) {
  return CallWithMessage(channel, path, "");
}

grpc::Status CallWithMessage(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                             const std::string& bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, path, &queue);
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  grpc::Status status;
  call->StartCall(nullptr);
  wait();
  const grpc::Slice message(bytes);
  call->WriteLast(grpc::ByteBuffer(&message, 1), {}, nullptr);
  wait();
  grpc::ByteBuffer response;
  do {
    call->Read(&response, nullptr);
  } while (wait());
  call->Finish(&status, nullptr);
  wait();
  return status;
}

}  // namespace docmem::server
