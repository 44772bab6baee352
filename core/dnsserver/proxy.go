package dnsserver

import (
	"net"

	"github.com/coredns/coredns/core/internal/conn"
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

// readsProxyHeaders reports whether a block wants PROXY headers.
func (s *Server) readsProxyHeaders() bool { return s.proxyPolicy() != nil }

// wrapPacket makes p understand the PROXY protocol, if a block wants it.
func (s *Server) wrapPacket(p net.PacketConn) net.PacketConn {
	if proxied := s.proxyPackets(p); proxied != nil {
		return proxied
	}
	return p
}

// proxyPackets reads the PROXY headers of datagrams of p, nil if no block wants it.
func (s *Server) proxyPackets(p net.PacketConn) *pkgproxyproto.PacketConn {
	for _, cfg := range s.configs {
		if cfg.ProxyProtoConnPolicy != nil {
			return &pkgproxyproto.PacketConn{
				PacketConn:                    p,
				ConnPolicy:                    cfg.ProxyProtoConnPolicy,
				UDPSessionTrackingTTL:         cfg.ProxyProtoUDPSessionTrackingTTL,
				UDPSessionTrackingMaxSessions: cfg.ProxyProtoUDPSessionTrackingMaxSessions,
				Refused:                       conn.Refusals(s.Addr).Add,
			}
		}
	}
	return nil
}
