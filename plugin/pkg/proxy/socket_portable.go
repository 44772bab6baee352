package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
)

// portableSockets has a goroutine for each socket.
type portableSockets struct {
	to      receiver
	running sync.WaitGroup

	mu    sync.Mutex
	conns map[*net.UDPConn]struct{} // nil once stopped
}

type portableSocket struct {
	conn  *net.UDPConn
	owner *portableSockets
}

func newPortableSockets(to receiver) (sockets, error) {
	return &portableSockets{to: to, conns: map[*net.UDPConn]struct{}{}}, nil
}

func (p *portableSockets) open(local netip.Addr, remote netip.AddrPort, owner *udpSocket, _ *eventloop.Loop) (socket, error) {
	dialer := new(net.Dialer)
	if local.IsValid() {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0))
	}
	dialed, err := hostaddrs.Dial(context.Background(), dialer, "udp", remote.String()) // which does not wait
	if err != nil {
		return nil, err
	}
	conn := dialed.(*net.UDPConn)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		conn.Close()
		return nil, errStopped
	}
	p.conns[conn] = struct{}{}
	p.running.Go(func() { p.read(conn, owner) })
	return &portableSocket{conn, p}, nil
}

// read tells what comes in until conn is closed.
func (p *portableSockets) read(conn *net.UDPConn, owner *udpSocket) {
	var one batch
	buf := make([]byte, maxDatagram)
	for {
		n, err := conn.Read(buf)
		switch {
		case err == nil:
			one.datagrams = append(one.datagrams, buf[:n])
			p.to.received(owner, &one, nil, p.to.now())
		case errors.Is(err, net.ErrClosed):
			return
		default:
			p.to.failed(owner, netip.AddrPort{}, err)
		}
	}
}

func (p *portableSockets) stop() {
	p.mu.Lock()
	for conn := range p.conns {
		conn.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.running.Wait()
}

func (s *portableSocket) send(b []byte) error {
	_, err := s.conn.Write(b)
	return err
}

func (s *portableSocket) sendAll(d *datagrams) (int, error) {
	for n := 0; ; n++ {
		b, ok := d.next()
		if !ok {
			return n, nil
		}
		if err := s.send(b); err != nil {
			return n, err
		}
	}
}

func (s *portableSocket) close() {
	s.owner.mu.Lock()
	delete(s.owner.conns, s.conn)
	s.owner.mu.Unlock()
	s.conn.Close()
}

func (s *portableSocket) addr() net.Addr { return s.conn.LocalAddr() }
