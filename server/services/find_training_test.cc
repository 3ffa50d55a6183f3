#include "server/services/find_training.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/errors/error.h"

namespace docmem::server {
namespace {

// Has one training, of the collection `law`.
class OneTraining final : public Trainings {
 public:
  absl::StatusOr<TrainingReport> Get(const std::string& id) override {
    if (id == "training-1") return TrainingReport{.id = id, .document = {"law", "d"}};
    if (id == "unreadable") {
      return Error(absl::StatusCode::kUnavailable, reason::kRegistryUnavailable, "no registry");
    }
    return Error(absl::StatusCode::kNotFound, reason::kJobNotFound, "there is no training job");
  }
  absl::StatusOr<TrainingReport> Start(const store::DocumentKey&, TrainingRequest) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<store::Page<TrainingReport>> List(const std::string&, const std::string&,
                                                   const store::PageRequest&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<TrainingReport> Cancel(const std::string&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<uint64_t> Watch(const std::string&, std::shared_ptr<TrainingSink>) override {
    return absl::UnimplementedError("");
  }
  void Leave(const std::string&, uint64_t) override {}
};

TEST(FindTraining, OneInAnotherCollectionIsAsAbsentAsOneThatNeverWas) {
  OneTraining trainings;
  const Principal lawyer{.collections = AllowedCollections({"law"})};
  const Principal reporter{.collections = AllowedCollections({"news"})};
  EXPECT_EQ(FindTraining(lawyer, trainings, "training-1")->id, "training-1");
  const absl::Status hidden = FindTraining(reporter, trainings, "training-1").status();
  const absl::Status absent = FindTraining(lawyer, trainings, "training-2").status();
  EXPECT_EQ(hidden.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(hidden.message(), "no training 'training-1'");
  EXPECT_EQ(absent.message(), "no training 'training-2'");
  EXPECT_EQ(store::ReasonOf(hidden), store::ReasonOf(absent));
}

TEST(FindTraining, OtherFailuresStayWhatTheyAre) {
  OneTraining trainings;
  const Principal anyone{.collections = AllowedCollections::All()};
  EXPECT_EQ(FindTraining(anyone, trainings, "unreadable").status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace docmem::server
