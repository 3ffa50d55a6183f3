#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <ostream>
#include <string>
#include <vector>

#include "docmem/v1/document.pb.h"

namespace docmem::cli {

/// Everything about a document, for people.
void PrintDocument(const v1::Document& document, std::ostream& out);

/// One line for each document.
void PrintDocuments(const std::vector<v1::Document>& documents, std::ostream& out);

/// One line for each cache; the default one is marked.
void PrintCaches(const google::protobuf::RepeatedPtrField<v1::Cache>& caches,
                 const std::string& default_id, std::ostream& out);

/// One line for each way that was measured.
void PrintEvaluation(const v1::Evaluation& evaluation, std::ostream& out);

/// "debian-social-contract: 1413 tokens, ready".
std::string DocumentLine(const v1::Document& document);

}  // namespace docmem::cli
