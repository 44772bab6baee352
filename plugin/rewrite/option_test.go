package rewrite

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// withOptions is a query for www.example.org with an OPT record, unless size is 0.
func withOptions(size uint16, do bool, options ...dns.EDNS0) *dns.Msg {
	m := new(dns.Msg).SetQuestion("www.Example.org.", dns.TypeA)
	m.Id = 1
	if size > 0 {
		m.SetEdns0(size, do)
		m.IsEdns0().Option = options
	}
	return m
}

func local(code uint16, data string) dns.EDNS0 {
	return &dns.EDNS0_LOCAL{Code: code, Data: []byte(data)}
}

func subnet(address string) dns.EDNS0 {
	rule := &optionRule{v4len: 24, v6len: 56}
	data, _ := rule.subnet(nil, netipAddr(address))
	return unpackOptions(wire.AppendOption(nil, 8, data)).Option[0]
}

func empty(string, uint16) *dns.Msg { return reply(0) }

func TestOptions(t *testing.T) {
	nsid := &dns.EDNS0_NSID{Code: dns.EDNS0NSID}
	none := withOptions(0, false)
	for _, tc := range []struct {
		rules string
		query *dns.Msg
		want  string // what is behind the question
	}{
		// Without EDNS.
		{"edns0 local set 0xffee 0x61626364", none, "size 4096 65518=65518:0x61626364"},
		{"edns0 local append 65518 abc", none, "size 4096 65518=65518:0x616263"},
		{"edns0 local replace 0xffee abc", none, "size 4096"},
		{"edns0 local unset 0xffee", none, "size 4096"},
		{"edns0 nsid set", none, "size 4096 3="},
		{"edns0 nsid replace", none, "size 4096"},
		{"edns0 subnet set 24 56", none, "size 4096 8=10.240.0.0/24/0"},
		{"edns0 subnet set 0 0", none, "size 4096 8=0.0.0.0/0/0"},
		{"edns0 subnet set 32 128", none, "size 4096 8=10.240.0.1/32/0"},
		{"edns0 subnet unset", none, "size 4096"},
		// The size and DO are the client's.
		{"edns0 local set 0xffee abc", withOptions(1400, true), "size 1400 do 65518=65518:0x616263"},
		// One that is there, and others.
		{"edns0 local set 0xffee abc", withOptions(1400, false, local(65518, "old"), local(65519, "stays")), "size 1400 65518=65518:0x616263 65519=65519:0x7374617973"},
		{"edns0 local append 0xffee abc", withOptions(1400, false, local(65518, "old")), "size 1400 65518=65518:0x6f6c64"},
		{"edns0 local replace 0xffee abc", withOptions(1400, false, local(65518, "old")), "size 1400 65518=65518:0x616263"},
		{"edns0 local unset 0xffee", withOptions(1400, false, local(65518, "a"), local(65519, "stays"), local(65518, "b")), "size 1400 65519=65519:0x7374617973"},
		{"edns0 local set 0xffee abc", withOptions(1400, false, local(65518, "a"), local(65518, "b")), "size 1400 65518=65518:0x616263 65518=65518:0x62"},
		{"edns0 nsid set", withOptions(1400, false, &dns.EDNS0_NSID{Code: 3, Nsid: "aa"}), "size 1400 3="},
		{"edns0 nsid append", withOptions(1400, false, nsid), "size 1400 3="},
		{"edns0 nsid unset", withOptions(1400, false, nsid), "size 1400"},
		{"edns0 subnet set 24 56", withOptions(1400, false, subnet("198.51.100.0")), "size 1400 8=10.240.0.0/24/0"},
		{"edns0 subnet append 24 56", withOptions(1400, false, subnet("198.51.100.0")), "size 1400 8=198.51.100.0/24/0"},
		{"edns0 subnet unset", withOptions(1400, false, subnet("198.51.100.0"), nsid), "size 1400 3="},
		// Codes with a meaning are not local.
		{"edns0 local unset 10", withOptions(1400, false, &dns.EDNS0_COOKIE{Code: 10, Cookie: "0102030405060708"}), "size 1400 10=0102030405060708"},
		// Variables.
		{"edns0 local set 0xffee {qname}", none, "size 4096 65518=65518:0x7777772e4578616d706c652e6f72672e"},
		{"edns0 local set 0xffee {qtype}", none, "size 4096 65518=65518:0x0001"},
		{"edns0 local set 0xffee {client_ip}", none, "size 4096 65518=65518:0x0af00001"},
		{"edns0 local set 0xffee {client_port}", none, "size 4096 65518=65518:0x9d14"},
		{"edns0 local set 0xffee {protocol}", none, "size 4096 65518=65518:0x756470"},
		{"edns0 local set 0xffee {server_ip}", none, "size 4096 65518=65518:0x7f000001"},
		{"edns0 local set 0xffee {server_port}", none, "size 4096 65518=65518:0x0035"},
		{"edns0 local set 0xffee {no/label}", none, ""},
		// Several rules.
		{"continue edns0 local set 0xffee a\nrewrite continue edns0 nsid set\nrewrite edns0 local unset 0xffee", none, "size 4096 3="},
		{"continue edns0 local set 0xffee a\nrewrite edns0 local set 0xffef much-longer-than-before", withOptions(1400, false, local(65519, "x")),
			"size 1400 65519=65519:0x6d7563682d6c6f6e6765722d7468616e2d6265666f7265 65518=65518:0x61"},
		{"edns0 local set 0xffee a\nrewrite edns0 nsid set", none, "size 4096 65518=65518:0x61"},
		{"edns0 local unset 0xffee\nrewrite edns0 nsid set", none, "size 4096 3="}, // the first had nothing to do
		{"continue name suffix .example.org .two.test\nrewrite edns0 local set 0xffee {qname}", none, "size 4096 65518=65518:0x7777772e74776f2e746573742e"},
	} {
		c, unpacked := agree(t, "rewrite "+tc.rules, empty, tc.query)
		if unpacked != strings.Contains(tc.rules, "label") {
			t.Errorf("%s: unpacked %v", tc.rules, unpacked)
		}
		f := strings.SplitN(c.seen, " ", 4)
		got := ""
		if len(f) == 4 {
			got = f[3]
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.rules, got, tc.want)
		}
	}
}

func TestOptionOfIPv6Client(t *testing.T) {
	var seen string
	for rule, want := range map[string]string{
		"edns0 subnet set 24 56":             "8=[2001:db8::]/56/0",
		"edns0 local set 0xffee {client_ip}": "65518=65518:0x20010db8000000000000000000000001",
	} {
		rw := serving(t, "rewrite "+rule, source{&seen, empty})
		rw.ServeDNS(t.Context(), &test.ResponseWriter{RemoteIP: "2001:db8::1"}, withOptions(0, false))
		if !strings.HasSuffix(seen, " "+want) {
			t.Errorf("%s: got %q", rule, seen)
		}
	}
}

// Rules about a client that has no address are not for its query.
func TestOptionOfNobody(t *testing.T) {
	var seen string
	for _, rule := range []string{"edns0 subnet set 24 56", "edns0 local set 0xffee {client_ip}", "edns0 local set 0xffee {client_port}"} {
		rw := serving(t, "rewrite "+rule, source{&seen, empty})
		rw.ServeDNS(t.Context(), nobody{new(test.ResponseWriter)}, withOptions(0, false))
		if strings.Contains(seen, "=") {
			t.Errorf("%s: got %q", rule, seen)
		}
		packet, err := withOptions(0, false).Pack()
		if err != nil {
			t.Fatal(err)
		}
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(packet) || rw.ServeWire(t.Context(), &w, &q) != wire.Done {
			t.Errorf("%s: not served in the wire lane", rule)
		}
	}
}

type nobody struct{ *test.ResponseWriter }

func (nobody) RemoteAddr() net.Addr { return &net.UDPAddr{} }

func TestLabels(t *testing.T) {
	var seen string
	rw := serving(t, "rewrite continue edns0 local set 0xffee {a/label}\nrewrite edns0 local set 0xffef {a/empty}", source{&seen, empty})
	if !rw.ReadsMetadata() || serving(t, "rewrite edns0 local set 0xffee {qname}", nil).ReadsMetadata() {
		t.Error("whether labels are read is not known")
	}
	ctx := metadata.ContextWithMetadata(t.Context())
	metadata.SetValueFunc(ctx, "a/label", func() string { return "value" })
	metadata.SetValueFunc(ctx, "a/empty", func() string { return "" })
	rw.ServeDNS(ctx, &test.ResponseWriter{}, withOptions(1400, false))
	if want := "www.Example.org. IN A size 1400 65518=65518:0x76616c7565"; seen != want {
		t.Errorf("got %q, want %q", seen, want)
	}
}

// What an upstream repeats is taken back; what a client had sent itself comes back to it.
func TestRevert(t *testing.T) {
	upstream := func(options ...dns.EDNS0) func(string, uint16) *dns.Msg {
		return func(name string, _ uint16) *dns.Msg {
			m := reply(0, name+" 60 IN A 192.0.2.1")
			m.SetEdns0(1232, true)
			m.IsEdns0().Option = options
			return m
		}
	}
	ede := &dns.EDNS0_EDE{InfoCode: 3}
	const record = "\nwww.Example.org. 60 IN A 192.0.2.1"
	for _, tc := range []struct {
		rules string
		query *dns.Msg
		reply func(string, uint16) *dns.Msg
		want  string
	}{
		{"edns0 local set 0xffee abc revert", withOptions(1400, false), upstream(local(65518, "abc"), ede), record + "\noption 15 3 (Stale Answer): ()"},
		{"edns0 local set 0xffee abc", withOptions(1400, false), upstream(local(65518, "abc"), ede), record + "\noption 65518 65518:0x616263\noption 15 3 (Stale Answer): ()"},
		{"edns0 local set 0xffee abc revert", withOptions(1400, false, local(65518, "mine")), upstream(local(65518, "abc")), record + "\noption 65518 65518:0x6d696e65"},
		{"edns0 local set 0xffee abc revert", withOptions(1400, false, local(65518, "mine")), upstream(ede), record + "\noption 15 3 (Stale Answer): ()"},
		{"edns0 local append 0xffee abc revert", withOptions(1400, false, local(65518, "mine")), upstream(local(65518, "mine")), record + "\noption 65518 65518:0x6d696e65"},
		{"edns0 nsid set revert", withOptions(1400, false), upstream(&dns.EDNS0_NSID{Code: 3, Nsid: "aa"}), record},
		{"edns0 subnet set 24 56 revert", withOptions(1400, false, subnet("198.51.100.0")), upstream(subnet("10.240.0.0")), record + "\noption 8 198.51.100.0/24/0"},
		{"continue edns0 local set 0xffee a revert\nrewrite edns0 local set 0xffee b revert", withOptions(1400, false, local(65518, "mine")), upstream(local(65518, "b")), record + "\noption 65518 65518:0x6d696e65"},
		// With other changes.
		{"continue edns0 local set 0xffee abc revert\nrewrite name www.example.org web.two.test", withOptions(1400, false), upstream(local(65518, "abc"), ede), record + "\noption 15 3 (Stale Answer): ()"},
		{"name www.example.org web.two.test", withOptions(1400, false), upstream(ede), record + "\noption 15 3 (Stale Answer): ()"},
		{"ttl www.example.org 7", withOptions(1400, false), upstream(ede), strings.Replace(record, "60", "7", 1) + "\noption 15 3 (Stale Answer): ()"},
	} {
		c, unpacked := agree(t, "rewrite "+tc.rules, tc.reply, tc.query)
		if got := strings.TrimPrefix(c.reply, "NOERROR aa www.Example.org. A"); got != tc.want || unpacked {
			t.Errorf("%s: got %q, want %q, unpacked %v", tc.rules, got, tc.want, unpacked)
		}
	}
}

// The flags of a reply's OPT record are no TTL.
func TestTTLOfOPT(t *testing.T) {
	rw := serving(t, "rewrite ttl www.example.org 100-", test.HandlerFunc(nil))
	rw.Next = source{new(string), func(string, uint16) *dns.Msg {
		m := reply(0)
		m.SetEdns0(1232, false)
		return m
	}}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rw.ServeDNS(t.Context(), rec, withOptions(1400, false))
	if opt := rec.Msg.IsEdns0(); opt.Hdr.Ttl != 0 {
		t.Errorf("got %v", opt)
	}
}

func TestTSIGStaysLast(t *testing.T) {
	m := withOptions(0, false)
	m.SetTsig("key.example.org.", dns.HmacSHA256, 300, 1)
	var got *dns.Msg
	rule, err := newRule(strings.Fields("edns0 nsid set"))
	if err != nil {
		t.Fatal(err)
	}
	got = m.Copy()
	if _, result := rule.Rewrite(t.Context(), request.Request{W: &test.ResponseWriter{}, Req: got}); result != RewriteDone {
		t.Fatal("ignored")
	}
	if len(got.Extra) != 2 || got.IsEdns0() == nil || got.IsTsig() == nil {
		t.Errorf("got %v", got)
	}
}

// With revert, an option of the reply becomes what it was before the rule: what an earlier rule has made of it for good,
// or what the client has sent.
func TestRevertBehindOthers(t *testing.T) {
	for _, tc := range []struct{ rules, sent, want string }{
		{"rewrite continue edns0 local set 0xffee a revert\nrewrite edns0 local set 0xffee b revert", "", ""},
		{"rewrite continue edns0 local set 0xffee a revert\nrewrite edns0 local set 0xffee b revert", "z", "z"},
		{"rewrite continue edns0 local set 0xffee a\nrewrite edns0 local set 0xffee b revert", "", "a"},
		{"rewrite continue edns0 local set 0xffee a\nrewrite edns0 local set 0xffee b revert", "z", "a"},
		{"rewrite continue edns0 local unset 0xffee\nrewrite edns0 local set 0xffee b revert", "z", ""},
		{"rewrite continue edns0 local set 0xffef a\nrewrite edns0 local set 0xffee b revert", "z", "z"},
	} {
		q := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
		if tc.sent != "" {
			q.SetEdns0(1232, false)
			q.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 0xffee, Data: []byte(tc.sent)}}
		}
		c, _ := agree(t, tc.rules, func(name string, _ uint16) *dns.Msg {
			m := reply(0, name+" 5 IN A 192.0.2.1").SetEdns0(1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 0xffee, Data: []byte("b")}}
			return m
		}, q)
		want := "NOERROR aa example.org. A\nexample.org. 5 IN A 192.0.2.1"
		if tc.want != "" {
			want += fmt.Sprintf("\noption 65518 65518:0x%x", tc.want)
		}
		if c.reply != want {
			t.Errorf("%s, sent %q: got %q, want %q", tc.rules, tc.sent, c.reply, want)
		}
	}
}
