//go:build !noquic || !nohttps3

package dnsserver

import (
	"net"
	"os"

	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
)

func init() { expectFrom = quicconn.ExpectFrom }

// quicPackets is p as it is served over QUIC. It waits until the server before s, whose transport s does not go on
// with, is done with the socket, unless that one passes on what is for s. It calls passed before, for which that one
// waits. It reports false if s is to serve no more.
func (s *Server) quicPackets(p net.PacketConn, passed func()) (net.PacketConn, bool) {
	p = nonblock.Packets(p)
	if s.readsProxyHeaders() { // which stand before the packets
		passed()
		return p, s.afterPredecessor()
	}
	s.mu.Lock()
	reload := s.predecessor != nil
	s.mu.Unlock()
	if reload {
		quicconn.ExpectFrom(os.Getpid(), s.Address())
	}
	passed()
	gone := make(chan struct{})
	go func() {
		s.afterPredecessor()
		close(gone)
	}()
	p, handed := quicconn.Packets(p, s.Address(), gone)
	if !handed {
		<-gone
	}
	return p, !s.isStopped()
}
