package zone

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// seeds is how many random zones the comparisons below go through, and asked how many questions each is asked.
const (
	seeds = 150
	asked = 60
)

// asks are questions for a random zone, in any case, also of type ANY and RRSIG.
func asks(z *zonetest.Zone, seed uint64) (all []dns.Question) {
	r := rand.New(rand.NewPCG(seed, 99))
	for _, q := range z.Questions(seed, asked) {
		question := dns.Question{Name: q.Name, Qtype: dns.StringToType[q.Type], Qclass: dns.ClassINET}
		switch r.IntN(8) {
		case 0:
			question.Qtype = dns.TypeANY
		case 1, 2:
			question.Name = anyCase(r, q.Name)
		}
		all = append(all, question)
	}
	return all
}

// anyCase is a name with letters in any case.
func anyCase(r *rand.Rand, name string) string {
	b := []byte(name)
	for i, c := range b {
		if c >= 'a' && c <= 'z' && r.IntN(2) == 0 {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// tell is what a zone says to a question over a stream, with nobody else to ask.
func tell(t testing.TB, z *Zone, question dns.Question) said {
	t.Helper()
	m := new(dns.Msg)
	m.Question = []dns.Question{question}
	var q wire.Query
	if err := q.SetMsg(m, wire.Peer{Proto: wire.TCP, Limit: wire.MaxMessage}); err != nil {
		t.Fatal(err)
	}
	var w wire.Reply
	w.Reset(nil)
	var a Answerer
	if a.Answer(z, &w, &q) == External {
		a.Alone()
	}
	plain := w.PlainLen()
	reply := new(dns.Msg)
	if err := reply.Unpack(w.Finish(&q, 1232)); err != nil {
		t.Fatalf("%v: %v", question, err)
	}
	if reply.Question[0] != question {
		t.Errorf("asked %v, the reply has %v", question, reply.Question[0])
	}
	if reply.Compress = false; plain != reply.Len() && !strings.Contains(question.Name, `\`) && !strings.Contains(reply.String(), `\`) {
		t.Errorf("%v: plain length %d, want %d", question, plain, reply.Len())
	}
	s := said{rcode: reply.Rcode, aa: reply.Authoritative, answer: map[string]bool{}, ns: map[string]bool{}, ar: map[string]bool{}}
	for i, rrs := range [][]dns.RR{reply.Answer, reply.Ns, reply.Extra} {
		to := []map[string]bool{s.answer, s.ns, s.ar}[i]
		addAll(to, rrs, "")
		if len(to) != len(rrs) && !sameButForCase(rrs) {
			t.Errorf("%v: records stand there twice:\n%v", question, reply)
		}
	}
	return s
}

// sameButForCase reports whether some of the records differ in the case of a name only.
func sameButForCase(rrs []dns.RR) bool {
	exact := map[string]bool{}
	for _, rr := range rrs {
		exact[rr.String()] = true
	}
	return len(exact) == len(rrs)
}

// Any zone answers any question as RFC 1034 §4.3.2 says, with RFC 4592 for wildcards, RFC 6672 for DNAME, RFC 2308 for
// denials, RFC 4035 §3.1.4.1 for DS records and RFC 8482 §4.1 for ANY: the same as a model that is written after their
// words.
func TestAnswersLikeTheModel(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(seeds) {
		text := zonetest.New("example.org.", seed)
		z, m := build(t, "example.org.", text.Text), newModel("example.org.", text.Text)
		for _, q := range asks(text, seed) {
			got, want := tell(t, z, q), m.ask(q.Name, q.Qtype)
			if got.String() != want.String() {
				t.Fatalf("seed %d, %s %s:\n%swant\n%s\n%s", seed, q.Name, dns.Type(q.Qtype), got, want, text.Text)
			}
			kinds[fmt.Sprintf("%s %v %v %v", dns.RcodeToString[got.rcode], got.aa, len(got.answer) > 0, len(got.ar) > 0)]++
		}
	}
	// Else the zones ask for nothing.
	for _, kind := range []string{"NOERROR true true true", "NOERROR true true false", "NOERROR false false true", "NOERROR true false false", "NXDOMAIN true false false", "NXDOMAIN true true false", "SERVFAIL true true false"} {
		if kinds[kind] < 5 {
			t.Errorf("%d replies of kind %s only: %v", kinds[kind], kind, kinds)
		}
	}
}

// The order in which records come makes no difference to what a zone says and holds (RFC 1035 §5.1 gives it no
// meaning); but of its nodes in canonical order (RFC 4034 §6.1) there is one only.
func TestOrderOfRecordsMakesNoDifference(t *testing.T) {
	for seed := range uint64(seeds / 3) {
		text := zonetest.New("example.org.", seed)
		z := build(t, "example.org.", text.Text)
		lines := strings.Split(strings.TrimSpace(text.Text), "\n")
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		shuffled := build(t, "example.org.", strings.Join(lines, "\n")+"\n")
		if z.Records() != shuffled.Records() || z.Names() != shuffled.Names() || z.Serial() != shuffled.Serial() || z.LeadsOut() != shuffled.LeadsOut() {
			t.Fatalf("seed %d: %d records of %d names, shuffled %d of %d", seed, z.Records(), z.Names(), shuffled.Records(), shuffled.Names())
		}
		for _, q := range asks(text, seed) {
			if got, want := tell(t, shuffled, q).String(), tell(t, z, q).String(); got != want {
				t.Fatalf("seed %d, %v: shuffled\n%swant\n%s", seed, q, got, want)
			}
		}
		var names, want [][]byte
		for name, n := range shuffled.Nodes() {
			if !bytes.Equal(name, n.Name(shuffled)) {
				t.Fatalf("node of %q is named %q", name, n.Name(shuffled))
			}
			names = append(names, bytes.Clone(name))
		}
		for name := range newModel("example.org.", text.Text).exists {
			want = append(want, wire.MustName(name))
		}
		slices.SortFunc(want, wire.Compare)
		if !slices.EqualFunc(names, want, bytes.Equal) || len(names) != z.Names() {
			t.Fatalf("seed %d: nodes %q, want %q", seed, names, want)
		}
	}
}

// Flags of nodes: a name with NS records is a cut but for the apex; what lies below a cut or a DNAME is occluded (RFC
// 9499 §7); a name without data is empty; each is found by its name.
func TestNodesOfRandomZones(t *testing.T) {
	for seed := range uint64(seeds / 3) {
		text := zonetest.New("example.org.", seed)
		z, m := build(t, "example.org.", text.Text), newModel("example.org.", text.Text)
		leads := false
		for name := range m.exists {
			packed := wire.MustName(name)
			n, ok := z.Lookup(packed, wire.Hash(packed))
			if !ok {
				t.Fatalf("seed %d: %s is not found", seed, name)
			}
			hidden := false
			for _, up := range m.ancestors(name) {
				if up != name && (up != m.origin && m.sets[up][dns.TypeNS] != nil || m.sets[up][dns.TypeDNAME] != nil) {
					hidden = true
				}
			}
			cut := name != m.origin && m.sets[name][dns.TypeNS] != nil
			if n.IsCut() != cut || n.Occluded() != hidden || n.Empty() != (len(m.sets[name]) == 0) {
				t.Errorf("seed %d, %s: cut %v, occluded %v, empty %v", seed, name, n.IsCut(), n.Occluded(), n.Empty())
			}
			types := 0
			for set := range n.Sets() {
				types++
				if rrs := m.sets[name][set.Type()]; len(rrs) == 0 || n.Set(set.Type()).Len() != set.Len() || set.Len() > len(rrs) {
					t.Errorf("seed %d, %s: %d records of type %d", seed, name, set.Len(), set.Type())
				}
			}
			if types != len(m.sets[name]) || n.Set(65279) != nil || n.Set(0) != nil {
				t.Errorf("seed %d, %s: %d types, want %d", seed, name, types, len(m.sets[name]))
			}
			leads = leads || !hidden && m.sets[name][dns.TypeDNAME] != nil
		}
		if leads && !z.LeadsOut() {
			t.Errorf("seed %d: a DNAME leads nowhere else", seed)
		}
		if _, ok := z.Lookup(wire.MustName("no.such.name.example.org"), wire.Hash(wire.MustName("no.such.name.example.org"))); ok {
			t.Error("a name that is not there is found")
		}
	}
}
