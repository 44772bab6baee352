package nonwriter_test

import (
	"crypto/tls"
	"testing"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/nonwriter"
)

// client is a writer that notes what reaches it. Methods that no test calls are missing.
type client struct {
	dns.ResponseWriter
	msgs  int
	bytes []byte
}

func (c *client) WriteMsg(*dns.Msg) error { c.msgs++; return nil }

func (c *client) Write(b []byte) (int, error) { c.bytes = b; return len(b), nil }

// secureClient is a client behind TLS.
type secureClient struct {
	client
	state tls.ConnectionState
}

func (c *secureClient) ConnectionState() *tls.ConnectionState { return &c.state }

func TestWriterKeepsMessages(t *testing.T) {
	below := new(client)
	w := nonwriter.New(below)
	if w.Msg != nil {
		t.Errorf("got %v before anything was written", w.Msg)
	}
	first, second := new(dns.Msg), new(dns.Msg)
	for _, m := range []*dns.Msg{first, second} {
		if err := w.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
		if w.Msg != m {
			t.Errorf("got %p, want %p", w.Msg, m)
		}
	}
	if below.msgs > 0 {
		t.Errorf("%d messages reached the client", below.msgs)
	}
}

func TestWriterPassesBytes(t *testing.T) {
	below := new(client)
	w := nonwriter.New(below)
	if n, err := w.Write([]byte("abc")); n != 3 || err != nil || string(below.bytes) != "abc" {
		t.Errorf("got %d, %v, %q", n, err, below.bytes)
	}
	if w.Msg != nil {
		t.Errorf("got %v, want none", w.Msg)
	}
}

func TestWriterPassesConnectionState(t *testing.T) {
	secure := new(secureClient)
	if got := nonwriter.New(secure).ConnectionState(); got != &secure.state {
		t.Errorf("got %p, want %p", got, &secure.state)
	}
	if got := nonwriter.New(new(client)).ConnectionState(); got != nil {
		t.Errorf("without TLS: got %v", got)
	}
}
