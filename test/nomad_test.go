package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// A server asks the first Nomad agent that answers, with the token and the filter of the Corefile, and once for a
// service that it has.
func TestNomad(t *testing.T) {
	var redis, unsigned atomic.Int64
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Nomad-Token") != "secret" {
			unsigned.Add(1)
		}
		switch {
		case r.URL.Path == "/v1/agent/self":
			fmt.Fprint(w, `{"config":{},"member":{},"stats":{}}`)
			return
		case r.FormValue("index") != "" && r.FormValue("index") != "0":
			<-r.Context().Done() // nothing changes
			return
		}
		if r.URL.Path == "/v1/service/redis" && r.FormValue("namespace") == "default" {
			redis.Add(1)
		}
		w.Header().Set("X-Nomad-Index", "7")
		all := []map[string]any{}
		if r.URL.Path == "/v1/service/redis" && r.FormValue("namespace") == "default" && r.FormValue("filter") == "Port != 1" {
			all = append(all, map[string]any{"Address": "192.0.2.1", "Port": 6379})
		}
		json.NewEncoder(w).Encode(all)
	}))
	t.Cleanup(agent.Close)
	t.Cleanup(agent.CloseClientConnections)
	bothLanes(t, func(t *testing.T) {
		ready := loopback.Addr()
		_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\nready "+ready+"\nnomad service.test {\naddress http://127.0.0.1:1 "+agent.URL+"\nfilter \"Port != 1\"\ntoken secret\nttl 7\n}\n}")
		before := redis.Load()
		for name, want := range map[string]string{
			"redis.default.service.test. A":   "NOERROR aa | redis.default.service.test. 7 A 192.0.2.1 | ",
			"redis.default.service.test. SRV": "NOERROR aa | redis.default.service.test. 7 SRV 10 10 6379 redis.default.service.test. | ",
			"redis.other.service.test. A":     "NXDOMAIN aa |  | service.test. 7 SOA",
			"nope.default.service.test. A":    "NXDOMAIN aa |  | service.test. 7 SOA",
		} {
			name, typ, _ := strings.Cut(name, " ")
			for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
				if got := brief(ask(t, network, addr, question(name, dns.StringToType[typ]))); got != want {
					t.Errorf("%s %s over %s: %s\nwant %s", name, typ, network, got, want)
				}
			}
		}
		if n := redis.Load() - before; n != 1 {
			t.Errorf("the agent was asked %d times for a service that it has", n)
		}
		if n := unsigned.Load(); n > 0 {
			t.Errorf("%d requests without the token", n)
		}
		resp, err := http.Get("http://" + ready + "/ready")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("not ready: %s", resp.Status)
		}
	})
}
