package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestAway takes the API away and brings it back: the data stays, and each is logged once.
func TestAway(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	log := &lines{}
	s := start(t, Config{Endpoints: true, Pods: true, Log: log}, f.client())
	awaitSync(t, s)
	f.with(func() {
		for _, r := range []string{"services", "endpointslices", "namespaces", "pods"} {
			f.refuse["watch "+r], f.refuse["list "+r] = 503, 503
		}
		f.epoch++
	})
	eventually.Holds(t, "loss", func() bool { return len(log.with("lost the Kubernetes API")) > 0 })
	time.Sleep(700 * time.Millisecond) // some more failures
	if !s.has("web") || !s.HasSynced() {
		t.Error("data went with the API")
	}
	f.put(clusterIP("web", "192.0.2.9"))
	f.with(func() { f.refuse = map[string]int{} })
	eventually.Holds(t, "return", func() bool { return s.at("web") == "192.0.2.9" })
	eventually.Holds(t, "line", func() bool { return len(log.with("is back after")) > 0 })
	if len(log.with("lost the Kubernetes API")) != 1 || len(log.with("is back after")) != 1 || len(log.all) != 2 {
		t.Errorf("log: %q", log.all)
	}
}

// TestBusy: an API that is busy, and says that it will be so for an hour, is not waited for without a word.
func TestBusy(t *testing.T) {
	f := newFakeAPI(t)
	f.retryAfter = "3600"
	f.refuse["watch services"], f.refuse["list services"] = 429, 429
	log := &lines{}
	start(t, Config{Log: log}, f.client())
	eventually.Holds(t, "a line", func() bool { return len(log.with("too many requests")) > 0 }) // which one depends on whether another resource was read before
}

// TestAskedWait: who says when to come again is left alone so long, but no longer than one that says nothing.
func TestAskedWait(t *testing.T) {
	for seconds, want := range map[int]time.Duration{0: 0, 1: time.Second, 7: 7 * time.Second, 3600: maxWait} {
		err := &requestError{"list", "services", apierrors.NewTooManyRequests("later", seconds)}
		if got := asked(err); got != want {
			t.Errorf("%d: %v, want %v", seconds, got, want)
		}
	}
	for _, err := range []error{nil, errSilent} {
		if got := asked(err); got != 0 {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestAwayBesideRefusal takes an API away, and again, that always refuses one of the resources: each time the loss is logged, and the
// return.
func TestAwayBesideRefusal(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	denied := func() map[string]int { return map[string]int{"watch pods": 403, "list pods": 403} }
	f.refuse = denied()
	log := &lines{}
	s := start(t, Config{Pods: true, Log: log}, f.client())
	eventually.Holds(t, "refusal", func() bool { return s.has("web") && len(log.with("refuses to list pods")) > 0 })
	for n := 1; n <= 2; n++ {
		f.with(func() {
			for _, r := range []string{"services", "namespaces", "pods"} {
				f.refuse["watch "+r], f.refuse["list "+r] = 503, 503
			}
			f.epoch++
		})
		eventually.Holds(t, "loss", func() bool { return len(log.with("lost the Kubernetes API")) == n })
		pods := f.seen("pods watch")
		eventually.Holds(t, "a failure of each", func() bool { return f.seen("pods watch") > pods })
		f.with(func() { f.refuse = denied() })
		eventually.Holds(t, "return", func() bool { return len(log.with("is back after")) == n })
	}
}

// TestNoAnswerAtFirst logs why nothing comes.
func TestNoAnswerAtFirst(t *testing.T) {
	f := newFakeAPI(t)
	for _, r := range []string{"services", "namespaces"} {
		f.refuse["watch "+r], f.refuse["list "+r] = 503, 503
	}
	log := &lines{}
	s := start(t, Config{Log: log}, f.client())
	eventually.Holds(t, "line", func() bool { return len(log.with("no answer from the Kubernetes API")) == 1 })
	if s.HasSynced() {
		t.Error("synced without services")
	}
	f.with(func() { f.refuse = map[string]int{} })
	awaitSync(t, s)
}

// TestRefused names the verb and the resource that a role lacks, once.
func TestRefused(t *testing.T) {
	f := newFakeAPI(t)
	f.refuse["watch endpointslices"], f.refuse["list endpointslices"] = 403, 403
	log := &lines{}
	s := start(t, Config{Endpoints: true, Log: log}, f.client())
	eventually.Holds(t, "both lines", func() bool {
		return len(log.with("refuses to watch endpointslices.discovery.k8s.io")) > 0 && len(log.with("refuses to list endpointslices.discovery.k8s.io")) > 0
	})
	eventually.Holds(t, "more tries", func() bool { return f.seen("endpointslices list") > 2 })
	if len(log.all) != 2 {
		t.Errorf("log: %q", log.all)
	}
	if s.HasSynced() {
		t.Error("synced without endpoints")
	}
	f.with(func() { f.refuse = map[string]int{} })
	awaitSync(t, s)
}

// TestRefusedLater meets a server that does not know our rights for a moment after its start, and one that took them away.
func TestRefusedLater(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	log := &lines{}
	s := start(t, Config{Log: log}, f.client())
	awaitSync(t, s)
	refuse := func(code int, tries int) {
		n := f.seen("services watch")
		f.with(func() { f.refuse["watch services"] = code; f.epoch++ })
		eventually.Holds(t, "tries", func() bool { return f.seen("services watch") >= n+tries })
	}
	refuse(403, 2)
	f.with(func() { f.refuse = map[string]int{} })
	f.put(clusterIP("web", "192.0.2.2"))
	eventually.Holds(t, "going on", func() bool { return s.at("web") == "192.0.2.2" })
	if len(log.all) != 0 {
		t.Errorf("log: %q", log.all)
	}
	refuse(403, patience+1)
	eventually.Holds(t, "line", func() bool { return len(log.with("refuses to watch services")) == 1 })
	if s.at("web") != "192.0.2.2" {
		t.Error("data went with the rights")
	}
}

// TestStillAway tells now and then of an API that stays away, and at once if it comes back as somebody who is not trusted.
func TestStillAway(t *testing.T) {
	log := &lines{}
	l := newLink(log)
	begun := time.Now()
	l.ok("services", "api", begun)
	reset := errors.New("connection reset")
	untrusted := fmt.Errorf("around: %w", &tls.CertificateVerificationError{Err: errors.New("unknown authority")})
	for _, at := range []struct {
		after time.Duration
		err   error
		want  string // how the line begins that is logged
	}{
		{0, reset, "WARNING lost the Kubernetes API at api"},
		{time.Second, reset, ""},
		{time.Minute, untrusted, "WARNING still no answer from the Kubernetes API at api: around: tls: failed to verify certificate"},
		{2 * time.Minute, untrusted, ""},
		{remind + time.Second, reset, "WARNING still no answer from the Kubernetes API at api: connection reset"},
		{remind + 2*time.Second, reset, ""},
	} {
		before := len(log.all)
		l.failed("services", "api", at.err, begun.Add(at.after))
		got := len(log.all) - before
		if at.want == "" && got != 0 || at.want != "" && (got != 1 || len(log.with(at.want)) == 0) {
			t.Errorf("after %v: %q, want %q", at.after, log.all[before:], at.want)
		}
	}
}
