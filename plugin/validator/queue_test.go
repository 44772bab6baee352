package validator

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventloop/echotest"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// While signatures are computed on each processor, those who serve sockets have a turn after every other. Else it would
// be every ten milliseconds, which are more than a hundred signatures.
func TestOthersServeBetweenChecks(t *testing.T) {
	v, s := lab(t, "")
	reply := func(name string, typ string) *rrset.Message {
		m := s.replies[name+typ].Copy()
		m.SetQuestion(name, map[string]uint16{"A": 1, "DNSKEY": 48}[typ])
		p, err := parse(m)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	keys, answer := reply("example.", "DNSKEY"), reply("www.example.", "A")
	step := func() {
		v.memory.checks.forget()
		task := validate.New(&v.live.Load().conf, questionOf(t, "www.example."), answer, v.now())
		for missing := v.step(task); len(missing) > 0; missing = v.step(task) {
			task.Give(missing[0], keys)
		}
		if verdict := task.Verdict(); verdict.Status != validate.Secure {
			t.Fatal(verdict)
		}
	}
	step()
	e := echotest.Start(t)
	for range cap(places) - 1 { // others compute, too
		places <- struct{}{}
		defer func() { <-places }()
	}
	n := e.During(func() {
		for range 200 {
			step()
		}
	})
	if n < 10 {
		t.Errorf("%d datagrams and back between 200 checks", n)
	}
}

// A client with many checks does not have the checks of others wait for all of them.
func TestClientsHaveTurns(t *testing.T) {
	all := newQueue(0) // nobody computes
	add := func(client string, names ...string) {
		for _, name := range names {
			all.add(&check{name: name, peer: wire.Peer{Client: netip.AddrPortFrom(netip.MustParseAddr(client), 53)}})
		}
	}
	add("192.0.2.1", "a1", "a2", "a3", "a4")
	add("2001:db8::1", "b1")
	add("2001:db8:0:ff::2", "b2") // of the same network
	add("192.0.2.3", "c1")
	take := func(n int) string {
		var names []string
		for range n {
			names = append(names, all.next().name)
		}
		return strings.Join(names, " ")
	}
	if got := take(4); got != "a1 b1 c1 a2" {
		t.Errorf("computed were %s", got)
	}
	add("192.0.2.3", "c2")
	if got := take(4); got != "b2 a3 c2 a4" {
		t.Errorf("computed were %s", got)
	}
	if len(all.waiting) != 0 || len(all.turns) != 0 {
		t.Errorf("%d clients and %d turns are left", len(all.waiting), len(all.turns))
	}
}
