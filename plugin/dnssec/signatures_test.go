package dnssec

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/cache"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func rrs(t testing.TB, texts ...string) (set []dns.RR) {
	t.Helper()
	for _, text := range texts {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, rr)
	}
	return set
}

// Signatures are made once for a set, however it is written and ordered, and once for others.
func TestSignaturesAreKept(t *testing.T) {
	s := serving(t, nil).sigs
	now := time.Now()
	counts := s.countsOf("kept")
	missesBefore, hitsBefore := testutil.ToFloat64(counts.misses), testutil.ToFloat64(counts.hits)
	misses := func() int { return int(testutil.ToFloat64(counts.misses) - missesBefore) }
	for _, tc := range []struct {
		set    []dns.RR
		misses int
	}{
		{rrs(t, "www.example.org. 60 IN A 192.0.2.1", "www.example.org. 60 IN A 192.0.2.2"), 1},
		{rrs(t, "www.example.org. 60 IN A 192.0.2.2", "www.example.org. 60 IN A 192.0.2.1"), 1},
		{rrs(t, "wWw.example.org. 60 IN A 192.0.2.1", "wWw.example.org. 60 IN A 192.0.2.2"), 1},
		{rrs(t, "www.example.org. 61 IN A 192.0.2.1", "www.example.org. 61 IN A 192.0.2.2"), 2},
		{rrs(t, "www.example.org. 60 IN A 192.0.2.1"), 3},
		{rrs(t, "w.example.org. 60 IN A 192.0.2.1"), 4},
	} {
		sigs := s.of(tc.set, "example.org.", now, "kept")
		if len(sigs) != 1 || sigs[0].Header().Name != tc.set[0].Header().Name || misses() != tc.misses {
			t.Errorf("%v: %v after %d misses", tc.set, sigs, misses())
			continue
		}
		if err := sigs[0].(*dns.RRSIG).Verify(s.keys.all[0].K, tc.set); err != nil {
			t.Errorf("%v: %v", tc.set, err)
		}
		sigs[0].(*dns.RRSIG).Signature = "spoilt by the caller"
		for _, rr := range tc.set { // records are only read: a plugin may answer many queries with one
			if n := rr.Header().Rdlength; n != 0 {
				t.Errorf("%v: the length of the data was set to %d", rr, n)
			}
		}
	}
	if hits := testutil.ToFloat64(counts.hits) - hitsBefore; hits != 2 {
		t.Errorf("%v hits", hits)
	}
}

// An entry that stands where another one belongs is not given out.
func TestCollision(t *testing.T) {
	s := serving(t, nil).sigs
	now := time.Now()
	set, other := rrs(t, "www.example.org. 60 IN A 192.0.2.1"), rrs(t, "www.example.org. 60 IN A 192.0.2.66")
	var m, o material
	m.packed, o.packed = make([]byte, 512), make([]byte, 512)
	m.fill(set, "example.org.")
	o.fill(other, "example.org.")
	entry, err := o.sign(s.keys.all, other, "example.org.", now)
	if err != nil {
		t.Fatal(err)
	}
	s.cache.Add(s.id(&m), entry)
	if err := s.of(set, "example.org.", now, "")[0].(*dns.RRSIG).Verify(s.keys.all[0].K, set); err != nil {
		t.Error(err)
	}
}

// Signatures are replaced in time, by the keeper before anybody has to wait for it.
func TestAgeing(t *testing.T) {
	s := serving(t, nil).sigs
	s.keeper = &keeper{sigs: s, due: make(chan order, 2)}
	start := time.Now()
	set := rrs(t, "www.example.org. 60 IN A 192.0.2.1")
	at := func(after time.Duration) *dns.RRSIG {
		return s.of(set, "example.org.", start.Add(after), "")[0].(*dns.RRSIG)
	}
	const day = 24 * time.Hour
	first := at(0)
	if from, to := time.Unix(int64(first.Inception), 0), time.Unix(int64(first.Expiration), 0); start.Sub(from).Round(time.Minute) != 3*time.Hour || to.Sub(start).Round(time.Minute) != 8*day {
		t.Errorf("counts from %v to %v", from, to)
	}
	if again := at(5*day - time.Hour); again.Expiration != first.Expiration || len(s.keeper.due) != 0 {
		t.Error("signed anew too early")
	}
	if again := at(5*day + time.Hour); again.Expiration != first.Expiration || len(s.keeper.due) != 1 {
		t.Error("not given out, or not ordered anew")
	}
	s.again(<-s.keeper.due, start.Add(5*day+time.Hour))
	renewed := at(5*day + 2*time.Hour)
	if renewed.Expiration != first.Expiration+uint32((5*day+time.Hour)/time.Second) || len(s.keeper.due) != 0 {
		t.Error("not signed anew")
	}
	if late := at(5*day + time.Hour + 6*day + time.Minute); late.Expiration == renewed.Expiration {
		t.Error("given out too late")
	}
	s.sweep(start.Add(30 * day))
	if s.cache.Len() != 0 {
		t.Errorf("%d entries left", s.cache.Len())
	}
	if n := testutil.ToFloat64(s.countsOf("").entries); n != 0 {
		t.Errorf("%g entries are told of", n)
	}
}

// TestEntriesBegin: after a reload, which begins with an empty cache, no entries are told of.
func TestEntriesBegin(t *testing.T) {
	cacheSize.WithLabelValues("dns://example.org.:53", "signature").Set(7)
	serving(t, nil).sigs.begin([]string{"dns://example.org.:53"})
	if n := testutil.ToFloat64(cacheSize.WithLabelValues("dns://example.org.:53", "signature")); n != 0 {
		t.Errorf("%g entries", n)
	}
}

func TestKeeperEnds(t *testing.T) {
	s := serving(t, nil).sigs
	k := keep(s)
	set := rrs(t, "www.example.org. 60 IN A 192.0.2.1")
	k.renew(set, "example.org.", 60)
	for range 1000 {
		if s.cache.Len() > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	k.close()
	if s.cache.Len() != 1 {
		t.Error("nothing was signed")
	}
}

// A large set, for which the buffer has to grow.
func TestLargeSet(t *testing.T) {
	s := serving(t, nil).sigs
	var texts []string
	for range 60 {
		texts = append(texts, `big.example.org. 60 IN TXT "`+strings.Repeat(string(rune('a'+rand.IntN(26))), 200)+`" "`+strings.Repeat("x", 1+len(texts))+`"`)
	}
	set := rrs(t, texts...)
	for range 2 {
		if err := s.of(set, "example.org.", time.Now(), "")[0].(*dns.RRSIG).Verify(s.keys.all[0].K, set); err != nil {
			t.Fatal(err)
		}
		set[0], set[1] = set[1], set[0]
	}
	if s.cache.Len() != 1 {
		t.Errorf("%d entries", s.cache.Len())
	}
}

// Many goroutines ask for the same and other names; all they get verifies, and hardly anything is signed twice.
func TestTogether(t *testing.T) {
	d := serving(t, source(t))
	d.sigs.keeper = keep(d.sigs)
	defer d.sigs.keeper.close()
	names := []string{"mail.example.org.", "MAIL.example.org.", "www.example.org.", "nothing.example.org.", "example.org."}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				m := new(dns.Msg).SetQuestion(names[(i+j)%len(names)], dns.TypeA)
				m.SetEdns0(4096, true)
				rec := dnstest.NewRecorder(&test.ResponseWriter{})
				d.ServeDNS(context.Background(), rec, m)
				if err := validate(rec.Msg, d.keys.all, time.Now()); err != nil {
					t.Error(err)
				}
				for _, rr := range rec.Msg.Answer {
					if sig, ok := rr.(*dns.RRSIG); ok {
						sig.Hdr.Ttl-- // as caches do
					}
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkKept(b *testing.B) {
	s := serving(b, nil).sigs
	set := rrs(b, "www.example.org. 60 IN A 192.0.2.1", "www.example.org. 60 IN A 192.0.2.2")
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		s.of(set, "example.org.", now, "bench")
	}
}

func BenchmarkSigned(b *testing.B) {
	for name, key := range map[string]*DNSKEY{"P-256": pair(b, "example.org.", dns.ECDSAP256SHA256, 256, 257), "Ed25519": pair(b, "example.org.", dns.ED25519, 256, 257)} {
		b.Run(name, func(b *testing.B) {
			s := newSignatures(cache.New[[]dns.RR](1000), &keyring{[]*DNSKEY{key}, []*DNSKEY{key}, []*DNSKEY{key}})
			set := rrs(b, "www.example.org. 60 IN A 192.0.2.1")
			a, now := set[0].(*dns.A), time.Now()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				binary.BigEndian.PutUint32(a.A[len(a.A)-4:], uint32(i))
				s.of(set, "example.org.", now, "bench")
			}
		})
	}
}

func BenchmarkReply(b *testing.B) {
	d := serving(b, source(b))
	m := new(dns.Msg).SetQuestion("nothing.example.org.", dns.TypeA)
	m.SetEdns0(4096, true)
	w := &test.ResponseWriter{}
	b.ReportAllocs()
	for b.Loop() {
		d.ServeDNS(b.Context(), w, m)
	}
}
