package quicconn

import (
	"context"
	"net"
)

// A process that hands its sockets to another one (SIGUSR2) goes on to read those of QUIC until its connections have
// ended: of two that read each would get a part of the other's packets. So it passes on what is not for its own
// connections, and who connects meanwhile is served by the next process at once:
//
//	client ──▶ socket ──▶ transport before ──▶ its own connections
//	                            └──what is for others──▶ handover, a Unix socket ──▶ transport after
//
// The transport after reads the handover until the one before closes it, and from then on the socket. It sends from the
// socket at all times. Where there is no handover, because the system has none or the process before is an older
// program, it waits until that one has ended. A reload in which the next server cannot go on with the connections is
// the same in one process.

// handing is a socket that hands on packets, see Packets.
type handing interface {
	// passOn has packets that are not for connections with ids of own passed on from now on. connecting reports whether
	// the handshake with a client is not over. It reports false if there is no transport after.
	passOn(own ids, connecting func(client net.Addr) bool) bool
	// awaitBefore waits until the transport before reads the socket no more, or ctx is over.
	awaitBefore(ctx context.Context)
}

// passOn has the transport after this one serve who comes from now on. It reports false if there is none.
func (t *Transport) passOn() bool {
	s, ok := t.packets.(handing)
	return ok && s.passOn(t.ids, t.isConnecting)
}

// isConnecting reports whether the handshake with a client is not over.
func (t *Transport) isConnecting(client net.Addr) bool {
	from := client.String()
	return t.anyone(func(a *arrival) bool { return a.connecting() && a.from.String() == from })
}

// awaitBefore waits until the transport before is done with the socket: the one after reads it when this one has closed
// it.
func (t *Transport) awaitBefore(ctx context.Context) {
	if s, ok := t.packets.(handing); ok {
		s.awaitBefore(ctx)
	}
}
