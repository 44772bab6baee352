package etcd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
	etcdcv3 "go.etcd.io/etcd/client/v3"
)

// startLocked starts an etcd that asks for credentials, and has one service.
func startLocked(t *testing.T) *server {
	s := start(t)
	s.put("a.web.skydns.test", `{"host":"192.0.2.1"}`)
	ctx := t.Context()
	for _, err := range []error{
		second(s.Client.UserAdd(ctx, "root", "secret")),
		second(s.Client.RoleAdd(ctx, "root")),
		second(s.Client.UserGrantRole(ctx, "root", "root")),
		second(s.Client.AuthEnable(ctx)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// locked is a plugin that logs in, and whether it answers for the service.
func (s *server) locked(password string) (e *Etcd, answers func() bool) {
	e = s.plugin(0)
	e.Client = nil
	e.letIn(etcdcv3.Config{Endpoints: []string{s.URL}, Username: "root", Password: password, Logger: quietLogger()})
	s.t.Cleanup(func() { e.OnShutdown() })
	return e, func() bool {
		m, _ := ask(e, "web.skydns.test.", dns.TypeA)
		return text(m) == "NOERROR web.skydns.test. 300 IN A 192.0.2.1"
	}
}

// TestFirstLogin: who asks while the plugin logs in for the first time waits for it, and so does the copy, of which there is
// nothing to warn. Who asks after a login that failed does not wait for the next one.
func TestFirstLogin(t *testing.T) {
	s := startLocked(t)
	out := logtest.Capture(t)
	e, answers := s.locked("secret")
	e.view = newView(e.admitted, "/skydns", defaultViewSize, e.lastRev.see)
	e.view.start()
	if !answers() {
		t.Error("no answer")
	}
	eventually.Holds(t, "the copy", e.view.settled)
	if out.Has("WARNING") {
		t.Errorf("%s", out)
	}

	e, _ = s.locked("wrong")
	for range 2 {
		if _, err := ask(e, "web.skydns.test.", dns.TypeA); !errors.Is(err, errNotLetIn) {
			t.Errorf("%v, want %v", err, errNotLetIn)
		}
	}
}

// TestTokenEnds asks after the token that etcd has given is no longer good, and after a restart.
func TestTokenEnds(t *testing.T) {
	s := startLocked(t)
	_, answers := s.locked("secret")
	eventually.Holds(t, "an answer", answers)
	time.Sleep(3 * time.Second) // etcdtest's tokens are good for one, if nobody asks
	eventually.Holds(t, "an answer with a new token", answers)
	s.Kill()
	s.Run()
	eventually.Holds(t, "an answer after a restart", answers)
}

func second[T any](_ T, err error) error { return err }

// slowAuth is an Auth that answers when it is let.
type slowAuth struct {
	etcdcv3.Auth
	calls atomic.Int32
	begun chan struct{}
	let   chan error
}

func (a *slowAuth) Authenticate(ctx context.Context, _, _ string) (*etcdcv3.AuthenticateResponse, error) {
	a.calls.Add(1)
	a.begun <- struct{}{}
	select {
	case err := <-a.let:
		return &etcdcv3.AuthenticateResponse{Token: "t"}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestOneLoginForAll has many queries at once that etcd has refused: they make one login, though those who wait for it
// give up.
func TestOneLoginForAll(t *testing.T) {
	client, err := etcdcv3.New(etcdcv3.Config{Endpoints: []string{"http://" + loopback.Addr()}, Logger: quietLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	slow := &slowAuth{begun: make(chan struct{}, 200), let: make(chan error)}
	c := &calm{Auth: slow, client: client}

	hasty, cancel := context.WithCancel(t.Context())
	var left sync.WaitGroup
	for range 50 {
		left.Go(func() {
			if _, err := c.Authenticate(hasty, "u", "p"); !errors.Is(err, context.Canceled) {
				t.Errorf("who gives up gets %v", err)
			}
		})
	}
	<-slow.begun
	cancel()
	left.Wait()
	for range 50 {
		left.Go(func() {
			if r, err := c.Authenticate(t.Context(), "u", "p"); err != nil || r.Token != "t" {
				t.Errorf("who waits gets %v, %v", r, err)
			}
		})
	}
	stop := make(chan struct{})
	var letting sync.WaitGroup
	letting.Go(func() {
		for {
			select {
			case slow.let <- nil:
			case <-stop:
				return
			}
		}
	})
	left.Wait()
	close(stop)
	letting.Wait()
	if n := slow.calls.Load(); n > 10 { // more than one, if some came much later than the others
		t.Errorf("%d logins", n)
	}

	// One that fails, and one that is old, are good for nobody.
	c.last.ended = time.Now().Add(-freshLogin)
	failed := errors.New("no")
	for range 2 {
		go func() { slow.let <- failed }()
		if _, err := c.Authenticate(t.Context(), "u", "p"); !errors.Is(err, failed) {
			t.Errorf("%v, want %v", err, failed)
		}
	}
}
