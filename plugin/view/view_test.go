package view

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/expression"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/expr-lang/expr"
	"github.com/miekg/dns"
)

// client is a writer with addresses of its own.
type client struct {
	test.ResponseWriter
	remote, local net.Addr
}

func (c *client) RemoteAddr() net.Addr { return c.remote }
func (c *client) LocalAddr() net.Addr  { return c.local }

func udpAddr(s string) *net.UDPAddr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

// asked is one query as both lanes have it.
type asked struct {
	state  request.Request
	packet []byte
	peer   wire.Peer
}

func queries(t testing.TB) (all []asked) {
	t.Helper()
	tcp := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	for i, q := range []struct {
		name          string
		qtype         uint16
		size          uint16
		do            bool
		remote, local net.Addr
	}{
		{"www.example.org.", dns.TypeA, 0, false, udpAddr("192.0.2.7:4711"), udpAddr("198.51.100.1:53")},
		{"WWW.Example.ORG.", dns.TypeMX, 1400, true, udpAddr("10.1.2.3:53"), udpAddr("127.0.0.1:5353")},
		{".", dns.TypeNS, 100, false, udpAddr("[2001:db8::1]:1024"), udpAddr("[2001:db8::53]:53")},
		{`a\.b\000c.example.`, dns.TypeHTTPS, 4096, true, udpAddr("[fe80::1%eth0]:1"), udpAddr("[fe80::2%eth0]:53")},
		{"abc.test.", dns.TypeSRV, 1232, false, tcp("[::ffff:192.0.2.9]:65535"), tcp("192.0.2.1:853")},
		{"xyz.test.", 65000, 0, false, tcp("192.0.2.8:99"), tcp("192.0.2.1:53")},
	} {
		m := new(dns.Msg).SetQuestion(q.name, q.qtype)
		m.Id = uint16(i * 7001)
		if q.size > 0 {
			m.SetEdns0(q.size, q.do)
		}
		packet, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		came := new(dns.Msg)
		if err := came.Unpack(packet); err != nil {
			t.Fatal(err)
		}
		w := &client{remote: q.remote, local: q.local}
		all = append(all, asked{request.Request{W: w, Req: came}, packet, wire.PeerOf(q.remote, q.local)})
	}
	return all
}

// oracle evaluates an expression as its functions are defined, on the virtual machine.
func oracle(ctx context.Context, code string, state request.Request) bool {
	env := expression.DefaultEnv(ctx, &state)
	program, err := expr.Compile(code, expr.Env(env), expr.DisableBuiltin("type"))
	if err != nil {
		return false
	}
	value, err := expr.Run(program, env)
	return err == nil && value == true
}

// native says that the expression does not need the virtual machine.
var expressions = []struct {
	code   string
	native bool
}{
	{"true", true},
	{"not false", true},
	{"!do()", true},
	{"do() and type() == 'MX'", true},
	{"do() == true", true},
	{"do() != (type() == 'A')", true},
	{"type() == 'A' || type() == 'MX'", true},
	{"type() in ['A', 'HTTPS', 'TYPE65000']", true},
	{"type() not in ['A', 'HTTPS']", true},
	{"type() in []", false},
	{"name() == 'www.example.org.'", true},
	{"name() != 'www.example.org.'", true},
	{"'.' == name()", true},
	{"name() startsWith 'www'", true},
	{"name() endsWith '.test.'", true},
	{"name() contains 'example'", true},
	{"name() contains 'a\\\\.b\\\\000'", true},
	{"name() matches '^[a-m].*[.]test[.]$'", true},
	{"not (name() matches 'org')", true},
	{"len(name()) > 10", true},
	{"len(name()) == 1", true},
	{"class() == 'IN'", true},
	{"proto() == 'tcp'", true},
	{"bufsize() == 1400", true},
	{"bufsize() >= 1232 and bufsize() < 5000", true},
	{"bufsize() == 512 or bufsize() == 65535", true},
	{"size() <= 33", true},
	{"id() != 0", true},
	{"id() in [0, 7001, 14002]", true},
	{"opcode() == 0", true},
	{"size() > id()", true},
	{"client_ip() == '192.0.2.7'", true},
	{"client_ip() == 'fe80::1%eth0'", true},
	{"client_ip() in ['192.0.2.9', '2001:db8::1']", true},
	{"client_ip() startsWith '192.0.'", true},
	{"server_ip() == '198.51.100.1'", true},
	{"client_ip() == server_ip()", true},
	{"port() == '4711'", true},
	{"server_port() != '53'", true},
	{"port() == server_port()", true},
	{"incidr(client_ip(), '192.0.2.0/24')", true},
	{"incidr(client_ip(), '192.0.2.8/31') and proto() == 'tcp'", true},
	{"incidr(client_ip(), 'fe80::/10')", true},
	{"incidr(client_ip(), '::ffff:192.0.2.0/120')", true},
	{"incidr(server_ip(), '192.0.0.0/16')", true},
	{"not incidr(client_ip(), '10.0.0.0/8')", true},
	{"incidr(client_ip(), 'nonsense')", true},
	{"not incidr(client_ip(), 'nonsense')", true},
	{"do() or not incidr(client_ip(), 'nonsense')", true},
	{"incidr(client_ip(), 'nonsense') or true", true},
	{"false and incidr(client_ip(), 'nonsense') or true", true},

	{"incidr('192.0.2.1', '192.0.2.0/24')", false},
	{"incidr(client_ip(), true ? '10.0.0.0/8' : name())", false},
	{"type() + class() == 'AIN'", false},
	{"id() % 2 == 1", false},
	{"id() in 7000..7010", true},
	{"name() matches type()", false},
	{"upper(name()) == 'XYZ.TEST.'", false},
	{"let n = name(); n == '.' or n == 'abc.test.'", false},
	{"do() ? true : type() == 'NS'", false},
	{"any(['A', 'NS'], # == type())", false},
	{"len([1, 2]) == 2", false},
	{"name() < 'b'", false},
	{"name()[0:3] == 'www'", false},
	{"size()", false},
	{"name()", false},
	{"1", false},
	{"nil == 1", false},
	{"[1][id()] == 1", false}, // an error for most
}

func TestBothLanes(t *testing.T) {
	ctx := t.Context()
	trues := map[string]int{}
	for _, x := range expressions {
		c, err := compile(x.code)
		if err != nil {
			t.Errorf("%s: %v", x.code, err)
			continue
		}
		if (c.native != nil) != x.native {
			t.Errorf("%s: native %v", x.code, c.native != nil)
		}
		v := &View{conditions: []*condition{c}}
		for _, a := range queries(t) {
			want := oracle(ctx, x.code, a.state)
			if want {
				trues[x.code]++
			}
			if got := v.Filter(ctx, &a.state); got != want {
				t.Errorf("%s of %v: message lane says %v", x.code, a.state.Req.Question, got)
			}
			var q wire.Query
			if !q.Parse(a.packet) {
				t.Fatal("not eligible")
			}
			q.Peer = a.peer
			if got, sure := v.FilterWire(ctx, &q); got != want || !sure {
				t.Errorf("%s of %v: wire lane says %v, sure %v", x.code, a.state.Req.Question, got, sure)
			}
			if q.Changed() {
				t.Errorf("%s changes the query", x.code)
			}
			if want && !isWithin(v, &q) {
				t.Errorf("%s: %v is out of its bounds", x.code, a.state.Req.Question)
			}
		}
	}
	if len(trues) < 40 {
		t.Errorf("only %d expressions are ever true", len(trues))
	}
}

// isWithin reports whether a query is within the bounds of a view.
func isWithin(v *View, q *wire.Query) bool {
	clients, names := v.Bounds()
	in := func(p netip.Prefix) bool { return p.Contains(q.Client.Addr().Unmap().WithZone("")) }
	is := func(name []byte) bool { return string(name) == string(q.Lower()) }
	return (clients == nil || slices.ContainsFunc(clients, in)) && (names == nil || slices.ContainsFunc(names, is))
}

// TestBounds: which expressions are looked up in an index.
func TestBounds(t *testing.T) {
	for _, tc := range []struct{ codes, clients, names string }{
		{"incidr(client_ip(), '10.0.0.0/8')", "[10.0.0.0/8]", "any"},
		{"incidr(client_ip(), '::ffff:10.0.0.0/104')", "[10.0.0.0/8]", "any"},
		{"client_ip() == '192.0.2.7'", "[192.0.2.7/32]", "any"},
		{"'2001:db8::1' == client_ip()", "[2001:db8::1/128]", "any"},
		{"client_ip() in ['192.0.2.7', '192.0.2.7', 'nobody']", "[192.0.2.7/32]", "any"},
		{"name() == 'www.example.org.'", "any", "[www.example.org.]"},
		{"name() in ['example.org', 'www.example.org.']", "any", "[www.example.org.]"},
		{"name() == 'www.example.org.' && type() == 'A' and incidr(client_ip(), '::/0')", "[::/0]", "[www.example.org.]"},
		{"name() == 'a.' || name() == 'b.'", "any", "[a. b.]"},
		{"name() == 'a.' or type() == 'A'", "any", "any"},
		{"name() == 'a.' or incidr(client_ip(), '10.0.0.0/8')", "any", "any"},
		{"type() == 'A';name() == 'a.';incidr(client_ip(), '10.0.0.0/8')", "[10.0.0.0/8]", "[a.]"},
		{"not incidr(client_ip(), '10.0.0.0/8')", "any", "any"},
		{"client_ip() != '192.0.2.7'", "any", "any"},
		{"incidr(server_ip(), '10.0.0.0/8')", "any", "any"},
		{"incidr(client_ip(), 'nonsense')", "any", "any"},
		{"name() == 'a..b.'", "any", "[]"},
		{"", "any", "any"},
	} {
		v := new(View)
		for code := range strings.SplitSeq(tc.codes, ";") {
			if code == "" {
				continue
			}
			c, err := compile(code)
			if err != nil {
				t.Fatal(err)
			}
			v.conditions = append(v.conditions, c)
		}
		c, n := v.Bounds()
		clients, names := "any", "any"
		if c != nil {
			clients = fmt.Sprint(c)
		}
		if n != nil {
			texts := []string{}
			for _, name := range n {
				texts = append(texts, wire.Text(name))
			}
			names = fmt.Sprint(texts)
		}
		if clients != tc.clients || names != tc.names {
			t.Errorf("%s: clients %s, names %s", tc.codes, clients, names)
		}
	}
}

func TestEveryFunction(t *testing.T) {
	ctx := metadata.ContextWithMetadata(t.Context())
	metadata.SetValueFunc(ctx, "a/b", func() string { return "value" })
	for _, a := range queries(t) {
		want := expression.DefaultEnv(ctx, &a.state)
		e := evaluators.Get().(*evaluator)
		e.ctx, e.q = ctx, &e.own
		if err := e.own.SetMsg(a.state.Req, a.peer); err != nil {
			t.Fatal(err)
		}
		if len(e.env) != len(want) {
			t.Fatalf("%d functions of %d", len(e.env), len(want))
		}
		for name, f := range want {
			var x, y any
			switch f := f.(type) {
			case func() string:
				x, y = f(), e.env[name].(func() string)()
			case func() int:
				x, y = f(), e.env[name].(func() int)()
			case func() bool:
				x, y = f(), e.env[name].(func() bool)()
			case func(string) string:
				x, y = f("a/b"), e.env[name].(func(string) string)("a/b")
			case func(string, string) (bool, error):
				x, y = true, e.env[name] != nil
			default:
				t.Errorf("%s is of type %T", name, f)
			}
			if x != y {
				t.Errorf("%s() of %v: got %v, want %v", name, a.state.Req.Question, y, x)
			}
		}
		e.free()
	}
}

func TestConditions(t *testing.T) {
	a := queries(t)[0]
	for codes, want := range map[string]bool{
		"":                         true,
		"true":                     true,
		"true;type() == 'A'":       true,
		"true;type() == 'MX';true": false,
		"false;true":               false,
		"true;name()":              false,
	} {
		v := new(View)
		for code := range strings.SplitSeq(codes, ";") {
			if code == "" {
				continue
			}
			c, err := compile(code)
			if err != nil {
				t.Fatal(err)
			}
			v.conditions = append(v.conditions, c)
		}
		if got := v.Filter(t.Context(), &a.state); got != want {
			t.Errorf("%q: got %v", codes, got)
		}
	}
}

func TestMetadata(t *testing.T) {
	ctx := (&View{name: "golden"}).Metadata(metadata.ContextWithMetadata(t.Context()), request.Request{})
	metadata.SetValueFunc(ctx, "a/b", func() string { return "value" })
	a := queries(t)[0]
	var q wire.Query
	q.Parse(a.packet)
	for code, want := range map[string]bool{
		"metadata('view/name') == 'golden'":          true,
		"metadata('a/b') == 'value' && not do()":     true,
		"metadata('a/c') == ''":                      true,
		"metadata('a/c') == 'value'":                 false,
		"let m = $env.metadata; m('a/b') == 'value'": true,
		"all(['a/b'], metadata(#) == 'value')":       true,
		"type() == 'A' or metadata('a/b') == 'no'":   true,
		"let f = 'a/b'; metadata(f) matches '^val'":  true,
	} {
		c, err := compile(code)
		if err != nil {
			t.Errorf("%s: %v", code, err)
			continue
		}
		v := &View{conditions: []*condition{c}}
		if got := v.Filter(ctx, &a.state); got != want {
			t.Errorf("%s: got %v", code, got)
		}
		if _, sure := v.FilterWire(ctx, &q); sure || !v.ReadsMetadata() {
			t.Errorf("%s: the wire lane is sure", code)
		}
	}
}

func TestPassesOn(t *testing.T) {
	v := &View{Next: test.NextHandler(dns.RcodeRefused, nil)}
	if rc, err := v.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg)); rc != dns.RcodeRefused || err != nil {
		t.Errorf("got %d, %v", rc, err)
	}
	var w wire.Reply
	var q wire.Query
	if out := v.ServeWire(t.Context(), &w, &q); out != wire.Unpack || v.WireSelf() != v {
		t.Errorf("got %v", out)
	}
	bad := &request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg)}
	if v.Filter(t.Context(), bad) {
		t.Error("a message without question belongs to the view")
	}
}

func TestConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for _, a := range queries(t) {
		for _, code := range []string{"name() == 'abc.test.'", "upper(name()) == 'ABC.TEST.'"} {
			c, _ := compile(code)
			v := &View{conditions: []*condition{c}}
			want := a.state.Req.Question[0].Name == "abc.test."
			wg.Go(func() {
				for range 200 {
					if v.Filter(t.Context(), &a.state) != want {
						t.Errorf("%v: not %v", a.state.Req.Question, want)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// A network that is none leaves a view without queries, and nobody would know why.
func TestNoCIDR(t *testing.T) {
	for source, want := range map[string]string{
		"incidr(client_ip(), '10.0.0/8')":                                      `"10.0.0/8"`,
		"type() == 'A' && !(incidr(server_ip(), '10.0.0.0/33') || do())":       `"10.0.0.0/33"`,
		"incidr(client_ip(), '10.0.0.0/8') || incidr(client_ip(), '10.0.0.0')": `"10.0.0.0"`,
		"incidr(client_ip(), '10.0.0.0/8') || incidr(client_ip(), name())":     "",
	} {
		out := logtest.Capture(t)
		if err := setup(caddy.NewTestController("dns", "view a {\nexpr "+source+"\n}")); err != nil {
			t.Fatal(err)
		}
		if want != "" {
			want = "[WARNING] plugin/view: Testfile:2: incidr: " + want + " is not a CIDR: that is an error for each query, which is not one of the view then\n"
		}
		if got := out.String(); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", source, got)
		}
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input, err string
		conditions int
	}{
		{"view example {\nexpr name() == 'example.com.'\n}", "", 1},
		{"view example {\nexpr incidr(client_ip(), '10.0.0.0/24')\nexpr true\n}", "", 2},
		{"view example", "", 0},
		{"view example {\n}", "", 0},
		{"view", "plugin/view: Testfile:1 - Error during parsing: Wrong argument count or unexpected line ending after 'view'", 0},
		{"view a b", "Wrong argument count", 0},
		{"view a {\n}\nview b {\n}", "this plugin can only be used once per Server Block", 0},
		{"view a {\nfoo bar\n}", "unknown property 'foo'", 0},
		{"view a {\nexpr foo\n}", "plugin/view: Testfile:2 - Error during parsing: unknown name foo (1:1)\n | foo\n | ^", 0},
		{"view a {\nexpr invalid expression\n}", "unexpected token", 0},
		{"view a {\nexpr\n}", "unexpected token EOF", 0},
		{"view a {\nexpr type(1) == 'int'\n}", "too many arguments", 0},
	} {
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
		}
		if err == nil {
			v := dnsserver.GetConfig(c).Plugin[0](nil).(*View)
			if v.ViewName() != "example" || len(v.conditions) != tc.conditions {
				t.Errorf("%q: got %v", tc.input, v)
			}
		}
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

// Whatever compiles gives what the virtual machine gives.
func FuzzExpression(f *testing.F) {
	for _, x := range expressions {
		f.Add(x.code)
	}
	all := queries(f)
	f.Fuzz(func(t *testing.T, code string) {
		for _, slow := range []string{"now", "repeat", "..", "map", "date", "reduce"} {
			if strings.Contains(code, slow) {
				return // takes long, or gives another value each time
			}
		}
		c, err := compile(code)
		if err != nil {
			return
		}
		v := &View{conditions: []*condition{c}}
		for _, a := range all[:4] {
			want := oracle(t.Context(), code, a.state)
			if got := v.Filter(t.Context(), &a.state); got != want {
				t.Fatalf("%q of %v: got %v, want %v (native %v)", code, a.state.Req.Question, got, want, c.native != nil)
			}
			var q wire.Query
			q.Parse(a.packet)
			if q.Peer = a.peer; want && !isWithin(v, &q) {
				t.Fatalf("%q: %v is out of its bounds", code, a.state.Req.Question)
			}
		}
	})
}

func BenchmarkFilterWire(b *testing.B) {
	a := queries(b)[0]
	var q wire.Query
	q.Parse(a.packet)
	q.Peer = a.peer
	for _, code := range []string{
		"incidr(client_ip(), '10.0.0.0/8')",
		"type() in ['MX', 'SRV'] and name() endsWith '.test.'",
		"name() matches '^[a-m].*[.]test[.]$'",
		"upper(name()) == 'XYZ.TEST.'",
	} {
		c, err := compile(code)
		if err != nil {
			b.Fatal(err)
		}
		v := &View{conditions: []*condition{c}}
		b.Run(code, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.FilterWire(b.Context(), &q)
			}
		})
	}
}

func TestNoAllocations(t *testing.T) {
	a := queries(t)[1]
	var q wire.Query
	q.Parse(a.packet)
	q.Peer = a.peer
	e := evaluators.Get().(*evaluator)
	defer e.free()
	for _, x := range expressions {
		if !x.native {
			continue
		}
		c, _ := compile(x.code)
		v := &View{conditions: []*condition{c}}
		if n := testing.AllocsPerRun(100, func() { v.belongs(e, context.Background(), &q) }); n > 0 {
			t.Errorf("%s: %v allocations", x.code, n)
		}
		// A new evaluator would be 33; the race detector has some made that are not needed.
		if n := testing.AllocsPerRun(100, func() { v.FilterWire(context.Background(), &q) }); n > 20 {
			t.Errorf("%s, with an evaluator: %v allocations", x.code, n)
		}
	}
}
