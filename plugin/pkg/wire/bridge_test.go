package wire

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// everyFlag is a message for each header bit, opcode and some return codes.
func everyFlag() (all []*dns.Msg) {
	for _, set := range []func(*dns.Msg){
		func(m *dns.Msg) {}, func(m *dns.Msg) { m.Response = true }, func(m *dns.Msg) { m.Authoritative = true }, func(m *dns.Msg) { m.Truncated = true },
		func(m *dns.Msg) { m.RecursionDesired = true }, func(m *dns.Msg) { m.RecursionAvailable = true }, func(m *dns.Msg) { m.Zero = true },
		func(m *dns.Msg) { m.AuthenticatedData = true }, func(m *dns.Msg) { m.CheckingDisabled = true },
	} {
		m := question("www.example.org.", TypeA)
		m.RecursionDesired = false
		set(m)
		all = append(all, m)
	}
	for n := range 16 {
		m := question("www.example.org.", TypeA)
		m.Opcode, m.Rcode = n, 15-n
		all = append(all, m)
	}
	return all
}

// The header's bits stand where RFC 1035 §4.1.1 and RFC 4035 §3.1.6 have them: Header reads and msgFlags writes them as
// github.com/miekg/dns does.
func TestHeaderBits(t *testing.T) {
	for _, m := range everyFlag() {
		b := packed(t, m)
		if got := Header(b); got != m.MsgHdr {
			t.Errorf("read %+v, want %+v", got, m.MsgHdr)
		}
		if got, want := msgFlags(&m.MsgHdr), uint16(b[2])<<8|uint16(b[3]); got != want {
			t.Errorf("%+v: wrote %#x, want %#x", m.MsgHdr, got, want)
		}
		if e := EndMsg(m, 77); e.ID != m.Id || e.Limit != 77 || e.Flags != msgFlags(&m.MsgHdr)&^rcodeMask {
			t.Errorf("EndMsg of %+v: %+v", m.MsgHdr, e)
		}
		// Only the answer to an ordinary query has its RD and CD bits (RFC 1035 §4.1.1, RFC 4035 §3.2.2).
		e := EndFor(m, 512)
		want := uint16(m.Opcode) << 11
		if m.Opcode == dns.OpcodeQuery {
			want |= msgFlags(&m.MsgHdr) & (FlagRD | FlagCD)
		}
		if e.ID != m.Id || e.Limit != 512 || e.Flags != want {
			t.Errorf("EndFor of %+v: %+v, want flags %#x", m.MsgHdr, e, want)
		}
	}
}

// A query made of a message tells what the message does, and gives it back: also with options, records behind the
// question, and after plugins have changed it.
func TestQueryOfMessage(t *testing.T) {
	edns := question("WWW.example.org.", dns.TypeMX).SetEdns0(1400, true)
	options := edns.Copy()
	options.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: ""}, &dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")}}
	odd := edns.Copy()
	odd.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 15}} // nothing that a query holds
	for what, tc := range map[string]struct {
		m   *dns.Msg
		set OptionSet
	}{
		"plain": {question("www.example.org.", dns.TypeAAAA), 0}, "edns": {edns, 0}, "options": {options, HasNSID | HasOther}, "odd": {odd, HasOther},
	} {
		var q Query
		if err := q.SetMsg(tc.m, Peer{Proto: TCP, Limit: MaxMessage}); err != nil {
			t.Fatal(what, err)
		}
		if q.EDNS().Set != tc.set || q.Packet() != nil || q.Proto != TCP || !q.Stream() {
			t.Errorf("%s: options %b, packet %x", what, q.EDNS().Set, q.Packet())
		}
		if q.Len() != len(packed(t, tc.m)) {
			t.Errorf("%s: %d octets, want %d", what, q.Len(), len(packed(t, tc.m)))
		}
		got, err := q.Msg()
		if err != nil || !bytes.Equal(packed(t, got), packed(t, tc.m)) {
			t.Errorf("%s: got\n%v %v\nwant\n%v", what, got, err, tc.m)
		}
		q.SetSize(800)
		q.SetType(dns.TypeTXT)
		if got, err = q.Msg(); err != nil || got.Question[0].Qtype != dns.TypeTXT || got.Question[0].Name != tc.m.Question[0].Name {
			t.Errorf("%s, changed: %v %v", what, got, err)
		}
		if opt := got.IsEdns0(); opt != nil && opt.UDPSize() != 800 {
			t.Errorf("%s: size %d after SetSize", what, opt.UDPSize())
		}
	}
}

// A message without a question, or for what is no name, makes no query and no reply; the error tells the name.
func TestMessagesWithoutQuestion(t *testing.T) {
	bad := new(dns.Msg)
	bad.Question = []dns.Question{{Name: "a..b.", Qtype: TypeA, Qclass: ClassIN}}
	badRecord := question("example.org.", TypeA)
	badRecord.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "c..d.", Rrtype: TypeA, Class: ClassIN}}}
	for _, tc := range []struct {
		m    *dns.Msg
		want string
	}{{new(dns.Msg), "without question"}, {bad, `"a..b."`}} {
		if err := new(Query).SetMsg(tc.m, Peer{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("query: %v, want %s", err, tc.want)
		}
	}
	for _, tc := range []struct {
		m    *dns.Msg
		want string
	}{{new(dns.Msg), "without question"}, {bad, `"a..b."`}, {badRecord, "c..d."}} {
		for _, set := range []func(*Reply, *dns.Msg) error{(*Reply).SetMsg, (*Reply).SetMsgOPT} {
			var w Reply
			w.Reset(nil)
			if err := set(&w, tc.m); err == nil || !strings.Contains(err.Error(), tc.want) || w.Holds() || w.End(End{Limit: 512}) != nil {
				t.Errorf("reply: %v, want %s; holds %v", err, tc.want, w.Holds())
			}
		}
	}
	var w Reply
	w.Reset(nil)
	if m, err := w.Msg(question("example.org.", TypeA)); err == nil || m != nil {
		t.Errorf("a reply that holds nothing is %v, %v", m, err)
	}
}

// SetMsg takes over a message but for its OPT record; SetMsgOPT counts that, too, as LoadMessage does for the same
// message in octets.
func TestMessageWithOPT(t *testing.T) {
	m := question("www.example.org.", TypeA)
	m.Response, m.Compress, m.AuthenticatedData, m.Rcode = true, true, true, NXDomain
	m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: TypeA, Class: ClassIN, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)}}
	m.SetEdns0(1400, true)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: 3, ExtraText: "stale"}}
	q := query(t, "www.example.org.", TypeA, 1232)
	var load, set, without Reply
	for _, w := range []*Reply{&load, &set, &without} {
		w.Reset(nil)
	}
	if !load.LoadMessage(q, packed(t, m)) || set.SetMsgOPT(m) != nil || without.SetMsg(m) != nil {
		t.Fatal("not taken over")
	}
	flags, ok := set.OPT()
	if want, _ := load.OPT(); !ok || flags != want || flags != OPTFlagDO || set.PlainLen() != load.PlainLen() {
		t.Errorf("flags %#x %v, length %d, want %d", flags, ok, set.PlainLen(), load.PlainLen())
	}
	if _, ok := without.OPT(); ok || without.PlainLen() != load.PlainLen()-(11+len(load.Options())) || len(without.Options()) != 0 {
		t.Errorf("SetMsg: OPT %v, length %d", ok, without.PlainLen())
	}
	if got, want := set.Finish(q, 1232), load.Finish(q, 1232); !bytes.Equal(got, want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	// Other options take the place of those; none leave none.
	set.SetOptions(&dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: TypeOPT}, Option: []dns.EDNS0{&dns.EDNS0_PADDING{Padding: []byte{0}}}})
	if want := option(OptionPadding, "\x00"); !bytes.Equal(set.Options(), want) {
		t.Errorf("options %x, want %x", set.Options(), want)
	}
	plain := set.PlainLen()
	if set.CountOPT(); set.PlainLen() != plain-len(option(OptionEDE, "\x00\x03stale"))+5 {
		t.Errorf("length %d after CountOPT, was %d", set.PlainLen(), plain)
	}
	if set.SetOptions(&dns.OPT{}); len(set.Options()) != 0 {
		t.Errorf("options %x, want none", set.Options())
	}
}

// A message of a reply has the question of the query that it answers, as that wrote it, and its id, opcode, RD and CD
// bits; all else is the reply's.
func TestMessageOfReply(t *testing.T) {
	var w Reply
	w.Reset(nil)
	w.Begin(query(t, "www.example.org.", TypeA, 0))
	w.SetFlag(FlagAA, true)
	w.SetFlag(FlagRA, true)
	w.SetRcode(NXDomain)
	r := question("wWw.Example.org.", TypeA)
	r.CheckingDisabled, r.AuthenticatedData = true, true
	m, err := w.Msg(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(m.MsgHdr.String()), ";; opcode: QUERY, status: NXDOMAIN, id: "+fmt.Sprint(r.Id)+"\n;; flags: qr aa rd ra cd"; !strings.HasPrefix(got, want) || strings.Contains(got, " ad") {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if m.Question[0] != r.Question[0] {
		t.Errorf("question %v", m.Question)
	}
}

// Unpacked gives the message that the query's packet unpacks to, time after time, and what plugins have changed.
func TestUnpackedQuery(t *testing.T) {
	var u Unpacked
	for _, m := range append(everyFlag()[4:9], question("WWW.example.org.", TypeTXT).SetEdns0(1400, true), question(".", TypeNS).SetEdns0(0, false), question("x.", TypeA)) {
		if m.Opcode != 0 || m.Response {
			continue
		}
		var q Query
		if !q.Parse(packed(t, m)) {
			t.Fatalf("not eligible: %v", m)
		}
		got, err := u.Set(&q)
		if err != nil || got.String() != m.String() {
			t.Errorf("got\n%v %v\nwant\n%v", got, err, m)
		}
		q.SetName(MustName("other.example."))
		q.SetFlag(FlagCD, true)
		q.SetFlag(FlagRD, false)
		if got, err = u.Set(&q); err != nil || got.Question[0].Name != "other.example." || !got.CheckingDisabled || got.RecursionDesired {
			t.Errorf("changed: %v %v", got, err)
		}
	}
	m := question("x.", TypeA).SetEdns0(1232, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")}}
	var q Query
	if q.Parse(packed(t, m)); len(q.EDNS().Options) == 0 {
		t.Fatal("no options")
	}
	if got, err := u.Set(&q); err != nil || got.String() != m.String() {
		t.Errorf("with options: got\n%v %v\nwant\n%v", got, err, m)
	}
}

type otherAddr string

func (otherAddr) Network() string  { return "other" }
func (a otherAddr) String() string { return string(a) }

// PeerOf reads the addresses that writers of messages have: IPv4 is never written as IPv6, a stream takes any length,
// what is no address is none.
func TestPeerOf(t *testing.T) {
	local := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 53), Port: 53}
	for _, tc := range []struct {
		remote net.Addr
		want   string
		proto  Proto
	}{
		{&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}, "192.0.2.1:4711", UDP},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1}, "[2001:db8::1]:1", TCP},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To16(), Port: 2}, "192.0.2.1:2", TCP},
		{otherAddr("192.0.2.7:99"), "192.0.2.7:99", UDP},
		{otherAddr("pipe"), "invalid AddrPort", UDP},
		{nil, "invalid AddrPort", UDP},
	} {
		p := PeerOf(tc.remote, local)
		if p.Client.String() != tc.want || p.Proto != tc.proto || p.Local != netip.MustParseAddrPort("192.0.2.53:53") || (p.Limit == MaxMessage) != (tc.proto == TCP) {
			t.Errorf("%v: %+v, want %s over %s", tc.remote, p, tc.want, tc.proto)
		}
		if AddrOf(tc.remote) != p.Client.Addr() {
			t.Errorf("%v: address %s", tc.remote, AddrOf(tc.remote))
		}
	}
}
