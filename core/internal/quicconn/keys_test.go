package quicconn

import (
	"bytes"
	"net"
	"os"
	"testing"
	"time"

	"github.com/coredns/coredns/test/clients"
)

// A process has the keys of the one that has begun it, and others if what that has handed on are none.
func TestKeysAreHandedOn(t *testing.T) {
	t.Setenv(keysVar, "") // also to have it as it was before
	first := findKeys()
	if first.reset == (keys{}).reset || first.token == (keys{}).token {
		t.Fatal("there are none")
	}
	if findKeys() != first {
		t.Error("the next process has others")
	}
	os.Setenv(keysVar, "abcd")
	if k := findKeys(); k == first || k == (keys{}) {
		t.Errorf("of few octets %x are made", k)
	}
}

// The token that ends a connection is told by the listener that has it, when it has forgotten it, and by no other one.
func TestStatelessResetsOfListeners(t *testing.T) {
	// tokenAt is what the listener at addr says to a packet of a connection that it does not know.
	tokenAt := func(addr string) []byte {
		t.Helper()
		c, err := net.Dial("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(clients.AskTime))
		c.Write(append([]byte{0x40, 1, 2, 3, 4}, make([]byte, 60)...)) // a short header, and the id
		b := make([]byte, 100)
		n, err := c.Read(b)
		if err != nil || n < 21 || b[0]&0xc0 != 0x40 {
			t.Fatalf("no stateless reset: %x %v", b[:n], err)
		}
		return b[n-16 : n] // RFC 9000 §10.3
	}
	one, _ := serve(t, serviceFor(t), newEcho())
	other, _ := serve(t, serviceFor(t), newEcho())
	token := tokenAt(addrOf(one))
	if !bytes.Equal(token, tokenAt(addrOf(one))) {
		t.Error("a listener has several for one id")
	}
	if bytes.Equal(token, tokenAt(addrOf(other))) {
		t.Error("another listener has the same")
	}
}
