package udp

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/pires/go-proxyproto"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	pkgproxyproto "github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/test/clients"
)

const (
	proxyMagic = "\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a"
	proxyTCP   = proxyMagic + "\x21\x11\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"
	proxyUDP   = proxyMagic + "\x21\x12\x00\x0c\xc6\x33\x64\x07\xc0\x00\x02\x02\x30\x39\x00\x35"
	proxyLocal = proxyMagic + "\x20\x00\x00\x00"
)

// refusals counts headers that had no effect.
type refusals struct {
	mu  sync.Mutex
	why map[pkgproxyproto.Reason]int
}

func (r *refusals) add(why pkgproxyproto.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why[why]++
}

func (r *refusals) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d ignored, %d rejected, %d invalid",
		r.why[pkgproxyproto.Ignored], r.why[pkgproxyproto.Rejected], r.why[pkgproxyproto.Invalid])
}

// proxied reads the PROXY headers of datagrams of p, but for those from 127.0.0.2.
func proxied(p net.PacketConn) (Options, *refusals) {
	r := &refusals{why: map[pkgproxyproto.Reason]int{}}
	policy := func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		if wire.AddrOf(o.Upstream) == netip.MustParseAddr("127.0.0.2") {
			return proxyproto.IGNORE, nil
		}
		return proxyproto.USE, nil
	}
	return Options{Proxy: &pkgproxyproto.PacketConn{
		PacketConn: p, ConnPolicy: policy, UDPSessionTrackingTTL: time.Minute, Refused: r.add,
	}}, r
}

// answered is the next reply on c, nil if none comes within a moment.
func answered(c net.Conn, wait time.Duration) *dns.Msg {
	c.SetReadDeadline(time.Now().Add(wait))
	buf := make([]byte, 512)
	n, err := c.Read(buf)
	m := new(dns.Msg)
	if err != nil || m.Unpack(buf[:n]) != nil {
		return nil
	}
	return m
}

// Headers of datagrams count in each loop, on sockets that are read in batches and on others.
func TestProxyHeaders(t *testing.T) {
	for kind, p := range map[string]net.PacketConn{"batches": shareable(t), "portable": wrapped{coretest.ListenUDP(t)}} {
		o, refused := proxied(p)
		s := serveOn(t, coretest.Service(t, coretest.Label(t), coretest.Who{}), p, o)
		for _, tc := range []struct{ from, head, want string }{
			{"127.0.0.1", proxyUDP, "NOERROR 198.51.100.7"},
			{"127.0.0.1", "", "NOERROR 127.0.0.1"},
			{"127.0.0.1", proxyLocal, "NOERROR 127.0.0.1"},
			{"127.0.0.2", proxyUDP, "NOERROR 127.0.0.2"},
			{"127.0.0.1", proxyTCP, "nothing"},
			{"127.0.0.1", proxyMagic, "nothing"},
		} {
			for _, name := range []string{"wire.", "unpack.", "block."} {
				c, err := (&net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(tc.from)}}).Dial("udp", s.addr)
				if err != nil {
					t.Fatal(err)
				}
				c.Write(append([]byte(tc.head), coretest.Packed(t, coretest.Query(name))...))
				wait := clients.AskTime
				if tc.want == "nothing" {
					wait = 100 * time.Millisecond
				}
				if got := coretest.Describe(answered(c, wait)); got != tc.want {
					t.Errorf("%s: %x from %s, %s: got %s", kind, tc.head, tc.from, name, got)
				}
				c.Close()
			}
		}
		eventually.Holds(t, "3 ignored, 6 invalid", func() bool { return refused.String() == "3 ignored, 0 rejected, 6 invalid" })
		// A header alone begins a session.
		c, err := net.Dial("udp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, proxyUDP)
		c.Write(coretest.Packed(t, coretest.Query("unpack.")))
		if got := coretest.Describe(answered(c, clients.AskTime)); got != "NOERROR 198.51.100.7" {
			t.Errorf("%s: got %s", kind, got)
		}
		c.Close()
	}
}
