package test

import (
	"fmt"
	"net"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// A client over QUIC has room for the whole reply, and cannot ask over TCP for one that is truncated: it gets what the upstream
// says over TCP. One over UDP is told that there is more.
func TestTruncatedUpstreamOverQUIC(t *testing.T) {
	upstream := dnstest.NewMultipleServer(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		if _, udp := w.RemoteAddr().(*net.UDPAddr); udp {
			m.Truncated = true
		} else {
			m.Answer = []dns.RR{test.A("www.example.org. 60 IN A 192.0.2.1")}
		}
		w.WriteMsg(m)
	})
	defer upstream.Close()
	dir := t.TempDir()
	certificates(t, dir)
	bothLanes(t, func(t *testing.T) {
		doq := loopback.Port()
		_, udp, _ := start(t, fmt.Sprintf(".:0 quic://.:%d {\nbind 127.0.0.1\ntls %s/cert.pem %[2]s/key.pem\nforward . %s\n}", doq, dir, upstream.Addr))
		q := question("www.example.org.", dns.TypeA)
		if m, err := askNew(fmt.Sprintf("127.0.0.1:%d", doq), q); err != nil || m.Truncated || len(m.Answer) != 1 {
			t.Errorf("over QUIC: %v, %v", m, err)
		}
		if m := ask(t, "udp", udp, q); m == nil || !m.Truncated || len(m.Answer) != 0 {
			t.Errorf("over UDP: %v", m)
		}
	})
}
