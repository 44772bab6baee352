package clusterbed_test

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/test/clusterbed"
)

func TestBed(t *testing.T) {
	bed := clusterbed.Start(t, clusterbed.Options{})
	bed.Apply("fixture.yaml", "fixture-status.yaml")
	get := func() string {
		t.Helper()
		b, err := bed.Get("/api/v1/namespaces/shop/services/balanced")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if out := get(); !strings.Contains(out, "203.0.113.9") {
		t.Errorf("no load balancer's address in %s", out)
	}
	bed.StopAPI()
	if _, err := bed.Get("/readyz"); err == nil {
		t.Error("the API answers after StopAPI")
	}
	bed.StartAgain()
	if out := get(); !strings.Contains(out, "203.0.113.9") {
		t.Errorf("after an outage the data is not as before: %s", out)
	}
	bed.Delete("v1", "Service", "shop", "balanced")
	if _, err := bed.Get("/api/v1/namespaces/shop/services/balanced"); err == nil {
		t.Error("still there after Delete")
	}
}
