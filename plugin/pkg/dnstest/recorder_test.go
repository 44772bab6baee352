package dnstest_test

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
)

var errBroken = errors.New("broken pipe")

// client is a writer that notes what reaches it. Methods that no test calls are missing.
type client struct {
	dns.ResponseWriter
	msgs   []*dns.Msg
	broken bool
	state  tls.ConnectionState
}

func (c *client) WriteMsg(m *dns.Msg) error {
	c.msgs = append(c.msgs, m)
	if c.broken {
		return errBroken
	}
	return nil
}

func (c *client) Write(b []byte) (int, error) {
	if c.broken {
		return len(b) / 2, errBroken
	}
	return len(b), nil
}

func (c *client) ConnectionState() *tls.ConnectionState { return &c.state }

// plain is a writer that knows nothing of TLS.
type plain struct{ dns.ResponseWriter }

func reply(rcode int) *dns.Msg {
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	m.Response, m.Rcode = true, rcode
	return m
}

func TestRecorder(t *testing.T) {
	below := new(client)
	before := time.Now()
	r := dnstest.NewRecorder(below)
	if r.Msg != nil || r.Len != 0 || r.Rcode != 0 || r.Start.Before(before) || r.Start.After(time.Now()) {
		t.Errorf("new: got %+v", r)
	}

	for i, rcode := range []int{dns.RcodeNameError, dns.RcodeRefused} {
		m := reply(rcode)
		if err := r.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
		if r.Msg != m || r.Rcode != rcode || r.Len != 29*(i+1) || below.msgs[i] != m {
			t.Errorf("message %d: got %p %d %d", i, r.Msg, r.Rcode, r.Len)
		}
	}
	if n, err := r.Write(make([]byte, 10)); n != 10 || err != nil || r.Len != 68 || r.Rcode != dns.RcodeRefused {
		t.Errorf("octets: got %d, %v, length %d, code %d", n, err, r.Len, r.Rcode)
	}
	packet, err := reply(dns.RcodeNotAuth).Pack()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write(packet); err != nil || r.Rcode != dns.RcodeNotAuth || r.Len != 97 || r.Msg != below.msgs[1] {
		t.Errorf("octets of a message: got %v, length %d, code %d", err, r.Len, r.Rcode)
	}
	if r.ConnectionState() != &below.state {
		t.Error("the TLS state does not pass")
	}
}

func TestRecorderPassesErrors(t *testing.T) {
	r := dnstest.NewRecorder(&client{broken: true})
	if err := r.WriteMsg(reply(dns.RcodeRefused)); !errors.Is(err, errBroken) || r.Msg == nil || r.Rcode != dns.RcodeRefused {
		t.Errorf("got %v, recorded %v", err, r.Msg)
	}
	r = dnstest.NewRecorder(&client{broken: true})
	if n, err := r.Write(make([]byte, 10)); n != 5 || !errors.Is(err, errBroken) || r.Len != 5 {
		t.Errorf("got %d, %v, length %d", n, err, r.Len)
	}
	if r := dnstest.NewRecorder(plain{}); r.ConnectionState() != nil {
		t.Error("a TLS state out of nothing")
	}
}

func TestMultiRecorder(t *testing.T) {
	below := new(client)
	r := dnstest.NewMultiRecorder(below)
	first, second := reply(dns.RcodeSuccess), reply(dns.RcodeRefused)
	for _, m := range []*dns.Msg{first, second} {
		if err := r.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.Msgs) != 2 || r.Msgs[0] != first || r.Msgs[1] != second || r.Len != 58 || len(below.msgs) != 2 {
		t.Errorf("got %v, length %d", r.Msgs, r.Len)
	}
	if n, err := r.Write(make([]byte, 10)); n != 10 || err != nil || r.Len != 68 || len(r.Msgs) != 2 {
		t.Errorf("octets: got %d, %v, length %d", n, err, r.Len)
	}
	if r.ConnectionState() != &below.state || r.Start.IsZero() {
		t.Errorf("got state %p, start %v", r.ConnectionState(), r.Start)
	}
}
