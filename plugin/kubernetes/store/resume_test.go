package store

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// during sets a time for one test, before the test starts what reads it.
func during(t *testing.T, v *time.Duration, d time.Duration) {
	was := *v
	*v = d
	t.Cleanup(func() { *v = was })
}

// TestPassedAgain restores the server from a copy while it is away, and lets it pass our version before we
// are back: all is read again, as no version tells of that.
func TestPassedAgain(t *testing.T) {
	during(t, &apartTime, 300*time.Millisecond)
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.put(clusterIP("forgotten", "192.0.2.2"))
	log := &lines{}
	s := start(t, Config{Log: log}, f.client())
	awaitSync(t, s)
	f.with(func() {
		for _, r := range []string{"services", "namespaces"} {
			f.refuse["watch "+r], f.refuse["list "+r] = 503, 503
		}
		delete(f.objects["services"], "ns1/forgotten")
		f.version += 1000
		f.epoch++
	})
	eventually.Holds(t, "failures", func() bool { return f.seen("services watch") > 1 && f.seen("namespaces watch") > 1 })
	time.Sleep(apartTime)
	f.with(func() { f.refuse = map[string]int{} })
	eventually.Holds(t, "healing", func() bool { return !s.has("forgotten") })
	if !s.has("web") {
		t.Error("what is still there went")
	}
	eventually.Holds(t, "a gap of each resource", func() bool { return len(log.with("nothing was heard for")) == 2 && s.Stats().Gaps == 2 })
}

// TestCutOff: a server whose watches are cut off each time before it tells of something was heard of all the same.
func TestCutOff(t *testing.T) {
	f := newFakeAPI(t)
	f.eofNow = true
	r := newReflector(watched{resource: client.Services}, f.client(), newLink(new(lines)), New(Config{}, nil))
	r.version, r.heard, r.failed = "100", time.Now().Add(-time.Hour), true
	if err := r.follow(t.Context(), false); !errors.Is(err, io.EOF) || r.estranged(time.Now()) || r.version != "100" {
		t.Errorf("%v, version %q", err, r.version)
	}
}

// TestBusyForLists: a server that refuses lists, or takes long for them, is followed all the same.
func TestBusyForLists(t *testing.T) {
	for name, busy := range map[string]func(*fakeAPI){
		"refuses": func(f *fakeAPI) { f.refuse["list services"] = 429 },
		"fails":   func(f *fakeAPI) { f.refuse["list services"] = 503 },
		"slow":    func(f *fakeAPI) { f.stuck = true },
		"slower": func(f *fakeAPI) { // not even a header
			f.beforeList = func(string) { time.Sleep(time.Second) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, &compareTime, 200*time.Millisecond)
			f := newFakeAPI(t)
			f.put(clusterIP("web", "192.0.2.1"))
			s := start(t, Config{}, f.client())
			awaitSync(t, s)
			f.with(func() { busy(f); f.epoch++ })
			eventually.Holds(t, "a question for the version", func() bool { return f.seen("services list") > 0 })
			f.put(clusterIP("web", "192.0.2.2"))
			eventually.Holds(t, "the change", func() bool { return s.at("web") == "192.0.2.2" })
		})
	}
}

// TestRefusedAfterAway: a server that was away for long, and does not know our rights for a moment after that, is asked again
// soon, and not complained of.
func TestRefusedAfterAway(t *testing.T) {
	log := &lines{}
	r := newReflector(watched{resource: client.Services}, newFakeAPI(t).client(), newLink(log), New(Config{Log: log}, nil))
	r.synced = true
	r.backoff.full()
	denial := r.failure("watch", apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", nil))
	for range patience {
		if wait := r.settle(denial, true); !wait {
			t.Error("it does not wait")
		}
	}
	if wait := r.backoff.next(0); wait >= maxWait || len(log.all) != 0 {
		t.Errorf("wait %v, log %q", wait, log.all)
	}
	if r.settle(denial, true); len(log.with("refuses to watch services")) != 1 {
		t.Errorf("log %q", log.all)
	}
}

// TestGateway: what stands before the API answers in its place, with the status 200. Nothing that is known goes.
func TestGateway(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	log := &lines{}
	s := start(t, Config{Log: log}, f.client())
	awaitSync(t, s)
	f.with(func() { f.gateway = true; f.epoch++ })
	eventually.Holds(t, "a line", func() bool { return len(log.with("neither a protobuf nor a JSON list")) > 0 })
	eventually.Holds(t, "lists of both", func() bool { return f.seen("services list") > 1 && f.seen("namespaces list") > 1 })
	f.put(clusterIP("web", "192.0.2.2"))
	f.with(func() { f.gateway = false })
	eventually.Holds(t, "healing", func() bool { return s.at("web") == "192.0.2.2" || !s.has("web") })
	if !s.has("web") {
		t.Error("data went")
	}
}

// TestListsAlone: a server that lets us list, but not watch, is asked for lists again and again, though not often.
func TestListsAlone(t *testing.T) {
	f := newFakeAPI(t)
	f.put(clusterIP("web", "192.0.2.1"))
	f.refuse["watch services"] = 403
	s := New(Config{}, f.client())
	r := s.reflect[0]
	if r.resource != client.Services {
		t.Fatal(r.resource)
	}
	for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
		f.put(clusterIP("web", ip))
		for range patience + 2 {
			if !r.settle(r.pass(t.Context()), true) {
				t.Error("it does not wait")
			}
		}
		if s.at("web") != ip {
			t.Errorf("it is at %s, want %s", s.at("web"), ip)
		}
	}
	if n := f.seen("services list limit=500"); n < 2 || n > 3 {
		t.Errorf("%d lists", n)
	}
}

// TestListsOfNothing: a list without an object is a sign of the server, too. Where no watch follows it, it is not asked
// for each time.
func TestListsOfNothing(t *testing.T) {
	for _, code := range []int{403, 500} {
		f := newFakeAPI(t)
		f.refuse["watch services"] = code
		log := &lines{}
		s := New(Config{Log: log}, f.client())
		r := s.reflect[0]
		for range patience {
			r.settle(r.pass(t.Context()), true)
		}
		if n := f.seen("services list limit=500"); !r.synced || n != 1 || len(log.with("nothing was heard")) != 0 {
			t.Errorf("%d: %d lists, log %q", code, n, log.all)
		}
	}
}

// TestRefusedNowAndThen: between refusals there are watches in which nothing happens. It is not complained of.
func TestRefusedNowAndThen(t *testing.T) {
	log := &lines{}
	r := newReflector(watched{resource: client.Services}, newFakeAPI(t).client(), newLink(log), New(Config{Log: log}, nil))
	r.version, r.synced = "100", true
	denial := r.failure("watch", apierrors.NewUnauthorized("who are you"))
	for range 2 * patience {
		r.lived = 0
		r.settle(denial, true)
		r.lived = quick
		r.settle(io.EOF, true)
	}
	if r.version != "100" || len(log.all) != 0 {
		t.Errorf("version %q, log %q", r.version, log.all)
	}
}
