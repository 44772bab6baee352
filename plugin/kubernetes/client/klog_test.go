package client

import (
	"bytes"
	"errors"
	"log"
	"testing"

	clog "github.com/coredns/coredns/plugin/pkg/log"

	"k8s.io/klog/v2"
)

// TestKlog sees the libraries' lines among ours.
func TestKlog(t *testing.T) {
	var out bytes.Buffer
	flags, before := log.Flags(), log.Writer()
	log.SetOutput(&out)
	log.SetFlags(0)
	defer func() { log.SetOutput(before); log.SetFlags(flags) }()
	routeLog()
	for _, tc := range []struct {
		do   func()
		want string
	}{
		{func() { klog.Infof("hello %d", 1) }, "[INFO] plugin/kubernetes: hello 1\n"},
		{func() { klog.ErrorS(errors.New("cause"), "failed", "key", "v") }, "[ERROR] plugin/kubernetes: failed key=v: cause\n"},
		{func() { klog.Error("bad") }, "[ERROR] plugin/kubernetes: bad\n"},
		{func() { klog.Background().WithValues("a", 1).WithName("n").Info("with", "b", 2) }, "[INFO] plugin/kubernetes: with a=1 b=2\n"},
		{func() { klog.V(4).Info("details") }, ""},
	} {
		out.Reset()
		tc.do()
		klog.Flush()
		if out.String() != tc.want {
			t.Errorf("%q, want %q", out.String(), tc.want)
		}
	}
	clog.D.Set()
	defer clog.D.Clear()
	out.Reset()
	if klog.Background().V(4).Info("details"); out.String() != "[DEBUG] plugin/kubernetes: details\n" {
		t.Errorf("when debugging: %q", out.String())
	}
}
