// Package dnstest helps to test handlers: recorders keep what a handler writes, servers answer on loopback.
//
// The recorders also serve plugins that must know what was written below them, such as log. A recorder serves one
// query; goroutines that use it must come one after the other. Start at NewRecorder; then NewServer.
package dnstest
