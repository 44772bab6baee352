package test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// The endpoints of a configuration that fails to start end with it, also where the one before has none.
func TestEndpointsOfFailedReload(t *testing.T) {
	const good = ".:0 {\nbind 127.0.0.1\nwhoami\n}\n"
	i, err := CoreDNSServer(good)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{i}
	defer r.end()
	health, ready, metrics, pprof := loopback.Addr(), loopback.Addr(), loopback.Addr(), loopback.Addr()
	more := fmt.Sprintf("a.example:0 {\nbind 127.0.0.1\nhealth %s\nready %s\nprometheus %s\npprof %s\n}\n", health, ready, metrics, pprof)
	if _, err := i.Restart(NewInput(good + more + "b.example:0 {\nbind 192.0.2.1\nwhoami\n}\n")); err == nil {
		t.Fatal("an address that is not of this machine was taken")
	}
	for _, addr := range []string{health, ready, metrics, pprof} {
		if reply, err := http.Get("http://" + addr); err == nil {
			reply.Body.Close()
			t.Errorf("%s is served", addr)
		}
	}
}
