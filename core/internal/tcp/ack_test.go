package tcp

import (
	"crypto/tls"
	"encoding/binary"
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

// recordwise is a connection with a write for each record of TLS, as some clients have it.
type recordwise struct{ net.Conn }

func (r recordwise) Write(b []byte) (n int, err error) {
	for err == nil && n < len(b) {
		end := n + 5 + int(binary.BigEndian.Uint16(b[n+3:]))
		_, err = r.Conn.Write(b[n:end])
		n = end
	}
	return n, err
}

// A client that gathers small writes, and writes the records of its handshake one by one, waits until the first is
// acknowledged: in a handshake as in one that resumes a session.
func TestHandshakesThatHoldBack(t *testing.T) {
	needsLight(t)
	config := encryptions(t)["TLS"]
	s := serve(t, new(coretest.Lane), config, nil)
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		for name, sessions := range map[string]tls.ClientSessionCache{name: nil, name + " resumed": tls.NewLRUClientSessionCache(1)} {
			t.Run(name, func(t *testing.T) {
				var below net.Conn
				acktest.Prompt(t, func() {
					tc := coretest.Dial(t, s.addr).(*net.TCPConn)
					tc.SetNoDelay(false)
					below = recordwise{tc}
				}, func() {
					asks := clientConfig(config).Clone()
					asks.MaxVersion, asks.ClientSessionCache, asks.ServerName = version, sessions, "localhost"
					c := tls.Client(below, asks)
					c.Write(coretest.Frame(t, "www."))
					if _, err := clients.ReadFrame(c); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}
