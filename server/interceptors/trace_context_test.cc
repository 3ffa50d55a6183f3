#include "server/interceptors/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace docmem::server {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kRest = "-00f067aa0ba902b7-01";

TEST(TraceIdOf, IsTheSecondPartOfAValidHeader) {
  EXPECT_EQ(TraceIdOf("00-" + kTrace + kRest), kTrace);
  EXPECT_EQ(TraceIdOf("01-" + kTrace + kRest + "-later"), kTrace);
}

TEST(TraceIdOf, WhatIsNoHeaderGivesNothing) {
  for (const std::string& bad :
       {std::string(), std::string("canary"), kTrace, "00-" + kTrace, "00-" + kTrace + kRest + "x",
        "00-" + kTrace + kRest + "-later", "ff-" + kTrace + kRest, "00_" + kTrace + kRest,
        "00-" + std::string(32, '0') + kRest, "00-" + std::string(32, 'A') + kRest,
        "00-" + std::string(32, ' ') + kRest, "0x-" + kTrace + kRest}) {
    EXPECT_EQ(TraceIdOf(bad), "") << bad;
  }
}

}  // namespace
}  // namespace docmem::server
