// SPDX-License-Identifier: BSL-1.0
// The files with which a rank proves, and lets others prove, that they belong to one job: naming them asks for TLS. A part
// of launch_info.hpp and of the options of the TCP store; used by transport/tls.hpp.
#pragma once

#include <string>

namespace cohort {

/// Files in PEM form: all three, or none. With them every connection to another host is TLS 1.3, and both of its ends show
/// a certificate and check the other's.
///
/// Needs: a program that is linked with the component `tls`; certificates that serve as a server's and as a client's
struct tls_options {
  static constexpr const char* certificate_variable = "COHORT_TLS_CERTIFICATE";
  static constexpr const char* key_variable = "COHORT_TLS_KEY";
  static constexpr const char* authority_variable = "COHORT_TLS_AUTHORITY";

  std::string certificate{};  ///< of this process, then those between it and the authority, if there are any
  std::string key{};          ///< of that certificate; no passphrase, and nothing for strangers to read
  std::string authority{};    ///< who has a certificate signed by one of these belongs to the job
  [[nodiscard]] bool asked_for() const noexcept { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

}  // namespace cohort
