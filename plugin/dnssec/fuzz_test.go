package dnssec

import (
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Any reply is signed or passes; it is not changed itself, and what comes out can be packed if it could be before.
func FuzzSign(f *testing.F) {
	d := serving(f, source(f), pair(f, "example.org.", dns.ED25519, 256, 257))
	for _, q := range []struct {
		name  string
		qtype uint16
	}{{"mail.example.org.", dns.TypeA}, {"lost.example.org.", dns.TypeA}, {"nothing.example.org.", dns.TypeMX}, {"www.plain.example.org.", dns.TypeA}, {"www.safe.example.org.", dns.TypeA}} {
		packed, err := ask(f, d, q.name, q.qtype, "nodo").Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed, false)
		f.Add(packed, true)
	}
	f.Fuzz(func(t *testing.T, packed []byte, compact bool) {
		m := new(dns.Msg)
		if m.Unpack(packed) != nil {
			return
		}
		before := m.String()
		_, packErr := m.Pack()
		s := d
		s.compact = compact
		signed := s.Sign(request.Request{Req: m, W: &test.ResponseWriter{}}, time.Now(), "")
		if m.String() != before {
			t.Fatalf("%s became %v", before, m)
		}
		if len(signed.Answer)+len(signed.Ns) > 30 {
			return // it may have become too long
		}
		if _, err := signed.Pack(); err != nil && packErr == nil {
			t.Fatalf("%v: %v", signed, err)
		}
	})
}

// What comes next comes behind, and nothing that fits below a name lies between beyond and it.
func FuzzSuccessor(f *testing.F) {
	for _, name := range []string{"www.example.org.", `\255.example.org.`, strings.Repeat(`\255`, 63) + ".org.", "@.org."} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		low, err := wire.LowerName(name)
		if err != nil || len(low) > wire.MaxName || low[0] == 0 {
			return
		}
		text := wire.Text(low)
		next, err := wire.LowerName(successor(text))
		if err != nil || len(next) > wire.MaxName {
			t.Fatalf("successor of %s: %s, %v", text, successor(text), err)
		}
		if wire.Compare(low, next) >= 0 && !lastOfAll(low) {
			t.Fatalf("successor of %s: %s", text, wire.Text(next))
		}
		far, err := wire.LowerName(beyond(text))
		if err != nil || len(far) > wire.MaxName {
			t.Fatalf("beyond %s: %s, %v", text, beyond(text), err)
		}
		if lastOfAll(low) {
			return
		}
		below := append([]byte{1, 0xFF}, low...)
		if wire.Compare(low, far) >= 0 || len(below) <= wire.MaxName && wire.Compare(below, far) >= 0 {
			t.Fatalf("beyond %s: %s", text, wire.Text(far))
		}
	})
}

// lastOfAll reports whether all labels are such that none comes behind them.
func lastOfAll(name []byte) bool {
	for i := 0; name[i] != 0; i += 1 + int(name[i]) {
		if label := string(name[i+1 : i+1+int(name[i])]); strings.ReplaceAll(label, "\xff", "") != "" {
			return false
		}
	}
	return true
}
