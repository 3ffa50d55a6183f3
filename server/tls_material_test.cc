#include "server/tls_material.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/time/clock.h"

namespace docmem::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Drain(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

struct Pair {
  std::string certificate;
  std::string key;
};

// Self-signed, valid between two offsets from now.
Pair MakePair(absl::Duration from, absl::Duration to, const char* password = nullptr) {
  EVP_PKEY* const key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  X509* const certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), absl::ToInt64Seconds(from));
  X509_gmtime_adj(X509_getm_notAfter(certificate), absl::ToInt64Seconds(to));
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  BIO* const certificate_pem = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_pem, certificate);
  BIO* const key_pem = BIO_new(BIO_s_mem());
  PEM_write_bio_PKCS8PrivateKey(key_pem, key, password ? EVP_aes_128_cbc() : nullptr, password,
                                password ? static_cast<int>(std::strlen(password)) : 0, nullptr,
                                nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {Drain(certificate_pem), Drain(key_pem)};
}

Pair GoodPair() { return MakePair(-absl::Hours(1), absl::Hours(24)); }

class TlsMaterialTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write(GoodPair());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary) << text;
  }
  void Write(const Pair& pair) const {
    Write(paths_.certificate, pair.certificate);
    Write(paths_.key, pair.key);
  }
  std::string Error() const {
    const auto material = ReadTlsMaterial(paths_, absl::Now());
    return material.ok() ? "no error" : std::string(material.status().message());
  }

  const std::string folder_ = testing::TempDir() + "docmem_tls_material_test";
  TlsPaths paths_{.certificate = folder_ + "/cert.pem", .key = folder_ + "/key.pem"};
};

TEST_F(TlsMaterialTest, APairThatBelongsTogetherIsTakenWithItsEnd) {
  const auto material = ReadTlsMaterial(paths_, absl::Now());
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_NEAR(absl::ToDoubleHours(material->expires - absl::Now()), 24, 0.1);
  EXPECT_EQ(material->client_ca, "");
  EXPECT_THAT(material->certificate, HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_THAT(material->key, HasSubstr("BEGIN PRIVATE KEY"));
}

TEST_F(TlsMaterialTest, TheEarliestEndOfAChainCounts) {
  const Pair leaf = GoodPair();
  Write({leaf.certificate + MakePair(-absl::Hours(1), absl::Hours(2)).certificate, leaf.key});
  const auto material = ReadTlsMaterial(paths_, absl::Now());
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_NEAR(absl::ToDoubleHours(material->expires - absl::Now()), 2, 0.1);
}

TEST_F(TlsMaterialTest, APairThatDoesNotBelongTogetherIsRefused) {
  Write({GoodPair().certificate, GoodPair().key});
  EXPECT_THAT(Error(), AllOf(HasSubstr("--tls-cert "), HasSubstr(paths_.key),
                             HasSubstr("don't belong together")));
}

TEST_F(TlsMaterialTest, ACertificateOutsideItsTimeIsRefused) {
  Write(MakePair(-absl::Hours(2), -absl::Hours(1)));
  EXPECT_THAT(Error(), HasSubstr("has expired on "));
  Write(MakePair(absl::Hours(1), absl::Hours(2)));
  EXPECT_THAT(Error(), HasSubstr("is valid only from "));
}

TEST_F(TlsMaterialTest, DamagedFilesAreNamedAndNotQuoted) {
  const Pair good = GoodPair();
  Write({"canary", good.key});
  EXPECT_THAT(Error(), AllOf(HasSubstr("cert.pem has no certificate"), Not(HasSubstr("canary"))));
  Write({good.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
         good.key});
  EXPECT_THAT(Error(), HasSubstr("cert.pem has a damaged certificate"));
  Write({good.certificate, "canary"});
  EXPECT_THAT(Error(), AllOf(HasSubstr("key.pem has no private key"), Not(HasSubstr("canary"))));
  Write(MakePair(-absl::Hours(1), absl::Hours(1), "password"));
  EXPECT_THAT(Error(), HasSubstr("key.pem has no private key"));
  std::filesystem::remove(paths_.key);
  EXPECT_THAT(Error(), HasSubstr("key.pem can't be read"));
}

TEST_F(TlsMaterialTest, AClientAuthorityMustHaveACertificate) {
  paths_.client_ca = folder_ + "/ca.pem";
  EXPECT_THAT(Error(), HasSubstr("--tls-client-ca " + paths_.client_ca + " can't be read"));
  Write(paths_.client_ca, GoodPair().key);
  EXPECT_THAT(Error(), HasSubstr("has no certificate"));
  Write(paths_.client_ca, GoodPair().certificate);
  const auto material = ReadTlsMaterial(paths_, absl::Now());
  ASSERT_TRUE(material.ok()) << material.status();
  EXPECT_NE(material->client_ca, "");
}

}  // namespace
}  // namespace docmem::server
