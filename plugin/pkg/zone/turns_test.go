package zone

import (
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventloop/echotest"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// While a large zone is built, those who serve sockets have their turns: once in so many records and nodes.
func TestOthersServeWhileBuilding(t *testing.T) {
	e := echotest.Start(t)
	origin := wire.MustName("example.org")
	b := NewBuilder(origin, t.Logf)
	if err := b.Add(origin, wire.TypeSOA, 300, append(append(append([]byte{}, origin...), origin...), make([]byte, 20)...)); err != nil {
		t.Fatal(err)
	}
	n := e.During(func() {
		for i := range 200000 {
			if err := b.Add(wire.MustName(fmt.Sprintf("h%d.example.org", i)), wire.TypeA, 300, []byte{192, 0, 2, byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n < 60 {
		t.Errorf("%d datagrams and back while records were added", n)
	}
	n = e.During(func() {
		if _, err := b.Build(); err != nil {
			t.Fatal(err)
		}
	})
	if n < 60 {
		t.Errorf("%d datagrams and back while the zone was built", n)
	}
}
