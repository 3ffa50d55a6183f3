#include "server/errors/from_exception.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "engine/formats/error.h"

namespace docmem::server {
namespace {

absl::Status Thrown(engine::ErrorKind kind, const EngineReasons& reasons = {}) {
  return CatchEngine([&]() -> int { throw engine::Error(kind, "r", "is 300"); }, reasons).status();
}

TEST(FromException, EveryKindOfTheEngineKeepsItsMeaning) {
  using engine::ErrorKind;
  const std::pair<ErrorKind, absl::StatusCode> expected[] = {
      {ErrorKind::kInvalidArgument, absl::StatusCode::kInvalidArgument},
      {ErrorKind::kUnimplemented, absl::StatusCode::kUnimplemented},
      {ErrorKind::kFailedPrecondition, absl::StatusCode::kFailedPrecondition},
      {ErrorKind::kNotFound, absl::StatusCode::kNotFound},
      {ErrorKind::kDataLoss, absl::StatusCode::kDataLoss},
      {ErrorKind::kResourceExhausted, absl::StatusCode::kResourceExhausted},
      {ErrorKind::kCancelled, absl::StatusCode::kCancelled},
      {ErrorKind::kInternal, absl::StatusCode::kInternal}};
  for (const auto& [kind, code] : expected) {
    const absl::Status status = Thrown(kind);
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message(), "r: is 300");
    EXPECT_EQ(store::DetailsOf(status).at("field"), "r");
    EXPECT_FALSE(store::ReasonOf(status).empty());
  }
}

TEST(FromException, TheCallerNamesTheReason) {
  const EngineReasons adapter{.invalid_argument = reason::kAdapterInvalid,
                              .unimplemented = reason::kAdapterUnsupported};
  EXPECT_EQ(store::ReasonOf(Thrown(engine::ErrorKind::kInvalidArgument, adapter)),
            "ADAPTER_INVALID");
  EXPECT_EQ(store::ReasonOf(Thrown(engine::ErrorKind::kUnimplemented, adapter)),
            "ADAPTER_UNSUPPORTED");
  EXPECT_EQ(store::ReasonOf(Thrown(engine::ErrorKind::kUnimplemented)), "NOT_IMPLEMENTED");
}

TEST(FromException, ForeignExceptionsAreInternalAndMemoryIsAResource) {
  const auto foreign = CatchEngine([]() -> int { throw std::runtime_error("broken"); });
  EXPECT_EQ(foreign.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(store::ReasonOf(foreign.status()), "INTERNAL_FAULT");
  const auto odd = CatchEngine([]() -> int { throw 7; });
  EXPECT_EQ(odd.status().code(), absl::StatusCode::kInternal);
  const auto memory = CatchEngine([]() -> int { throw std::bad_alloc(); });
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(FromException, AValuePassesThrough) {
  EXPECT_EQ(CatchEngine([] { return 7; }).value(), 7);
  EXPECT_TRUE(CatchEngine([] { return absl::OkStatus(); }).ok());
  EXPECT_EQ(CatchEngine([] { return absl::AbortedError("x"); }).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(CatchEngine([] { return absl::StatusOr<int>(7); }).value(), 7);
  EXPECT_EQ(CatchEngine([]() -> absl::Status { throw std::bad_alloc(); }).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace docmem::server
