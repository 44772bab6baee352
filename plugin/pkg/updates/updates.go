// Package updates passes UPDATE messages on to the server that may do what they say (RFC 2136 §6).
//
//	client ──packet──▶ Forwarder.Forward ──the same octets, signature and all──▶ primary
//	       ◀──reply───                  ◀──its reply, as it is────────────────
//
// Nothing is read or changed on the way, so that a signature (TSIG, RFC 8945) is between client and primary: who passes
// on needs no key, and gains no right. The package knows no Corefile and no zones.
//
// A Forwarder may be used by any number of goroutines. Those of one connection go one behind the other (see Order).
// Start at Forwarder.Forward.
package updates

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/hostaddrs"

	"github.com/miekg/dns"
)

// Patience is how long all servers together may take to answer.
const Patience = 5 * time.Second

// queueTime is how long a message waits for those before it: of a primary that is far away there may be many, and a few
// that are not answered.
const queueTime = 4 * Patience

// maxUDP is up to which size, in octets, a message that came over UDP goes on over UDP: what any server takes.
const maxUDP = 512

// Forwarder passes messages on to the first of some servers that answers. It is made by filling in the fields, which
// are not changed when it is used.
type Forwarder struct {
	Servers []string // host:port

	waits eventloop.Patience // with servers that are silent
	order eventloop.Patience // with messages before that are under way
}

// errNoServer is the error of a Forwarder whose servers do not answer.
var errNoServer = errors.New("no server answers")

// own is the sockets that messages are passed on from, so that one that comes back is known.
var own sync.Map // string → nothing

// socket is one in own: a client on this machine may have the same port of the other protocol.
func socket(a net.Addr) string { return a.Network() + " " + a.String() }

// Serve passes the message of w on, which came as packet, and the reply back. A message that this process has passed on
// itself is refused: it goes round in a circle. The code returned is for the server, as that of plugin.Handler's
// ServeDNS.
func (f *Forwarder) Serve(ctx context.Context, w dns.ResponseWriter, packet []byte) (int, error) {
	if packet == nil {
		return dns.RcodeNotImplemented, errors.New("an update came over a transport that does not carry them")
	}
	if InCircle(w.RemoteAddr()) {
		return dns.RcodeRefused, nil
	}
	reply, err := f.Forward(ctx, packet, w.RemoteAddr().Network() != "udp")
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	_, err = w.Write(reply)
	return dns.RcodeSuccess, err
}

// InCircle reports whether a message came from a socket that this process passes messages on from.
func InCircle(from net.Addr) bool {
	_, circle := own.Load(socket(from))
	return circle
}

// Forward passes a packet on, and returns the reply, both as they are. The servers are asked one after the other, as
// long as none answers; Patience is divided among them. A message with a Position goes when those before are answered.
func (f *Forwarder) Forward(ctx context.Context, packet []byte, tcp bool) (reply []byte, err error) {
	if at := PositionOf(ctx); at != nil {
		defer at.End()
		if err := f.queue(ctx, at); err != nil {
			return nil, fmt.Errorf("update that is behind another one: %w", err)
		}
	}
	err = errNoServer
	ctx, done := f.waits.Wait(ctx)
	defer func() { err = done(err) }()
	end := time.Now().Add(Patience)
	for i, server := range f.Servers {
		// What one that fails at once leaves of its time is for those behind it.
		ctx, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(len(f.Servers)-i))
		reply, err = exchange(ctx, server, packet, tcp || len(packet) > maxUDP)
		cancel()
		if err == nil {
			return reply, nil
		}
		err = fmt.Errorf("update passed on to %s: %w", server, err)
	}
	return nil, err
}

// queue waits until those before are answered.
func (f *Forwarder) queue(ctx context.Context, at *Position) error {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	ctx, done := f.order.Wait(ctx)
	return done(at.Await(ctx))
}

// exchange asks one server.
func exchange(ctx context.Context, server string, packet []byte, tcp bool) ([]byte, error) {
	network := "udp"
	if tcp {
		network = "tcp"
	}
	conn, err := hostaddrs.Dial(ctx, new(net.Dialer), network, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	local := socket(conn.LocalAddr())
	own.Store(local, nil)
	defer own.Delete(local)
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if tcp {
		return overTCP(conn, packet)
	}
	return overUDP(conn, packet)
}

// overTCP sends a frame and reads one.
func overTCP(conn net.Conn, packet []byte) ([]byte, error) {
	frame := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(packet)), uint16(len(packet)))
	if _, err := conn.Write(append(frame, packet...)); err != nil {
		return nil, err
	}
	var head [2]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	reply := make([]byte, binary.BigEndian.Uint16(head[:]))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return nil, err
	}
	if !answers(reply, packet) {
		return nil, errors.New("the reply is to something else")
	}
	return reply, nil
}

// overUDP sends a datagram and reads until one answers it. It is sent once: the client sends again if it wants to.
func overUDP(conn net.Conn, packet []byte) ([]byte, error) {
	if _, err := conn.Write(packet); err != nil {
		return nil, err
	}
	buf := make([]byte, dns.MaxMsgSize)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return nil, err
		}
		if answers(buf[:n], packet) {
			return buf[:n], nil
		}
	}
}

// answers reports whether a message is the reply to an UPDATE: its id and opcode, and that it is one.
func answers(reply, packet []byte) bool {
	return len(reply) >= 12 && reply[0] == packet[0] && reply[1] == packet[1] && reply[2]&0xf8 == 0x80|dns.OpcodeUpdate<<3
}
