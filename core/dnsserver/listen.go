package dnsserver

import (
	"fmt"
	"net"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/systemd"

	"github.com/coredns/caddy"
)

// listenTCP is openTCP, and listenUDP openUDP, as a part of the start of a generation: an error ends that.
func (s *Server) listenTCP() (net.Listener, error) {
	l, err := s.openTCP()
	if err == nil && l.Addr() == nil {
		l.Close()
		l, err = nil, s.nameless("tcp")
	}
	return handedOn(l), s.generation.tried(l, err)
}

func (s *Server) listenUDP() (net.PacketConn, error) {
	p, err := s.openUDP()
	return p, s.generation.tried(p, err)
}

// nameless is the error of a socket of which the system does not tell the address: each reply has one to leave from.
func (s *Server) nameless(network string) error {
	return fmt.Errorf("listen %s %s: the system does not tell the socket's address (getsockname)", network, s.hostPort())
}

// openTCP opens the TCP socket of s, or takes the one that a service manager has opened for it. openUDP likewise.
func (s *Server) openTCP() (net.Listener, error) {
	addr := s.hostPort()
	if l := systemd.Listener(addr); l != nil {
		return reuseport.Share(l, addr), nil
	}
	if !s.generation.fresh("tcp", addr) {
		return reuseport.Listen("tcp", addr)
	}
	l, others, err := reuseport.ListenAlone("tcp", addr)
	if others {
		warnShared("tcp", addr)
	}
	return l, err
}

// openUDP opens the UDP socket of s.
func (s *Server) openUDP() (net.PacketConn, error) {
	p, err := s.bindUDP()
	if err == nil && p.LocalAddr() == nil {
		p.Close()
		return nil, s.nameless("udp")
	}
	return p, err
}

func (s *Server) bindUDP() (net.PacketConn, error) {
	addr := s.hostPort()
	if p := systemd.PacketConn(addr); p != nil {
		return reuseport.Share(p, addr), nil
	}
	if !s.generation.fresh("udp", addr) {
		return reuseport.ListenPacket("udp", addr)
	}
	p, others, err := reuseport.ListenPacketAlone("udp", addr)
	if others {
		warnShared("udp", addr)
		s.others = true
	}
	return p, err
}

// hostPort is the address without its scheme.
func (s *Server) hostPort() string {
	_, addr, _ := strings.Cut(s.Addr, "://")
	return addr
}

// warnShared warns that somebody listens at addr already. Sockets that share an address share what comes, so that two
// servers which know nothing of each other would each get a part of the queries, and nobody would be told.
func warnShared(network, addr string) {
	log.Warningf("Another process listens on %s %s, too: each gets a part of the queries", addr, network)
}

// fresh reports whether addr is opened for the first time by a process that has just begun. It is not fresh, either, if
// the process listens on all addresses of the port, or on one of those that addr stands for. g may be nil.
func (g *generation) fresh(network, addr string) bool {
	if g == nil || caddy.IsUpgrade() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.previous != nil {
		return false
	}
	alone := true
	for other := range g.listened {
		if before, same := strings.CutPrefix(other, network); same && overlap(before, addr) {
			alone = false
		}
	}
	if g.listened == nil {
		g.listened = map[string]bool{}
	}
	g.listened[network+addr] = true
	return alone
}

// overlap reports whether a and b are the same address, or one of them stands for all addresses of the other's port.
func overlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(socketOf(a))
	hostB, portB, _ := net.SplitHostPort(socketOf(b))
	return portA == portB && (hostA == hostB || hostA == "" || hostB == "")
}
