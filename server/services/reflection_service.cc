#include "server/services/reflection_service.h"

#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <utility>

#include "adapter_store/sync.h"
#include "docmem/v1/adapter.grpc.pb.h"
#include "docmem/v1/admin.grpc.pb.h"
#include "docmem/v1/collection.grpc.pb.h"
#include "docmem/v1/document.grpc.pb.h"
#include "docmem/v1/query.grpc.pb.h"
#include "docmem/v1/training.grpc.pb.h"
#include "server/services/live_call.h"

namespace docmem::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using Request = ReflectionService::Request;
using Response = ReflectionService::Response;

// A file once, then whatever it needs.
void AddFile(const FileDescriptor* file, std::set<const FileDescriptor*>* added,
             Response* response) {
  if (!added->insert(file).second) return;
  google::protobuf::FileDescriptorProto description;
  file->CopyTo(&description);
  response->mutable_file_descriptor_response()->add_file_descriptor_proto(
      description.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) {
    AddFile(file->dependency(i), added, response);
  }
}

void Describe(const FileDescriptor* file, Response* response) {
  if (file == nullptr) {
    response->mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
    response->mutable_error_response()->set_error_message("this daemon has nothing of that name");
    return;
  }
  std::set<const FileDescriptor*> added;
  AddFile(file, &added, response);
}

void ListServices(Response* response) {
  for (const char* name :
       {v1::AdapterService::service_full_name(), v1::AdminService::service_full_name(),
        v1::CollectionService::service_full_name(), v1::DocumentService::service_full_name(),
        v1::QueryService::service_full_name(), v1::TrainingService::service_full_name(),
        grpc::reflection::v1alpha::ServerReflection::service_full_name()}) {
    response->mutable_list_services_response()->add_service()->set_name(name);
  }
}

// One ServerReflectionInfo: reads a request only when the response before is written. Deletes
// itself.
class ReflectionStream final : public grpc::ServerBidiReactor<Request, Response>,
                               public std::enable_shared_from_this<ReflectionStream> {
 public:
  static ReflectionStream* Start(const ServiceContext& services,
                                 grpc::CallbackServerContext* context) {
    auto stream = std::shared_ptr<ReflectionStream>(new ReflectionStream(services, context));
    stream->self_ = stream;
    if (!services.executor->TryRun([stream] { stream->Begin(); })) stream->End(ExecutorFull());
    return stream.get();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::OkStatus());
    executor_->Run([self = shared_from_this()] {
      self->response_ = ReflectionService::Answer(self->request_);
      store::MutexLock lock(&self->mutex_);
      if (!self->ended_) self->StartWrite(&self->response_);
    });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return End(ClientGone());
    store::MutexLock lock(&mutex_);
    if (!ended_) StartRead(&request_);
  }

  void OnDone() override { self_.reset(); }

 private:
  ReflectionStream(const ServiceContext& services, grpc::CallbackServerContext* context)
      : executor_(services.executor), call_(services, method::kReflection, context) {}

  void Begin() {
    const absl::Status status = call_.Admit([weak = weak_from_this()](const absl::Status& why) {
      if (const auto stream = weak.lock()) stream->End(why);
    });
    if (!status.ok()) return End(status);
    store::MutexLock lock(&mutex_);
    if (!ended_) StartRead(&request_);
  }

  void End(const absl::Status& status) {
    {
      store::MutexLock lock(&mutex_);
      if (std::exchange(ended_, true)) return;
    }
    Finish(call_.Finish(status));
  }

  Executor* const executor_;
  Call call_;
  std::shared_ptr<ReflectionStream> self_;  // until gRPC is done with the reactor
  Request request_;
  Response response_;
  store::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

// Here, so that the stubs' many templates are compiled in one file.
ReflectionService::ReflectionService(ServiceContext services) : services_(services) {}
ReflectionService::~ReflectionService() = default;

grpc::ServerBidiReactor<Request, Response>* ReflectionService::ServerReflectionInfo(
    grpc::CallbackServerContext* context) {
  return ReflectionStream::Start(services_, context);
}

Response ReflectionService::Answer(const Request& request) {
  const DescriptorPool* const pool = DescriptorPool::generated_pool();
  Response response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      Describe(pool->FindFileByName(request.file_by_filename()), &response);
      break;
    case Request::kFileContainingSymbol:
      Describe(pool->FindFileContainingSymbol(request.file_containing_symbol()), &response);
      break;
    case Request::kListServices:
      ListServices(&response);
      break;
    case Request::kAllExtensionNumbersOfType:
      response.mutable_all_extension_numbers_response()->set_base_type_name(
          request.all_extension_numbers_of_type());  // proto3 messages have no extensions
      break;
    case Request::kFileContainingExtension:
      Describe(nullptr, &response);
      break;
    case Request::MESSAGE_REQUEST_NOT_SET:
      response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      response.mutable_error_response()->set_error_message("the request asks for nothing");
      break;
  }
  return response;
}

}  // namespace docmem::server
