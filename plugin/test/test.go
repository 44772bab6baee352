// Package test is what tests of plugins stand on: queries with the replies they should get, a client's writer, handlers
// to stand behind a plugin, records, files, and a look at metrics.
//
//	Case.Msg ──▶ plugin.ServeDNS(ctx, dnstest.NewRecorder(&test.ResponseWriter{}), m) ──▶ SortAndCheck(reply, Case)
//
// It is no _test package, as plugins of others use it, too. All of it may be used by several tests at a time.
// Start at Case and SortAndCheck.
package test
