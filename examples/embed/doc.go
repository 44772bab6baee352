// Package embed shows by examples, which are run as tests, how a program has the server inside:
//
//	Example                 start, reload and stop
//	Example_ownListener     sockets that the program opened, and a handler of its own
//	Example_ownLogger       log lines that go where the program wants them
//	Example_strangers       two servers that know nothing of each other
//
// A program links in the plugins that it wants by importing them; core/plugin has all of them. Servers share flags,
// metrics and log of their process, and nothing else. Signals are left to the program, unless it calls coremain.Run,
// which is the whole of the command coredns, or caddy.TrapSignals. The program test/embed does the former.
package embed
