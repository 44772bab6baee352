package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/upstream"

	"github.com/miekg/dns"
	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// TestOddValues has, beside a service, values and keys that no record can hold: they do not spoil the answer.
func TestOddValues(t *testing.T) {
	s := start(t)
	const good = `{"host":"192.0.2.77","port":80,"mail":true}`
	odd := map[string]string{
		"dots":  `{"host":"a..b","port":80,"mail":true}`,
		"long":  `{"host":"` + strings.Repeat("a.", 200) + `","port":80}`,
		"label": `{"host":"` + strings.Repeat("a", 64) + `.org","port":80}`,
		"open":  `{"host":"a\\","port":80}`,
		"text":  `{"text":"` + strings.Repeat("x", 70000) + `"}`,
		"list":  `[]`,
	}
	for name, value := range odd {
		s.put("odd."+name+".skydns.test", value)
		s.put("good."+name+".skydns.test", good)
		s.put("text."+name+".skydns.test", `{"text":"words"}`)
	}
	// A container's id: its address counts, but there is no name that SRV records could lead to.
	s.put(strings.Repeat("0123456789abcdef", 4)+".key.skydns.test", `{"host":"192.0.2.78","port":80,"mail":true}`)
	s.put("good.key.skydns.test", good)
	s.put(strings.Repeat("0123456789abcdef", 4)+".ns.dns.skydns.test", `{"host":"192.0.2.53"}`)
	s.put("good.ns.dns.skydns.test", `{"host":"192.0.2.54"}`)
	e := s.plugin(0)
	expect := func(name string, typ uint16, want string) {
		t.Helper()
		m, err := ask(e, name, typ)
		parts := strings.Split(strings.TrimPrefix(want, "NOERROR "), "; ")
		slices.Sort(parts)
		want = "NOERROR " + strings.Join(parts, "; ")
		if got := text(m); err != nil || got != want {
			t.Errorf("%s %s: %v\n%s\nwant\n%s", name, dns.TypeToString[typ], err, got, want)
		}
	}
	for name := range odd {
		owner := name + ".skydns.test."
		expect(owner, dns.TypeSRV, "NOERROR "+owner+" 300 IN SRV 10 100 80 good."+owner+"; good."+owner+" 300 IN A 192.0.2.77")
		expect(owner, dns.TypeMX, "NOERROR "+owner+" 300 IN MX 10 good."+owner+"; good."+owner+" 300 IN A 192.0.2.77")
		expect(owner, dns.TypeTXT, "NOERROR "+owner+` 300 IN TXT "words"`)
		expect("odd."+owner, dns.TypeCNAME, "NOERROR SOA")
	}
	expect("key.skydns.test.", dns.TypeA, "NOERROR key.skydns.test. 300 IN A 192.0.2.77; key.skydns.test. 300 IN A 192.0.2.78")
	expect("key.skydns.test.", dns.TypeSRV, "NOERROR good.key.skydns.test. 300 IN A 192.0.2.77; key.skydns.test. 300 IN SRV 10 50 80 good.key.skydns.test.")
	expect("key.skydns.test.", dns.TypeMX, "NOERROR good.key.skydns.test. 300 IN A 192.0.2.77; key.skydns.test. 300 IN MX 10 good.key.skydns.test.")
	expect("skydns.test.", dns.TypeNS, "NOERROR good.ns.dns.skydns.test. 300 IN A 192.0.2.54; skydns.test. 300 IN NS good.ns.dns.skydns.test.")
	ch, err := e.Transfer("skydns.test.", 0)
	if err != nil {
		t.Fatal(err)
	}
	for records := range ch {
		m := &dns.Msg{Answer: records}
		b, err := m.Pack()
		if err == nil {
			err = new(dns.Msg).Unpack(b)
		}
		if err != nil {
			t.Errorf("in a transfer: %v: %v", err, records)
		}
	}
}

// TestPaths has a path of no elements, and of more than one: names made of keys are below the zone all the same.
func TestPaths(t *testing.T) {
	s := start(t)
	for _, path := range []string{"", "a", "a/b", "a/b/test"} { // one below the other, too
		for name, value := range map[string]string{
			"x.web.skydns.test":      `{"host":"192.0.2.1","port":80,"mail":true}`,
			"ns1.ns.dns.skydns.test": `{"host":"192.0.2.53"}`,
		} {
			if _, err := s.Client.Put(context.Background(), msg.Path(name, path), value); err != nil {
				t.Fatal(err)
			}
		}
		e := &Etcd{Zones: []string{"skydns.test."}, PathPrefix: path, Upstream: upstream.New(), Client: s.Client}
		for typ, want := range map[uint16]string{
			dns.TypeSRV: "NOERROR web.skydns.test. 300 IN SRV 10 100 80 x.web.skydns.test.; x.web.skydns.test. 300 IN A 192.0.2.1",
			dns.TypeMX:  "NOERROR web.skydns.test. 300 IN MX 10 x.web.skydns.test.; x.web.skydns.test. 300 IN A 192.0.2.1",
		} {
			if m, err := ask(e, "web.skydns.test.", typ); err != nil || text(m) != want {
				t.Errorf("path %q: %v\n%s\nwant\n%s", path, err, text(m), want)
			}
		}
		want := "NOERROR ns1.ns.dns.skydns.test. 300 IN A 192.0.2.53; skydns.test. 300 IN NS ns1.ns.dns.skydns.test."
		if m, err := ask(e, "skydns.test.", dns.TypeNS); err != nil || text(m) != want {
			t.Errorf("path %q: %v\n%s\nwant\n%s", path, err, text(m), want)
		}
		var owners []string
		ch, err := e.Transfer("skydns.test.", 0)
		if err != nil {
			t.Fatal(err)
		}
		for records := range ch {
			for _, rr := range records {
				owners = append(owners, rr.Header().Name)
			}
		}
		if !slices.Contains(owners, "x.web.skydns.test.") {
			t.Errorf("path %q: the transfer has %q", path, owners)
		}
	}
}

// Secondaries refuse a zone with other records beside an alias: one of the zone's own name is left out, and so is what a
// second key has at the name of an alias.
func TestTransferOfAliases(t *testing.T) {
	s := start(t)
	e := &Etcd{Zones: []string{"alias.test."}, PathPrefix: "alias", Upstream: upstream.New(), Client: s.Client}
	for key, value := range map[string]string{
		"/": `{"host":"lb.example.net"}`, "/a": `{"host":"lb.example.net"}`, "/a/": `{"host":"192.0.2.1"}`, "/B": `{"host":"192.0.2.2"}`, "/b": `{"host":"lb.example.net"}`,
	} {
		if _, err := s.Client.Put(t.Context(), "/alias/test/alias"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	ch, err := e.Transfer("alias.test.", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for records := range ch {
		for _, rr := range records {
			if h := rr.Header(); h.Rrtype != dns.TypeSOA {
				got = append(got, strings.ToLower(h.Name)+" "+dns.TypeToString[h.Rrtype])
			}
		}
	}
	slices.Sort(got)
	if want := []string{"a.alias.test. CNAME", "b.alias.test. A"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A secondary of a reverse zone answers for names of addresses as its primary does: with PTR records, and no aliases.
func TestTransferOfReverseZone(t *testing.T) {
	s := start(t)
	e := &Etcd{Zones: []string{"2.0.192.in-addr.arpa."}, PathPrefix: "reverse", Upstream: upstream.New(), Client: s.Client}
	for key, value := range map[string]string{"1": `{"host":"a.example.org"}`, "2": `{"host":"b.example.org","text":"words"}`, "3": `{"text":"alone"}`} {
		if _, err := s.Client.Put(t.Context(), "/reverse/arpa/in-addr/192/0/2/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	ch, err := e.Transfer("2.0.192.in-addr.arpa.", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for records := range ch {
		for _, rr := range records {
			if rr.Header().Rrtype != dns.TypeSOA {
				got = append(got, strings.Join(strings.Fields(rr.String()), " "))
			}
		}
	}
	want := []string{
		"1.2.0.192.in-addr.arpa. 300 IN PTR a.example.org.", "2.2.0.192.in-addr.arpa. 300 IN PTR b.example.org.",
		`2.2.0.192.in-addr.arpa. 300 IN TXT "words"`, `3.2.0.192.in-addr.arpa. 300 IN TXT "alone"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTransferWhileChanging sees that a zone which is transferred has all that was written up to its serial: a secondary would
// not ask again for what it lacks.
func TestTransferWhileChanging(t *testing.T) {
	s := start(t)
	lease, err := s.Client.Grant(context.Background(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Etcd{s.plugin(0), s.plugin(defaultViewSize)} {
		var revisions sync.Map // by number written
		ctx, cancel := context.WithCancel(context.Background())
		var writer sync.WaitGroup
		writer.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				if r, err := s.Client.Put(ctx, "/skydns/test/skydns/n", fmt.Sprintf(`{"text":"%d"}`, n), etcdcv3.WithLease(lease.ID)); err == nil {
					revisions.Store(n, r.Header.Revision)
				}
				_, _ = ask(e, "n.skydns.test.", dns.TypeTXT) // which learns of the revision
			}
		})
		for range 40 {
			e.leases.mu.Lock()
			e.leases.all = nil // each transfer asks etcd
			e.leases.mu.Unlock()
			ch, err := e.Transfer("skydns.test.", 0)
			if err != nil {
				t.Fatal(err)
			}
			n, serial := 0, int64(0)
			for records := range ch {
				switch rr := records[0].(type) {
				case *dns.SOA:
					serial = int64(rr.Serial)
				case *dns.TXT:
					n, _ = strconv.Atoi(rr.Txt[0])
				}
			}
			if next, ok := revisions.Load(n + 1); ok && next.(int64) <= serial {
				t.Errorf("serial %d, but number %d, of revision %d, is missing", serial, n+1, next)
				break
			}
		}
		cancel()
		writer.Wait()
	}
}

// change is a change of a key: its end if value is empty.
func change(key, value string) *etcdcv3.Event {
	e := &etcdcv3.Event{Type: etcdcv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value)}}
	if value == "" {
		e.Type = etcdcv3.EventTypeDelete
	}
	return e
}

// TestChangesOfManySizes applies changes, few or many at once, and compares the copy with a map.
func TestChangesOfManySizes(t *testing.T) {
	v := newView(nil, "/skydns", defaultViewSize, func(int64) {})
	v.kvs = map[string]*mvccpb.KeyValue{}
	model := map[string]string{}
	for _, count := range []int{1, maxSingle, 3 * maxSingle, maxSingle + 1, 2, 1000, 500, 1} {
		var events []*etcdcv3.Event
		for range count {
			key, value := fmt.Sprintf("/skydns/%d", rand.N(400)), strings.Repeat("x", rand.N(3))
			events = append(events, change(key, value))
			if model[key] = value; value == "" {
				delete(model, key)
			}
		}
		v.apply(events)
		size := int64(0)
		for key, value := range model {
			size += int64(2*len(key) + len(value) + 200)
			if kv := v.kvs[key]; kv == nil || string(kv.Value) != value {
				t.Fatalf("%s: %v, want %q", key, kv, value)
			}
		}
		if len(v.keys) != len(model) || len(v.kvs) != len(model) || !slices.IsSorted(v.keys) || v.size != size {
			t.Fatalf("after %d changes: %d keys, %d values, %d octets; want %d, %d", count, len(v.keys), len(v.kvs), v.size, len(model), size)
		}
	}
}

// TestDeletionOfAll takes a large tree away at once, as "etcdctl del --prefix" does. Queries wait meanwhile: it must not take
// seconds.
func TestDeletionOfAll(t *testing.T) {
	v := newView(nil, "/skydns", 1<<40, func(int64) {})
	v.kvs = map[string]*mvccpb.KeyValue{}
	var puts, deletions []*etcdcv3.Event
	for n := range 100000 {
		key := fmt.Sprintf("/skydns/%d/a", n)
		puts, deletions = append(puts, change(key, "x")), append(deletions, change(key, ""))
	}
	for _, events := range [][]*etcdcv3.Event{puts, deletions} {
		began := time.Now()
		v.apply(events)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("100,000 changes at once took %v", took)
		}
	}
	if len(v.keys) != 0 || v.size != 0 {
		t.Errorf("%d keys are left, %d octets", len(v.keys), v.size)
	}
}
