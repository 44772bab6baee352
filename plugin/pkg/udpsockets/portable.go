package udpsockets

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
)

// portableSockets has a goroutine for each socket.
type portableSockets struct {
	running sync.WaitGroup

	mu    sync.Mutex
	conns map[*net.UDPConn]struct{} // nil once stopped
}

type portableSocket struct {
	conn *net.UDPConn
	in   *portableSockets
}

// NewPortable is the way that works everywhere.
func NewPortable() (Set, error) {
	return &portableSockets{conns: map[*net.UDPConn]struct{}{}}, nil
}

func (p *portableSockets) Open(local netip.Addr, remote netip.AddrPort, to Receiver, _ *eventloop.Loop) (Socket, error) {
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
		return nil, os.ErrClosed
	}
	p.conns[conn] = struct{}{}
	p.running.Go(func() { p.read(conn, to) })
	return &portableSocket{conn, p}, nil
}

// read tells what comes in until conn is closed.
func (p *portableSockets) read(conn *net.UDPConn, to Receiver) {
	var one Batch
	buf := make([]byte, maxDatagram)
	for {
		n, err := conn.Read(buf)
		switch {
		case err == nil:
			one.Datagrams = append(one.Datagrams, buf[:n])
			to.Received(&one, nil, to.Now())
		case errors.Is(err, net.ErrClosed):
			return
		default:
			to.Failed(netip.AddrPort{}, err)
		}
	}
}

func (p *portableSockets) Stop() {
	p.mu.Lock()
	for conn := range p.conns {
		conn.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.running.Wait()
}

func (s *portableSocket) Send(b []byte) error {
	_, err := s.conn.Write(b)
	return err
}

func (s *portableSocket) SendAll(d *Datagrams) (int, error) {
	for n := 0; ; n++ {
		b, ok := d.Next()
		if !ok {
			return n, nil
		}
		if err := s.Send(b); err != nil {
			return n, err
		}
	}
}

func (s *portableSocket) Close() {
	s.in.mu.Lock()
	delete(s.in.conns, s.conn)
	s.in.mu.Unlock()
	s.conn.Close()
}

func (s *portableSocket) Addr() net.Addr { return s.conn.LocalAddr() }
