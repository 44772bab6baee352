package iterate

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/store"
)

// netZone has a zone whose only server is 10.0.3.1.
const netZone = "net. 3600 IN SOA a. b. 1 2 3 4 5\nexample.net. 3600 IN NS ns.example.net.\nns.example.net. 3600 IN A 10.0.3.1"

// An alias is kept, and the name it leads to has failed: that is not tried again, by way of this alias or of another,
// as long as the failure is kept (RFC 9520). The failure of one alias does not prolong that of the name.
func TestFailureBehindAlias(t *testing.T) {
	w := small(t)
	zone := exampleZone + "also.example.org. 60 IN CNAME www.example.net.\nthen.example.org. 60 IN CNAME www.example.net.\n"
	w.serve("10.0.2.1", zone)
	w.serve("10.0.2.2", zone)
	w.serve("10.0.1.2", netZone)
	w.servers[addr("10.0.3.1")] = nil
	asked := func() (n int) {
		for _, a := range w.asked {
			if a.at == addr("10.0.3.1") {
				n++
			}
		}
		w.asked = nil
		return n
	}
	for i, tc := range []struct {
		name string
		wait store.Time // before
		kept bool
	}{
		{"out.example.org.", 0, false}, {"out.example.org.", 0, true}, {"also.example.org.", 2 * store.Second, true},
		{"www.example.net.", 0, true}, {"then.example.org.", 4 * store.Second, false},
	} {
		w.now += tc.wait
		r := w.want(tc.name, "A", "SERVFAIL; EDE 22")
		if n := asked(); r.Repeated != tc.kept || n > 0 == tc.kept {
			t.Errorf("%d, %s: told that it is an older failure: %v, want %v; %d queries", i, tc.name, r.Repeated, tc.kept, n)
		}
	}
	w.now += 20 * store.Second
	w.serve("10.0.3.1", "example.net. 60 IN SOA a. b. 1 2 3 4 5\nwww.example.net. 60 IN A 192.0.2.9")
	w.want("out.example.org.", "A", "NOERROR; out.example.org. CNAME www.example.net.; www.example.net. A 192.0.2.9")
}

// While this machine cannot send, nothing is known of servers. Names and the addresses of servers are tried again when
// that is over, though it has lasted for long.
func TestUnsent(t *testing.T) {
	w := small(t)
	away, asked := true, 0
	w.wild = func(a Action) *Event {
		if !away {
			return nil
		}
		asked++
		return &Event{Kind: Failed, From: a.Server, Unsent: true, Code: codeNetwork, Text: "network is unreachable"}
	}
	for range 60 {
		w.want("www.example.org.", "A", "SERVFAIL; EDE 23")
		w.now += store.Second
	}
	if asked < 60 {
		t.Fatalf("%d queries in a minute", asked)
	}
	before := asked
	w.now -= store.Second
	if w.want("www.example.org.", "A", "SERVFAIL; EDE 23"); asked > before+1 {
		t.Errorf("%d queries in a second", asked-before)
	}
	w.now += store.Second
	away = false
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
}

// A server that is silent counts, though another one cannot be reached.
func TestUnsentToOne(t *testing.T) {
	w := small(t)
	w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
	w.servers[addr("10.0.2.2")] = nil
	w.wild = func(a Action) *Event {
		if a.Server.Addr.Addr() != addr("10.0.2.1") {
			return nil
		}
		return &Event{Kind: Failed, From: a.Server, Unsent: true, Code: codeNetwork, Text: "network is unreachable"}
	}
	w.resolve("a.ent.example.org.", "A")
	w.now += 3 * store.Second
	if r := w.resolve("a.ent.example.org.", "A"); !r.Repeated {
		t.Error("the failure is not kept")
	}
}

// What one server says counts, though the machine has no way to another one, whichever was asked last.
func TestUnsentAtLast(t *testing.T) {
	last := 0
	for range 32 {
		w := small(t)
		w.want("www.example.org.", "A", "NOERROR; www.example.org. A 192.0.2.1")
		without := false
		w.wild = func(a Action) *Event {
			if without = a.Server.Addr.Addr() == addr("10.0.2.1"); without {
				return &Event{Kind: Failed, From: a.Server, Unsent: true, Code: codeNetwork, Text: "network is unreachable"}
			}
			return &Event{Kind: Failed, From: a.Server, Code: codeNetwork, Text: "connection refused"}
		}
		w.resolve("a.ent.example.org.", "A")
		if without {
			last++
		}
		w.now += 3 * store.Second
		if r := w.resolve("a.ent.example.org.", "A"); !r.Repeated {
			t.Fatal("the failure is not kept")
		}
	}
	if last == 0 {
		t.Error("the one without a way was never the last")
	}
}
