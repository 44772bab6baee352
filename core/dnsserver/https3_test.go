package dnsserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/test/clients"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestHTTP3Responses(t *testing.T) {
	cfg := blockFor(t, "https3", new(laneHandler))
	cfg.ReadTimeout = time.Second
	s := serving(t, cfg)
	c := clients.DialHTTP3(t, s.addr, "")
	for _, tc := range []struct {
		method, target, body string
		status               int
	}{
		{"POST", "/dns-query", string(packed(t, query("www."))), 200},
		{"POST", "/dns-query", "x", 400},
		{"POST", "/dns-query", strings.Repeat("x", 70000), 400},
		{"POST", "/dns-query", string(packed(t, query("drop."))), 500},
		{"GET", "/", "", 404},
		{"PUT", "/dns-query", "x", 400},
		{"GET", "/dns-query?" + strings.Repeat("x", 20000), "", 431},
	} {
		counted := vars.HTTPS3ResponsesCount.WithLabelValues(s.base().Addr, fmt.Sprint(tc.status))
		before := testutil.ToFloat64(counted)
		if got, _ := get(t, c, tc.method, tc.target, tc.body); got.status != tc.status {
			t.Errorf("%s %.20s: got %+v", tc.method, tc.target, got)
		}
		if n := testutil.ToFloat64(counted) - before; n != 1 {
			t.Errorf("%s %.20s: counted %v", tc.method, tc.target, n)
		}
	}
	// A body that does not come costs its stream only.
	late := limitedTo(s, "read_time")
	body, _ := io.Pipe()
	req, err := http.NewRequest("POST", c.URL+"/dns-query", body)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := c.Client.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("got %d", resp.StatusCode)
		}
	}
	if limitedTo(s, "read_time") != late+1 {
		t.Errorf("counted %d", limitedTo(s, "read_time")-late)
	}
}
