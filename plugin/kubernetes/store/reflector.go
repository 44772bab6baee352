package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/kubernetes/client/lean"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watched is a resource that is followed into a writer.
type watched struct {
	resource       client.Resource
	labels, fields string // selectors
	writer         writer
}

// writer takes in objects of one resource. Only one goroutine uses it.
type writer interface {
	// object returns the value that objects are decoded into.
	object() lean.Object
	// putScratch takes in the object decoded last; live means that it changed just now.
	putScratch(live bool)
	// drop takes out what has the name in m, and retain lets it be, as it is there, but cannot be read.
	drop(m *lean.Meta)
	retain(m *lean.Meta)
	// begin starts a round in which all there is will be put, and sweep, at its end,
	// takes out what was not. Between them what was known before stays.
	begin()
	sweep() int
}

// reflector follows one resource into its writer.
//
// First it asks for a watch that begins with all there is; where the server does not know that, it
// lists in pages and then watches. From then on it only resumes, at the version it has come
// to, whatever happens to the connection. If the server no longer knows what came after that
// version, is behind it, tells what is no event, or was away for long, there is a gap: all is read again as at first, into what
// is known already. So no object disappears but by the API's word. Client-go's reflector would gather a second copy of everything
// before it replaces the first; here objects go straight to where they stay.
type reflector struct {
	watched
	client *client.Client
	link   *link
	store  *Store

	version string // up to which all is known; empty if all has to be read
	synced  bool
	backoff backoff
	lived   time.Duration // of the last watch, 0 if none has begun
	futile  int           // how often in a row all was read, and there was a gap behind it at once
	regular bool          // the server gives signs of life

	heard    time.Time // when it told of something last, or took a request for a watch
	failed   bool      // the last pass ended other than passes do
	refusals int       // how often in a row it refused to do what it was asked to
}

func newReflector(w watched, c *client.Client, l *link, s *Store) *reflector {
	return &reflector{watched: w, client: c, link: l, store: s}
}

// run follows the resource until ctx ends.
func (r *reflector) run(ctx context.Context) {
	for ctx.Err() == nil {
		known := r.version != ""
		err := r.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		if !r.settle(err, known) {
			continue
		}
		select {
		case <-time.After(max(r.backoff.next(rand.Float64()), asked(err))):
		case <-r.link.again():
		case <-ctx.Done():
		}
	}
}

// quick is how long a watch lasts at least; one that ends sooner is not begun again at once.
const quick = time.Second

// settle draws the conclusions from the end of a pass and tells whether to wait before the next. What counts is how long the
// watch lived: a pass may be slow because apiserver_qps holds its requests back.
func (r *reflector) settle(err error, known bool) (wait bool) {
	if r.lived >= quick {
		r.futile, r.refusals = 0, 0
	}
	var req *requestError
	request := errors.As(err, &req)
	name, host := r.resource.String(), r.client.Host()
	v := judge(err, request)
	r.failed = v == broken || v == away || v == refused
	switch v {
	case gap:
		r.version = ""
		if !known { // it happened while all was being read
			r.futile++
			if r.backoff.tries = max(r.backoff.tries, r.futile); r.futile > patience {
				r.complain("watch", err)
			}
			return true
		}
		r.missed(err)
		return r.lived < quick
	case noWatch:
		r.version = ""
		r.backoff.full() // all that was read will be read again
		r.link.refused("watch", name, err, time.Now())
		return true
	case away:
		r.link.failed(name, host, err, time.Now())
		return true
	case refused:
		verb := "watch"
		if request {
			verb = req.verb
		}
		r.refusals++
		r.backoff.tries = min(r.backoff.tries, r.refusals) // it is there, for however long it was not
		if r.refusals > patience {                         // it may let us list all the same
			r.version = ""
			r.backoff.full()
		}
		if !r.synced || r.refusals > patience {
			r.complain(verb, err)
		}
		return true
	}
	return r.lived < quick
}

// missed notes that changes may have been missed, and why.
func (r *reflector) missed(why error) {
	r.store.stats.gaps.Add(1)
	r.store.config.Log.Infof("changes of %s may have been missed, reading all again: %v", r.resource, cause(why))
}

// patience is how often a server that let us in before may refuse to without a
// word in the log: while it starts, it does not know yet what we may do.
const patience = 4

// complain logs that the server refuses to do what it was asked to. It is there, if it was not before.
func (r *reflector) complain(verb string, err error) {
	r.answered()
	r.link.refused(verb, r.resource.String(), err, time.Now())
}

// pass is the life of one watch, with the list before it if there is one. It returns why it ended.
func (r *reflector) pass(ctx context.Context) error {
	r.lived = 0
	if r.version != "" {
		if err := r.compare(ctx); err != nil {
			return err
		}
		if !r.estranged(time.Now()) {
			return r.follow(ctx, false)
		}
	}
	r.writer.begin()
	err := r.follow(ctx, true)
	if r.version != "" || ctx.Err() != nil {
		return err // it lived to tell all there is
	}
	switch v := judge(err, true); {
	case v == refused && forbidden(err):
		if !r.synced || r.refusals >= patience {
			r.complain("watch", err)
		}
	case v == refused, v == ended, v == noWatch, errors.Is(err, errSilent), v == away && failing(err):
		// It does not know watches that begin with all there is, or fails in them.
	default:
		return err
	}
	r.lived = 0
	r.writer.begin() // what it told of may have been deleted since then
	if err := r.list(ctx); err != nil {
		return err
	}
	return r.follow(ctx, false)
}

// silence is how long a server may take for the next event while it tells all there is. One that
// does not know the request at all may never come to the end. Only tests change it.
var silence = 15 * time.Second

// signs is how long a server that tells how far it has come is silent at most: it does so each minute or so. Else the
// connection is dead, or something on the way that goes on to hold it. Only tests change it.
var signs = 3 * time.Minute

// grace is how long after its time a watch may end. Then its connection must be dead.
const grace = 30 * time.Second

// follow watches until the watch ends. With initial it asks for all there is first.
func (r *reflector) follow(ctx context.Context, initial bool) error {
	lifetime := watchTime()
	ctx, cancel := context.WithTimeout(ctx, lifetime+grace)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	switch {
	case initial:
	case r.regular:
		quiet.Reset(signs)
	default:
		quiet.Stop()
	}
	o := client.Options{Labels: r.labels, Fields: r.fields, Version: r.version, Initial: initial, Timeout: lifetime}
	w, err := r.client.Watch(ctx, r.resource, o)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) { // not even a header came
		if err = errDead; initial {
			err = errSilent
		}
	}
	if err != nil {
		return r.failure("watch", err)
	}
	defer w.Close()
	defer func(begun time.Time) { r.lived = time.Since(begun) }(time.Now())
	r.answered()
	r.heard = time.Now()
	f := following{reflector: r, initial: initial, from: r.version}
	for {
		e, err := w.Next()
		if err != nil {
			if f.initial && errors.Is(ctx.Err(), context.Canceled) {
				return errSilent
			}
			return err
		}
		telling := f.initial
		if err := f.event(e); err != nil {
			return err
		}
		r.regular = r.regular || !telling && e.Type == client.Bookmark
		switch {
		case f.initial:
			quiet.Reset(silence)
		case r.regular:
			quiet.Reset(signs)
		case telling:
			quiet.Stop()
		}
	}
}

func (r *reflector) failure(verb string, err error) error {
	return &requestError{verb, r.resource.String(), err}
}

// answered notes that the server is there.
func (r *reflector) answered() {
	r.link.ok(r.resource.String(), r.client.Host(), time.Now())
}

// following is a watch that is being read.
type following struct {
	*reflector
	initial bool   // all there is has not been told yet
	from    string // the version at which the watch began
}

// event takes in one event.
func (f *following) event(e client.Event) error {
	f.hears(time.Now())
	m, ok := f.decode(e.Object, e.Encoding)
	if !ok {
		if e.Type == client.Deleted { // what it was when it could be read
			f.writer.drop(m)
		}
		return nil
	}
	switch e.Type {
	case client.Added, client.Modified:
		f.writer.putScratch(!f.initial)
	case client.Deleted:
		f.writer.drop(m)
	case client.Bookmark:
		return f.bookmark(m)
	}
	if !f.initial {
		f.store.stats.events.Add(1)
		f.reached(m.ResourceVersion)
	}
	return nil
}

// decode reads an object into the writer's value. Of one that cannot be read there is the metadata, as far as it can.
func (r *reflector) decode(object []byte, e lean.Encoding) (*lean.Meta, bool) {
	o := r.writer.object()
	if err := o.Decode(object, e); err != nil {
		r.link.unreadable(r.resource.String(), o.Metadata(), err, time.Now())
		r.writer.retain(o.Metadata())
		return o.Metadata(), false
	}
	return o.Metadata(), true
}

// bookmark takes in up to which version all has been told.
func (f *following) bookmark(m *lean.Meta) error {
	if f.initial {
		if string(m.Annotation(metav1.InitialEventsAnnotationKey)) == "true" {
			f.initial = false
			f.complete(string(m.ResourceVersion))
		}
		return nil
	}
	// A server that was restored from a copy does not know of our version; it tells
	// what is new since then, not what it has forgotten.
	if wentBack(string(m.ResourceVersion), f.from) {
		return fmt.Errorf("%w from %s to %s", errBack, f.from, m.ResourceVersion)
	}
	f.reached(m.ResourceVersion)
	return nil
}

// reached notes the version that the reflector has come to.
func (r *reflector) reached(version []byte) {
	if len(version) > 0 && string(version) != r.version {
		r.version = string(version)
	}
	r.succeed()
}

// complete ends a round in which all there is was told.
func (r *reflector) complete(version string) {
	r.hears(time.Now()) // all there is may be nothing
	r.writer.sweep()
	r.version = version
	r.succeed()
	if !r.synced {
		r.synced = true
		r.store.kindSynced()
	}
}

// succeed notes that the server does what it is asked to.
func (r *reflector) succeed() {
	r.backoff.reset()
	r.refusals = 0
}
