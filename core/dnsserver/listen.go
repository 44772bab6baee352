package dnsserver

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/reuseport"

	"github.com/coredns/caddy"
)

// listenTCP opens the TCP socket of s.
func (s *Server) listenTCP() (net.Listener, error) {
	addr := s.hostPort()
	s.warnShared("tcp", addr)
	return reuseport.Listen("tcp", addr)
}

// listenUDP opens the UDP socket of s.
func (s *Server) listenUDP() (net.PacketConn, error) {
	addr := s.hostPort()
	s.warnShared("udp", addr)
	return reuseport.ListenPacket("udp", addr)
}

// hostPort is the address without its scheme.
func (s *Server) hostPort() string {
	_, addr, _ := strings.Cut(s.Addr, "://")
	return addr
}

// warnShared warns if somebody listens at addr already. Sockets that share an address share what comes, so that two
// servers which know nothing of each other would each get a part of the queries, and nobody would be told.
func (s *Server) warnShared(network, addr string) {
	if !s.generation.fresh(network + addr) {
		return
	}
	if taken(network, addr) {
		log.Warningf("Another process listens on %s %s, too: each gets a part of the queries", addr, network)
	}
}

// fresh reports whether address is opened for the first time by a process that has just begun. g may be nil.
func (g *generation) fresh(address string) bool {
	if g == nil || caddy.IsUpgrade() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.previous != nil || g.listened[address] {
		return false
	}
	if g.listened == nil {
		g.listened = map[string]bool{}
	}
	g.listened[address] = true
	return true
}

// taken reports whether a socket cannot have addr for itself.
func taken(network, addr string) bool {
	var err error
	if network == "tcp" {
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(context.Background(), network, addr); err == nil {
			l.Close()
		}
	} else {
		var p net.PacketConn
		if p, err = new(net.ListenConfig).ListenPacket(context.Background(), network, addr); err == nil {
			p.Close()
		}
	}
	return errors.Is(err, syscall.EADDRINUSE)
}
