// SPDX-License-Identifier: BSL-1.0
// The bodies of Boost.JSON, compiled here once: no library of Boost's is linked.
#include <boost/json/src.hpp>
