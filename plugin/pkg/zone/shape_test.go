package zone

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// packedReply is the reply to a question over a stream, as octets and as a message.
func packedReply(t *testing.T, z *Zone, name string, qtype uint16) ([]byte, *dns.Msg) {
	t.Helper()
	var q wire.Query
	if err := q.SetMsg(new(dns.Msg).SetQuestion(name, qtype), wire.Peer{Limit: wire.MaxMessage}); err != nil {
		t.Fatal(err)
	}
	var w wire.Reply
	w.Reset(nil)
	var a Answerer
	if a.Answer(z, &w, &q) == External {
		a.Alone()
	}
	b := w.Finish(&q, 1232)
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatal(err)
	}
	return b, m
}

// The addresses of servers in the domain that is delegated come first, whatever the order of the NS records: without
// them nobody gets there, so they are the last to be cut off (RFC 9471 §2).
func TestInDomainGlueComesFirst(t *testing.T) {
	z := build(t, "example.org.", apex+"sub NS ns1\nsub NS ns.other\nsub NS ns.sub\nsub NS ns.deep.sub\nns.other A 192.0.2.2\nns.sub A 192.0.2.3\nns.deep.sub AAAA 2001:db8::4\n")
	_, m := packedReply(t, z, "www.sub.example.org.", dns.TypeA)
	var owners []string
	for _, rr := range m.Extra {
		owners = append(owners, strings.TrimSuffix(rr.Header().Name, ".example.org."))
	}
	if got, want := strings.Join(owners, " "), "ns.sub ns.deep.sub ns1 ns1 ns.other"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Names that end in the origin are pointers in the RDATA of the types that RFC 3597 §4 lets be compressed, and in no
// other; a question in another case, to which nothing can point, gets them in full or by another way.
func TestNamesPointToTheOrigin(t *testing.T) {
	z := build(t, "example.org.", "@ SOA a.example.net. b.example.net. 1 2 3 4 5\n@ NS a.example.net.\n"+
		"ns NS host\ncname CNAME host.other\nptr PTR host\nmx MX 1 host\nsrv SRV 1 2 3 host\ndname DNAME host\nhttps HTTPS 1 host\n")
	for name, tc := range map[string]struct {
		typ    uint16
		octets int // of the RDATA, with \x04host, a pointer or the origin in full
	}{
		"ptr": {dns.TypePTR, 5 + 2}, "mx": {dns.TypeMX, 2 + 5 + 2}, "cname": {dns.TypeCNAME, 5 + 6 + 2},
		"srv": {dns.TypeSRV, 6 + 5 + 13}, "dname": {dns.TypeDNAME, 5 + 13}, "https": {dns.TypeHTTPS, 2 + 5 + 13},
	} {
		b, m := packedReply(t, z, name+".example.org.", tc.typ)
		owner := wire.HeaderLen + len(wire.MustName(name+".example.org")) + 4
		if got := int(b[owner+10])<<8 | int(b[owner+11]); got != tc.octets || len(m.Answer) != 1 {
			t.Errorf("%s: RDATA of %d octets, want %d\n%v", name, got, tc.octets, m)
		}
		_, other := packedReply(t, z, name+".Example.org.", tc.typ)
		if len(other.Answer) != 1 || line(other.Answer[0], "") != line(m.Answer[0], "") {
			t.Errorf("%s: in another case\n%v\nwant\n%v", name, other, m)
		}
	}
}
