#include "adapter_store/registry/intent_table.h"

#include <map>
#include <utility>

#include "adapter_store/registry/row_codec.h"
#include "adapter_store/status_macros.h"

namespace docmem::store {
namespace {

absl::StatusOr<int64_t> InsertIntent(Sql& sql, const Intent& intent) {
  int64_t id = 0;
  STORE_RETURN_IF_ERROR(
      sql.Query("INSERT INTO intents (action, instance, generation, expires) "
                "VALUES ($1, $2, $3, $4) RETURNING id",
                {static_cast<int64_t>(intent.action), intent.instance,
                 static_cast<int64_t>(intent.generation), absl::ToUnixMicros(intent.expires)},
                [&](const SqlRow& row) {
                  id = IntOf(row[0]);
                  return absl::OkStatus();
                }));
  return id;
}

}  // namespace

absl::StatusOr<Intent> BeginPublication(Sql& sql, Intent intent) {
  STORE_ASSIGN_OR_RETURN(intent.id, InsertIntent(sql, intent));
  for (IntentFile& file : intent.files) {
    STORE_RETURN_IF_ERROR(
        sql.Query("INSERT INTO intent_files (intent_id, kind) VALUES ($1, $2) RETURNING file_id",
                  {intent.id, static_cast<int64_t>(file.kind)}, [&](const SqlRow& row) {
                    file.id = IntOf(row[0]);
                    return absl::OkStatus();
                  }));
  }
  return intent;
}

absl::StatusOr<int64_t> BeginDeletion(Sql& sql, const Intent& intent) {
  STORE_ASSIGN_OR_RETURN(const int64_t id, InsertIntent(sql, intent));
  for (const IntentFile& file : intent.files) {
    STORE_RETURN_IF_ERROR(
        sql.Execute("INSERT INTO intent_files (file_id, intent_id, kind) VALUES ($1, $2, $3)",
                    {file.id, id, static_cast<int64_t>(file.kind)}));
  }
  return id;
}

absl::Status EndPublication(Sql& sql, int64_t id) {
  bool found = false;
  STORE_RETURN_IF_ERROR(
      sql.Query("DELETE FROM intents WHERE id = $1 RETURNING id", {id}, [&](const SqlRow&) {
        found = true;
        return absl::OkStatus();
      }));
  if (found) return absl::OkStatus();
  return absl::AbortedError("the publication took so long that its files were given up; try again");
}

absl::Status SetIntentAction(Sql& sql, int64_t id, IntentAction action) {
  return sql.Execute("UPDATE intents SET action = $1 WHERE id = $2",
                     {static_cast<int64_t>(action), id});
}

absl::Status DeleteIntent(Sql& sql, int64_t id) {
  return sql.Execute("DELETE FROM intents WHERE id = $1", {id});
}

absl::StatusOr<std::vector<Intent>> AllIntents(Sql& sql) {
  std::map<int64_t, Intent> intents;
  STORE_RETURN_IF_ERROR(sql.Query("SELECT id, action, instance, generation, expires FROM intents",
                                  {}, [&](const SqlRow& row) {
                                    Intent intent;
                                    intent.id = IntOf(row[0]);
                                    intent.action = static_cast<IntentAction>(IntOf(row[1]));
                                    intent.instance = TextOf(row[2]);
                                    intent.generation = static_cast<uint64_t>(IntOf(row[3]));
                                    intent.expires = absl::FromUnixMicros(IntOf(row[4]));
                                    intents.emplace(intent.id, std::move(intent));
                                    return absl::OkStatus();
                                  }));
  STORE_RETURN_IF_ERROR(
      sql.Query("SELECT intent_id, file_id, kind FROM intent_files", {}, [&](const SqlRow& row) {
        intents[IntOf(row[0])].files.push_back(
            {IntOf(row[1]), static_cast<ArtifactKind>(IntOf(row[2]))});
        return absl::OkStatus();
      }));
  std::vector<Intent> result;
  result.reserve(intents.size());
  for (auto& [id, intent] : intents) result.push_back(std::move(intent));
  return result;
}

}  // namespace docmem::store
