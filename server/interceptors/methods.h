#pragma once

#include <span>
#include <string_view>

#include "absl/time/time.h"
#include "server/interceptors/principal.h"

namespace docmem::server {

/// In which phases of the daemon a method answers.
enum class Availability {
  kServing,   ///< needs the model: neither while loading or draining, nor in recovery mode
  kRegistry,  ///< also in recovery mode
  kDraining,  ///< also in recovery mode and while draining
  kAlways,
};

/// What is fixed for each RPC.
struct Method {
  std::string_view path;   ///< as on the wire
  std::string_view label;  ///< in metrics and logs
  Role role = Role::kAdmin;
  absl::Duration deadline = absl::Seconds(30);  ///< where the client sets none
  Availability availability = Availability::kServing;
  bool timed = false;        ///< has a duration histogram
  bool daemon_wide = false;  ///< acts on all collections: for those who may use all
};

/// No client may ask for more.
inline constexpr absl::Duration kMaximumDeadline = absl::Hours(24);

namespace method {

inline constexpr absl::Duration kQuestion = absl::Seconds(120);
inline constexpr absl::Duration kLong = absl::Hours(1);
inline constexpr absl::Duration kShort = absl::Seconds(30);
inline constexpr Availability kRegistry = Availability::kRegistry;
inline constexpr Availability kDraining = Availability::kDraining;

inline constexpr Method kCollectionCreate{"/docmem.v1.CollectionService/Create",
                                          "Collection.Create", Role::kAdmin, kShort, kRegistry};
inline constexpr Method kCollectionGet{"/docmem.v1.CollectionService/Get", "Collection.Get",
                                       Role::kQuery, kShort, kRegistry};
inline constexpr Method kCollectionList{"/docmem.v1.CollectionService/List", "Collection.List",
                                        Role::kQuery, kShort, kRegistry};
inline constexpr Method kCollectionUpdate{"/docmem.v1.CollectionService/Update",
                                          "Collection.Update", Role::kAdmin, kShort, kRegistry};
inline constexpr Method kCollectionDelete{"/docmem.v1.CollectionService/Delete",
                                          "Collection.Delete", Role::kAdmin, kLong, kRegistry};

inline constexpr Method kIngest{"/docmem.v1.DocumentService/Ingest",
                                "Document.Ingest",
                                Role::kWrite,
                                kLong,
                                Availability::kServing,
                                true};
inline constexpr Method kDocumentGet{"/docmem.v1.DocumentService/Get", "Document.Get", Role::kQuery,
                                     kShort, kRegistry};
inline constexpr Method kDocumentBatchGet{"/docmem.v1.DocumentService/BatchGet",
                                          "Document.BatchGet", Role::kQuery, kShort, kRegistry};
inline constexpr Method kDocumentList{"/docmem.v1.DocumentService/List", "Document.List",
                                      Role::kQuery, kShort, kRegistry};
inline constexpr Method kDocumentUpdate{"/docmem.v1.DocumentService/Update", "Document.Update",
                                        Role::kWrite, kShort, kRegistry};
inline constexpr Method kDocumentDelete{"/docmem.v1.DocumentService/Delete", "Document.Delete",
                                        Role::kWrite, kShort, kRegistry};
inline constexpr Method kGetText{"/docmem.v1.DocumentService/GetText", "Document.GetText",
                                 Role::kWrite, kShort, kRegistry};
inline constexpr Method kPrefetch{"/docmem.v1.DocumentService/Prefetch", "Document.Prefetch",
                                  Role::kQuery, kLong};
inline constexpr Method kBuildCache{"/docmem.v1.DocumentService/BuildCache",
                                    "Document.BuildCache",
                                    Role::kWrite,
                                    kLong,
                                    Availability::kServing,
                                    true};
inline constexpr Method kDeleteCache{"/docmem.v1.DocumentService/DeleteCache",
                                     "Document.DeleteCache", Role::kWrite, kShort, kRegistry};
inline constexpr Method kExport{"/docmem.v1.DocumentService/Export", "Document.Export",
                                Role::kWrite, kLong};
inline constexpr Method kImport{"/docmem.v1.DocumentService/Import", "Document.Import",
                                Role::kWrite, kLong};
inline constexpr Method kSetEvaluation{"/docmem.v1.DocumentService/SetEvaluation",
                                       "Document.SetEvaluation", Role::kWrite, kShort, kRegistry};

inline constexpr Method kAdapterUpload{"/docmem.v1.AdapterService/Upload",
                                       "Adapter.Upload",
                                       Role::kWrite,
                                       kLong,
                                       Availability::kServing,
                                       true};
inline constexpr Method kAdapterGet{"/docmem.v1.AdapterService/Get", "Adapter.Get", Role::kQuery,
                                    kShort, kRegistry};
inline constexpr Method kAdapterList{"/docmem.v1.AdapterService/List", "Adapter.List", Role::kQuery,
                                     kShort, kRegistry};
inline constexpr Method kAdapterDownload{"/docmem.v1.AdapterService/Download", "Adapter.Download",
                                         Role::kWrite, kLong, kRegistry};
inline constexpr Method kAdapterSetCurrent{"/docmem.v1.AdapterService/SetCurrent",
                                           "Adapter.SetCurrent", Role::kWrite, kShort, kRegistry};
inline constexpr Method kAdapterDelete{"/docmem.v1.AdapterService/Delete", "Adapter.Delete",
                                       Role::kWrite, kShort, kRegistry};

inline constexpr Method kTrainingStart{"/docmem.v1.TrainingService/Start", "Training.Start",
                                       Role::kWrite};
inline constexpr Method kTrainingGet{"/docmem.v1.TrainingService/Get", "Training.Get",
                                     Role::kQuery};
inline constexpr Method kTrainingList{"/docmem.v1.TrainingService/List", "Training.List",
                                      Role::kQuery};
inline constexpr Method kTrainingWatch{"/docmem.v1.TrainingService/Watch", "Training.Watch",
                                       Role::kQuery, absl::InfiniteDuration()};
inline constexpr Method kTrainingCancel{"/docmem.v1.TrainingService/Cancel", "Training.Cancel",
                                        Role::kWrite};

inline constexpr Method kAsk{"/docmem.v1.QueryService/Ask", "Query.Ask", Role::kQuery, kQuestion,
                             Availability::kServing,        true};
inline constexpr Method kScore{
    "/docmem.v1.QueryService/Score", "Query.Score", Role::kQuery, kQuestion,
    Availability::kServing,          true};
inline constexpr Method kAbort{"/docmem.v1.QueryService/Abort", "Query.Abort", Role::kQuery, kShort,
                               kDraining};
inline constexpr Method kRoute{"/docmem.v1.QueryService/Route", "Query.Route", Role::kQuery};

inline constexpr Method kGetStatus{"/docmem.v1.AdminService/GetStatus", "Admin.GetStatus",
                                   Role::kQuery, kShort, Availability::kAlways};
inline constexpr Method kListResident{"/docmem.v1.AdminService/ListResident", "Admin.ListResident",
                                      Role::kAdmin, kShort, kDraining};
inline constexpr Method kDrain{.path = "/docmem.v1.AdminService/Drain",
                               .label = "Admin.Drain",
                               .role = Role::kAdmin,
                               .availability = kDraining,
                               .daemon_wide = true};

inline constexpr Method kReflection{
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "Reflection.ServerReflectionInfo", Role::kQuery, kShort, Availability::kAlways};

}  // namespace method

/// Every method of every service, for tests that walk them.
std::span<const Method> AllMethods();

}  // namespace docmem::server
