package udp

import (
	"runtime"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
)

// A listener with the PROXY protocol reads its packets in batches, as others.
func TestProxyIsBatched(t *testing.T) {
	p := shareable(t)
	o, _ := proxied(p)
	u := serveOn(t, coretest.Service(t, coretest.Label(t), coretest.Who{}), p, o)
	if _, ok := u.sockets[0].(*batchedSocket); !ok || u.Proxy == nil || len(u.sockets) != runtime.GOMAXPROCS(0) {
		t.Errorf("%d sockets of %T, proxy %v", len(u.sockets), u.sockets[0], u.Proxy)
	}
}
