#include "server/interceptors/methods.h"

namespace docmem::server {

std::span<const Method> AllMethods() {
  using namespace method;  // NOLINT: the list is the point
  static constexpr Method kMethods[] = {kCollectionCreate,
                                        kCollectionGet,
                                        kCollectionList,
                                        kCollectionUpdate,
                                        kCollectionDelete,
                                        kIngest,
                                        kDocumentGet,
                                        kDocumentBatchGet,
                                        kDocumentList,
                                        kDocumentUpdate,
                                        kDocumentDelete,
                                        kGetText,
                                        kPrefetch,
                                        kBuildCache,
                                        kDeleteCache,
                                        kExport,
                                        kImport,
                                        kSetEvaluation,
                                        kAdapterUpload,
                                        kAdapterGet,
                                        kAdapterList,
                                        kAdapterDownload,
                                        kAdapterSetCurrent,
                                        kAdapterDelete,
                                        kTrainingStart,
                                        kTrainingGet,
                                        kTrainingList,
                                        kTrainingWatch,
                                        kTrainingCancel,
                                        kAsk,
                                        kScore,
                                        kAbort,
                                        kRoute,
                                        kGetStatus,
                                        kListResident,
                                        kDrain,
                                        kReflection};
  return kMethods;
}

}  // namespace docmem::server
