package validator

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"
)

// While signatures are computed on each processor, those who serve sockets have a turn after each. Else it would be
// every ten milliseconds, which are more than a hundred signatures.
func TestOthersServeBetweenChecks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("eventloop.Yield asks for sockets on Linux only")
	}
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
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var served atomic.Int64
	go func() {
		for b := make([]byte, 64); ; served.Add(1) {
			if _, _, err := server.ReadFrom(b); err != nil {
				return
			}
		}
	}()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range cap(places) - 1 { // others compute, too
		places <- struct{}{}
		defer func() { <-places }()
	}
	late := 0
	for i := range 20 {
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		steps := 0
		for served.Load() == int64(i) && steps < 1000 {
			step()
			steps++
		}
		if steps > 10 {
			late++
		}
	}
	if late > 2 {
		t.Errorf("%d of 20 datagrams were read after more than ten checks", late)
	}
}
