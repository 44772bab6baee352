package tcp

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/nonblock/acktest"
	"github.com/coredns/coredns/test/clients"
)

// A client that gathers small writes waits with its query until the end of the handshake is acknowledged, and with the
// rest of a query until its length is.
func TestClientsThatHoldBack(t *testing.T) {
	needsLight(t)
	for name, config := range encryptions(t) {
		t.Run(name, func(t *testing.T) {
			s := serve(t, new(coretest.Lane), config, nil)
			var c net.Conn
			connect := func() {
				tc := coretest.Dial(t, s.addr).(*net.TCPConn)
				tc.SetNoDelay(false)
				if c = tc; config != nil {
					secure := tls.Client(tc, clientConfig(config))
					if err := secure.Handshake(); err != nil {
						t.Fatal(err)
					}
					c = secure
				}
			}
			ask := func(pieces ...[]byte) {
				for _, p := range pieces {
					c.Write(p)
				}
				if _, err := clients.ReadFrame(c); err != nil {
					t.Fatal(err)
				}
			}
			whole := coretest.Frame(t, "www.")
			acktest.Prompt(t, connect, func() { ask(whole) })
			for range 5 { // so that the system takes it for a conversation
				ask(whole)
			}
			acktest.Prompt(t, nil, func() { ask(whole[:2], whole[2:]) })
		})
	}
}
