//go:build !noquic || !nohttps3

package dnsserver

import (
	"net"

	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
)

func init() { expectPackets = quicconn.Expect }

// quicPackets is p as it is served over QUIC, when the server before s is done with it, or passes on what comes for s.
// It reports false if s is to serve no more.
func (s *Server) quicPackets(p net.PacketConn) (net.PacketConn, bool) {
	p = nonblock.Packets(p)
	if s.readsProxyHeaders() { // which stand before the packets
		return p, s.afterPredecessor()
	}
	var giver <-chan struct{}
	if s.generation != nil {
		giver = s.generation.giver
	}
	p, passed := quicconn.Packets(p, s.Address(), giver)
	return p, passed && !s.isStopped() || s.afterPredecessor()
}
