package kubernetes

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	"sigs.k8s.io/yaml"
)

// serving returns the plugin of a stanza with testdata/cluster.yaml as its cluster. The server's own address is 192.0.2.53.
func serving(t testing.TB, stanza string) *Kubernetes {
	t.Helper()
	k := configured(t, stanza)
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := storeOf(k)
	put(t, s, string(text))
	s.PutDone()
	return k
}

// configured returns the plugin of a stanza with an empty cluster that has not been read.
func configured(t testing.TB, stanza string) *Kubernetes {
	t.Helper()
	c := caddy.NewTestController("dns", stanza)
	c.ServerBlockKeys = []string{"dns://.:53"}
	k, err := parseBlock(c)
	if err != nil {
		t.Fatal(err)
	}
	k.shared.local.Store(&[]netip.Addr{netip.MustParseAddr("192.0.2.53")})
	config := k.storeConfig()
	config.PodLabels = true
	k.APIConn = &controller{Store: store.New(config, nil)}
	k.Upstream = upstreamFunc(theUpstream)
	return k
}

func storeOf(k *Kubernetes) *store.Store { return k.APIConn.(*controller).Store }

// put takes objects in YAML into a store.
func put(t testing.TB, s *store.Store, text string) {
	t.Helper()
	for _, doc := range strings.Split(text, "\n---\n") {
		s.Put(leanObject(t, doc))
	}
}

func leanObject(t testing.TB, doc string) lean.Object {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	var head struct{ Kind string }
	if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
		t.Fatal(err)
	}
	o, ok := map[string]lean.Object{
		"Service": new(lean.Service), "EndpointSlice": new(lean.EndpointSlice), "Namespace": new(lean.Namespace),
		"Pod": new(lean.Pod), "ServiceImport": new(lean.ServiceImport),
	}[head.Kind]
	if !ok {
		t.Fatalf("unknown kind in %s", doc)
	}
	if err := o.Decode(b, lean.JSON); err != nil {
		t.Fatal(err)
	}
	return o
}

type upstreamFunc func(name string, typ uint16) (*dns.Msg, error)

func (f upstreamFunc) Lookup(_ context.Context, _ request.Request, name string, typ uint16) (*dns.Msg, error) {
	return f(name, typ)
}

// theUpstream knows www.example.org.
func theUpstream(name string, typ uint16) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(name, typ)
	switch {
	case name == "www.example.org." && typ == dns.TypeA:
		m.Answer = []dns.RR{test.CNAME("www.example.org. 60 IN CNAME web.example.org."), test.A("web.example.org. 70 IN A 192.0.2.80")}
	case name == "www.example.org." && typ == dns.TypeTXT:
		m.Answer = []dns.RR{test.TXT("www.example.org. 60 IN TXT text")}
	}
	return m, nil
}

// passed stands in the place of a reply when the next plugin was asked.
const passed = "passed on"

// ask asks in the message lane.
func ask(t testing.TB, k *Kubernetes, qname string, typ uint16) *dns.Msg {
	t.Helper()
	h, next := *k, false // a copy must do
	h.Next = plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		next = true
		return 0, nil
	})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rcode, err := h.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(qname, typ))
	switch {
	case err != nil:
		t.Errorf("%s %s: %v", qname, dns.TypeToString[typ], err)
	case next:
		return nil
	case rec.Msg == nil:
		return &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: rcode}}
	}
	return rec.Msg
}

// askWire asks in the wire lane. The reply is nil if it was passed on; done tells whether the lane had an answer at all.
func askWire(t testing.TB, k *Kubernetes, qname string, typ uint16) (m *dns.Msg, outcome wire.Outcome) {
	t.Helper()
	h, next := *k, false
	h.Next = nextWire{&next}
	packet, err := new(dns.Msg).SetQuestion(qname, typ).Pack()
	if err != nil {
		t.Fatal(err)
	}
	var q wire.Query
	if !q.Parse(packet) {
		return nil, wire.Unpack
	}
	q.Peer.Limit = wire.MaxMessage
	var w wire.Reply
	w.Reset(make([]byte, 0, 512))
	outcome = h.ServeWire(context.Background(), &w, &q)
	if outcome == wire.Block {
		q.SetMayBlock(true)
		outcome = h.ServeWire(context.Background(), &w, &q)
	}
	switch {
	case outcome != wire.Done || next:
		return nil, outcome
	case w.Failed():
		return &dns.Msg{MsgHdr: dns.MsgHdr{Rcode: w.Rcode()}}, outcome
	}
	m = new(dns.Msg)
	if err := m.Unpack(w.Finish(&q, 1232)); err != nil {
		t.Fatalf("%s %s: %v", qname, dns.TypeToString[typ], err)
	}
	if m.Len() != w.PlainLen() && !m.Truncated {
		t.Errorf("%s %s: %d octets without compression, the reply says %d", qname, dns.TypeToString[typ], m.Len(), w.PlainLen())
	}
	return m, outcome
}

type nextWire struct{ asked *bool }

func (n nextWire) Name() string { return "next" }
func (n nextWire) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}
func (n nextWire) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	*n.asked = true
	return wire.Done
}
func (n nextWire) WireSelf() plugin.Handler { return n }

var soaSerial = regexp.MustCompile(`hostmaster\.(\S*) \d+ 7200`)

// describe writes a reply as lines: rcode and flags, then the records, those of the sections behind the answer
// marked. Endpoints are in no order, so records are sorted, but for aliases.
func describe(m *dns.Msg) string {
	if m == nil {
		return passed
	}
	head := dns.RcodeToString[m.Rcode]
	if m.Authoritative {
		head += " aa"
	}
	if m.Truncated {
		head += " tc"
	}
	lines := []string{head}
	for i, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for len(section) > 0 {
			n := run(section)
			start := len(lines)
			for _, rr := range section[:n] {
				f := strings.Fields(rr.String())
				text := strings.Join(append(f[:2], f[3:]...), " ") // without the class
				lines = append(lines, []string{"", "authority ", "additional "}[i]+soaSerial.ReplaceAllString(text, "hostmaster.$1 SERIAL 7200"))
			}
			sort.Strings(lines[start:])
			section = section[n:]
		}
	}
	return strings.Join(lines, "\n")
}

// run is how many of the records belong together.
func run(section []dns.RR) int {
	n := 1
	for ; n < len(section) && section[n-1].Header().Rrtype != dns.TypeCNAME && section[n].Header().Rrtype != dns.TypeCNAME; n++ {
	}
	return n
}

func questionText(qname string, typ uint16) string {
	return fmt.Sprintf("%s %s", qname, dns.TypeToString[typ])
}
