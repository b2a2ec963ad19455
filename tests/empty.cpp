// SPDX-License-Identifier: BSL-1.0
// The owner of the precompiled headers: CMake wants a source file of it.
