// Package dnsserver is the server type "dns": it turns the blocks of a Corefile into Servers that listen. It is the
// porch of the core: what other people's programs and plugins see. What a query meets lies below core/internal.
//
//	Corefile ──register.go──▶ Configs ──MakeServers──▶ Servers, one for each listen address
//
//	           ┌─ NewServer ──▶ chain.Build: blocks with their plugins    server.go
//	Server ────┼─ service() ──▶ service.Service: what transports know
//	           └─ Serve, ServePacket ──▶ a transport of core/internal     plain.go, tls.go, quic.go, ...
//
//	reload:  generation.go has the next Servers take over the transports of ours (takeover.go)
//
// Where to go:
//
//   - a Corefile: register.go (its blocks), dnsserver.go (Config: what directives set), places.go (their lines),
//     address.go (their zones), stanza.go, serving.go and labels.go (what plugins ask of them), validate.go, once.go
//     (one question, without listening), servertype.go (caddy).
//   - a server: server.go, listen.go and shared.go (its sockets); the kinds of it: plain.go, tls.go, http.go, https.go,
//     https3.go, quic.go, grpc.go; proxy.go, cookies.go and limits.go are what blocks say of listeners.
//   - begin and end: generation.go, restart.go and takeover.go (a reload), reread.go (what it reads), failure.go (a
//     start that fails), stop.go, ends.go (of plugins), listing.go (the first lines). What caddy leaves out is package
//     caddystate.
//   - a process in the place of another one: inherited.go, duplicates.go, quicpackets.go.
//
// A Server's blocks and chains never change once it is made; any number of goroutines may serve with it. A reload makes
// new Servers, which go on with the sockets and connections of those before.
//
// Start at dnsContext.MakeServers for a configuration's way, and at Server.ServePacket for a query's;
// docs/ARCHITECTURE.md has both.
package dnsserver
