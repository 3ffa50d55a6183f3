#include "engine/formats/error.h"

#include <gtest/gtest.h>

#include <functional>

namespace docmem::engine {
namespace {

TEST(ErrorTest, NamesTheFieldInFrontOfTheMessage) {
  try {
    ThrowFailedPrecondition("config.json.rope_theta", "is missing");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFailedPrecondition);
    EXPECT_EQ(error.field(), "config.json.rope_theta");
    EXPECT_STREQ(error.what(), "config.json.rope_theta: is missing");
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(ErrorTest, AnEmptyFieldLeavesNoPrefix) {
  EXPECT_STREQ(Error(ErrorKind::kInternal, "", "the result isn't finite").what(),
               "the result isn't finite");
}

ErrorKind KindOf(const std::function<void()>& throwing) {
  try {
    throwing();
  } catch (const Error& error) {
    return error.kind();
  }
  throw std::logic_error("nothing was thrown");
}

TEST(ErrorTest, EachHelperThrowsItsKind) {
  EXPECT_EQ(KindOf([] { ThrowInvalidArgument("", ""); }), ErrorKind::kInvalidArgument);
  EXPECT_EQ(KindOf([] { ThrowUnimplemented("", ""); }), ErrorKind::kUnimplemented);
  EXPECT_EQ(KindOf([] { ThrowNotFound("", ""); }), ErrorKind::kNotFound);
  EXPECT_EQ(KindOf([] { ThrowDataLoss("", ""); }), ErrorKind::kDataLoss);
  EXPECT_EQ(KindOf([] { ThrowResourceExhausted("", ""); }), ErrorKind::kResourceExhausted);
  EXPECT_EQ(KindOf([] { ThrowCancelled(""); }), ErrorKind::kCancelled);
  EXPECT_EQ(KindOf([] { ThrowInternal("", ""); }), ErrorKind::kInternal);
}

TEST(ErrorTest, KindsHaveNamesForPeople) {
  EXPECT_STREQ(ErrorKindName(ErrorKind::kDataLoss), "data loss");
  EXPECT_STREQ(ErrorKindName(ErrorKind::kInvalidArgument), "invalid argument");
}

}  // namespace
}  // namespace docmem::engine
