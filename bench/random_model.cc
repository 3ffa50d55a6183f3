// Writes a model folder with random weights: the shapes of a target model where its real weights
// aren't at hand.
//   random_model CONFIG_JSON TOKENIZER_FOLDER TARGET_FOLDER
#include <ATen/ATen.h>

#include <exception>
#include <filesystem>
#include <iostream>

#include "engine/formats/mapped_file.h"
#include "engine/model/testing.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: random_model CONFIG_JSON TOKENIZER_FOLDER TARGET_FOLDER\n";
    return 2;
  }
  try {
    const std::filesystem::path tokenizer = argv[2], target = argv[3];
    const auto config = docmem::engine::MappedFile::Open(argv[1]);
    docmem::engine::testing::MakeModel(target, std::string(config.text()), at::kBFloat16, 1);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      std::filesystem::copy_file(tokenizer / name, target / name,
                                 std::filesystem::copy_options::overwrite_existing);
    }
  } catch (const std::exception& error) {
    std::cerr << "random_model: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
