package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client/lean"
)

// link is what is known of the connection to the API, from what happens to all reflectors. It
// logs when the API is lost and when it is back.
type link struct {
	log Logger

	mu     sync.Mutex
	down   map[string]struct{} // resources whose last request failed
	since  time.Time           // when the first of them did
	known  bool                // the API has answered before
	logged map[string]time.Time
	back   chan struct{} // closed when a request succeeds while others wait to try again
}

func newLink(log Logger) *link {
	return &link{log: log, down: map[string]struct{}{}, logged: map[string]time.Time{}, back: make(chan struct{})}
}

// failed notes that the API could not be reached for a resource. It is logged again from time to time, and when it turns out that the
// API is there, but shows a certificate that is not trusted.
func (l *link) failed(resource, host string, err error, now time.Time) {
	trouble := "connection"
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		trouble = "certificate"
	}
	first, known := l.note(resource, now)
	due := l.due(trouble, now)
	switch {
	case first && known:
		l.log.Warningf("lost the Kubernetes API at %s, going on with what is known: %v", host, cause(err))
	case first:
		l.log.Warningf("no answer from the Kubernetes API at %s, trying again: %v", host, cause(err))
	case due:
		l.log.Warningf("still no answer from the Kubernetes API at %s: %v", host, cause(err))
	}
}

func (l *link) note(resource string, now time.Time) (first, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first = len(l.down) == 0; first {
		l.since = now
	}
	l.down[resource] = struct{}{}
	return first, l.known
}

// ok notes that the API has answered for a resource.
func (l *link) ok(resource, host string, now time.Time) {
	if away, back := l.clear(resource, now); back {
		l.log.Infof("the Kubernetes API at %s is back after %s", host, away.Round(time.Millisecond))
	}
}

func (l *link) clear(resource string, now time.Time) (away time.Duration, back bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = true
	if _, was := l.down[resource]; !was {
		return 0, false
	}
	delete(l.down, resource)
	close(l.back) // the others need not wait any longer
	l.back = make(chan struct{})
	return now.Sub(l.since), len(l.down) == 0
}

// again returns a channel that is closed when the API has answered another reflector after a failure.
func (l *link) again() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.back
}

// remind is how often trouble that goes on is logged.
const remind = 5 * time.Minute

// refused logs that the API does not let us do something: at once, and then from time to time.
func (l *link) refused(verb, resource string, err error, now time.Time) {
	if l.due(verb+" "+resource, now) {
		l.log.Errorf("the Kubernetes API refuses to %s %s: %v", verb, resource, cause(err))
	}
}

// unreadable logs that an object was left out.
func (l *link) unreadable(resource string, m *lean.Meta, err error, now time.Time) {
	if l.due("read "+resource, now) {
		l.log.Errorf("leaving out one of %s that cannot be read (%s/%s): %v", resource, m.Namespace, m.Name, err)
	}
}

// due tells whether a line about what is to be logged now.
func (l *link) due(what string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, was := l.logged[what]
	if was && now.Sub(last) < remind {
		return false
	}
	l.logged[what] = now
	return true
}

// cause takes off what the line says already: what was asked for, and at which URL.
func cause(err error) error {
	var req *requestError
	if errors.As(err, &req) {
		err = req.err
	}
	var get *url.Error
	if errors.As(err, &get) {
		err = get.Err
	}
	return err
}

// requestError is an error of a request: what was attempted on what.
type requestError struct {
	verb, resource string
	err            error
}

func (e *requestError) Error() string { return fmt.Sprintf("%s %s: %v", e.verb, e.resource, e.err) }

func (e *requestError) Unwrap() error { return e.err }
