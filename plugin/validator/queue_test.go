package validator

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventloop/echotest"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
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
