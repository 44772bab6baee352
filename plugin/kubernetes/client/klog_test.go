package client

import (
	"errors"
	"testing"

	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"

	"k8s.io/klog/v2"
)

// TestKlog sees the libraries' lines among ours.
func TestKlog(t *testing.T) {
	out := logtest.Capture(t)
	routeLog()
	for _, tc := range []struct {
		do   func()
		want string
	}{
		{func() { klog.Infof("hello %d", 1) }, "[INFO] plugin/kubernetes: hello 1\n"},
		{func() { klog.ErrorS(errors.New("cause"), "failed", "key", "v") }, "[ERROR] plugin/kubernetes: failed key=v: cause\n"},
		{func() { klog.Error("bad") }, "[ERROR] plugin/kubernetes: bad\n"},
		{func() { klog.Background().WithValues("a", 1).WithName("n").Info("with", "b", 2) }, "[INFO] plugin/kubernetes: with a=1 b=2\n"},
		{func() { klog.Background().Info("a name without a value", "a", 1, "b") }, "[INFO] plugin/kubernetes: a name without a value a=1\n"},
		{func() { klog.V(4).Info("details") }, ""},
	} {
		out.Take()
		tc.do()
		klog.Flush()
		if out.String() != tc.want {
			t.Errorf("%q, want %q", out.String(), tc.want)
		}
	}
	clog.D.Set()
	defer clog.D.Clear()
	out.Take()
	if klog.Background().V(4).Info("details"); out.String() != "[DEBUG] plugin/kubernetes: details\n" {
		t.Errorf("when debugging: %q", out.String())
	}
}
