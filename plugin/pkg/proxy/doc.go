// Package proxy asks upstreams: one client for DNS over UDP, TCP, TLS (RFC 7858), HTTPS (RFC 8484), HTTP/3 and QUIC
// (RFC 9250).
//
//	                 ┌─▶ udp.go      many sockets: a random id for each query, a random port for each batch
//	Proxy.Begin ─────┼─▶ stream.go   few connections of TCP or TLS, many queries on each ──▶ Ender.EndExchange, once
//	  Exchange       ├─▶ httppool.go connections of HTTPS: one with many queries, or many with one each
//	                 └─▶ workers.go  goroutines that wait for QUIC (quic.go): doq.go, http3.go
//	                        │
//	engine.go: one lock, what is under way (idtable.go), when it is late (wheel.go)
//	mismatch.go: is this a reply to this query (package replies)? cookie.go: what else it must repeat
//	shared.go: Proxies to one upstream that have UDP sockets in common
//
// A Proxy is one upstream. Its heart is asynchronous: Begin sends and returns, and the reply's octets are told to
// the exchange's owner. Connect is Begin and a wait, on messages. No goroutine is started per query. Replies over
// UDP are read by the loop that served the query, if it watches for others (eventloop.Watcher), else by one reader for
// all sockets; only QUIC, which other people's code speaks, has a goroutine for each query under way.
//
// health.go decides whether an upstream is down: an error alone says little, so it makes the prober ask until it
// has an answer. Any reply to a query says that the upstream is well.
//
// Where to go:
//
//   - what is under way: proxy.go, engine.go, exchange.go, idtable.go, wheel.go; barrier.go waits for its end,
//     giveway.go ends the oldest where too much is. connect.go and transport.go are the way in for programs with
//     messages, persistent.go what they have open, dial.go how all that is opened.
//   - UDP: udp.go, udpopen.go (which socket), budget.go (how many), wayless.go (those that lead nowhere any more),
//     unsent.go and together.go (a batch leaves at once). What the system does is package udpsockets.
//   - TCP and TLS: stream.go, streamconn.go (one connection), records.go (how it is written to), mute.go (servers
//     that answer once on a connection), inturn.go (those that answer in turn there). link.go is what these
//     connections and those of HTTPS have in common.
//   - HTTPS: https.go (requests and responses), httppool.go, httpconn.go (one connection), http1.go, http2.go and
//     http2frames.go (what is sent and what comes), httplibrary.go (clients of net/http).
//   - QUIC: quic.go (the connections), quicstreams.go, quicsocket.go, quicsession.go. What is spoken there: doq.go, or
//     http3.go with http3frames.go (what is sent and what comes) and http3control.go (what tells of the connection).
//     All of these by workers.go.
//   - replies: mismatch.go, cookie.go; errors.go when there is none.
//   - health.go and prober.go: is the upstream well? metrics.go: what is counted.
//   - many servers in place of one upstream, for who resolves names: peer.go, spare.go (their sockets). address.go
//     is where one is.
//
// All methods may be called from any number of goroutines; the Set methods belong before the first query. Sockets and
// goroutines begin with the first query, and Stop waits until the last of them is gone. A Transport with its
// own connections is kept for programs that dial by themselves.
//
// The package knows nothing of clients, policies and the order in which upstreams are tried. Start at Proxy.Begin.
package proxy
