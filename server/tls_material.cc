#include "server/tls_material.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace docmem::server {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
template <class Thing>
using Owned = std::unique_ptr<Thing, Free>;
using Certificates = std::vector<Owned<X509>>;

absl::Status Bad(const std::string& what, const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat(what, " ", message));
}

// Of the library's last failure, which is forgotten with it.
std::string TakeReason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown" : reason;
}

// An encrypted key must not make the daemon ask its terminal.
int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<std::string> ReadFile(const std::string& what, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad() || !in.eof()) {
    return absl::UnavailableError(
        absl::StrCat(what, " can't be read, or is longer than ", kMaxFileBytes, " bytes"));
  }
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

absl::StatusOr<Certificates> ParseCertificates(const std::string& what, const std::string& pem) {
  const Owned<BIO> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Certificates certificates;
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    certificates.emplace_back(one);
  }
  const auto last = ERR_peek_last_error();
  const bool at_end =
      ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  const std::string reason = TakeReason();
  if (certificates.empty()) return Bad(what, "has no certificate in PEM");
  if (!at_end) return Bad(what, absl::StrCat("has a damaged certificate: ", reason));
  return certificates;
}

absl::StatusOr<absl::Time> ToTime(const std::string& what, const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return Bad(what, "has a date that can't be read");
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// When the first of them ends.
absl::StatusOr<absl::Time> CheckValidity(const std::string& what, const Certificates& certificates,
                                         absl::Time now) {
  absl::Time expires = absl::InfiniteFuture();
  for (const Owned<X509>& certificate : certificates) {
    const auto from = ToTime(what, X509_get0_notBefore(certificate.get()));
    const auto to = ToTime(what, X509_get0_notAfter(certificate.get()));
    if (!from.ok()) return from.status();
    if (!to.ok()) return to.status();
    if (*from > now) return Bad(what, absl::StrCat("is valid only from ", absl::FormatTime(*from)));
    if (*to <= now) return Bad(what, absl::StrCat("has expired on ", absl::FormatTime(*to)));
    expires = std::min(expires, *to);
  }
  return expires;
}

// As a handshake will load them, so that nothing it would refuse is taken.
absl::Status CheckPair(const std::string& what, X509* certificate, const std::string& key_pem,
                       const std::string& key_what) {
  const Owned<BIO> bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return Bad(key_what,
               absl::StrCat("has no private key in PEM without password: ", TakeReason()));
  }
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_server_method()));
  if (SSL_CTX_use_certificate(context.get(), certificate) != 1) {
    return Bad(what, absl::StrCat("isn't accepted by OpenSSL: ", TakeReason()));
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Bad(what, absl::StrCat("and ", key_what, " don't belong together: ", TakeReason()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsMaterial(const TlsPaths& paths, absl::Time now) {
  const std::string what = absl::StrCat("--tls-cert ", paths.certificate);
  const std::string key_what = absl::StrCat("--tls-key ", paths.key);
  const std::string ca_what = absl::StrCat("--tls-client-ca ", paths.client_ca);
  TlsMaterial material;
  auto certificate = ReadFile(what, paths.certificate);
  if (!certificate.ok()) return certificate.status();
  auto key = ReadFile(key_what, paths.key);
  if (!key.ok()) return key.status();
  const auto chain = ParseCertificates(what, *certificate);
  if (!chain.ok()) return chain.status();
  const auto expires = CheckValidity(what, *chain, now);
  if (!expires.ok()) return expires.status();
  absl::Status pair = CheckPair(what, chain->front().get(), *key, key_what);
  if (!pair.ok()) return pair;
  if (!paths.client_ca.empty()) {
    auto ca = ReadFile(ca_what, paths.client_ca);
    if (!ca.ok()) return ca.status();
    const auto authorities = ParseCertificates(ca_what, *ca);
    if (!authorities.ok()) return authorities.status();
    material.client_ca = *std::move(ca);
  }
  material.certificate = *std::move(certificate);
  material.key = *std::move(key);
  material.expires = *expires;
  return material;
}

}  // namespace docmem::server
