package dnstest_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
)

// answering returns a handler that answers every query with a TXT record of text.
func answering(text string) dns.HandlerFunc {
	return func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{&dns.TXT{
			Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET},
			Txt: []string{text},
		}}
		_ = w.WriteMsg(m)
	}
}

// ask returns the text that the server at addr answers with.
func ask(t *testing.T, network, addr string) string {
	t.Helper()
	c := &dns.Client{Net: network, Timeout: 2 * time.Second}
	m, _, err := c.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeTXT), addr)
	if err != nil {
		t.Fatalf("%s: %v", network, err)
	}
	if len(m.Answer) != 1 {
		t.Fatalf("%s: got %v", network, m)
	}
	return m.Answer[0].(*dns.TXT).Txt[0]
}

func TestServersStayStrangers(t *testing.T) {
	one, two := dnstest.NewMultipleServer(answering("one")), dnstest.NewMultipleServer(answering("two"))
	defer one.Close()
	defer two.Close()
	for _, network := range []string{"udp", "tcp"} {
		if got := ask(t, network, one.Addr) + ask(t, network, two.Addr); got != "onetwo" {
			t.Errorf("%s: got %q", network, got)
		}
	}
}

func TestServersOfTheGlobalMultiplexer(t *testing.T) {
	one := dnstest.NewServer(answering("one"))
	defer one.Close()
	if got := ask(t, "udp", one.Addr); got != "one" {
		t.Errorf("got %q", got)
	}
	two := dnstest.NewServer(answering("two"))
	defer two.Close()
	for _, network := range []string{"udp", "tcp"} {
		if got := ask(t, network, one.Addr) + ask(t, network, two.Addr); got != "twotwo" {
			t.Errorf("%s: got %q, want the last handler for both", network, got)
		}
	}
}

func TestServerListensOnLoopback(t *testing.T) {
	s := dnstest.NewMultipleServer(answering("one"))
	defer s.Close()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil || host != "127.0.0.1" || port == "0" {
		t.Errorf("got %q, %v", s.Addr, err)
	}
}

func TestServerTakesLongQueries(t *testing.T) {
	s := dnstest.NewMultipleServer(answering("one"))
	defer s.Close()
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeTXT)
	m.SetEdns0(4096, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, 1000)}}
	if r, _, err := new(dns.Client).Exchange(m, s.Addr); err != nil || r.Rcode != dns.RcodeSuccess {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestClose(t *testing.T) {
	s := dnstest.NewMultipleServer(answering("one"))
	s.Close()
	s.Close()
	// Both ports are free again.
	conn, err := net.ListenPacket("udp", s.Addr)
	if err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
	listener, err := net.Listen("tcp", s.Addr)
	if err != nil && !strings.Contains(err.Error(), "in use") { // another test may have got it meanwhile
		t.Error(err)
	} else if err == nil {
		listener.Close()
	}
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{})
	s := dnstest.NewMultipleServer(func(dns.ResponseWriter, *dns.Msg) {
		close(entered)
		<-release
	})
	defer close(release)
	conn, err := dns.Dial("udp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMsg(new(dns.Msg).SetQuestion("example.org.", dns.TypeA)); err != nil {
		t.Fatal(err)
	}
	<-entered
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatal("still waiting for a handler that does not end")
	}
}
