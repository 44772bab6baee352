package proxy

import (
	"net"
	"slices"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs"
	"github.com/coredns/coredns/plugin/pkg/neterr"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// This file is about UDP sockets from which there is no way to the upstream any more. They are connected, and keep the
// address that the machine had when they were opened, though it has got another one since.

// notSent ends x, which could not be sent on s, unless it has ended: it may be another exchange by now. If s was open
// before, its address may be none of the machine's any more, as that has another one, or the interface is new: then
// all sockets are, and x has another try on a new one.
func (e *engine) notSent(s *udpSocket, x *Exchange, id uint16, err error) {
	e.mu.Lock()
	waits := s.pending.find(id) == x
	anew := waits && x.reused && x.retries == 0 && wayless(err)
	if anew {
		e.udp.wearOut(e)
	}
	if waits {
		e.take(x, e.now())
	}
	e.unlock()
	switch {
	case anew:
		if x.flips != nil {
			x.flips.Undo(x.Query[wire.HeaderLen:])
		}
		x.flips, x.batch, x.reused = nil, 0, false
		x.retries++
		e.askUDP(x, nil, e.now())
	case waits:
		e.end(x, err)
	}
}

// wearOut lets the sockets that are open take no more queries but those that choose them meanwhile. mu is held.
func (p *udpPool) wearOut(e *engine) {
	p.each(func(s *udpSocket) {
		if s.carried = wornOut; s.pending.n == 0 {
			p.close(e, s)
		}
	})
}

// isAstray reports whether replies to s cannot arrive, as its address is none of the machine's any more. Over IPv6 the
// system goes on sending from that.
func (s *udpSocket) isAstray() bool {
	own, ok := s.Addr().(*net.UDPAddr)
	if !ok || s.to != nil || own.IP.IsLoopback() {
		return false
	}
	all := hostaddrs.Recent()
	return len(all) > 0 && !slices.Contains(all, own.AddrPort().Addr().Unmap().WithZone(""))
}

// wayless reports whether an error of sending is that there is no way from the socket's address to the other side.
func wayless(err error) bool {
	return neterr.Is(err, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EADDRNOTAVAIL, syscall.EINVAL, syscall.ENODEV)
}
