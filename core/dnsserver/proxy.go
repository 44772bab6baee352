package dnsserver

import (
	"net"

	"github.com/coredns/coredns/core/internal/conn"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/nonblock"
	pkgproxyproto "github.com/coredns/coredns/plugin/pkg/proxyproto"

	"github.com/pires/go-proxyproto"
)

// proxyPolicy is what the first block says about PROXY headers that says anything, nil if none does.
func (s *Server) proxyPolicy() proxyproto.ConnPolicyFunc {
	for _, cfg := range s.configs {
		if cfg.ProxyProtoConnPolicy != nil {
			return cfg.ProxyProtoConnPolicy
		}
	}
	return nil
}

// warnOfProxies warns of blocks of a listener that say different things about PROXY headers: only the first one is
// heard.
func warnOfProxies(addr string, group []*Config) {
	var first *Config
	for _, cfg := range group {
		switch {
		case cfg.ProxyProtoConnPolicy == nil:
		case first == nil:
			first = cfg
		case cfg.ProxyProtoIdentity != first.ProxyProtoIdentity:
			log.Warningf("%s: server blocks set proxyproto differently for what they share: using that of %s", addr, first.Zone)
			return
		}
	}
}

// readsProxyHeaders reports whether a block wants PROXY headers.
func (s *Server) readsProxyHeaders() bool { return s.proxyPolicy() != nil }

// wrapPacket makes p understand the PROXY protocol, if a block wants it.
func (s *Server) wrapPacket(p net.PacketConn) net.PacketConn {
	if proxied := s.proxyPackets(p); proxied != nil {
		return proxied
	}
	return p
}

// proxyPackets reads the PROXY headers of datagrams of p, nil if no block wants it. What headers said before a reload
// holds for the datagrams that follow them.
func (s *Server) proxyPackets(p net.PacketConn) *pkgproxyproto.PacketConn {
	for _, cfg := range s.configs {
		if cfg.ProxyProtoConnPolicy == nil {
			continue
		}
		proxied := &pkgproxyproto.PacketConn{
			PacketConn:                    nonblock.Packets(p),
			ConnPolicy:                    cfg.ProxyProtoConnPolicy,
			UDPSessionTrackingTTL:         cfg.ProxyProtoUDPSessionTrackingTTL,
			UDPSessionTrackingMaxSessions: cfg.ProxyProtoUDPSessionTrackingMaxSessions,
			Refused:                       conn.Refusals(s.Addr).Add,
		}
		proxied.GoOn(s.replaceProxied(proxied))
		return proxied
	}
	return nil
}

// replaceProxied notes what the server reads datagrams with, and returns that of the server before it, nil if there is
// none.
func (s *Server) replaceProxied(now *pkgproxyproto.PacketConn) *pkgproxyproto.PacketConn {
	s.mu.Lock()
	before := s.predecessor
	s.proxied = now
	s.mu.Unlock()
	if before == nil {
		return nil
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	return before.proxied
}
