package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
	"github.com/coredns/coredns/plugin/pkg/webconfig"
)

// Times of connections, and of the end of a server.
const (
	timeout = 5 * time.Second
	grace   = 5 * time.Second
	silence = 100 * time.Millisecond // for a first request that is on its way
)

// key is what leases that share a server have in common, but for those of one instance that serve the same.
type key struct{ addr, webConfig string }

// server is one HTTP server with the leases on it. Leases are guarded by the table's lock.
type server struct {
	key      key
	listener net.Listener
	http     *http.Server
	done     chan struct{} // closed when the goroutine that serves has ended
	conns    openConns

	long   bool                          // a lease's requests may take any time
	leases []*Lease                      // in the order in which they were opened
	owner  any                           // whose handlers answer
	mux    atomic.Pointer[http.ServeMux] // what answers; nil until the next request if leases have ended
}

// newServer opens the socket of a server.
func newServer(addr, webConfig string) (*server, error) {
	if err := webconfig.Validate(webConfig); err != nil {
		return nil, err
	}
	ln, err := listen(addr)
	if err != nil {
		return nil, err
	}
	if ln.Addr() == nil {
		ln.Close()
		return nil, fmt.Errorf("listen tcp %s: the system does not tell the socket's address (getsockname)", addr)
	}
	s := &server{key: key{addr, webConfig}, listener: ln, done: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: timeout, IdleTimeout: timeout, ConnState: s.conns.note}
	return s, nil
}

func (s *server) addr() net.Addr { return s.listener.Addr() }

// lost reports whether nobody can come to s any more: somebody has taken the file of its socket away.
func (s *server) lost() bool {
	u, ok := s.listener.(*unixListener)
	return ok && u.lost()
}

// start begins to serve; stop ends it.
func (s *server) start() {
	go func() {
		defer close(s.done)
		defer s.listener.Close()
		err := webconfig.Serve(reuseport.Patient(s.listener), s.http, s.key.webConfig)
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Errorf("serving HTTP on %s: %v", s.addr(), err)
		}
	}()
}

// stop closes the socket and the idle connections, waits for the requests at work, and closes their connections. What
// has come to the socket is taken before: another one may have the address, too, and gets what comes from now on.
func (s *server) stop() {
	if reuseport.Yield(s.listener) {
		time.Sleep(silence)
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	defer time.AfterFunc(silence, s.conns.closeNew).Stop()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.done
}

// leave is stop that waits until the socket is closed, and for no request: one of these may wait itself for what has
// the server end, such as a reload. They have the same time to end.
func (s *server) leave() {
	go s.stop()
	<-s.done
}

// ServeHTTP serves a request with the handlers of the instance whose turn it is, within the time that it may take.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setDeadline(w, time.Now().Add(timeout))
	s.routed().ServeHTTP(w, r)
}

// routed is what answers. At the end of a process with thousands of leases, which end one by one, no request comes that
// it would have to be put together for.
func (s *server) routed() *http.ServeMux {
	if mux := s.mux.Load(); mux != nil {
		return mux
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.mux.Load() == nil {
		s.route()
	}
	return s.mux.Load()
}

// setDeadline limits the time for reading the rest of a request and writing the reply.
func setDeadline(w http.ResponseWriter, t time.Time) {
	c := http.NewResponseController(w)
	// A connection that takes no deadlines has none to be kept from.
	_, _ = c.SetReadDeadline(t), c.SetWriteDeadline(t)
}

// unlimited is h without a deadline.
func unlimited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setDeadline(w, time.Time{})
		h.ServeHTTP(w, r)
	})
}

// held reports whether owner holds a lease on s.
func (s *server) held(owner any) bool {
	return slices.ContainsFunc(s.leases, func(l *Lease) bool { return l.owner == owner })
}

// serves reports whether owner's leases have handlers for all patterns already.
func (s *server) serves(owner any, handlers map[string]http.Handler) bool {
	for pattern := range handlers {
		if !slices.ContainsFunc(s.leases, func(l *Lease) bool { return l.owner == owner && l.spec.Handlers[pattern] != nil }) {
			return false
		}
	}
	return true
}

// add adds a lease. Its owner's handlers answer from now on, or if it waits, when those that answer now have gone.
func (s *server) add(l *Lease, waits bool) {
	changes := !waits && (s.owner != l.owner || !s.serves(l.owner, l.spec.Handlers))
	s.leases = append(s.leases, l)
	s.long = s.long || l.spec.Long
	if changes {
		s.owner = l.owner
		s.route()
	}
}

// remove takes the leases away that have ended. When the last of the owner is among them, the newest owner is the one
// whose handlers answer. What is answered changes with route.
func (s *server) remove() {
	s.leases = slices.DeleteFunc(s.leases, func(l *Lease) bool { return l.server != s })
	if n := len(s.leases); n > 0 && !s.held(s.owner) {
		s.owner = s.leases[n-1].owner
	}
}

// route makes the handlers of the owner's leases those that answer.
func (s *server) route() {
	mux := http.NewServeMux()
	taken := map[string]bool{}
	for _, l := range s.leases {
		if l.owner != s.owner {
			continue
		}
		for pattern, h := range l.spec.Handlers {
			if taken[pattern] {
				continue
			}
			taken[pattern] = true
			if l.spec.Long {
				h = unlimited(h)
			}
			mux.Handle(pattern, h)
		}
	}
	s.mux.Store(mux)
}
